//! What stands between one unit of a network and the next: norm, ReLU, dropout; or nothing.

use laconic_key::Purpose;
use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::copy_scaled;
use laconic_nn::kernels::normalise::{Activated, Activation, Affine, activate, activate_adjoint};
use laconic_nn::network::{After, Network};
use laconic_nn::{Compute, Matrix, Rows};

use super::walk::PassContext;

/// What follows unit `index`, in a pass.
#[derive(Clone, Copy)]
pub(super) struct Between<'a> {
    pub network: &'a Network,
    /// All parameters, one flat slice.
    pub p: &'a [f32],
    pub context: PassContext,
    pub index: usize,
}

impl Between<'_> {
    fn affine(&self) -> Option<Affine<'_>> {
        let ranges = self.network.ranges(self.index);
        let norm = matches!(self.network.units()[self.index].after, After::NormRelu(_));
        norm.then(|| Affine { weight: &self.p[ranges.norm_weight.clone()], bias: &self.p[ranges.norm_bias.clone()] })
    }

    /// `None` where nothing follows.
    fn activation(&self) -> Option<Activation<'_>> {
        let units = self.network.units();
        let next = units.get(self.index + 1)?;
        let dropout = self.context.dropout(Purpose::Dropout, self.index + 1, next.dropout);
        (units[self.index].after != After::Nothing).then(|| Activation { norm: self.affine(), dropout })
    }

    /// Sets `into`, what the next unit reads, from the unit's outputs `z`.
    pub fn forward(&self, compute: &Compute, ids: &[u64], [z, statistics]: [&mut Matrix; 2], into: &mut Matrix) {
        match self.activation() {
            Some(between) => activate(compute, into, z, between, ids, statistics),
            None => {
                into.reshape(z.rows(), z.columns());
                copy_scaled(compute, into, Store::Set, Rows::Dense(z), 1.0, None);
            }
        }
    }

    /// The adjoint: turns the gradient of what the next unit read into that of the unit's outputs; `g` are the
    /// gradients of the whole network.
    pub fn backward(&self, compute: &mut Compute, gradient: &mut Matrix, done: Activated<'_>, g: &mut [f32]) {
        let Some(between) = self.activation() else { return };
        let ranges = self.network.ranges(self.index);
        let (weight, bias) = (ranges.norm_weight.clone(), ranges.norm_bias.clone());
        let gradients = g[weight.start..bias.end].split_at_mut(weight.len());
        activate_adjoint(compute, gradient, between, done, gradients);
    }
}
