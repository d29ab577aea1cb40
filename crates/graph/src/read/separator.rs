//! What stands between the fields of a table in text, and where its rows begin.

use super::text::Lines;
use crate::error::Result;
use crate::limits::Limits;
use std::io::{BufRead, Read, Result as IoResult};
use std::path::Path;

/// What stands between fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// One sign; several spaces are one.
    Sign(u8),
    /// Two colons, as MovieLens has them.
    Colons,
}

/// In this order they are looked for. A space may stand in any field, and two colons in an address.
const ALL: [Separator; 6] = [
    Separator::Sign(b'\t'),
    Separator::Sign(b','),
    Separator::Sign(b';'),
    Separator::Sign(b'|'),
    Separator::Sign(b' '),
    Separator::Colons,
];

/// What colons become for a reader that knows separators of one sign alone.
const UNIT: u8 = 0x1f;

/// So many lines have to have as many fields as the first.
const LINES: usize = 20;

impl Separator {
    /// The sign for a reader that knows separators of one sign alone, of what [`Separator::plain`] gives.
    pub fn sign(self) -> u8 {
        match self {
            Separator::Sign(sign) => sign,
            Separator::Colons => UNIT,
        }
    }

    /// As it is written.
    pub fn text(self) -> String {
        match self {
            Separator::Sign(sign) => char::from(sign).to_string(),
            Separator::Colons => "::".to_owned(),
        }
    }

    /// The text with one sign between fields.
    pub fn plain(self, from: Box<dyn BufRead>) -> Box<dyn Read> {
        match self {
            Separator::Sign(_) => Box::new(from),
            Separator::Colons => Box::new(Colons { from, is_half: false }),
        }
    }

    /// How many fields a line has; what stands in quotes is in one of them.
    fn fields(self, line: &str) -> usize {
        let separator = self.text();
        if self == Separator::Sign(b' ') {
            let quoted = |(number, piece)| if number % 2 == 0 { piece } else { "q" };
            let plain: String = line.split('"').enumerate().map(quoted).collect();
            return plain.split(' ').filter(|part| !part.is_empty()).count().max(1);
        }
        let mut count = 1;
        // Between every other pair of quotes fields end nowhere.
        for (_, piece) in line.split('"').enumerate().filter(|(number, _)| number % 2 == 0) {
            count += piece.matches(&separator).count();
        }
        count
    }

    /// Whether the first of these lines has a field less than all others, none of which end in nothing.
    fn is_short(self, lines: &[String]) -> bool {
        let Some((first, rest)) = lines.split_first().filter(|(_, rest)| !rest.is_empty()) else { return false };
        let fields = self.fields(first);
        let ends = rest.iter().any(|line| !line.trim_end_matches(' ').ends_with(&self.text()));
        let is_name = |name: &str| name.parse::<f64>().is_err();
        ends && rest.iter().all(|line| self.fields(line) == fields + 1)
            && first.split(&self.text()).map(|name| name.trim().trim_matches('"')).all(is_name)
    }

    /// That of these lines, of which the first says what may be it.
    fn of(lines: &[String]) -> Separator {
        let Some(first) = lines.first() else { return Separator::Sign(b',') };
        // One column may have no name in the first line, as R writes it.
        let there = |separator: &&Separator| lines[..lines.len().min(2)].iter().any(|l| separator.fields(l) > 1);
        let short = ALL.iter().find(|separator| separator.is_short(lines));
        let same = |separator: &&Separator| {
            let fields = separator.fields(first);
            lines.iter().all(|line| separator.fields(line) == fields)
        };
        let usual = ALL.iter().find(there);
        // Where the usual one divides lines unevenly, another that does not is right, but for a space.
        let even = ALL
            .iter()
            .filter(there)
            .filter(same)
            .find(|other| **other != Separator::Sign(b' ') || usual == Some(*other));
        *even.or(short).or(usual).unwrap_or(&Separator::Sign(b','))
    }
}

/// How the rows of a text are divided.
pub struct Found {
    /// What stands between fields.
    pub separator: Separator,
    /// How many lines of comments come first.
    pub comments: u64,
    /// Whether a dict stands at the end of each row, as far as the first ones tell.
    pub has_attributes: bool,
    /// Whether the header names all columns but the first, in which R writes the names of rows.
    pub is_short: bool,
}

