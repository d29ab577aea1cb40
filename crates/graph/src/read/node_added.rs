//! Nodes that edges name and no table has.

use super::node_table::NodeTable;
use crate::dataset::{Features, Labels};
use crate::exact::Wide;

impl NodeTable {
    /// Adds so many nodes of which nothing is known.
    pub fn add(&mut self, count: usize) {
        self.nodes += count;
        match &mut self.features {
            Features::None => {}
            Features::Dense { columns, values } => values.resize(values.len() + count * *columns),
            Features::Sparse { offsets, .. } => {
                let end = offsets.last().copied().unwrap_or(0);
                offsets.resize(offsets.len() + count, end);
            }
        }
        for column in &mut self.exact.columns {
            column.values.resize(column.values.len() + count, Wide::default());
        }
        match &mut self.labels {
            Labels::None => {}
            Labels::Single { values, .. } => values.resize(values.len() + count, -1),
            Labels::Multi { classes, values } => values.resize(values.len() + count * *classes, Labels::UNKNOWN),
        }
        self.splits.iter_mut().for_each(|split| split.roles.resize(split.roles.len() + count, 0));
    }
}
