//! Writing a run down while it goes on.

use std::fs::File;
use std::path::{Path, PathBuf};

use laconic_wire::{Count, Ledger, Metered, PerKind, Rank, Transport};

use super::aside::write_aside;
use super::checkpoint::Checkpoint;
use super::claim::{Claim, METRICS};
use super::ledger::PartFile;
use super::observer::Observer;
use super::report::WorkerReport;
use super::state::{self, Owner};
use super::traffic::Started;
use crate::config::MessagesConfig;
use crate::error::{Result, STATE, TrainError};
use crate::fit::observe::{Recorder, RoundReport};
use crate::fit::progress::Snapshot;
use crate::plan::Plan;
use crate::plan::identity::Identity;
use crate::saved::Saved;
use crate::worker::StopSignal;

/// Where a worker of a run is written down.
pub struct Destination {
    /// This worker's number.
    pub rank: Rank,
    /// The run's folder; nothing is written without.
    pub folder: Option<PathBuf>,
    /// Whether the folder is this worker's alone.
    pub own_folder: bool,
    /// The starts of the run, this one the last.
    pub starts: Vec<Started>,
    /// Whether accounts of the ledgers stay in memory although they are written down.
    pub keeps_accounts: bool,
    /// Frames that had come from worker 0 before it began the folder.
    pub heard: u64,
    /// The right to write into it, on worker 0.
    pub claim: Option<Claim>,
}

impl Destination {
    /// The folder, on worker 0, which alone writes log, checkpoints and results; on each worker that has its own.
    pub fn out(&self) -> Option<&Path> {
        self.folder.as_deref().filter(|_| self.is_keeper())
    }

    /// Whether this worker begins its folder.
    fn is_keeper(&self) -> bool {
        self.own_folder || self.rank == Rank(0)
    }

    /// Checks that the folder is still there.
    fn check(&self) -> Result<()> {
        self.claim.as_ref().map_or(Ok(()), Claim::check)
    }
}

/// Writes a run down: worker 0 has log and checkpoints, every worker the file of what it alone remembers and an
/// observer, which hears of every round.
pub struct FolderRecorder {
    destination: Destination,
    /// Whether workers remember what no other knows.
    own_state: bool,
    /// The round of the last checkpoint.
    remembered: u32,
    /// What is run, and the name of what is written of it.
    identity: Identity,
    run: String,
    /// The messages that a byte budget has chosen.
    messages: Option<MessagesConfig>,
    /// Bytes by kind of the run before it was resumed.
    before: PerKind<Count>,
    /// The state to go on from.
    checkpoint: Option<Checkpoint>,
    observer: Box<dyn Observer>,
    /// Given where the observer has seen enough.
    stop: StopSignal,
    /// Bytes by kind at the last checkpoint: all that is known of them when a worker has failed.
    before_rescue: PerKind<Count>,
    log: Option<File>,
    /// What the log of rounds had when the run was resumed.
    earlier: Vec<RoundReport>,
    /// Where this worker's rows of the ledger go; without a folder they stay with the transport, and elsewhere than on
    /// worker 0 until that has begun it.
    rows: Option<PartFile>,
    /// What was sent and received, where it stays in memory although it is written down.
    kept: Option<[Ledger; 2]>,
}

impl FolderRecorder {
    /// Records a run from its start, or from a checkpoint before which it had sent `before`.
    ///
    /// # Errors
    /// If the log of rounds cannot be opened.
    pub fn new(
        destination: Destination,
        plan: &Plan,
        identity: Identity,
        checkpoint: Option<Checkpoint>,
        before: PerKind<Count>,
        observer: Box<dyn Observer>,
        stop: StopSignal,
    ) -> Result<FolderRecorder> {
        let done = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.snapshot.rounds());
        let run = identity.run(checkpoint.as_ref().map(|checkpoint| (checkpoint.run.as_str(), done)));
        let logged = checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.snapshot.logged());
        let (log, earlier) = destination.out().map(|out| open_log(out, logged)).transpose()?.unzip();
        let own_state = plan.remembers();
        let keeps = destination.folder.is_some() && destination.keeps_accounts;
        Ok(FolderRecorder {
            kept: keeps.then(Default::default),
            rows: None,
            destination,
            own_state,
            remembered: 0,
            identity,
            run,
            messages: plan.messages.budget.map(|_| plan.config.messages.clone()),
            before,
            checkpoint,
            observer,
            stop,
            before_rescue: before,
            log,
            earlier: earlier.unwrap_or_default(),
        })
    }

    /// What the log of rounds had when the run was resumed; taken once.
    pub fn earlier(&mut self) -> Vec<RoundReport> {
        std::mem::take(&mut self.earlier)
    }

    /// What the run is called in all that is written of it from now on.
    pub fn run(&self) -> &str {
        &self.run
    }

    /// The error, with whole paths of files of this run.
    pub fn located(&self, error: TrainError) -> TrainError {
        let Destination { rank, folder: Some(folder), .. } = &self.destination else { return error };
        match error {
            TrainError::File { path, expected } if path == Path::new(STATE) => {
                TrainError::file(state::path(folder, rank.0, self.remembered), expected)
            }
            error => error.within(folder),
        }
    }

    /// The one who watches.
    pub fn observer(&mut self) -> &mut dyn Observer {
        self.observer.as_mut()
    }

    /// What was sent and received, as far as it is kept, with this worker's closing report, which is still to be sent.
    ///
    /// # Errors
    /// If the last rows cannot be written down.
    pub fn close(&mut self, transport: &mut Metered, rounds: u32) -> Result<[Ledger; 2]> {
        self.open_rows()?;
        self.crossed(transport)?;
        let (rank, size) = (transport.rank(), transport.size());
        let [mut sent, mut received] = [Ledger::new(), Ledger::new()];
        WorkerReport::count_itself(rank, size, rounds, &mut sent, &mut received);
        if let Some(rows) = &mut self.rows {
            rows.append(sent.iter())?;
        }
        let known = || [transport.sent().clone(), transport.received().clone()];
        let [mut all_sent, mut all_received] = self.kept.take().unwrap_or_else(known);
        all_sent.add_times(&sent, 1);
        all_received.add_times(&received, 1);
        Ok([all_sent, all_received])
    }

    /// Opens this worker's file of the ledger, if there is a folder, which worker 0 must have begun.
    fn open_rows(&mut self) -> Result<()> {
        let Destination { rank, folder, starts, .. } = &self.destination;
        if let (None, Some(folder)) = (&self.rows, folder) {
            self.rows = Some(PartFile::open(folder, *rank, starts.len().saturating_sub(1) as u32)?);
        }
        Ok(())
    }

    /// Writes a checkpoint into the folder.
    fn write(&mut self, snapshot: Snapshot) -> Result<()> {
        self.destination.check()?;
        if let Some(out) = self.destination.out() {
            let rounds = snapshot.rounds();
            let (identity, run, starts) = (self.identity.clone(), self.run.clone(), self.destination.starts.clone());
            Checkpoint { identity, run, starts, messages: self.messages.clone(), snapshot }.write(out)?;
            self.observer.checkpoint(rounds);
        }
        Ok(())
    }
}

