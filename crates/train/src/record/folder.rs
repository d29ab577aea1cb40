//! What is written into a run's folder at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use laconic_wire::{Kind, PerKind, Rank};

use super::aside::write_aside;
use super::card::Card;
use super::checkpoint::Checkpoint;
use super::claim::CONFIG;
use super::digests::digest_text;
use super::ledger::{self, of_workers};
use super::summary::Summary;
use super::traffic::Started;
use super::weights;
use crate::error::{Result, TrainError};
use crate::exchange::timeline::Timeline;
use crate::fit::stages::Trained;
use crate::plan::Plan;
use crate::plan::identity::Identity;
use crate::schedule::Stage;

/// A table to which every worker has lines: each writes a file of its own, and worker 0 puts them together.
pub(crate) struct Table {
    name: &'static str,
    header: &'static str,
}

/// What every worker did when in one round.
pub(crate) const TIMELINE: Table = Table { name: "timeline", header: Timeline::CSV_HEADER };

impl Table {
    fn part(&self, out: &Path, rank: usize) -> PathBuf {
        out.join(format!("{}.{rank}.csv", self.name))
    }

    /// Writes one worker's lines.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn write_part(&self, out: &Path, rank: Rank, lines: &[u8]) -> Result<()> {
        write_aside(&self.part(out, rank.index()), lines)
    }

    /// Puts the lines of all workers together whose files are here.
    fn join(&self, out: &Path, workers: usize) -> Result<()> {
        let mut table = format!("{}\n", self.header).into_bytes();
        for (rank, path) in of_workers(out, self.name) {
            // One of an earlier start, with more workers, that was killed before its lines were put together.
            let is_left_over = rank >= workers as u64;
            if let Ok(lines) = std::fs::read(&path) {
                table.extend(if is_left_over { Vec::new() } else { lines });
                std::fs::remove_file(&path).map_err(|source| TrainError::io(&path, source))?;
            }
        }
        write_aside(&out.join(format!("{}.csv", self.name)), &table)
    }
}

/// Writes summary, weights and the ledger of all workers whose rows are on this machine, behind those of earlier
/// starts where the run `continues`.
pub(crate) fn write_results(
    (out, card): (&Path, Card),
    summary: &mut Summary,
    stages: &[Stage],
    trained: &Trained,
    continues: bool,
) -> Result<()> {
    let model = model(stages, trained)?;
    let (mut listed, mut again) = (0, PerKind::<u64>::default());
    let goes_on = summary.bytes.starts.last().copied().filter(|_| continues);
    ledger::put_together(out, continues, &mut |row| {
        listed += row.count.framed;
        if goes_on.is_some_and(|start| row.start == start.start && row.entry.round <= start.after_round) {
            again[row.entry.kind] += row.count.framed;
        }
    })?;
    if goes_on.is_some_and(|start| summary.rounds <= start.after_round) {
        // Nothing was left to train, and its report is the one that the run ends with.
        let reports = &mut again[Kind::Control];
        *reports = reports.saturating_sub(summary.bytes_of_reports());
    }
    let bytes = &mut summary.bytes;
    bytes.unlisted = bytes.total.saturating_sub(listed);
    // Means count from 1 in each stage, so that nobody can tell which rows were sent again.
    let are_counted_anew = stages.len() > 1 && summary.averaging.is_some();
    if (bytes.unlisted > 0 || are_counted_anew || bytes.straight.is_none()) && continues {
        (bytes.straight, bytes.straight_by_kind) = (None, BTreeMap::new());
    } else {
        bytes.without(&again);
    }
    TIMELINE.join(out, summary.workers as usize)?;
    let card = Card { digest: summary.parameters.digest.clone(), ..card };
    weights::write(&out.join(weights::FILE), &model, &of_model(card, stages, trained))?;
    summary.write(out)
}

/// Writes weights and the own ledger into a folder of one worker alone, of so many.
pub(crate) fn write_own(
    (out, card): (&Path, Card),
    stages: &[Stage],
    trained: &Trained,
    (workers, continues): (usize, bool),
) -> Result<()> {
    let model = model(stages, trained)?;
    let card = Card { digest: digest_text(&weights::digest(&trained.chosen, &trained.last)), ..card };
    ledger::put_together(out, continues, &mut |_| {})?;
    TIMELINE.join(out, workers)?;
    weights::write(&out.join(weights::FILE), &model, &of_model(card, stages, trained))
}

/// The model that was trained, unless nobody could read it: running statistics overflow where no loss has to.
fn model(stages: &[Stage], trained: &Trained) -> Result<weights::Weights> {
    let weights = weights::weights(&stages[..trained.chosen.len()], &trained.chosen);
    let odd = weights.iter().find_map(|(name, (_, values))| {
        values.iter().find(|value| !value.is_finite()).map(|odd| format!("{name} of the model is {odd}"))
    });
    match odd {
        Some(what) => Err(TrainError::Diverged { round: trained.best_round, what }),
        None => Ok(weights),
    }
}

/// What is written about a model, with how far it was trained.
fn of_model(card: Card, stages: &[Stage], trained: &Trained) -> Card {
    let (done, all) = (trained.chosen.len(), stages.len());
    Card { round: trained.best_round.to_string(), stages: (done < all).then_some([done, all]), ..card }
}

/// Takes up the folder of a run that goes on: its configuration is from now on the one that it goes on with, and so is
/// that of its checkpoint, which also says that the run was started again, and with how many workers.
///
/// # Errors
/// If the operating system refuses.
pub(crate) fn continue_folder(
    (out, plan): (&Path, &Plan),
    checkpoint: &Checkpoint,
    identity: &Identity,
    starts: &[Started],
) -> Result<()> {
    Checkpoint { identity: identity.clone(), starts: starts.to_vec(), ..checkpoint.clone() }.write(out)?;
    write_aside(&out.join(CONFIG), plan.members.to_toml_of_run(&plan.config)?.as_bytes())
}
