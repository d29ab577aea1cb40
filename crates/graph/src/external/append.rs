//! Many files that grow at the same time, in bounded memory and with few of them open.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use blake3::Hasher;

use super::written::Written;
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
    hasher: Hasher,
}

/// Bytes that wait to be written, over all files that grow at the same time.
pub(super) const BUFFERS: u64 = 64 << 20;

impl Appending {
    /// Files that begin with what was written, cut off there or made empty, for which at most so many bytes wait; but
    /// 4 KiB a file.
    pub(super) fn to(paths: impl IntoIterator<Item = (PathBuf, Written)>, waiting: u64) -> Result<Appending> {
        let mut files = Vec::new();
        for (path, written) in paths {
            let hasher = written.hashed(&path)?;
            let hasher = hasher.ok_or_else(|| GraphError::format(&path, "file", "expected what was written there"))?;
            let set = File::options().create(true).write(true).truncate(false).open(&path);
            set.and_then(|file| file.set_len(written.bytes)).map_err(|source| GraphError::io(&path, source))?;
            files.push(Growing { path, bytes: Vec::new(), length: written.bytes, hasher });
        }
        let buffer = (waiting as usize / files.len().max(1)).clamp(1 << 12, 1 << 20);
        Ok(Appending { files, buffer })
    }

    /// Adds bytes to the end of a file.
    pub(super) fn add(&mut self, file: usize, bytes: &[u8]) -> Result<()> {
        let growing = &mut self.files[file];
        if growing.bytes.len() + bytes.len() > self.buffer {
            growing.flush()?;
        }
        if bytes.len() > self.buffer {
            return growing.append(bytes);
        }
        // Not twice as much, as it would grow to by itself.
        growing.bytes.reserve_exact(self.buffer - growing.bytes.len());
        growing.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes all that waits; what is in the files.
    pub(super) fn flush(&mut self) -> Result<Vec<Written>> {
        let flush = |growing: &mut Growing| growing.flush().map(|()| Written::of(growing.length, &growing.hasher));
        self.files.iter_mut().map(flush).collect()
    }
}

impl Growing {
    fn flush(&mut self) -> Result<()> {
        let mut waiting = std::mem::take(&mut self.bytes);
        self.append(&waiting)?;
        waiting.clear();
        self.bytes = waiting;
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let appended = File::options().append(true).open(&self.path).and_then(|mut file| file.write_all(bytes));
        appended.map_err(|source| GraphError::io(&self.path, source))?;
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_waits_than_was_said_and_files_have_all_that_was_added() {
        let place = tempfile::tempdir().unwrap();
        let path = |file: usize| place.path().join(file.to_string());
        let (files, waiting) = (5usize, 64 << 10);
        let mut appending = Appending::to((0..files).map(|file| (path(file), Written::default())), waiting).unwrap();
        let mut expected = vec![Vec::new(); files];
        for step in 0..2000usize {
            // Some are larger than what may wait for a file.
            let bytes = vec![step as u8; if step % 97 == 0 { 40_000 } else { 1 + step * 37 % 900 }];
            appending.add(step % files, &bytes).unwrap();
            expected[step % files].extend_from_slice(&bytes);
            let taken: usize = appending.files.iter().map(|growing| growing.bytes.capacity()).sum();
            assert!(taken as u64 <= waiting, "step {step}: {taken} bytes wait");
        }
        let lengths = appending.flush().unwrap();
        for (file, expected) in expected.iter().enumerate() {
            assert!(std::fs::read(path(file)).unwrap() == *expected && lengths[file].bytes == expected.len() as u64);
            assert!(lengths[file].is(&path(file)).unwrap());
        }
    }
}
