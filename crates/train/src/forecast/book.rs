//! A forecast on its way: accounts of the ledger, and what is in them.

use std::collections::BTreeMap;

use laconic_wire::{Count, Entry, FramePurpose, Ledger, Rank};

use super::contents::{Item, Leaving};
use crate::error::Result;

/// Takes accounts in ascending order.
pub type Rows<'a> = dyn FnMut(Entry, Count) -> Result<()> + 'a;

/// What one worker will send.
#[derive(Default)]
pub struct Book<'a> {
    /// Accounts, or totals alone.
    pub ledger: Ledger,
    leaves: BTreeMap<(Item, Rank), (usize, Count)>,
    rows: Option<&'a mut Rows<'a>>,
    /// Whether all of it is for evaluations, which workers meet for and nothing else.
    evaluates: bool,
}

impl<'a> Book<'a> {
    /// A book that fills this ledger.
    pub fn of(ledger: Ledger) -> Book<'a> {
        Book { ledger, ..Book::default() }
    }

    /// A book of what workers send who meet for evaluations alone.
    pub fn of_evaluations() -> Book<'a> {
        let ledger = Ledger::new().counted_as(FramePurpose::Evaluation).noting_waits();
        Book { ledger, evaluates: true, ..Book::default() }
    }

    /// A book that hands accounts on when their round is over.
    pub fn handing_on(rows: &'a mut Rows<'a>) -> Book<'a> {
        Book { rows: Some(rows), ..Book::default() }
    }

    /// Enters what `enter` does as one item; `nodes` says how many it is about on the way to a peer.
    ///
    /// # Errors
    /// Those of `enter`.
    pub fn enter(
        &mut self,
        item: Item,
        nodes: impl Fn(Rank) -> usize,
        enter: impl FnOnce(&mut Ledger) -> Result<()>,
    ) -> Result<()> {
        let item = Item { evaluates: self.evaluates, ..item };
        let before = self.ledger.totals_by_peer();
        enter(&mut self.ledger)?;
        for (peer, now) in self.ledger.totals_by_peer() {
            let before = before.get(&peer).copied().unwrap_or_default();
            let count = Count {
                frames: now.frames - before.frames,
                payload: now.payload - before.payload,
                framed: now.framed - before.framed,
            };
            self.leave((item, peer), nodes(peer), count);
        }
        Ok(())
    }

    /// The same where nothing can fail and no node is concerned.
    pub fn note(&mut self, item: impl Into<Item>, nodes: usize, enter: impl FnOnce(&mut Ledger)) {
        let entered = self.enter(
            item.into(),
            |_| nodes,
            |ledger| {
                enter(ledger);
                Ok(())
            },
        );
        debug_assert!(entered.is_ok());
    }

    fn leave(&mut self, place: (Item, Rank), nodes: usize, count: Count) {
        if count != Count::default() {
            let (most, sum) = self.leaves.entry(place).or_default();
            *most = nodes.max(*most);
            *sum += count;
        }
    }

    /// Adds another book so many times.
    pub fn add_times(&mut self, other: &Book<'_>, times: u64) {
        self.ledger.add_times(&other.ledger, times);
        for (place, (nodes, count)) in &other.leaves {
            self.leave(*place, *nodes, count.times(times));
        }
    }

    /// Hands on accounts of the rounds before this one, to which nothing will be added.
    ///
    /// # Errors
    /// Those of whoever takes them.
    pub fn turn(&mut self, round: u32) -> Result<()> {
        match &mut self.rows {
            Some(rows) => self.ledger.take_accounts_before(round).into_iter().try_for_each(|(e, count)| rows(e, count)),
            None => Ok(()),
        }
    }

    /// Hands on all that is left.
    ///
    /// # Errors
    /// Those of whoever takes them.
    pub fn close(&mut self) -> Result<()> {
        match &mut self.rows {
            Some(rows) => self.ledger.take_accounts().into_iter().try_for_each(|(entry, count)| rows(entry, count)),
            None => Ok(()),
        }
    }

    /// What leaves, content by content.
    pub fn leaves(&self) -> Vec<Leaving> {
        let leaves = self.leaves.iter();
        leaves.map(|(&(item, to), &(nodes, count))| Leaving { item, to, nodes, count }).collect()
    }
}
