//! The ledger: how many frames and bytes went where, in which round, for what.

use crate::account::{Count, Entry, Row};
use crate::{Direction, FramePurpose, Kind, PerKind, Rank, Tag, Waits};
use std::collections::BTreeMap;
use std::fmt;
use std::io;

/// Frames, payload bytes and framed bytes per (round, peer, kind, layer, direction).
///
/// A worker keeps one for what it sent, and that is the one that counts. A second one, of what it received, is the
/// other side of a double entry. Predictions are ledgers too, so comparing a prediction with a measurement is `==`.
///
/// Accounts grow with the rounds and links, so whoever can write them down takes them out from time to time
/// ([`Ledger::take_accounts`]), and whoever wants no more than sums keeps none ([`Ledger::of_totals`]). Totals stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    accounts: BTreeMap<Entry, Count>,
    /// Running totals: they are asked for every round, and outlive the accounts.
    kinds: PerKind<Count>,
    /// Running totals by the peers' numbers.
    peers: Vec<Count>,
    is_of_totals: bool,
    /// What all that is entered by its tag is for, whatever the tag says.
    counted_as: Option<FramePurpose>,
    /// Waits for what is entered by its tag, where they are noted.
    waits: Option<Waits>,
}

/// One account in which two ledgers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// In which account they differ.
    pub entry: Entry,
    /// What the first ledger holds.
    pub left: Count,
    /// What the second ledger holds.
    pub right: Count,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { round, peer, kind, layer, direction } = self.entry;
        write!(f, "round {round}, rank {peer}, {} of layer {layer}, {}: ", kind.name(), direction.name())?;
        let (left, right) = (self.left, self.right);
        write!(f, "{} frames with {} bytes against {} with {}", left.frames, left.framed, right.frames, right.framed)
    }
}

impl Ledger {
    /// An empty ledger, in which nothing was entered.
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// An empty ledger that keeps totals by kind and by peer, and no account.
    pub fn of_totals() -> Ledger {
        Ledger { is_of_totals: true, ..Ledger::default() }
    }

    /// The same for what serves one purpose, whatever tags say ([`crate::Metered::counted_as`]).
    #[must_use]
    pub fn counted_as(self, purpose: FramePurpose) -> Ledger {
        Ledger { counted_as: Some(purpose), ..self }
    }

    /// The same that notes waits for what is entered by its tag, as `other` does or does not.
    #[must_use]
    pub fn noting_waits_as(self, other: &Ledger) -> Ledger {
        if other.waits.is_some() { self.noting_waits() } else { self }
    }

    /// The same that notes waits for what is entered by its tag, until they are taken out.
    #[must_use]
    pub fn noting_waits(self) -> Ledger {
        Ledger { waits: Some(Waits::default()), ..self }
    }

    /// Takes out the waits that were noted; no more are.
    pub fn take_waits(&mut self) -> Waits {
        self.waits.take().unwrap_or_default()
    }

    /// Enters what nobody waits for, or waits for apart from other frames.
    pub fn unawaited<R>(&mut self, enter: impl FnOnce(&mut Ledger) -> R) -> R {
        let waits = self.waits.take();
        let entered = enter(self);
        self.waits = waits;
        entered
    }

    /// Whether accounts are kept, not totals alone.
    pub fn keeps_accounts(&self) -> bool {
        !self.is_of_totals
    }

    /// Enters one frame. Allocates only where an account is new, that is once per round and link.
    pub fn record(&mut self, tag: Tag, peer: Rank, payload_bytes: usize) {
        self.record_count(tag, peer, Count::of(1, payload_bytes as u64));
    }

    /// Enters several frames at once. No account is opened for none.
    pub fn record_count(&mut self, tag: Tag, peer: Rank, count: Count) {
        let tag = Tag { purpose: self.counted_as.unwrap_or(tag.purpose), ..tag };
        let Tag { direction, layer, round, .. } = tag;
        if let (Some(waits), true) = (&mut self.waits, count.frames > 0) {
            waits.note(tag);
        }
        self.enter(Entry { round, peer, kind: tag.kind(), layer, direction }, count);
    }

