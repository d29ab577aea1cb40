//! Which node is of which type, as all owners may know it: runs of consecutive global ids. Datasets usually number one
//! type after the other, so there are as many runs as types; types in turns make a run of each node.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The type of every node by global id; empty where there is one type, or nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u64, u16)>", into = "Vec<(u64, u16)>")]
pub struct TypeRuns(Arc<[(u64, u16)]>);

impl TryFrom<Vec<(u64, u16)>> for TypeRuns {
    type Error = String;

    fn try_from(runs: Vec<(u64, u16)>) -> Result<TypeRuns, String> {
        let begins = runs.first().is_none_or(|run| run.0 == 0);
        if begins && runs.windows(2).all(|two| two[0].0 < two[1].0) {
            return Ok(TypeRuns(runs.into()));
        }
        Err("types: expected runs [first id, type] that begin at 0 and ascend".to_owned())
    }
}

impl From<TypeRuns> for Vec<(u64, u16)> {
    fn from(runs: TypeRuns) -> Vec<(u64, u16)> {
        runs.0.to_vec()
    }
}

impl TypeRuns {
    /// Of the types of nodes 0, 1, 2, …
    pub fn of(types: impl IntoIterator<Item = u16>) -> TypeRuns {
        let mut runs: Vec<(u64, u16)> = Vec::new();
        for (id, kind) in (0..).zip(types) {
            if runs.last().is_none_or(|run| run.1 != kind) {
                runs.push((id, kind));
            }
        }
        TypeRuns(runs.into())
    }

    /// Whether no type is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The type of a node.
    pub fn kind(&self, id: u64) -> u16 {
        let after = self.0.partition_point(|run| run.0 <= id);
        after.checked_sub(1).map_or(0, |at| self.0[at].1)
    }

    /// A digest of all of it, as hexadecimal.
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for (first, kind) in self.0.iter() {
            hasher.update(&first.to_le_bytes()).update(&kind.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The nodes of each type among all of so many.
    pub fn all(&self, nodes: u64) -> ByType {
        self.by_type(nodes, |range| range)
    }

    /// The nodes of each type among these ids, which ascend, by their places there.
    pub fn among(&self, ids: &[u64]) -> ByType {
        let place = |id: u64| ids.partition_point(|&other| other < id) as u64;
        self.by_type(u64::MAX, |range| place(range.start)..place(range.end))
    }

    fn by_type(&self, nodes: u64, places: impl Fn(Range<u64>) -> Range<u64>) -> ByType {
        let mut of: Vec<Places> = Vec::new();
        let ends = self.0.iter().skip(1).map(|run| run.0).chain([nodes]);
        for (&(first, kind), end) in self.0.iter().zip(ends) {
            let range = places(first.min(nodes)..end.min(nodes));
            if range.is_empty() {
                continue;
            }
            of.resize_with(of.len().max(usize::from(kind) + 1), Places::default);
            let places = &mut of[usize::from(kind)];
            places.pieces.push([places.count, range.start]);
            places.count += range.end - range.start;
        }
        ByType(of)
    }
}

/// The nodes of each type, to draw from.
#[derive(Debug, Clone, Default)]
pub struct ByType(Vec<Places>);

#[derive(Debug, Clone, Default)]
struct Places {
    /// How many nodes of the type come before a run, and the place of its first.
    pieces: Vec<[u64; 2]>,
    count: u64,
}

impl ByType {
    /// How many nodes of a type there are.
    pub fn count(&self, kind: u16) -> u64 {
        self.0.get(usize::from(kind)).map_or(0, |places| places.count)
    }

    /// The place of node number `at` of a type; `None` where there are fewer.
    pub fn place(&self, kind: u16, at: u64) -> Option<u64> {
        let places = self.0.get(usize::from(kind)).filter(|places| at < places.count)?;
        let [before, first] = places.pieces[places.pieces.partition_point(|piece| piece[0] <= at) - 1];
        Some(first + at - before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_type_are_found_by_their_number_in_any_order_of_types() {
        for types in [vec![0, 0, 1, 1, 1, 2], vec![1, 0, 1, 1, 3, 0, 0], vec![2, 2]] {
            let runs = TypeRuns::of(types.iter().copied());
            assert!((0..).zip(&types).all(|(id, &kind)| runs.kind(id) == kind), "{types:?}");
            let ids: Vec<u64> = (0..types.len() as u64).filter(|id| id % 3 != 1).collect();
            let (all, among) = (runs.all(types.len() as u64), runs.among(&ids));
            for kind in 0..5 {
                let of = |id: &u64| types[*id as usize] == kind;
                let expected: Vec<u64> = (0..types.len() as u64).filter(of).collect();
                let found: Vec<u64> = (0..all.count(kind)).filter_map(|at| all.place(kind, at)).collect();
                assert_eq!(found, expected, "{types:?}");
                assert_eq!(all.place(kind, all.count(kind)), None);
                let expected: Vec<u64> = ids.iter().copied().filter(of).collect();
                let places = (0..among.count(kind)).filter_map(|at| among.place(kind, at));
                assert_eq!(places.map(|place| ids[place as usize]).collect::<Vec<u64>>(), expected, "{types:?}");
            }
            let text = serde_json::to_string(&runs).unwrap();
            assert_eq!(serde_json::from_str::<TypeRuns>(&text).unwrap(), runs);
        }
        for text in ["[[1,0]]", "[[0,1],[0,2]]", "[[0,1],[5,2],[4,0]]"] {
            assert!(serde_json::from_str::<TypeRuns>(text).unwrap_err().to_string().contains("ascend"), "{text}");
        }
    }
}
