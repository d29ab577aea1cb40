//! Lines of a text file, taken apart in blocks on all threads of the pool.

use super::text::{open_text, other_encoding};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use rayon::prelude::*;
use std::io::{BufRead, Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes that are read while those before them are taken apart.
const BLOCK: usize = 8 << 20;

/// Pieces of a block for each thread: some take longer than others.
const PIECES: usize = 4;

/// A text file that is read in blocks of whole lines.
pub struct Blocks {
    path: PathBuf,
    from: Box<dyn BufRead + Send>,
    /// Lines before the next one.
    lines: u64,
    line_max: u64,
}

/// What a piece became, its lines, and what was wrong with the last of them.
struct Piece<T> {
    made: T,
    lines: u64,
    wrong: Option<String>,
}

impl Blocks {
    /// Opens the file, packed or not.
    pub fn open(path: &Path, limits: &Limits) -> Result<Blocks> {
        let from = open_text(path, limits)?;
        let bytes = std::fs::metadata(path).map_err(|e| GraphError::io(path, e))?.len();
        Ok(Blocks { path: path.to_owned(), from, lines: 0, line_max: limits.line_max(bytes) })
    }

    /// The next line without white space around it; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        let mut bounded = self.from.by_ref().take(self.line_max.saturating_add(1));
        let count = bounded.read_until(b'\n', &mut line).map_err(|e| GraphError::io(&self.path, e))?;
        self.lines += 1;
        if count as u64 > self.line_max {
            return Err(self.too_long());
        }
        let text = String::from_utf8(line).map_err(|error| self.error(other_encoding(error.as_bytes())))?;
        Ok((count > 0).then(|| text.trim_start_matches('\u{feff}').trim().to_owned()))
    }

    /// The line that comes next, which stays.
    pub fn peek(&mut self) -> Result<Option<String>> {
        let Some(line) = self.next_line()? else { return Ok(None) };
        self.lines -= 1;
        let from = std::mem::replace(&mut self.from, Box::new(std::io::empty()));
        self.from = Box::new(Cursor::new(format!("{line}\n").into_bytes()).chain(from));
        Ok(Some(line))
    }

    /// An error about the line that was read last.
    pub fn error(&self, what: impl Into<String>) -> GraphError {
        GraphError::format(&self.path, format!("line {}", self.lines), what)
    }

    fn too_long(&self) -> GraphError {
        GraphError::too_large(&self.path, format!("line {}", self.lines + 1), self.line_max)
    }

    /// Takes all further lines apart with `parse`, which adds one to what a piece becomes, and hands the pieces over in
    /// the order of the file, while those behind them are taken apart.
    pub fn each<T: Default + Send>(
        mut self,
        parse: impl Fn(&[u8], &mut T) -> std::result::Result<(), String> + Sync,
        mut take: impl FnMut(T) -> std::result::Result<(), String> + Send,
    ) -> Result<()> {
        let (mut block, mut before) = (Vec::new(), Vec::new());
        let mut is_last = self.fill(&mut block)?;
        loop {
            let whole = match block.iter().rposition(|&byte| byte == b'\n') {
                _ if is_last => block.len(),
                Some(end) => end + 1,
                None if block.len() as u64 > self.line_max => return Err(self.too_long()),
                None => 0,
            };
            let mut next = block[whole..].to_vec();
            block.truncate(whole);
            let (filled, pieces) = rayon::join(
                || {
                    self.hand_over(before, &mut take)?;
                    if is_last { Ok(true) } else { self.fill(&mut next) }
                },
                || pieces(&block).into_par_iter().map(|piece| taken_apart(piece, &parse)).collect::<Vec<_>>(),
            );
            let filled = filled?;
            if is_last {
                return self.hand_over(pieces, &mut take);
            }
            (is_last, block, before) = (filled, next, pieces);
        }
    }

    fn hand_over<T>(
        &mut self,
        pieces: Vec<Piece<T>>,
        take: &mut impl FnMut(T) -> std::result::Result<(), String>,
    ) -> Result<()> {
        for piece in pieces {
            self.lines += piece.lines;
            if let Some(what) = piece.wrong {
                return Err(self.error(what));
            }
            take(piece.made).map_err(|what| self.error(what))?;
        }
        Ok(())
    }

    /// Adds a block to what is there; whether it is the last.
    fn fill(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        let wanted = BLOCK as u64;
        let count = self.from.by_ref().take(wanted).read_to_end(into).map_err(|e| GraphError::io(&self.path, e))?;
        Ok((count as u64) < wanted)
    }
}

