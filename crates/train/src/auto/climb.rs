//! Climbing the ladder: one run after the other, and the folder of the one that is kept.
//!
//! Each run writes into the folder of the whole, as if it were the only one; when it has ended its folder goes aside.
//! In the end the kept one is there again, with the others below it. A run that fails or is stopped leaves the best of
//! those before it; one that is killed leaves the others beside it, in `OUT.tries`.

use std::path::{Path, PathBuf};

use super::ladder::{Ladder, Rung};
use super::rule::{Tried, chosen, lacks_what_gained, stop};
use crate::error::{Result, TrainError};
use crate::record::aside::write_aside;
use crate::record::constant::{Share, of_shares};
use crate::record::summary::Summary;
use crate::record::tries::{AutoSummary, Stop};
use crate::record::verdict::Answered;

/// Where the runs that are not kept are, in the folder of the one that is.
const TRIES: &str = "tries";

/// Trains one rung after the other, by `run`, until one is good enough, and returns what that one has come to, with
/// what was tried in its summary. `out` is the folder of every run.
///
/// # Errors
/// If a run fails, or the operating system refuses. What ended before is in the folder.
pub fn climb<T, E>(
    ladder: &mut Ladder,
    out: Option<&Path>,
    mut run: impl FnMut(&Rung, [usize; 2]) -> std::result::Result<T, E>,
) -> std::result::Result<T, E>
where
    T: AsMut<Summary>,
    E: From<TrainError>,
{
    let (mut folders, all) = (out.map(Folders::of), ladder.rungs.len());
    let (mut ended, mut tried, mut places): (Vec<T>, Vec<Tried>, Vec<usize>) = Default::default();
    let mut at = 0;
    let (stopped, failed) = loop {
        at = next_of(ladder, at, &tried);
        let next = ladder.rungs.get(at).map(|rung| rung.predicted);
        if let Some(stopped) = stop(&tried, next, &ladder.limits) {
            break (stopped, None);
        }
        let rung = &mut ladder.rungs[at];
        let mut done = match run(rung, [at + 1, all]) {
            Ok(done) => done,
            Err(error) => break (Stop::Interrupted, Some(error)),
        };
        let summary = done.as_mut();
        let figure = summary.metrics.scores.val.get(&ladder.metric).copied().flatten();
        let is_whole = !summary.interrupted;
        ladder.limits.constant = constant_of(summary, &ladder.metric, ladder.is_sets);
        (rung.sent, rung.validation) = (Some(summary.bytes.total), figure.filter(|_| is_whole));
        let (sent, passes_on) = (summary.bytes.total, rung.passes_on);
        tried.push(Tried { sent, figure: rung.validation, told: rung.told, passes_on });
        ended.push(done);
        if let Some(folders) = &mut folders {
            rung.folder = Some(folders.set_aside(places.len())?);
        }
        places.push(at);
        at += 1;
        if !is_whole {
            break (Stop::Interrupted, None);
        }
    };
    // One that was stopped is no candidate beside others.
    let is_cut = failed.is_none() && stopped == Stop::Interrupted && tried.len() > 1;
    let candidates = &tried[..tried.len() - usize::from(is_cut)];
    let Some(kept) = chosen(candidates, &ladder.limits) else {
        return Err(failed.unwrap_or_else(|| TrainError::config("nothing was tried").into()));
    };
    let mut done = ended.swap_remove(kept);
    let bytes = tried.iter().map(|tried| tried.sent).sum();
    let chosen = ladder.rungs[places[kept]].name.clone();
    let outcome = AutoSummary { chosen, tries: tried.len() as u32, bytes, stopped };
    ladder.outcome = Some(outcome.clone());
    done.as_mut().auto = Some(outcome);
    if let Some(folders) = &folders {
        folders.keep([kept, places[kept]], ladder, done.as_mut())?;
    }
    failed.map_or(Ok(done), Err)
}

/// The place of the next rung from `at` on that is not passed over. Who names a target wants it, by whatever way.
fn next_of(ladder: &mut Ladder, mut at: usize, tried: &[Tried]) -> usize {
    let (limits, is_choosy) = (ladder.limits, ladder.limits.target.is_none());
    while let Some(rung) = ladder.rungs.get_mut(at) {
        rung.passed_over = is_choosy && !rung.passes_on && lacks_what_gained(rung.told, tried, &limits);
        if !rung.passed_over {
            break;
        }
        at += 1;
    }
    at
}

/// The validation figure of the best answer that is the same for all nodes, where parts have told their classes.
fn constant_of(summary: &Summary, metric: &str, is_sets: bool) -> Option<f64> {
    let classes = summary.classes.as_ref()?.val.iter().map(Answered::from);
    let shares: Vec<Share> = classes.map(|class| (class.has as f64, class.known as f64)).collect();
    of_shares(metric, &shares, is_sets)
}

/// The folders of runs.
struct Folders {
    out: PathBuf,
    aside: PathBuf,
}

impl Folders {
    fn of(out: &Path) -> Folders {
        let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A process that was killed may have left some.
        let names = (1..).map(|n| if n == 1 { format!("{name}.{TRIES}") } else { format!("{name}.{TRIES}.{n}") });
        let free = names.map(|name| out.with_file_name(name)).find(|path| !path.exists());
        Folders { out: out.to_owned(), aside: free.expect("there are infinitely many numbers") }
    }

    /// Makes room for the next run; what the place of this one is called below the folder that is kept.
    fn set_aside(&mut self, at: usize) -> Result<String> {
        let name = (at + 1).to_string();
        let aside = self.aside.join(&name);
        let moved = std::fs::create_dir_all(&self.aside).and_then(|()| std::fs::rename(&self.out, &aside));
        moved.map_err(|source| TrainError::io(&self.out, source))?;
        Ok(format!("{TRIES}/{name}"))
    }

    /// The folder of this run, which is of that rung, where all were to be, with the others and what is known of all of
    /// them in it.
    fn keep(&self, [kept, rung]: [usize; 2], ladder: &mut Ladder, summary: &Summary) -> Result<()> {
        let io = |source| TrainError::io(&self.out, source);
        if self.out.exists() {
            // That of a run which has failed.
            let failed =
                self.aside.join((ladder.rungs.iter().filter(|rung| rung.sent.is_some()).count() + 1).to_string());
            std::fs::rename(&self.out, failed).map_err(io)?;
        }
        std::fs::rename(self.aside.join((kept + 1).to_string()), &self.out).map_err(io)?;
        // One alone leaves none, and an empty folder says nothing.
        if std::fs::remove_dir(&self.aside).is_err() {
            std::fs::rename(&self.aside, self.out.join(TRIES)).map_err(io)?;
        }
        ladder.rungs[rung].folder = Some(".".to_owned());
        summary.write(&self.out)?;
        let path = self.out.join("auto.json");
        let text = serde_json::to_string_pretty(ladder).map_err(|error| TrainError::file(&path, error.to_string()))?;
        write_aside(&path, (text + "\n").as_bytes())
    }
}