    /// Adds to an account, such as one of another ledger. No account is opened for nothing.
    pub fn enter(&mut self, entry: Entry, count: Count) {
        if count == Count::default() {
            return;
        }
        // The one place where accounts and totals grow, so that they agree.
        if !self.is_of_totals {
            *self.accounts.entry(entry).or_default() += count;
        }
        self.kinds[entry.kind] += count;
        *self.of_peer(entry.peer.index()) += count;
    }

    fn of_peer(&mut self, peer: usize) -> &mut Count {
        if self.peers.len() <= peer {
            self.peers.resize(peer + 1, Count::default());
        }
        &mut self.peers[peer]
    }

    /// Adds another ledger so many times: totals, and to a ledger that keeps accounts those that the other still has.
    pub fn add_times(&mut self, other: &Ledger, times: u64) {
        if !self.is_of_totals {
            for (entry, &count) in &other.accounts {
                *self.accounts.entry(*entry).or_default() += count.times(times);
            }
        }
        if let (Some(waits), Some(more)) = (&mut self.waits, &other.waits) {
            waits.add_times(more, times);
        }
        for (kind, count) in other.kinds.iter() {
            self.kinds[kind] += count.times(times);
        }
        for (peer, count) in other.peers.iter().enumerate() {
            *self.of_peer(peer) += count.times(times);
        }
    }

    /// Takes the accounts out, so that they can be kept elsewhere. Totals stay.
    pub fn take_accounts(&mut self) -> BTreeMap<Entry, Count> {
        std::mem::take(&mut self.accounts)
    }

    /// Takes out the accounts of the rounds before this one. Totals stay.
    pub fn take_accounts_before(&mut self, round: u32) -> BTreeMap<Entry, Count> {
        let rest = self.accounts.split_off(&Ledger::first_of(round));
        std::mem::replace(&mut self.accounts, rest)
    }

    /// The lowest account that a round can have.
    fn first_of(round: u32) -> Entry {
        Entry { round, peer: Rank(0), kind: Kind::Features, layer: 0, direction: Direction::Forward }
    }

    /// The accounts that are here, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Entry, Count)> {
        self.accounts.iter().map(|(entry, count)| (*entry, *count))
    }

    /// Whether nothing was entered.
    pub fn is_empty(&self) -> bool {
        self.total() == Count::default()
    }

    /// What was entered, all together.
    pub fn total(&self) -> Count {
        self.kinds.iter().map(|(_, count)| *count).sum()
    }

    /// The totals of one round, of the accounts that are here.
    pub fn total_of_round(&self, round: u32) -> Count {
        let excluded = |next| std::ops::Bound::Excluded(Ledger::first_of(next));
        let end = round.checked_add(1).map_or(std::ops::Bound::Unbounded, excluded);
        let accounts = self.accounts.range((std::ops::Bound::Included(Ledger::first_of(round)), end));
        accounts.map(|(_, count)| *count).sum()
    }

    /// The totals of every kind, those without a frame included.
    pub fn totals_by_kind(&self) -> PerKind<Count> {
        self.kinds
    }

    /// The totals of every peer with which there was traffic.
    pub fn totals_by_peer(&self) -> BTreeMap<Rank, Count> {
        let peers = self.peers.iter().enumerate().map(|(peer, count)| (Rank(peer as u32), *count));
        peers.filter(|(_, count)| *count != Count::default()).collect()
    }

    /// The accounts in which the two ledgers differ, of those that are here.
    pub fn difference(&self, other: &Ledger) -> Vec<Difference> {
        let entries = self.accounts.keys().chain(other.accounts.keys().filter(|e| !self.accounts.contains_key(e)));
        let held = |ledger: &Ledger, entry| ledger.accounts.get(entry).copied().unwrap_or_default();
        let mut differences: Vec<Difference> = entries
            .map(|entry| Difference { entry: *entry, left: held(self, entry), right: held(other, entry) })
            .filter(|difference| difference.left != difference.right)
            .collect();
        differences.sort_by_key(|difference| difference.entry);
        differences
    }

    /// Writes what `rank` sent as CSV, with the header line: the accounts that are here, as of the first start of a
    /// run.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_csv(&self, rank: Rank, into: &mut impl io::Write) -> io::Result<()> {
        writeln!(into, "{}", Row::CSV_HEADER)?;
        self.iter().try_for_each(|(entry, count)| writeln!(into, "{}", Row { from: rank, entry, count, start: 0 }))
    }
}

