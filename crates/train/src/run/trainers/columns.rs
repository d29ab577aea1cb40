//! What models read of a trainer's nodes beside others' telling: found once, and given to whoever of its process reads
//! the same, in the place of features.

use std::sync::Arc;

use laconic_graph::dataset::Features;
use laconic_graph::part::Part;
use laconic_nn::Operand;

use crate::error::{Result, TrainError};
use crate::worker::Worker;
use crate::worker::by_id::ById;

/// The rows that a first layer reads, by node.
pub(super) struct Columns {
    ids: Vec<u64>,
    by_id: Arc<ById>,
    rows: Operand,
}

impl Columns {
    /// Of a worker that has begun no stage; `None` of others.
    pub fn of(worker: &Worker) -> Option<Columns> {
        let (local, rows) = (&worker.local, worker.handed()?.clone());
        Some(Columns { ids: local.ids.clone(), by_id: Arc::clone(&local.by_id), rows })
    }

    /// A part with them, so many, in the place of its features. One without nodes needs none.
    ///
    /// # Errors
    /// If one of its nodes has none.
    pub fn given(columns: Option<&Columns>, part: Part, count: usize) -> Result<Part> {
        let features = match columns {
            Some(columns) => columns.features(&part.nodes),
            None => part.nodes.is_empty().then(|| Features::Dense { columns: count, values: Vec::new().into() }),
        };
        let what = || format!("part {}: nobody was told what models read of its nodes", part.index);
        let features = features.ok_or_else(|| TrainError::config(what()))?;
        let mut part = Part { features, ..part };
        part.global.columns = count;
        Ok(part)
    }

    fn features(&self, nodes: &[u64]) -> Option<Features> {
        let ascending = self.by_id.ids(&self.ids);
        let row = |id| ascending.binary_search(id).ok().map(|place| self.by_id.row(place as u32));
        let rows = nodes.iter().map(row).collect::<Option<Vec<u32>>>()?;
        Some(match self.rows.gather(&rows) {
            Operand::Sparse(rows) => Features::Sparse {
                columns: rows.columns(),
                offsets: rows.offsets().iter().map(|&offset| offset as u64).collect(),
                indices: rows.indices().to_vec(),
                values: rows.values().to_vec(),
            },
            mut rows => {
                let rows = std::mem::take(rows.dense_mut());
                Features::Dense { columns: rows.columns(), values: rows.into_vec().into() }
            }
        })
    }
}
