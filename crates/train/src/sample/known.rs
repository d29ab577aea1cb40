//! What a worker knows of nodes that its batches read, by numbers of its own: own rows, then halo rows, then whoever
//! else comes up.

use std::collections::HashMap;
use std::sync::Arc;

use laconic_wire::Rank;

use crate::worker::by_id::ById;
use crate::worker::local::Local;

/// What is known of nodes, by number.
#[derive(Debug, Clone, Default)]
pub struct Known {
    own: usize,
    /// Global ids, own ones in the order of rows.
    pub ids: Vec<u64>,
    /// Own rows in the order of their ids.
    by_id: Arc<ById>,
    /// 1 / Σ weights of in-edges; no number where nobody has told yet.
    pub inverse_degree: Vec<f32>,
    /// (Σ weights)^(−1/2), likewise.
    pub inverse_root_degree: Vec<f32>,
    /// The owner of each node that is not own.
    owners: Vec<Rank>,
    numbers: HashMap<u64, u32>,
}

impl Known {
    /// Own rows alone.
    pub fn own(local: &Local) -> Known {
        Known {
            own: local.ids.len(),
            ids: local.ids.clone(),
            by_id: local.by_id.clone(),
            inverse_degree: local.inverse_degree.clone(),
            inverse_root_degree: local.inverse_root_degree.clone(),
            owners: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// Own rows, and the halo's with their owners.
    pub fn with_halo(local: &Local, owners: impl IntoIterator<Item = Rank>) -> Known {
        let mut known = Known::own(local);
        for (&id, owner) in local.halo_ids.iter().zip(owners) {
            known.number_of(id, owner);
        }
        known
    }

    /// The row in the halo of a node that is not own, where these have numbers in their order.
    pub fn halo_row(&self, number: u32) -> u32 {
        number - self.own as u32
    }

    /// How many nodes have numbers.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether nobody has a number.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The number of own rows, which come first.
    pub fn own_rows(&self) -> usize {
        self.own
    }

    /// Whether a node is another worker's.
    pub fn is_foreign(&self, number: u32) -> bool {
        number as usize >= self.own
    }

    /// How many of these nodes are other workers'.
    pub fn foreign(&self, numbers: &[u32]) -> usize {
        numbers.iter().filter(|&&number| self.is_foreign(number)).count()
    }

    /// The owner of a node that is not own.
    pub fn owner(&self, number: u32) -> Rank {
        self.owners[number as usize - self.own]
    }

    /// The number of a node of another worker, which gets one if it has none.
    pub fn number_of(&mut self, id: u64, owner: Rank) -> u32 {
        *self.numbers.entry(id).or_insert_with(|| {
            let number = self.ids.len() as u32;
            self.ids.push(id);
            self.owners.push(owner);
            self.inverse_degree.push(f32::NAN);
            self.inverse_root_degree.push(f32::NAN);
            number
        })
    }

    /// The number of a node that has one.
    pub fn number(&self, id: u64) -> Option<u32> {
        self.own_row(id).or_else(|| self.numbers.get(&id).copied())
    }

    /// Whether nobody has told the degree of a node yet.
    pub fn lacks_degree(&self, number: u32) -> bool {
        self.inverse_degree[number as usize].is_nan()
    }

    /// Takes up what the owner of a node says of its degree.
    pub fn set_degrees(&mut self, number: u32, [inverse, inverse_root]: [f32; 2]) {
        self.inverse_degree[number as usize] = inverse;
        self.inverse_root_degree[number as usize] = inverse_root;
    }

    /// The row of an own node.
    pub fn own_row(&self, id: u64) -> Option<u32> {
        let place = self.by_id.ids(&self.ids[..self.own]).binary_search(&id).ok()?;
        Some(self.by_id.row(place as u32))
    }
}
