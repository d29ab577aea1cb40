//! Processes of a run that a signal has stopped: their links stay open, and whoever waits for them does not see why.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::output::Output;

/// How often the system is asked.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Who is stopped for so long is named.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who is stopped, as far as the system says so.
#[derive(Default)]
pub struct Stopped {
    asked: Option<Instant>,
    /// By rank, since when, and whether it was said.
    since: BTreeMap<u32, (Instant, bool)>,
}

impl Stopped {
    /// Looks at these workers, each with the number of its process, and names those that stay stopped.
    pub fn look(&mut self, workers: impl Iterator<Item = (u32, u32)>, told: &Output) {
        if self.asked.is_some_and(|asked| asked.elapsed() < ASK_EVERY) {
            return;
        }
        self.asked = Some(Instant::now());
        let now: Vec<(u32, u32)> = workers.filter(|(_, process)| is_stopped(*process)).collect();
        self.since.retain(|rank, _| now.iter().any(|(stopped, _)| stopped == rank));
        for (rank, process) in now {
            let (since, is_said) = self.since.entry(rank).or_insert((Instant::now(), false));
            if since.elapsed() >= PATIENCE && !std::mem::replace(is_said, true) {
                told.say(format!(
                    "worker {rank}, process {process}, is stopped by a signal; `kill -CONT {process}` lets it go on"
                ));
            }
        }
    }

    /// How long this worker has been stopped.
    pub fn time(&self, rank: u32) -> Duration {
        self.since.get(&rank).map(|(since, _)| since.elapsed()).unwrap_or_default()
    }
}

/// Whether a process is stopped; where the system has no such file nobody knows.
fn is_stopped(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // A program's name, which may hold anything, stands in brackets before the letter.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}
