//! GraphML and GEXF.
//!
//! Of GraphML `<data>` whose key has a name, of GEXF `<attvalue>` whose attribute has a title, becomes a column of
//! nodes, and what an edge's is called `weight` its weight; GEXF has that as an attribute of `<edge>` itself. Defaults
//! of keys stand where a node has none. What nodes are shown as (`label` in GEXF) and where is not read.

use super::described::{Described, ENDS, ID, free_name};
use super::gml::read_text;
use super::numbers::shorten;
use super::{ReadOptions, Reader, extension};
use crate::dataset::Dataset;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::roles::Roles;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use std::collections::HashMap;
use std::path::Path;

/// The reader of both.
pub struct GraphXml;

impl Reader for GraphXml {
    fn name(&self) -> &'static str {
        "GraphML or GEXF file"
    }

    fn recognises(&self, path: &Path) -> bool {
        path.is_file() && ["graphml", "gexf"].contains(&extension(path).as_str())
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
        let at = |at: u64| 1 + text.bytes().take(at as usize).filter(|&byte| byte == b'\n').count();
        let read = made.read(&text, &options.limits);
        read.map_err(|(place, what)| GraphError::format(path, format!("line {}", at(place)), what))?;
        let mut described = made.described();
        // So igraph writes what nodes are called.
        described.call_by("name");
        described.read(path, options)
    }
}

/// What a key or an attribute is of, and its name.
struct Key {
    of_edges: bool,
    name: String,
    default: Option<String>,
}

/// What the text that comes is the value of.
enum Reading {
    /// The default of the key that came last.
    Default,
    /// The value of this key.
    Value(String),
}

#[derive(Default)]
struct Made {
    described: Described,
    /// By whom they are of (nodes, edges) and by their id.
    keys: HashMap<(bool, String), Key>,
    last_key: Option<(bool, String)>,
    /// What `<attributes>` are of, in GEXF.
    of_edges: bool,
    is_directed: bool,
    graphs: u32,
    /// Whether attributes are an edge's or a node's now, or none's.
    inside: Option<bool>,
    reading: Option<Reading>,
    text: String,
    /// How many elements are open in the value.
    depth: u32,
}

type Wrong = (u64, String);

/// The attributes of an element.
struct Attributes<'a>(&'a BytesStart<'a>);

impl Attributes<'_> {
    fn get(&self, name: &str) -> std::result::Result<Option<String>, String> {
        for found in self.0.attributes() {
            let found = found.map_err(|error| error.to_string())?;
            if found.key.into_inner() == name {
                let value = found.normalized_value(XmlVersion::Implicit1_0).map_err(|error| error.to_string())?;
                return Ok(Some(value.into_owned()));
            }
        }
        Ok(None)
    }

    fn needed(&self, name: &str) -> std::result::Result<String, String> {
        self.get(name)?.ok_or_else(|| format!("expected an attribute {name}"))
    }
}

impl Made {
    fn read(&mut self, text: &str, limits: &Limits) -> std::result::Result<(), Wrong> {
        let mut reader = quick_xml::Reader::from_str(text);
        loop {
            let event = reader.read_event().map_err(|error| (reader.error_position(), error.to_string()))?;
            let done = match event {
                Event::Start(element) => self.begin(&element),
                Event::Empty(_) if self.reading.is_some() => Ok(()),
                Event::Empty(element) => {
                    self.begin(&element).and_then(|()| self.end(element.local_name().into_inner()))
                }
                Event::End(element) => self.end(element.local_name().into_inner()),
                Event::Text(text) => self.add(&text.xml10_content()),
                Event::CData(text) => self.add(&text.xml10_content()),
                Event::GeneralRef(name) => {
                    let spelt = format!("&{};", name.xml10_content());
                    let meant = quick_xml::escape::unescape(&spelt).map_err(|error| error.to_string());
                    meant.and_then(|meant| self.add(&meant))
                }
                Event::Eof => return Ok(()),
                _ => Ok(()),
            };
            let done = done.and_then(|()| self.described.within(limits));
            done.map_err(|what| (reader.buffer_position(), what))?;
        }
    }

    fn add(&mut self, text: &str) -> std::result::Result<(), String> {
        if self.reading.is_some() && self.depth == 0 {
            self.text += text;
        }
        Ok(())
    }

