//! The rules that every part keeps, checked wherever one comes from outside.

use crate::dataset::{Features, Ids, Labels, Split};
use crate::dataset::{feature_violation, id_violation, label_violation, role_violation};
use crate::error::{GraphError, Result};
use crate::given::NAMES;
use crate::info::{broken_features, overlapping_roles};
use crate::limits::Limits;
use crate::part::{GlobalCounts, Part};
use crate::rules::{Violation, finite_violation, offsets_violation};

impl Part {
    /// Checks every rule that the documentation of the fields states. Everything that takes a part relies on them.
    ///
    /// # Errors
    ///
    /// Names the part, the array and what was expected in it.
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
        self.width_violation()
            .or_else(|| self.global.about.violation(self.global.columns, self.global.classes))
            .or_else(|| self.global.about.relation_violation(self.global.relations))
            .or_else(|| self.edge_violation(called_by_row))
            .or_else(|| self.owners.as_ref().and_then(|owners| owners.violation(self.index, self.parts)))
            .or_else(|| self.negative_violation(called_by_row))
            .or_else(|| self.feature_violation())
            .or_else(|| part_label_violation(&self.labels, rows, &self.global))
            .or_else(|| id_violation(&self.ids, rows))
            .or_else(|| self.role_violation())
    }

    /// Matrices of all parts are no wider than the limits allow.
    fn width_violation(&self) -> Option<Violation> {
        let (global, limits) = (&self.global, Limits::default());
        let widths = [
            ("features", "columns", global.columns, limits.columns_max),
            ("labels", "classes", global.classes, limits.classes_max),
        ];
        let (array, what, found, most) = widths.into_iter().find(|(_, _, found, most)| *found as u64 > *most)?;
        Some((array, format!("expected at most {most} {what} in all parts, found {found}")))
    }

    /// What is said about the whole is at least what the part holds. Asked of parts from outside, since who makes one
    /// in memory need not know the whole.
    pub(super) fn count_violation(&self) -> Option<Violation> {
        let global = &self.global;
        if !global.are_counted() {
            return None;
        }
        let [train, val, test] = self.role_counts();
        let counts = [
            ("nodes", "nodes", self.rows() as u64, global.nodes),
            ("sources", "edges", self.edges.edges() as u64, global.edges),
            ("roles", "training nodes", train, global.train),
            ("roles", "validation nodes", val, global.val),
            ("roles", "test nodes", test, global.test),
        ];
        let own = self.negatives.iter().flatten().map(|pairs| pairs.len() as u64);
        let given = own.zip(global.negatives.iter().flatten()).zip(NAMES);
        let given = given.map(|((own, all), [sources, ..])| (sources, "pairs that are no edges", own, all.pairs));
        let counts = counts.into_iter().chain(given);
        let (array, what, found, all) = counts.into_iter().find(|(_, _, found, all)| found > all)?;
        Some((array, format!("expected at most {all} {what}, which all parts together hold, found {found}")))
    }

    /// How many own nodes train, validate and test.
    pub(super) fn role_counts(&self) -> [u64; 3] {
        let of_role = |role| self.roles.iter().filter(|&&roles| roles & role != 0).count() as u64;
        [Split::TRAIN, Split::VAL, Split::TEST].map(of_role)
    }

    /// One set of flags a node, and no node that learns and is judged.
    fn role_violation(&self) -> Option<Violation> {
        if self.roles.is_empty() {
            return None;
        }
        let overlapping = || overlapping_roles(&self.roles, &self.names()).map(|what| ("roles", what));
        role_violation(&self.roles, self.rows()).or_else(overlapping)
    }

    /// Features as wide as those of the other parts, all of them finite.
    fn feature_violation(&self) -> Option<Violation> {
        let (index, values) = match &self.features {
            Features::None | Features::Dense { .. } => ("features", "features"),
            Features::Sparse { .. } => ("features_indices", "features_values"),
        };
        let (columns, expected) = (self.features.columns(), self.global.columns);
        if columns != expected {
            return Some((index, format!("expected {expected} columns as the other parts have, found {columns}")));
        }
        feature_violation(&self.features, self.rows())
            .or_else(|| broken_features(&self.features, &self.names()).map(|what| (values, what)))
    }

    /// What nodes are called in messages.
    fn names(&self) -> Ids {
        match &self.ids {
            Ids::Row => Ids::Integers(self.nodes.iter().map(|&node| node as i64).collect()),
            ids => ids.clone(),
        }
    }

    fn edge_violation(&self, called_by_row: bool) -> Option<Violation> {
        let rows = self.rows();
        if let Some(violation) = offsets_violation("offsets", &self.edges.offsets, rows, self.edges.edges()) {
            return Some(violation);
        }
        for row in 0..rows {
            let sources = self.edges.in_neighbours(row);
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
        if ![0, rows].contains(&self.left_out.len()) {
            return Some(("left_out", format!("expected a number a node, {rows}, found {}", self.left_out.len())));
        }
        let data = &self.edges.data;
        let infinite = || data.weights.as_ref().and_then(|weights| finite_violation("weights", weights));
        let (found, expected) = (data.kinds(), self.global.relations);
        let others = || {
            let what = format!("expected {expected} relations as the other parts have, found {found}");
            (found != expected).then_some(("relations", what))
        };
        let left_out = || finite_violation("left_out", &self.left_out);
        let held = || {
            let what = "expected roles of edges in all parts or in none, as the figures of the whole say";
            (data.held.is_some() != self.global.held.is_some()).then(|| ("held", what.to_owned()))
        };
        data.violation(self.edges.edges()).or_else(infinite).or_else(others).or_else(left_out).or_else(held)
    }
}

/// Labels of the kind that the other parts have.
fn part_label_violation(labels: &Labels, rows: usize, global: &GlobalCounts) -> Option<Violation> {
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
    label_violation(labels, rows)
}
