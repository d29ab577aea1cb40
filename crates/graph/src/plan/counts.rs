//! Counting what predictions need to know of parts, where somebody sees all of them.

use std::collections::BTreeMap;

use crate::dataset::{Features, Split};
use crate::part::{Needs, Part, PartCounts};
use crate::plan::{decode_ids, encode_ids, needed};

/// Counts parts that are seen one after the other. Keeps a byte or two for each id that a part needs of others, and
/// the owner of each node.
#[derive(Default)]
pub struct Counting {
    counts: BTreeMap<u32, PartCounts>,
    /// Per part the ids that it needs, coded.
    needed: BTreeMap<u32, Vec<u8>>,
    /// The owner of each node.
    owners: Vec<(u64, u32)>,
}

impl Counting {
    /// Notes a part.
    pub fn see(&mut self, part: &Part) {
        let ids = needed(part);
        let is_needed = |id: &u64| ids.binary_search(id).is_ok();
        let halo_edges = part.sources.iter().filter(|id| is_needed(id)).count() as u64;
        let is_loop = |row: usize| part.in_edges(row).filter(|&edge| part.sources[edge] == part.nodes[row]).count();
        let coded = encode_ids(&ids);
        let is_of = |row: usize, role: u8| part.roles[row] & role != 0 && part.labels.known(row) > 0;
        let of = |role| (0..part.roles.len()).filter(|&row| is_of(row, role)).count() as u64;
        let counts = PartCounts {
            own_edges: part.sources.len() as u64 - halo_edges,
            loops: (0..part.rows()).map(is_loop).sum::<usize>() as u64,
            halo_edges,
            labelled: [Split::TRAIN, Split::VAL, Split::TEST].map(of),
            feature_values: match &part.features {
                Features::None => 0,
                Features::Dense { values, .. } | Features::Sparse { values, .. } => values.len() as u64,
            },
            asked_bytes: coded.len() as u64,
            needs: BTreeMap::new(),
        };
        self.counts.insert(part.index, counts);
        self.needed.insert(part.index, coded);
        self.owners.extend(part.nodes.iter().map(|&id| (id, part.index)));
    }

    /// The counts of all parts; nothing where not every node that is needed has been seen.
    pub fn finish(mut self) -> BTreeMap<u32, PartCounts> {
        self.owners.sort_unstable();
        for (part, coded) in &self.needed {
            let mut of_owner = BTreeMap::<u32, Vec<u64>>::new();
            for id in decode_ids(coded, coded.len()).unwrap_or_default() {
                match self.owners.binary_search_by_key(&id, |(id, _)| *id) {
                    Ok(at) => of_owner.entry(self.owners[at].1).or_default().push(id),
                    Err(_) => return BTreeMap::new(),
                }
            }
            let needs = of_owner
                .into_iter()
                .map(|(owner, ids)| (owner, Needs { rows: ids.len() as u64, bytes: encode_ids(&ids).len() as u64 }));
            if let Some(counts) = self.counts.get_mut(part) {
                counts.needs = needs.collect();
            }
        }
        self.counts
    }
}
