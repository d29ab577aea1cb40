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

/// What stands in the file; the default where there is none, or none that can be read: then it is done again.
pub(super) fn load<S: DeserializeOwned + Default>(path: &Path) -> S {
    let text = read_limited(path, "bytes of the file", BYTES_MAX).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Puts it there, whole or not at all.
pub(super) fn store(path: &Path, state: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(state).expect("what has been done is plain data");
    write_aside::<std::io::Error>(path, |file| file.write_all(&text)).map_err(|source| GraphError::io(path, source))
}
