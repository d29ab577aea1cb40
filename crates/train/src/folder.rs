//! A run's folder: what is written while it goes on and at its end.

use std::path::{Path, PathBuf};

use laconic_wire::{Count, Ledger, Rank};

use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::error::{Result, TrainError};
use crate::fit::RoundReport;
use crate::model;
use crate::report::Summary;
use crate::run::Observer;
use crate::schedule::staged::{Hooks, Trained};
use crate::schedule::{Position, Stage};

/// The file with a line a round.
pub const METRICS: &str = "metrics.jsonl";

/// Writes a run down while it goes on: worker 0's hooks have a folder and an observer, the others' have neither.
pub(crate) struct Recorder {
    /// The folder; set on worker 0 if the run is written down.
    pub out: Option<PathBuf>,
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

    fn resume(&mut self) -> Option<Checkpoint> {
        self.checkpoint.take()
    }

    fn bytes_before(&self) -> [Count; 7] {
        self.before
    }
}

/// The file with one worker's ledger rows, until worker 0 has put them together.
fn ledger_part(out: &Path, rank: usize) -> PathBuf {
    out.join(format!("ledger.{rank}.csv"))
}

pub(crate) fn write_ledger_rows(out: &Path, rank: Rank, ledger: &Ledger) -> Result<()> {
    std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
    let (path, mut rows) = (ledger_part(out, rank.index()), Vec::new());
    ledger.write_csv_rows(rank, &mut rows).map_err(|source| TrainError::io(&path, source))?;
    write_aside(&path, &rows)
}

/// Writes summary, weights and the ledger of all workers whose rows are on this machine.
pub(crate) fn write_results(
    out: &Path,
    summary: &Summary,
    stages: &[Stage],
    trained: &Trained,
    earlier: &str,
) -> Result<()> {
    let mut ledger = format!("{}\n{earlier}", Ledger::CSV_HEADER).into_bytes();
    for rank in 0..summary.workers as usize {
        let path = ledger_part(out, rank);
        if let Ok(rows) = std::fs::read(&path) {
            ledger.extend(rows);
            std::fs::remove_file(&path).map_err(|source| TrainError::io(&path, source))?;
        }
    }
    write_aside(&out.join("ledger.csv"), &ledger)?;
    let weights = model::weights(&stages[..trained.chosen.len()], &trained.chosen);
    let width = |layer: Option<&laconic_nn::Unit>, width: fn(&dyn laconic_nn::Layer) -> usize| {
        layer.map_or(0, |unit| width(unit.layer.as_ref())).to_string()
    };
    let inputs = width(stages.first().and_then(|s| s.network.units().first()), |layer| layer.inputs());
    let classes = width(stages.last().and_then(|s| s.network.units().last()), |layer| layer.outputs());
    let digest = summary.parameters.digest.clone();
    let format = "laconic-model-1".to_owned();
    let metadata = [("format", format), ("digest", digest), ("inputs", inputs), ("classes", classes)];
    model::write(&out.join(model::FILE), &weights, metadata.into())?;
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
