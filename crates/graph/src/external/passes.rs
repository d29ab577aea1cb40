//! What a partitioner has after each pass, on the disk.

use std::io::Write;
use std::path::PathBuf;

use super::deal::read;
use crate::aside::write_aside;
use crate::error::{GraphError, Result};
use crate::partition::Kept;

/// The file: the number of the step, and then a number for each node.
pub(super) struct Passes(pub(super) PathBuf);

impl Kept for Passes {
    fn last(&self) -> Result<Option<(u32, Vec<u32>)>> {
        if !self.0.exists() {
            return Ok(None);
        }
        let numbers: Vec<u32> = read(&self.0)?;
        Ok(numbers.split_first().map(|(&step, of)| (step, of.to_vec())))
    }

    fn keep(&self, step: u32, of: &[u32]) -> Result<()> {
        let written = write_aside::<std::io::Error>(&self.0, |file| {
            file.write_all(&step.to_le_bytes())?;
            file.write_all(bytemuck::cast_slice(of))
        });
        written.map_err(|source| GraphError::io(&self.0, source))
    }
}
