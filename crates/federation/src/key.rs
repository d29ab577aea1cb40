//! Keys of sites and what they sign. Ed25519 (RFC 8032); signatures are checked strictly: one form of each only.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

use ed25519_dalek::{Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::digest::{hex, unhex};
use crate::error::{FederationError, Result};
use crate::file;

/// The first line of whatever is signed, so that no signature can pass for one of another purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Domain(&'static str);

impl Domain {
    /// What a site says of itself ([`Card`](crate::Card)).
    pub const CARD: Domain = Domain::new("laconic card v1");
    /// A site's assent to a contract ([`Agreement`](crate::Agreement)).
    pub const CONTRACT: Domain = Domain::new("laconic contract v1");
    /// How far a log has come ([`AuditLog::checkpoint`](crate::AuditLog::checkpoint)).
    pub const AUDIT: Domain = Domain::new("laconic audit v1");

    /// A domain of the program's own.
    ///
    /// # Panics
    /// If it is empty or has more than one line: where it is a constant, when it is compiled.
    pub const fn new(line: &'static str) -> Domain {
        let bytes = line.as_bytes();
        assert!(!bytes.is_empty(), "a domain has a text");
        let mut at = 0;
        while at < bytes.len() {
            assert!(bytes[at] >= b' ', "a domain is one line");
            at += 1;
        }
        Domain(line)
    }

    /// What is signed: the domain's line, then the text.
    pub(crate) fn message(self, text: &str) -> String {
        format!("{}\n{text}", self.0)
    }
}

/// A site's secret key: 32 bytes of Ed25519 seed. Erased from memory when it is dropped; never printed.
#[derive(Clone)]
pub struct SiteKey(SigningKey);

impl SiteKey {
    /// A new key from the operating system's randomness.
    ///
    /// # Errors
    /// If the operating system has none.
    pub fn new() -> Result<SiteKey> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut_slice()).map_err(FederationError::Random)?;
        Ok(SiteKey(SigningKey::from_bytes(&seed)))
    }

    /// The key of a seed.
    pub fn from_seed(seed: [u8; 32]) -> SiteKey {
        SiteKey(SigningKey::from_bytes(&seed))
    }

    /// The seed, for the transport's own use of the key.
    pub fn seed(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The key by which others know the site.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// Signs the domain's line and the text.
    pub fn sign(&self, domain: Domain, text: &str) -> Signature {
        Signature(self.0.sign(domain.message(text).as_bytes()).to_bytes())
    }

    /// Writes the key to a new file, which only its owner may read (mode 0600) where the system knows this: 64
    /// lower-case hexadecimal digits and the end of the line.
    ///
    /// # Errors
    /// If there is such a file already, or it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let mut file = file::create(path, "a key", true)?;
        let text = Zeroizing::new(format!("{}\n", hex(self.0.as_bytes())));
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|e| {
            // Half a key is of no use, and would be in the way of a whole one.
            drop(std::fs::remove_file(path));
            FederationError::io(path, "write")(e)
        })
    }

    /// Reads a key.
    ///
    /// # Errors
    /// If group or others may read the file (Unix), or it holds something else. The message never has the file's text.
    pub fn read(path: impl AsRef<Path>) -> Result<SiteKey> {
        let path = path.as_ref();
        let opened = std::fs::File::open(path).map_err(FederationError::io(path, "read"))?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = opened.metadata().map_err(FederationError::io(path, "read"))?.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(FederationError::Mode { path: path.to_owned(), mode });
            }
        }
        let text = Zeroizing::new(file::read_open(path, &opened)?);
        let seed = unhex(text.strip_suffix('\n').unwrap_or(&text)).map(Zeroizing::new);
        let what = "expected 64 lower-case hexadecimal digits and nothing else: is it the file of a key?";
        let seed = seed.ok_or_else(|| FederationError::text(&path.display().to_string(), "line 1", what))?;
        Ok(SiteKey(SigningKey::from_bytes(&seed)))
    }
}

impl fmt::Debug for SiteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SiteKey(of {})", self.public())
    }
}

/// The key by which others know a site: 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A short form that people read to each other over the telephone: four groups of four hexadecimal digits, the
    /// first 8 bytes of the key's BLAKE3 digest. Two keys of equal print take 2⁶⁴ tries to find for a given one.
    pub fn print(&self) -> String {
        let digest = blake3::hash(&self.0);
        let (groups, _) = digest.as_bytes()[..8].as_chunks::<2>();
        groups.iter().map(|group| hex(group)).collect::<Vec<_>>().join("-")
    }

    /// Checks a signature of the domain's line and the text.
    ///
    /// # Errors
    /// If this key has not signed it.
    pub fn verify(&self, domain: Domain, text: &str, signature: &Signature) -> Result<()> {
        let message = domain.message(text);
        let signature = ed25519_dalek::Signature::from_bytes(&signature.0);
        let verified =
            VerifyingKey::from_bytes(&self.0).and_then(|key| key.verify_strict(message.as_bytes(), &signature));
        verified.map_err(|_| FederationError::Signature { of: domain.0.to_owned(), key: self.to_string() })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<PublicKey, String> {
        let bytes =
            unhex(text).ok_or_else(|| format!("{text:?}: expected a key of 64 lower-case hexadecimal digits"))?;
        let sound = VerifyingKey::from_bytes(&bytes).is_ok_and(|key| !key.is_weak());
        if sound { Ok(PublicKey(bytes)) } else { Err(format!("{text:?}: no key of Ed25519 has these digits")) }
    }
}

impl TryFrom<String> for PublicKey {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<PublicKey, String> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> String {
        key.to_string()
    }
}

/// An Ed25519 signature: 64 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature([u8; 64]);

impl Signature {
    /// A signature that has come in its 64 bytes.
    pub fn from_bytes(bytes: [u8; 64]) -> Signature {
        Signature(bytes)
    }

    /// Its 64 bytes.
    pub fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}
