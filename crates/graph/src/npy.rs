//! The header of NumPy's `.npy` format.
//!
//! Read by hand because the header of a hostile file must not be able to do anything: the crates at hand parse it as
//! nested Python literals by recursion and believe its length.

use std::io::{self, Read, Write};

/// What an array's items are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One byte, 0 or 1.
    Bool,
    /// Integers with a sign.
    Int,
    /// Integers without a sign.
    Uint,
    /// IEEE floating-point numbers.
    Float,
    /// bfloat16, the upper half of a `f32`: no file has it, but other programs do.
    Bfloat,
    /// Byte strings of fixed length.
    Bytes,
    /// Text of fixed length, four bytes a character.
    Unicode,
    /// Anything else; objects (pickles), dates, complex numbers.
    Other,
}

/// What the header of an array says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The kind of items.
    pub kind: Kind,
    /// The bytes of one item; 0 for [`Kind::Other`].
    pub item_bytes: usize,
    /// Whether items are big-endian.
    pub big_endian: bool,
    /// Whether the first dimension runs fastest.
    pub fortran: bool,
    /// The dimensions; none for a scalar.
    pub shape: Vec<u64>,
    /// The type as the file spells it.
    pub descr: String,
}

/// NumPy itself refuses to read longer headers.
const HEADER_BYTES_MAX: usize = 10_000;
/// NumPy's own limit.
const DIMENSIONS_MAX: usize = 64;

impl Header {
    /// Reads a header and leaves `from` at the first byte of the data. Errors say what was expected.
    ///
    /// # Errors
    ///
    /// If the header is not one, or the system refuses to read.
    pub fn read(from: &mut impl Read) -> io::Result<Header> {
        let mut start = [0u8; 8];
        from.read_exact(&mut start)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err(bad("expected a .npy array, which starts with \\x93NUMPY"));
        }
        let length = if start[6] == 1 {
            let mut length = [0u8; 2];
            from.read_exact(&mut length)?;
            u16::from_le_bytes(length) as usize
        } else {
            let mut length = [0u8; 4];
            from.read_exact(&mut length)?;
            u32::from_le_bytes(length) as usize
        };
        if length > HEADER_BYTES_MAX {
            return Err(bad(format!("expected a header of at most {HEADER_BYTES_MAX} bytes, found {length}")));
        }
        let mut text = vec![0u8; length];
        from.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(|_| bad("the header is not text"))?;
        Literal(&text).header()
    }

    /// The number of items; `None` if it does not fit 64 bits.
    pub fn values(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |product, &dimension| product.checked_mul(dimension))
    }
}

/// Writes the header of a C-ordered array of items `descr` (such as `<f4`), padded so that the data is aligned.
///
/// # Errors
///
/// If the system refuses to write.
pub fn write_header(into: &mut impl Write, descr: &str, shape: &[usize]) -> io::Result<()> {
    let dimensions: String = shape.iter().map(|d| format!("{d},")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({dimensions}), }}");
    // Magic, version and length take 10 bytes; the text ends with a line break on a multiple of 64.
    while (10 + text.len() + 1) % 64 != 0 {
        text.push(' ');
    }
    text.push('\n');
    into.write_all(b"\x93NUMPY\x01\x00")?;
    into.write_all(&(text.len() as u16).to_le_bytes())?;
    into.write_all(text.as_bytes())
}

fn bad(expected: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, expected.into())
}

/// What is left of a header's Python dictionary.
struct Literal<'a>(&'a str);

