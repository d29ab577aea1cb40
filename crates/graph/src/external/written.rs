//! Files of an unfinished cut, as they were written: what a crash, a full disk or a hand has changed is found out
//! before anything is made of it.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use blake3::Hasher;
use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use crate::aside::write_aside;
use crate::error::{GraphError, Result};

/// The length of a file, and the checksum of so many of its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    /// Its bytes; what comes after them is of a step that was not finished.
    pub(super) bytes: u64,
    /// Their BLAKE3 checksum in hexadecimal; empty where there are none.
    pub(super) blake3: String,
}

impl Written {
    /// What so many bytes have come to.
    pub(super) fn of(bytes: u64, hasher: &Hasher) -> Written {
        Written { bytes, blake3: if bytes == 0 { String::new() } else { hasher.finalize().to_hex().to_string() } }
    }

    /// Whether the file begins with these bytes.
    pub(super) fn is(&self, path: &Path) -> Result<bool> {
        Ok(self.bytes == 0 || self.hashed(path)?.is_some())
    }

    /// The hasher after these bytes of the file, if they are what was written.
    pub(super) fn hashed(&self, path: &Path) -> Result<Option<Hasher>> {
        let mut hasher = Hasher::new();
        let io = |source| GraphError::io(path, source);
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((self.bytes == 0).then_some(hasher)),
            Err(error) => return Err(io(error)),
        };
        let mut file = file.take(self.bytes);
        let (mut buffer, mut read) = (vec![0; 1 << 20], 0);
        loop {
            match file.read(&mut buffer).map_err(io)? {
                0 => break,
                count => {
                    hasher.update(&buffer[..count]);
                    read += count as u64;
                }
            }
        }
        Ok((read == self.bytes && Written::of(read, &hasher) == *self).then_some(hasher))
    }
}

/// Bytes of a checksum.
const CHECKSUM: usize = 32;

/// Writes a number for each node with a checksum behind them.
pub(super) fn write_numbers(path: &Path, pieces: &[&[u32]]) -> Result<()> {
    let mut hasher = Hasher::new();
    let written = write_aside::<std::io::Error>(path, |file| {
        for piece in pieces {
            let bytes: &[u8] = bytemuck::cast_slice(piece);
            hasher.update(bytes);
            file.write_all(bytes)?;
        }
        file.write_all(hasher.finalize().as_bytes())
    });
    written.map_err(|source| GraphError::io(path, source))
}

/// The numbers that [`write_numbers`] wrote, if they are there and as they were.
pub(super) fn read_numbers(path: &Path) -> Result<Option<Vec<u32>>> {
    if !path.exists() {
        return Ok(None);
    }
    let mut numbers: Vec<u32> = read(path)?;
    let Some(count) = numbers.len().checked_sub(CHECKSUM / size_of::<u32>()) else { return Ok(None) };
    let checksum = numbers.split_off(count);
    let found = blake3::hash(bytemuck::cast_slice(&numbers));
    Ok((found.as_bytes()[..] == *bytemuck::cast_slice::<u32, u8>(&checksum)).then_some(numbers))
}

/// All values of a file.
pub(super) fn read<T: Pod>(path: &Path) -> Result<Vec<T>> {
    let io = |source| GraphError::io(path, source);
    let mut file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len() as usize;
    let mut values = vec![T::zeroed(); bytes / size_of::<T>()];
    file.read_exact(bytemuck::cast_slice_mut(&mut values)).map_err(io)?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_or_are_not_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("numbers");
        assert_eq!(read_numbers(&path).unwrap(), None);
        write_numbers(&path, &[&[7], &[1, 2, 3]]).unwrap();
        assert_eq!(read_numbers(&path).unwrap(), Some(vec![7, 1, 2, 3]));
        let sound = std::fs::read(&path).unwrap();
        let flipped: Vec<u8> = sound.iter().enumerate().map(|(at, &byte)| byte ^ u8::from(at == 5)).collect();
        for damaged in [&sound[..5], &[], &sound[4..], &flipped] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read_numbers(&path).unwrap(), None);
        }
    }
}
