//! Sampled batches: bipartite blocks, one for each layer.

/// In-edges as they are drawn: the source of each, and what else is known of it.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    /// The source of each edge, in the numbering of whoever gives the lists.
    pub sources: Vec<u32>,
    /// The weight of each edge; `None` where every edge weighs 1.
    pub weights: Option<Vec<f32>>,
    /// The relation of each edge; `None` where there is one kind of edge.
    pub relations: Option<Vec<u16>>,
    /// Places in a list, on their way to edges.
    pub(super) positions: Vec<usize>,
}

impl Drawn {
    /// No edges yet, with a column of weights and one of relations or without.
    pub fn new(weighted: bool, related: bool) -> Self {
        Drawn { weights: weighted.then(Vec::new), relations: related.then(Vec::new), ..Drawn::default() }
    }

    /// Makes it empty, with the columns that are asked for.
    pub(crate) fn restart(&mut self, weighted: bool, related: bool) {
        self.sources.clear();
        restart(&mut self.weights, weighted);
        restart(&mut self.relations, related);
    }

    /// Replaces sources from the place `start` on by what `row` says, and drops the edges for which it says nothing.
    pub(crate) fn retain_from(&mut self, start: usize, mut row: impl FnMut(u32) -> Option<u32>) {
        let mut kept = start;
        for at in start..self.sources.len() {
            let Some(row) = row(self.sources[at]) else { continue };
            self.sources[kept] = row;
            self.weights.iter_mut().for_each(|weights| weights[kept] = weights[at]);
            self.relations.iter_mut().for_each(|relations| relations[kept] = relations[at]);
            kept += 1;
        }
        self.sources.truncate(kept);
        self.weights.iter_mut().for_each(|weights| weights.truncate(kept));
        self.relations.iter_mut().for_each(|relations| relations.truncate(kept));
    }

    /// Appends an edge with its weight and relation; what there is no column for is left out.
    pub fn push(&mut self, source: u32, (weight, relation): (f32, u16)) {
        self.sources.push(source);
        self.weights.iter_mut().for_each(|weights| weights.push(weight));
        self.relations.iter_mut().for_each(|relations| relations.push(relation));
    }
}

fn restart<T>(column: &mut Option<Vec<T>>, wanted: bool) {
    match column {
        Some(values) if wanted => values.clear(),
        _ => *column = wanted.then(Vec::new),
    }
}

/// What one layer reads: edges from source rows to destination rows, which are the first of the source rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hop {
    /// The number of rows that edges end at.
    pub destinations: usize,
    /// The number of rows that edges may start from.
    pub sources: usize,
    /// `offsets[r]..offsets[r + 1]` are the positions in [`Hop::columns`] of the edges into row `r`; length
    /// destinations + 1.
    pub offsets: Vec<usize>,
    /// The source row of each edge.
    pub columns: Vec<u32>,
    /// The weight of each edge; `None` where every edge weighs 1.
    pub weights: Option<Vec<f32>>,
    /// The relation of each edge; `None` where there is one kind of edge.
    pub relations: Option<Vec<u16>>,
    /// How many in-edges each destination has in full, of which the row holds those that were drawn.
    pub degrees: Vec<u32>,
    /// Whether the first edge of each row is a loop of the layer, which is not drawn and not one of
    /// [`Hop::degrees`].
    pub loops: bool,
}

impl Hop {
    /// The number of edges, loops included.
    pub fn edges(&self) -> usize {
        self.columns.len()
    }

    /// How many edges into row `row` were drawn.
    pub fn drawn(&self, row: usize) -> usize {
        self.offsets[row + 1] - self.offsets[row] - usize::from(self.loops)
    }

    /// What a sum over the drawn edges into row `row` is multiplied by to be, on average, the sum over all; 1 where
    /// there is none.
    pub fn scale(&self, row: usize) -> f32 {
        match self.drawn(row) {
            0 => 1.0,
            drawn => self.degrees[row] as f32 / drawn as f32,
        }
    }

    /// Exchanges its edges, buffers and all, for these: to be filled elsewhere, and back again.
    pub(crate) fn swap(&mut self, edges: &mut Drawn) {
        std::mem::swap(&mut self.columns, &mut edges.sources);
        std::mem::swap(&mut self.weights, &mut edges.weights);
        std::mem::swap(&mut self.relations, &mut edges.relations);
    }

    /// Makes it empty, for so many destinations.
    pub(crate) fn restart(&mut self, destinations: usize, loops: bool) {
        self.offsets.clear();
        self.offsets.push(0);
        self.columns.clear();
        self.degrees.clear();
        (self.destinations, self.sources, self.loops) = (destinations, destinations, loops);
    }
}

/// A batch: the nodes whose rows are read, and what each layer reads of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampled {
    /// The nodes, each once, in the numbering of whoever gave the lists. Row `r` of any hop is `nodes[r]`: the seeds
    /// come first, and whoever a layer needs besides follows in order of first appearance.
    pub nodes: Vec<u32>,
    /// The row of each seed, as they were given.
    pub seeds: Vec<u32>,
    /// What each layer reads; the first layer reads `hops[0]`, the widest. One alone is read by all layers.
    pub hops: Vec<Hop>,
}

impl Sampled {
    /// What this layer reads.
    ///
    /// # Panics
    ///
    /// If there is no such layer.
    pub fn hop(&self, layer: usize) -> &Hop {
        if let [shared] = &self.hops[..] { shared } else { &self.hops[layer] }
    }
}
