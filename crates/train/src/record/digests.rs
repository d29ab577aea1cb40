//! Digests as they are written down.

/// The digits of a digest of parameters, with what they are of.
pub fn digest_text(digest: &[u8; 32]) -> String {
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("blake3:{digits}")
}
