//! Memory maps of the files of part folders; the one place of this crate with `unsafe`.
#![allow(unsafe_code)]

use std::path::Path;

use memmap2::Mmap;

use crate::error::{GraphError, Result};
use crate::limits::{not_opened, open_file};

/// Maps `path` for reading.
///
/// A map rather than a read: the checksum is computed and the tensors are copied out of the system's page cache, so a
/// file is never in this process's memory twice.
pub(super) fn map(path: &Path) -> Result<Mmap> {
    let file = open_file(path).map_err(|source| not_opened(path, source))?;
    // SAFETY: the map is private to this function's caller, which copies what it needs, as plain bytes, and drops it.
    // The program never writes to a part file once it has its final name, so nothing of ours changes the bytes under
    // the map. Another program that truncates the file meanwhile stops this one with SIGBUS, as with every map.
    unsafe { Mmap::map(&file) }.map_err(|source| GraphError::io(path, source))
}
