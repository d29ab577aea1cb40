//! The partitioners of this crate. This file alone knows all of them.

use super::{PartitionerKind, PartitionerRegistry, given, multilevel, random, streaming, super_node};

/// One line each.
static OURS: [&PartitionerKind; 5] =
    [&random::KIND, &multilevel::KIND, &super_node::KIND, &streaming::KIND, &given::KIND];

impl Default for PartitionerRegistry {
    /// The partitioners of this crate.
    fn default() -> Self {
        PartitionerRegistry::of(&OURS)
    }
}

impl PartitionerRegistry {
    /// The partitioner that cuts few edges, whatever it takes.
    pub fn of_small_cuts() -> &'static PartitionerKind {
        &multilevel::KIND
    }
}
