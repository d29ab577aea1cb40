//! The card that a site hands out.

use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::error::{FederationError, Result};
use crate::file;
use crate::key::{Domain, PublicKey, Signature, SiteKey};
use crate::site::Site;

/// What a site hands out: its name, its key and its addresses, signed by the key itself, so that a mistyped card is
/// noticed. It proves nothing else: that a key is somebody's, people tell each other ([`PublicKey::print`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    site: Site,
    signature: Signature,
}

/// A card as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    name: String,
    key: PublicKey,
    #[serde(default)]
    addresses: Vec<SocketAddr>,
    signature: String,
}

impl Card {
    /// The card of the site that has this key.
    ///
    /// # Errors
    /// If the name is none ([`is_name`](crate::is_name)), or an address is given twice.
    pub fn make(name: &str, addresses: Vec<SocketAddr>, key: &SiteKey) -> Result<Card> {
        let site = Site { addresses, key: key.public(), name: name.to_owned() };
        checked("card", &site)?;
        let signature = key.sign(Domain::CARD, &signed_text(&site));
        Ok(Card { site, signature })
    }

    /// What it says of the site.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The name that its file should have: `north.site.toml`.
    pub fn file_name(&self) -> String {
        format!("{}.site.toml", self.site.name)
    }

    /// Its text, in TOML.
    pub fn text(&self) -> String {
        let Site { addresses, key, name } = &self.site;
        let mut text = format!("# Key's print, to be read over the telephone: {}\n", key.print());
        let quoted: Vec<String> = addresses.iter().map(|address| format!("\"{address}\"")).collect();
        // Writing to a string does not fail.
        let _ = writeln!(text, "name = \"{name}\"\nkey = \"{key}\"\naddresses = [{}]", quoted.join(", "));
        let _ = writeln!(text, "signature = \"{}\"", STANDARD.encode(self.signature.as_bytes()));
        text
    }

    /// Reads the text of a card.
    ///
    /// # Errors
    /// If it is no card, or its key has not signed it.
    pub fn parse(text: &str) -> Result<Card> {
        Card::parse_file("card", text)
    }

    /// Reads the file of a card.
    ///
    /// # Errors
    /// As [`Card::parse`], and if the file cannot be read or is larger than [`FILE_MAX`](crate::FILE_MAX).
    pub fn read(path: impl AsRef<Path>) -> Result<Card> {
        let path = path.as_ref();
        Card::parse_file(&path.display().to_string(), &file::read(path)?)
    }

    /// Writes the file of a card, in place of one that is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path.as_ref(), &self.text())
    }

    fn parse_file(name: &str, text: &str) -> Result<Card> {
        let form: Form = file::toml(name, text)?;
        let bytes = STANDARD.decode(&form.signature).ok().and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        let bytes = bytes.ok_or_else(|| FederationError::text(name, "signature", "expected 64 bytes in base64"))?;
        let site = Site { addresses: form.addresses, key: form.key, name: form.name };
        checked(name, &site)?;
        let signature = Signature::from_bytes(bytes);
        site.key.verify(Domain::CARD, &signed_text(&site), &signature).map_err(|_| {
            let what =
                "the key has not signed this name, key and addresses: something was mistyped; get the card again";
            FederationError::text(name, "signature", what)
        })?;
        Ok(Card { site, signature })
    }
}

fn checked(file: &str, site: &Site) -> Result<()> {
    site.fault().map_or(Ok(()), |(key, what)| Err(FederationError::text(file, key, what)))
}

/// What a card's signature is of.
fn signed_text(site: &Site) -> String {
    let addresses: String = site.addresses.iter().map(|address| format!("{address}\n")).collect();
    format!("{}\n{}\n{addresses}", site.name, site.key)
}
