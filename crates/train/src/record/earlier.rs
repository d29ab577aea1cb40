//! What a resumed run had sent before: every row that its workers have written down.
//!
//! A run that was killed leaves the rows of the rounds that it had finished, those after its last checkpoint among
//! them. These rounds are done again, and sent again: they count twice, and [`StartBytes::repeated`] says so.

use std::collections::BTreeMap;
use std::path::Path;

use laconic_wire::{Count, Kind, PerKind, Rank, Row};

use super::checkpoint::Checkpoint;
use super::ledger::put_together;
use super::summary::{self, Summary};
use super::traffic::{Earlier, LinkBytes, StartBytes, Started};
use crate::error::Result;

/// Reads back what the run in this folder had sent before it goes on from the checkpoint. Rows that its workers have
/// left there are put together first.
///
/// # Errors
/// If the ledger cannot be read or written.
pub fn read_earlier(out: &Path, checkpoint: &Checkpoint) -> Result<Earlier> {
    let snapshot = &checkpoint.snapshot;
    let mut found = Found::default();
    put_together(out, true, &mut |row| found.enter(row))?;
    let summary = summary::read(out).ok();
    let summary = summary.and_then(|text| serde_json::from_slice::<Summary>(&text).ok());
    let until = found.until(snapshot.rounds());
    let mut earlier = found.earlier(snapshot.rounds(), &checkpoint.starts, summary.as_ref());
    // Where rows are missing (those of other machines, perhaps), the checkpoint still knows how much was sent.
    for (kind, known) in snapshot.bytes.iter() {
        let missing = known.framed.saturating_sub(until[kind].framed);
        if missing > 0 {
            earlier.missing += missing;
            earlier.kinds[kind] += Count {
                frames: known.frames.saturating_sub(until[kind].frames),
                payload: known.payload.saturating_sub(until[kind].payload),
                framed: missing,
            };
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
    /// What was sent, by round.
    rounds: BTreeMap<u32, PerKind<Count>>,
}

impl Start {
    /// The round that it went on from, as far as its rows say.
    fn after_round(&self) -> u32 {
        self.first.map_or(0, |first| first.saturating_sub(1))
    }
}

/// Whether frames of this kind travel only while a round is trained. Of others some are sent again when a run starts.
fn is_training(row: &Row) -> bool {
    match row.entry.kind {
        Kind::ActivationGradients | Kind::ParameterGradients => true,
        Kind::Parameters => row.entry.round > 0,
        Kind::Features | Kind::Activations | Kind::Evaluation | Kind::Control | Kind::Widths | Kind::Draws => false,
    }
}

/// Whether a run that is not stopped writes a checkpoint after this round.
fn checkpoints(summary: &Summary, round: u32) -> bool {
    let every = summary.config["out"]["checkpoint_every"].as_u64().unwrap_or(0);
    (every > 0 && u64::from(round).is_multiple_of(every)) || (!summary.interrupted && round == summary.rounds)
}

impl Found {
    fn enter(&mut self, row: &Row) {
        let Row { from, entry, count, start } = *row;
        self.kinds[entry.kind] += count;
        *self.links.entry((from, entry.peer)).or_default() += count;
        let start = self.starts.entry(start).or_default();
        start.total += count;
        start.rounds.entry(entry.round).or_default()[entry.kind] += count;
        if is_training(row) && start.first.is_none_or(|first| entry.round < first) {
            start.first = Some(entry.round);
        }
    }

    /// What all starts have sent before the run goes on after this round; the summary, if there is one, is that of the
    /// last start that ended in order.
    fn earlier(mut self, after: u32, known: &[Started], summary: Option<&Summary>) -> Earlier {
        // A worker that is alone sends nothing, and has no rows.
        for (start, _) in (0..).zip(known) {
            self.starts.entry(start).or_default();
        }
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
        let reports = summary.map_or(0, Summary::bytes_of_reports);
        let first = self.starts.keys().next().copied();
        let (mut starts, mut straight, mut again_from) = (Vec::new(), PerKind::<u64>::default(), after);
        for (&number, start) in self.starts.iter().rev() {
            let known = known.get(number as usize);
            let after_round = if start.rounds.is_empty() { known.map(|start| start.after_round) } else { None };
            let after_round = after_round.unwrap_or_else(|| start.after_round());
            let (workers, closed) = (known.map_or(0, |start| start.workers), closed(number));
            let Count { frames, payload, framed: bytes } = start.total;
            let (mut repeated, mut again) = (0, 0);
            // What is said before the first round that is trained was said by the start before.
            let says_again = |round: u32| Some(number) != first && (start.first.is_none() || round <= after_round);
            for (&round, kinds) in &start.rounds {
                let sum = kinds.iter().map(|(_, count)| count.framed).sum::<u64>();
                if round > again_from {
                    repeated += sum;
                } else if says_again(round) {
                    again += sum;
                } else {
                    kinds.iter().for_each(|(kind, count)| straight[kind] += count.framed);
                }
            }
            let last = start.rounds.keys().next_back().copied().unwrap_or_default();
            if closed && last <= again_from && !says_again(last) {
                // Who is stopped says what it has sent, for a checkpoint, and reports.
                let control = start.rounds.get(&last).map_or(0, |kinds| kinds[Kind::Control].framed);
                let ended =
                    if summary.is_some_and(|of| checkpoints(of, last)) { reports.min(control) } else { control };
                straight[Kind::Control] -= ended;
                // It was said in vain because another start came behind it; what the last one said is counted by who
                // goes on.
                starts.last_mut().into_iter().for_each(|later: &mut StartBytes| later.again += ended);
            }
            let sent = StartBytes { start: number, after_round, frames, payload, bytes, ..StartBytes::default() };
            starts.push(StartBytes { workers, repeated, again, closed, ..sent });
            if start.first.is_some() {
                again_from = again_from.min(after_round);
            }
        }
        starts.reverse();
        Earlier { kinds: self.kinds, links: links.collect(), starts, straight, ..Earlier::default() }
    }

    /// What had been sent when the checkpoint of this round was written, by kind; at least, where what is counted in
    /// it may be entered under later rounds.
    fn until(&self, round: u32) -> PerKind<Count> {
        let wrote = self.starts.iter().rev().find(|(_, start)| start.first.is_some_and(|first| first <= round));
        let wrote = wrote.map_or(u32::MAX, |(number, _)| *number);
        let mut until = PerKind::<Count>::default();
        for (&number, start) in self.starts.iter().filter(|(number, _)| **number <= wrote) {
            for (&of, kinds) in &start.rounds {
                // Batches fetch for rounds to come.
                let counts = |kind| number < wrote || of <= round || matches!(kind, Kind::Features | Kind::Draws);
                kinds.iter().filter(|(kind, _)| counts(*kind)).for_each(|(kind, count)| until[kind] += *count);
            }
        }
        until
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
        let earlier = found.earlier(4, &[], None);
        let of = |start: usize| (earlier.starts[start].after_round, earlier.starts[start].repeated);
        assert_eq!((of(0), of(1)), ((0, 3 * 200), (4, 2 * 200)));
        let bytes: Vec<u64> = earlier.starts.iter().map(|start| start.bytes).collect();
        assert_eq!(bytes, [1024 + 7 * 200, 1024 + 2 * 200]);
        assert_eq!(bytes.iter().sum::<u64>(), earlier.framed());
        assert_eq!(earlier.links.iter().map(|link| link.bytes).sum::<u64>(), earlier.framed());
        assert_eq!(earlier.next_start(), 2);
        // One start would have sent its start-up and four rounds.
        assert_eq!(earlier.straight.iter().map(|(_, bytes)| bytes).sum::<u64>(), 1024 + 4 * 200);
        assert_eq!((earlier.starts[0].again, earlier.starts[1].again), (0, 1024));
    }
}
