//! What NetworkX writes of an edge behind its ends: `{'weight': 4, 'kind': 'call'}`.

use super::text::Lines;
use crate::error::Result;
use crate::limits::Limits;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Edges with more are no edges.
const NAMES_MAX: usize = 64;

/// The names in the dicts of all lines but so many first ones.
pub fn attribute_names(path: &Path, limits: &Limits, comments: u64) -> Result<Vec<String>> {
    let mut lines = Lines::open(path, limits)?;
    let mut names = BTreeSet::new();
    for _ in 0..comments {
        lines.next_line()?;
    }
    while let Some(line) = lines.next_line()? {
        let Some((_, dict)) = line.split_once('{') else { continue };
        names.extend(parse(&format!("{{{dict}")).unwrap_or_default().into_keys());
        if names.len() > NAMES_MAX {
            return Err(lines.error(format!("expected at most {NAMES_MAX} names of what edges have")));
        }
    }
    Ok(names.into_iter().collect())
}

/// The names and values of a Python dict of plain values, values as text; `None` if it is none.
pub fn parse(text: &str) -> Option<BTreeMap<String, String>> {
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    let mut found = BTreeMap::new();
    while !rest.is_empty() {
        let (name, after) = quoted(rest)?;
        let after = after.trim_start().strip_prefix(':')?.trim_start();
        let (value, after) = quoted(after).unwrap_or_else(|| bare(after));
        found.insert(name, value);
        rest = match after.trim_start() {
            "" => "",
            more => more.strip_prefix(',')?.trim_start(),
        };
    }
    Some(found)
}

/// A text in quotes of either kind, and what follows.
fn quoted(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|quote| ['\'', '"'].contains(quote))?;
    let mut inside = String::new();
    let mut signs = text.char_indices().skip(1);
    while let Some((place, sign)) = signs.next() {
        match sign {
            '\\' => inside.push(signs.next()?.1),
            _ if sign == quote => return Some((inside, &text[place + 1..])),
            _ => inside.push(sign),
        }
    }
    None
}

/// What stands before the next comma outside of brackets, and what follows.
fn bare(text: &str) -> (String, &str) {
    let mut depth = 0usize;
    let end = text.char_indices().find(|(_, sign)| {
        match sign {
            '[' | '(' | '{' => depth += 1,
            ']' | ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        *sign == ',' && depth == 0
    });
    let end = end.map_or(text.len(), |(place, _)| place);
    let value = text[..end].trim();
    (if value == "None" { String::new() } else { value.to_owned() }, &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dict_is_read_as_python_writes_it() {
        let read = |text: &str| {
            parse(text)
                .map(|found| found.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>())
        };
        let some = |all: &[&str]| Some(all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(read("{}"), some(&[]));
        assert_eq!(read("{'weight': 4}"), some(&["weight=4"]));
        assert_eq!(
            read("{'weight': 2.5e-3, \"kind\": 'a, b', 'x': None}"),
            some(&["kind=a, b", "weight=2.5e-3", "x="])
        );
        assert_eq!(read("{'at': [1, 2], 'it\\'s': True}"), some(&["at=[1, 2]", "it's=True"]));
        for broken in ["{", "{'a'}", "{'a': 1 'b': 2", "{a: 1}", "'a': 1", "{'a': 1} x"] {
            assert_eq!(read(broken), None, "{broken}");
        }
    }
}
