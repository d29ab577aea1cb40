//! The rows of an edge table: what they say, and what becomes of those that name nodes that there are not.

use super::distinct_ids::distinct_of;
use super::ends::EdgeColumns;
use super::id_index::{IdIndex, NOWHERE};
use super::near_ids;
use super::numbers::shorten;
use super::table::{Cell, IdColumn, Kind, Table, called, load_ids};
use super::text_table::is_number;
use super::{ReadOptions, Unknown};
use crate::edges::{EdgeData, Relations};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The ids at both ends of all rows.
///
/// # Errors
///
/// If there is none in some row; the message says in how many.
pub fn ends_of(table: &dyn Table, ends: &[usize], as_text: bool, limits: &Limits) -> Result<Vec<IdColumn>> {
    load_ids(table, ends, as_text, limits).map_err(|first| {
        let kind = if as_text { Kind::Text } else { Kind::Integer };
        let missing = missing(table, &ends.iter().map(|&end| (end, kind)).collect::<Vec<_>>());
        counted(first, table, missing, "--unknown drop (data.unknown) leaves them out where there is a node table")
    })
}

/// How many of these cells hold nothing.
pub(super) fn missing(table: &dyn Table, columns: &[(usize, Kind)]) -> usize {
    let mut count = 0;
    // Who calls has an error already.
    let _ = table.scan(columns, &mut |_, _, cell| {
        count += usize::from(match cell {
            Cell::Missing => true,
            Cell::Float(value) => value.is_nan(),
            _ => false,
        });
        Ok(())
    });
    count
}

/// How many cells of a column hold no number.
fn without_number(table: &dyn Table, column: usize) -> usize {
    if table.columns()[column].kind != Kind::Text {
        return missing(table, &[(column, Kind::Float)]);
    }
    let mut count = 0;
    // Who calls has an error already.
    let _ = table.scan(&[(column, Kind::Text)], &mut |_, _, cell| {
        count += usize::from(!matches!(cell, Cell::Text(text) if is_number(text)));
        Ok(())
    });
    count
}

/// The error of the first such cell with how many there are.
pub(super) fn counted(first: GraphError, table: &dyn Table, missing: usize, remedy: &str) -> GraphError {
    match first {
        GraphError::Format { path, place, expected } if missing > 0 => {
            let rows = table.rows();
            GraphError::format(&path, place, format!("{expected}; {missing} cells of {rows} rows hold none: {remedy}"))
        }
        other => other,
    }
}

/// What rows say of edges besides their ends, and the names of relations.
pub fn data_of(table: &dyn Table, columns: &EdgeColumns, options: &ReadOptions) -> Result<(EdgeData, Vec<String>)> {
    let weights = match columns.weight {
        Some(column) => weights(table, column).map(Some),
        None => Ok(columns.is_counted.then(|| vec![1.0; table.rows()])),
    };
    let relations = columns.relation.map(|column| relations(table, column, options)).transpose();
    let (weights, relations) = GraphError::both(weights, relations)?;
    let (relations, names) = relations.unzip();
    Ok((EdgeData { weights, relations, held: None }, names.unwrap_or_default()))
}

/// The relation of each row, and what relations are called.
fn relations(table: &dyn Table, column: usize, options: &ReadOptions) -> Result<(Relations, Vec<String>)> {
    let most = if options.symmetrise { Relations::MOST / 2 } else { Relations::MOST };
    let mut numbers: BTreeMap<String, u16> = BTreeMap::new();
    let mut of = Vec::with_capacity(table.rows());
    let read = table.scan(&[(column, Kind::Text)], &mut |_, _, cell| {
        let Cell::Text(name) = cell else { return Err("expected the name of a relation, found none".to_owned()) };
        let count = numbers.len();
        if count >= most && !numbers.contains_key(name) {
            return Err(format!("expected at most {most} relations; --source, --target and --relation name columns"));
        }
        if !numbers.contains_key(name) {
            numbers.insert(name.to_owned(), count as u16);
        }
        of.push(numbers[name]);
        Ok(())
    });
    read.map_err(|first| {
        let remedy = format!("without --relation {} (data.relation) edges are of one kind", called(table, column));
        counted(first, table, missing(table, &[(column, Kind::Text)]), &remedy)
    })?;
    // Numbered as they came, they are put in the order of their names.
    let mut places = vec![0; numbers.len()];
    numbers.values().zip(0..).for_each(|(&number, place)| places[usize::from(number)] = place);
    of.iter_mut().for_each(|relation| *relation = places[usize::from(*relation)]);
    Ok((Relations { count: numbers.len(), of }, numbers.into_keys().collect()))
}

/// The weights in a column.
///
/// # Errors
///
/// If there is none in some row; the message says in how many.
pub fn weights(table: &dyn Table, column: usize) -> Result<Vec<f32>> {
    let mut weights = Vec::new();
    let read = table.scan(&[(column, Kind::Float)], &mut |_, _, cell| match cell {
        Cell::Float(weight) if !weight.is_nan() => {
            weights.push(weight as f32);
            Ok(())
        }
        _ => Err("expected a weight, found none".to_owned()),
    });
    let name = called(table, column);
    read.map_err(|first| {
        let remedy = format!("--ignore {name} (data.ignore) reads the edges without weights");
        counted(first, table, without_number(table, column), &remedy)
    })?;
    Ok(weights)
}