/// Frames that have come from worker 0.
pub fn heard(transport: &Metered) -> u64 {
    transport.received().totals_by_peer().get(&Rank(0)).map_or(0, |count| count.frames)
}

/// Opens the log of rounds, keeping those up to round `done`, which are given back.
fn open_log(out: &Path, done: u32) -> Result<(File, Vec<RoundReport>)> {
    let path = out.join(METRICS);
    let old = if done > 0 { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
    let (mut kept, mut reports) = (String::new(), Vec::new());
    for line in old.lines() {
        if let Ok(report) = serde_json::from_str::<RoundReport>(line)
            && report.round <= done
        {
            kept.extend([line, "\n"]);
            reports.push(report);
        }
    }
    write_aside(&path, kept.as_bytes())?;
    let log = std::fs::OpenOptions::new().append(true).open(&path);
    Ok((log.map_err(|source| TrainError::io(&path, source))?, reports))
}

impl Recorder for FolderRecorder {
    fn crossed(&mut self, transport: &mut Metered) -> Result<()> {
        // Worker 0 begins the folder before it sends anything more; who has not heard of it yet might write into what
        // is about to be moved aside.
        if self.destination.is_keeper() || heard(transport) > self.destination.heard {
            self.open_rows()?;
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        let [sent, received] = transport.take_accounts();
        if let Some([all_sent, all_received]) = &mut self.kept {
            all_sent.add_times(&sent.iter().map(|(entry, count)| (*entry, *count)).collect(), 1);
            all_received.add_times(&received.into_iter().collect(), 1);
        }
        rows.append(sent)
    }

    fn after_round(&mut self, report: &RoundReport) -> Result<()> {
        use std::io::Write;
        self.destination.check()?;
        if let (Some(log), Some(out)) = (&mut self.log, self.destination.out()) {
            let path = out.join(METRICS);
            let line = serde_json::to_string(report).map_err(|e| TrainError::file(&path, e.to_string()))? + "\n";
            log.write_all(line.as_bytes()).map_err(|source| TrainError::io(&path, source))?;
        }
        if self.observer.round(report).is_break() {
            self.stop.set();
        }
        Ok(())
    }

    fn checkpoint(&mut self, take: &dyn Fn() -> Snapshot) -> Result<()> {
        if self.destination.out().is_some() {
            let snapshot = take();
            let bytes = snapshot.bytes;
            self.write(snapshot)?;
            self.before_rescue = bytes;
        }
        Ok(())
    }

    fn remember(&mut self, saved: Saved, round: u32) -> Result<()> {
        if let Some(folder) = &self.destination.folder {
            let owner = Owner { run: self.run.clone(), rank: self.destination.rank.0, round };
            state::write(saved, folder, &owner, self.remembered)?;
            self.remembered = round;
        }
        Ok(())
    }

    fn rescue(&mut self, error: &TrainError, take: &dyn Fn(PerKind<Count>) -> Snapshot) -> Result<()> {
        // A run that has diverged has nothing worth keeping, and a worker that rehearses its own crash writes nothing.
        if let (TrainError::Wire(_), Some(_)) = (error, self.destination.out()) {
            let snapshot = take(self.before_rescue);
            if snapshot.rounds() > 0 {
                self.write(snapshot)?;
            }
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<Option<(Snapshot, Saved)>> {
        let Some(Checkpoint { snapshot, run, .. }) = self.checkpoint.take() else { return Ok(None) };
        self.remembered = snapshot.rounds();
        let owner = Owner { run, rank: self.destination.rank.0, round: self.remembered };
        let saved = match &self.destination.folder {
            Some(folder) if self.own_state => state::read(folder, &owner)?,
            _ => Saved::default(),
        };
        Ok(Some((snapshot, saved)))
    }

    fn bytes_before(&self) -> PerKind<Count> {
        self.before
    }
}
