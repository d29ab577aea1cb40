//! Which targets may be the best for a node: of the types that its edges lead to.

use std::collections::{BTreeMap, BTreeSet};

use laconic_graph::part::Part;

/// Where the edges of some nodes lead.
pub struct Candidates {
    /// By the row of the source: the rows of what may be its best targets, ascending.
    of: BTreeMap<u32, Vec<u32>>,
}

impl Candidates {
    /// The targets for each of these rows. With nodes of several types they are of those that edges (of the relation,
    /// where one is asked for) lead to from nodes of the source's type; where there is no such edge, or one type, all
    /// nodes. Without `known` ones, nodes that the source has such an edge to are left out.
    pub fn of(parts: &[Part], sources: &[u32], relation: Option<u32>, known: bool) -> Candidates {
        let ids: Vec<u64> = parts.iter().flat_map(|part| part.nodes.iter().copied()).collect();
        let types = parts.first().map(|part| &part.global.types).filter(|types| !types.is_empty());
        let kind = |id: u64| types.map_or(0, |types| types.kind(id));
        let mut leads_to: BTreeMap<u16, BTreeSet<u16>> = BTreeMap::new();
        let mut known_of: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        let asked: BTreeSet<u64> = sources.iter().map(|&row| ids[row as usize]).collect();
        for part in parts {
            let relations = part.edges.data.relations.as_ref().zip(relation);
            for (row, &target) in part.nodes.iter().enumerate() {
                for at in part.edges.offsets[row] as usize..part.edges.offsets[row + 1] as usize {
                    if relations.is_some_and(|(relations, asked)| u32::from(relations.of[at]) != asked) {
                        continue;
                    }
                    let source = part.edges.sources[at];
                    leads_to.entry(kind(source)).or_default().insert(kind(target));
                    if asked.contains(&source) {
                        known_of.entry(source).or_default().insert(target);
                    }
                }
            }
        }
        let of = sources.iter().map(|&row| {
            let source = ids[row as usize];
            let kinds = leads_to.get(&kind(source));
            let others = known_of.get(&source).filter(|_| !known);
            let may = |id: u64| {
                id != source
                    && kinds.is_none_or(|kinds| kinds.contains(&kind(id)))
                    && others.is_none_or(|others| !others.contains(&id))
            };
            (row, (0..).zip(&ids).filter(|(_, id)| may(**id)).map(|(row, _)| row).collect())
        });
        Candidates { of: of.collect() }
    }

    /// The rows for the source in a row; none for one that was not asked for.
    pub fn for_row(&self, row: u32) -> &[u32] {
        self.of.get(&row).map_or(&[], Vec::as_slice)
    }
}
