//! The digest of a dataset that nobody holds: the same as that of the dataset in memory.

use super::rows::RowFiles;
use crate::digest::{array, head};
use crate::error::Result;
use crate::read::passes::{Id, Input};
use crate::source::RowSource;

/// [`crate::digest::digest`], in passes.
pub(super) fn digest((rows, data): (&RowFiles, &dyn Input), (labels, roles): (&[i32], &[u8])) -> Result<String> {
    let mut hash = blake3::Hasher::new();
    head(&mut hash, "offsets", rows.nodes() as u64 + 1);
    hash.update(&0u64.to_le_bytes());
    let mut before = 0;
    rows.pass(&mut |rows| {
        let ends: Vec<u64> = rows.offsets[1..].iter().map(|end| before + end).collect();
        hash.update(bytemuck::cast_slice(&ends));
        before += rows.sources.len() as u64;
        Ok(())
    })?;
    head(&mut hash, "sources", rows.edges());
    rows.pass(&mut |rows| {
        hash.update(bytemuck::cast_slice(rows.sources));
        Ok(())
    })?;
    let columns = data.columns() as u64;
    if columns > 0 {
        array(&mut hash, "dense columns", &[columns]);
        head(&mut hash, "features", rows.nodes() as u64 * columns);
        data.features(&mut |values| {
            hash.update(bytemuck::cast_slice(values));
            Ok(())
        })?;
    }
    if data.classes() > 0 {
        array(&mut hash, "single classes", &[data.classes() as u64]);
        array(&mut hash, "labels", labels);
    }
    if !roles.is_empty() {
        array(&mut hash, "split", roles);
    }
    if rows.nodes() > 0 && matches!(data.id(0), Some(Id::Integer(_))) {
        head(&mut hash, "integer ids", rows.nodes() as u64);
    }
    for id in (0..data.nodes()).filter_map(|node| data.id(node)) {
        match id {
            Id::Integer(id) => drop(hash.update(&id.to_le_bytes())),
            Id::Text(id) => array(&mut hash, "id", id.as_bytes()),
        }
    }
    Ok(format!("blake3:{}", hash.finalize().to_hex()))
}
