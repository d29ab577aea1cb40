//! GML: `graph [ directed 0 node [ id 1 label "a" age 30 ] edge [ source 1 target 2 weight 0.5 ] ]`.
//!
//! Nodes are called by their `label` where each has one of its own, as NetworkX has it, else by their `id`. Attributes
//! in lists, such as `graphics`, are not read.

use super::described::{Described, ENDS, ID, free_name};
use super::numbers::shorten;
use super::text::open_text;
use super::{ReadOptions, Reader, extension};
use crate::dataset::Dataset;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::Growth;
use crate::roles::Roles;
use std::io::Read;
use std::path::Path;

/// The reader of GML.
pub struct Gml;

impl Reader for Gml {
    fn name(&self) -> &'static str {
        "GML file"
    }

    fn recognises(&self, path: &Path) -> bool {
        path.is_file() && extension(path) == "gml"
    }

    fn reads_key(&self, _key: &str) -> bool {
        true
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let text = read_text(path, &options.limits)?;
        let mut made = Made::default();
        let mut tokens = Tokens { rest: &text, line: 1 };
        made.read(&mut tokens, &options.limits)
            .map_err(|what| GraphError::format(path, format!("line {}", tokens.line), what))?;
        if made.described.nodes.whole(ID).is_none() {
            return Err(GraphError::format(path, "nodes", "expected an id of every node"));
        }
        made.described.call_by("label");
        made.described.read(path, options)
    }
}

/// The whole of a text file, packed or not, as far as there is memory for it.
pub(super) fn read_text(path: &Path, limits: &Limits) -> Result<String> {
    let mut from = open_text(path, limits)?;
    let (mut bytes, mut growth) = (Vec::new(), Growth::new());
    loop {
        let count = from.by_ref().take(1 << 20).read_to_end(&mut bytes).map_err(|e| GraphError::io(path, e))?;
        growth.to(bytes.len() as u64 * 4).map_err(|what| GraphError::format(path, "text", what))?;
        if count == 0 {
            break;
        }
    }
    String::from_utf8(bytes).map_err(|_| GraphError::format(path, "text", "expected UTF-8"))
}

/// What is left of the text, and the line that it is on.
struct Tokens<'a> {
    rest: &'a str,
    line: u64,
}

enum Token<'a> {
    Open,
    Close,
    /// A key or a number.
    Word(&'a str),
    Text(String),
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> std::result::Result<Option<Token<'a>>, String> {
        loop {
            let trimmed = self.rest.trim_start();
            self.skip(self.rest.len() - trimmed.len());
            if !trimmed.starts_with('#') {
                break;
            }
            self.skip(self.rest.find('\n').unwrap_or(self.rest.len()));
        }
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        if first == '"' {
            let end = self.rest[1..].find('"').ok_or("a text does not end")?;
            let text = unescaped(&self.rest[1..=end]);
            self.skip(end + 2);
            return Ok(Some(Token::Text(text)));
        }
        let is_end = |c: char| c.is_whitespace() || matches!(c, '[' | ']' | '"');
        let end = if matches!(first, '[' | ']') { 1 } else { self.rest.find(is_end).unwrap_or(self.rest.len()) };
        let word = &self.rest[..end];
        self.skip(end);
        Ok(Some(match word {
            "[" => Token::Open,
            "]" => Token::Close,
            word => Token::Word(word),
        }))
    }

    fn skip(&mut self, bytes: usize) {
        self.line += self.rest[..bytes].bytes().filter(|&byte| byte == b'\n').count() as u64;
        self.rest = &self.rest[bytes..];
    }
}

/// A text with the characters that are spelt `&#228;` or `&quot;`.
fn unescaped(text: &str) -> String {
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        made += &rest[..at];
        rest = &rest[at..];
        let end = rest.char_indices().take(12).find(|(_, sign)| *sign == ';').map(|(end, _)| end);
        let character = end.and_then(|end| match &rest[1..end] {
            "quot" => Some('"'),
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "apos" => Some('\''),
            code => code.strip_prefix('#').and_then(|code| code.parse().ok()).and_then(char::from_u32),
        });
        made.push(character.unwrap_or('&'));
        rest = &rest[character.and(end).map_or(1, |end| end + 1)..];
    }
    made + rest
}