impl FromIterator<(Entry, Count)> for Ledger {
    fn from_iter<I: IntoIterator<Item = (Entry, Count)>>(accounts: I) -> Ledger {
        let mut ledger = Ledger::new();
        accounts.into_iter().for_each(|(entry, count)| ledger.enter(entry, count));
        ledger
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, FramePurpose, HEADER_BYTES};

    fn tag(content: Content, round: u32) -> Tag {
        Tag { content, purpose: FramePurpose::Training, direction: Direction::Forward, layer: 1, round, step: 0 }
    }

    fn sample() -> Ledger {
        let mut ledger = Ledger::new();
        ledger.record(tag(Content::HiddenRows, 3), Rank(1), 100);
        ledger.record(tag(Content::HiddenRows, 3).later(1), Rank(1), 0);
        ledger.record(tag(Content::Agreement, 4), Rank(0), 7);
        ledger
    }

    #[test]
    fn totals_agree_whichever_way_they_are_cut() {
        let ledger = sample();
        assert_eq!(ledger.total(), Count { frames: 3, payload: 107, framed: 107 + 3 * HEADER_BYTES as u64 });
        assert_eq!(ledger.totals_by_kind().iter().map(|(_, count)| *count).sum::<Count>(), ledger.total());
        assert_eq!(ledger.totals_by_peer().into_values().sum::<Count>(), ledger.total());
        assert_eq!(ledger.total_of_round(3) + ledger.total_of_round(4), ledger.total());
        assert_eq!(ledger.total_of_round(u32::MAX), Count::default());
        let mut twice = sample();
        twice.add_times(&ledger, 1);
        assert_eq!(twice.total(), ledger.total() + ledger.total());
        let mut at_once = Ledger::new();
        at_once.add_times(&ledger, 2);
        assert_eq!(at_once, twice);
    }

    #[test]
    fn totals_stay_when_accounts_are_taken_out_or_were_never_kept() {
        let sums = |ledger: &Ledger| (ledger.total(), ledger.totals_by_kind(), ledger.totals_by_peer());
        let mut of_totals = Ledger::of_totals();
        of_totals.record(tag(Content::HiddenRows, 3), Rank(1), 100);
        of_totals.record(tag(Content::HiddenRows, 3).later(1), Rank(1), 0);
        of_totals.record(tag(Content::Agreement, 4), Rank(0), 7);
        assert_eq!((sums(&of_totals), of_totals.iter().count()), (sums(&sample()), 0));
        let mut taken = sample();
        let accounts = taken.take_accounts();
        assert_eq!((sums(&taken), taken.iter().count()), (sums(&sample()), 0));
        assert_eq!(accounts.into_iter().collect::<Ledger>(), sample());
        let mut early = sample();
        assert_eq!(early.take_accounts_before(4).len(), 1);
        assert_eq!(early.iter().map(|(entry, _)| entry.round).collect::<Vec<_>>(), [4]);
        assert_eq!(sums(&early), sums(&sample()));
        taken.record(tag(Content::Agreement, 4), Rank(0), 7);
        assert_eq!(taken.iter().map(|(_, count)| count.framed).collect::<Vec<_>>(), [31], "accounts begin anew");
        assert_eq!(taken.total().framed, sample().total().framed + 31);
    }

    #[test]
    fn csv_has_one_line_per_account() {
        let mut text = Vec::new();
        sample().write_csv(Rank(2), &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "round,from,to,kind,layer,direction,frames,payload_bytes,framed_bytes,start\n\
             3,2,1,activations,1,forward,2,100,148,0\n\
             4,2,0,control,1,forward,1,7,31,0\n"
        );
    }

    #[test]
    fn a_difference_names_the_account_and_both_sides() {
        let (left, mut right) = (sample(), sample());
        assert_eq!(left.difference(&right), []);
        right.record(tag(Content::Features, 0), Rank(5), 1);
        let differences = left.difference(&right);
        assert_eq!(differences, {
            let mut reverse = right.difference(&left);
            for difference in &mut reverse {
                std::mem::swap(&mut difference.left, &mut difference.right);
            }
            reverse
        });
        assert_eq!(
            differences[0].to_string(),
            "round 0, rank 5, features of layer 1, forward: 0 frames with 0 bytes against 1 with 25"
        );
    }
}
