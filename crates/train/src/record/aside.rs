//! Writing files so that they are never seen half-written, and reading them within limits.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use laconic_graph::aside;
use laconic_graph::limits::read_file;

use crate::error::{Result, TrainError};

/// Writes a file under another name beside it and renames it, so that it is never seen half-written.
///
/// # Errors
/// If the operating system refuses.
pub fn write_aside(path: &Path, bytes: &[u8]) -> Result<()> {
    write_aside_with(path, |file| file.write_all(bytes).map_err(|source| TrainError::io(path, source)))
}

/// As [`write_aside`], of what `fill` writes piece by piece.
///
/// # Errors
/// If `fill` fails, or the operating system refuses.
pub fn write_aside_with(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let mut failed = None;
    let written = aside::write_aside(path, |file| {
        let mut file = BufWriter::new(file);
        fill(&mut file).map_err(|error| {
            failed = Some(error);
            std::io::Error::other("given up")
        })?;
        file.flush()
    });
    failed.map_or(written.map_err(|source: std::io::Error| TrainError::io(path, source)), Err)
}

/// The bytes of a file of at most `most` bytes. Pipes and devices are no files, and are not waited for.
///
/// # Errors
/// If the file cannot be read or is larger.
pub fn read_within(path: &Path, most: u64) -> Result<Vec<u8>> {
    read_file(path, most).map_err(|source| match source.kind() {
        ErrorKind::FileTooLarge => TrainError::file(path, format!("expected at most {most} bytes, found more")),
        ErrorKind::InvalidInput | ErrorKind::IsADirectory => TrainError::file(path, source.to_string()),
        _ => TrainError::io(path, source),
    })
}
