//! What is to be cut.

use std::path::Path;

use crate::build::BuildOptions;
use crate::error::Result;
use crate::partition::{PartitionOptions, PartitionerKind};
use crate::read::passes::{Input, fingerprint};

/// What is to be cut, how, and where the parts go.
pub struct Job<'a> {
    /// The graph that is to be cut.
    pub data: &'a dyn Input,
    /// Whether edges that lead one way get their other direction, and whether those from a node to itself stay.
    pub how: BuildOptions,
    /// Who owns which node.
    pub partitioner: (&'static PartitionerKind, &'a PartitionOptions),
    /// How many parts.
    pub parts: u32,
    /// The seed of all that the partitioner draws.
    pub seed: u64,
    /// The bytes of memory that may be taken.
    pub memory: u64,
    /// The folder to be, and whether it may take the place of another folder of parts.
    pub out: (&'a Path, bool),
    /// Is told what is being done.
    pub tell: &'a dyn Fn(&str),
}

impl Job<'_> {
    /// How edges are meant: where each is there once for both directions, both are.
    pub(super) fn how(&self) -> BuildOptions {
        BuildOptions { symmetrise: self.how.symmetrise || !self.data.is_directed(), ..self.how }
    }

    /// What an unfinished cut is compared by: another one would be of something else.
    pub(super) fn what(&self) -> Result<String> {
        let (kind, options) = self.partitioner;
        let how = (self.how(), kind.name, options, self.parts, self.seed);
        let file = options.file.as_deref().map_or(Ok(String::new()), fingerprint)?;
        Ok(format!("{how:?}\n{}{file}", self.data.fingerprint()?))
    }
}
