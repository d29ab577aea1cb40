//! Features as they are standardised: every row stores all of its own columns, zeros too.

use crate::about::NodeType;
use crate::dataset::Features;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::afford;
use crate::node_types::types_of;
use laconic_array::Array;
use std::ops::Range;

/// Which columns are a node's own: those of its type where there are types, else all.
pub(super) struct Own {
    /// The type of each row; none without types.
    pub of_row: Vec<u16>,
    /// Where the columns of each type begin, and where the last ones end.
    starts: Vec<usize>,
}

impl Own {
    pub fn of(features: &Features, types: &[NodeType]) -> Own {
        let of_row = types_of(features, types).unwrap_or_default();
        let ends = types.iter().scan(0, |end, kind| {
            *end += kind.columns;
            Some(*end)
        });
        Own { of_row, starts: [0].into_iter().chain(ends).collect() }
    }

    pub fn columns(&self, row: usize, all: usize) -> Range<usize> {
        match self.of_row.get(row) {
            Some(&kind) => self.starts[usize::from(kind)]..self.starts[usize::from(kind) + 1],
            None => 0..all,
        }
    }

    /// Whether a column says of which type a node is.
    pub fn is_flag(&self, column: usize) -> bool {
        !self.of_row.is_empty() && self.starts[1..].contains(&(column + 1))
    }

    /// Which rows count: those that train, and all of a type of which none does, as long as some row trains.
    pub fn counted<'a>(&'a self, trains: &'a dyn Fn(usize) -> bool, rows: usize) -> impl Fn(usize) -> bool + 'a {
        let mut learns = vec![false; self.starts.len()];
        let training = self.of_row.iter().enumerate().filter(|(row, _)| trains(*row));
        training.for_each(|(_, &kind)| learns[usize::from(kind)] = true);
        let any = (0..rows).any(trains);
        move |row| trains(row) || any && self.of_row.get(row).is_some_and(|&kind| !learns[usize::from(kind)])
    }
}

/// Features of which each row stores all of its own columns, one after the other.
pub(super) struct Rows<'a> {
    pub columns: usize,
    values: &'a mut [f32],
    /// Where the numbers of each row begin, and where the last ones end, with the columns that they are of; none of
    /// dense features.
    sparse: Option<(&'a [u64], &'a [u32])>,
}

impl<'a> Rows<'a> {
    /// Makes features so; `None` where there is no column.
    ///
    /// # Errors
    /// If they would need more values than the limits allow.
    pub fn of(features: &'a mut Features, own: &Own, limits: &Limits) -> Result<Option<Rows<'a>>> {
        if own.of_row.is_empty() {
            make_dense(features, limits)?;
        } else {
            store_own(features, own, limits)?;
        }
        Ok(match features {
            Features::None | Features::Dense { columns: 0, .. } | Features::Sparse { columns: 0, .. } => None,
            Features::Dense { columns, values } => Some(Rows { columns: *columns, values, sparse: None }),
            Features::Sparse { columns, offsets, indices, values } => {
                Some(Rows { columns: *columns, values, sparse: Some((offsets, indices)) })
            }
        })
    }

    pub fn len(&self) -> usize {
        self.sparse.map_or(self.values.len() / self.columns, |(offsets, _)| offsets.len() - 1)
    }

    /// A row's numbers, and the column of the first of them.
    pub fn row(&mut self, row: usize) -> (usize, &mut [f32]) {
        match self.sparse {
            None => (0, &mut self.values[row * self.columns..][..self.columns]),
            Some((offsets, indices)) => {
                let stored = offsets[row] as usize..offsets[row + 1] as usize;
                (indices.get(stored.start).map_or(0, |&first| first as usize), &mut self.values[stored])
            }
        }
    }
}

/// Stores all columns of each node's type.
fn store_own(features: &mut Features, own: &Own, limits: &Limits) -> Result<()> {
    let Features::Sparse { columns, offsets, indices, values } = features else { return Ok(()) };
    let rows = offsets.len() - 1;
    let all: u64 = (0..rows).map(|row| own.columns(row, *columns).len() as u64).sum();
    let what = |why: String| format!("standardised features of {rows} nodes of several types are {all} values, {why}");
    if all > limits.dense_values_max {
        let why = format!("which pass the limit of {}; use row-normalised features", limits.dense_values_max);
        return Err(GraphError::invalid(what(why)));
    }
    let each = (size_of::<f32>() + size_of::<u32>()) as u64;
    afford(all * each).map_err(|why| GraphError::invalid(what(format!("which {why}"))))?;
    let (mut ends, mut of, mut stored) = (vec![0u64], Vec::with_capacity(all as usize), vec![0.0f32; all as usize]);
    for row in 0..rows {
        let (own, begin) = (own.columns(row, *columns), of.len());
        for item in offsets[row] as usize..offsets[row + 1] as usize {
            stored[begin + indices[item] as usize - own.start] = values[item];
        }
        of.extend(own.map(|column| column as u32));
        ends.push(of.len() as u64);
    }
    *features = Features::Sparse { columns: *columns, offsets: ends, indices: of, values: stored };
    Ok(())
}

fn make_dense(features: &mut Features, limits: &Limits) -> Result<()> {
    let Features::Sparse { columns, offsets, indices, values } = features else { return Ok(()) };
    let (rows, columns) = (offsets.len() - 1, *columns);
    if rows as u64 * columns as u64 > limits.dense_values_max {
        return Err(GraphError::invalid(format!(
            "standardised features are dense, and {rows} rows × {columns} columns pass the limit of {} values; \
             use row-normalised features, or fewer columns",
            limits.dense_values_max
        )));
    }
    afford(rows as u64 * columns as u64 * size_of::<f32>() as u64).map_err(|what| {
        GraphError::invalid(format!("standardised features are dense: {rows} rows × {columns} columns, which {what}"))
    })?;
    let mut dense = Array::zeros(rows * columns);
    for row in 0..rows {
        for item in offsets[row] as usize..offsets[row + 1] as usize {
            dense[row * columns + indices[item] as usize] = values[item];
        }
    }
    *features = Features::Dense { columns, values: dense };
    Ok(())
}
