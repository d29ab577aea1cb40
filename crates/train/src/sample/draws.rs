//! The in-neighbours that a round draws for own nodes, and those that other workers have drawn for theirs.

use std::collections::HashMap;
use std::ops::Range;

use laconic_graph::edges::{EdgeData, Edges, Relations};
use laconic_graph::sample::{CsrLists, Drawn, Hop, Lists, Neighbourhoods, Sampled, Skip};
use laconic_nn::{Absence, Block, EdgeData as BlockData};

use super::apart::{SideEdges, Sides};
use super::known::Known;
use super::left_out::LeftOut;
use crate::pass::batch::{Batch, BatchHalo};
use crate::worker::local::Local;

/// How a stage draws neighbours.
pub struct Drawing {
    /// How many in-neighbours each layer draws; `None` for all.
    pub fanouts: Vec<Option<usize>>,
    /// The run's seed.
    pub seed: u64,
    /// After how many rounds neighbours are drawn anew.
    pub redraw: u32,
    /// Whether each node gets a loop besides what is drawn.
    pub loops: bool,
    /// How layers take neighbours that are not there.
    pub absence: Absence,
    /// Whether layers tell relations apart, and take the mean of each.
    pub relational: bool,
    /// How many relations edges may be of.
    pub relations: usize,
}

/// What draws of a stage are made from.
pub struct Draws {
    neighbourhoods: Neighbourhoods,
    fanouts: Vec<Option<usize>>,
    seed: u64,
    /// After how many rounds neighbours are drawn anew.
    redraw: u32,
    loops: bool,
    absence: Absence,
    /// Whether layers tell relations apart, and take the mean of each.
    relational: bool,
    relations: u16,
    weighted: bool,
    related: bool,
    /// Whether nothing goes back along the first layer's edges.
    ends_at_inputs: bool,
    /// Whether the halo's rows stand beside a batch's own ones rather than among them.
    keeps_halo_apart: bool,
}

impl Draws {
    /// Draws from all edges that end at own rows, or from those between own rows.
    pub fn new(local: &Local, with_halo: bool, drawing: Drawing) -> Draws {
        let Drawing { fanouts, seed, redraw, loops, absence, relational, relations } = drawing;
        let edges = merged(local, with_halo, loops);
        let (weighted, related) = (edges.data.weights.is_some(), edges.data.relations.is_some());
        let neighbourhoods = Neighbourhoods::new(edges, Some(local.ids.clone()));
        Draws {
            neighbourhoods,
            fanouts,
            seed,
            redraw,
            loops,
            absence,
            relational,
            relations: relations.max(1).min(u16::MAX.into()) as u16,
            weighted,
            related,
            ends_at_inputs: false,
            keeps_halo_apart: false,
        }
    }

    /// The same for networks whose first layer has no use for gradients of messages.
    #[must_use]
    pub fn ending_at_inputs(self) -> Draws {
        Draws { ends_at_inputs: true, ..self }
    }

    /// The same where the halo's rows are here for each layer, so that batches read them and make none of them.
    #[must_use]
    pub fn keeping_halo_apart(self) -> Draws {
        Draws { keeps_halo_apart: true, ..self }
    }

    /// How many layers draw.
    pub fn layers(&self) -> usize {
        self.fanouts.len()
    }

    /// How many in-neighbours a layer draws; `None` for all.
    pub fn fanout(&self, layer: usize) -> Option<usize> {
        self.fanouts[layer]
    }

    /// How many relations edges may be of.
    pub fn relations(&self) -> u16 {
        self.relations
    }

    /// Whether edges have weights, and relations.
    pub fn columns(&self) -> [bool; 2] {
        [self.weighted, self.related]
    }

    /// Whether each node gets a loop besides what is drawn.
    pub fn has_loops(&self) -> bool {
        self.loops
    }

    /// What own nodes draw in a round, but for what is left out of it.
    pub fn own<'a>(&'a self, round: u32, skip: &'a Skip) -> CsrLists<'a> {
        // Rounds count from 1.
        let first = round - round.saturating_sub(1) % self.redraw.max(1);
        let lists = CsrLists::new(&self.neighbourhoods, &self.fanouts, CsrLists::key(self.seed, first.into()));
        let lists = if skip.is_empty() { lists } else { lists.without(skip) };
        if self.loops { lists.with_loops() } else { lists }
    }

