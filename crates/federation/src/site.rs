//! What the others know of a site.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::key::PublicKey;

/// The most sites that a contract may have.
pub const SITES_MAX: usize = 64;

/// The most addresses that a site may have, and the most relays that a contract may name.
pub const ADDRESSES_MAX: usize = 16;

/// A site: its name, its key, and where it is listening, if anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Where others may reach it, such as `192.0.2.7:7443`; none behind a firewall.
    pub addresses: Vec<SocketAddr>,
    /// The key by which others know it.
    pub key: PublicKey,
    /// Its name: [`is_name`].
    pub name: String,
}

impl Site {
    /// What is wrong with it: the key at fault, and what is expected.
    pub(crate) fn fault(&self) -> Option<(&'static str, String)> {
        let different: BTreeSet<&SocketAddr> = self.addresses.iter().collect();
        match self.addresses.len() {
            _ if !is_name(&self.name) => Some(("name", no_name(&self.name))),
            count if count > ADDRESSES_MAX => {
                Some(("addresses", format!("{count} addresses; at most {ADDRESSES_MAX} are expected")))
            }
            count if different.len() < count => Some(("addresses", "the same address twice; take one off".to_owned())),
            _ => None,
        }
    }
}

/// Whether a text may be the name of a site or a run: 1 to 40 of the characters a to z, 0 to 9 and `-`.
pub fn is_name(text: &str) -> bool {
    let fine = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=40).contains(&text.len()) && text.bytes().all(fine)
}

/// What to say of a text that is no name.
pub(crate) fn no_name(text: &str) -> String {
    format!("{text:?}: expected a name of 1 to 40 of the characters a to z, 0 to 9 and -")
}
