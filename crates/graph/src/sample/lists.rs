//! Where the drawn in-neighbours of a node come from.

use std::ops::Range;

use laconic_key::{Key, Purpose};
use rayon::prelude::*;

use crate::edges::Edges;
use crate::graph::Graph;
use crate::sample::draw::draw;
use crate::sample::hop::Drawn;
use crate::sample::skip::Skip;

/// Gives the in-neighbours that were drawn for a node, in a dense numbering of its own.
pub trait Lists: Sync {
    /// Appends the edges into `node` that `layer` reads, and says how many in-edges the node has in full.
    fn append(&self, layer: usize, node: u32, into: &mut Drawn) -> u32;

    /// [`Lists::append`] for several nodes, each with its loop first where there are loops; `ends` gets where the edges
    /// of each end, `degrees` what was said of it.
    fn append_all(&self, layer: usize, nodes: &[u32], into: &mut Drawn, ends: &mut Vec<usize>, degrees: &mut Vec<u32>) {
        for &node in nodes {
            if self.loops() {
                into.push(node, self.loop_data(node));
            }
            degrees.push(self.append(layer, node, into));
            ends.push(into.sources.len());
        }
    }

    /// Whether edges have weights, which [`Lists::append`] then appends too.
    fn weighted(&self) -> bool {
        false
    }

    /// Whether edges have relations, which [`Lists::append`] then appends too.
    fn related(&self) -> bool {
        false
    }

    /// Whether each node gets a loop besides, which [`Lists::append`] then neither appends nor counts.
    fn loops(&self) -> bool {
        false
    }

    /// Weight and relation of that loop.
    fn loop_data(&self, _node: u32) -> (f32, u16) {
        (1.0, 0)
    }
}

/// The in-edges of all nodes that are in one place, as draws need them: those of a node in ascending order of the
/// sources' global ids. So a position means the same edge however the graph is divided.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Neighbourhoods {
    edges: Edges<u32>,
    /// The global id of each node; `None` where that is its number.
    ids: Option<Vec<u64>>,
    /// The nodes with an edge to themselves, ascending.
    loops: Vec<u32>,
}

impl Neighbourhoods {
    /// Those of a graph that is in one place.
    pub fn of(graph: Graph) -> Self {
        Self::new(graph, None)
    }

    /// Those of rows with these global ids, `None` where ids are numbers. Sources are numbers, in the order of their
    /// global ids within a row; some may be of nodes whose own in-edges are elsewhere.
    pub fn new(edges: Edges<u32>, ids: Option<Vec<u64>>) -> Self {
        let rows = (0..edges.rows() as u32).into_par_iter();
        let loops = rows.filter(|&node| edges.in_neighbours(node as usize).contains(&node)).collect();
        Neighbourhoods { edges, ids, loops }
    }

    /// The number of nodes whose in-edges these are.
    pub fn rows(&self) -> usize {
        self.edges.rows()
    }

    /// The positions of the edges into `node`; none for a node whose in-edges are elsewhere.
    fn in_edges(&self, node: u32) -> Range<usize> {
        match self.edges.offsets.get(node as usize..node as usize + 2) {
            Some(bounds) => bounds[0] as usize..bounds[1] as usize,
            None => 0..0,
        }
    }

    /// The sources of the edges into `node`.
    pub fn in_neighbours(&self, node: u32) -> &[u32] {
        &self.edges.sources[self.in_edges(node)]
    }

    /// Appends the edges at those positions.
    #[inline]
    fn look_up(&self, places: Range<usize>, into: &mut Drawn) {
        let (positions, from) = (&into.positions[places], &self.edges);
        into.sources.extend(positions.iter().map(|&position| from.sources[position]));
        if let (Some(into), Some(from)) = (&mut into.weights, &from.data.weights) {
            into.extend(positions.iter().map(|&position| from[position]));
        }
        if let (Some(into), Some(from)) = (&mut into.relations, &from.data.relations) {
            into.extend(positions.iter().map(|&position| from.of[position]));
        }
    }
}

/// So many nodes are drawn for at a time; see [`CsrLists::append_all`].
const ROWS: usize = 128;

/// Keyed draws from lists in memory.
#[derive(Debug, Clone)]
pub struct CsrLists<'a> {
    of: &'a Neighbourhoods,
    /// For each layer: how many to draw, and by which key.
    layers: Vec<(Option<usize>, Key)>,
    skip: Option<&'a Skip>,
    loops: bool,
}

impl<'a> CsrLists<'a> {
    /// Draws `fanouts[l]` in-neighbours for layer `l`, or all where that is `None`.
    pub fn new(of: &'a Neighbourhoods, fanouts: &[Option<usize>], key: Key) -> Self {
        let layers = fanouts.iter().enumerate().map(|(layer, &fanout)| (fanout, key.with(layer as u64))).collect();
        CsrLists { of, layers, skip: None, loops: false }
    }

