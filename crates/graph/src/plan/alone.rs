//! A part as a graph of its own: what its owner has who meets nobody.

use crate::dataset::{Ids, Split};
use crate::edges::Edges;
use crate::given::GivenPairs;
use crate::leaks::Leaks;
use crate::owners::Owners;
use crate::part::{GlobalCounts, Part};
use crate::plan::index::IdIndex;
use crate::type_runs::TypeRuns;

impl Part {
    /// The graph of the own nodes and the edges between them, as its only part: what an independent trainer sees, who
    /// meets nobody. Nodes keep their ids; edges from other parts' nodes are gone, but for what they count in degrees
    /// ([`Part::left_out`]). What is said about the whole is then about this graph, except for how many ids there are,
    /// and digests, which still tell what it was cut from. Of pairs that are given as no edges those stay whose nodes
    /// are all own.
    #[must_use]
    pub fn induced(self) -> Part {
        let nodes = self.nodes.clone();
        let own = IdIndex::new(&nodes);
        let dataset = format!("{} (part {} of {})", self.global.dataset, self.index, self.parts);
        let part = self.keeping(&|id| own.row(id).is_some());
        let part = part.numbered(0, 1);
        Part { global: GlobalCounts { dataset, ..part.global }, ..part }
    }

    /// The same of the own nodes and those that `keeps` says are there: as if no other had ever been. Figures about the
    /// whole are then about what this part has of it.
    #[must_use]
    pub fn keeping(self, keeps: &dyn Fn(u64) -> bool) -> Part {
        let rows = self.rows();
        let mut edges = Edges { offsets: vec![0], sources: Vec::new(), data: self.edges.data.like(0) };
        let mut left_out = vec![0.0; rows];
        let weights = self.edges.data.weights.as_deref();
        for (row, left_out) in left_out.iter_mut().enumerate() {
            let mut gone = 0.0f64;
            for edge in self.edges.in_edges(row) {
                let source = self.edges.sources[edge];
                if keeps(source) {
                    edges.sources.push(source);
                    edges.data.extend(&self.edges.data, edge..edge + 1);
                } else {
                    gone += weights.map_or(1.0, |weights| f64::from(weights[edge]));
                }
            }
            *left_out = gone as f32;
            edges.offsets.push(edges.sources.len() as u64);
        }
        let known = |pairs: &GivenPairs<u64>| pairs.renamed(|_, target| keeps(target), |id| keeps(id).then_some(id));
        let given = self.negatives.as_ref().map(|given| given.each_ref().map(known));
        let negatives = given.as_ref().map(|given| given.each_ref().map(GivenPairs::counts));
        let of_role = |role| self.roles.iter().filter(|&&roles| roles & role != 0).count() as u64;
        let [train, val, test] = [Split::TRAIN, Split::VAL, Split::TEST].map(of_role);
        let (count, held) = (edges.edges() as u64, edges.data.held_counts());
        let global = GlobalCounts { edges: count, train, val, test, held, leaks: None, negatives, ..self.global };
        Part { edges, left_out, negatives: given, global, ..self }
    }

    /// The same with nodes renumbered from 0 in their order, and called what they were.
    #[must_use]
    pub fn alone(self) -> Part {
        let Part { nodes: before, mut edges, negatives, ids, global, left_out, features, labels, roles, .. } =
            self.induced();
        let own = IdIndex::new(&before);
        let renumbered = |id: u64| own.row(id).map(u64::from);
        edges.sources.iter_mut().for_each(|source| *source = renumbered(*source).unwrap_or_default());
        let renamed = |pairs: &GivenPairs<u64>| pairs.renamed(|_, _| true, renumbered);
        let negatives = negatives.as_ref().map(|given| given.each_ref().map(renamed));
        let ids = match ids {
            Ids::Row => Ids::Integers(before.iter().map(|&node| node as i64).collect()),
            ids => ids,
        };
        let rows = before.len() as u64;
        let known = Some(&global.types).filter(|types| !types.is_empty());
        let types = known.map(|types| TypeRuns::of(before.iter().map(|&id| types.kind(id)))).unwrap_or_default();
        let leaks = Leaks::of(&edges);
        let (nodes, global) = ((0..rows).collect(), GlobalCounts { nodes: rows, types, leaks, ..global });
        Part {
            index: 0,
            parts: 1,
            nodes,
            edges,
            // It needs nothing of others.
            owners: Some(Owners::default()),
            left_out,
            negatives,
            features,
            labels,
            roles,
            ids,
            global,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dataset::{Features, Ids, Labels, Split};
    use crate::edges::{EdgeData, Edges};
    use crate::given::GivenPairs;
    use crate::part::{GlobalCounts, Part};

    #[test]
    fn edges_between_own_nodes_stay_and_the_others_count_in_degrees_alone() {
        let part = Part {
            index: 2,
            parts: 3,
            nodes: vec![4, 7, 9],
            edges: Edges {
                offsets: vec![0, 2, 3, 6],
                sources: vec![1, 9, 4, 2, 7, 8],
                data: EdgeData { weights: Some(vec![0.5, 1.0, 2.0, 3.0, 4.0, 5.0]), relations: None, held: None },
            },
            owners: None,
            left_out: Vec::new(),
            negatives: Some([
                GivenPairs { sources: vec![9, 1, 4], targets: vec![4, 7, 9], ..GivenPairs::default() },
                GivenPairs {
                    sources: vec![4, 9],
                    targets: vec![7, 4],
                    others: vec![9, 4, 9, 2],
                    each: 2,
                    relations: vec![],
                },
            ]),
            features: Features::None,
            labels: Labels::Single { classes: 2, values: vec![0, 1, 1] },
            roles: vec![Split::TRAIN, Split::TEST, Split::TRAIN],
            ids: Ids::Row,
            global: GlobalCounts { nodes: 10, edges: 60, train: 6, val: 2, test: 2, ..GlobalCounts::default() },
        };
        let induced = part.clone().induced();
        assert_eq!((induced.nodes.clone(), &induced.edges.sources[..]), (vec![4, 7, 9], &[9, 4, 7][..]));
        assert_eq!(
            (induced.left_out.clone(), induced.global.nodes, induced.global.edges),
            (vec![0.5, 0.0, 8.0], 10, 3)
        );
        assert_eq!(induced.ids, Ids::Row);
        let alone = part.alone();
        assert_eq!((alone.index, alone.parts, alone.nodes.clone()), (0, 1, vec![0, 1, 2]));
        assert_eq!((&alone.edges.offsets[..], &alone.edges.sources[..]), (&[0, 1, 2, 3][..], &[2, 0, 1][..]));
        assert_eq!(alone.edges.data.weights, Some(vec![1.0, 2.0, 4.0]));
        assert_eq!(alone.left_out, [0.5, 0.0, 8.0]);
        // What has a node of others is gone.
        let pool = GivenPairs { sources: vec![2, 0], targets: vec![0, 2], ..GivenPairs::default() };
        let own = GivenPairs { sources: vec![0], targets: vec![1], others: vec![2, 0], each: 2, relations: vec![] };
        assert_eq!(alone.global.negatives, Some([pool.counts(), own.counts()]));
        assert_eq!(alone.negatives, Some([pool, own]));
        assert_eq!(alone.ids, Ids::Integers(vec![4, 7, 9]));
        let global = &alone.global;
        assert_eq!((global.nodes, global.edges, [global.train, global.val, global.test]), (3, 3, [2, 0, 1]));
        assert_eq!(global.dataset, " (part 2 of 3)");
    }
}
