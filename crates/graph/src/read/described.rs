//! Nodes and edges with attributes, as files of graph tools describe them, made into tables.

use super::edge_tables::Tables;
use super::made_table::{Cells, MadeTable};
use super::{ReadOptions, numbers::shorten};
use crate::dataset::Dataset;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::roles::Roles;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A graph as a file describes it.
#[derive(Default)]
pub struct Described {
    /// Each node's name and attributes.
    pub nodes: Rows,
    /// Each edge's ends and attributes.
    pub edges: Rows,
    /// Whether edges lead one way, for each kind that came: one way, both ways.
    pub kinds: [bool; 2],
}

/// The column of nodes' names.
pub const ID: &str = "id";
/// The columns of edges' ends.
pub const ENDS: [&str; 2] = ["source", "target"];

/// So many cells without a value need no value to vouch for them.
const FREE: usize = 1 << 20;
/// So many more for each value.
const EMPTY_MAX: usize = 64;

/// A table that grows row by row, and column by column as attributes come.
#[derive(Default)]
pub struct Rows {
    names: Vec<String>,
    places: HashMap<String, usize>,
    columns: Vec<Vec<Option<String>>>,
    rows: usize,
    values: usize,
}

impl Rows {
    /// Begins a row.
    pub fn begin(&mut self) {
        self.rows += 1;
    }

    /// Gives the row that was begun last a value.
    ///
    /// # Errors
    ///
    /// If there would be too many cells for the values that there are.
    pub fn set(&mut self, name: &str, value: &str) -> std::result::Result<(), String> {
        let place = match self.places.get(name) {
            Some(&place) => place,
            None => {
                self.names.push(name.to_owned());
                self.columns.push(Vec::new());
                self.places.insert(name.to_owned(), self.names.len() - 1);
                self.names.len() - 1
            }
        };
        self.values += 1;
        if self.rows.saturating_mul(self.names.len()) > FREE + self.values.saturating_mul(EMPTY_MAX) {
            return Err(format!(
                "{} rows with {} attributes, most of them without a value",
                self.rows,
                self.names.len()
            ));
        }
        let column = &mut self.columns[place];
        column.resize(self.rows.saturating_sub(1).max(column.len()), None);
        match column.len() < self.rows {
            true => column.push(Some(value.to_owned())),
            false => column[self.rows - 1] = Some(value.to_owned()),
        }
        Ok(())
    }

