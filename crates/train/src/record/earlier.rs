//! What a resumed run had sent before: every row that its workers have written down.
//!
//! A run that was killed leaves the rows of the rounds that it had finished, those after its last checkpoint among
//! them. These rounds are done again, and sent again: they count twice, and [`StartBytes::repeated`] says so.

use std::collections::BTreeMap;
use std::path::Path;

use laconic_wire::{Count, Kind, PerKind, Rank, Row};

use super::aside::read_within;
use super::ledger::put_together;
use super::summary::Summary;
use super::traffic::{Earlier, LinkBytes, StartBytes};
use crate::error::Result;
use crate::fit::progress::Snapshot;

/// A larger summary is not read back.
const BYTES_MAX: u64 = 1 << 30;

/// Reads back what the run in this folder had sent before it goes on from the snapshot. Rows that its workers have left
/// there are put together first.
///
/// # Errors
/// If the ledger cannot be read or written.
pub fn read_earlier(out: &Path, workers: usize, snapshot: &Snapshot) -> Result<Earlier> {
    let mut found = Found::default();
    put_together(out, workers, true, &mut |row| found.enter(row))?;
    let summary = read_within(&out.join("summary.json"), BYTES_MAX).ok();
    let summary = summary.and_then(|text| serde_json::from_slice::<Summary>(&text).ok());
    let mut earlier = found.earlier(snapshot.rounds(), summary.as_ref());
    // Where rows are missing (those of other machines, perhaps), the checkpoint still knows how much was sent.
    for (kind, known) in snapshot.bytes.iter() {
        if known.framed > earlier.kinds[kind].framed {
            earlier.kinds[kind] = *known;
        }
    }
    Ok(earlier)
}

/// The sums of a ledger.
#[derive(Default)]
struct Found {
    kinds: PerKind<Count>,
    links: BTreeMap<(Rank, Rank), Count>,
    starts: BTreeMap<u32, Start>,
}

#[derive(Default)]
struct Start {
    total: Count,
    /// The first round that was trained in it.
    first: Option<u32>,
    /// Framed bytes by round.
    rounds: BTreeMap<u32, u64>,
}

/// Whether frames of this kind travel only while a round is trained. Of others some are sent again when a run starts.
fn is_training(row: &Row) -> bool {
    match row.entry.kind {
        Kind::ActivationGradients | Kind::ParameterGradients => true,
        Kind::Parameters => row.entry.round > 0,
        Kind::Features | Kind::Activations | Kind::Evaluation | Kind::Control | Kind::Widths | Kind::Draws => false,
    }
}

impl Found {
    fn enter(&mut self, row: &Row) {
        let Row { from, entry, count, start } = *row;
        self.kinds[entry.kind] += count;
        *self.links.entry((from, entry.peer)).or_default() += count;
        let start = self.starts.entry(start).or_default();
        start.total += count;
        *start.rounds.entry(entry.round).or_default() += count.framed;
        if is_training(row) && start.first.is_none_or(|first| entry.round < first) {
            start.first = Some(entry.round);
        }
    }

    /// What all starts have sent before the run goes on after this round; the summary, if there is one, is that of the
    /// last start that ended in order.
    fn earlier(self, after: u32, summary: Option<&Summary>) -> Earlier {
        let links = self.links.into_iter().map(|((from, to), count)| {
            let Count { frames, payload, framed: bytes } = count;
            LinkBytes { from: from.0, to: to.0, frames, payload, bytes }
        });
        let closed = |start: u32| {
            let listed = summary.map(|summary| &summary.bytes.starts);
            listed.is_some_and(|starts| match starts.iter().find(|listed| listed.start == start) {
                Some(listed) => listed.closed,
                // Summaries of before runs had starts tell of the first.
                None => starts.is_empty() && start == 0,
            })
        };
        let (mut starts, mut again_from) = (Vec::new(), after);
        for (&number, start) in self.starts.iter().rev() {
            let after_round = start.first.map_or(0, |first| first.saturating_sub(1));
            let Count { frames, payload, framed: bytes } = start.total;
            let repeated = start.rounds.range(again_from.saturating_add(1)..).map(|(_, bytes)| bytes).sum();
            starts.push(StartBytes {
                start: number,
                after_round,
                frames,
                payload,
                bytes,
                repeated,
                closed: closed(number),
            });
            if start.first.is_some() {
                again_from = again_from.min(after_round);
            }
        }
        starts.reverse();
        Earlier { kinds: self.kinds, links: links.collect(), starts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_wire::{Direction, Entry};

    fn row(start: u32, round: u32, kind: Kind, payload: u64) -> Row {
        let entry = Entry { round, peer: Rank(1), kind, layer: 0, direction: Direction::Forward };
        Row { from: Rank(0), entry, count: Count::of(1, payload), start }
    }

    #[test]
    fn rounds_that_a_later_start_did_again_are_counted_as_repeated_and_start_up_is_not() {
        let mut found = Found::default();
        // Three starts: killed in round 7 with a checkpoint of 4, killed in round 6 with the same, resumed from it.
        for (start, rounds) in [(0, 1..=7), (1, 5..=6)] {
            found.enter(&row(start, 0, Kind::Control, 1000));
            for round in rounds {
                found.enter(&row(start, round, Kind::Activations, 76));
                found.enter(&row(start, round, Kind::ParameterGradients, 76));
            }
        }
        let earlier = found.earlier(4, None);
        let of = |start: usize| (earlier.starts[start].after_round, earlier.starts[start].repeated);
        assert_eq!((of(0), of(1)), ((0, 3 * 200), (4, 2 * 200)));
        let bytes: Vec<u64> = earlier.starts.iter().map(|start| start.bytes).collect();
        assert_eq!(bytes, [1024 + 7 * 200, 1024 + 2 * 200]);
        assert_eq!(bytes.iter().sum::<u64>(), earlier.framed());
        assert_eq!(earlier.links.iter().map(|link| link.bytes).sum::<u64>(), earlier.framed());
        assert_eq!(earlier.next_start(), 2);
    }
}
