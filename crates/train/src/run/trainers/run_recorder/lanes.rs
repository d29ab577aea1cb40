//! What each trainer did when: remembered stage by stage, and written down at the end.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::RunRecorder;
use crate::averaging::lane::{self, Doing, Span};
use crate::error::Result;
use crate::record::aside::write_aside;
use crate::record::claim::LANES;

impl RunRecorder {
    /// What trainers did in a stage, by its clock.
    pub fn note_lanes(&mut self, lanes: &[Vec<Span>]) {
        for ((trainer, lane), all) in self.trainers.iter_mut().zip(lanes).zip(&mut self.lanes) {
            let since = |at: &Duration| at.saturating_sub(self.begun);
            for (doing, from, to) in lane {
                let seconds = since(to).saturating_sub(since(from)).as_secs_f64();
                match doing {
                    Doing::Working => trainer.working_seconds += seconds,
                    Doing::Averaging => trainer.averaging_seconds += seconds,
                    Doing::Stalled => trainer.stalled_seconds += seconds,
                    Doing::Absent => trainer.absent_seconds += seconds,
                }
            }
            let start = self.before + self.resumed;
            let spans = lane.iter().map(|(doing, from, to)| (*doing, start + since(from), start + since(to)));
            all.extend(spans.filter(|(_, from, to)| from < to));
            lane::bound(all, lane::SPANS_MAX);
        }
    }

    /// The same where it is known how many steps they took.
    pub fn note_played(&mut self, lanes: &[Vec<Span>], steps: &[u64]) {
        self.note_lanes(lanes);
        for (index, steps) in steps.iter().enumerate() {
            self.trainers[index].steps = self.known_steps(index).max(self.trainers[index].steps + steps);
        }
    }

    /// Writes down what each trainer did when.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write_lanes(&self, out: &Path) -> Result<()> {
        let mut text = format!("{}\n", lane::CSV_HEADER);
        for (part, lane) in self.parts.iter().zip(&self.lanes) {
            for (doing, from, to) in lane {
                let (doing, from, to) = (doing.name(), from.as_secs_f64(), to.as_secs_f64());
                let _ = writeln!(text, "{part},{doing},{from:.6},{to:.6}");
            }
        }
        write_aside(&out.join(LANES), text.as_bytes())
    }
}
