//! What a worker does when, for one round: encoding, waiting, decoding, reducing, and computing in between.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use laconic_wire::{Clock, Rank, Tag};

/// What a span of time goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Everything else.
    Compute,
    /// Rows become bytes.
    Encode,
    /// Bytes become rows.
    Decode,
    /// Waiting for another worker's rows.
    Wait,
    /// Adding up gradients or parameters over workers, waiting included.
    Reduce,
}

impl Phase {
    /// Every phase once, each at the place of its number.
    pub const ALL: [Phase; 5] = [Phase::Compute, Phase::Encode, Phase::Decode, Phase::Wait, Phase::Reduce];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Compute => "compute",
            Phase::Encode => "encode",
            Phase::Decode => "decode",
            Phase::Wait => "wait",
            Phase::Reduce => "reduce",
        }
    }
}

struct Span {
    phase: Phase,
    tag: Tag,
    from: Duration,
    to: Duration,
}

/// The spans of the round that is recorded; nothing is kept of others.
#[derive(Default)]
pub struct Timeline {
    clock: Option<Arc<dyn Clock>>,
    recording: bool,
    round: u32,
    bounds: (Duration, Duration),
    spans: Vec<Span>,
}

impl Timeline {
    /// The columns of [`Timeline::rows`].
    pub const CSV_HEADER: &'static str = "worker,round,phase,layer,direction,start_s,end_s";

    /// A timeline by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Timeline {
        Timeline { clock: Some(clock), ..Timeline::default() }
    }

    /// The clock; real time where none was given.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(laconic_wire::WallClock::new()))
    }

    /// The time now, if a round is being recorded.
    pub fn now(&self) -> Option<Duration> {
        self.clock.as_ref().filter(|_| self.recording).map(|clock| clock.now())
    }

    /// Starts to record a round; what was recorded before is forgotten.
    pub fn start(&mut self, round: u32) {
        (self.recording, self.round) = (true, round);
        self.spans.clear();
        self.bounds.0 = self.now().unwrap_or_default();
    }

    /// Ends the recording.
    pub fn end(&mut self) {
        if let Some(now) = self.now() {
            self.bounds.1 = now;
        }
        self.recording = false;
    }

    /// Notes a span that began at `from` and ends now.
    pub fn note(&mut self, phase: Phase, tag: Tag, from: Option<Duration>) {
        if let (Some(from), Some(to)) = (from, self.now()) {
            self.spans.push(Span { phase, tag, from, to });
        }
    }

    /// The spans as lines of CSV, computation in the gaps; seconds count from the round's start.
    pub fn rows(&self, rank: Rank) -> String {
        let mut text = String::new();
        let mut line = |phase: Phase, tag: Option<Tag>, from: Duration, to: Duration| {
            let seconds = |at: Duration| at.saturating_sub(self.bounds.0).as_secs_f64();
            let (layer, direction) = tag.map_or((0, "forward"), |tag| (tag.layer, tag.direction.name()));
            let (phase, round) = (phase.name(), self.round);
            let _ =
                writeln!(text, "{rank},{round},{phase},{layer},{direction},{:.6},{:.6}", seconds(from), seconds(to));
        };
        let mut at = self.bounds.0;
        for Span { phase, tag, from, to } in &self.spans {
            if *from > at {
                line(Phase::Compute, None, at, *from);
            }
            line(*phase, Some(*tag), *from, *to);
            at = at.max(*to);
        }
        if self.bounds.1 > at {
            line(Phase::Compute, None, at, self.bounds.1);
        }
        text
    }
}
