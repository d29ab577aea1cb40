//! The fingerprint of a part.

use crate::digest::{array, held, negatives, relations, rows};
use crate::part::Part;

impl Part {
    /// A digest of everything that training on this part depends on: all but names and the figures of the whole.
    pub fn digest(&self) -> [u8; 32] {
        let mut hash = blake3::Hasher::new();
        array(&mut hash, "nodes", &self.nodes);
        array(&mut hash, "offsets", &self.edges.offsets);
        array(&mut hash, "sources", &self.edges.sources);
        if let Some(weights) = &self.edges.data.weights {
            array(&mut hash, "weights", weights);
        }
        relations(&mut hash, self.edges.data.relations.as_ref());
        held(&mut hash, self.edges.data.held.as_ref());
        negatives(&mut hash, self.negatives.as_ref());
        if !self.left_out.is_empty() {
            array(&mut hash, "left out", &self.left_out);
        }
        rows(&mut hash, &self.features, &self.labels);
        array(&mut hash, "split", &self.roles);
        *hash.finalize().as_bytes()
    }
}
