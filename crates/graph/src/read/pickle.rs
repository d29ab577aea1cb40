//! Python pickles, protocols 0 to 2 (and the byte strings of 3), read as data.
//!
//! A pickle is a program for a small stack machine, and in Python that program may call anything. This machine calls
//! nothing: a global is two strings, applying it to arguments makes an [`Node::Object`] that remembers both, and what
//! such an object means is up to the caller, who knows the few kinds there may be. Globals outside the caller's list
//! are an error.
//!
//! Nodes live in one arena and refer to each other by index, so shared and even cyclic values cost nothing and nothing
//! recurses. Each instruction makes at most one node, so memory is bounded by a small multiple of the file.
//!
//! Longer than 500 lines because the machine is one thing: its instructions, its stack and its limits cannot be
//! read apart.

use std::collections::HashMap;

/// The place of a node in its [`Pickle`].
pub type Id = u32;

/// A value in a pickle.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// Python's `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer that fits 64 bits.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A byte string; what Python 2 calls `str`.
    Bytes(Vec<u8>),
    /// A text in UTF-8.
    Text(String),
    /// A tuple of other nodes.
    Tuple(Vec<Id>),
    /// A list of other nodes.
    List(Vec<Id>),
    /// A dictionary, in the order of its file.
    Dict(Vec<(Id, Id)>),
    /// A class or function: module and name.
    Global(Box<(String, String)>),
    /// A global applied to arguments.
    Object(Box<Object>),
}

/// What a pickle asks Python to build.
#[derive(Debug, Clone, PartialEq)]
pub struct Object {
    /// The global that would be called.
    pub global: Id,
    /// The arguments, a tuple.
    pub args: Id,
    /// The state given to the object afterwards.
    pub state: Option<Id>,
    /// Keys and values set afterwards, for objects that act as dictionaries.
    pub items: Vec<(Id, Id)>,
}

/// A pickle that was read.
#[derive(Debug)]
pub struct Pickle {
    nodes: Vec<Node>,
    root: Id,
}

impl Pickle {
    /// Runs the pickle in `bytes`; globals other than `allowed` (module and name) are refused.
    ///
    /// Errors say at which byte what was expected.
    ///
    /// # Errors
    ///
    /// If the bytes are no pickle, or one that names a global beyond `allowed`.
    pub fn read(bytes: &[u8], allowed: &[(&str, &str)]) -> Result<Pickle, String> {
        let mut machine =
            Machine { bytes, at: 0, nodes: vec![], stack: vec![], marks: vec![], memo: HashMap::new(), allowed };
        loop {
            let at = machine.at;
            match machine.step() {
                Ok(None) => {}
                Ok(Some(root)) => return Ok(Pickle { nodes: machine.nodes, root }),
                Err(what) => return Err(format!("byte {at} of the pickle: {what}")),
            }
        }
    }

    /// The value of the whole pickle.
    pub fn root(&self) -> Id {
        self.root
    }

    /// The node at `id`.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// The integer at `id`.
    pub fn int(&self, id: Id) -> Option<i64> {
        match *self.node(id) {
            Node::Int(value) => Some(value),
            Node::Bool(value) => Some(i64::from(value)),
            _ => None,
        }
    }

