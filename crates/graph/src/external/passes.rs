//! What a partitioner has after each pass, on the disk.

use std::path::PathBuf;

use super::written::{read_numbers, write_numbers};
use crate::error::Result;
use crate::partition::Kept;

/// The file: the number of the step, and then a number for each node.
pub(super) struct Passes(pub(super) PathBuf);

impl Kept for Passes {
    fn last(&self) -> Result<Option<(u32, Vec<u32>)>> {
        let numbers = read_numbers(&self.0)?.unwrap_or_default();
        Ok(numbers.split_first().map(|(&step, of)| (step, of.to_vec())))
    }

    fn keep(&self, step: u32, of: &[u32]) -> Result<()> {
        write_numbers(&self.0, &[&[step], of])
    }
}