/// Looks at the first rows of a text.
pub fn detect(path: &Path, limits: &Limits) -> Result<Found> {
    let mut lines = Lines::open(path, limits)?;
    // The first of the lines that begin with a sign and may yet be rows, with what all of them have.
    let mut rows: Option<(u64, Shape)> = None;
    let mut number = 0;
    while let Some(line) = lines.next_line()? {
        let here = number;
        number += 1;
        if line.is_empty() {
            continue;
        }
        if line.starts_with("%%MatrixMarket") {
            return Err(lines.error("a Matrix Market file is no table: it is read by the name it has there, as .mtx"));
        }
        let is_comment = line.starts_with(['#', '%']);
        let glued = line.starts_with('#') && line[1..].starts_with(|c: char| c != '#' && !c.is_whitespace());
        let line = line.to_owned();
        if !is_comment {
            let mut begins = vec![lines.starts_with_tab()];
            let mut all = vec![line];
            while let (true, Some(line)) = (all.len() < LINES, lines.next_line()?) {
                if !line.is_empty() {
                    all.push(line.to_owned());
                    begins.push(lines.starts_with_tab());
                }
            }
            // Before names that tabs divide, a tab stands for the name of the column of rows' names.
            if let ([true, false, ..], true) = (&begins[..], all[0].contains('\t')) {
                all[0].insert(0, '\t');
            }
            let has_attributes = all.iter().all(|line| line.contains('{') && line.ends_with('}'));
            let before = |line: &String| line.split('{').next().unwrap_or_default().to_owned();
            let heads: Vec<String> = all.iter().map(before).collect();
            let separator = Separator::of(if has_attributes { &heads } else { &all });
            let shape = Shape { separator, fields: separator.fields(&all[0]) };
            let comments = rows.filter(|(_, earlier)| *earlier == shape).map_or(here, |(start, _)| start);
            let is_short = !has_attributes && comments == here && separator.is_short(&all);
            return Ok(Found { separator, comments, has_attributes, is_short });
        }
        let separator = Separator::of(std::slice::from_ref(&line));
        let shape = Shape { separator, fields: separator.fields(&line) };
        if glued && rows.is_none_or(|(_, earlier)| earlier != shape) {
            rows = Some((here, shape));
        }
    }
    let (separator, comments) = rows.map_or((Separator::Sign(b','), number), |(start, shape)| (shape.separator, start));
    Ok(Found { separator, comments, has_attributes: false, is_short: false })
}

/// How a line is divided.
#[derive(Clone, Copy, PartialEq)]
struct Shape {
    separator: Separator,
    fields: usize,
}

/// Text in which one sign stands for each two colons.
struct Colons {
    from: Box<dyn BufRead>,
    /// Whether one of two colons has been read.
    is_half: bool,
}

impl Read for Colons {
    fn read(&mut self, into: &mut [u8]) -> IoResult<usize> {
        let mut end = 0;
        while end < into.len() {
            let Some(&byte) = self.from.fill_buf()?.first() else {
                if std::mem::take(&mut self.is_half) {
                    into[end] = b':';
                    end += 1;
                }
                break;
            };
            match (self.is_half, byte) {
                (true, b':') => {
                    into[end] = UNIT;
                    end += 1;
                    self.is_half = false;
                    self.from.consume(1);
                }
                (true, _) => {
                    into[end] = b':';
                    end += 1;
                    self.is_half = false;
                }
                (false, b':') => {
                    self.is_half = true;
                    self.from.consume(1);
                }
                (false, byte) => {
                    into[end] = byte;
                    end += 1;
                    self.from.consume(1);
                }
            }
        }
        Ok(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        Separator::of(&text.lines().map(str::to_owned).collect::<Vec<_>>()).text()
    }

    #[test]
    fn a_separator_divides_all_lines_alike() {
        for (text, expected) in [
            ("a,b\nc,d", ","),
            ("Person1Id|Person2Id|creationDate\n1|2|2010", "|"),
            ("1::1193::5\n1::661::3", "::"),
            ("1::Toy Story (1995)::Animation|Comedy\n2::Jumanji (1995)::Adventure", "::"),
            ("id|title, year|kind\n1|Toy Story|a", "|"),
            ("fe80::1 fe80::2\nfe80::1 fe80::3", " "),
            ("a,\"x, y\",z\nb,w,v", ","),
            ("1 2 3\n1  3 4", " "),
            ("a b, c\nd, e", ","),
            ("only", ","),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn two_colons_become_one_sign_and_one_stays() {
        let text = "1::Mission: Impossible::5\n2:::x:";
        for size in [1, 2, 64] {
            let mut plain = Separator::Colons.plain(Box::new(std::io::BufReader::with_capacity(size, text.as_bytes())));
            let mut read = String::new();
            plain.read_to_string(&mut read).unwrap();
            assert_eq!(read, "1\u{1f}Mission: Impossible\u{1f}5\n2\u{1f}:x:");
        }
    }
}
