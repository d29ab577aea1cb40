//! Who owns which node, in a table that names nodes by their ids: a table of its own, or a column of the node table.

use super::heading::{Header, Heading};
use super::id_index::IdIndex;
use super::node_table::{ID_NAMES, ROW};
use super::numbers::shorten;
use super::table::{Cell, IdColumn, Kind, Table, Texts, find_column, load_ids, open_table, usual_column};
use super::words::is_missing;
use crate::dataset::Ids;
use crate::error::{GraphError, Result};
use crate::limits::{Limits, PARTS_MAX, not_opened, open_file};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

/// What a column of parts is usually called.
const PART_NAMES: [&str; 6] = ["part", "part_id", "partition", "site", "owner", "region"];
/// More than the first line of any list of numbers.
const FIRST_LINE: u64 = 256;
/// What a part is called has no more bytes.
const NAME_MAX: usize = 200;

/// A table of ids and parts, and how it is read.
#[derive(Debug, Clone, Copy)]
pub struct PartTable<'a> {
    /// Where the table is.
    pub path: &'a Path,
    /// The column of ids; one of the usual names where it is not given, or the first of two. [`ROW`] where the number
    /// of the row is the id.
    pub id: Option<&'a str>,
    /// The column of parts; one of the usual names where it is not given, or the second of two.
    pub column: Option<&'a str>,
    /// Whether a text has a line of names.
    pub header: Header,
}

/// The part of each node, and what parts are called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// The part of each node.
    pub of: Vec<u32>,
    /// The name of each part; what numbers name in turn, from 0 on, is called by its number.
    pub names: Vec<String>,
    /// Ids of the table that are no nodes.
    pub unknown: usize,
}

/// Whether an assignment is a table, and not a list with a number a line, or an array.
///
/// # Errors
///
/// If it cannot be read.
pub fn is_table(path: &Path) -> Result<bool> {
    match super::extension(path).as_str() {
        "npy" => return Ok(false),
        "parquet" => return Ok(true),
        _ if path.is_dir() => return Ok(true),
        _ => {}
    }
    let mut start = Vec::new();
    let file = open_file(path).map_err(|source| not_opened(path, source))?;
    file.take(FIRST_LINE).read_to_end(&mut start).map_err(|source| GraphError::io(path, source))?;
    let line = start.split(|&byte| byte == b'\n').next().unwrap_or_default().trim_ascii();
    Ok(line.iter().any(|byte| b",;\t| ".contains(byte)))
}

