//! Checkpoints: one safetensors file, written aside and renamed, from which a run goes on bit for bit.
//!
//! All randomness is a function of keys, so the state of training is: parameters, the best so far, the optimiser,
//! counters. Frozen inputs of a stage are not stored: they are computed (and exchanged) again from the parameters of
//! the stages before it.

use std::path::Path;

use laconic_wire::{Count, Kind};
use serde::{Deserialize, Serialize};

use super::aside::{read_within, write_aside};
use super::tensors::Tensors;
use super::traffic::Started;
use crate::config::MessagesConfig;
use crate::error::{Result, TrainError};
use crate::fit::progress::{Counters, Finished, Snapshot};
use crate::plan::identity::Identity;

/// The file in a run's folder.
pub const FILE: &str = "checkpoint.safetensors";

const FORMAT: &str = "laconic-checkpoint-2";
/// Larger files are refused: no model of ours comes near.
const BYTES_MAX: u64 = 16 << 30;
/// No optimiser of ours keeps more arrays of the parameters' size.
const SLOTS_MAX: usize = 16;

/// The state of a run between two rounds, with the run that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// What was run.
    pub identity: Identity,
    /// The name of what was written of the run at the time: workers' own states of this name belong to it.
    pub run: String,
    /// How often the run was started until then, and with how many workers.
    pub starts: Vec<Started>,
    /// The messages that a byte budget has chosen, where there is one: who goes on keeps to them.
    pub messages: Option<MessagesConfig>,
    /// The state that all workers share.
    pub snapshot: Snapshot,
}

/// What stands in the file's metadata.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    identity: Identity,
    run: String,
    #[serde(default)]
    starts: Vec<Started>,
    #[serde(default)]
    messages: Option<MessagesConfig>,
    stage: usize,
    rounds_finished: Vec<u32>,
    bytes: Vec<[u64; 3]>,
    counters: Counters,
    has_best: bool,
    slots: usize,
}

impl Checkpoint {
    /// The file's bytes.
    ///
    /// # Errors
    /// If the state cannot be written down.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let Snapshot { stage, finished, bytes, counters, parameters, best, slots } = &self.snapshot;
        let header = Header {
            identity: self.identity.clone(),
            run: self.run.clone(),
            starts: self.starts.clone(),
            messages: self.messages.clone(),
            stage: *stage,
            rounds_finished: finished.iter().map(|(_, rounds)| *rounds).collect(),
            bytes: bytes.iter().map(|(_, c)| [c.frames, c.payload, c.framed]).collect(),
            counters: counters.clone(),
            has_best: best.is_some(),
            slots: slots.len(),
        };
        let mut file = Tensors::default();
        file.put("parameters", parameters.clone());
        best.iter().for_each(|best| file.put("best", best.clone()));
        slots.iter().enumerate().for_each(|(i, slot)| file.put(format!("slot.{i}"), slot.clone()));
        finished.iter().enumerate().for_each(|(i, (values, _))| file.put(format!("finished.{i}"), values.clone()));
        let text = serde_json::to_string(&header).map_err(|e| TrainError::checkpoint(e.to_string()))?;
        file.metadata = Some((FORMAT.to_owned(), text));
        file.to_bytes().map_err(TrainError::checkpoint)
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// If they are no checkpoint.
    pub fn from_bytes(bytes: &[u8]) -> Result<Checkpoint> {
        let refuse = TrainError::checkpoint::<String>;
        let mut file = Tensors::from_bytes(bytes, FORMAT).map_err(refuse)?;
        let header: Header = serde_json::from_str(file.text()).map_err(|e| refuse(format!("state: {e}")))?;
        let Header { identity, run, starts, messages, stage, rounds_finished, bytes, counters, has_best, slots } =
            header;
        let bytes: Vec<Count> =
            bytes.iter().map(|&[frames, payload, framed]| Count { frames, payload, framed }).collect();
        let bytes: [Count; Kind::ALL.len()] =
            bytes.try_into().map_err(|_| refuse(format!("expected bytes of {} kinds", Kind::ALL.len())))?;
        if slots > SLOTS_MAX {
            return Err(refuse(format!("expected at most {SLOTS_MAX} optimiser slots, found {slots}")));
        }
        if stage != rounds_finished.len() {
            return Err(refuse("expected every stage before the current one to be finished".to_owned()));
        }
        let mut take = |name: &str| file.take(name).map_err(refuse);
        let finished = rounds_finished.iter().enumerate();
        let snapshot = Snapshot {
            stage,
            finished: finished
                .map(|(i, &rounds)| Ok((take(&format!("finished.{i}"))?, rounds)))
                .collect::<Result<Vec<Finished>>>()?,
            bytes: bytes.into(),
            parameters: take("parameters")?,
            best: if has_best { Some(take("best")?) } else { None },
            slots: (0..slots).map(|i| take(&format!("slot.{i}"))).collect::<Result<_>>()?,
            counters,
        };
        Ok(Checkpoint { identity, run, starts, messages, snapshot })
    }

