//! Passes in which the last layers output only the rows that somebody reads: the loss reads training rows and figures
//! those of all splits, the layer before is read by these and their neighbours, and so on down the network. What is
//! left out has a gradient of zero, so nothing is learned differently.
//!
//! Own rows stand in the order of who reads them ([`laconic_graph::narrow`]), so that what a layer outputs are the
//! first rows there are. Rows that others need are always output: what crosses is the same, and so are bytes.

use laconic_nn::{Block, Nodes};

use super::inputs::LocalGraph;

/// How many rows each unit of a network outputs, and the edges that it folds.
pub struct RequiredRows {
    units: Vec<Unit>,
}

struct Unit {
    rows: usize,
    /// The own and the halo's edges into these rows, where they are not all.
    blocks: Option<[Block; 2]>,
}

impl RequiredRows {
    /// The edges of `graph` for units that output so many rows each, none more than the one before it; `None` where
    /// all output all. The first reads inputs of as many rows as it outputs. Edges are known by source as well where
    /// a pass `goes_back`.
    pub fn new(graph: LocalGraph<'_>, rows: &[usize], goes_back: bool) -> Option<RequiredRows> {
        let all = graph.nodes.ids.len();
        if rows.iter().all(|&rows| rows == all) {
            return None;
        }
        let before = rows.first().into_iter().chain(rows);
        let unit = |(index, (&rows, &before)): (usize, (&usize, &usize))| {
            let narrows = index > 0 && rows < all;
            let heads = || [graph.own.head(rows, before), graph.halo.head(rows, graph.halo.sources())];
            let blocks = narrows.then(|| if goes_back { heads().map(Block::both_ways) } else { heads() });
            Unit { rows, blocks }
        };
        Some(RequiredRows { units: rows.iter().zip(before).enumerate().map(unit).collect() })
    }

    /// The rows that unit `index` outputs, and the edges into them.
    pub(super) fn graph<'a>(&'a self, whole: LocalGraph<'a>, index: usize) -> LocalGraph<'a> {
        let Unit { rows, blocks } = &self.units[index];
        let nodes = whole.nodes.head(*rows);
        match blocks {
            Some([own, halo]) => LocalGraph { nodes, own, halo, ..whole },
            None => LocalGraph { nodes, ..whole },
        }
    }

    /// What is known of the rows that unit `index` reads.
    pub(super) fn senders<'a>(&self, nodes: Nodes<'a>, index: usize) -> Nodes<'a> {
        nodes.head(self.units[index.saturating_sub(1)].rows)
    }
}
