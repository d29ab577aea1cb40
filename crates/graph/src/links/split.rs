//! Edges held out for validation and testing, drawn from a seed.

use crate::error::{GraphError, Result};
use crate::part::Part;
use laconic_key::{Key, Purpose};

/// What an edge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkRole {
    /// It passes messages and is learned from.
    Train,
    /// It chooses the best round.
    Val,
    /// It is only for the final figure.
    Test,
}

/// An edge split to draw: each pair of nodes that an edge joins is held out with these chances, in both directions and
/// with the edges of all relations between them. Whatever stayed of these would pass messages along what is to be
/// predicted, and tell it. Edges from a node to itself are never held out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeSplit {
    /// The chance of being for validation.
    pub val: f64,
    /// The chance of being for testing.
    pub test: f64,
    /// The seed that decides together with the two ids, and nothing else.
    pub seed: u64,
}

impl EdgeSplit {
    /// The split itself, if its chances are some and leave edges to learn from.
    ///
    /// # Errors
    ///
    /// If a chance is not within 0 to 1, or both add up to 1.
    pub fn checked(self) -> Result<EdgeSplit> {
        let EdgeSplit { val, test, .. } = self;
        let is_share = |share: f64| (0.0..1.0).contains(&share);
        if is_share(val) && is_share(test) && val + test < 1.0 {
            return Ok(self);
        }
        let what = "expected shares of 0 or more that add up to less than 1";
        Err(GraphError::invalid(format!("an edge split of val {val} and test {test}: {what}")))
    }

    /// What all edges between two nodes, by global id, are for.
    pub fn role(&self, a: u64, b: u64) -> LinkRole {
        if a == b {
            return LinkRole::Train;
        }
        match Key::new(self.seed, Purpose::EdgeSplit).with(a.min(b)).with(a.max(b)).unit() {
            drawn if drawn < self.val => LinkRole::Val,
            drawn if drawn < self.val + self.test => LinkRole::Test,
            _ => LinkRole::Train,
        }
    }
}

/// An edge, or a pair of nodes that stands for none, by the global ids of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Where it starts.
    pub source: u64,
    /// Where it ends.
    pub target: u64,
    /// Which relation it is of, where there are several and they are told apart.
    pub relation: Option<u16>,
}

impl From<(u64, u64)> for Pair {
    fn from((source, target): (u64, u64)) -> Pair {
        Pair { source, target, relation: None }
    }
}

/// Edges that end at own nodes, by the global ids of both ends. Those of several relations between the same two nodes
/// are several edges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// The source of each edge.
    pub sources: Vec<u64>,
    /// The target of each edge, an own node.
    pub targets: Vec<u64>,
    /// The relation of each edge; empty where there is one kind of edge, or they are not told apart.
    pub relations: Vec<u16>,
}

impl Links {
    /// The number of edges.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether there are no edges.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Each edge as source and target.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sources.iter().copied().zip(self.targets.iter().copied())
    }

    /// Each edge with its relation.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> {
        let relations = self.relations.iter().copied().map(Some).chain(std::iter::repeat(None));
        self.iter().zip(relations).map(|((source, target), relation)| Pair { source, target, relation })
    }

    /// Whether this is one of the edges of a part, which ascend by target and source. A pair without a relation is one
    /// if an edge of any relation is.
    pub fn has(&self, pair: impl Into<Pair>) -> bool {
        let Pair { source, target, relation } = pair.into();
        let first = self.targets.partition_point(|&other| other < target);
        let last = first + self.targets[first..].partition_point(|&other| other == target);
        let begin = first + self.sources[first..last].partition_point(|&other| other < source);
        let end = begin + self.sources[begin..last].partition_point(|&other| other == source);
        match relation {
            Some(relation) if !self.relations.is_empty() => self.relations[begin..end].contains(&relation),
            _ => begin < end,
        }
    }

    /// Adds an edge, with a relation if the others have theirs.
    pub fn push(&mut self, edge: impl Into<Pair>) {
        let Pair { source, target, relation } = edge.into();
        self.sources.push(source);
        self.targets.push(target);
        self.relations.extend(relation);
    }

    /// The edges of a part that join two nodes: what is learned from.
    pub fn of(part: &Part) -> Links {
        let mut links = Links::default();
        for (row, &target) in part.nodes.iter().enumerate() {
            for at in part.edges.in_edges(row).filter(|&at| part.edges.sources[at] != target) {
                links.push(Pair { source: part.edges.sources[at], target, relation: part.edges.data.told_apart(at) });
            }
        }
        links
    }

    /// Sources, targets and relations.
    pub fn columns(&self) -> (&Vec<u64>, &Vec<u64>, &Vec<u16>) {
        (&self.sources, &self.targets, &self.relations)
    }
}

/// The edges of a part that are held out. Each is at the owner of its target; its other direction, if there is one, is
/// at the owner of its source.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeldOut {
    /// Edges that choose the best round.
    pub val: Links,
    /// Edges that are only for the final figure.
    pub test: Links,
}

