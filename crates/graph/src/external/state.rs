//! What an unfinished cut has done already, on the disk.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::aside::write_aside;
use crate::error::{GraphError, Result};
use crate::limits::read_limited;

/// More than what is said of 4,096 parts and their buckets.
const BYTES_MAX: u64 = 1 << 30;

/// What stands in the file; the default where there is none, or none that is as it was written: then it is done again.
pub(super) fn load<S: DeserializeOwned + Default>(path: &Path) -> S {
    let text = read_limited(path, "bytes of the file", BYTES_MAX).unwrap_or_default();
    // The last line is a checksum of those before it.
    let Some((text, checksum)) = text.split_last_chunk::<CHECKSUM>() else { return S::default() };
    if blake3::hash(text).to_hex().as_bytes() != checksum {
        return S::default();
    }
    serde_json::from_slice(text).unwrap_or_default()
}

/// Characters of a checksum in hexadecimal.
const CHECKSUM: usize = 64;

/// Puts it there, whole or not at all.
pub(super) fn store(path: &Path, state: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_vec(state).expect("what has been done is plain data");
    text.push(b'\n');
    text.extend_from_slice(blake3::hash(&text).to_hex().as_bytes());
    write_aside::<std::io::Error>(path, |file| file.write_all(&text)).map_err(|source| GraphError::io(path, source))
}
