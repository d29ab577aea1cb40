//! The ledger: how many frames and bytes went where, in which round, for what.

use crate::{Direction, HEADER_BYTES, Kind, PerKind, Rank, Tag};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::{Add, AddAssign};

/// One account of the ledger. Steps share an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The round of training.
    pub round: u32,
    /// The other end of the link.
    pub peer: Rank,
    /// What the bytes are about.
    pub kind: Kind,
    /// The layer, 0 where there is none.
    pub layer: u16,
    /// Which way they run through the model.
    pub direction: Direction,
}

/// What an account holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How many frames.
    pub frames: u64,
    /// Bytes of payload, without headers.
    pub payload: u64,
    /// Payload and header bytes.
    pub framed: u64,
}

impl Count {
    /// `frames` frames that carry `payload` bytes together.
    pub fn of(frames: u64, payload: u64) -> Count {
        Count { frames, payload, framed: payload + frames * HEADER_BYTES as u64 }
    }
}

impl Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count {
            frames: self.frames + other.frames,
            payload: self.payload + other.payload,
            framed: self.framed + other.framed,
        }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), Add::add)
    }
}

/// Frames, payload bytes and framed bytes per (round, peer, kind, layer, direction).
///
/// A worker keeps one for what it sent, and that is the one that counts. A second one, of what it received, is the
/// other side of a double entry. Predictions are ledgers too, so comparing a prediction with a measurement is `==`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(Entry, Count)>", into = "Vec<(Entry, Count)>")]
pub struct Ledger {
    accounts: BTreeMap<Entry, Count>,
    /// Running totals: they are asked for every round, and accounts grow with the rounds.
    kinds: PerKind<Count>,
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
    /// The columns of [`Ledger::write_csv`].
    pub const CSV_HEADER: &str = "round,from,to,kind,layer,direction,frames,payload_bytes,framed_bytes";

    /// An empty ledger, in which nothing was entered.
    pub fn new() -> Ledger {
        Ledger::default()
    }

    /// Enters one frame. Allocates only where an account is new, that is once per round and link.
    pub fn record(&mut self, tag: Tag, peer: Rank, payload_bytes: usize) {
        self.record_count(tag, peer, Count::of(1, payload_bytes as u64));
    }

    /// Enters several frames at once. No account is opened for none.
    pub fn record_count(&mut self, tag: Tag, peer: Rank, count: Count) {
        let Tag { kind, direction, layer, round, .. } = tag;
        if count != Count::default() {
            self.enter(Entry { round, peer, kind, layer, direction }, count);
        }
    }

    /// The one place where accounts and totals grow, so that they agree.
    fn enter(&mut self, entry: Entry, count: Count) {
        *self.accounts.entry(entry).or_default() += count;
        self.kinds[entry.kind] += count;
    }

    /// Adds another ledger, account by account.
    pub fn add(&mut self, other: &Ledger) {
        for (entry, &count) in &other.accounts {
            self.enter(*entry, count);
        }
    }

    /// The accounts in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Entry, Count)> {
        self.accounts.iter().map(|(entry, count)| (*entry, *count))
    }

    /// Whether nothing was entered.
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// What all accounts hold together.
    pub fn total(&self) -> Count {
        self.kinds.iter().map(|(_, count)| *count).sum()
    }

    /// The totals of one round.
    pub fn total_of_round(&self, round: u32) -> Count {
        let first =
            |round| Entry { round, peer: Rank(0), kind: Kind::Features, layer: 0, direction: Direction::Forward };
        let end =
            round.checked_add(1).map_or(std::ops::Bound::Unbounded, |next| std::ops::Bound::Excluded(first(next)));
        let accounts = self.accounts.range((std::ops::Bound::Included(first(round)), end));
        accounts.map(|(_, count)| *count).sum()
    }

    /// The totals of every kind, those without a frame included.
    pub fn totals_by_kind(&self) -> PerKind<Count> {
        self.kinds
    }

    /// The totals of every peer that has an account.
    pub fn totals_by_peer(&self) -> BTreeMap<Rank, Count> {
        let mut totals = BTreeMap::new();
        for (entry, count) in self.iter() {
            *totals.entry(entry.peer).or_insert_with(Count::default) += count;
        }
        totals
    }

    /// The accounts in which the two ledgers differ.
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

    /// Writes what `rank` sent as CSV, with the header line.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_csv(&self, rank: Rank, into: &mut impl io::Write) -> io::Result<()> {
        writeln!(into, "{}", Ledger::CSV_HEADER)?;
        self.write_csv_rows(rank, into)
    }

    /// The lines of [`Ledger::write_csv`] without the header, so that several ranks make one file.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_csv_rows(&self, rank: Rank, into: &mut impl io::Write) -> io::Result<()> {
        for (Entry { round, peer, kind, layer, direction }, count) in self.iter() {
            let (kind, direction) = (kind.name(), direction.name());
            write!(into, "{round},{rank},{peer},{kind},{layer},{direction},")?;
            writeln!(into, "{},{},{}", count.frames, count.payload, count.framed)?;
        }
        Ok(())
    }
}

impl From<Vec<(Entry, Count)>> for Ledger {
    fn from(accounts: Vec<(Entry, Count)>) -> Ledger {
        let mut ledger = Ledger::new();
        for (entry, count) in accounts {
            ledger.enter(entry, count);
        }
        ledger
    }
}

impl From<Ledger> for Vec<(Entry, Count)> {
    fn from(ledger: Ledger) -> Vec<(Entry, Count)> {
        ledger.accounts.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(kind: Kind, round: u32) -> Tag {
        Tag { kind, direction: Direction::Forward, layer: 1, round, step: 0 }
    }

    fn sample() -> Ledger {
        let mut ledger = Ledger::new();
        ledger.record(tag(Kind::Activations, 3), Rank(1), 100);
        ledger.record(tag(Kind::Activations, 3).later(1), Rank(1), 0);
        ledger.record(tag(Kind::Control, 4), Rank(0), 7);
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
        twice.add(&ledger);
        assert_eq!(twice.total(), ledger.total() + ledger.total());
    }

    #[test]
    fn a_ledger_that_was_written_and_read_is_the_same() {
        let text = serde_json::to_string(&sample()).unwrap();
        let back: Ledger = serde_json::from_str(&text).unwrap();
        assert_eq!((back.total(), back.totals_by_kind()), (sample().total(), sample().totals_by_kind()));
        assert_eq!(back, sample());
    }

    #[test]
    fn csv_has_one_line_per_account() {
        let mut text = Vec::new();
        sample().write_csv(Rank(2), &mut text).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "round,from,to,kind,layer,direction,frames,payload_bytes,framed_bytes\n\
             3,2,1,activations,1,forward,2,100,148\n\
             4,2,0,control,1,forward,1,7,31\n"
        );
    }

    #[test]
    fn a_difference_names_the_account_and_both_sides() {
        let (left, mut right) = (sample(), sample());
        assert_eq!(left.difference(&right), []);
        right.record(tag(Kind::Features, 0), Rank(5), 1);
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