    /// What stands in a column where there is no value.
    pub fn default(&mut self, name: &str, value: &str) {
        if let Some(&place) = self.places.get(name) {
            self.columns[place].resize(self.rows, None);
            self.columns[place]
                .iter_mut()
                .filter(|cell| cell.is_none())
                .for_each(|cell| *cell = Some(value.to_owned()));
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// The values of a column, if every row has one.
    pub fn whole(&self, name: &str) -> Option<Vec<&str>> {
        let column = &self.columns[*self.places.get(name)?];
        if column.len() == self.rows { column.iter().map(Option::as_deref).collect() } else { None }
    }

    /// Gives values of a column other names, where they have some.
    pub fn rename(&mut self, name: &str, named: &HashMap<String, String>) {
        let Some(&place) = self.places.get(name) else { return };
        for value in self.columns[place].iter_mut().flatten() {
            if let Some(other) = named.get(value) {
                value.clone_from(other);
            }
        }
    }

    /// Leaves a column out.
    pub fn remove(&mut self, name: &str) {
        let Some(place) = self.places.remove(name) else { return };
        self.names.remove(place);
        self.columns.remove(place);
        self.places.values_mut().filter(|other| **other > place).for_each(|other| *other -= 1);
    }

    /// The columns, those of `first` in front.
    fn into_columns(mut self, first: &[&str]) -> Vec<(String, Cells)> {
        let rows = self.rows;
        let order = |name: &String| first.iter().position(|one| one == name).unwrap_or(first.len());
        let mut columns: Vec<(String, Vec<Option<String>>)> = self.names.drain(..).zip(self.columns).collect();
        columns.sort_by_key(|(name, _)| order(name));
        let cells = |(name, mut column): (String, Vec<Option<String>>)| {
            column.resize(rows, None);
            (name, typed(column))
        };
        columns.into_iter().map(cells).collect()
    }
}

/// The narrowest kind that holds all values: whole numbers in their plain spelling, numbers, truth as 1 and 0, texts.
fn typed(column: Vec<Option<String>>) -> Cells {
    let there = || column.iter().flatten();
    let integer = |value: &String| value.parse::<i64>().ok().filter(|number| number.to_string() == *value);
    let truth = |value: &String| match value.as_str() {
        "true" | "True" => Some(1.0),
        "false" | "False" => Some(0.0),
        _ => None,
    };
    let number = |value: &String| value.trim().parse::<f64>().ok();
    let floats = |read: &dyn Fn(&String) -> Option<f64>| {
        Cells::Floats(column.iter().map(|value| value.as_ref().and_then(read).unwrap_or(f64::NAN)).collect())
    };
    if there().next().is_none() {
        return Cells::Texts(column);
    }
    if column.iter().all(|value| value.as_ref().is_some_and(|value| integer(value).is_some())) {
        return Cells::Integers(there().filter_map(integer).collect());
    }
    // Ids such as 007 are no numbers.
    let is_plain =
        |value: &String| number(value).is_some() && (integer(value).is_some() || value.parse::<i64>().is_err());
    if there().all(is_plain) {
        return floats(&number);
    }
    if there().all(|value| truth(value).is_some()) { floats(&truth) } else { Cells::Texts(column) }
}

impl Described {
    /// An edge of either kind, whose attributes come after it.
    ///
    /// # Errors
    ///
    /// As [`Rows::set`].
    pub fn edge(&mut self, ends: [&str; 2], is_directed: bool) -> std::result::Result<(), String> {
        self.kinds[usize::from(!is_directed)] = true;
        self.edges.begin();
        ENDS.iter().zip(ends).try_for_each(|(name, end)| self.edges.set(name, end))
    }

    /// Calls nodes by another column than [`ID`], where that tells all of them apart.
    pub fn call_by(&mut self, column: &str) {
        let (Some(ids), Some(names)) = (self.nodes.whole(ID), self.nodes.whole(column)) else { return };
        if names.iter().collect::<HashSet<_>>().len() < names.len() {
            return;
        }
        let named = ids.iter().zip(&names).map(|(id, name)| ((*id).to_owned(), (*name).to_owned())).collect();
        self.nodes.rename(ID, &named);
        self.nodes.remove(column);
        ENDS.iter().for_each(|end| self.edges.rename(end, &named));
    }

    /// Refuses more than the limits allow.
    ///
    /// # Errors
    ///
    /// If there are more nodes or edges.
    pub fn within(&self, limits: &Limits) -> std::result::Result<(), String> {
        match (self.nodes.len() as u64, self.edges.len() as u64) {
            (nodes, edges) if nodes > limits.nodes_max || edges > limits.edges_max => {
                Err(format!("{nodes} nodes and {edges} edges, more than the limits allow"))
            }
            _ => Ok(()),
        }
    }

    /// The dataset of what the file describes.
    ///
    /// # Errors
    ///
    /// As of an edge list with its node table; or if edges of both kinds are there.
    pub fn read(self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let Described { nodes, edges, kinds: [one_way, both_ways] } = self;
        if one_way && both_ways {
            let what = "edges that lead one way and edges that lead both: write the latter twice, once each way";
            return Err(GraphError::format(path, "edges", what));
        }
        if edges.len() == 0 {
            return Err(GraphError::format(path, "edges", "expected edges, found none"));
        }
        let table = |rows: Rows, first: &[&str]| -> Box<dyn super::column::Table> {
            Box::new(MadeTable::new(path, rows.into_columns(first)))
        };
        let nodes = match &options.nodes {
            Some(given) => Some((super::node_table::open_nodes(given, options)?, given.clone())),
            None if nodes.len() == 0 => None,
            None => Some((table(nodes, &[ID]), path.to_owned())),
        };
        let edges = (table(edges, &ENDS), path.to_owned());
        let options = ReadOptions { symmetrise: options.symmetrise || both_ways, ..options.clone() };
        Tables { edges, nodes }.read(path, &options)
    }
}

/// A name for an attribute that is called as a column of ids or ends is.
pub fn free_name(name: &str, taken: &[&str]) -> String {
    if taken.contains(&name.to_lowercase().as_str()) {
        format!("{} (attribute)", shorten(name))
    } else {
        name.to_owned()
    }
}
