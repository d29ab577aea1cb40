//! `lanes.csv`: what independent trainers did when, as it is read back and drawn.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use laconic_train::TrainError;
use laconic_train::averaging::lane::{CSV_HEADER, Doing, Span as Done, bound};

use crate::plot::{Lanes, Span, Unit};
use crate::recorded::read_lines;

/// Lanes that are read at most.
pub const TRAINERS_MAX: usize = 1024;
/// Lanes that are drawn at most.
pub const DRAWN_MAX: usize = 64;
/// Spans that are read at most.
const READ_MAX: usize = 1 << 22;
/// Spans of all lanes that are drawn, about; few enough say what they are when pointed at.
const SPANS_MAX: usize = 8000;
/// Spans that are named at most when pointed at.
pub const NAMED_MAX: usize = 400;

/// `lanes.csv`: spans by part.
pub struct Doings(BTreeMap<u32, Vec<Done>>);

impl Doings {
    /// Reads the file; `None` where there is none.
    ///
    /// # Errors
    /// If it is not what a run writes.
    pub fn read(path: &Path) -> Result<Option<Doings>, TrainError> {
        if !path.exists() {
            return Ok(None);
        }
        let (mut lanes, mut read) = (BTreeMap::<u32, Vec<Done>>::new(), 0usize);
        read_lines(path, &mut |number, line| {
            let wrong = |what: &str| Err(TrainError::file(path, format!("line {number}: expected {what}")));
            if number == 1 {
                return if line == CSV_HEADER { Ok(()) } else { wrong(CSV_HEADER) };
            }
            let Some((part, span)) = parse(line) else {
                return wrong(&format!("a span: {CSV_HEADER}, a doing of {}", Doing::ALL.map(Doing::name).join(", ")));
            };
            let lane = lanes.entry(part).or_default();
            if lane.last().is_some_and(|(_, _, to)| *to > span.1 + Duration::from_micros(2)) {
                return wrong("a span that begins where the one before ended, or later");
            }
            lane.push(span);
            read += 1;
            match (lanes.len() > TRAINERS_MAX, read > READ_MAX) {
                (true, _) => wrong(&format!("at most {TRAINERS_MAX} trainers")),
                (_, true) => wrong(&format!("at most {READ_MAX} spans")),
                _ => Ok(()),
            }
        })?;
        Ok(Some(Doings(lanes)))
    }

    /// Whether no trainer did anything.
    pub fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// As lanes, those of the first trainers where there are many.
    pub fn lanes(&self) -> Lanes {
        let shown = self.0.len().min(DRAWN_MAX);
        let mut all: Vec<(u32, Vec<Done>)> =
            self.0.iter().take(shown).map(|(part, spans)| (*part, spans.clone())).collect();
        all.iter_mut().for_each(|(_, spans)| bound(spans, SPANS_MAX / shown.max(1)));
        let named = all.iter().map(|(_, spans)| spans.len()).sum::<usize>() <= NAMED_MAX;
        let span = |lane: usize, part: u32, (doing, from, to): &Done| Span {
            lane,
            phase: *doing as usize,
            seconds: (from.as_secs_f64(), to.as_secs_f64()),
            name: if named { format!("part {part}, {}", doing.name()) } else { String::new() },
        };
        let spans = all.iter().enumerate().flat_map(|(lane, (part, spans))| {
            spans.iter().map(move |done| span(lane, *part, done)).collect::<Vec<Span>>()
        });
        Lanes {
            title: format!("What trainers did{}", of_all(shown, self.0.len())),
            spans: spans.collect(),
            lanes: all.iter().map(|(part, _)| format!("part {part}")).collect(),
            phases: Doing::ALL.map(Doing::name).to_vec(),
            x: ("seconds since trainers went".to_owned(), Unit::Seconds),
        }
    }
}

fn parse(line: &str) -> Option<(u32, Done)> {
    let fields: Vec<&str> = line.splitn(5, ',').collect();
    let [part, doing, from, to] = fields[..] else { return None };
    let seconds = |text: &str| Duration::try_from_secs_f64(text.parse().ok()?).ok();
    let (from, to) = (seconds(from)?, seconds(to)?);
    let doing = Doing::ALL.into_iter().find(|known| known.name() == doing)?;
    // Later than in a thousand years is no time.
    (from <= to && to.as_secs() < 1 << 35).then_some((part.parse().ok()?, (doing, from, to)))
}

/// What is said behind a title where only some of all are shown.
pub fn of_all(shown: usize, all: usize) -> String {
    if shown < all { format!(", {shown} of {all}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_known_doings_and_ends_no_sooner_than_it_starts() {
        assert!(parse("0,working,0.5,0.75").is_some() && parse("7,absent,0,0").is_some());
        let wrong = ["", "0,sleeping,0,1", "0,working,1,0", "0,working,0,inf", "0,working,-1,0", "x,working,0,1"];
        for line in wrong.into_iter().chain(["0,working,0,1,2", "0,working,0,1e300", "0,working,NaN,1"]) {
            assert!(parse(line).is_none(), "{line}");
        }
    }
}
