//! Rows that are used a round after they were sent (PipeGCN, Wan et al., 2022): what makes a whole round of work hide
//! the wire.
//!
//! In round t a layer folds the halo rows that were sent in round t − 1 (nothing in round 1), and the gradients of halo
//! rows that came back in round t − 1 are added. With smoothing, a moving average `m · average + (1 − m) · arrived`
//! stands in for what arrived, separately for features and gradients; it starts from zero, without correction, as in
//! the paper.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use laconic_graph::order::Order;
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
    /// What puts own rows into the order of ids, in which they are saved, whichever a resumed run has them in; `None`
    /// where they stand so.
    by_id: Option<Order>,
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
    /// Nothing under way among own rows that this order puts by id.
    pub fn new(Lateness { smoothing, carries, .. }: Lateness, by_id: Option<Order>) -> Late {
        Late { smoothing, carries, streams: BTreeMap::new(), by_id }
    }

    /// Notes an exchange that was started.
    pub fn started(&mut self, tag: Tag, pending: Pending) {
        self.streams.entry((tag.layer, tag.direction)).or_default().pending = Some(pending);
    }

    /// Waits for what is under way, so that a checkpoint or the end of a stage leaves no frame behind.
    ///
    /// # Errors
    /// If a peer does not answer.
    pub fn settle(&mut self, compute: &Compute, halo: &mut Halo, transport: &mut dyn Transport) -> Result<()> {
        for stream in self.streams.values_mut() {
            if let Some(pending) = stream.pending.take() {
                stream.arrived = Some(arrive((compute, halo), transport, pending, std::mem::take(&mut stream.spare))?);
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
            (None, Some(pending)) => {
                Some(arrive((compute, halo), transport, pending, std::mem::take(&mut stream.spare))?)
            }
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
                let mut values = Cow::Borrowed(matrix.data());
                if let Some(order) = self.by_id.as_ref().filter(|_| place.1 == Direction::Reverse) {
                    order.move_rows(values.to_mut(), matrix.columns());
                }
                saved.put_shaped(Name::of(what, *place, None), vec![matrix.rows(), matrix.columns()], &values);
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
        let places = self.by_id.as_ref().map(Order::inverse);
        for what in [ARRIVED, AVERAGE] {
            for (stream, shape, mut values) in saved.take_streams(what)? {
                let place = (stream.layer, stream.direction);
                let [rows, columns] = shape[..] else {
                    return Err(odd(&Name::of(what, place, stream.end), "something that is no matrix"));
                };
                if let Some(places) = places.as_ref().filter(|_| stream.direction == Direction::Reverse) {
                    if rows != places.rows().len() {
                        return Err(odd(&Name::of(what, place, stream.end), "rows of another part"));
                    }
                    places.move_rows(&mut values, columns);
                }
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
    (compute, halo): (&Compute, &mut Halo),
    transport: &mut dyn Transport,
    pending: Pending,
    mut arrived: Matrix,
) -> Result<(Matrix, Presence)> {
    let presence = pending.presence(halo);
    let (rows, columns) = pending.shape(halo);
    arrived.reshape(rows, columns);
    arrived.data_mut().fill(0.0);
    pending.finish(halo, compute, transport, &mut arrived)?;
    Ok((arrived, presence))
}

impl Stream {
    fn blend(&mut self, compute: &Compute, m: f32, arrived: &Matrix) -> &Matrix {
        let average = self.average.get_or_insert_with(|| Matrix::zeros(arrived.rows(), arrived.columns()));
        blend(compute, average.data_mut(), arrived.data(), m);
        average
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing under way among rows of these ids.
    fn late(ids: &[u64]) -> Late {
        let lateness = Lateness { smoothing: [0.5; 2], carries: Carried::Rows, refresh: None };
        let mut rows: Vec<u32> = (0..ids.len() as u32).collect();
        rows.sort_by_key(|&row| ids[row as usize]);
        Late::new(lateness, (!ids.is_sorted()).then(|| Order::new(rows)))
    }

    /// Two columns of what stands for each id.
    fn rows(ids: &[u64]) -> Matrix {
        Matrix::from_vec(ids.len(), 2, ids.iter().flat_map(|&id| [id as f32, -(id as f32)]).collect())
    }

    #[test]
    fn what_has_come_for_own_rows_goes_with_their_nodes_into_another_order() {
        let ids = [[30, 10, 20], [20, 30, 10], [10, 20, 30]];
        for from in ids {
            let mut before = late(&from);
            for direction in [Direction::Forward, Direction::Reverse] {
                let stream = before.streams.entry((1, direction)).or_default();
                (stream.arrived, stream.average) = (Some((rows(&from), None)), Some(rows(&from)));
            }
            for to in ids {
                let (mut saved, mut after) = (Saved::default(), late(&to));
                before.save(&mut saved);
                after.restore(&mut saved).expect("the same part");
                for (direction, expected) in [(Direction::Forward, from), (Direction::Reverse, to)] {
                    let Stream { arrived, average, .. } = &after.streams[&(1, direction)];
                    let arrived = arrived.as_ref().map(|(arrived, _)| arrived.data());
                    assert_eq!(arrived, Some(rows(&expected).data()), "{from:?} to {to:?}");
                    assert_eq!(average.as_ref().map(Matrix::data), Some(rows(&expected).data()));
                }
            }
        }
        let mut saved = Saved::default();
        let mut before = late(&ids[0]);
        before.streams.entry((1, Direction::Reverse)).or_default().average = Some(rows(&ids[0][1..]));
        before.by_id = None;
        before.save(&mut saved);
        assert!(late(&ids[0]).restore(&mut saved).is_err(), "rows of another part");
    }
}
