//! Many files that grow at the same time, in bounded memory and with few of them open.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use crate::error::{GraphError, Result};

/// Files to append to.
pub(super) struct Appending {
    files: Vec<Growing>,
    buffer: usize,
}

struct Growing {
    path: PathBuf,
    bytes: Vec<u8>,
    length: u64,
}

/// Bytes that wait to be written, over all files.
pub(super) const BUFFERS: u64 = 64 << 20;

impl Appending {
    /// Files of these lengths, cut off there or made empty.
    pub(super) fn to(paths: impl IntoIterator<Item = (PathBuf, u64)>) -> Result<Appending> {
        let mut files = Vec::new();
        for (path, length) in paths {
            let set = File::options().create(true).write(true).truncate(false).open(&path);
            set.and_then(|file| file.set_len(length)).map_err(|source| GraphError::io(&path, source))?;
            files.push(Growing { path, bytes: Vec::new(), length });
        }
        let buffer = (BUFFERS as usize / files.len().max(1)).clamp(1 << 12, 1 << 20);
        Ok(Appending { files, buffer })
    }

    /// Adds bytes to the end of a file.
    pub(super) fn add(&mut self, file: usize, bytes: &[u8]) -> Result<()> {
        let growing = &mut self.files[file];
        growing.bytes.extend_from_slice(bytes);
        if growing.bytes.len() >= self.buffer { growing.flush() } else { Ok(()) }
    }

    /// Writes all that waits; the lengths of the files.
    pub(super) fn flush(&mut self) -> Result<Vec<u64>> {
        self.files.iter_mut().map(|growing| growing.flush().map(|()| growing.length)).collect()
    }
}

impl Growing {
    fn flush(&mut self) -> Result<()> {
        let appended = File::options().append(true).open(&self.path).and_then(|mut file| file.write_all(&self.bytes));
        appended.map_err(|source| GraphError::io(&self.path, source))?;
        self.length += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }
}
