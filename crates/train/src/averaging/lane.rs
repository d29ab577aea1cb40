//! What a trainer did from when until when, in a bounded number of spans.

use std::time::Duration;

/// What a trainer does in a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Doing {
    /// It takes steps.
    Working,
    /// It waits for the mean that it has sent its model for, or for the first model.
    Averaging,
    /// It does nothing although it is there.
    Stalled,
    /// It is not there.
    #[default]
    Absent,
}

impl Doing {
    /// Each of them once, in the order of their numbers.
    pub const ALL: [Doing; 4] = [Doing::Working, Doing::Averaging, Doing::Stalled, Doing::Absent];

    /// The name in files: that of the variant, in small letters.
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// What, from when, until when.
pub type Span = (Doing, Duration, Duration);

/// The columns of a file of spans.
pub const CSV_HEADER: &str = "part,doing,start_s,end_s";

/// More spans than that are put together.
pub const SPANS_MAX: usize = 4000;

/// A trainer's spans, one behind the other; it is absent at first.
#[derive(Debug, Clone, Default)]
pub struct Lane {
    spans: Vec<Span>,
    doing: Doing,
    since: Duration,
}

impl Lane {
    /// Begins to do something else, or goes on.
    pub fn turn(&mut self, now: Duration, doing: Doing) {
        if self.doing == doing {
            return;
        }
        if now > self.since {
            self.spans.push((self.doing, self.since, now));
            bound(&mut self.spans, SPANS_MAX);
        }
        (self.doing, self.since) = (doing, now);
    }

    /// The spans up to now.
    pub fn ends(mut self, now: Duration) -> Vec<Span> {
        if now > self.since {
            self.spans.push((self.doing, self.since, now));
        }
        self.spans
    }
}

/// Puts spans together where they are more than `most`, to half as many or fewer: those that start in one of equal
/// pieces of time become one of each kind, as long as they were together.
pub fn bound(spans: &mut Vec<Span>, most: usize) {
    if spans.len() <= most.max(1) {
        return;
    }
    let (start, end) = (spans[0].1, spans[spans.len() - 1].2);
    let piece =
        (end.saturating_sub(start) / (most / (2 * Doing::ALL.len())).max(1) as u32).max(Duration::from_nanos(1));
    let number = |span: &Span| span.1.saturating_sub(start).as_nanos() / piece.as_nanos();
    let mut merged = Vec::new();
    for group in spans.chunk_by(|a, b| number(a) == number(b)) {
        let mut at = group[0].1;
        for doing in Doing::ALL {
            let lasts: Duration =
                group.iter().filter(|span| span.0 == doing).map(|span| span.2.saturating_sub(span.1)).sum();
            if !lasts.is_zero() {
                merged.push((doing, at, at + lasts));
                at += lasts;
            }
        }
    }
    *spans = merged;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_are_put_together_last_as_long_as_before() {
        let mut lane = Lane::default();
        let mut at = Duration::ZERO;
        let mut lasted = [Duration::ZERO; 4];
        for round in 0..50_000u64 {
            let doing = Doing::ALL[(round % 2) as usize + if round % 1000 > 990 { 2 } else { 0 }];
            let takes = Duration::from_micros(1 + round % 7);
            lane.turn(at, doing);
            lasted[doing as usize] += takes;
            at += takes;
            assert!(lane.spans.len() <= SPANS_MAX);
        }
        let spans = lane.ends(at);
        for doing in Doing::ALL {
            let of: Duration = spans.iter().filter(|span| span.0 == doing).map(|span| span.2 - span.1).sum();
            assert_eq!(of, lasted[doing as usize], "{doing:?}");
        }
        assert!(spans.windows(2).all(|pair| pair[0].2 == pair[1].1), "one behind the other");
    }
}
