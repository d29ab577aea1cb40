//! Edges by destination, with what is known of each: the form of a graph, a part and a block alike.

use std::ops::Range;

use crate::error::{GraphError, Result};
use crate::rules::{Violation, length_violation};

/// Edges as compressed sparse rows by destination: for each row, the sources of the edges that end at it, ascending.
///
/// What `Id` names is up to the holder: rows of the graph itself ([`crate::graph::Graph`]), global ids
/// ([`crate::part::Part`]), or rows of others ([`crate::plan::Topology`]).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edges<Id> {
    /// `offsets[v]..offsets[v + 1]` are the positions in [`Edges::sources`] of the edges that end at row `v`; length
    /// rows + 1.
    pub offsets: Vec<u64>,
    /// The source of each edge.
    pub sources: Vec<Id>,
    /// What else is known of each edge, in the order of [`Edges::sources`].
    pub data: EdgeData,
}

/// What is known of each of a list of edges, column by column; a column that is missing says the same of all edges.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EdgeData {
    /// The weight of each edge; `None` where every edge weighs 1.
    pub weights: Option<Vec<f32>>,
    /// Which relation each edge is of; `None` where there is one kind of edge.
    pub relations: Option<Relations>,
    /// Which edges the data hold out to be predicted: 0 none, 1 for validation, 2 for testing
    /// ([`crate::links::LinkRole`]); `None` where they do not say.
    pub held: Option<Vec<u8>>,
}

/// The kinds of edges: there may be several edges between the same two nodes, one of each relation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Relations {
    /// How many relations there are; those of edges lie below.
    pub count: usize,
    /// The relation of each edge.
    pub of: Vec<u16>,
}

/// Values in pieces of these lengths, for a thread each.
pub(crate) fn in_pieces<'a, T>(values: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut rest = values;
    let piece = |&length: &usize| rest.split_off_mut(..length).expect("values of all pieces");
    lengths.iter().map(piece).collect()
}

impl<Id> Edges<Id> {
    /// Edges of which nothing else is known.
    pub fn new(offsets: Vec<u64>, sources: Vec<Id>) -> Self {
        Edges { offsets, sources, data: EdgeData::default() }
    }

    /// The number of rows that edges may end at.
    ///
    /// # Panics
    ///
    /// If [`Edges::offsets`] is empty.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of (directed) edges.
    pub fn edges(&self) -> usize {
        self.sources.len()
    }

    /// The positions in [`Edges::sources`] of the edges that end at `row`.
    pub fn in_edges(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// Rows in so many pieces of about as many edges, one at least.
    pub(crate) fn pieces(&self, count: usize) -> Vec<Range<usize>> {
        let bound = |piece: usize| {
            let edge = (self.edges() as u128 * piece as u128 / count as u128) as u64;
            self.offsets[..self.rows()].partition_point(|&offset| offset < edge)
        };
        let end = |piece: usize| if piece < count { bound(piece) } else { self.rows() };
        (0..count).map(|piece| bound(piece)..end(piece + 1)).collect()
    }

    /// The sources of the edges that end at `row`.
    pub fn in_neighbours(&self, row: usize) -> &[Id] {
        &self.sources[self.in_edges(row)]
    }
}

impl EdgeData {
    /// The same columns without any edge yet, with room for `edges` of them.
    pub fn like(&self, edges: usize) -> EdgeData {
        let relations = |r: &Relations| Relations { count: r.count, of: Vec::with_capacity(edges) };
        EdgeData {
            weights: self.weights.as_ref().map(|_| Vec::with_capacity(edges)),
            relations: self.relations.as_ref().map(relations),
            held: self.held.as_ref().map(|_| Vec::with_capacity(edges)),
        }
    }

    /// The same columns of `edges` edges, to be [`set`](EdgeData::set).
    pub(crate) fn blank(&self, edges: usize) -> EdgeData {
        let relations = |r: &Relations| Relations { count: r.count, of: vec![0; edges] };
        EdgeData {
            weights: self.weights.as_ref().map(|_| vec![0.0; edges]),
            relations: self.relations.as_ref().map(relations),
            held: self.held.as_ref().map(|_| vec![0; edges]),
        }
    }

    /// Appends what `from`, of the same columns, knows of the edges of `range`.
    pub fn extend(&mut self, from: &EdgeData, range: Range<usize>) {
        if let (Some(into), Some(from)) = (&mut self.weights, &from.weights) {
            into.extend_from_slice(&from[range.clone()]);
        }
        if let (Some(into), Some(from)) = (&mut self.relations, &from.relations) {
            into.of.extend_from_slice(&from.of[range.clone()]);
        }
        if let (Some(into), Some(from)) = (&mut self.held, &from.held) {
            into.extend_from_slice(&from[range]);
        }
    }

    /// Appends an edge that is like any other: of weight 1 and the first relation, and not held out.
    pub(crate) fn push_plain(&mut self) {
        self.weights.iter_mut().for_each(|weights| weights.push(1.0));
        self.relations.iter_mut().for_each(|relations| relations.of.push(0));
        self.held.iter_mut().for_each(|held| held.push(0));
    }

