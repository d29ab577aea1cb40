//! Rectangular sparse operators: destination rows × source rows.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::long::{LongSum, sum_of};
use crate::matrix::{transpose_pattern, transposed_positions};

/// One orientation of a block: for each row, the columns it reads.
#[derive(Debug, Clone, Copy)]
pub struct Csr<'a> {
    /// Row boundaries in [`Csr::columns`]; rows + 1 entries.
    pub offsets: &'a [usize],
    /// The column (source row) of each entry.
    pub columns: &'a [u32],
}

/// The same in memory of its own.
#[derive(Debug, Default)]
struct Lines {
    offsets: Vec<usize>,
    columns: Vec<u32>,
}

impl Lines {
    /// The first rows.
    fn head(&self, rows: usize) -> Csr<'_> {
        let offsets = self.offsets.get(..=rows).unwrap_or(&self.offsets);
        Csr { offsets, columns: &self.columns[..offsets.last().copied().unwrap_or(0)] }
    }
}

/// What is known of each edge of a [`Block`]; a column that is missing says the same of all edges.
#[derive(Debug, Clone, Default)]
pub struct EdgeData {
    /// The weight of each edge; `None` where every edge weighs 1.
    pub weights: Option<Vec<f32>>,
    /// The relation of each edge; `None` where there is one kind of edge.
    pub relations: Option<Vec<u16>>,
}

/// The edges from one set of source rows into the destination rows, in both orientations: the local block (own → own),
/// the halo block (halo → own).
#[derive(Debug, Clone, Default)]
pub struct Block {
    sources: usize,
    destinations: usize,
    /// Of the destinations, and of more where these are the first of another block's.
    forward: Arc<Lines>,
    reverse: Arc<Lines>,
    /// For each entry of `reverse`, its position in `forward`, once somebody has asked.
    positions: OnceLock<Vec<u32>>,
    /// What is known of each edge, in the order of `forward`.
    data: Arc<EdgeData>,
    /// What each edge counts for in the mean over its destination's edges of its relation.
    shares: Option<Arc<Vec<f32>>>,
    /// The number of each source row among those of all blocks.
    names: Arc<Vec<u32>>,
}

impl Block {
    /// Builds a block from its edges by destination: those into row v start from `columns[offsets[v]..offsets[v + 1]]`,
    /// and `data` says in the same places what else is known of them.
    ///
    /// # Panics
    ///
    /// If the arrays do not fit together, or an edge starts beyond the sources.
    pub fn new(sources: usize, offsets: Vec<usize>, columns: Vec<u32>, data: impl Into<EdgeData>) -> Self {
        let block = Block::one_way(sources, offsets, columns, data);
        block.both_ways()
    }

    /// The same with its edges by source.
    #[must_use]
    pub fn both_ways(self) -> Block {
        let Csr { offsets, columns } = self.forward();
        let (offsets, columns) = transpose_pattern(self.sources, offsets, columns);
        Block { reverse: Arc::new(Lines { offsets, columns }), ..self }
    }

    /// The edges into the first destinations, all of which start from the first sources, for passes that go forward
    /// alone. What is known of an edge is shared with this block.
    ///
    /// # Panics
    ///
    /// If there are not so many rows, or an edge starts beyond the sources.
    #[must_use]
    pub fn head(&self, destinations: usize, sources: usize) -> Block {
        assert!(destinations <= self.destinations && sources <= self.sources, "the first rows of a block");
        let head = Block { sources, destinations, reverse: Arc::default(), positions: OnceLock::new(), ..self.clone() };
        let begins = |&source: &u32| (source as usize) < sources;
        assert!(head.forward().columns.iter().all(begins), "an edge starts beyond source row {sources}");
        head
    }

    /// The same for passes that go forward alone: it has no edges by source.
    ///
    /// # Panics
    ///
    /// As [`Block::new`].
    pub fn one_way(sources: usize, offsets: Vec<usize>, columns: Vec<u32>, data: impl Into<EdgeData>) -> Self {
        let data = data.into();
        assert_eq!(offsets.last().copied(), Some(columns.len()), "offsets end where the edges end");
        assert!(columns.iter().all(|&c| (c as usize) < sources), "an edge starts beyond source row {sources}");
        assert!(data.weights.as_ref().is_none_or(|w| w.len() == columns.len()), "one weight an edge");
        assert!(data.relations.as_ref().is_none_or(|r| r.len() == columns.len()), "one relation an edge");
        Block {
            sources,
            destinations: offsets.len() - 1,
            forward: Arc::new(Lines { offsets, columns }),
            reverse: Arc::default(),
            positions: OnceLock::new(),
            data: Arc::new(data),
            shares: None,
            names: Arc::new((0..sources as u32).collect()),
        }
    }

    /// The same with a number for each source row that no source of another block has; what depends on the order of
    /// sources goes by it, so that it does not depend on how they are divided. Otherwise sources count from 0.
    ///
    /// # Panics
    ///
    /// If there are not as many numbers as source rows, or one is `u32::MAX`.
    #[must_use]
    pub fn naming(self, names: Vec<u32>) -> Self {
        assert_eq!(names.len(), self.sources, "one number a source row");
        assert!(names.iter().all(|&name| name != u32::MAX), "the last number stands for nobody");
        Block { names: Arc::new(names), ..self }
    }