    /// A batch's nodes, by number, its blocks and what is known of its nodes; without the rows that go in.
    pub fn batch(&self, mut sampled: Sampled, known: &Known, left_out: &LeftOut) -> (Vec<u32>, Batch) {
        let ids: Vec<u64> = sampled.nodes.iter().map(|&node| known.ids[node as usize]).collect();
        let names = (self.absence == Absence::Skipped).then(|| ranks(&ids));
        sampled.hops.iter_mut().for_each(|hop| self.weigh(hop));
        let (nodes, ids, blocks, halo) = if self.keeps_halo_apart {
            self.apart(&sampled, known, ids, names)
        } else {
            let hops = sampled.hops.into_iter().enumerate();
            let blocks = hops.map(|(layer, hop)| {
                let Hop { sources, offsets, columns, weights, relations, .. } = hop;
                let data = BlockData { weights, relations };
                let block = self.block(layer, SideEdges { sources, offsets, columns, data }, names.as_deref());
                if self.relational { Block::share_relations([block]).into_iter().collect() } else { vec![block] }
            });
            (sampled.nodes, ids, blocks.flatten().collect(), None)
        };
        let degree =
            |node: u32, at: usize, known: f32| left_out.degrees.get(&node).map_or(known, |degrees| degrees[at]);
        let pick =
            |at: usize, values: &[f32]| nodes.iter().map(|&node| degree(node, at, values[node as usize])).collect();
        let (inverse_degree, inverse_root_degree) =
            (pick(0, &known.inverse_degree), pick(1, &known.inverse_root_degree));
        (nodes, Batch { blocks, inputs: None, ids, inverse_degree, inverse_root_degree, halo })
    }

    /// Own nodes with the edges among them, and the halo's rows beside them with theirs.
    fn apart(
        &self,
        sampled: &Sampled,
        known: &Known,
        ids: Vec<u64>,
        names: Option<Vec<u32>>,
    ) -> (Vec<u32>, Vec<u64>, Vec<Block>, Option<BatchHalo>) {
        let sides = Sides::new(&sampled.nodes, |node| known.is_foreign(node));
        let ([nodes, others], [ids, halo_ids]) = (sides.split(&sampled.nodes), sides.split(&ids));
        let names = names.map(|names| sides.split(&names));
        let name = |side: usize| names.as_ref().map(|names| &names[side][..]);
        let (mut blocks, mut beside) = (Vec::new(), Vec::new());
        for (layer, hop) in sampled.hops.iter().enumerate() {
            let [own, halo] = sides.edges(hop);
            let mut both = [self.block(layer, own, name(0)), self.block(layer, halo, name(1))];
            if self.relational {
                both = Block::share_relations(both);
            }
            let [own, halo] = both;
            blocks.push(own);
            beside.push(halo);
        }
        let rows = others.iter().map(|&node| known.halo_row(node)).collect();
        (nodes, ids, blocks, Some(BatchHalo::new(beside, rows, halo_ids)))
    }

    /// Where the layer adds messages up, those that were drawn stand for the others.
    fn weigh(&self, hop: &mut Hop) {
        if self.absence != Absence::Scaled || (0..hop.destinations).all(|row| hop.scale(row) == 1.0) {
            return;
        }
        let mut weights = hop.weights.take().unwrap_or_else(|| vec![1.0; hop.edges()]);
        for row in 0..hop.destinations {
            let (scale, first) = (hop.scale(row), hop.offsets[row] + usize::from(hop.loops));
            weights[first..hop.offsets[row + 1]].iter_mut().for_each(|weight| *weight *= scale);
        }
        hop.weights = Some(weights);
    }

    /// A layer's edges from one side, whose rows have these names among all of the batch.
    fn block(&self, layer: usize, edges: SideEdges, names: Option<&[u32]>) -> Block {
        let SideEdges { sources, offsets, columns, data } = edges;
        let make = if layer == 0 && self.ends_at_inputs { Block::one_way } else { Block::new };
        let block = make(sources, offsets, columns, data);
        match names {
            Some(names) => block.naming(names[..sources].to_vec()),
            None => block,
        }
    }
}

