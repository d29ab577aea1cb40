//! Rows that are used a round after they were sent (PipeGCN, Wan et al., 2022): what makes a whole round of work hide
//! the wire.
//!
//! In round t a layer folds the halo rows that were sent in round t − 1 (nothing in round 1), and the gradients of halo
//! rows that came back in round t − 1 are added. With smoothing, a moving average `m · average + (1 − m) · arrived`
//! stands in for what arrived, separately for features and gradients; it starts from zero, without correction, as in
//! the paper.

use std::collections::BTreeMap;
use std::sync::Arc;

use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::{blend, copy_scaled};
use laconic_nn::{Compute, Matrix, Rows};
use laconic_wire::{Direction, Tag, Transport};

use super::drawn::Presence;
use super::halo::{Halo, Pending};
use crate::config::Carried;
use crate::error::Result;
use crate::saved::{Name, Remembers, Saved, odd};
use crate::schedule::Lateness;

/// What is under way and what has arrived, by layer and direction.
pub struct Late {
    smoothing: [f32; 2],
    /// What crosses: rows, or their products with weights.
    pub carries: Carried,
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
    /// Nothing under way.
    pub fn new(Lateness { smoothing, carries, .. }: Lateness) -> Late {
        Late { smoothing, carries, streams: BTreeMap::new() }
    }

    /// Notes an exchange that was started.
    pub fn started(&mut self, tag: Tag, pending: Pending) {
        self.streams.entry((tag.layer, tag.direction)).or_default().pending = Some(pending);
    }

    /// Waits for what is under way, so that a checkpoint or the end of a stage leaves no frame behind.
    ///
    /// # Errors
    /// If a peer does not answer.
    pub fn settle(&mut self, halo: &mut Halo, transport: &mut dyn Transport) -> Result<()> {
        for stream in self.streams.values_mut() {
            if let Some(pending) = stream.pending.take() {
                stream.arrived = Some(arrive(halo, transport, pending, std::mem::take(&mut stream.spare))?);
            }
        }
        Ok(())
    }

    /// What a layer uses in the round of `tag`: the rows of the round before, forward set, in reverse added to `into`.
    ///
    /// # Errors
    /// If a peer does not answer, or rows of a resumed run have another shape.
    pub fn take(
        &mut self,
        compute: &Compute,
        halo: &mut Halo,
        transport: &mut dyn Transport,
        tag: Tag,
        into: &mut Matrix,
    ) -> Result<Presence> {
        let smoothing = self.smoothing[tag.direction as usize];
        let stream = self.streams.entry((tag.layer, tag.direction)).or_default();
        let came = match (stream.arrived.take(), stream.pending.take()) {
            (Some(arrived), _) => Some(arrived),
            (None, Some(pending)) => Some(arrive(halo, transport, pending, std::mem::take(&mut stream.spare))?),
            (None, None) => None,
        };
        let Some((rows, presence)) = came else {
            if tag.direction == Direction::Forward {
                into.clear();
            }
            return Ok(Some(halo.nobody()));
        };
        // What another run's file says is not to be trusted with shapes.
        let counts = presence.as_ref().is_none_or(|presence| presence.len() == halo.rows());
        let shape = |matrix: &Matrix| (matrix.rows(), matrix.columns());
        let average = stream.average.as_ref().is_none_or(|average| shape(average) == shape(&rows));
        // Gradients come for all own rows, and are wanted for the first of them where no others are read.
        let fits = match tag.direction {
            Direction::Forward => rows.rows() == into.rows(),
            Direction::Reverse => rows.rows() >= into.rows(),
        };
        if !fits || rows.columns() != into.columns() || !counts || !average {
            return Err(odd(&Name::of(ARRIVED, (tag.layer, tag.direction), None), "rows of another shape"));
        }
        let used = if smoothing > 0.0 { stream.blend(compute, smoothing, &rows) } else { &rows };
        match tag.direction {
            Direction::Forward => copy_scaled(compute, into, Store::Set, Rows::Dense(used), 1.0, None),
            Direction::Reverse => {
                let wanted = Rows::Span(used.span(0..into.rows()));
                copy_scaled(compute, into, Store::Add, wanted, 1.0, None);
            }
        }
        stream.spare = rows;
        Ok(presence)
    }
}

const ARRIVED: &str = "late.arrived";
const AVERAGE: &str = "late.average";
const PRESENCE: &str = "late.presence";

/// [`Late::settle`] must come before it is saved.
impl Remembers for Late {
    fn save(&self, saved: &mut Saved) {
        for (place, stream) in &self.streams {
            let mut put = |what: &str, matrix: &Matrix| {
                let shape = vec![matrix.rows(), matrix.columns()];
                saved.put_shaped(Name::of(what, *place, None), shape, matrix.data());
            };
            if let Some((rows, _)) = &stream.arrived {
                put(ARRIVED, rows);
            }
            if let Some(average) = &stream.average {
                put(AVERAGE, average);
            }
            if let Some((_, Some(presence))) = &stream.arrived {
                saved.put(Name::of(PRESENCE, *place, None), presence);
            }
        }
    }

    fn restore(&mut self, saved: &mut Saved) -> Result<()> {
        for what in [ARRIVED, AVERAGE] {
            for (stream, shape, values) in saved.take_streams(what)? {
                let place = (stream.layer, stream.direction);
                let [rows, columns] = shape[..] else {
                    return Err(odd(&Name::of(what, place, stream.end), "something that is no matrix"));
                };
                let matrix = Matrix::from_vec(rows, columns, values);
                let presence = saved.take(&Name::of(PRESENCE, place, None))?.map(Arc::new);
                let stream = self.streams.entry(place).or_default();
                match what {
                    ARRIVED => stream.arrived = Some((matrix, presence)),
                    _ => stream.average = Some(matrix),
                }
            }
        }
        Ok(())
    }
}

/// The rows of a pending exchange in a matrix of their own, whose memory is given.
fn arrive(
    halo: &mut Halo,
    transport: &mut dyn Transport,
    pending: Pending,
    mut arrived: Matrix,
) -> Result<(Matrix, Presence)> {
    let presence = pending.presence(halo);
    let (rows, columns) = pending.shape(halo);
    arrived.reshape(rows, columns);
    arrived.data_mut().fill(0.0);
    pending.finish(halo, transport, &mut arrived)?;
    Ok((arrived, presence))
}

impl Stream {
    fn blend(&mut self, compute: &Compute, m: f32, arrived: &Matrix) -> &Matrix {
        let average = self.average.get_or_insert_with(|| Matrix::zeros(arrived.rows(), arrived.columns()));
        blend(compute, average.data_mut(), arrived.data(), m);
        average
    }
}
