//! The contract: what all sites of a run have agreed to run.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::digest::{Digest, hex, unhex};
use crate::error::{FederationError, Result};
use crate::file;
use crate::key::PublicKey;
use crate::site::{ADDRESSES_MAX, SITES_MAX, Site, is_name, no_name};
use crate::time::{Date, Time};

/// The first format of a contract.
const FORMAT: &str = "laconic contract 1";

/// The longest URL of a relay and the longest text of a version, in bytes.
const TEXT_MAX: usize = 200;

/// What a contract is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The run's name: [`is_name`](crate::is_name).
    pub run: String,
    /// The last day, of UTC, on which it may be run.
    pub expires: Date,
    /// The version of the program that all sites run, as the program says it.
    pub program: String,
    /// The version of what goes over the wire.
    pub wire: u32,
    /// The shared configuration: TOML, kept as it was written.
    pub config: String,
    /// The sites, in the order of their ranks: 1 to [`SITES_MAX`], none with the name or the key of another.
    pub sites: Vec<Site>,
    /// URLs of the relays that sites may meet at: `https://relay.example.org`.
    pub relays: Vec<String>,
}

/// What all sites of a run have agreed to run. Its text is JSON with sorted keys and no space outside strings (RFC
/// 8785), so that each contract has one text only, and with it one digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    terms: Terms,
    id: String,
    text: String,
    digest: Digest,
}

/// A contract as its file has it: keys in the order of the alphabet.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    config: String,
    expires: String,
    format: String,
    id: String,
    program: String,
    relays: Vec<String>,
    run: String,
    sites: Vec<Site>,
    wire: u32,
}

impl Contract {
    /// A contract of these terms, with an id of its own.
    ///
    /// # Errors
    /// If a term is none, the whole is larger than [`FILE_MAX`](crate::FILE_MAX), or there are no random numbers.
    pub fn make(terms: Terms) -> Result<Contract> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(FederationError::Random)?;
        Contract::with_id("contract", terms, hex(&id))
    }

    /// Reads the text of a contract.
    ///
    /// # Errors
    /// If it is no contract, or not in the one form that contracts are written in.
    pub fn parse(text: &str) -> Result<Contract> {
        Contract::parse_file("contract", text)
    }

    /// Reads the file of a contract.
    ///
    /// # Errors
    /// As [`Contract::parse`], and if the file cannot be read or is larger than [`FILE_MAX`](crate::FILE_MAX).
    pub fn read(path: impl AsRef<Path>) -> Result<Contract> {
        let path = path.as_ref();
        Contract::parse_file(&path.display().to_string(), &file::read(path)?)
    }

    /// Writes the file of a contract, in place of one that is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path.as_ref(), &self.text)
    }

    /// What it is about.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// What tells this run from all others: 16 random hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its text: what its file holds, byte for byte.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The digest of its text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The rank of the site that has a key: its place in the list of sites, from 0.
    pub fn rank_of(&self, key: &PublicKey) -> Option<usize> {
        self.terms.sites.iter().position(|site| site.key == *key)
    }

    /// The rank of the site of a name.
    pub fn rank_of_name(&self, name: &str) -> Option<usize> {
        self.terms.sites.iter().position(|site| site.name == name)
    }

    /// Whether it may be run now, by a program of this version that speaks this version of the wire.
    ///
    /// # Errors
    /// If it has expired, or is for another version: with both values.
    pub fn check(&self, now: Time, program: &str, wire: u32) -> Result<()> {
        let Terms { run, expires, program: agreed, wire: agreed_wire, .. } = &self.terms;
        let what = if now.date() > *expires {
            format!("it expired on {expires}, and today is {}: make a new one, and let all sites sign it", now.date())
        } else if agreed != program {
            format!(
                "it is for version {agreed:?} of the program, and this is {program:?}: install the former, or make a \
                new contract"
            )
        } else if *agreed_wire != wire {
            format!(
                "it is for version {agreed_wire} of the wire, and this program speaks {wire}: all sites need the \
                same program"
            )
        } else {
            return Ok(());
        };
        Err(FederationError::Contract { run: run.clone(), what })
    }

    fn parse_file(file: &str, text: &str) -> Result<Contract> {
        file::check_length(file, text)?;
        let form: Form = serde_json::from_str(text).map_err(|e| {
            let place = format!("line {}, column {}", e.line(), e.column());
            FederationError::text(file, place, e.to_string())
        })?;
        let wrong = |place: &str, what: String| FederationError::text(file, place, what);
        if form.format != FORMAT {
            return Err(wrong("format", format!("{:?}: expected {FORMAT:?}", form.format)));
        }
        if unhex::<8>(&form.id).is_none() {
            return Err(wrong("id", format!("{:?}: expected 16 lower-case hexadecimal digits", form.id)));
        }
        let Form { config, expires, program, relays, run, sites, wire, id, .. } = form;
        let expires = expires.parse().map_err(|what| wrong("expires", what))?;
        let contract = Contract::with_id(file, Terms { run, expires, program, wire, config, sites, relays }, id)?;
        if contract.text != text {
            let differs = contract.text.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
            let what = "the file was not written by this program: a contract has sorted keys, no spaces and no line \
                break at its end; get it again, byte for byte";
            return Err(wrong(&format!("byte {}", differs + 1), what.to_owned()));
        }
        Ok(contract)
    }

    fn with_id(file: &str, terms: Terms, id: String) -> Result<Contract> {
        terms.check().map_err(|(place, what)| FederationError::text(file, place, what))?;
        let Terms { run, expires, program, wire, config, sites, relays } = terms.clone();
        let format = FORMAT.to_owned();
        let form = Form { config, expires: expires.to_string(), format, id, program, relays, run, sites, wire };
        let text = serde_json::to_string(&form).map_err(|e| FederationError::text(file, "contract", e.to_string()))?;
        file::check_length(file, &text)?;
        Ok(Contract { terms, id: form.id, digest: Digest::of(text.as_bytes()), text })
    }
}