/// The place of each id among all.
fn ranks(ids: &[u64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    order.sort_unstable_by_key(|&row| ids[row as usize]);
    let mut ranks = vec![0; ids.len()];
    order.iter().zip(0..).for_each(|(&row, place)| ranks[row as usize] = place);
    ranks
}

/// The edges between own rows, without the loops that a model adds.
pub fn own_edges(local: &Local, loops: bool) -> Edges<u32> {
    merged(local, false, loops)
}

/// All in-edges of own rows, or those from own rows: numbers are own rows, then halo rows, in the order of global ids
/// within a row. The loops that a model adds are left out where all weigh 1, as loops do that nobody lists.
fn merged(local: &Local, with_halo: bool, loops: bool) -> Edges<u32> {
    let mut blocks = vec![(&local.own, 0)];
    if with_halo {
        blocks.push((&local.halo, local.ids.len() as u32));
    }
    let weighted = blocks.iter().any(|(block, _)| block.weights().is_some());
    let largest = blocks.iter().filter_map(|(block, _)| block.relations()?.iter().max().copied()).max();
    let related = largest.map_or(0, |relation| usize::from(relation) + 1);
    let drops_loops = loops && !weighted && related == 0;
    let (mut offsets, mut sources) = (vec![0u64], Vec::new());
    let (mut weights, mut relations) = (Vec::new(), Vec::new());
    let mut row_edges: Vec<(u32, u32, f32, u16)> = Vec::new();
    for row in 0..local.ids.len() {
        row_edges.clear();
        for (block, first) in &blocks {
            let csr = block.forward();
            for edge in csr.offsets[row]..csr.offsets[row + 1] {
                let column = csr.columns[edge];
                if drops_loops && first + column == row as u32 {
                    continue;
                }
                let weight = block.weights().map_or(1.0, |weights| weights[edge]);
                let relation = block.relations().map_or(0, |relations| relations[edge]);
                row_edges.push((block.names()[column as usize], first + column, weight, relation));
            }
        }
        // Stable, so that parallel edges keep their order.
        row_edges.sort_by_key(|edge| edge.0);
        for &(_, source, weight, relation) in &row_edges {
            sources.push(source);
            if weighted {
                weights.push(weight);
            }
            if related > 0 {
                relations.push(relation);
            }
        }
        offsets.push(sources.len() as u64);
    }
    let relations = (related > 0).then_some(Relations { count: related, of: relations });
    let data = EdgeData { weights: weighted.then_some(weights), relations, held: None };
    Edges { offsets, sources, data }
}

/// What other workers have drawn for nodes of theirs that a batch reads.
#[derive(Debug, Clone, Default)]
pub(super) struct Elsewhere {
    of: HashMap<(u16, u32), Told>,
    edges: Drawn,
}

/// The edges into one node.
#[derive(Debug, Clone)]
struct Told {
    edges: Range<usize>,
    degree: u32,
    loop_data: (f32, u16),
}

impl Elsewhere {
    /// An empty table for edges with weights, or relations.
    pub fn new([weighted, related]: [bool; 2]) -> Elsewhere {
        Elsewhere { of: HashMap::new(), edges: Drawn::new(weighted, related) }
    }

    /// Adds what was drawn for a node; edges are appended by `edges`.
    pub fn tell<E>(
        &mut self,
        layer: usize,
        node: u32,
        degree: u32,
        loop_data: (f32, u16),
        edges: impl FnOnce(&mut Drawn) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.edges.sources.len();
        edges(&mut self.edges)?;
        let edges = start..self.edges.sources.len();
        self.of.insert((layer as u16, node), Told { edges, degree, loop_data });
        Ok(())
    }
}

/// What the last `depth` layers of a round read: own nodes draw, others were told.
pub(super) struct RoundLists<'a> {
    pub draws: &'a Draws,
    pub own: CsrLists<'a>,
    pub elsewhere: &'a Elsewhere,
    pub own_rows: usize,
    /// The first of these layers.
    pub first: usize,
}

impl Lists for RoundLists<'_> {
    fn append_all(&self, layer: usize, nodes: &[u32], into: &mut Drawn, ends: &mut Vec<usize>, degrees: &mut Vec<u32>) {
        // Many own nodes at once are drawn faster.
        for nodes in nodes.chunk_by(|a, b| ((*a as usize) < self.own_rows) == ((*b as usize) < self.own_rows)) {
            if nodes.first().is_some_and(|&node| (node as usize) < self.own_rows) {
                self.own.append_all(self.first + layer, nodes, into, ends, degrees);
                continue;
            }
            for &node in nodes {
                if self.loops() {
                    into.push(node, self.loop_data(node));
                }
                degrees.push(self.append(layer, node, into));
                ends.push(into.sources.len());
            }
        }
    }

    fn append(&self, layer: usize, node: u32, into: &mut Drawn) -> u32 {
        let layer = self.first + layer;
        if (node as usize) < self.own_rows {
            return self.own.append(layer, node, into);
        }
        let Some(told) = self.elsewhere.of.get(&(layer as u16, node)) else { return 0 };
        let from = &self.elsewhere.edges;
        into.sources.extend_from_slice(&from.sources[told.edges.clone()]);
        if let (Some(into), Some(from)) = (&mut into.weights, &from.weights) {
            into.extend_from_slice(&from[told.edges.clone()]);
        }
        if let (Some(into), Some(from)) = (&mut into.relations, &from.relations) {
            into.extend_from_slice(&from[told.edges.clone()]);
        }
        told.degree
    }

    fn weighted(&self) -> bool {
        self.draws.weighted
    }

    fn related(&self) -> bool {
        self.draws.related
    }

    fn loops(&self) -> bool {
        self.draws.loops
    }

    fn loop_data(&self, node: u32) -> (f32, u16) {
        if (node as usize) < self.own_rows {
            return self.own.loop_data(node);
        }
        // Every layer that reads a node was told the same.
        let told = |layer: usize| self.elsewhere.of.get(&(layer as u16, node));
        (0..self.draws.layers()).find_map(told).map_or((1.0, 0), |told| told.loop_data)
    }
}
