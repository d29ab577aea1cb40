//! The memory that a cut takes, before it is taken.

use crate::error::{GraphError, Result};

use super::append::BUFFERS;

/// What decides it.
pub(super) struct Need {
    /// How many nodes.
    pub(super) nodes: u64,
    /// What the partitioner takes.
    pub(super) partitioner: u64,
    /// Columns of features.
    pub(super) columns: u64,
    /// What the input keeps.
    pub(super) input: u64,
    /// What may be taken.
    pub(super) allowed: u64,
}

/// The program itself and what is not counted.
const BASE: u64 = 96 << 20;

/// Bytes for each node that is assigned: its part, label and role.
const KNOWN: u64 = 9;

/// Bytes for each node while parts are written: the same, and its row.
const PLACED: u64 = KNOWN + 4;

/// Bytes for each edge of the part that is being written: its source as it is read and as it is kept. What is read has
/// gone when owners are looked up.
pub(super) const PER_EDGE: u64 = 12;

/// Bytes of what is kept of an edge's source.
const SOURCE: u64 = 8;

/// Bytes of who owns a node that is needed.
const OWNED: u64 = 16;

impl Need {
    /// So many edges go into a bucket.
    pub(super) fn bucket(&self) -> u64 {
        (self.allowed / 1024).clamp(1 << 16, 1 << 24)
    }

    /// The most bytes at any time before parts are written, with so many edges, at most `largest` of them at one node:
    /// while edges are counted and put into buckets, while a bucket is sorted, while nodes are assigned with buckets
    /// being read ahead, or while rows are distributed.
    pub(super) fn most(&self, edges: u64, largest: u64) -> u64 {
        let bucket = self.bucket().max(largest).min(edges);
        let nodes_of = self.nodes.min(bucket);
        let rows = 3 * (4 * bucket + 12 * nodes_of);
        let stages = [
            4 * self.nodes + BUFFERS,
            8 * bucket + 4 * nodes_of,
            self.partitioner + 5 * self.nodes + rows,
            KNOWN * self.nodes + rows + BUFFERS,
        ];
        BASE + self.input + stages.into_iter().max().unwrap_or(0)
    }

    /// While a part of so many edges and nodes is written: its arrays, and the set of what it needs.
    pub(super) fn part(&self, edges: u64, nodes: u64) -> u64 {
        let edges_of = (PER_EDGE * edges).max(SOURCE * edges + OWNED * edges.min(self.nodes));
        BASE + self.input + PLACED * self.nodes + edges_of + nodes * (37 + 4 * self.columns) + self.nodes / 8
    }

    /// Refuses what is more than may be taken.
    pub(super) fn check(&self, bytes: u64, what: &str) -> Result<()> {
        if bytes <= self.allowed {
            return Ok(());
        }
        let (needed, allowed) = (bytes.div_ceil(1_000_000), self.allowed / 1_000_000);
        Err(GraphError::invalid(format!("{what} needs {needed} MB of memory, and {allowed} MB are allowed")))
    }
}
