//! Memory maps of the files of part folders.
#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytemuck::Pod;
use laconic_array::{Array, Element, Lend};
use memmap2::Mmap;

use crate::error::{GraphError, Result};
use crate::limits::{not_opened, open_file};
#[cfg(unix)]
use crate::memory::shrunk::Watch;

/// Where the dense features of a part are while it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeaturesIn {
    /// In memory, all of them.
    #[default]
    Memory,
    /// In their file, of which memory holds what was looked at lately; in memory where they are few or the system has
    /// no such maps.
    File,
}

/// Fewer bytes than these are copied into memory whatever was asked for.
const LARGE: usize = 64 << 10;

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

/// A file that was opened.
#[derive(Clone, Copy)]
pub(super) struct Opened<'a> {
    /// The file itself.
    pub file: &'a File,
    /// Where it is.
    pub path: &'a Path,
    /// What was known of it then.
    pub metadata: &'a Metadata,
}

/// Values that stay in their file until somebody looks at them.
struct InFile {
    /// Goes before the map does.
    #[cfg(unix)]
    _watch: Watch,
    map: Mmap,
    bytes: Range<usize>,
    path: PathBuf,
    file: File,
    opened: Metadata,
}

impl<T: Pod + Element> Lend<T> for InFile {
    fn values(&self) -> &[T] {
        bytemuck::cast_slice(&self.map[self.bytes.clone()])
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    /// Of the file itself: one that was put in its place is another.
    fn has_changed(&self) -> bool {
        let same = |now: Metadata| now.len() == self.opened.len() && now.modified().ok() == self.opened.modified().ok();
        !self.file.metadata().is_ok_and(same)
    }
}

/// Values that stay in their file until they are looked at; `None` where they cannot, because they are few, the system
/// has no such maps, or values do not begin where their kind has to. Where the file becomes shorter the array reads
/// zeros, and its lender says that the file has changed since it was `opened`.
pub(super) fn array<T: Pod + Element>(from: Opened<'_>, bytes: Range<usize>) -> Option<Array<T>> {
    let Opened { file, path, metadata: opened } = from;
    if cfg!(not(unix)) || bytes.len() < LARGE {
        return None;
    }
    let file = file.try_clone().ok()?;
    // SAFETY: they are numbers, of which any bytes are some; who reads them asks afterwards whether the file has
    // changed, and takes no value for one that stays.
    let map = unsafe { Mmap::map(&file) }.ok().filter(|map| map.len() >= bytes.end)?;
    bytemuck::try_cast_slice::<u8, T>(&map[bytes.clone()]).ok()?;
    Some(Array::lent(Arc::new(InFile {
        #[cfg(unix)]
        _watch: Watch::over(&map)?,
        map,
        bytes,
        path: path.to_owned(),
        file,
        opened: opened.clone(),
    })))
}
