//! How much a file may ask for.

use crate::error::{GraphError, Result};
use std::path::Path;

/// Bounds that every reader keeps.
///
/// They are the second fence. The first one holds whatever the limits: a count in a header is never believed before it
/// has been compared with the bytes that are there, so memory stays within a small multiple of the (unpacked) file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Nodes of a graph; never more than 32-bit ids can name.
    pub nodes_max: u64,
    /// Edges of a graph, before duplicates are merged and other directions added.
    pub edges_max: u64,
    /// Classes of labels.
    pub classes_max: u64,
    /// Columns of sparse features; nothing in a file is as large as their number says.
    pub columns_max: u64,
    /// Stored feature values (rows × columns if dense, non-zeros if sparse), and likewise labels and masks.
    pub features_values_max: u64,
    /// Values of a dense matrix made from a sparse one.
    pub dense_values_max: u64,
    /// Bytes of a file as it lies on the disk.
    pub file_bytes_max: u64,
    /// Bytes of a file or archive member after it was unpacked.
    pub unpacked_bytes_max: u64,
    /// Bytes of one line of a text file.
    pub line_bytes_max: u64,
    /// Bytes of one node id or other piece of text.
    pub string_bytes_max: u64,
}

impl Default for Limits {
    /// Room for the largest graphs that 32-bit node ids can hold, with billions of edges.
    fn default() -> Self {
        Limits {
            nodes_max: u64::from(u32::MAX),
            edges_max: 1 << 35,
            classes_max: 1 << 20,
            columns_max: 1 << 24,
            features_values_max: 1 << 37,
            dense_values_max: 1 << 31,
            file_bytes_max: 1 << 40,
            unpacked_bytes_max: 1 << 40,
            line_bytes_max: 1 << 30,
            string_bytes_max: 1 << 16,
        }
    }
}

/// A file of so many bytes may claim 1024 times as many nodes: what deflate could at best pack into it.
const NODES_PER_BYTE_MAX: u64 = 1024;

impl Limits {
    /// Accepts a count of `nodes` that nothing but `place` in a file of `bytes` bytes vouches for.
    pub(crate) fn accept_nodes(&self, path: &Path, place: &str, nodes: u64, bytes: u64) -> Result<usize> {
        if nodes > self.nodes_max {
            return Err(GraphError::too_large(path, format!("{place}: {nodes} nodes"), self.nodes_max));
        }
        if nodes > bytes.saturating_add(1).saturating_mul(NODES_PER_BYTE_MAX) {
            let expected = format!("{nodes} nodes cannot be described by {bytes} bytes");
            return Err(GraphError::format(path, place, expected));
        }
        Ok(nodes as usize)
    }
}
