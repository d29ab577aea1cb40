//! Counting what predictions need to know of parts, where somebody sees all of them.

use std::collections::BTreeMap;

use crate::dataset::Split;
use crate::error::{GraphError, Result};
use crate::part::{Needs, Part, PartCounts};
use crate::plan::halo::needed_by_edges;
use crate::plan::index::IdIndex;
use crate::plan::told::{Sums, count_lists, sums};
use crate::plan::{Listed, decode_ids, encode_ids};

/// Counts parts that are seen one after the other. Keeps the coded ids that each part needs of others, and the owner
/// of each node.
#[derive(Default)]
pub struct Counting {
    counts: BTreeMap<u32, PartCounts>,
    /// Per part the ids that it needs, coded.
    needed: BTreeMap<u32, Vec<u8>>,
    /// The owner of each node.
    owners: Vec<(u64, u32)>,
    /// Per part what it has to tell each other, where parts know owners.
    told: BTreeMap<u32, BTreeMap<u32, Sums>>,
}

impl Counting {
    /// Notes a part.
    pub fn see(&mut self, part: &Part) {
        let (counts, coded) = count(part);
        self.counts.insert(part.index, counts);
        self.needed.insert(part.index, coded);
        if let Some(owners) = &part.owners {
            let index = IdIndex::new(&owners.ids);
            let owner_of = |id| index.row(id).map(|at| owners.parts[at as usize]);
            self.told.insert(part.index, sums(part, owner_of));
        }
        self.owners.extend(part.nodes.iter().map(|&id| (id, part.index)));
    }

    /// The counts of all parts; nothing where not every node that is needed has been seen.
    pub fn finish(mut self) -> BTreeMap<u32, PartCounts> {
        self.owners.sort_unstable();
        for (part, coded) in &self.needed {
            let mut of_owner = BTreeMap::<u32, Listed>::new();
            for (place, id) in (0..).zip(decode_ids(coded, usize::MAX).unwrap_or_default()) {
                match self.owners.binary_search_by_key(&id, |(id, _)| *id) {
                    Ok(at) => of_owner.entry(self.owners[at].1).or_default().add(place),
                    Err(_) => return BTreeMap::new(),
                }
            }
            if let Some(counts) = self.counts.get_mut(part) {
                counts.needs = needs(of_owner);
            }
        }
        count_lists(&self.told, &mut self.counts);
        self.counts
    }
}

/// What is needed of each owner, whose answer lists these places.
pub(crate) fn needs(of_owner: BTreeMap<u32, Listed>) -> BTreeMap<u32, Needs> {
    let needs = |places: Listed| Needs { rows: places.rows(), bytes: places.bytes(), list: 0 };
    of_owner.into_iter().map(|(owner, places)| (owner, needs(places))).collect()
}

/// What there is to count of one part, but for who has what it needs; and the ids of that, coded.
fn count(part: &Part) -> (PartCounts, Vec<u8>) {
    let (ids, halo_edges) = needed_by_edges(part);
    let is_loop =
        |row: usize| part.edges.in_neighbours(row).iter().filter(|&&source| source == part.nodes[row]).count();
    let coded = encode_ids(&ids);
    let is_of = |row: usize, role: u8| part.roles[row] & role != 0 && part.labels.known(row) > 0;
    let of = |role| (0..part.roles.len()).filter(|&row| is_of(row, role)).count() as u64;
    let counts = PartCounts {
        own_edges: (part.edges.edges() - halo_edges) as u64,
        loops: (0..part.rows()).map(is_loop).sum::<usize>() as u64,
        halo_edges: halo_edges as u64,
        labelled: [Split::TRAIN, Split::VAL, Split::TEST].map(of),
        feature_values: part.features.stored().len() as u64,
        asked_bytes: coded.len() as u64,
        knows_owners: part.owners.is_some(),
        needs: BTreeMap::new(),
    };
    (counts, coded)
}

/// Compares what somebody has counted with the part.
///
/// # Errors
/// If a number is another; the text names it.
pub fn check_counts(part: &Part, said: &PartCounts) -> Result<()> {
    let (found, coded) = count(part);
    let ids = decode_ids(&coded, usize::MAX).map_or(0, |ids| ids.len() as u64);
    let numbers = [
        ("own_edges", said.own_edges, found.own_edges),
        ("loops", said.loops, found.loops),
        ("halo_edges", said.halo_edges, found.halo_edges),
        ("labelled training nodes", said.labelled[0], found.labelled[0]),
        ("labelled validation nodes", said.labelled[1], found.labelled[1]),
        ("labelled test nodes", said.labelled[2], found.labelled[2]),
        ("feature_values", said.feature_values, found.feature_values),
        ("asked_bytes", said.asked_bytes, found.asked_bytes),
        ("needs in all", said.needs.values().map(|needs| needs.rows).fold(0, u64::saturating_add), ids),
    ];
    if said.knows_owners != found.knows_owners {
        let what = format!("expected {} as meta.json says, found {}", said.knows_owners, found.knows_owners);
        return Err(GraphError::invalid(format!("part {}: counts: knows_owners: {what}", part.index)));
    }
    match numbers.into_iter().find(|(_, said, found)| said != found) {
        Some((name, said, found)) => {
            let what = format!("part {}: counts: {name}: expected {said} as meta.json says, found {found}", part.index);
            Err(GraphError::invalid(what))
        }
        None => Ok(()),
    }
}
