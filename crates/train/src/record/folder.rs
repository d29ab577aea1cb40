//! A run's folder: what is written while it goes on and at its end.

use std::path::{Path, PathBuf};

use laconic_wire::{Count, Ledger, Rank};

use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::exchange::timeline::Timeline;
use crate::fit::RoundReport;
use crate::record::checkpoint::Checkpoint;
use crate::record::state::Saved;
use crate::record::summary::Summary;
use crate::record::weights;
use crate::run::Observer;
use crate::schedule::staged::{Hooks, Trained};
use crate::schedule::{Position, Stage};

/// The file with a line a round.
pub const METRICS: &str = "metrics.jsonl";

/// Writes a run down while it goes on: worker 0's hooks have a folder and an observer, the others' have neither.
pub(crate) struct Recorder {
    /// The folder; set on worker 0 if the run is written down.
    pub out: Option<PathBuf>,
    /// The folder, on every worker.
    pub folder: Option<PathBuf>,
    /// The worker.
    pub rank: Rank,
    /// Whether workers remember what no other knows.
    pub own_state: bool,
    /// The round of the last checkpoint.
    pub remembered: u32,
    /// [`crate::Config::fingerprint`] of the run.
    pub fingerprint: String,
    /// Bytes by kind of the run before it was resumed.
    pub before: [Count; 7],
    /// The state to go on from.
    pub checkpoint: Option<Checkpoint>,
    /// Who watches.
    pub observer: Box<dyn Observer>,
    /// Bytes by kind at the last checkpoint: all that is known of them when a worker has failed.
    pub before_rescue: [Count; 7],
    /// The log of rounds.
    pub log: Option<std::fs::File>,
}

impl Recorder {
    /// Opens the log of rounds, keeping those before the checkpoint.
    pub fn open_log(&mut self, position: &Position) -> Result<()> {
        let Some(out) = &self.out else { return Ok(()) };
        let path = out.join(METRICS);
        let done: u32 = position.finished.iter().sum::<u32>() + position.done;
        let old = if done > 0 { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let keeps = |line: &&str| serde_json::from_str::<RoundReport>(line).is_ok_and(|report| report.round <= done);
        let kept: String = old.lines().filter(keeps).flat_map(|line| [line, "\n"]).collect();
        write_aside(&path, kept.as_bytes())?;
        let log = std::fs::OpenOptions::new().append(true).open(&path);
        self.log = Some(log.map_err(|source| TrainError::io(&path, source))?);
        Ok(())
    }
}

impl Hooks for Recorder {
    fn round(&mut self, report: &RoundReport) -> Result<()> {
        use std::io::Write;
        if let Some(log) = &mut self.log {
            let line = serde_json::to_string(report).map_err(|e| TrainError::file(METRICS, e.to_string()))? + "\n";
            log.write_all(line.as_bytes()).map_err(|source| TrainError::io(METRICS, source))?;
        }
        self.observer.round(report);
        Ok(())
    }

    fn checkpoint(&mut self, make: &dyn Fn() -> Checkpoint) -> Result<()> {
        if let Some(out) = &self.out {
            let mut checkpoint = make();
            checkpoint.fingerprint.clone_from(&self.fingerprint);
            checkpoint.write(out)?;
            self.before_rescue = checkpoint.bytes;
            self.observer.checkpoint(checkpoint.rounds());
        }
        Ok(())
    }

    fn remember(&mut self, saved: &Saved, round: u32) -> Result<()> {
        if let Some(folder) = &self.folder {
            saved.write(folder, self.rank.0, round, self.remembered)?;
            self.remembered = round;
        }
        Ok(())
    }

