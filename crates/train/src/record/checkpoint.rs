//! Checkpoints: one safetensors file, written aside and renamed, from which a run goes on bit for bit.
//!
//! All randomness is a function of keys, so the state of training is: parameters, the best so far, the optimiser, counters. Frozen
//! inputs of a stage are not stored: they are computed (and exchanged) again from the parameters of the stages before it.

use std::collections::HashMap;
use std::path::Path;

use laconic_wire::Count;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::fit::progress::{Best, Clocks, Progress};
use crate::record::folder::write_aside;
use crate::schedule::{Position, Stage};
use crate::worker::evaluate::Scores;

/// The file in a run's folder.
pub const FILE: &str = "checkpoint.safetensors";

const FORMAT: &str = "laconic-checkpoint-1";
/// Larger files are refused unread: no model of ours comes near.
const BYTES_MAX: u64 = 16 << 30;

/// The state of a run between two rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The stage that was being trained.
    pub stage: usize,
    /// Chosen parameters of the stages before it, and rounds.
    pub finished: Vec<(Vec<f32>, u32)>,
    /// [`crate::Config::fingerprint`] of the run.
    pub fingerprint: String,
    /// Bytes that all workers had sent, by kind.
    pub bytes: [Count; 7],
    counters: Counters,
    parameters: Vec<f32>,
    best: Option<Vec<f32>>,
    slots: Vec<Vec<f32>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counters {
    done: u32,
    steps: u64,
    since_best: u32,
    stopped: bool,
    /// Whether the last round still has to be evaluated: the run broke off in between.
    unjudged: bool,
    best: Option<(u32, Scores)>,
    #[serde(default)]
    clocks: Clocks,
}

/// What stands in the file's metadata.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    fingerprint: String,
    stage: usize,
    rounds_finished: Vec<u32>,
    bytes: Vec<[u64; 3]>,
    counters: Counters,
    has_best: bool,
    slots: usize,
}

impl Checkpoint {
    /// The state after a round.
    pub fn take(stage: usize, progress: &Progress, finished: Vec<(Vec<f32>, u32)>, bytes: [Count; 7]) -> Checkpoint {
        let (steps, slots) = progress.optimiser.state();
        let best = progress.best.as_ref().map(|b| (b.round, b.scores.clone()));
        Checkpoint {
            fingerprint: String::new(),
            stage,
            finished,
            bytes,
            counters: Counters {
                done: progress.done,
                steps,
                since_best: progress.since_best,
                stopped: progress.stopped,
                unjudged: progress.unjudged,
                best,
                clocks: progress.clocks,
            },
            parameters: progress.parameters.clone(),
            best: progress.best.as_ref().map(|b| b.parameters.clone()),
            slots: slots.into_iter().map(|(_, slot)| slot.to_vec()).collect(),
        }
    }

    /// Refuses a checkpoint of other stages.
    pub fn check_fits(&self, stages: &[Stage]) -> Result<()> {
        let fits = |(stage, (values, _)): (&Stage, &(Vec<f32>, u32))| stage.network.len() == values.len();
        if self.finished.len() < stages.len() && stages.iter().zip(&self.finished).all(fits) {
            return Ok(());
        }
        Err(TrainError::file(FILE, format!("expected the state of {} stages of this model", stages.len())))
    }

    /// How far the run had come.
    pub fn position(&self) -> Position {
        Position {
            finished: self.finished.iter().map(|(_, rounds)| *rounds).collect(),
            done: self.counters.done,
            stopped: self.counters.stopped,
        }
    }

    /// Rounds done, counted over stages.
    pub fn rounds(&self) -> u32 {
        self.finished.iter().fold(self.counters.done, |sum, (_, rounds)| sum.saturating_add(*rounds))
    }

