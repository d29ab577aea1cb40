//! Signed notes that say how far a site's log has come.

use crate::contract::Contract;
use crate::digest::Digest;
use crate::key::{Domain, SiteKey};
use crate::note::{self, Signed};
use crate::time::Time;

/// How far a site's log had come at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checkpoint {
    /// The site's rank.
    pub(super) rank: usize,
    /// How many lines it had.
    pub(super) lines: u64,
    /// The digest of the last of them.
    pub(super) last: String,
    /// When the note was made.
    pub(super) time: Time,
}

impl Checkpoint {
    /// The note: run's id, site, lines, digest of the last one and time, a line each, under `laconic audit v1`.
    pub(super) fn note(&self, contract: &Contract, key: &SiteKey) -> String {
        note::signed(&contract.terms().sites[self.rank].name, key, Domain::AUDIT, &self.text(contract))
    }

    /// Reads a note and verifies it.
    pub(super) fn parse(note: &str, contract: &Contract) -> Result<Checkpoint, String> {
        let no_note = || "no note of an audit log".to_owned();
        let (text, lines) = note::split(Domain::AUDIT, note).ok_or_else(no_note)?;
        let signed = lines.strip_suffix('\n').and_then(Signed::parse).ok_or_else(no_note)?;
        let fields: Vec<&str> = text.lines().collect();
        let &[run, site, lines, last, time] = fields.as_slice() else { return Err(no_note()) };
        if run != contract.id() {
            return Err(format!("a note of run {run:?}, and the contract's is {}", contract.id()));
        }
        let rank = contract.rank_of_name(site);
        let rank = rank.ok_or_else(|| format!("a note of {site:?}, which is no site of the contract"))?;
        let last = last.parse::<Digest>()?.to_string();
        let checkpoint = Checkpoint { rank, lines: lines.parse().map_err(|_| no_note())?, last, time: time.parse()? };
        let key = &contract.terms().sites[rank].key;
        if checkpoint.text(contract) != text || signed.name != site || !signed.is_by(key, Domain::AUDIT, text) {
            return Err(format!("a note of {site} that the key of {site} has not signed"));
        }
        Ok(checkpoint)
    }

    fn text(&self, contract: &Contract) -> String {
        let site = &contract.terms().sites[self.rank].name;
        format!("{}\n{site}\n{}\n{}\n{}\n", contract.id(), self.lines, self.last, self.time)
    }
}