    fn rescue(&mut self, error: &TrainError, make: &dyn Fn([Count; 7]) -> Checkpoint) -> Result<()> {
        // A run that has diverged has nothing worth keeping, and a worker that rehearses its own crash writes nothing.
        if let (TrainError::Wire(_), Some(out)) = (error, &self.out) {
            let mut checkpoint = make(self.before_rescue);
            checkpoint.fingerprint.clone_from(&self.fingerprint);
            if checkpoint.rounds() > 0 {
                checkpoint.write(out)?;
                self.observer.checkpoint(checkpoint.rounds());
            }
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<Option<(Checkpoint, Saved)>> {
        let Some(checkpoint) = self.checkpoint.take() else { return Ok(None) };
        let saved = match &self.folder {
            Some(folder) if self.own_state => Saved::read(folder, self.rank.0, checkpoint.rounds())?,
            _ => Saved::default(),
        };
        self.remembered = checkpoint.rounds();
        Ok(Some((checkpoint, saved)))
    }

    fn bytes_before(&self) -> [Count; 7] {
        self.before
    }
}

/// A table to which every worker has lines: each writes a file of its own, and worker 0 puts them together.
pub(crate) struct Table {
    name: &'static str,
    header: &'static str,
}

/// Every account of every worker's ledger.
pub(crate) const LEDGER: Table = Table { name: "ledger", header: Ledger::CSV_HEADER };

/// What every worker did when in one round.
pub(crate) const TIMELINE: Table = Table { name: "timeline", header: Timeline::CSV_HEADER };

impl Table {
    fn part(&self, out: &Path, rank: usize) -> PathBuf {
        out.join(format!("{}.{rank}.csv", self.name))
    }

    /// Writes one worker's lines.
    pub fn write_part(&self, out: &Path, rank: Rank, lines: &[u8]) -> Result<()> {
        std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
        write_aside(&self.part(out, rank.index()), lines)
    }

    /// Puts the lines of all workers whose files are here behind `earlier` ones.
    fn join(&self, out: &Path, workers: usize, earlier: &str) -> Result<()> {
        let mut table = format!("{}\n{earlier}", self.header).into_bytes();
        for rank in 0..workers {
            let path = self.part(out, rank);
            if let Ok(lines) = std::fs::read(&path) {
                table.extend(lines);
                std::fs::remove_file(&path).map_err(|source| TrainError::io(&path, source))?;
            }
        }
        write_aside(&out.join(format!("{}.csv", self.name)), &table)
    }
}

/// Writes summary, weights and the ledger of all workers whose rows are on this machine.
pub(crate) fn write_results(
    out: &Path,
    summary: &Summary,
    stages: &[Stage],
    trained: &Trained,
    earlier: &str,
) -> Result<()> {
    LEDGER.join(out, summary.workers as usize, earlier)?;
    TIMELINE.join(out, summary.workers as usize, "")?;
    let weights = weights::weights(&stages[..trained.chosen.len()], &trained.chosen);
    let width = |layer: Option<&laconic_nn::Unit>, width: fn(&dyn laconic_nn::Layer) -> usize| {
        layer.map_or(0, |unit| width(unit.layer.as_ref())).to_string()
    };
    let inputs = width(stages.first().and_then(|s| s.network.units().first()), |layer| layer.inputs());
    let classes = width(stages.last().and_then(|s| s.network.units().last()), |layer| layer.outputs());
    let digest = summary.parameters.digest.clone();
    let format = "laconic-model-1".to_owned();
    let metadata = [("format", format), ("digest", digest), ("inputs", inputs), ("classes", classes)];
    weights::write(&out.join(weights::FILE), &weights, metadata.into())?;
    let text = serde_json::to_string_pretty(summary).map_err(|e| TrainError::file("summary.json", e.to_string()))?;
    write_aside(&out.join("summary.json"), (text + "\n").as_bytes())
}

/// Makes a run's folder and writes the resolved configuration into it. A run that stands there already is moved aside, to the first
/// free name `DIR.1`, `DIR.2`, …, which is returned.
pub fn prepare_folder(out: &Path, config: &Config) -> Result<Option<PathBuf>> {
    let mut moved = None;
    if out.join("config.toml").exists() {
        let name = out.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let free = (1..).map(|n| out.with_file_name(format!("{name}.{n}"))).find(|path| !path.exists());
        let free = free.expect("there are infinitely many numbers");
        std::fs::rename(out, &free).map_err(|source| TrainError::io(out, source))?;
        moved = Some(free);
    }
    std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
    write_aside(&out.join("config.toml"), config.to_toml()?.as_bytes())?;
    Ok(moved)
}

/// Writes a file under another name beside it and renames it, so that it is never seen half-written.
pub fn write_aside(path: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        make_readable(file.as_file())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(|source| TrainError::io(path, source))
}

/// Temporary files are private; what they become is not.
fn make_readable(file: &std::fs::File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}
