//! Rows that are used a round after they were sent (PipeGCN, Wan et al., 2022): what makes a whole round of work hide the wire.
//!
//! In round t a layer folds the halo rows that were sent in round t − 1 (nothing in round 1), and the gradients of halo rows that came
//! back in round t − 1 are added. With smoothing, a moving average `m · average + (1 − m) · arrived` stands in for what arrived,
//! separately for features and gradients; it starts from zero, without correction, as in the paper.

use std::collections::BTreeMap;
use std::sync::Arc;

use laconic_nn::Matrix;
use laconic_wire::{Direction, Tag, Transport};

use crate::error::{Result, TrainError};
use crate::exchange::halo::{Halo, Pending, Presence};
use crate::record::state::{Saved, direction_of, name};

/// What is under way and what has arrived, by layer and direction.
pub struct Late {
    smoothing: [f32; 2],
    streams: BTreeMap<(u16, Direction), Stream>,
}

#[derive(Default)]
struct Stream {
    pending: Option<Pending>,
    /// What has arrived and was not used yet, with how much each row counts.
    arrived: Option<(Matrix, Presence)>,
    /// The moving average, where there is one.
    average: Option<Matrix>,
    /// Memory for what comes next.
    spare: Matrix,
}

impl Late {
    /// Nothing under way; `smoothing` is m for features and for gradients, 0 for none.
    pub fn new(smoothing: [f32; 2]) -> Late {
        Late { smoothing, streams: BTreeMap::new() }
    }

    /// Notes an exchange that was started.
    pub fn started(&mut self, tag: Tag, pending: Pending) {
        self.streams.entry((tag.layer, tag.direction)).or_default().pending = Some(pending);
    }

    /// Puts what must survive a resumed run into `saved`; call [`settle`] first.
    pub fn save(&self, saved: &mut Saved) {
        for ((layer, direction), stream) in &self.streams {
            let place = [(*layer).into(), *direction as u32];
            let mut put = |what: &str, matrix: &Matrix| {
                let shape = [matrix.rows() as u32, matrix.columns() as u32];
                saved.put(&name(what, &[place, shape].concat()), matrix.data());
            };
            if let Some((rows, _)) = &stream.arrived {
                put("late.arrived", rows);
            }
            if let Some(average) = &stream.average {
                put("late.average", average);
            }
            if let Some((_, Some(presence))) = &stream.arrived {
                saved.put(&name("late.presence", &place), presence);
            }
        }
    }

    /// Takes it back.
    pub fn restore(&mut self, saved: &Saved) {
        for what in ["late.arrived", "late.average"] {
            for (place, values) in saved.under(what) {
                let [layer, direction, rows, columns] = place[..] else { continue };
                if values.len() as u64 != u64::from(rows) * u64::from(columns) {
                    continue;
                }
                let presence = saved.get(&name("late.presence", &[layer, direction]));
                let presence = presence.map(|values| Arc::new(values.to_vec()));
                let matrix = Matrix::from_vec(rows as usize, columns as usize, values);
                let stream = self.streams.entry((layer as u16, direction_of(direction))).or_default();
                match what {
                    "late.arrived" => stream.arrived = Some((matrix, presence)),
                    _ => stream.average = Some(matrix),
                }
            }
        }
    }
}

/// Waits for what is under way, so that a checkpoint or the end of a stage leaves no frame behind.
pub fn settle(halo: &mut Halo, channel: &mut dyn Transport) -> Result<()> {
    let Some(mut late) = halo.late.take() else { return Ok(()) };
    for stream in late.streams.values_mut() {
        if let Some(pending) = stream.pending.take() {
            stream.arrived = Some(arrive(halo, channel, pending, std::mem::take(&mut stream.spare))?);
        }
    }
    halo.late = Some(late);
    Ok(())
}

/// The rows of a pending exchange in a matrix of their own, whose memory is given.
fn arrive(
    halo: &mut Halo,
    channel: &mut dyn Transport,
    pending: Pending,
    mut arrived: Matrix,
) -> Result<(Matrix, Presence)> {
    let presence = pending.presence(halo);
    let (rows, columns) = pending.shape(halo);
    arrived.reshape(rows, columns);
    arrived.data_mut().fill(0.0);
    pending.finish(halo, channel, &mut arrived)?;
    Ok((arrived, presence))
}

/// What a layer uses in the round of `tag`: the rows of the round before, forward set, in reverse added to `into`.
pub fn take(halo: &mut Halo, channel: &mut dyn Transport, tag: Tag, into: &mut Matrix) -> Result<Presence> {
    let Some(mut late) = halo.late.take() else { unreachable!("only late exchanges are taken late") };
    let smoothing = late.smoothing[tag.direction as usize];
    let stream = late.streams.entry((tag.layer, tag.direction)).or_default();
    let came = match (stream.arrived.take(), stream.pending.take()) {
        (Some(arrived), _) => Some(arrived),
        (None, Some(pending)) => Some(arrive(halo, channel, pending, std::mem::take(&mut stream.spare))?),
        (None, None) => None,
    };
    let presence = match came {
        None => {
            if tag.direction == Direction::Forward {
                into.data_mut().fill(0.0);
            }
            Some(Arc::new(vec![0.0; halo.rows()]))
        }
        Some((rows, presence)) => {
            // What another run's file says is not to be trusted with shapes.
            let counts = presence.as_ref().is_none_or(|presence| presence.len() == halo.rows());
            let average = stream.average.as_ref().is_none_or(|average| average.data().len() == rows.data().len());
            if rows.data().len() != into.data().len() || !counts || !average {
                return Err(TrainError::config(format!("the late rows of {tag} are those of another run")));
            }
            let used = if smoothing > 0.0 { stream.blend(smoothing, &rows) } else { &rows };
            match tag.direction {
                Direction::Forward => into.data_mut().copy_from_slice(used.data()),
                Direction::Reverse => into.data_mut().iter_mut().zip(used.data()).for_each(|(sum, late)| *sum += late),
            }
            stream.spare = rows;
            presence
        }
    };
    halo.late = Some(late);
    Ok(presence)
}

impl Stream {
    fn blend(&mut self, m: f32, arrived: &Matrix) -> &Matrix {
        let average = self.average.get_or_insert_with(|| Matrix::zeros(arrived.rows(), arrived.columns()));
        for (average, arrived) in average.data_mut().iter_mut().zip(arrived.data()) {
            *average = m * *average + (1.0 - m) * arrived;
        }
        average
    }
}
