//! Memory maps of the files of part folders.
#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::Path;

use bytemuck::Pod;
use memmap2::Mmap;

use crate::error::{GraphError, Result};
use crate::limits::{not_opened, open_file};
use crate::memory::arrays;

/// Where the dense features of a part are while it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeaturesIn {
    /// In memory, all of them.
    #[default]
    Memory,
    /// In their file, of which memory holds what was looked at lately; in memory where the system has no such maps, or
    /// [`Lines`](crate::memory::Lines) is not the program's allocator.
    File,
}

/// Maps `path` for reading.
///
/// A map rather than a read: the checksum is computed and the tensors are copied out of the system's page cache, so a
/// file is never in this process's memory twice.
pub(super) fn map(path: &Path) -> Result<(File, Metadata, Mmap)> {
    let file = open_file(path).map_err(|source| not_opened(path, source))?;
    let opened = file.metadata().map_err(|source| GraphError::io(path, source))?;
    // SAFETY: the map is private to this function's caller, which copies what it needs, as plain bytes, and drops it.
    // The program never writes to a part file once it has its final name, so nothing of ours changes the bytes under
    // the map. Another program that truncates the file meanwhile stops this one with SIGBUS, as with every map.
    let map = unsafe { Mmap::map(&file) }.map_err(|source| GraphError::io(path, source))?;
    Ok((file, opened, map))
}

/// Values that stay in their file until they are looked at, where they can.
pub(super) fn array<T: Pod>(file: (&File, &Path, &Metadata), bytes: Range<usize>) -> Option<Vec<T>> {
    // SAFETY: they are numbers that are read, each by itself; who reads them asks afterwards whether the file has
    // changed (`memory::changed_file`).
    unsafe { arrays::array(file, bytes) }
}
