//! The one way to print bytes.

use indicatif::DecimalBytes;

/// Bytes with a decimal unit and two places, such as `2.39 MB`; a text and no `Display`, so that columns can pad it.
pub fn human_bytes(bytes: u64) -> String {
    DecimalBytes(bytes).to_string()
}
