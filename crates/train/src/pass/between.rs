//! What stands between one unit of a network and the next: norm, activation, dropout; or nothing.

use laconic_key::Purpose;
use laconic_nn::after::{After, NormKind};
use laconic_nn::kernels::Store;
use laconic_nn::kernels::batch_norm::{Columns, Moments, gradient_sums, normalise_adjoint};
use laconic_nn::kernels::elementwise::{copy_scaled, scale_and_shift};
use laconic_nn::kernels::normalise::{
    Activated, Activation, Affine, EPSILON, Gradients, Norm, Statistics, activate, activate_adjoint, activate_in_place,
};
use laconic_nn::network::{Network, Unit};
use laconic_nn::{Compute, Matrix, Rows};
use laconic_wire::Direction;

use super::context::PassContext;
use crate::error::Result;
use crate::exchange::moments;
use crate::exchange::peers::Peers;

/// What follows unit `index`, in a pass.
#[derive(Clone, Copy)]
pub(super) struct Between<'a> {
    pub network: &'a Network,
    /// All parameters, one flat slice.
    pub p: &'a [f32],
    pub context: PassContext,
    pub index: usize,
    /// What each row that it outputs is multiplied by, where the next unit's messages are these rows.
    pub weight: Option<&'a [f32]>,
}

impl<'a> Between<'a> {
    /// The unit that this follows, where another one follows this.
    fn unit(&self) -> Option<&'a Unit> {
        self.network.units().get(..=self.index + 1)?.get(self.index)
    }

    fn affine(&self) -> Affine<'a> {
        let ranges = self.network.ranges(self.index);
        Affine { weight: &self.p[ranges.norm_weight.clone()], bias: &self.p[ranges.norm_bias.clone()] }
    }

    /// `None` where nothing follows.
    fn activation(&self) -> Option<Activation<'a>> {
        let unit = self.unit().filter(|unit| unit.after != After::Nothing)?;
        let next = &self.network.units()[self.index + 1];
        let dropout = self.context.dropout(Purpose::Dropout, self.index + 1, next.dropout);
        let norm = unit.after.norm().map(|norm| match norm.kind {
            NormKind::Layer => Norm::Rows(self.affine()),
            NormKind::Batch => Norm::Columns(self.affine()),
        });
        let slope = self.p[self.network.ranges(self.index).slope.clone()].first().copied();
        Some(Activation { norm, slope, dropout, weight: self.weight })
    }

    fn normalises_columns(&self) -> bool {
        self.unit().is_some_and(|unit| unit.after.normalises_columns())
    }

    /// Takes the statistics of the columns of all workers' rows, where training normalises by them.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn measure(&self, peers: &mut Peers<'_>, z: &Matrix, statistics: &mut Statistics) -> Result<()> {
        if self.context.training && self.normalises_columns() {
            let own = Moments::of(peers.compute, z);
            let tag = self.tag(Direction::Forward);
            let all = if peers.is_alone { vec![own] } else { moments::share(peers.transport, tag, own)? };
            statistics.columns = Columns::of(&all, EPSILON);
        }
        Ok(())
    }

    fn tag(&self, direction: Direction) -> laconic_wire::Tag {
        moments::tag(self.context.first_layer + self.index as u16, direction, self.context.round)
    }

    /// Sets `into`, what the next unit reads, from the unit's outputs `z`.
    pub fn forward(&self, compute: &Compute, ids: &[u64], z: &Matrix, statistics: &mut Statistics, into: &mut Matrix) {
        if !self.context.training && self.normalises_columns() {
            let running = &self.network.ranges(self.index).running;
            statistics.columns.set_running(running.each_ref().map(|range| &self.p[range.clone()]), EPSILON);
        }
        match self.activation() {
            Some(between) => activate(compute, into, z, between, ids, statistics),
            None => {
                into.reshape(z.rows(), z.columns());
                copy_scaled(compute, into, Store::Set, Rows::Dense(z), 1.0, self.weight);
            }
        }
    }

    /// The same in the place of the unit's outputs, where [`super::walk::activates_in_place`].
    pub fn forward_in_place(&self, compute: &Compute, ids: &[u64], rows: &mut Matrix) {
        if let Some(between) = self.activation() {
            activate_in_place(compute, rows, between, ids);
        }
    }

    /// The adjoint: turns the gradient of what the next unit read into that of the unit's outputs, or where columns are
    /// normalised into what [`Between::return_columns`] takes; `g` are the gradients of the whole network.
    pub fn backward(
        &self,
        compute: &mut Compute,
        ids: &[u64],
        gradient: &mut Matrix,
        done: Activated<'_>,
        g: &mut [f32],
    ) {
        let Some(between) = self.activation() else {
            return if self.weight.is_some() {
                scale_and_shift(compute, gradient, self.weight, None)
            };
        };
        let ranges = self.network.ranges(self.index);
        let norm = &mut g[ranges.norm_weight.start..ranges.norm_bias.end];
        let (weight, bias) = norm.split_at_mut(ranges.norm_weight.len());
        let mut slope = [0.0];
        activate_adjoint(compute, gradient, between, done, ids, Gradients { weight, bias, slope: &mut slope });
        g[ranges.slope.clone()].iter_mut().for_each(|sum| *sum += slope[0]);
    }

    /// Where columns are normalised, ends [`Between::backward`]: the statistics depend on all workers' rows. Running
    /// statistics have no gradient, and in its place in `g` get what this round's were.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn return_columns(
        &self,
        peers: &mut Peers<'_>,
        gradient: &mut Matrix,
        Activated { z, statistics: Statistics { columns, .. }, .. }: Activated<'_>,
        g: &mut [f32],
    ) -> Result<()> {
        if !self.normalises_columns() {
            return Ok(());
        }
        let ranges = self.network.ranges(self.index);
        let mut sums = gradient_sums(peers.compute, gradient, z, columns);
        let (bias, weight) = sums.split_at(z.columns());
        for (range, sums) in [(&ranges.norm_bias, bias), (&ranges.norm_weight, weight)] {
            g[range.clone()].iter_mut().zip(sums).for_each(|(gradient, sum)| *gradient += sum);
        }
        for (range, seen) in ranges.running.iter().zip([&columns.means, &columns.variances]) {
            g[range.clone()].copy_from_slice(seen);
        }
        if !peers.is_alone {
            moments::sum(peers.transport, self.tag(Direction::Reverse), &mut sums)?;
        }
        normalise_adjoint(peers.compute, gradient, z, columns, self.affine().weight, &sums);
        Ok(())
    }
}