/// Some pieces of whole lines for each thread.
fn pieces(block: &[u8]) -> Vec<&[u8]> {
    let size = block.len() / (rayon::current_num_threads() * PIECES) + 1;
    let (mut pieces, mut rest) = (Vec::new(), block);
    while !rest.is_empty() {
        let end = rest.iter().skip(size - 1).position(|&byte| byte == b'\n').map_or(rest.len(), |at| size + at);
        let (piece, after) = rest.split_at(end.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn taken_apart<T: Default>(
    bytes: &[u8],
    parse: &(impl Fn(&[u8], &mut T) -> std::result::Result<(), String> + Sync),
) -> Piece<T> {
    let mut piece = Piece { made: T::default(), lines: 0, wrong: None };
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes).chain([bytes.len()]) {
        piece.lines += 1;
        if let Err(what) = parse(&bytes[start..end], &mut piece.made) {
            piece.wrong = Some(what);
            break;
        }
        start = end + 1;
    }
    piece
}

/// What is left of a line: numbers with blanks or commas between them.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next field; `None` at the end of the line.
    pub fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.0.iter().position(|&byte| !is_between(byte))?;
        let rest = &self.0[start..];
        let end = rest.iter().position(|&byte| is_between(byte)).unwrap_or(rest.len());
        self.0 = &rest[end..];
        Some(&rest[..end])
    }

    /// The next field as an integer that is not negative; `None` where it is something else, or there is none.
    pub fn count(&mut self) -> Option<u64> {
        let start = self.0.iter().position(|&byte| !is_between(byte))?;
        let rest = &self.0[start..];
        let (mut value, mut digits) = (0u64, 0);
        while let Some(digit) = rest.get(digits).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        self.0 = &rest[digits..];
        // No count of 18 digits overflows.
        let is_whole = (1..=18).contains(&digits) && self.0.first().is_none_or(|&byte| is_between(byte));
        is_whole.then_some(value)
    }

    /// The next field as a number that is there and not NaN.
    pub fn number(&mut self) -> Option<f64> {
        if let Some((number, rest)) = short_decimal(self.0) {
            self.0 = rest;
            return Some(number);
        }
        let number: f64 = std::str::from_utf8(self.next()?).ok()?.parse().ok()?;
        (!number.is_nan()).then_some(number)
    }
}

/// The field that comes next, where it is digits with or without a point among them and no more than `f64` holds as a
/// whole number, and what comes after it. Such a number divided by a power of ten that is exact, too, is rounded once:
/// it is the nearest `f64`, as that of the standard library is (Clinger 1990, "How to read floating point numbers
/// accurately").
fn short_decimal(bytes: &[u8]) -> Option<(f64, &[u8])> {
    const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let start = bytes.iter().position(|&byte| !is_between(byte))?;
    let (is_negative, mut rest) = match &bytes[start..] {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (mut digits, mut value, mut point) = (0, 0u64, None);
    while let [byte, after @ ..] = rest {
        match byte {
            b'0'..=b'9' => (digits, value) = (digits + 1, value.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'))),
            b'.' if point.is_none() => point = Some(digits),
            _ if is_between(*byte) => break,
            _ => return None,
        }
        rest = after;
    }
    // 15 digits are below 2^53.
    let decimals = digits - point.unwrap_or(digits);
    let magnitude = (1..=15).contains(&digits).then(|| value as f64 / TENS[decimals])?;
    Some((if is_negative { -magnitude } else { magnitude }, rest))
}

fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_several_blocks_come_in_order_and_errors_have_their_number() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let count = BLOCK as u64 / 5;
        let text: String = (0..count).map(|number| format!("{number}\n")).collect();
        assert!(text.len() > BLOCK, "more than a block");
        std::fs::write(file.path(), text.trim_end()).unwrap();
        let read = |wrong: u64| {
            let mut all = Vec::new();
            let mut blocks = Blocks::open(file.path(), &Limits::default()).unwrap();
            assert_eq!(blocks.next_line().unwrap().as_deref(), Some("0"));
            let parse = |line: &[u8], into: &mut Vec<u64>| {
                let number = Fields(line).count().filter(|&number| number != wrong).ok_or("wrong")?;
                into.push(number);
                Ok(())
            };
            let done = blocks.each(parse, |piece: Vec<u64>| {
                all.extend(piece);
                Ok(())
            });
            done.map(|()| all)
        };
        assert!(read(count).unwrap().into_iter().eq(1..count));
        let error = read(count - 1).unwrap_err().to_string();
        assert!(error.ends_with(&format!("line {count}: wrong")), "{error}");
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        let mut state = 3u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut written = ["0", "-0", "-0.0", ".5", "5.", ".", "-", "+1", "1e3", "1.2.3", "1_0", "inf", "--1", "0x1"]
            .map(str::to_owned)
            .to_vec();
        written.extend((1..40).map(|digits| "9".repeat(digits)));
        for _ in 0..100_000 {
            let (before, after) = (draw(18), draw(18));
            let digits = |count: u64, draw: &mut dyn FnMut(u64) -> u64| -> String {
                (0..count).map(|_| char::from(b'0' + draw(10) as u8)).collect()
            };
            let sign = ["", "-", "+"][draw(3) as usize];
            written.push(format!("{sign}{}.{}", digits(before, &mut draw), digits(after, &mut draw)));
        }
        for text in written {
            let expected = text.parse::<f64>().ok().map(f64::to_bits);
            let line = format!(" {text}\t7");
            let mut fields = Fields(line.as_bytes());
            assert_eq!(fields.number().map(f64::to_bits), expected, "{text}");
            if expected.is_some() {
                assert_eq!(fields.number(), Some(7.0), "after {text}");
            }
        }
    }

    #[test]
    fn fields_are_between_blanks_and_commas() {
        let mut fields = Fields(b" 12\t0.5, 7\r");
        assert_eq!((fields.count(), fields.number(), fields.count()), (Some(12), Some(0.5), Some(7)));
        assert!(fields.next().is_none());
        assert_eq!(Fields(b"-1").count(), None);
        assert_eq!(Fields(b"1234567890123456789").count(), None);
        assert_eq!((Fields(b"1.5").count(), Fields(b"12a").count(), Fields(b" ").count()), (None, None, None));
        assert_eq!(Fields(b"nan").number(), None);
    }
}