    /// Sets what is known of the edge at `at` to what `from`, of the same columns, knows of `edge`.
    pub(crate) fn set(&mut self, at: usize, from: &EdgeData, edge: usize) {
        if let (Some(into), Some(from)) = (&mut self.weights, &from.weights) {
            into[at] = from[edge];
        }
        if let (Some(into), Some(from)) = (&mut self.relations, &from.relations) {
            into.of[at] = from.of[edge];
        }
        if let (Some(into), Some(from)) = (&mut self.held, &from.held) {
            into[at] = from[edge];
        }
    }

    /// Moves what is known of the edge at `from` to the place `to`.
    pub(crate) fn shift(&mut self, to: usize, from: usize) {
        self.weights.iter_mut().for_each(|weights| weights[to] = weights[from]);
        self.relations.iter_mut().for_each(|relations| relations.of[to] = relations.of[from]);
        self.held.iter_mut().for_each(|held| held[to] = held[from]);
    }

    /// Keeps the first `edges` edges.
    pub(crate) fn truncate(&mut self, edges: usize) {
        if let Some(weights) = &mut self.weights {
            weights.truncate(edges);
            weights.shrink_to_fit();
        }
        if let Some(relations) = &mut self.relations {
            relations.of.truncate(edges);
            relations.of.shrink_to_fit();
        }
        if let Some(held) = &mut self.held {
            held.truncate(edges);
            held.shrink_to_fit();
        }
    }

    /// The relation of an edge, 0 where there is one kind.
    pub fn relation(&self, edge: usize) -> u16 {
        self.relations.as_ref().map_or(0, |relations| relations.of[edge])
    }

    /// The relation of an edge, where there are several.
    pub fn told_apart(&self, edge: usize) -> Option<u16> {
        self.relations.as_ref().filter(|relations| relations.count > 1).map(|relations| relations.of[edge])
    }

    /// How many relations edges are of; 0 where there is one kind of edge.
    pub fn kinds(&self) -> usize {
        self.relations.as_ref().map_or(0, |relations| relations.count)
    }

    /// How many edges are held out, for validation and for testing; `None` where that is not said.
    pub fn held_counts(&self) -> Option<[u64; 2]> {
        let held = self.held.as_ref()?;
        Some([1, 2].map(|role| held.iter().filter(|&&of| of == role).count() as u64))
    }

    /// How many bytes an edge takes.
    pub fn bytes_per_edge(&self) -> u64 {
        let weight = if self.weights.is_some() { 4 } else { 0 };
        weight + if self.relations.is_some() { 2 } else { 0 } + u64::from(self.held.is_some())
    }

    /// A column that does not say something of each of `edges` edges, or names a relation, or a split, that is none.
    pub(crate) fn violation(&self, edges: usize) -> Option<Violation> {
        let weights = self.weights.as_ref().and_then(|weights| length_violation("weights", weights.len(), edges));
        let relations = || self.relations.as_ref().and_then(|relations| relations.violation(edges));
        let held = || {
            let held = self.held.as_ref()?;
            let beyond = || held.iter().find(|&&role| role > 2).map(|role| format!("expected 0, 1 or 2, found {role}"));
            length_violation("held", held.len(), edges).or_else(|| beyond().map(|what| ("held", what)))
        };
        weights.or_else(relations).or_else(held)
    }
}

impl Relations {
    /// How many relations there may be; half as many where edges get their other direction.
    pub const MOST: usize = 1 << 16;

    /// Makes relations of their own of these, those of the other directions of edges; both lists then know of all.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(crate) fn reverse(&mut self, of_forward: &mut Relations) -> Result<()> {
        let (given, all) = (of_forward.count, 2 * of_forward.count);
        if all > Relations::MOST {
            let most = Relations::MOST / 2;
            let what = format!("expected at most {most} relations of edges that get their other direction");
            return Err(GraphError::invalid(format!("{what}, found {given}")));
        }
        self.of.iter_mut().for_each(|relation| *relation += given as u16);
        (self.count, of_forward.count) = (all, all);
        Ok(())
    }

    fn violation(&self, edges: usize) -> Option<Violation> {
        let beyond = || {
            let last = self.of.iter().copied().max().filter(|&last| usize::from(last) >= self.count)?;
            Some(("relations", format!("expected relations below {}, found {last}", self.count)))
        };
        let many = || {
            let what = format!("expected at most {} relations, found {}", Relations::MOST, self.count);
            (self.count > Relations::MOST).then_some(("relations", what))
        };
        length_violation("relations", self.of.len(), edges).or_else(beyond).or_else(many)
    }
}

impl From<Option<Vec<f32>>> for EdgeData {
    fn from(weights: Option<Vec<f32>>) -> Self {
        EdgeData { weights, ..EdgeData::default() }
    }
}