    /// The edges into some of the destinations, for passes that go forward alone: it has no edges by source.
    #[must_use]
    pub fn piece(&self, destinations: Range<usize>) -> Block {
        let bounds = &self.forward.offsets[destinations.start..=destinations.end];
        let edges = bounds[0]..bounds[bounds.len() - 1];
        Block {
            sources: self.sources,
            destinations: destinations.len(),
            forward: Arc::new(Lines {
                offsets: bounds.iter().map(|bound| bound - edges.start).collect(),
                columns: self.forward.columns[edges.clone()].to_vec(),
            }),
            reverse: Arc::default(),
            positions: OnceLock::new(),
            data: Arc::new(self.data.piece(edges.clone())),
            shares: self.shares.as_ref().map(|shares| Arc::new(shares[edges].to_vec())),
            names: self.names.clone(),
        }
    }

    /// The number of each source row among those of all blocks.
    pub fn names(&self) -> &[u32] {
        &self.names[..self.sources]
    }

    /// The number of rows that edges may start from.
    pub fn sources(&self) -> usize {
        self.sources
    }

    /// The number of rows that edges may end at.
    pub fn destinations(&self) -> usize {
        self.destinations
    }

    /// The number of edges, parallel ones counted each.
    pub fn edges(&self) -> usize {
        self.forward().columns.len()
    }

    /// The edges by destination.
    pub fn forward(&self) -> Csr<'_> {
        self.forward.head(self.destinations)
    }

    /// The edges by source.
    pub fn reverse(&self) -> Csr<'_> {
        self.reverse.head(self.sources)
    }

    /// For each edge in the order of [`Block::reverse`], its position in the order of [`Block::forward`]. They are made
    /// when they are asked for first: folds of edges that all weigh the same never do. None where it has no edges by
    /// source.
    pub fn positions(&self) -> &[u32] {
        let is_one_way = self.reverse.offsets.is_empty();
        let make = || transposed_positions(self.sources, self.forward().columns);
        self.positions.get_or_init(|| if is_one_way { Vec::new() } else { make() })
    }

    /// Edge weights in the order of [`Block::forward`]; `None` where every edge weighs 1.
    pub fn weights(&self) -> Option<&[f32]> {
        self.data.weights.as_ref().map(|weights| &weights[..self.edges()])
    }

    /// The relation of each edge in the order of [`Block::forward`]; `None` where there is one kind of edge.
    pub fn relations(&self) -> Option<&[u16]> {
        self.data.relations.as_ref().map(|relations| &relations[..self.edges()])
    }

    /// What each edge counts for in the mean over its destination's edges of its relation, in the order of
    /// [`Block::forward`]; `None` unless [`Block::share_relations`] has been asked.
    pub fn shares(&self) -> Option<&[f32]> {
        self.shares.as_ref().map(|shares| &shares[..self.edges()])
    }

    /// Blocks that have all edges into the same rows between them, each edge with its weight divided by the weights of
    /// all edges of its relation into its row: means over relations are over neighbours wherever they are.
    ///
    /// # Panics
    ///
    /// If the blocks are not into equally many rows.
    #[must_use]
    pub fn share_relations<const N: usize>(mut blocks: [Block; N]) -> [Block; N] {
        let rows = blocks.first().map_or(0, Block::destinations);
        assert!(blocks.iter().all(|block| block.destinations() == rows), "blocks into the same rows");
        let of = |block: &Block, edge: usize| {
            let relation = block.relations().map_or(0, |relations| usize::from(relations[edge]));
            (relation, block.weights().map_or(1.0, |weights| weights[edge]))
        };
        let largest = blocks.iter().filter_map(|block| block.relations()?.iter().max()).max();
        let mut sums = vec![LongSum::default(); largest.map_or(1, |&largest| usize::from(largest) + 1)];
        let mut shares = blocks.each_ref().map(|block| vec![0.0; block.edges()]);
        for row in 0..rows {
            let edges = blocks.each_ref().map(|block| block.forward.offsets[row]..block.forward.offsets[row + 1]);
            let each =
                || blocks.iter().zip(&edges).flat_map(|(block, edges)| edges.clone().map(|edge| of(block, edge)));
            each().for_each(|(relation, weight)| sums[relation].add(weight));
            for ((block, edges), shares) in blocks.iter().zip(&edges).zip(&mut shares) {
                for edge in edges.clone() {
                    let (relation, weight) = of(block, edge);
                    // Weights may add up to nothing.
                    let sum = sums[relation].value();
                    shares[edge] = if sum == 0.0 { 0.0 } else { weight / sum };
                }
            }
            each().for_each(|(relation, _)| sums[relation] = LongSum::default());
        }
        blocks.iter_mut().zip(shares).for_each(|(block, shares)| block.shares = Some(Arc::new(shares)));
        blocks
    }

    /// The sum of the weights of the edges into each destination row, added to `degrees`.
    pub fn add_in_degrees(&self, degrees: &mut [f32]) {
        for (row, degree) in degrees.iter_mut().enumerate() {
            let edges = self.forward.offsets[row]..self.forward.offsets[row + 1];
            *degree += match &self.data.weights {
                Some(weights) => sum_of(weights[edges].iter().copied()),
                None => edges.len() as f32,
            };
        }
    }
}

impl EdgeData {
    fn piece(&self, edges: Range<usize>) -> EdgeData {
        EdgeData {
            weights: self.weights.as_ref().map(|weights| weights[edges.clone()].to_vec()),
            relations: self.relations.as_ref().map(|relations| relations[edges].to_vec()),
        }
    }
}

impl From<Option<Vec<f32>>> for EdgeData {
    fn from(weights: Option<Vec<f32>>) -> Self {
        EdgeData { weights, relations: None }
    }
}
