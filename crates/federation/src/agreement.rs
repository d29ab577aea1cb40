//! The signatures of all sites under a contract.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::contract::Contract;
use crate::error::{FederationError, Result};
use crate::file;
use crate::key::{Domain, Signature, SiteKey};
use crate::note::{self, Signed};
use crate::site::Site;

/// The signatures under a contract, each verified. Kept as a C2SP signed note (<https://c2sp.org/signed-note>) of two
/// lines, `laconic contract v1` and the contract's digest, so that other programs can verify it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement<'a> {
    contract: &'a Contract,
    signatures: BTreeMap<usize, Signature>,
}

impl<'a> Agreement<'a> {
    /// An agreement that nobody has signed yet.
    pub fn new(contract: &'a Contract) -> Agreement<'a> {
        Agreement { contract, signatures: BTreeMap::new() }
    }

    /// Where the signatures under a contract's file are kept: `run.contract.json.signatures`.
    pub fn path(contract: impl AsRef<Path>) -> PathBuf {
        let mut name = OsString::from(contract.as_ref());
        name.push(".signatures");
        name.into()
    }

    /// Signs as the site that has this key; who has signed signs the same again.
    ///
    /// # Errors
    /// If the key is no site's of the contract.
    pub fn sign(&mut self, key: &SiteKey) -> Result<()> {
        let public = key.public();
        let Some(rank) = self.contract.rank_of(&public) else {
            let what = format!("the key {public} is no site's of it: sign with the key whose card is in the contract");
            return Err(FederationError::Contract { run: self.contract.terms().run.clone(), what });
        };
        self.signatures.insert(rank, key.sign(Domain::CONTRACT, &self.signed_text()));
        Ok(())
    }

    /// Adds what others have signed: the text of an agreement of the same contract, or lines of signatures alone.
    ///
    /// # Errors
    /// If it is of another contract, a line is no signature, or is by a key that is no site's; then nothing is added.
    pub fn add(&mut self, text: &str) -> Result<()> {
        self.add_file("signatures", text)
    }

    /// Reads the file of an agreement.
    ///
    /// # Errors
    /// As [`Agreement::add`], and if the file cannot be read or is larger than [`FILE_MAX`](crate::FILE_MAX).
    pub fn read(path: impl AsRef<Path>, contract: &'a Contract) -> Result<Agreement<'a>> {
        let path = path.as_ref();
        let mut agreement = Agreement::new(contract);
        agreement.add_file(&path.display().to_string(), &file::read(path)?)?;
        Ok(agreement)
    }

    /// Writes the file of an agreement, in place of one that is there.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        file::write(path.as_ref(), &self.text())
    }

    /// Its text: the note and a line for each signature, in the order of ranks.
    pub fn text(&self) -> String {
        let lines = self.signatures.iter().map(|(&rank, signature)| {
            let site = &self.contract.terms().sites[rank];
            note::line(&site.name, &site.key, signature)
        });
        format!("{}\n{}", Domain::CONTRACT.message(&self.signed_text()), lines.collect::<String>())
    }

    /// The names of those who have not signed, in the order of ranks.
    pub fn missing(&self) -> Vec<&'a str> {
        let sites = self.contract.terms().sites.iter().enumerate();
        let missing = sites.filter(|(rank, _)| !self.signatures.contains_key(rank));
        missing.map(|(_, site)| site.name.as_str()).collect()
    }

    /// That all have signed.
    ///
    /// # Errors
    /// If somebody has not: with the names of all of these.
    pub fn verify(&self) -> Result<()> {
        let missing = self.missing();
        if missing.is_empty() {
            return Ok(());
        }
        let what = format!("not signed by {}: a contract holds when all sites have signed it", missing.join(", "));
        Err(FederationError::Contract { run: self.contract.terms().run.clone(), what })
    }

    fn signed_text(&self) -> String {
        format!("{}\n", self.contract.digest())
    }

    fn add_file(&mut self, file: &str, text: &str) -> Result<()> {
        file::check_length(file, text)?;
        let signed_text = self.signed_text();
        let (lines, before) = match note::split(Domain::CONTRACT, text) {
            None => (text, 0),
            Some((of, lines)) if of == signed_text => (lines, 3),
            Some((of, _)) => {
                let ours = self.contract.digest();
                let what = format!(
                    "signatures of the contract {}, and this one is {ours}: it has changed since, so all \
                    sites sign again",
                    of.trim_end()
                );
                return Err(FederationError::text(file, "line 2", what));
            }
        };
        let mut added = BTreeMap::new();
        for (at, line) in lines.lines().enumerate() {
            let wrong = |what: String| FederationError::text(file, format!("line {}", before + at + 1), what);
            let no_line = || wrong("expected `— NAME BASE64`, the line of a signature".to_owned());
            let signed = Signed::parse(line).ok_or_else(no_line)?;
            let sites: &[Site] = &self.contract.terms().sites;
            let Some(rank) = self.contract.rank_of_name(signed.name) else {
                return Err(wrong(format!("signed by {:?}, which is no site of the contract", signed.name)));
            };
            if !signed.is_by(&sites[rank].key, Domain::CONTRACT, &signed_text) {
                let name = signed.name;
                return Err(wrong(format!("this is no signature of this contract by the key that it has for {name}")));
            }
            added.insert(rank, signed.signature);
        }
        self.signatures.extend(added);
        Ok(())
    }
}
