//! The rules that every part keeps, checked wherever one comes from outside.

use crate::dataset::{Features, Ids, Labels};
use crate::error::{GraphError, Result};
use crate::part::{GlobalCounts, Part};

/// A broken rule: the array it was found in, and what was expected.
pub(super) type Violation = (&'static str, String);

impl Part {
    /// Checks every rule that the documentation of the fields states. Everything that takes a part relies on them.
    pub fn check(&self) -> Result<()> {
        self.violation().map_or(Ok(()), |(array, what)| {
            Err(GraphError::invalid(format!("part {} of {}: {array}: {what}", self.index, self.parts)))
        })
    }

    /// The first rule that is broken, named by the tensor of the part folder that holds the array.
    pub(super) fn violation(&self) -> Option<Violation> {
        if self.index >= self.parts {
            return Some(("index", format!("expected a number below {}, found {}", self.parts, self.index)));
        }
        let rows = self.rows();
        if rows > u32::MAX as usize {
            return Some(("nodes", format!("expected fewer than 2^32 nodes in a part, found {rows}")));
        }
        let called_by_row = self.ids == Ids::Row;
        if let Some(row) = (1..rows).find(|&row| self.nodes[row - 1] >= self.nodes[row]) {
            let (before, here) = (self.nodes[row - 1], self.nodes[row]);
            return Some(("nodes", format!("expected ascending ids, found {here} after {before} at row {row}")));
        }
        if let Some(last) = self.nodes.last().filter(|&&last| called_by_row && last >= self.global.nodes) {
            return Some(("nodes", format!("expected ids below {}, found {last}", self.global.nodes)));
        }
        self.edge_violation(called_by_row)
            .or_else(|| feature_violation(&self.features, rows, self.global.columns))
            .or_else(|| label_violation(&self.labels, rows, &self.global))
            .or_else(|| self.role_violation())
            .or_else(|| match &self.ids {
                Ids::Row => None,
                Ids::Integers(ids) => length_violation("ids", ids.len(), rows),
                Ids::Strings(ids) => length_violation("id_bytes", ids.len(), rows),
            })
    }

    fn edge_violation(&self, called_by_row: bool) -> Option<Violation> {
        let rows = self.rows();
        if let Some(violation) = offsets_violation("offsets", &self.offsets, rows, self.sources.len()) {
            return Some(violation);
        }
        for row in 0..rows {
            let sources = &self.sources[self.in_edges(row)];
            if let Some(at) = (1..sources.len()).find(|&at| sources[at - 1] > sources[at]) {
                let (before, here) = (sources[at - 1], sources[at]);
                return Some((
                    "sources",
                    format!("expected ascending sources of node {}, found {here} after {before}", self.nodes[row]),
                ));
            }
            if let Some(last) = sources.last().filter(|&&last| called_by_row && last >= self.global.nodes) {
                return Some(("sources", format!("expected ids below {}, found {last}", self.global.nodes)));
            }
        }
        let weights = self.weights.as_ref()?;
        length_violation("weights", weights.len(), self.sources.len()).or_else(|| finite_violation("weights", weights))
    }

    fn role_violation(&self) -> Option<Violation> {
        if self.roles.is_empty() {
            return None;
        }
        if let Some(role) = self.roles.iter().find(|&&role| role > 7) {
            return Some(("roles", format!("expected sets of the flags 1, 2 and 4, found {role}")));
        }
        length_violation("roles", self.roles.len(), self.rows())
    }
}

fn length_violation(array: &'static str, found: usize, expected: usize) -> Option<Violation> {
    (found != expected).then(|| (array, format!("expected {expected} values, found {found}")))
}

fn finite_violation(array: &'static str, values: &[f32]) -> Option<Violation> {
    let at = values.iter().position(|value| !value.is_finite())?;
    Some((array, format!("expected finite numbers, found {} at position {at}", values[at])))
}

fn offsets_violation(array: &'static str, offsets: &[u64], rows: usize, end: usize) -> Option<Violation> {
    if let Some(violation) = length_violation(array, offsets.len(), rows + 1) {
        return Some(violation);
    }
    if offsets[0] != 0 || offsets[rows] != end as u64 {
        let (first, last) = (offsets[0], offsets[rows]);
        return Some((array, format!("expected to run from 0 to {end}, found {first} to {last}")));
    }
    let row = (0..rows).find(|&row| offsets[row] > offsets[row + 1])?;
    Some((array, format!("expected ascending offsets, found {} after {}", offsets[row + 1], offsets[row])))
}

fn feature_violation(features: &Features, rows: usize, expected: usize) -> Option<Violation> {
    let wrong_columns = |array, columns: usize| {
        (array, format!("expected {expected} columns as the other parts have, found {columns}"))
    };
    match features {
        Features::None => (expected != 0).then(|| wrong_columns("features", 0)),
        Features::Dense { columns, .. } if *columns != expected => Some(wrong_columns("features", *columns)),
        Features::Dense { columns, values } => {
            let expected = rows.saturating_mul(*columns);
            length_violation("features", values.len(), expected).or_else(|| finite_violation("features", values))
        }
        Features::Sparse { columns, .. } if *columns != expected => Some(wrong_columns("features_indices", *columns)),
        Features::Sparse { columns, offsets, indices, values } => {
            if let Some(violation) = offsets_violation("features_offsets", offsets, rows, values.len())
                .or_else(|| length_violation("features_indices", indices.len(), values.len()))
                .or_else(|| finite_violation("features_values", values))
            {
                return Some(violation);
            }
            let bad_row = (0..rows).find(|&row| {
                let indices = &indices[offsets[row] as usize..offsets[row + 1] as usize];
                indices.windows(2).any(|pair| pair[0] >= pair[1])
                    || indices.last().is_some_and(|&last| last as usize >= *columns)
            })?;
            Some(("features_indices", format!("expected ascending columns below {columns} in row {bad_row}")))
        }
    }
}

fn label_violation(labels: &Labels, rows: usize, global: &GlobalCounts) -> Option<Violation> {
    let multi_label = matches!(labels, Labels::Multi { .. });
    let classes = labels.classes();
    if classes != global.classes || multi_label != global.multi_label {
        let kind = |multi| if multi { "any number" } else { "one" };
        return Some((
            "labels",
            format!(
                "expected {} classes, {} a node, as the other parts have, found {classes}, {} a node",
                global.classes,
                kind(global.multi_label),
                kind(multi_label)
            ),
        ));
    }
    match labels {
        Labels::None => None,
        Labels::Single { values, .. } => length_violation("labels", values.len(), rows).or_else(|| {
            let bad = values.iter().find(|&&value| value < -1 || value >= 0 && value as usize >= classes)?;
            Some(("labels", format!("expected −1 or a class below {classes}, found {bad}")))
        }),
        Labels::Multi { values, .. } => {
            let expected = rows.saturating_mul(classes);
            length_violation("labels", values.len(), expected).or_else(|| {
                let bad = values.iter().find(|&&value| value > 1)?;
                Some(("labels", format!("expected 0 or 1, found {bad}")))
            })
        }
    }
}
