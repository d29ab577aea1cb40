//! Node tables: one row a node, with an id, features, a label and a part in a split.

use super::table::{Cell, IdColumn, Kind, Table, find_column, load_ids, load_matrix, open_table};
use super::{Columns, labels};
use crate::dataset::{Features, Labels, Split};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use std::collections::BTreeMap;
use std::path::Path;

const ID_NAMES: [&str; 3] = ["id", "node_id", "node"];
const LABEL_NAMES: [&str; 3] = ["label", "y", "class"];
const SPLIT_NAMES: [&str; 2] = ["split", "set"];
const MASK_NAMES: [(&[&str], u8); 3] = [
    (&["train_mask", "train"], Split::TRAIN),
    (&["val_mask", "valid_mask", "val", "valid"], Split::VAL),
    (&["test_mask", "test"], Split::TEST),
];

/// A node table, its ids still on disk.
pub struct NodeTable {
    table: Box<dyn Table>,
    id: Option<usize>,
    /// How many nodes there are.
    pub nodes: usize,
    /// All columns that are numbers and nothing else.
    pub features: Features,
    /// The column of labels; texts are numbered in their alphabetic order.
    pub labels: Labels,
    /// The split, if there is one.
    pub splits: Vec<Split>,
}

impl NodeTable {
    /// Reads all of the table except the ids.
    pub fn read(path: &Path, columns: &Columns, limits: &Limits) -> Result<NodeTable> {
        let table = open_table(path, limits)?;
        let nodes = table.rows();
        if nodes as u64 > limits.nodes_max {
            return Err(GraphError::too_large(path, "rows", limits.nodes_max));
        }
        let find = |given: &Option<String>, usual: &[&str]| find_column(&*table, path, given.as_deref(), usual);
        let id = find(&columns.id, &ID_NAMES)?;
        let label = find(&columns.label, &LABEL_NAMES)?;
        let split = find(&columns.split, &SPLIT_NAMES)?;
        let mut masks = Vec::new();
        if split.is_none() {
            for (names, role) in MASK_NAMES {
                masks.extend(find(&None, names)?.map(|column| (column, role)));
            }
        }
        let taken: Vec<usize> = [id, label, split].into_iter().flatten().chain(masks.iter().map(|m| m.0)).collect();
        let numeric = |&column: &usize| table.columns()[column].kind != Kind::Text && !taken.contains(&column);
        let used: Vec<usize> = (0..table.columns().len()).filter(numeric).collect();
        if (nodes as u64).saturating_mul(used.len() as u64) > limits.features_values_max {
            return Err(GraphError::too_large(path, "values", limits.features_values_max));
        }
        let features = match used.len() {
            0 => Features::None,
            columns => Features::Dense { columns, values: load_matrix(&*table, &used)? },
        };
        let labels = match label {
            Some(column) => read_labels(&*table, path, column, limits)?,
            None => Labels::None,
        };
        let splits = match (split, masks.is_empty()) {
            (Some(column), _) => vec![read_split(&*table, column)?],
            (None, false) => vec![read_masks(&*table, &masks)?],
            (None, true) => Vec::new(),
        };
        Ok(NodeTable { table, id, nodes, features, labels, splits })
    }

    /// Whether ids are there and are not all integers.
    pub fn has_text_ids(&self) -> bool {
        self.id.is_some_and(|column| self.table.columns()[column].kind != Kind::Integer)
    }

    /// The ids in the order of the rows; `None` where the row is the id.
    pub fn ids(&self, as_text: bool, limits: &Limits) -> Result<Option<IdColumn>> {
        let Some(column) = self.id else { return Ok(None) };
        Ok(load_ids(&*self.table, &[column], as_text, limits)?.pop())
    }
}

fn read_labels(table: &dyn Table, path: &Path, column: usize, limits: &Limits) -> Result<Labels> {
    let info = &table.columns()[column];
    let error = |what: String| GraphError::format(path, format!("column '{}'", info.name), what);
    if info.kind != Kind::Text {
        let mut values = vec![f64::NAN; table.rows()];
        table.scan(&[(column, Kind::Float)], &mut |row, _, cell| {
            if let Cell::Float(value) = cell {
                values[row] = value;
            }
            Ok(())
        })?;
        return labels::single(&values, 0, limits).map_err(error);
    }
    // First numbered as they come, then renumbered in alphabetic order.
    let mut names: BTreeMap<String, u32> = BTreeMap::new();
    let mut values: Vec<Option<u32>> = vec![None; table.rows()];
    table.scan(&[(column, Kind::Text)], &mut |row, _, cell| {
        if let Cell::Text(name) = cell {
            let count = names.len() as u32;
            if u64::from(count) >= limits.classes_max {
                return Err(format!("expected at most {} classes", limits.classes_max));
            }
            values[row] = Some(match names.get(name) {
                Some(&number) => number,
                None => *names.entry(name.to_owned()).or_insert(count),
            });
        }
        Ok(())
    })?;
    let mut order = vec![0i32; names.len()];
    names.values().enumerate().for_each(|(place, &number)| order[number as usize] = place as i32);
    let values = values.into_iter().map(|number| number.map_or(-1, |number| order[number as usize])).collect();
    Ok(Labels::Single { classes: names.len(), values })
}

fn read_split(table: &dyn Table, column: usize) -> Result<Split> {
    let mut split = Split { roles: vec![0; table.rows()] };
    table.scan(&[(column, Kind::Text)], &mut |row, _, cell| {
        let Cell::Text(name) = cell else { return Ok(()) };
        split.roles[row] = match name.to_lowercase().as_str() {
            "train" | "training" | "tr" => Split::TRAIN,
            "val" | "valid" | "validation" | "va" => Split::VAL,
            "test" | "te" => Split::TEST,
            "none" | "-" | "unlabelled" | "unlabeled" => 0,
            _ => {
                return Err(format!(
                    "expected train, val, test, none or nothing, found '{}'",
                    super::numbers::shorten(name)
                ));
            }
        };
        Ok(())
    })?;
    Ok(split)
}

fn read_masks(table: &dyn Table, masks: &[(usize, u8)]) -> Result<Split> {
    let mut split = Split { roles: vec![0; table.rows()] };
    let wanted: Vec<_> = masks.iter().map(|&(column, _)| (column, Kind::Integer)).collect();
    table.scan(&wanted, &mut |row, slot, cell| {
        match cell {
            Cell::Integer(1) => split.roles[row] |= masks[slot].1,
            Cell::Integer(0) | Cell::Missing => {}
            _ => return Err("expected 0 or 1".to_owned()),
        }
        Ok(())
    })?;
    Ok(split)
}