impl PartTable<'_> {
    /// The part of each of these nodes.
    ///
    /// # Errors
    ///
    /// If the table cannot be read, has no such columns, names a node twice or a node not at all, or has more parts
    /// than there can be.
    pub fn read(&self, ids: &Ids, nodes: usize, limits: &Limits) -> Result<Assignment> {
        let (table, id, column) = self.open(limits)?;
        let (values, names) = self.values(&*table, column)?;
        let Some(id) = id else {
            if values.len() != nodes {
                let what = format!("expected {nodes}, one a node, found {}", values.len());
                return Err(GraphError::format(self.path, "rows", what));
            }
            return Ok(Assignment { of: values, names, unknown: 0 });
        };
        let as_text = matches!(ids, Ids::Strings(_));
        if !as_text && table.columns()[id].kind != Kind::Integer {
            let what = format!("expected whole numbers in column '{}', as nodes have them", table.columns()[id].name);
            return Err(GraphError::format(self.path, "ids", what));
        }
        let rows = load_ids(&*table, &[id], as_text, limits)?.pop().unwrap_or(IdColumn::Texts(Texts::default()));
        let index = IdIndex::new(&rows).map_err(|what| GraphError::format(self.path, "ids", what))?;
        let row = |node: usize| match ids {
            Ids::Row => index.integer(node as i64),
            Ids::Integers(ids) => index.integer(ids[node]),
            Ids::Strings(ids) => index.text(&ids[node]),
        };
        let found: Vec<Option<u32>> = (0..nodes).map(row).collect();
        let missing = found.iter().filter(|row| row.is_none()).count();
        if let Some(first) = found.iter().position(Option::is_none) {
            let what = format!("{missing} of {nodes} nodes have no row, the first is {}", ids.name(first));
            return Err(GraphError::format(self.path, "ids", what));
        }
        let of = found.into_iter().flatten().map(|row| values[row as usize]).collect();
        Ok(Assignment { of, names, unknown: rows.len() - nodes })
    }

    /// What its parts are called, without a look at ids.
    ///
    /// # Errors
    ///
    /// As [`PartTable::read`].
    pub fn names(&self, limits: &Limits) -> Result<Vec<String>> {
        let (table, _, column) = self.open(limits)?;
        Ok(self.values(&*table, column)?.1)
    }

    /// The table, with the places of ids and of parts.
    fn open(&self, limits: &Limits) -> Result<(Box<dyn Table>, Option<usize>, usize)> {
        let chosen: Vec<&str> = self.id.into_iter().chain(self.column).collect();
        let usual = [&ID_NAMES[..], &PART_NAMES[..]].concat();
        let heading = Heading { given: self.header, chosen: &chosen, usual: &[&usual], ends: false };
        let table = open_table(self.path, limits, &heading)?;
        let of_two = |place| (table.columns().len() == 2).then_some(place);
        let is_by_row = self.id == Some(ROW) && !table.columns().iter().any(|column| column.name == ROW);
        let column = match find_column(&*table, self.path, self.column, &PART_NAMES)?.or(of_two(1)) {
            Some(column) => column,
            None => return Err(self.ask(&*table, "parts", "partition.column (--part-column)")),
        };
        let id = match self.id.filter(|_| !is_by_row) {
            _ if is_by_row => None,
            Some(id) => find_column(&*table, self.path, Some(id), &[])?,
            None => match usual_column(&*table, &ID_NAMES, &|_| true).or(of_two(1 - column.min(1))) {
                Some(id) => Some(id),
                None => return Err(self.ask(&*table, "ids", "data.id (--id)")),
            },
        };
        Ok((table, id, column))
    }

    fn ask(&self, table: &dyn Table, what: &str, key: &str) -> GraphError {
        let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
        let what = format!("which column has the {what}? {key} names it; there are: {}", names.join(", "));
        GraphError::format(self.path, "header", what)
    }

    /// The part of each row, and the parts' names: numbers in their order, texts in that of the alphabet.
    fn values(&self, table: &dyn Table, column: usize) -> Result<(Vec<u32>, Vec<String>)> {
        let named = &table.columns()[column];
        let kind = if named.kind == Kind::Integer { Kind::Integer } else { Kind::Text };
        let mut places: BTreeMap<(i64, String), u32> = BTreeMap::new();
        let mut rows = vec![0u32; table.rows()];
        table.scan(&[(column, kind)], &mut |row, _, cell| {
            let key = match cell {
                Cell::Integer(number) => (number, String::new()),
                Cell::Text(text) if text.len() > NAME_MAX || text.chars().any(char::is_control) => {
                    return Err(format!("expected the name of a part, found {}", shorten(text)));
                }
                Cell::Text(text) if !is_missing(text) => (0, text.trim().to_owned()),
                _ => return Err("expected a part; each node belongs to one".to_owned()),
            };
            let next = places.len() as u32;
            rows[row] = *places.entry(key).or_insert(next);
            match places.len() as u32 > PARTS_MAX {
                true => Err(format!("expected at most {PARTS_MAX} different parts in column '{}'", named.name)),
                false => Ok(()),
            }
        })?;
        let mut order = vec![0u32; places.len()];
        places.values().enumerate().for_each(|(part, &place)| order[place as usize] = part as u32);
        // Numbers from 0 on are themselves, also where one of them has no node.
        let numbers: Vec<i64> = places.keys().map(|(number, _)| *number).collect();
        let most = numbers.last().copied().unwrap_or(0);
        if kind == Kind::Integer && (0..i64::from(PARTS_MAX)).contains(&most) && numbers.first() == Some(&0) {
            let of_place: BTreeMap<u32, u32> = places.iter().map(|((number, _), &at)| (at, *number as u32)).collect();
            rows.iter_mut().for_each(|place| *place = of_place[place]);
            return Ok((rows, (0..=most).map(|number| number.to_string()).collect()));
        }
        rows.iter_mut().for_each(|place| *place = order[*place as usize]);
        let name = |(number, text): &(i64, String)| if text.is_empty() { number.to_string() } else { text.clone() };
        Ok((rows, places.keys().map(name).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, column: Option<&str>, ids: &Ids, nodes: usize) -> Result<Assignment> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sites.csv");
        std::fs::write(&path, text).unwrap();
        let table = PartTable { path: &path, id: None, column, header: Header::Auto };
        assert!(is_table(&path).unwrap());
        let read = table.read(ids, nodes, &Limits::default())?;
        assert_eq!(table.names(&Limits::default()).unwrap(), read.names);
        Ok(read)
    }

    fn texts(ids: &[&str]) -> Ids {
        Ids::Strings(ids.iter().map(|&id| id.to_owned()).collect())
    }

    /// Whatever order the table has, each node goes where its own row says.
    #[test]
    fn nodes_find_their_parts_by_id_in_any_order_of_rows() {
        let ids = texts(&["a", "b", "c", "d"]);
        let north = |text: &str| read(text, None, &ids, 4).unwrap();
        let found = north("id,part\nd,West\nb,Nord\na,West\nc,Süd\nx,Nord\n");
        assert_eq!((&found.of[..], found.unknown), (&[2, 0, 1, 2][..], 1));
        assert_eq!(found.names, ["Nord", "Süd", "West"]);
        assert_eq!(north("id;site\nc;Süd\na;West\nb;Nord\nd;West\n").of, found.of);
        let numbers = read("12,1\n10,0\n11,3\n", None, &Ids::Integers(vec![10, 11, 12]), 3).unwrap();
        assert_eq!(
            (&numbers.of[..], &numbers.names[..]),
            (&[0, 3, 1][..], &["0", "1", "2", "3"].map(String::from)[..])
        );
        let far = read("id,part\n0,20\n1,7\n", None, &Ids::Row, 2).unwrap();
        assert_eq!((&far.of[..], &far.names[..]), (&[1, 0][..], &["7", "20"].map(String::from)[..]));
        let wide = read("id,age,country\na,3,x\nb,4,y\n", Some("country"), &texts(&["b", "a"]), 2).unwrap();
        assert_eq!((wide.of, wide.names), (vec![1, 0], vec!["x".to_owned(), "y".to_owned()]));
    }

    #[test]
    fn a_table_that_leaves_a_node_without_a_part_is_refused_by_name() {
        let ids = texts(&["a", "b", "c"]);
        for (text, said) in [
            ("id,part\na,x\nc,y\n", "1 of 3 nodes have no row, the first is \"b\""),
            ("id,part\na,x\nb,\nc,y\n", "expected a part"),
            ("id,part\na,x\nb,y\nb,x\nc,y\n", "the same id 'b'"),
            ("id,age,land\na,1,x\nb,2,y\nc,3,x\n", "which column has the parts? partition.column (--part-column)"),
        ] {
            let message = read(text, None, &ids, 3).unwrap_err().to_string();
            assert!(message.contains("sites.csv") && message.contains(said), "{message}");
        }
    }
}