    /// The text at `id`, from either kind of string.
    pub fn text(&self, id: Id) -> Option<&str> {
        match self.node(id) {
            Node::Text(text) => Some(text),
            Node::Bytes(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The items of the tuple or list at `id`.
    pub fn items(&self, id: Id) -> Option<&[Id]> {
        match self.node(id) {
            Node::Tuple(items) | Node::List(items) => Some(items),
            _ => None,
        }
    }

    /// Keys and values of the dictionary, or of the object that acts as one, at `id`.
    pub fn entries(&self, id: Id) -> Option<&[(Id, Id)]> {
        match self.node(id) {
            Node::Dict(entries) => Some(entries),
            Node::Object(object) => Some(&object.items),
            _ => None,
        }
    }

    /// The object at `id` with the module and name of what would be called.
    pub fn object(&self, id: Id) -> Option<(&str, &str, &Object)> {
        let Node::Object(object) = self.node(id) else { return None };
        let (module, name) = self.global(object.global)?;
        Some((module, name, object))
    }

    /// Module and name of the global at `id`.
    pub fn global(&self, id: Id) -> Option<(&str, &str)> {
        match self.node(id) {
            Node::Global(global) => Some((&global.0, &global.1)),
            _ => None,
        }
    }
}

/// Lists may be nested by marks; real pickles need a handful.
const MARKS_MAX: usize = 1000;

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    stack: Vec<Id>,
    /// Heights of the stack.
    marks: Vec<usize>,
    memo: HashMap<u64, Id>,
    allowed: &'a [(&'a str, &'a str)],
}

impl Machine<'_> {
    /// One instruction; the root once the pickle stops.
    fn step(&mut self) -> Result<Option<Id>, String> {
        let instruction = self.byte()?;
        match instruction {
            b'.' => return self.pop().map(Some),
            0x80 => {
                let protocol = self.byte()?;
                if protocol > 3 {
                    return Err(format!("expected protocol 0 to 3, found {protocol}"));
                }
            }
            b'(' => {
                if self.marks.len() == MARKS_MAX {
                    return Err(format!("expected at most {MARKS_MAX} open marks"));
                }
                self.marks.push(self.stack.len());
            }
            b'0' => drop(self.pop()?),
            b'1' => drop(self.pop_mark()?),
            b'2' => {
                let top = self.top()?;
                self.stack.push(top);
            }
            b'N' => self.push(Node::None)?,
            0x88 => self.push(Node::Bool(true))?,
            0x89 => self.push(Node::Bool(false))?,
            b'I' | b'L' => self.decimal()?,
            b'K' => {
                let value = i64::from(self.byte()?);
                self.push(Node::Int(value))?;
            }
            b'M' => {
                let value = i64::from(u16::from_le_bytes(self.array()?));
                self.push(Node::Int(value))?;
            }
            b'J' => {
                let value = i64::from(i32::from_le_bytes(self.array()?));
                self.push(Node::Int(value))?;
            }
            0x8a => {
                let size = self.byte()? as usize;
                self.long(size)?;
            }
            0x8b => {
                let size = self.size()?;
                self.long(size)?;
            }
            b'F' => {
                let value = self.line()?.parse().map_err(|_| "expected a number".to_owned())?;
                self.push(Node::Float(value))?;
            }
            b'G' => {
                let value = f64::from_be_bytes(self.array()?);
                self.push(Node::Float(value))?;
            }
            b'S' => {
                let bytes = unquote(self.line()?)?;
                self.push(Node::Bytes(bytes))?;
            }
            b'T' | b'B' => {
                let size = self.size()?;
                let bytes = self.take(size)?.to_vec();
                self.push(Node::Bytes(bytes))?;
            }
            b'U' | b'C' => {
                let size = self.byte()? as usize;
                let bytes = self.take(size)?.to_vec();
                self.push(Node::Bytes(bytes))?;
            }
            b'V' => {
                let text = unescape_unicode(self.raw_line()?)?;
                self.push(Node::Text(text))?;
            }
            b'X' => {
                let size = self.size()?;
                let text = std::str::from_utf8(self.take(size)?).map_err(|_| "expected text in UTF-8".to_owned())?;
                let text = text.to_owned();
                self.push(Node::Text(text))?;
            }
            b')' => self.push(Node::Tuple(vec![]))?,
            b']' => self.push(Node::List(vec![]))?,
            b'}' => self.push(Node::Dict(vec![]))?,
            b't' => {
                let items = self.pop_mark()?;
                self.push(Node::Tuple(items))?;
            }
            b'l' => {
                let items = self.pop_mark()?;
                self.push(Node::List(items))?;
            }
            b'd' => {
                let entries = pairs(&self.pop_mark()?)?;
                self.push(Node::Dict(entries))?;
            }
            0x85..=0x87 => {
                let count = (instruction - 0x84) as usize;
                let mut items = (0..count).map(|_| self.pop()).collect::<Result<Vec<Id>, String>>()?;
                items.reverse();
                self.push(Node::Tuple(items))?;
            }
            b'a' => {
                let item = self.pop()?;
                self.append(&[item])?;
            }
            b'e' => {
                let items = self.pop_mark()?;
                self.append(&items)?;
            }
            b's' => {
                let value = self.pop()?;
                let key = self.pop()?;
                self.set(&[(key, value)])?;
            }
            b'u' => {
                let entries = pairs(&self.pop_mark()?)?;
                self.set(&entries)?;
            }
            b'p' => {
                let key = self.memo_line()?;
                self.remember(key)?;
            }
            b'q' => {
                let key = u64::from(self.byte()?);
                self.remember(key)?;
            }
            b'r' => {
                let key = u64::from(u32::from_le_bytes(self.array()?));
                self.remember(key)?;
            }
            b'g' => {
                let key = self.memo_line()?;
                self.recall(key)?;
            }
            b'h' => {
                let key = u64::from(self.byte()?);
                self.recall(key)?;
            }
            b'j' => {
                let key = u64::from(u32::from_le_bytes(self.array()?));
                self.recall(key)?;
            }
            b'c' => self.find_global()?,
            b'R' | 0x81 => {
                let args = self.pop()?;
                let global = self.pop()?;
                if !matches!(self.node(global), Node::Global(..)) || !matches!(self.node(args), Node::Tuple(_)) {
                    return Err("expected a global and a tuple of arguments".to_owned());
                }
                self.push(Node::Object(Box::new(Object { global, args, state: None, items: vec![] })))?;
            }
            b'b' => {
                let state = self.pop()?;
                let object = self.top()?;
                match &mut self.nodes[object as usize] {
                    Node::Object(object) => object.state = Some(state),
                    _ => return Err("expected an object that takes a state".to_owned()),
                }
            }
            other => return Err(format!("instruction {other:#04x} is not one that plain data needs")),
        }
        Ok(None)
    }

    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| format!("expected {count} bytes, found {}", self.bytes.len() - self.at))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("as many bytes were taken"))
    }

    fn size(&mut self) -> Result<usize, String> {
        let size = i32::from_le_bytes(self.array()?);
        usize::try_from(size).map_err(|_| format!("expected a size, found {size}"))
    }

    fn raw_line(&mut self) -> Result<&[u8], String> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&b| b == b'\n').ok_or_else(|| "expected a line that ends".to_owned())?;
        self.at += length + 1;
        Ok(&rest[..length])
    }

    fn line(&mut self) -> Result<&str, String> {
        let line = std::str::from_utf8(self.raw_line()?).map_err(|_| "expected a line of text".to_owned())?;
        Ok(line.strip_suffix('\r').unwrap_or(line))
    }

    fn memo_line(&mut self) -> Result<u64, String> {
        self.line()?.parse().map_err(|_| "expected a place in the memo".to_owned())
    }

    /// `I` writes booleans as `00` and `01`; `L` ends with the letter L.
    fn decimal(&mut self) -> Result<(), String> {
        let node = match self.line()? {
            "00" => Node::Bool(false),
            "01" => Node::Bool(true),
            line => {
                let value = line.strip_suffix('L').unwrap_or(line).parse();
                Node::Int(value.map_err(|_| "expected an integer of 64 bits".to_owned())?)
            }
        };
        self.push(node)
    }

    /// A little-endian two's complement integer of `size` bytes.
    fn long(&mut self, size: usize) -> Result<(), String> {
        let bytes = self.take(size)?;
        if size > 8 {
            return Err("expected an integer of 64 bits".to_owned());
        }
        let negative = bytes.last().is_some_and(|&byte| byte >= 0x80);
        let mut extended = [if negative { 0xff } else { 0 }; 8];
        extended[..size].copy_from_slice(bytes);
        self.push(Node::Int(i64::from_le_bytes(extended)))
    }

    fn find_global(&mut self) -> Result<(), String> {
        let module = self.line()?.to_owned();
        let name = self.line()?.to_owned();
        if !self.allowed.contains(&(module.as_str(), name.as_str())) {
            let (module, name) = (super::numbers::shorten(&module), super::numbers::shorten(&name));
            return Err(format!("'{module}.{name}' is not among the few names that may occur here"));
        }
        self.push(Node::Global(Box::new((module, name))))
    }

    fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    fn push(&mut self, node: Node) -> Result<(), String> {
        let id = Id::try_from(self.nodes.len()).map_err(|_| "too many values".to_owned())?;
        self.nodes.push(node);
        self.stack.push(id);
        Ok(())
    }

    /// Values below the last mark are out of reach until the mark is gone.
    fn floor(&self) -> usize {
        self.marks.last().copied().unwrap_or(0)
    }

    fn top(&self) -> Result<Id, String> {
        let top = self.stack.last().copied().filter(|_| self.stack.len() > self.floor());
        top.ok_or_else(|| "expected a value on the stack".to_owned())
    }

    fn pop(&mut self) -> Result<Id, String> {
        let top = self.top()?;
        self.stack.pop();
        Ok(top)
    }

    fn pop_mark(&mut self) -> Result<Vec<Id>, String> {
        let height = self.marks.pop().ok_or_else(|| "expected a mark on the stack".to_owned())?;
        Ok(self.stack.split_off(height))
    }

    fn remember(&mut self, key: u64) -> Result<(), String> {
        let top = self.top()?;
        self.memo.insert(key, top);
        Ok(())
    }

    fn recall(&mut self, key: u64) -> Result<(), String> {
        let id = *self.memo.get(&key).ok_or_else(|| format!("nothing is at {key} of the memo"))?;
        self.stack.push(id);
        Ok(())
    }

    fn append(&mut self, items: &[Id]) -> Result<(), String> {
        let list = self.top()?;
        match &mut self.nodes[list as usize] {
            Node::List(list) => list.extend_from_slice(items),
            _ => return Err("expected a list to append to".to_owned()),
        }
        Ok(())
    }

    fn set(&mut self, entries: &[(Id, Id)]) -> Result<(), String> {
        let dict = self.top()?;
        match &mut self.nodes[dict as usize] {
            Node::Dict(dict) => dict.extend_from_slice(entries),
            Node::Object(object) => object.items.extend_from_slice(entries),
            _ => return Err("expected a dictionary to set items of".to_owned()),
        }
        Ok(())
    }
}

