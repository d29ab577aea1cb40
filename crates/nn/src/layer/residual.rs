//! A residual connection around a layer: what comes in is added to what comes out, as it is where widths agree, else
//! times a matrix (He et al., 2016): `z = layer(x) + x` or `z = layer(x) + x Rᵀ`.
//!
//! It stands before norm and activation, as in PyTorch Geometric's and DGL's `GATConv(residual=True)`.

use super::{At, Closing, Ending, Facts, Layer, Product, Senders, Sources, Wanted};
use crate::kernels::Store;
use crate::kernels::elementwise::copy_scaled;
use crate::kernels::product::{add_weight_gradient, times_weight, times_weight_transposed};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec};

/// What the name of the connection's matrix begins with, among a layer's own.
pub const RESIDUAL: &str = "residual.";

/// The layer with the connection; see the module's documentation.
pub(super) struct Residual {
    layer: Box<dyn Layer>,
    /// How many values the layer's own parameters have.
    own: usize,
    facts: Facts,
}

impl Residual {
    pub fn around(layer: Box<dyn Layer>) -> Residual {
        let of = layer.facts();
        let own = of.parameters.iter().map(ParameterSpec::len).sum();
        let mut facts = Facts { reads_own_row: true, outputs_are_folds: false, ..of.clone() };
        if of.reads_own_row {
            // The gradient, which the layer uses up.
            facts.state_columns += of.outputs;
        }
        if of.inputs != of.outputs {
            let (shape, initial) = ([of.outputs, of.inputs], Initial::fan_in(of.inputs));
            facts.parameters.push(ParameterSpec::new(&format!("{RESIDUAL}weight"), &shape, initial));
            facts.products.push(Product::of_inputs(of.inputs * of.outputs));
        }
        Residual { own, facts, layer }
    }

    fn is_mapped(&self) -> bool {
        self.facts.inputs != self.facts.outputs
    }

    /// What the layer itself is given. Where messages have no parameters, there may be none.
    fn inside<'b>(&self, at: &'b mut At<'_>) -> At<'b> {
        At { compute: &mut *at.compute, p: &at.p[..self.own.min(at.p.len())], nodes: at.nodes, state: &mut *at.state }
    }

    /// Sets `dx` to the gradient that goes past the layer, or adds it.
    fn past(&self, at: &mut At<'_>, dz: &Matrix, dx: &mut Matrix, store: Store) {
        if self.is_mapped() {
            times_weight(at.compute, dx, store, dz, &at.p[self.own..]);
        } else {
            copy_scaled(at.compute, dx, store, Rows::Dense(dz), 1.0, None);
        }
    }
}

impl Layer for Residual {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn message(&self, at: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        self.layer.message(&mut self.inside(at), x, out);
    }

    fn fold(&self, at: &mut At<'_>, sources: Sources<'_>, folded: &mut Matrix) {
        self.layer.fold(&mut self.inside(at), sources, folded);
    }

    fn finish_fold(&self, at: &mut At<'_>, folded: &mut Matrix, ending: Ending) {
        self.layer.finish_fold(&mut self.inside(at), folded, ending);
    }

    fn close(&self, at: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        self.layer.close(&mut self.inside(at), input, out);
        if self.is_mapped() {
            times_weight_transposed(at.compute, out, Store::Add, input.x, &at.p[self.own..]);
        } else {
            copy_scaled(at.compute, out, Store::Add, input.x, 1.0, None);
        }
    }

    fn add_close_gradients(&self, at: &mut At<'_>, g: &mut [f32], input: Closing<'_>, dz: &Matrix) {
        let (g, map_gradient) = g.split_at_mut(self.own);
        if self.is_mapped() {
            add_weight_gradient(at.compute, map_gradient, dz, input.x);
        }
        self.layer.add_close_gradients(&mut self.inside(at), g, input, dz);
    }

    fn close_adjoint(&self, at: &mut At<'_>, dz: &mut Matrix, Wanted { dfolded, dx }: Wanted<'_>) {
        let Some(dx) = dx else {
            return self.layer.close_adjoint(&mut self.inside(at), dz, Wanted { dfolded, dx: None });
        };
        if !self.layer.facts().reads_own_row {
            dx.reshape(dz.rows(), self.facts.inputs);
            self.past(at, dz, dx, Store::Set);
            return self.layer.close_adjoint(&mut self.inside(at), dz, Wanted { dfolded, dx: None });
        }
        // The layer sets `dx` and uses `dz` up.
        let mut kept = std::mem::take(at.state.around.get::<Matrix>());
        kept.store_as(dz.precision());
        kept.reshape(dz.rows(), dz.columns());
        copy_scaled(at.compute, &mut kept, Store::Set, Rows::Dense(dz), 1.0, None);
        self.layer.close_adjoint(&mut self.inside(at), dz, Wanted { dfolded, dx: Some(&mut *dx) });
        self.past(at, &kept, dx, Store::Add);
        *at.state.around.get() = kept;
    }

    fn fold_adjoint(
        &self,
        at: &mut At<'_>,
        g: &mut [f32],
        sources: Sources<'_>,
        dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        self.layer.fold_adjoint(&mut self.inside(at), &mut g[..self.own], sources, dfolded, dmessages);
    }

    fn message_adjoint(
        &self,
        at: &mut At<'_>,
        g: &mut [f32],
        senders: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    ) {
        self.layer.message_adjoint(&mut self.inside(at), &mut g[..self.own], senders, dmessages, dx);
    }
}