/// The nodes at both ends of the rows that are left.
pub struct Numbered {
    /// Where edges start, and where they end.
    pub ends: [Vec<u32>; 2],
    /// Of each row whether it went, since it names a node that there is not; nothing where none did.
    pub lost: Vec<bool>,
    /// How many nodes came that no table has.
    pub added: usize,
}

/// Finds the nodes that rows name; `None` for `ids` where the rows of a table of so many nodes are. What is known of
/// rows that go goes, too, and what is added to the nodes is added to the ids. `place` says which row of the file each
/// is.
///
/// # Errors
///
/// If two nodes have one id, which is said first, or a row names a node that there is not and `rule` leaves it so.
pub fn number(
    ends: &[IdColumn],
    (ids, rows): (&mut Option<IdColumn>, usize),
    data: &mut EdgeData,
    (rule, place): (Unknown, &dyn Fn(usize) -> usize),
) -> std::result::Result<Numbered, Refused> {
    let mut twice = None;
    let found = match &*ids {
        None => find_all(ends, &IdIndex::Row(rows)),
        Some(ids) => match IdIndex::new(ids) {
            Ok(index) => find_all(ends, &index),
            Err(what) => {
                // Unknown nodes are looked for all the same, so that all is said at once.
                twice = Some(what);
                find_all(
                    ends,
                    &IdIndex::new(&distinct_of(ids)).map_err(|what| Refused { ids: Some(what), rows: None })?,
                )
            }
        },
    };
    let is_known = |row: usize| found.iter().all(|nodes| nodes[row] != NOWHERE);
    let lost: Vec<bool> = (0..found[0].len()).map(|row| !is_known(row)).collect();
    let count = lost.iter().filter(|&&lost| lost).count();
    if twice.is_some() {
        let rows = count > 0 && rule == Unknown::Error;
        let rows = rows.then(|| said(ends, &found, (count, place), ids.as_ref()));
        return Err(Refused { ids: twice, rows });
    }
    if count == 0 {
        return Ok(Numbered { ends: found, lost: Vec::new(), added: 0 });
    }
    match (rule, ids) {
        (Unknown::Drop, _) => {
            let mut found = found;
            found.iter_mut().for_each(|nodes| retain(nodes, &lost));
            data.weights.iter_mut().for_each(|weights| retain(weights, &lost));
            data.relations.iter_mut().for_each(|relations| retain(&mut relations.of, &lost));
            Ok(Numbered { ends: found, lost, added: 0 })
        }
        (Unknown::Add, Some(ids)) => {
            let added = add(ids, ends, &found);
            let index = IdIndex::new(ids).map_err(|what| Refused { ids: Some(what), rows: None })?;
            let ends = find_all(ends, &index);
            Ok(Numbered { ends, lost: Vec::new(), added })
        }
        (_, ids) => {
            let rows = said(ends, &found, (count, place), ids.as_ref());
            Err(Refused { ids: None, rows: Some(rows) })
        }
    }
}

/// Why no numbers were found.
pub struct Refused {
    /// What is wrong with the ids of nodes.
    pub ids: Option<String>,
    /// What is wrong with rows of edges.
    pub rows: Option<String>,
}

fn find_all(ends: &[IdColumn], index: &IdIndex) -> [Vec<u32>; 2] {
    [index.numbers(&ends[0]), index.numbers(&ends[ends.len() - 1])]
}

/// Keeps what is not lost.
fn retain<T>(values: &mut Vec<T>, lost: &[bool]) {
    let mut lost = lost.iter();
    values.retain(|_| lost.next() == Some(&false));
}

/// Adds the ids of rows that are none of a node's, in the order of their first appearance.
fn add(ids: &mut IdColumn, ends: &[IdColumn], found: &[Vec<u32>; 2]) -> usize {
    let before = ids.len();
    let rows = 0..found[0].len();
    match (ids, ends) {
        (IdColumn::Integers(ids), [IdColumn::Integers(a), IdColumn::Integers(b)]) => {
            let mut seen = HashSet::new();
            for row in rows {
                for (nodes, id) in [(&found[0], a[row]), (&found[1], b[row])] {
                    if nodes[row] == NOWHERE && seen.insert(id) {
                        ids.push(id);
                    }
                }
            }
            ids.len() - before
        }
        (IdColumn::Texts(ids), [IdColumn::Texts(a), IdColumn::Texts(b)]) => {
            let mut seen = HashSet::new();
            for (row, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                for (nodes, id) in [(&found[0], a), (&found[1], b)] {
                    if nodes[row] == NOWHERE && seen.insert(id) {
                        ids.push(id);
                    }
                }
            }
            ids.len() - before
        }
        _ => 0,
    }
}