/// Takes the edges that `split` holds out from a part: they pass no messages and count in no degree.
///
/// # Errors
///
/// If the split is none ([`EdgeSplit::checked`]).
pub fn hold_out(part: Part, split: &EdgeSplit) -> Result<(Part, HeldOut)> {
    let split = split.checked()?;
    Ok(take_out(part, |_, source, target| split.role(source, target)))
}

/// The same of the edges that the data themselves hold out ([`crate::edges::EdgeData::held`]), each direction by
/// itself; none where they do not say.
pub fn hold_out_given(mut part: Part) -> (Part, HeldOut) {
    let given = part.edges.data.held.take().unwrap_or_default();
    part.global.held = None;
    take_out(part, |edge, source, target| match given.get(edge) {
        _ if source == target => LinkRole::Train,
        Some(1) => LinkRole::Val,
        Some(2) => LinkRole::Test,
        _ => LinkRole::Train,
    })
}

/// The edges that [`hold_out`] by this split, or [`hold_out_given`] without one, would take from a part, which stays.
pub fn held_in(part: &Part, split: Option<&EdgeSplit>) -> HeldOut {
    let (mut held, edges) = (HeldOut::default(), &part.edges);
    let given = edges.data.held.as_deref().unwrap_or_default();
    for (row, &target) in part.nodes.iter().enumerate() {
        for at in edges.in_edges(row).filter(|&at| edges.sources[at] != target) {
            let edge = Pair { source: edges.sources[at], target, relation: edges.data.told_apart(at) };
            let role = split.map(|split| split.role(edge.source, target));
            match (role, given.get(at)) {
                (Some(LinkRole::Val), _) | (None, Some(1)) => held.val.push(edge),
                (Some(LinkRole::Test), _) | (None, Some(2)) => held.test.push(edge),
                _ => {}
            }
        }
    }
    held
}

