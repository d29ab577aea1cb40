//! `timeline.csv`: what each worker did when in one round.

use std::path::Path;

use laconic_train::TrainError;
use laconic_train::exchange::timeline::{Phase, Timeline as Written};

use crate::plot::{Lanes, Span, Unit, thin};
use crate::recorded::read_lines;

/// The first line of the file.
const HEADER: &str = Written::CSV_HEADER;
/// Lanes at most.
const WORKERS_MAX: usize = 1024;
/// Spans that are read of one round at most.
const SPANS_MAX: usize = 1 << 20;
/// Spans that are drawn at most: more than there is room for.
const DRAWN_MAX: usize = 10_000;

/// One round of a run.
pub struct Timeline {
    round: u64,
    spans: Vec<Entry>,
}

/// A line of the file.
struct Entry {
    worker: usize,
    round: u64,
    phase: Phase,
    what: String,
    seconds: (f64, f64),
}

impl Timeline {
    /// Reads the file; `None` where there is none, or nothing in it. Of several rounds the last counts, which is the
    /// one that start-up disturbs least.
    pub fn read(path: &Path) -> Result<Option<Timeline>, TrainError> {
        if !path.exists() {
            return Ok(None);
        }
        let mut timeline = Timeline { round: 0, spans: Vec::new() };
        read_lines(path, &mut |number, line| {
            let wrong = |what: &str| Err(TrainError::file(path, format!("line {number}: expected {what}")));
            if number == 1 {
                return if line == HEADER { Ok(()) } else { wrong(HEADER) };
            }
            let Some(entry) = Entry::parse(line) else {
                return wrong(&format!("a span: {HEADER}, a phase of {}", Phase::ALL.map(Phase::name).join(", ")));
            };
            if entry.round > timeline.round {
                timeline = Timeline { round: entry.round, spans: Vec::new() };
            }
            if entry.round == timeline.round {
                timeline.spans.push(entry);
            }
            if timeline.spans.len() > SPANS_MAX { wrong(&format!("at most {SPANS_MAX} spans a round")) } else { Ok(()) }
        })?;
        Ok((!timeline.spans.is_empty()).then_some(timeline))
    }

    /// The round as lanes under this title, with about `most` spans: where there are more, those of the first workers.
    /// Spans say what they are when pointed at if they are `named`.
    pub fn lanes(&self, title: &str, most: usize, named: bool) -> Lanes {
        let workers = self.spans.iter().map(|span| span.worker + 1).max().unwrap_or(0);
        let up_to = |shown: usize| self.spans.iter().filter(|span| span.worker < shown).count();
        let shown = (1..=workers).rev().find(|shown| up_to(*shown) <= most).unwrap_or(1);
        let order: Vec<&Entry> = self.spans.iter().filter(|span| span.worker < shown).collect();
        let span = |entry: &&Entry| Span {
            lane: entry.worker,
            phase: entry.phase as usize,
            seconds: entry.seconds,
            name: if named {
                format!("worker {}, {}{}", entry.worker, entry.phase.name(), entry.what)
            } else {
                String::new()
            },
        };
        let spans: Vec<Span> = thin(&order, DRAWN_MAX).iter().map(span).collect();
        let all = if shown < workers { format!(", {shown} of {workers} workers") } else { String::new() };
        let lanes = (0..shown).map(|worker| format!("worker {worker}")).collect();
        let phases = Phase::ALL.map(|phase| phase.name().to_owned()).to_vec();
        let x = ("seconds since the round's first span".to_owned(), Unit::Seconds);
        Lanes { title: format!("{title}: round {}{all}", self.round), lanes, phases, x, spans }
    }
}

impl Entry {
    fn parse(line: &str) -> Option<Entry> {
        let fields: Vec<&str> = line.splitn(8, ',').collect();
        let [worker, round, phase, layer, direction, start, end] = fields[..] else { return None };
        let seconds: (f64, f64) = (start.parse().ok()?, end.parse().ok()?);
        let worker = worker.parse().ok().filter(|worker| *worker < WORKERS_MAX)?;
        let is_span = seconds.0.is_finite() && seconds.1.is_finite() && seconds.0 <= seconds.1;
        let layer = if layer.is_empty() { String::new() } else { format!(", layer {layer}") };
        let direction = if direction.is_empty() { String::new() } else { format!(", {direction}") };
        let phase = Phase::ALL.into_iter().find(|known| known.name() == phase)?;
        let entry = Entry { worker, round: round.parse().ok()?, phase, what: layer + &direction, seconds };
        is_span.then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_a_known_phase_and_ends_no_sooner_than_it_starts() {
        assert!(Entry::parse("0,3,wait,1,forward,0.5,0.75").is_some() && Entry::parse("0,3,reduce,,,0,0").is_some());
        let wrong = ["", "0,3,sleep,1,forward,0,1", "0,3,wait,1,forward,1,0", "0,3,wait,1,forward,0,inf"];
        for line in wrong.into_iter().chain(["9999,3,wait,1,forward,0,1", "0,3,wait,1,forward,0,1,2"]) {
            assert!(Entry::parse(line).is_none(), "{line}");
        }
    }
}
