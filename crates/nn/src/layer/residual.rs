//! A residual connection around a layer: what comes in is added to what comes out, as it is where widths agree, else
//! times a matrix (He et al., 2016): `z = layer(x) + x` or `z = layer(x) + x Rᵀ`.
//!
//! It stands before norm and activation, as in PyTorch Geometric's and DGL's `GATConv(residual=True)`.

use super::{Absence, At, Closing, EdgeWeights, Layer, Nodes, Product, Senders, Sources, Wanted};
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
}

impl Residual {
    pub fn around(layer: Box<dyn Layer>) -> Residual {
        let own = layer.parameters().iter().map(ParameterSpec::len).sum();
        Residual { layer, own }
    }

    fn is_mapped(&self) -> bool {
        self.layer.inputs() != self.layer.outputs()
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
    fn inputs(&self) -> usize {
        self.layer.inputs()
    }

    fn outputs(&self) -> usize {
        self.layer.outputs()
    }

    fn message_width(&self) -> usize {
        self.layer.message_width()
    }

    fn fold_width(&self) -> usize {
        self.layer.fold_width()
    }

    fn parameters(&self) -> Vec<ParameterSpec> {
        let mut specs = self.layer.parameters();
        if self.is_mapped() {
            let shape = [self.outputs(), self.inputs()];
            specs.push(ParameterSpec::new(&format!("{RESIDUAL}weight"), &shape, Initial::fan_in(self.inputs())));
        }
        specs
    }

    fn products(&self) -> Vec<Product> {
        let past = self.is_mapped().then(|| Product::of_inputs(self.inputs() * self.outputs()));
        self.layer.products().into_iter().chain(past).collect()
    }

    fn shift(&self) -> Option<&'static str> {
        self.layer.shift()
    }

    fn message_has_parameters(&self) -> bool {
        self.layer.message_has_parameters()
    }

    fn message_is_row(&self) -> bool {
        self.layer.message_is_row()
    }

    fn sender_weight<'a>(&self, nodes: &Nodes<'a>) -> Option<&'a [f32]> {
        self.layer.sender_weight(nodes)
    }

    fn edge_weights(&self) -> EdgeWeights {
        self.layer.edge_weights()
    }

    fn absence(&self) -> Absence {
        self.layer.absence()
    }

    fn destination_weight<'a>(&self, nodes: &Nodes<'a>) -> Option<&'a [f32]> {
        self.layer.destination_weight(nodes)
    }

    fn state_columns(&self) -> usize {
        self.layer.state_columns() + if self.layer.reads_own_row() { self.outputs() } else { 0 }
    }

    fn state_values(&self, rows: usize, edges: usize) -> usize {
        self.layer.state_values(rows, edges)
    }

    fn scores(&self) -> usize {
        self.layer.scores()
    }

    fn reads_positions(&self) -> bool {
        self.layer.reads_positions()
    }

    fn takes_bf16(&self) -> bool {
        self.layer.takes_bf16()
    }

    fn reads_own_row(&self) -> bool {
        true
    }

    fn pyg_constructor(&self, self_loops: bool) -> String {
        self.layer.pyg_constructor(self_loops)
    }

    fn message(&self, at: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        self.layer.message(&mut self.inside(at), x, out);
    }

    fn fold(&self, at: &mut At<'_>, sources: Sources<'_>, folded: &mut Matrix) {
        self.layer.fold(&mut self.inside(at), sources, folded);
    }

    fn finish_fold(&self, at: &mut At<'_>, folded: &mut Matrix) {
        self.layer.finish_fold(&mut self.inside(at), folded);
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
        if !self.layer.reads_own_row() {
            dx.reshape(dz.rows(), self.inputs());
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
