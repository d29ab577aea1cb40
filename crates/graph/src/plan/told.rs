//! Who owns what a part needs, where whoever cut the graph has told it: then lists go to owners alone, and where edges
//! lead both ways none has to.
//!
//! An owner takes its peer to need its own nodes that have an edge *from* one of the peer's: right wherever each edge
//! between the two leads both ways. Both say in a digest what they need and what they take the other to need. Only
//! where these differ the owner is told, by its own rows: about a bit for each of its nodes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::part::{Part, PartCounts};
use crate::plan::halo::{needed, without_owner};
use crate::plan::index::IdIndex;
use crate::plan::{Listed, encode_ids};

/// Bytes of a digest of ids.
pub const DIGEST: usize = 16;

/// What tells one list of ids from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdDigest(pub [u8; DIGEST]);

/// A digest of numbers that are told one after the other.
#[derive(Default)]
pub(super) struct Digesting(blake3::Hasher);

impl Digesting {
    pub(super) fn add(&mut self, id: u64) {
        self.0.update(&id.to_le_bytes());
    }

    pub(super) fn finish(&self) -> IdDigest {
        let mut digest = [0; DIGEST];
        self.0.finalize_xof().fill(&mut digest);
        IdDigest(digest)
    }
}

impl IdDigest {
    /// Of these ids.
    #[must_use]
    pub fn of(ids: &[u64]) -> IdDigest {
        let mut digesting = Digesting::default();
        ids.iter().for_each(|&id| digesting.add(id));
        digesting.finish()
    }
}

/// What a part and one peer need of each other, as the part knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Between {
    /// The ids of the peer's nodes that the part needs, ascending.
    pub needed: Vec<u64>,
    /// The peer's rows that these are, or the same ids where nobody has told rows.
    pub rows: Vec<u64>,
    /// The ids of own nodes that the peer is taken to need, ascending.
    pub taken: Vec<u64>,
}

/// What a part knows that has been told owners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The owner of each id that is [`needed`].
    pub owners: Vec<u32>,
    /// What there is between the part and each peer, by number.
    pub peers: Vec<Between>,
}

impl Told {
    /// What a part knows; `None` where nobody has told it.
    ///
    /// # Errors
    ///
    /// If an edge starts at a node of which no owner is told; the message names the edge.
    pub fn of(part: &Part) -> Result<Option<Told>> {
        let Some(told) = &part.owners else { return Ok(None) };
        part.check()?;
        let index = IdIndex::new(&told.ids);
        let mut peers = vec![Between::default(); part.parts as usize];
        let needed = needed(part);
        let mut owners = Vec::with_capacity(needed.len());
        for &id in &needed {
            let at = index.row(id).ok_or_else(|| without_owner(part, id))? as usize;
            let of_owner = &mut peers[told.parts[at] as usize];
            of_owner.needed.push(id);
            of_owner.rows.push(told.told_as(at));
            owners.push(told.parts[at]);
        }
        let owner_of = |id| index.row(id).map(|at| told.parts[at as usize]);
        each_taken(part, owner_of, |peer, id| peers[peer as usize].taken.push(id));
        Ok(Some(Told { owners, peers }))
    }

    /// What an owner is told where it does not know it: its rows that are needed here, or their ids.
    pub fn list(&self, owner: usize) -> Vec<u8> {
        encode_ids(&self.peers[owner].rows)
    }

    /// How many bytes that is from the part `from`, of parts that all know owners; 0 where the owner knows it.
    pub fn list_bytes(all: &[Told], from: usize, owner: usize) -> u64 {
        let needed = &all[from].peers[owner];
        match needed.needed == all[owner].peers[from].taken {
            true => 0,
            false => Listed::of(needed.rows.iter().copied()).bytes(),
        }
    }
}

/// Names each own node that a peer is taken to need, ascending for each peer.
fn each_taken(part: &Part, owner_of: impl Fn(u64) -> Option<u32>, mut name: impl FnMut(u32, u64)) {
    // One more than the row in which a peer was last met.
    let mut met = vec![0; part.parts as usize];
    for (row, &node) in part.nodes.iter().enumerate() {
        for peer in part.edges.in_neighbours(row).iter().filter_map(|&source| owner_of(source)) {
            if peer != part.index && met[peer as usize] != row + 1 {
                met[peer as usize] = row + 1;
                name(peer, node);
            }
        }
    }
}

/// What it takes to know what a part has to tell one peer, once all parts have been seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sums {
    needed: IdDigest,
    list: u64,
    taken: IdDigest,
}

/// The same of each peer with which there is anything; nothing where owners are not known. Holds no lists.
pub(crate) fn sums(part: &Part, owner_of: impl Fn(u64) -> Option<u32>) -> BTreeMap<u32, Sums> {
    let mut found = BTreeMap::<u32, (Digesting, Listed, Digesting)>::new();
    if let Some(told) = &part.owners {
        for (at, (&id, &owner)) in told.ids.iter().zip(&told.parts).enumerate() {
            let (needed, list, _) = found.entry(owner).or_default();
            needed.add(id);
            list.add(told.told_as(at));
        }
        each_taken(part, owner_of, |peer, id| found.entry(peer).or_default().2.add(id));
    }
    let sums = |(needed, list, taken): (Digesting, Listed, Digesting)| Sums {
        needed: needed.finish(),
        list: list.bytes(),
        taken: taken.finish(),
    };
    found.into_iter().map(|(peer, found)| (peer, sums(found))).collect()
}

/// Enters into the counts of all parts what each has to tell the others.
pub(crate) fn count_lists(all: &BTreeMap<u32, BTreeMap<u32, Sums>>, counts: &mut BTreeMap<u32, PartCounts>) {
    let nothing = IdDigest::of(&[]);
    for (part, counts) in counts {
        for (owner, needs) in &mut counts.needs {
            let Some(told) = all.get(part).and_then(|sums| sums.get(owner)) else { continue };
            let taken = all.get(owner).and_then(|sums| sums.get(part)).map_or(nothing, |sums| sums.taken);
            needs.list = if told.needed == taken { 0 } else { told.list };
        }
    }
}
