//! Edges that are held out to be predicted although a training edge joins the same two nodes, which passes messages
//! between them and is learned from.

use serde::{Deserialize, Serialize};

use crate::edges::Edges;

/// How many held-out edges of a split have a training edge between the same two nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaks {
    /// Those of which the other direction is a training edge.
    pub reversed: u64,
    /// Those beside which a training edge leads the same way; it is of another relation.
    pub parallel: u64,
}

impl Leaks {
    /// Of the edges that the data hold out for validation and for testing; `None` where they do not say. Rows are
    /// called by their numbers.
    pub fn of<Id: Copy + Into<u64>>(edges: &Edges<Id>) -> Option<[Leaks; 2]> {
        let held = edges.data.held.as_ref()?;
        let is_trained = |source: u64, target: u64| {
            let row = edges.in_edges(target as usize);
            let first = row.start + edges.sources[row.clone()].partition_point(|&other| other.into() < source);
            (first..row.end).take_while(|&edge| edges.sources[edge].into() == source).any(|edge| held[edge] == 0)
        };
        let mut leaks = [Leaks::default(); 2];
        for target in 0..edges.rows() {
            for edge in edges.in_edges(target) {
                let (source, target): (u64, u64) = (edges.sources[edge].into(), target as u64);
                let Some(leaks) = usize::from(held[edge]).checked_sub(1).and_then(|split| leaks.get_mut(split)) else {
                    continue;
                };
                if source != target {
                    leaks.reversed += u64::from(is_trained(target, source));
                    leaks.parallel += u64::from(is_trained(source, target));
                }
            }
        }
        Some(leaks)
    }

    /// What is to be said of the leaks of validation and testing, of so many held-out edges each.
    pub fn said(leaks: [Leaks; 2], held: [u64; 2]) -> Vec<String> {
        let counted = |of: fn(&Leaks) -> u64| {
            let splits = ["validation", "test"].into_iter().zip(&leaks).zip(held);
            let some = splits.filter(|((_, leaks), _)| of(leaks) > 0);
            let named = some.map(|((name, leaks), held)| format!("{} of {held} {name} edges", of(leaks)));
            named.collect::<Vec<String>>().join(" and ")
        };
        let higher = "which pass messages: figures are higher than on pairs that nothing tells of";
        let (reversed, parallel) = (counted(|leaks| leaks.reversed), counted(|leaks| leaks.parallel));
        let said = [
            (
                &reversed,
                "have their other direction",
                "both directions in val_edge_index and test_edge_index, or directed = 0, hold both out",
            ),
            (
                &parallel,
                "have an edge of another relation beside them",
                "a column without val_edge_type holds all relations out",
            ),
        ];
        let some = said.into_iter().filter(|(counts, ..)| !counts.is_empty());
        some.map(|(counts, have, mend)| format!("{counts} {have} among the training edges, {higher}; {mend}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::{EdgeData, Relations};
    use crate::graph::Graph;
    use laconic_key::{Key, Purpose};

    /// Each held-out edge looked up in the list of all edges.
    #[test]
    fn leaks_are_those_of_comparing_each_held_out_edge_with_every_training_edge() {
        let key = Key::new(4, Purpose::Test);
        let drawn = |edge: u64| {
            let of = key.with(edge);
            (of.with(0).below(12) as u32, of.with(1).below(12) as u32, of.with(2).below(2) as u16)
        };
        let mut listed: Vec<(u32, u32, u16)> = (0..140).map(drawn).collect();
        listed.sort_unstable();
        listed.dedup();
        let role = |&(target, source, relation): &(u32, u32, u16)| {
            [0, 0, 1, 2, 0]
                [(key.with(9).with(target.into()).with((source * 2).into()).with(relation.into()).bits() % 5) as usize]
        };
        let offsets = (0..=12u32).map(|row| listed.iter().filter(|edge| edge.0 < row).count() as u64).collect();
        let relations = Some(Relations { count: 2, of: listed.iter().map(|edge| edge.2).collect() });
        let held = Some(listed.iter().map(role).collect());
        let sources = listed.iter().map(|edge| edge.1).collect();
        let graph = Graph { offsets, sources, data: EdgeData { relations, held, ..EdgeData::default() } };
        graph.check().unwrap();
        let joins = |source: u32, target: u32| {
            listed.iter().any(|edge| (edge.0, edge.1) == (target, source) && role(edge) == 0)
        };
        let expected = [1, 2].map(|of| {
            let held = || listed.iter().filter(move |edge| role(edge) == of && edge.0 != edge.1);
            let reversed = held().filter(|edge| joins(edge.0, edge.1)).count() as u64;
            Leaks { reversed, parallel: held().filter(|edge| joins(edge.1, edge.0)).count() as u64 }
        });
        assert!(expected.iter().all(|leaks| leaks.reversed > 3 && leaks.parallel > 3), "{expected:?}");
        assert_eq!(Leaks::of(&graph), Some(expected));
        assert_eq!(Leaks::of(&Graph { data: EdgeData::default(), ..graph }), None);
    }

    #[test]
    fn what_is_said_names_the_splits_that_leak_and_nothing_else() {
        let leaks = |reversed, parallel| Leaks { reversed, parallel };
        assert!(Leaks::said([leaks(0, 0); 2], [3, 4]).is_empty());
        let said = Leaks::said([leaks(0, 2), leaks(3, 1)], [5, 7]);
        assert!(said[0].starts_with("3 of 7 test edges have their other direction among the training edges"));
        assert!(said[1].starts_with("2 of 5 validation edges and 1 of 7 test edges have an edge of another relation"));
    }
}