/// Takes out what has a role other than training, by its position and both ends.
fn take_out(mut part: Part, role: impl Fn(usize, u64, u64) -> LinkRole) -> (Part, HeldOut) {
    let mut held = HeldOut::default();
    let edges = &mut part.edges;
    let (mut kept, mut begin) = (0, 0);
    for (row, &target) in part.nodes.iter().enumerate() {
        let end = edges.offsets[row + 1] as usize;
        for at in begin..end {
            let source = edges.sources[at];
            let edge = Pair { source, target, relation: edges.data.told_apart(at) };
            match role(at, source, target) {
                LinkRole::Val => held.val.push(edge),
                LinkRole::Test => held.test.push(edge),
                LinkRole::Train => {
                    edges.sources[kept] = source;
                    edges.data.shift(kept, at);
                    kept += 1;
                }
            }
        }
        begin = end;
        edges.offsets[row + 1] = kept as u64;
    }
    edges.sources.truncate(kept);
    edges.data.truncate(kept);
    (part, held)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{BuildOptions, build_graph};
    use crate::dataset::{Dataset, Features, Labels};
    use crate::edges::{EdgeData, Relations};
    use crate::graph::Graph;
    use crate::part::cut;
    use std::collections::BTreeSet;

    const SPLIT: EdgeSplit = EdgeSplit { val: 0.1, test: 0.2, seed: 7 };

    /// A directed graph with loops and edges of which the other direction is missing, and each edge its own weight.
    fn dataset() -> Dataset {
        let key = Key::new(1, Purpose::Test);
        let draw = |edge: u64, end: u64| key.with(edge).with(end).below(200) as u32;
        let edges: BTreeSet<(u32, u32)> =
            (0..3000).map(|edge| (draw(edge, 0), draw(edge, 1))).flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(a, b)| a <= b || (a + b) % 3 > 0).collect();
        let mut graph = Graph::from_edges(200, &edges).unwrap();
        graph.data.weights = Some((0..graph.edges()).map(|edge| edge as f32).collect());
        Dataset::new("random", graph, Features::None, Labels::None, vec![]).unwrap()
    }

    type Held = BTreeSet<(u64, u64)>;

    /// Held out, and what is left with its weights, over all parts.
    fn over(parts: u32) -> (Held, Held, BTreeSet<(u64, u64, u32)>) {
        let assignment: Vec<u32> =
            (0..200u64).map(|v| (Key::new(2, Purpose::Test).with(v).bits() % 64) as u32 % parts).collect();
        let (mut val, mut test, mut train) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for part in cut(&dataset(), None, &assignment, parts).unwrap() {
            let seen = held_in(&part, Some(&SPLIT));
            let (part, held) = hold_out(part, &SPLIT).unwrap();
            assert_eq!(seen, held);
            part.check().unwrap();
            val.extend(held.val.iter());
            test.extend(held.test.iter());
            for (row, &target) in part.nodes.iter().enumerate() {
                let weights = part.edges.data.weights.as_ref().expect("edges have weights");
                train.extend(part.edges.in_edges(row).map(|at| (part.edges.sources[at], target, weights[at] as u32)));
            }
        }
        (val, test, train)
    }

    #[test]
    fn both_directions_are_held_out_together_and_any_partition_holds_out_the_same() {
        let (val, test, train) = over(1);
        assert_eq!((val.clone(), test.clone(), train.clone()), over(5));
        let roles = |edge: (u64, u64)| [val.contains(&edge), test.contains(&edge)];
        let graph = dataset().graph;
        let mut pairs = BTreeSet::new();
        for (target, source) in
            (0..200).flat_map(|v| graph.in_neighbours(v).iter().map(move |&s| (v as u64, u64::from(s))))
        {
            let back = graph.in_neighbours(source as usize).contains(&(target as u32));
            assert!(!back || roles((source, target)) == roles((target, source)));
            let is_train = train.iter().any(|&(s, t, _)| (s, t) == (source, target));
            assert_eq!(roles((source, target)).iter().filter(|is| **is).count() + usize::from(is_train), 1);
            assert!(source != target || is_train, "a loop is no link to predict");
            pairs.insert((source.min(target), source.max(target)));
        }
        // Weights stay with their edges.
        for &(source, target, weight) in &train {
            let at = graph.in_edges(target as usize).start
                + graph.in_neighbours(target as usize).binary_search(&(source as u32)).unwrap();
            assert_eq!(weight, at as u32);
        }
        // A tenth and a fifth of the pairs, within five standard deviations of about √(2000 · 0.1 · 0.9) = 13 and 18.
        let of = |held: &Held| held.iter().map(|(s, t)| (s.min(t), s.max(t))).collect::<BTreeSet<_>>().len() as f64;
        let all = pairs.iter().filter(|(a, b)| a != b).count() as f64;
        assert!((of(&val) - 0.1 * all).abs() < 5.0 * (0.09 * all).sqrt(), "{} of {all}", of(&val));
        assert!((of(&test) - 0.2 * all).abs() < 5.0 * (0.16 * all).sqrt(), "{} of {all}", of(&test));
    }

    /// Every pair of nodes with edges of two or three relations: all go one way, and each keeps its relation.
    #[test]
    fn edges_of_all_relations_between_two_nodes_are_held_out_together_and_told_apart() {
        let ends = (0..40u32).flat_map(|a| (0..40u32).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let all: BTreeSet<(u64, u64, u16)> =
            ends.flat_map(|(a, b)| (0..2 + (a + b) % 2).map(move |of| (a.into(), b.into(), 2 * of as u16))).collect();
        let (sources, targets) = all.iter().map(|edge| (edge.0 as u32, edge.1 as u32)).unzip();
        let relations = Some(Relations { count: 5, of: all.iter().map(|edge| edge.2).collect() });
        let data = EdgeData { relations, ..EdgeData::default() };
        let graph = build_graph(40, sources, targets, data, BuildOptions::default()).unwrap().0;
        let dataset = Dataset::new("typed", graph, Features::None, Labels::None, vec![]).unwrap();
        let assignment: Vec<u32> = (0..40).map(|node| node % 3).collect();
        let (mut found, mut held_out) = (BTreeSet::new(), 0);
        for part in cut(&dataset, None, &assignment, 3).unwrap() {
            let own = part.nodes.clone();
            let (part, held) = hold_out(part, &SPLIT).unwrap();
            let train = Links::of(&part);
            for (links, role) in [(&train, LinkRole::Train), (&held.val, LinkRole::Val), (&held.test, LinkRole::Test)] {
                assert!(!links.is_empty() && links.relations.len() == links.len());
                held_out += if role == LinkRole::Train { 0 } else { links.len() };
                for edge @ Pair { source, target, relation } in links.pairs() {
                    assert_eq!(SPLIT.role(target, source), role);
                    assert!(links.has(edge) && links.has((source, target)));
                    assert!(!links.has(Pair { relation: Some(1), ..edge }), "no edge is of relation 1");
                    assert!(found.insert((source, target, relation.unwrap())));
                }
                let is_here = |&(source, target): &(u64, u64)| {
                    own.binary_search(&target).is_ok() && source != target && SPLIT.role(source, target) == role
                };
                let pairs = (0..40).flat_map(|source| (0..40).map(move |target| (source, target)));
                assert!(pairs.filter(|pair| !is_here(pair)).all(|pair| !links.has(pair)));
            }
        }
        assert_eq!(found, all);
        assert!(held_out > 500, "{held_out}");
    }

    #[test]
    fn shares_that_leave_nothing_are_refused() {
        for (val, test) in [(0.5, 0.5), (1.0, 0.0), (-0.1, 0.0), (f64::NAN, 0.1), (0.0, 1.5)] {
            let error = EdgeSplit { val, test, seed: 0 }.checked().unwrap_err().to_string();
            assert!(error.contains("less than 1"), "{error}");
        }
        let (part, held) = hold_out(
            cut(&dataset(), None, &[0; 200], 1).unwrap().remove(0),
            &EdgeSplit { val: 0.0, test: 0.0, seed: 3 },
        )
        .unwrap();
        assert!(held.val.is_empty() && held.test.is_empty() && part.edges.edges() == dataset().graph.edges());
    }
}
