//! Whether the first line of a text table names its columns.

use super::column::Kind;
use super::names::name_ends;
use super::words::is_missing;
use serde::{Deserialize, Serialize};

/// What the user says about the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// Nothing: what stands below decides.
    #[default]
    Auto,
    /// It names the columns.
    Yes,
    /// It is a row.
    No,
}

/// By what the first line of a table is known to be names.
#[derive(Debug, Clone, Copy)]
pub struct Heading<'a> {
    /// What the user says.
    pub given: Header,
    /// Names that the user gives; one of them in the line is enough.
    pub chosen: &'a [&'a str],
    /// Usual names: one of each group has to be in the line. A single one beside numbers may be somebody's label.
    pub usual: &'a [&'a [&'a str]],
    /// Whether names of the two ends of edges are enough, too.
    pub ends: bool,
}

impl Heading<'_> {
    /// Whether `first` are names, above rows of these kinds; `recurs` where a text of it stands in these again.
    ///
    /// # Errors
    ///
    /// If it could be either: a row that is taken for names is lost, and names that are taken for a row become a node.
    pub fn decide(&self, first: &[String], below: &[Kind], recurs: bool) -> Result<bool, String> {
        match self.given {
            Header::Yes => return Ok(true),
            Header::No => return Ok(false),
            Header::Auto => {}
        }
        let has = |name: &&str| first.iter().any(|field| field.to_lowercase() == *name);
        let what = "are these the names of the columns, or is it a row?";
        let doubt = || format!("{what} data.header = \"yes\" or \"no\" (--header) says which");
        let has_numbers = first.iter().any(|field| is_number(field));
        if self.chosen.iter().any(|name| first.iter().any(|field| field == name)) {
            return Ok(true);
        }
        if self.usual.iter().all(|group| group.iter().any(has)) {
            return if has_numbers && self.usual.len() == 1 { Err(doubt()) } else { Ok(true) };
        }
        if self.ends && name_ends(first) || !self.ends && first.iter().any(|name| is_neo4j_id(name)) {
            return Ok(true);
        }
        let words = |field: &String| is_word(field);
        if first.iter().zip(below).any(|(field, kind)| words(field) && *kind != Kind::Text) {
            return Ok(true);
        }
        if has_numbers || recurs || !first.iter().any(words) { Ok(false) } else { Err(doubt()) }
    }
}

/// Whether a name is that of a column which Neo4j imports as ids: `:ID`, `personId:ID(Person)`.
pub fn is_neo4j_id(name: &str) -> bool {
    let plain = name.split_once('(').filter(|(_, space)| space.ends_with(')')).map_or(name, |(plain, _)| plain);
    plain.ends_with(":ID")
}

/// Whether a field may be a name.
pub fn is_word(field: &str) -> bool {
    !field.is_empty() && !is_missing(field) && !is_number(field)
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok() || ["true", "false"].contains(&field.to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_is_names_by_its_words_or_by_the_numbers_below() {
        let decide = |given, first: &str, below: &[Kind]| {
            let heading = Heading { given, chosen: &["payer"], usual: &[&["src", "from"], &["dst", "to"]], ends: true };
            heading.decide(&first.split(',').map(str::to_owned).collect::<Vec<_>>(), below, false)
        };
        let (text, number) = (Kind::Text, Kind::Integer);
        for (first, below, expected) in [
            ("src,dst", [text, text], true),
            ("From,TO", [text, text], true),
            ("payer,whom", [text, text], true),
            ("caller,callee", [text, text], true),
            ("a,b", [number, number], true),
            ("name,7", [number, number], true),
            ("1,2", [number, number], false),
            ("ann,2.5", [text, number], false),
            ("NA,1", [number, number], false),
            ("true,1", [number, number], false),
        ] {
            assert_eq!(decide(Header::Auto, first, &below), Ok(expected), "{first}");
        }
        // Beside numbers one usual name may be a label, and in a header numbers may be names.
        let one = Heading { given: Header::Auto, chosen: &["id"], usual: &[&["y", "class"]], ends: false };
        let of_nodes =
            |first: &str| one.decide(&first.split(',').map(str::to_owned).collect::<Vec<_>>(), &[number, text], false);
        assert!(of_nodes("1.5,y").unwrap_err().contains("data.header"));
        assert_eq!((of_nodes("id,0,1,class"), of_nodes("x,class")), (Ok(true), Ok(true)));
        // What stands below again is somebody, and no name of a column.
        let again = Heading { given: Header::Auto, chosen: &[], usual: &[&["src"], &["dst"]], ends: true };
        assert_eq!(again.decide(&["ann".to_owned(), "bob".to_owned()], &[text, text], true), Ok(false));
        // One usual name alone may be somebody's.
        for first in ["ann,bob", "src,bob"] {
            assert!(decide(Header::Auto, first, &[text, text]).unwrap_err().contains("data.header"));
            assert_eq!(decide(Header::Yes, first, &[text, text]), Ok(true));
            assert_eq!(decide(Header::No, first, &[text, text]), Ok(false));
        }
    }
}