    fn begin(&mut self, element: &BytesStart) -> std::result::Result<(), String> {
        let of = Attributes(element);
        if self.reading.is_some() {
            // An element in a value, as yEd has it: the value is then no text.
            self.depth += 1;
            return Ok(());
        }
        match element.local_name().into_inner() {
            "graph" => self.graph(&of)?,
            "hyperedge" => return Err("an edge of more than two nodes".to_owned()),
            "key" => {
                let kind = of.get("for")?.unwrap_or_default();
                let name = of.get("attr.name")?.map_or_else(|| of.needed("id"), Ok)?;
                for of_edges in [false, true] {
                    // Without a word, and with another, it is of both.
                    let other = if of_edges { "node" } else { "edge" };
                    if ![other, "graph", "hyperedge", "port", "endpoint"].contains(&kind.as_str()) {
                        self.key(of_edges, of.needed("id")?, name.clone());
                    }
                }
            }
            "attributes" => self.of_edges = of.get("class")?.as_deref() == Some("edge"),
            "attribute" => {
                self.key(self.of_edges, of.needed("id")?, of.get("title")?.map_or_else(|| of.needed("id"), Ok)?)
            }
            "default" if self.last_key.is_some() => self.reading = Some(Reading::Default),
            "node" => {
                self.inside = Some(false);
                self.described.nodes.begin();
                self.described.nodes.set(ID, &of.needed(ID)?)?;
            }
            "edge" => self.edge(&of)?,
            "data" => self.reading = Some(Reading::Value(of.needed("key")?)),
            "attvalue" => {
                let key = of.get("for")?.map_or_else(|| of.needed("id"), Ok)?;
                self.value(&key, &of.needed("value")?)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn graph(&mut self, of: &Attributes) -> std::result::Result<(), String> {
        self.graphs += 1;
        if self.graphs > 1 {
            return Err("expected one graph, found another".to_owned());
        }
        let kind = match of.get("edgedefault")? {
            None => of.get("defaultedgetype")?,
            kind => kind,
        };
        self.is_directed = kind.as_deref() == Some("directed");
        Ok(())
    }

    fn edge(&mut self, of: &Attributes) -> std::result::Result<(), String> {
        self.inside = Some(true);
        let is_directed = match (of.get("directed")?.as_deref(), of.get("type")?.as_deref()) {
            (Some(told), _) => told == "true",
            (None, Some("directed")) => true,
            (None, Some("undirected" | "mutual")) => false,
            _ => self.is_directed,
        };
        self.described.edge([&of.needed(ENDS[0])?, &of.needed(ENDS[1])?], is_directed)?;
        match of.get("weight")? {
            Some(weight) => self.described.edges.set("weight", &weight),
            None => Ok(()),
        }
    }

    fn key(&mut self, of_edges: bool, id: String, name: String) {
        self.last_key = Some((of_edges, id.clone()));
        let name = free_name(&name, if of_edges { &ENDS } else { &[ID] });
        self.keys.insert((of_edges, id), Key { of_edges, name, default: None });
    }

    /// The value of a key, of the node or edge that is read now.
    fn value(&mut self, key: &str, value: &str) -> std::result::Result<(), String> {
        let Some(of_edges) = self.inside else { return Ok(()) };
        let rows = if of_edges { &mut self.described.edges } else { &mut self.described.nodes };
        match self.keys.get(&(of_edges, key.to_owned())) {
            Some(key) => rows.set(&key.name, value),
            None => Err(format!("found a value of '{}', which nothing declares", shorten(key))),
        }
    }

    fn end(&mut self, name: &str) -> std::result::Result<(), String> {
        if self.reading.is_some() && self.depth > 0 {
            self.depth -= 1;
            self.text.clear();
            return Ok(());
        }
        match self.reading.take() {
            Some(Reading::Value(key)) => {
                let text = std::mem::take(&mut self.text);
                if !text.trim().is_empty() {
                    return self.value(&key, text.trim());
                }
            }
            Some(Reading::Default) => {
                let text = std::mem::take(&mut self.text);
                if let Some(key) = self.last_key.as_ref().and_then(|key| self.keys.get_mut(key)) {
                    key.default = Some(text.trim().to_owned());
                }
            }
            _ if ["node", "edge"].contains(&name) => self.inside = None,
            _ => {}
        }
        Ok(())
    }

    fn described(mut self) -> Described {
        for key in self.keys.values() {
            let rows = if key.of_edges { &mut self.described.edges } else { &mut self.described.nodes };
            key.default.iter().for_each(|default| rows.default(&key.name, default));
        }
        self.described
    }
}