    /// The key of draws in the run with this seed, in this round.
    pub fn key(seed: u64, round: u64) -> Key {
        Key::new(seed, Purpose::Neighbours).with(round)
    }

    /// The same without these edges: neither drawn nor counted.
    #[must_use]
    pub fn without(self, skip: &'a Skip) -> Self {
        CsrLists { skip: Some(skip), ..self }
    }

    /// The same with one loop at each node besides what is drawn, as some layers want it. A loop that the graph has is
    /// then not drawn, and the loop weighs what it weighs, the last one where there are several.
    #[must_use]
    pub fn with_loops(self) -> Self {
        CsrLists { loops: true, ..self }
    }

    /// Draws positions of `edges`, those of `node`, and says how many there are to draw from.
    #[inline]
    fn draw(&self, layer: usize, node: u32, edges: Range<usize>, into: &mut Vec<usize>) -> u32 {
        if edges.is_empty() {
            return 0;
        }
        let id = self.of.ids.as_ref().map_or(u64::from(node), |ids| ids[node as usize]);
        let (fanout, key) = self.layers[layer];
        let key = key.with(id);
        let skip = self.skip.map_or(&[][..], |skip| skip.edges_into(node));
        let has_loop = self.loops && self.of.loops.binary_search(&node).is_ok();
        if skip.is_empty() && !has_loop {
            let degree = edges.len() as u32;
            draw(key, edges, fanout, into);
            return degree;
        }
        let stays =
            |source: u32| !(has_loop && source == node) && skip.binary_search_by_key(&source, |pair| pair.1).is_err();
        draw_some(key, (edges.clone(), &self.of.edges.sources[edges]), fanout, &stays, into)
    }
}

/// [`draw`] from those edges of a row whose source stays.
#[cold]
fn draw_some(
    key: Key,
    (edges, row): (Range<usize>, &[u32]),
    fanout: Option<usize>,
    stays: &dyn Fn(u32) -> bool,
    into: &mut Vec<usize>,
) -> u32 {
    let left = row.iter().filter(|&&source| stays(source)).count();
    let start = into.len();
    draw(key, 0..left, fanout, into);
    // From places among those that are left to positions in the row.
    let mut rest = edges.zip(row).filter(|&(_, &source)| stays(source)).map(|(position, _)| position);
    let mut next = 0;
    for place in &mut into[start..] {
        let passed = *place - next;
        next = *place + 1;
        *place = rest.nth(passed).expect("as many stay as were counted");
    }
    left as u32
}

impl Lists for CsrLists<'_> {
    fn append(&self, layer: usize, node: u32, into: &mut Drawn) -> u32 {
        into.positions.clear();
        let degree = self.draw(layer, node, self.of.in_edges(node), &mut into.positions);
        self.of.look_up(0..into.positions.len(), into);
        degree
    }

    /// In three passes: boundaries, draws, sources. What one pass reads does not depend on what it read before, so the
    /// processor waits for many places of memory at once, and that is where the time goes.
    fn append_all(&self, layer: usize, nodes: &[u32], into: &mut Drawn, ends: &mut Vec<usize>, degrees: &mut Vec<u32>) {
        let mut rows = [const { 0..0 }; ROWS];
        for nodes in nodes.chunks(ROWS) {
            for (edges, &node) in rows.iter_mut().zip(nodes) {
                *edges = self.of.in_edges(node);
            }
            into.positions.clear();
            let loops = usize::from(self.loops);
            for ((edges, &node), before) in rows.iter_mut().zip(nodes).zip(0..) {
                let start = into.positions.len();
                degrees.push(self.draw(layer, node, edges.clone(), &mut into.positions));
                *edges = start..into.positions.len();
                ends.push(into.sources.len() + loops * (before + 1) + edges.end);
            }
            if !self.loops {
                self.of.look_up(0..into.positions.len(), into);
                continue;
            }
            for (places, &node) in rows.iter().zip(nodes) {
                into.push(node, self.loop_data(node));
                self.of.look_up(places.clone(), into);
            }
        }
    }

    fn weighted(&self) -> bool {
        self.of.edges.data.weights.is_some()
    }

    fn related(&self) -> bool {
        self.of.edges.data.relations.is_some()
    }

    fn loops(&self) -> bool {
        self.loops
    }

    fn loop_data(&self, node: u32) -> (f32, u16) {
        let given = || {
            self.of.loops.binary_search(&node).ok()?;
            let (Edges { sources, data, .. }, edges) = (&self.of.edges, self.of.in_edges(node));
            let at = edges.start + sources[edges].iter().rposition(|&source| source == node)?;
            Some((data.weights.as_ref().map_or(1.0, |weights| weights[at]), data.relation(at)))
        };
        given().unwrap_or((1.0, 0))
    }
}