/// What is said of rows that name nodes that there are not.
fn said(
    ends: &[IdColumn],
    found: &[Vec<u32>; 2],
    (rows, place): (usize, &dyn Fn(usize) -> usize),
    ids: Option<&IdColumn>,
) -> String {
    let mut unknown: HashSet<String> = HashSet::new();
    let mut first: Option<(usize, String)> = None;
    for (column, nodes) in ends.iter().zip(found) {
        let mut note = |row: usize, id: String| {
            if nodes[row] == NOWHERE {
                if first.as_ref().is_none_or(|(earlier, _)| row < *earlier) {
                    first = Some((row, id.clone()));
                }
                unknown.insert(id);
            }
        };
        match column {
            IdColumn::Integers(ids) => ids.iter().enumerate().for_each(|(row, id)| note(row, id.to_string())),
            IdColumn::Texts(ids) => ids.iter().enumerate().for_each(|(row, id)| note(row, id.to_owned())),
        }
    }
    let (row, id) = first.unwrap_or_default();
    let (row, all) = (place(row), found[0].len());
    let spelt = ids.map(|ids| near_ids::hint(&unknown, ids)).unwrap_or_default();
    let adds = if ids.is_some() { "; --unknown add makes nodes of them" } else { "" };
    format!(
        "edge {row} names '{}', which is not among the nodes: so do {rows} of {all} rows with {} such ids{spelt}; \
         --unknown drop (data.unknown) leaves these rows out{adds}",
        shorten(&id),
        unknown.len()
    )
}

/// The first two rows of one edge, and how many rows repeat one; where both directions are made, in either.
pub fn repeated(ends: &[Vec<u32>; 2], data: &EdgeData, both: bool) -> Option<(usize, usize, usize)> {
    let mut seen: HashMap<(u32, u32, u16), usize> = HashMap::with_capacity(ends[0].len());
    let (mut first, mut count) = (None, 0);
    for (row, (&source, &target)) in ends[0].iter().zip(&ends[1]).enumerate() {
        let turns = both && data.relations.is_none() && source > target;
        let (source, target) = if turns { (target, source) } else { (source, target) };
        match seen.entry((source, target, data.relation(row))) {
            std::collections::hash_map::Entry::Occupied(earlier) => {
                first = first.or(Some((*earlier.get(), row)));
                count += 1;
            }
            std::collections::hash_map::Entry::Vacant(place) => drop(place.insert(row)),
        }
    }
    first.map(|(one, other)| (one, other, count))
}

/// A table that is another's, or one's own.
pub enum Lent<'a> {
    /// Another's.
    Others(&'a dyn Table),
    /// One's own.
    Own(Box<dyn Table>),
}

impl Lent<'_> {
    fn get(&self) -> &dyn Table {
        match self {
            Lent::Others(table) => *table,
            Lent::Own(table) => &**table,
        }
    }
}

impl<'a> From<&'a dyn Table> for Lent<'a> {
    fn from(table: &'a dyn Table) -> Self {
        Lent::Others(table)
    }
}

impl From<Box<dyn Table>> for Lent<'_> {
    fn from(table: Box<dyn Table>) -> Self {
        Lent::Own(table)
    }
}

/// A table without some of its rows.
pub struct Kept<'a> {
    table: Lent<'a>,
    lost: HashSet<usize>,
}

impl<'a> Kept<'a> {
    /// Without these rows.
    pub fn without(table: impl Into<Lent<'a>>, lost: HashSet<usize>) -> Kept<'a> {
        Kept { table: table.into(), lost }
    }

    /// Without those rows in which one of these columns holds nothing.
    ///
    /// # Errors
    ///
    /// If the table cannot be read.
    pub fn with(table: impl Into<Lent<'a>>, columns: &[(usize, Kind)]) -> Result<Kept<'a>> {
        let table = table.into();
        let mut lost = HashSet::new();
        table.get().scan(columns, &mut |row, _, cell| {
            if cell == Cell::Missing {
                lost.insert(row);
            }
            Ok(())
        })?;
        Ok(Kept { table, lost })
    }

    /// Which row of the whole table this one is.
    pub fn place(&self, row: usize) -> usize {
        (0..self.table.get().rows()).filter(|row| !self.lost.contains(row)).nth(row).unwrap_or(row)
    }
}

impl Table for Kept<'_> {
    fn path(&self) -> &std::path::Path {
        self.table.get().path()
    }

    fn columns(&self) -> &[super::table::ColumnInfo] {
        self.table.get().columns()
    }

    fn has_header(&self) -> bool {
        self.table.get().has_header()
    }

    fn rows(&self) -> usize {
        self.table.get().rows() - self.lost.len()
    }

    fn exact_below(&self, column: usize) -> Option<f64> {
        self.table.get().exact_below(column)
    }

    fn are_digits(&self, column: usize) -> bool {
        self.table.get().are_digits(column)
    }

    fn rows_at_once(&self) -> usize {
        self.table.get().rows_at_once()
    }

    fn scan(&self, wanted: &[(usize, Kind)], sink: super::column::Sink) -> Result<()> {
        let mut rows = vec![0; wanted.len()];
        self.table.get().scan(wanted, &mut |row, slot, cell| {
            if self.lost.contains(&row) {
                return Ok(());
            }
            rows[slot] += 1;
            sink(rows[slot] - 1, slot, cell)
        })
    }
}
