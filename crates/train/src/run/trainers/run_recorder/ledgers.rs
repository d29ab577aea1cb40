//! What a run of trainers writes down of the bytes that everybody has sent.

use std::collections::BTreeMap;
use std::path::Path;

use laconic_wire::{Count, Entry, PerKind, Rank};

use crate::error::Result;
use crate::record::ledger::PartFile;

/// The ledgers on disk, and what a checkpoint says of them.
pub(in crate::run::trainers) struct Ledgers {
    /// By rank the file of its ledger.
    rows: Vec<PartFile>,
    /// What belongs to means that are written down, by kind; nothing where stages count their means anew.
    pub known: PerKind<Count>,
    /// The same of means to come, by their number.
    ahead: BTreeMap<u32, PerKind<Count>>,
    /// Whether this start has taken a mean.
    pub has_taken: bool,
    /// Whether the run has one stage.
    is_of_one: bool,
}

impl Ledgers {
    /// Nothing yet, of a run of one stage or of several.
    pub fn new(is_of_one: bool) -> Ledgers {
        let (known, ahead) = (PerKind::default(), BTreeMap::new());
        Ledgers { rows: Vec::new(), known, ahead, has_taken: false, is_of_one }
    }

    /// Whether accounts are written down rather than kept.
    pub fn are_written(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Opens the files that accounts of so many ranks are written into.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn open(&mut self, out: &Path, start: u32, ranks: usize) -> Result<()> {
        self.rows = Rank::all(ranks).map(|rank| PartFile::open(out, rank, start)).collect::<Result<_>>()?;
        Ok(())
    }

    /// Writes down what each rank has sent.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn append(&mut self, sent: impl Iterator<Item = BTreeMap<Entry, Count>>) -> Result<()> {
        let (ahead, is_of_one) = (&mut self.ahead, self.is_of_one);
        self.rows.iter_mut().zip(sent).try_for_each(|(rows, accounts)| {
            let known = accounts.iter().filter(|_| is_of_one);
            known.for_each(|(entry, count)| ahead.entry(entry.round).or_default()[entry.kind] += *count);
            rows.append(accounts)
        })
    }

    /// Counts what belongs to means until this one. Of a start that takes none nobody can tell later which means its
    /// rows belong to.
    pub fn enter_until(&mut self, mean: u32) {
        if !self.has_taken {
            return;
        }
        let later = self.ahead.split_off(&mean.saturating_add(1));
        for of_mean in std::mem::replace(&mut self.ahead, later).values() {
            of_mean.iter().for_each(|(kind, count)| self.known[kind] += *count);
        }
    }
}