impl Terms {
    /// Says which term is none, and what is expected.
    fn check(&self) -> std::result::Result<(), (String, String)> {
        let plain = |text: &str| !text.is_empty() && text.len() <= TEXT_MAX && !text.chars().any(char::is_control);
        let fail = |place: &str, what: String| Err((place.to_owned(), what));
        if !is_name(&self.run) {
            return fail("run", no_name(&self.run));
        }
        if !plain(&self.program) {
            return fail("program", format!("expected a version of 1 to {TEXT_MAX} bytes in one line"));
        }
        if let Err(e) = self.config.parse::<toml::Table>() {
            return fail("config", format!("expected TOML: {}", e.message()));
        }
        if !(1..=SITES_MAX).contains(&self.sites.len()) {
            return fail("sites", format!("{} sites; expected 1 to {SITES_MAX}", self.sites.len()));
        }
        let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for (rank, site) in self.sites.iter().enumerate() {
            let place = |key: &str| format!("sites[{rank}].{key}");
            if let Some((key, what)) = site.fault() {
                return fail(&place(key), what);
            }
            if !names.insert(&site.name) {
                return fail(&place("name"), format!("{:?} is the name of another site too", site.name));
            }
            if !keys.insert(&site.key) {
                return fail(&place("key"), format!("{} is the key of another site too", site.key));
            }
        }
        if self.relays.len() > ADDRESSES_MAX {
            return fail("relays", format!("{} relays; at most {ADDRESSES_MAX} are expected", self.relays.len()));
        }
        for (at, relay) in self.relays.iter().enumerate() {
            let schemes = ["https://", "http://"];
            let host = schemes.iter().find_map(|scheme| relay.strip_prefix(scheme));
            if !plain(relay) || host.is_none_or(str::is_empty) || relay.contains(char::is_whitespace) {
                let what = format!("{relay:?}: expected a URL such as https://relay.example.org");
                return fail(&format!("relays[{at}]"), what);
            }
            if self.relays[..at].contains(relay) {
                return fail(&format!("relays[{at}]"), format!("{relay:?} is there twice; take one off"));
            }
        }
        Ok(())
    }
}
