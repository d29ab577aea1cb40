//! The files that one table is in, and how their names are read.

use std::cmp::Ordering;
use std::path::PathBuf;

/// A file of a table, and the values that stand for a column in all of its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PartFile {
    /// Where it is.
    pub path: PathBuf,
    /// Columns that are not in the file; no value where there is none.
    pub given: Vec<(String, Option<String>)>,
}

/// All files of a table.
#[derive(Debug, Default)]
pub struct Parts {
    /// In the order of the numbers in their names.
    pub files: Vec<PartFile>,
    /// Whether they are Parquet; otherwise they are text.
    pub parquet: bool,
    /// The columns, where a log says which there are: a file without one has no values in it.
    pub columns: Option<Vec<String>>,
}

/// A text whose special characters are written as `%20`.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &after[2..]).0,
            None => (bytes.push(first), rest = after).0,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The order of names by the numbers in them: `part-2` before `part-10`.
pub fn natural(one: &str, other: &str) -> Ordering {
    let (mut a, mut b) = (one.as_bytes(), other.as_bytes());
    let digits = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    while let ([first, ..], [second, ..]) = (a, b) {
        let order = if first.is_ascii_digit() && second.is_ascii_digit() {
            let (number, after) = a.split_at(digits(a));
            let (other, behind) = b.split_at(digits(b));
            (a, b) = (after, behind);
            let plain = |number: &[u8]| number.iter().skip_while(|&&byte| byte == b'0').copied().collect::<Vec<u8>>();
            let (number, other) = (plain(number), plain(other));
            number.len().cmp(&other.len()).then_with(|| number.cmp(&other))
        } else {
            (a, b) = (&a[1..], &b[1..]);
            first.cmp(second)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    a.len().cmp(&b.len()).then_with(|| one.cmp(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_numbers() {
        let mut names = ["part-10.parquet", "part-2.parquet", "part-0.parquet", "day=2/a", "day=10/a", "part-02-b"];
        names.sort_by(|one, other| natural(one, other));
        let expected = ["day=2/a", "day=10/a", "part-0.parquet", "part-02-b", "part-2.parquet", "part-10.parquet"];
        assert_eq!(names, expected);
    }
}