/// A word before the first value of a list that has but one.
const LIST_START: &str = "_networkx_list_start";

/// Where in the nested lists a key stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Outside,
    Graph,
    Node,
    Edge,
    /// A list that is not read.
    Other,
}

#[derive(Default)]
struct Made {
    described: Described,
    is_directed: bool,
    graphs: u32,
    /// Ends of the edge that is being read.
    ends: [Option<String>; 2],
    attributes: Vec<(String, Vec<String>)>,
}

impl Made {
    fn read(&mut self, tokens: &mut Tokens, limits: &Limits) -> std::result::Result<(), String> {
        let mut places = vec![Place::Outside];
        loop {
            let here = places.last().copied().unwrap_or(Place::Outside);
            let key = match tokens.next()? {
                None if places.len() == 1 => return Ok(()),
                None => return Err("a list does not end".to_owned()),
                Some(Token::Close) if places.len() > 1 => {
                    self.close(here)?;
                    self.described.within(limits)?;
                    places.pop();
                    continue;
                }
                Some(Token::Word(key)) => key,
                Some(_) => return Err("expected a key".to_owned()),
            };
            match tokens.next()? {
                Some(Token::Open) => places.push(self.open(key, here)?),
                Some(Token::Word(value)) => self.value(here, key, value)?,
                Some(Token::Text(value)) => self.value(here, key, &value)?,
                _ => return Err(format!("expected a value of '{}'", shorten(key))),
            }
        }
    }

    fn open(&mut self, key: &str, here: Place) -> std::result::Result<Place, String> {
        self.graphs += u32::from(here == Place::Outside && key == "graph");
        if self.graphs > 1 {
            return Err("expected one graph, found another".to_owned());
        }
        Ok(match (here, key) {
            (Place::Outside, "graph") => Place::Graph,
            (Place::Graph, "node") => Place::Node,
            (Place::Graph, "edge") => Place::Edge,
            _ => Place::Other,
        })
    }

    fn value(&mut self, here: Place, key: &str, value: &str) -> std::result::Result<(), String> {
        match (here, key) {
            (Place::Graph, "directed") => self.is_directed = value == "1",
            (Place::Edge, "source") => self.ends[0] = Some(value.to_owned()),
            (Place::Edge, "target") => self.ends[1] = Some(value.to_owned()),
            (Place::Node, "id") => self.attributes.push((ID.to_owned(), vec![value.to_owned()])),
            (Place::Node, _) => self.attribute(free_name(key, &[ID]), value),
            (Place::Edge, _) => self.attributes.push((free_name(key, &ENDS), vec![value.to_owned()])),
            _ => {}
        }
        Ok(())
    }

    /// One more value of an attribute: a key that is there again and again is a list.
    fn attribute(&mut self, name: String, value: &str) {
        match self.attributes.last_mut() {
            Some((last, values)) if *last == name => values.push(value.to_owned()),
            _ => self.attributes.push((name, vec![value.to_owned()])),
        }
    }

    fn close(&mut self, here: Place) -> std::result::Result<(), String> {
        let rows = match here {
            Place::Node => {
                self.described.nodes.begin();
                &mut self.described.nodes
            }
            Place::Edge => {
                let [Some(source), Some(target)] = std::mem::take(&mut self.ends) else {
                    return Err("expected an edge's source and target".to_owned());
                };
                self.described.edge([&source, &target], self.is_directed)?;
                &mut self.described.edges
            }
            _ => return Ok(()),
        };
        self.attributes.drain(..).try_for_each(|(name, mut values)| {
            let is_list = values.len() > 1;
            // What NetworkX writes before the only value of a list.
            values.retain(|value| !is_list || value != LIST_START);
            rows.set(&name, &if is_list { format!("[{}]", values.join(", ")) } else { values.concat() })
        })
    }
}