impl<'a> Literal<'a> {
    fn header(mut self) -> io::Result<Header> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" => descr = Some(self.string()?),
                "fortran_order" => fortran = Some(self.boolean()?),
                "shape" => shape = Some(self.tuple()?),
                _ => return Err(bad(format!("the header has the unknown key '{key}'"))),
            }
            self.take(',');
        }
        let missing = |key| bad(format!("the header has no '{key}'"));
        let descr = descr.ok_or_else(|| missing("descr"))?;
        let (kind, item_bytes, big_endian) = parse_descr(descr)?;
        Ok(Header {
            kind,
            item_bytes,
            big_endian,
            fortran: fortran.ok_or_else(|| missing("fortran_order"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            descr: descr.to_owned(),
        })
    }

    fn take(&mut self, token: char) -> bool {
        self.0 = self.0.trim_start();
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, token: char) -> io::Result<()> {
        if self.take(token) { Ok(()) } else { Err(bad(format!("the header lacks '{token}'"))) }
    }

    fn string(&mut self) -> io::Result<&'a str> {
        let quote = if self.take('"') { '"' } else { '\'' };
        if quote == '\'' && !self.take('\'') {
            return Err(bad("the header has something else where a plain string was expected"));
        }
        let (text, rest) = self.0.split_once(quote).ok_or_else(|| bad("a string in the header does not end"))?;
        self.0 = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> io::Result<bool> {
        self.0 = self.0.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.0.strip_prefix(word) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(bad("'fortran_order' is neither True nor False"))
    }

    fn tuple(&mut self) -> io::Result<Vec<u64>> {
        self.expect('(')?;
        let mut dimensions = Vec::new();
        while !self.take(')') {
            self.0 = self.0.trim_start();
            let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
            let value = self.0[..digits].parse().map_err(|_| bad("'shape' is not a tuple of sizes"))?;
            self.0 = &self.0[digits..];
            self.take('L'); // Python 2 wrote long integers so.
            self.take(',');
            if dimensions.len() == DIMENSIONS_MAX {
                return Err(bad(format!("expected at most {DIMENSIONS_MAX} dimensions")));
            }
            dimensions.push(value);
        }
        Ok(dimensions)
    }
}

/// Kind, bytes and endianness of a type such as `<f4`, `|b1` or `S3`.
///
/// # Errors
///
/// If NumPy has no such type, or none that is known here.
pub fn parse_descr(descr: &str) -> io::Result<(Kind, usize, bool)> {
    let unordered = descr.strip_prefix(['<', '>', '=', '|']).unwrap_or(descr);
    let mut characters = unordered.chars();
    let kind = match characters.next() {
        Some('b' | '?') => Kind::Bool,
        Some('i') => Kind::Int,
        Some('u') => Kind::Uint,
        Some('f') => Kind::Float,
        Some('S') => Kind::Bytes,
        Some('U') => Kind::Unicode,
        Some(_) => Kind::Other,
        None => return Err(bad("the type of the array is empty")),
    };
    let item_bytes = match (kind, characters.as_str()) {
        (Kind::Other, _) => 0,
        (Kind::Bool, "") => 1,
        (_, size) => size.parse::<u32>().map_err(|_| bad(format!("'{descr}' is not a type")))? as usize,
    };
    let item_bytes = if kind == Kind::Unicode { item_bytes.saturating_mul(4) } else { item_bytes };
    Ok((kind, item_bytes, descr.starts_with('>')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn written_headers_read_back() {
        for shape in [vec![], vec![0], vec![5], vec![3, 4], vec![2, 3, 4]] {
            let mut bytes = Vec::new();
            write_header(&mut bytes, "<f4", &shape).unwrap();
            assert_eq!(bytes.len() % 64, 0);
            let header = Header::read(&mut &bytes[..]).unwrap();
            let expected: Vec<u64> = shape.iter().map(|&d| d as u64).collect();
            assert_eq!((header.kind, header.item_bytes, header.shape), (Kind::Float, 4, expected));
        }
    }

    #[test]
    fn headers_of_python_2_and_fortran_arrays_read() {
        let mut bytes = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
        bytes.extend(b"{'descr': '>i8', 'fortran_order': True, 'shape': (3L, 4L), }          \n");
        bytes.truncate(10 + 0x46);
        let header = Header::read(&mut &bytes[..]).unwrap();
        assert_eq!((header.kind, header.big_endian, header.fortran), (Kind::Int, true, true));
        assert_eq!(header.shape, [3, 4]);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
        })]
        #[test]
        fn no_bytes_panic(text in "[{}()'\",:a-z0-9<>| ]{0,80}", length: u16, version in 0u8..4) {
            let mut bytes = b"\x93NUMPY".to_vec();
            bytes.extend([version, 0]);
            bytes.extend((if length % 2 == 0 { text.len() as u16 } else { length }).to_le_bytes());
            bytes.extend(text.as_bytes());
            let _ = Header::read(&mut &bytes[..]);
        }
    }
}