fn pairs(items: &[Id]) -> Result<Vec<(Id, Id)>, String> {
    if items.len() % 2 == 1 {
        return Err("expected keys with values".to_owned());
    }
    Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// A Python 2 string literal in quotes.
fn unquote(literal: &str) -> Result<Vec<u8>, String> {
    let bytes = literal.as_bytes();
    let quote = bytes.first().copied().filter(|quote| b"'\"".contains(quote));
    if quote.is_none() || bytes.len() < 2 || bytes.last().copied() != quote {
        return Err("expected a string in quotes".to_owned());
    }
    let mut from = bytes[1..bytes.len() - 1].iter().copied();
    let mut text = Vec::with_capacity(bytes.len());
    let digit = |byte: Option<u8>| {
        byte.and_then(|b| (b as char).to_digit(16)).ok_or_else(|| "expected \\x and two digits".to_owned())
    };
    while let Some(byte) = from.next() {
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        text.push(match from.next() {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'x') => (digit(from.next())? * 16 + digit(from.next())?) as u8,
            Some(same @ (b'\\' | b'\'' | b'"')) => same,
            _ => return Err("found an escape that Python does not write".to_owned()),
        });
    }
    Ok(text)
}

/// Python's `raw-unicode-escape`: `\uXXXX`, `\UXXXXXXXX`, everything else a character a byte (Latin-1).
fn unescape_unicode(line: &[u8]) -> Result<String, String> {
    let line: String = line.strip_suffix(b"\r").unwrap_or(line).iter().copied().map(char::from).collect();
    let mut text = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(start) = rest.find("\\u").into_iter().chain(rest.find("\\U")).min() {
        let digits = if rest.as_bytes()[start + 1] == b'u' { 4 } else { 8 };
        let code = rest.get(start + 2..start + 2 + digits).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let character = code.and_then(char::from_u32).ok_or_else(|| "expected a character after \\u".to_owned())?;
        text.push_str(&rest[..start]);
        text.push(character);
        rest = &rest[start + 2 + digits..];
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn read(bytes: &[u8]) -> Result<Pickle, String> {
        Pickle::read(bytes, &[("collections", "defaultdict")])
    }

    #[test]
    fn the_three_protocols_write_the_same_value() {
        // pickle.dumps({'a': [1, 2.5, True, None], 'b': (-3,)}, protocol) under Python 2.7.
        let zero = b"(dp0\nS'a'\np1\n(lp2\nI1\naF2.5\naI01\naNasS'b'\np3\n(I-3\ntp4\ns.";
        let one =
            b"}q\x00(U\x01aq\x01]q\x02(K\x01G@\x04\x00\x00\x00\x00\x00\x00I01\nNeU\x01bq\x03(J\xfd\xff\xff\xfftq\x04u.";
        let two = b"\x80\x02}q\x00(U\x01aq\x01]q\x02(K\x01G@\x04\x00\x00\x00\x00\x00\x00\x88NeU\x01bq\x03\
                    J\xfd\xff\xff\xff\x85q\x04u.";
        for bytes in [&zero[..], &one[..], &two[..]] {
            let pickle = read(bytes).unwrap();
            let entries = pickle.entries(pickle.root()).unwrap();
            let keys: Vec<_> = entries.iter().map(|e| pickle.text(e.0).unwrap()).collect();
            assert_eq!(keys, ["a", "b"]);
            let list: Vec<_> = pickle.items(entries[0].1).unwrap().iter().map(|&id| pickle.node(id).clone()).collect();
            assert_eq!(list, [Node::Int(1), Node::Float(2.5), Node::Bool(true), Node::None]);
            assert_eq!(pickle.int(pickle.items(entries[1].1).unwrap()[0]), Some(-3));
        }
    }

    #[test]
    fn a_list_is_shared_by_all_that_refer_to_it() {
        // x = []; (x, x), and then x.append(7): the memo hands out the same list.
        let pickle = read(b"(]q\x00h\x00K\x07at.").unwrap();
        let [a, b] = pickle.items(pickle.root()).unwrap() else { panic!("expected a pair") };
        assert_eq!((a, pickle.items(*b).unwrap().len()), (b, 1));
    }

    #[test]
    fn a_global_that_is_not_allowed_is_refused_by_name() {
        let error = read(b"cos\nsystem\n(S'true'\ntR.").unwrap_err();
        assert!(error.contains("'os.system' is not among"), "{error}");
        for refused in [&b"(ios\nsystem\n."[..], b"\x80\x04.", b"P1\n.", b"\x82\x01.", b"(o."] {
            assert!(read(refused).is_err());
        }
    }

    #[test]
    fn strings_are_unescaped() {
        let pickle = read(b"(S'a\\n\\x00\\\\\\''\nV\\u00e9t\\U0001f600\\\nt.").unwrap();
        let items = pickle.items(pickle.root()).unwrap();
        assert_eq!(pickle.node(items[0]), &Node::Bytes(b"a\n\0\\'".to_vec()));
        assert_eq!(pickle.text(items[1]), Some("ét😀\\"));
        // pickle.dumps('é\xff\u20ac', 0) under Python 3: what Latin-1 has stands there as its byte.
        let pickle = read(b"V\xe9\xff\\u20ac\np0\n.").unwrap();
        assert_eq!(pickle.text(pickle.root()), Some("é\u{ff}€"));
    }

    #[test]
    fn long_integers_are_twos_complement() {
        let pickle = read(b"(\x8a\x00\x8a\x01\xff\x8a\x02\x00\x01L-12L\nt.").unwrap();
        let ints: Vec<_> = pickle.items(pickle.root()).unwrap().iter().map(|&id| pickle.int(id).unwrap()).collect();
        assert_eq!(ints, [0, -1, 256, -12]);
        assert!(read(b"\x8a\x09123456789.").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
        })]
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }

        #[test]
        fn no_instructions_panic(bytes in "[(.012NKMJ)\\]}tdlaesuqhgpcRbISVX\\n\\x00-\\x05]{0,200}") {
            let _ = read(bytes.as_bytes());
        }
    }
}
