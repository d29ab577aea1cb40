//! Pairs of nodes that data give as no edges, to judge edges against that are held out.

use serde::{Deserialize, Serialize};

use crate::rules::{Violation, length_violation};

/// What is given for the edges that are held out for validation, and for those that are for testing.
pub type GivenNegatives<Id> = [GivenPairs<Id>; 2];

/// Pairs that are given as no edges for one split, in one of two forms. Order and repetitions are as they were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GivenPairs<Id> {
    /// Of a pool the source of each pair. Otherwise that of each edge that is judged.
    pub sources: Vec<Id>,
    /// Of a pool the target of each pair. Otherwise that of each edge that is judged.
    pub targets: Vec<Id>,
    /// Targets that take the place of each edge's own, [`GivenPairs::each`] of them edge after edge. A pool has none.
    pub others: Vec<Id>,
    /// How many targets each edge has that stand for no edge; 0 where all edges are judged against one pool.
    pub each: usize,
    /// The relation of each edge that has targets of its own, which is theirs as well, where there are several
    /// relations. A pool has none.
    pub relations: Vec<u16>,
}

/// How many there are in all parts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GivenCounts {
    /// Pairs of a pool, or edges that have pairs of their own.
    pub pairs: u64,
    /// How many targets each edge has that stand for no edge; 0 of a pool.
    pub each: u64,
}

impl<Id: Copy> GivenPairs<Id> {
    /// The number of pairs of a pool, or of edges that have pairs of their own.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Each pair of a pool, or each edge that has pairs of its own.
    pub fn iter(&self) -> impl Iterator<Item = (Id, Id)> {
        self.sources.iter().copied().zip(self.targets.iter().copied())
    }

    /// The targets that take the place of that of edge number `at`.
    pub fn others_of(&self, at: usize) -> &[Id] {
        &self.others[at * self.each..(at + 1) * self.each]
    }

    /// Every pair that stands for no edge, with its relation if it has one.
    pub fn pairs(&self) -> impl Iterator<Item = (Id, Id, Option<u16>)> {
        let pool = self.iter().take(if self.each == 0 { self.len() } else { 0 });
        let own = |at: usize| {
            let (source, relation) = (self.sources[at], self.relations.get(at).copied());
            self.others_of(at).iter().map(move |&other| (source, other, relation))
        };
        let edges = if self.each == 0 { 0 } else { self.len() };
        pool.map(|(source, target)| (source, target, None)).chain((0..edges).flat_map(own))
    }

    /// How many there are.
    pub fn counts(&self) -> GivenCounts {
        GivenCounts { pairs: self.len() as u64, each: self.each as u64 }
    }

    /// Those of which `keep` says what source, target and other targets are called from now on; an other target that
    /// has no name goes, and where one does, so does its edge.
    pub(crate) fn renamed<To>(&self, keep: impl Fn(Id, Id) -> bool, name: impl Fn(Id) -> Option<To>) -> GivenPairs<To> {
        let [sources, targets, others] = [vec![], vec![], vec![]];
        let mut kept = GivenPairs { sources, targets, others, each: self.each, relations: vec![] };
        for (at, (source, target)) in self.iter().enumerate() {
            let others = || self.others_of(at).iter().map(|&other| name(other)).collect::<Option<Vec<To>>>();
            if let (true, Some(from), Some(to)) = (keep(source, target), name(source), name(target))
                && let Some(others) = others()
            {
                kept.sources.push(from);
                kept.targets.push(to);
                kept.others.extend(others);
                kept.relations.extend(self.relations.get(at));
            }
        }
        kept
    }

    /// Lists of other lengths than each other, where edges are of so many relations.
    pub(crate) fn violation(&self, [_, name, _, of]: [&'static str; 4], relations: usize) -> Option<Violation> {
        let others = self.len().saturating_mul(self.each);
        let related = if self.each > 0 && relations > 1 { self.len() } else { 0 };
        let beyond = || {
            let relation = self.relations.iter().find(|&&relation| usize::from(relation) >= relations)?;
            Some((of, format!("expected relations below {relations}, found {relation}")))
        };
        length_violation(name, self.targets.len(), self.len())
            .or_else(|| length_violation(name, self.others.len(), others))
            .or_else(|| length_violation(of, self.relations.len(), related))
            .or_else(beyond)
    }
}

/// What the arrays of each split are called in messages and in files of parts.
pub(crate) const NAMES: [[&str; 4]; 2] = [
    ["val_negative_sources", "val_negative_targets", "val_negative_others", "val_negative_relations"],
    ["test_negative_sources", "test_negative_targets", "test_negative_others", "test_negative_relations"],
];
