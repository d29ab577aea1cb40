//! Who owns the nodes that a part needs and does not have.

use crate::rules::Violation;

/// The nodes of others that edges of a part start at, or more, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Owners {
    /// Their global ids, ascending.
    pub ids: Vec<u64>,
    /// The part that owns each.
    pub parts: Vec<u32>,
    /// Its row there; empty where nobody has told rows, as where a site knows by an id whose it is.
    pub rows: Vec<u32>,
}

impl Owners {
    /// Of these foreign nodes, each at the place, part and row, that is said of it.
    pub(crate) fn of(needed: &IdBits, place: impl Fn(u64) -> (u32, u32)) -> Owners {
        let ids: Vec<u64> = ids_of_bits(&needed.0).collect();
        let (parts, rows) = ids.iter().map(|&id| place(id)).unzip();
        Owners { ids, parts, rows }
    }

    /// What the owner of the node at a place is told that it is needed by: its row there, or else its id.
    pub fn told_as(&self, place: usize) -> u64 {
        self.rows.get(place).map_or_else(|| self.ids[place], |&row| row.into())
    }

    /// Whether owners are told ids, since nobody knows rows.
    pub fn are_told_ids(&self) -> bool {
        self.rows.is_empty() && !self.ids.is_empty()
    }

    /// The first rule that is broken in part `index` of `parts`.
    pub(crate) fn violation(&self, index: u32, parts: u32) -> Option<Violation> {
        let count = self.ids.len();
        if self.parts.len() != count || ![0, count].contains(&self.rows.len()) {
            let found = format!("{} and {}", self.parts.len(), self.rows.len());
            return Some(("owners", format!("expected an owner and a row of each of {count} nodes, found {found}")));
        }
        if let Some(pair) = self.ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Some(("owned_ids", format!("expected ascending ids, found {} after {}", pair[1], pair[0])));
        }
        // One more than the row of each owner that was named last.
        let mut before = vec![0u64; parts as usize];
        for (place, &owner) in self.parts.iter().enumerate() {
            if owner >= parts || owner == index {
                return Some(("owners", format!("expected another part of {parts} than {index}, found {owner}")));
            }
            let Some(&row) = self.rows.get(place) else { continue };
            let before = &mut before[owner as usize];
            if u64::from(row) < *before {
                let what = format!("expected ascending rows of part {owner}, found {row} after {}", *before - 1);
                return Some(("owner_rows", what));
            }
            *before = u64::from(row) + 1;
        }
        None
    }
}

/// A set of ids below a number, in a bit for each.
pub(crate) struct IdBits(Vec<u64>);

impl IdBits {
    /// None of the ids below `end`.
    pub(crate) fn new(end: usize) -> IdBits {
        IdBits(vec![0; end.div_ceil(64)])
    }

    /// Adds one.
    pub(crate) fn add(&mut self, id: u64) {
        self.0[(id / 64) as usize] |= 1 << (id % 64);
    }
}

/// The ids whose bits are set, ascending.
pub(crate) fn ids_of_bits(set: &[u64]) -> impl Iterator<Item = u64> {
    let ids = |(word, &bits): (usize, &u64)| {
        let first = 64 * word as u64;
        (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| first + bit)
    };
    set.iter().enumerate().filter(|(_, bits)| **bits != 0).flat_map(ids)
}
