//! Edges that a batch must not read.

/// Directed edges that are left out of draws, as if the graph did not have them: those that a batch is to predict.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Skip {
    /// Destination and source, ascending.
    pairs: Vec<(u32, u32)>,
}

impl Skip {
    /// Leaves out all edges between these sources and destinations, in the numbering of the lists; to leave out both
    /// directions of an edge, give both.
    pub fn new(edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut pairs: Vec<(u32, u32)> = edges.into_iter().map(|(source, destination)| (destination, source)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        Skip { pairs }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The sources of those into `destination`, ascending.
    pub fn sources_into(&self, destination: u32) -> impl Iterator<Item = u32> {
        self.edges_into(destination).iter().map(|pair| pair.1)
    }

    /// The nodes that any of them ends at, ascending.
    pub fn destinations(&self) -> impl Iterator<Item = u32> {
        self.pairs.chunk_by(|a, b| a.0 == b.0).map(|pairs| pairs[0].0)
    }

    /// Those into `destination`, ascending by source.
    pub(super) fn edges_into(&self, destination: u32) -> &[(u32, u32)] {
        let start = self.pairs.partition_point(|pair| pair.0 < destination);
        let rest = &self.pairs[start..];
        &rest[..rest.partition_point(|pair| pair.0 == destination)]
    }
}