    /// Sets a fresh progress of the same network to this state.
    pub fn restore(self, progress: &mut Progress) -> Result<()> {
        let len = progress.parameters.len();
        let expected = progress.optimiser.state().1.len();
        let fits = self.parameters.len() == len
            && self.best.as_ref().is_none_or(|b| b.len() == len)
            && self.slots.len() == expected
            && self.slots.iter().all(|s| s.len() == len);
        if !fits {
            let found = self.parameters.len();
            return Err(TrainError::file(
                FILE,
                format!(
                    "expected {len} parameters and {expected} optimiser slots, found {found} and {}",
                    self.slots.len()
                ),
            ));
        }
        progress.done = self.counters.done;
        progress.since_best = self.counters.since_best;
        progress.stopped = self.counters.stopped;
        progress.unjudged = self.counters.unjudged;
        progress.clocks = self.counters.clocks;
        progress.parameters = self.parameters;
        progress.optimiser.restore(self.counters.steps, self.slots);
        progress.best = match (self.best, self.counters.best) {
            (Some(parameters), Some((round, scores))) => Some(Best { round, scores, parameters }),
            _ => None,
        };
        Ok(())
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let header = Header {
            fingerprint: self.fingerprint.clone(),
            stage: self.stage,
            rounds_finished: self.finished.iter().map(|(_, rounds)| *rounds).collect(),
            bytes: self.bytes.iter().map(|c| [c.frames, c.payload, c.framed]).collect(),
            counters: self.counters.clone(),
            has_best: self.best.is_some(),
            slots: self.slots.len(),
        };
        let mut tensors: Vec<(String, &[f32])> = vec![("parameters".to_owned(), &self.parameters)];
        tensors.extend(self.best.iter().map(|best| ("best".to_owned(), best.as_slice())));
        tensors.extend(self.slots.iter().enumerate().map(|(i, slot)| (format!("slot.{i}"), slot.as_slice())));
        tensors.extend(self.finished.iter().enumerate().map(|(i, (p, _))| (format!("finished.{i}"), p.as_slice())));
        let views = tensors.iter().map(|(name, values)| {
            let view = TensorView::new(Dtype::F32, vec![values.len()], bytemuck::cast_slice(values));
            view.map(|view| (name.clone(), view))
        });
        let views: Vec<(String, TensorView<'_>)> = views.collect::<std::result::Result<_, _>>().map_err(malformed)?;
        let text = serde_json::to_string(&header).map_err(|e| TrainError::file(FILE, e.to_string()))?;
        let metadata = HashMap::from([(FORMAT.to_owned(), text)]);
        safetensors::serialize(views, Some(metadata)).map_err(malformed)
    }

    /// Reads a file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint> {
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
        let fields = metadata.metadata().clone().unwrap_or_default();
        let state = fields.get(FORMAT).ok_or_else(|| TrainError::file(FILE, format!("expected a {FORMAT}")))?;
        let header: Header = serde_json::from_str(state).map_err(|e| TrainError::file(FILE, format!("state: {e}")))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(malformed)?;
        let read = |name: &str| {
            let tensor = tensors.tensor(name).map_err(malformed)?;
            if tensor.dtype() != Dtype::F32 {
                return Err(TrainError::file(FILE, format!("{name}: expected f32")));
            }
            Ok(tensor.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<f32>>())
        };
        let finished = header.rounds_finished.iter().enumerate();
        let bytes: Vec<Count> =
            header.bytes.iter().map(|&[frames, payload, framed]| Count { frames, payload, framed }).collect();
        let bytes = bytes.try_into().map_err(|_| TrainError::file(FILE, "expected bytes of 7 kinds"))?;
        if header.slots > 16 {
            return Err(TrainError::file(FILE, format!("expected at most 16 optimiser slots, found {}", header.slots)));
        }
        if header.stage != header.rounds_finished.len() {
            return Err(TrainError::file(FILE, "expected every stage before the current one to be finished"));
        }
        Ok(Checkpoint {
            fingerprint: header.fingerprint,
            stage: header.stage,
            finished: finished.map(|(i, &r)| Ok((read(&format!("finished.{i}"))?, r))).collect::<Result<_>>()?,
            bytes,
            parameters: read("parameters")?,
            best: if header.has_best { Some(read("best")?) } else { None },
            slots: (0..header.slots).map(|i| read(&format!("slot.{i}"))).collect::<Result<_>>()?,
            counters: header.counters,
        })
    }

    /// Writes the file into a run's folder, all or nothing.
    pub fn write(&self, folder: &Path) -> Result<()> {
        write_aside(&folder.join(FILE), &self.to_bytes()?)
    }

    /// The bytes of the file in a run's folder.
    pub fn read_bytes(folder: &Path) -> Result<Vec<u8>> {
        let path = folder.join(FILE);
        let size = std::fs::metadata(&path).map_err(|source| TrainError::io(&path, source))?.len();
        if size > BYTES_MAX {
            return Err(TrainError::file(path, format!("expected at most {BYTES_MAX} bytes, found {size}")));
        }
        std::fs::read(&path).map_err(|source| TrainError::io(path, source))
    }
}

fn malformed(error: safetensors::SafeTensorError) -> TrainError {
    TrainError::file(FILE, format!("expected a safetensors file: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn checkpoint() -> Checkpoint {
        Checkpoint {
            fingerprint: "f".to_owned(),
            stage: 1,
            finished: vec![(vec![1.0, 2.0], 7)],
            bytes: [Count { frames: 1, payload: 2, framed: 26 }; 7],
            counters: Counters {
                done: 3,
                steps: 3,
                since_best: 1,
                stopped: false,
                unjudged: false,
                best: Some((9, Scores::default())),
                clocks: Clocks { elapsed: 1.5, bytes: 7e9, first_gradient: 0.3, least_gradient: 0.1 },
            },
            parameters: vec![0.5; 4],
            best: Some(vec![0.25; 4]),
            slots: vec![vec![0.1; 4], vec![0.2; 4]],
        }
    }

    #[test]
    fn a_checkpoint_reads_back_as_itself() {
        let bytes = checkpoint().to_bytes().expect("writable");
        assert_eq!(Checkpoint::from_bytes(&bytes).expect("its own bytes"), checkpoint());
        assert_eq!(checkpoint().rounds(), 10);
    }

    proptest! {
        #[test]
        fn damaged_checkpoints_are_errors_or_checkpoints_and_never_panics(at in 0usize..2000, value: u8, cut in 0usize..2000) {
            let mut bytes = checkpoint().to_bytes().expect("writable");
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = Checkpoint::from_bytes(&bytes);
            bytes.truncate(cut.min(bytes.len()));
            let _ = Checkpoint::from_bytes(&bytes);
        }
    }
}