    /// Writes the file into a run's folder, all or nothing.
    ///
    /// # Errors
    /// If training has left the numbers, or the operating system refuses.
    pub fn write(&self, folder: &Path) -> Result<()> {
        self.refuse_infinite()?;
        write_aside(&folder.join(FILE), &self.to_bytes()?)
    }

    /// Nothing comes of a state that holds no numbers: running statistics overflow where no loss has to.
    fn refuse_infinite(&self) -> Result<()> {
        let Snapshot { parameters, best, slots, finished, .. } = &self.snapshot;
        let odd = |values: &[f32]| values.iter().copied().find(|value| !value.is_finite());
        let of_parameters = [parameters].into_iter().chain(best).chain(finished.iter().map(|(values, _)| values));
        let found = of_parameters.map(|values| ("a parameter", values));
        let found = found.chain(slots.iter().map(|slot| ("what the optimiser remembers", slot)));
        match found.filter_map(|(what, values)| Some((what, odd(values)?))).next() {
            Some((what, odd)) => {
                let what = format!("{what} is {odd}, and no checkpoint is written of it");
                Err(TrainError::Diverged { round: self.snapshot.rounds(), what })
            }
            None => Ok(()),
        }
    }

    /// The bytes of the file in a run's folder.
    ///
    /// # Errors
    /// If there is none, or a larger one than any run writes.
    pub fn read_bytes(folder: &Path) -> Result<Vec<u8>> {
        let path = folder.join(FILE);
        if !path.exists() && folder.join("config.toml").exists() {
            let config = folder.join("config.toml");
            let begin = format!("laconic train {} --out {}", config.display(), folder.display());
            let what = "the run ended before it had written a checkpoint, so it can only begin anew";
            return Err(TrainError::file(path, format!("{what}: {begin}")));
        }
        read_within(&path, BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::observe::RoundReport;
    use crate::fit::progress::{Averaged, Clocks};
    use crate::worker::evaluate::Scores;
    use crate::worker::parts::PartCounts;
    use proptest::prelude::*;

    fn checkpoint() -> Checkpoint {
        let snapshot = Snapshot {
            stage: 1,
            finished: vec![(vec![1.0, 2.0], 7)],
            bytes: [Count { frames: 1, payload: 2, framed: 26 }; laconic_wire::Kind::ALL.len()].into(),
            counters: Counters {
                done: 3,
                steps: 3,
                since_best: 1,
                stopped: false,
                unjudged: Some(RoundReport {
                    round: 10,
                    stage: 1,
                    loss: 0.7,
                    lr: 0.01,
                    scores: None,
                    bytes: None,
                    seconds: 0.1,
                    members: vec![0, 2],
                    clock: None,
                    judged: None,
                }),
                best: Some((9, Scores::default())),
                parts: vec![PartCounts::default(), PartCounts::default()],
                averaged: Some(Averaged {
                    elapsed: 12.5,
                    steps: vec![3, 4],
                    before: vec![5, 6],
                    unwritten: Vec::new(),
                }),
                clocks: Clocks { elapsed: 1.5, first_gradient: 0.3, least_gradient: 0.1 },
            },
            parameters: vec![0.5; 4],
            best: Some(vec![0.25; 4]),
            slots: vec![vec![0.1; 4], vec![0.2; 4]],
        };
        let identity = serde_json::from_str(r#"[["train.lr", "0.1"], ["the data's nodes", "3"]]"#).expect("pairs");
        let starts = vec![Started { workers: 3, after_round: 0 }, Started { workers: 2, after_round: 7 }];
        let messages = Some(MessagesConfig { budget: "2 MB".to_owned(), ..MessagesConfig::default() });
        Checkpoint { identity, run: "f".to_owned(), starts, messages, snapshot }
    }

    #[test]
    fn a_checkpoint_reads_back_as_itself() {
        let bytes = checkpoint().to_bytes().expect("writable");
        assert_eq!(Checkpoint::from_bytes(&bytes).expect("its own bytes"), checkpoint());
        assert_eq!(checkpoint().snapshot.rounds(), 10);
    }

    #[test]
    fn a_checkpoint_of_what_is_no_number_is_not_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let places: [fn(&mut Snapshot) -> &mut f32; 4] = [
            |of| &mut of.parameters[3],
            |of| &mut of.best.as_mut().expect("a best")[0],
            |of| &mut of.slots[1][2],
            |of| &mut of.finished[0].0[1],
        ];
        for place in places {
            for odd in [f32::INFINITY, f32::NAN] {
                let mut checkpoint = checkpoint();
                *place(&mut checkpoint.snapshot) = odd;
                let error = checkpoint.write(folder.path()).expect_err("no number");
                assert!(error.exit_code() == 6 && error.to_string().contains(&odd.to_string()), "{error}");
                assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none());
            }
        }
        checkpoint().write(folder.path()).expect("numbers");
    }

    #[test]
    fn a_checkpoint_of_which_one_bit_is_another_is_refused() {
        let sound = checkpoint().to_bytes().expect("writable");
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut bytes = sound.clone();
                bytes[at] ^= 1 << bit;
                assert!(Checkpoint::from_bytes(&bytes).is_err(), "bit {bit} of byte {at}");
            }
        }
    }

    #[test]
    fn a_checkpoint_without_a_checksum_is_refused_and_the_error_says_so() {
        let mut file = Tensors::from_bytes(&checkpoint().to_bytes().expect("writable"), FORMAT).expect("a checkpoint");
        file.metadata = None;
        let error = Checkpoint::from_bytes(&file.to_bytes().expect("writable")).expect_err("nothing about it");
        assert!(error.to_string().contains("earlier build"), "{error}");
        let view = safetensors::tensor::TensorView::new(safetensors::Dtype::U8, vec![0], &[]).expect("a tensor");
        let about = std::collections::HashMap::from([(FORMAT.to_owned(), "{\"stage\":0}".to_owned())]);
        let bytes = safetensors::serialize([("parameters", view)], Some(about)).expect("writable");
        let error = Checkpoint::from_bytes(&bytes).expect_err("no checksum");
        assert!(error.to_string().contains("expected a checksum"), "{error}");
    }

    proptest! {
        /// Whoever changes a file can also write the right checksum.
        #[test]
        fn damaged_checkpoints_with_the_right_checksum_are_errors_or_checkpoints_and_never_panics(
            at in 0usize..2000, value: u8, cut in 0usize..2000
        ) {
            let mut bytes = checkpoint().to_bytes().expect("writable");
            let at = at % bytes.len();
            bytes[at] = value;
            super::super::tensors::seal(&mut bytes);
            let _ = Checkpoint::from_bytes(&bytes);
            bytes.truncate(cut.min(bytes.len()));
            let _ = Checkpoint::from_bytes(&bytes);
        }
    }
}
