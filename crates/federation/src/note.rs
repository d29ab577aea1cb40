//! Lines of signatures and signed notes as C2SP has them (<https://c2sp.org/signed-note>): a text that ends in a line
//! break, an empty line, and a line `— name base64(key id ‖ signature)` for each that has signed. Here a text's first
//! line is always its domain.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};

use crate::key::{Domain, PublicKey, Signature, SiteKey};

/// What a line of a signature begins with.
const DASH: &str = "— ";

/// The number of Ed25519 among C2SP's kinds of signatures.
const ED25519: u8 = 1;

/// A line of a signature, read.
pub(crate) struct Signed<'a> {
    pub(crate) name: &'a str,
    key_id: [u8; 4],
    pub(crate) signature: Signature,
}

impl<'a> Signed<'a> {
    /// Reads a line without its end; `None` of what is no such line.
    pub(crate) fn parse(line: &'a str) -> Option<Signed<'a>> {
        let (name, coded) = line.strip_prefix(DASH)?.split_once(' ')?;
        let bytes: [u8; 68] = STANDARD.decode(coded).ok()?.try_into().ok()?;
        let (key_id, signature) = bytes.split_first_chunk::<4>()?;
        let signature = Signature::from_bytes(signature.try_into().ok()?);
        (!name.is_empty()).then_some(Signed { name, key_id: *key_id, signature })
    }

    /// Whether `key`, under this line's name, has signed the text.
    pub(crate) fn is_by(&self, key: &PublicKey, domain: Domain, text: &str) -> bool {
        self.key_id == key_id(self.name, key) && key.verify(domain, text, &self.signature).is_ok()
    }
}

/// The line of a signature, with its end.
pub(crate) fn line(name: &str, key: &PublicKey, signature: &Signature) -> String {
    let bytes = [key_id(name, key).as_slice(), signature.as_bytes()].concat();
    format!("{DASH}{name} {}\n", STANDARD.encode(bytes))
}

/// A whole note: the text, which ends in a line break, and the signature of one.
pub(crate) fn signed(name: &str, key: &SiteKey, domain: Domain, text: &str) -> String {
    let message = domain.message(text);
    format!("{message}\n{}", line(name, &key.public(), &key.sign(domain, text)))
}

/// Takes a note apart: the text after its domain's line, and the lines of signatures; `None` if it is no note of this
/// domain. Nothing is verified here.
pub(crate) fn split(domain: Domain, note: &str) -> Option<(&str, &str)> {
    let at = note.rfind("\n\n")?;
    let text = note[..=at].strip_prefix(&domain.message(""))?;
    Some((text, &note[at + 2..]))
}

fn key_id(name: &str, key: &PublicKey) -> [u8; 4] {
    let digest =
        Sha256::new().chain_update(name).chain_update([b'\n', ED25519]).chain_update(key.as_bytes()).finalize();
    let [a, b, c, d, ..]: [u8; 32] = digest.into();
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example in the documentation of Go's `golang.org/x/mod/sumdb/note`.
    #[test]
    fn signed_notes_of_other_programs_are_verified() {
        let coded = "ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let key: [u8; 32] = STANDARD.decode(coded).unwrap()[1..].try_into().unwrap();
        let key: PublicKey = crate::digest::hex(&key).parse().unwrap();
        let domain = Domain::new("If you think cryptography is the answer to your problem,");
        let note = "If you think cryptography is the answer to your problem,\n\
            then you don't know what your problem is.\n\
            \n\
            — PeterNeumann \
            x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
        let (text, lines) = split(domain, note).unwrap();
        let signed = Signed::parse(lines.trim_end()).unwrap();
        assert_eq!(key_id("PeterNeumann", &key), [0xc7, 0x4f, 0x20, 0xa3]);
        assert!(signed.is_by(&key, domain, text));
        assert!(!signed.is_by(&key, domain, &text.to_uppercase()));
        assert_eq!(line("PeterNeumann", &key, &signed.signature), lines);
    }
}
