//! Edges that need not be in memory: what passes over them once, or as often as it likes, from wherever they are.
//!
//! There are two orders. An [`EdgeSource`] gives edges as they come, which every file can. A [`RowSource`] gives them
//! node by node, with all edges that end at a node together, which is what a partitioner reads that decides node by
//! node; [`crate::external`] makes one of the other on the disk. A [`Graph`] in memory gives rows.

use crate::error::Result;
use crate::graph::Graph;

/// What is called with a piece of the edges.
pub type EachEdges<'a> = dyn FnMut(&[(u64, u64)]) -> Result<()> + 'a;

/// What is called with a piece of the rows.
pub type EachRows<'a> = dyn FnMut(Rows) -> Result<()> + 'a;

/// Directed edges in any order, which can be gone through again and again and come the same each time.
pub trait EdgeSource {
    /// The number of nodes; all ids lie below it.
    fn nodes(&self) -> u64;

    /// Calls `each` with all edges (source, target), some thousands at a time.
    ///
    /// # Errors
    ///
    /// If the edges cannot be read, or `each` fails.
    fn pass(&self, each: &mut EachEdges) -> Result<()>;
}

/// Consecutive nodes with the sources of the edges that end at them.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The first of the nodes.
    pub first: usize,
    /// `offsets[r]..offsets[r + 1]` are the positions in `sources` of the edges that end at node `first + r`.
    pub offsets: &'a [u64],
    /// The source of each edge, ascending within a node.
    pub sources: &'a [u32],
}

impl<'a> Rows<'a> {
    /// The nodes, each with its sources.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'a [u32])> + use<'a> {
        let Rows { first, offsets, sources } = *self;
        let row = move |(row, ends): (usize, &[u64])| (first + row, &sources[ends[0] as usize..ends[1] as usize]);
        offsets.windows(2).enumerate().map(row)
    }
}

/// Edges node by node, in the order of node ids.
pub trait RowSource: Sync {
    /// The number of nodes.
    fn nodes(&self) -> usize;

    /// The number of directed edges.
    fn edges(&self) -> u64;

    /// Calls `each` with all rows, many at a time.
    ///
    /// # Errors
    ///
    /// If the edges cannot be read, or `each` fails.
    fn pass(&self, each: &mut EachRows) -> Result<()>;
}

impl RowSource for Graph {
    fn nodes(&self) -> usize {
        Graph::nodes(self)
    }

    fn edges(&self) -> u64 {
        Graph::edges(self) as u64
    }

    fn pass(&self, each: &mut EachRows) -> Result<()> {
        each(Rows { first: 0, offsets: &self.offsets, sources: &self.sources })
    }
}
