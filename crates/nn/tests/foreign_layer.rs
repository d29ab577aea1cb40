//! A layer that is written outside the crate: with an option and memory of its own, and held to the same laws.

use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::copy_scaled;
use laconic_nn::kernels::fold::{sum_fold, sum_fold_adjoint};
use laconic_nn::layer::{LayerKind, LayerRegistry};
use laconic_nn::parameters::{Initial, ParameterSpec};
use laconic_nn::{At, Closing, Facts, Layer, LayerSpec, Matrix, Rows, Senders, Side, Sources, Wanted, laws};

/// `z = w · Σ neighbours`, with one parameter, times an option.
struct Scaled {
    width: usize,
    option: f32,
    /// Whether the gradient forgets the option.
    wrong: bool,
    facts: Facts,
}

/// The factor that the forward pass used.
#[derive(Default)]
struct Used(f32);

const SCALED: LayerKind = LayerKind {
    name: "scaled",
    prefix: "convs",
    self_loops: false,
    has_heads: false,
    is_relational: false,
    options: &["option"],
    build: |spec| build(spec, false),
};

/// The kind that keeps the laws; other tests train with it.
pub static RIGHT: LayerKind = SCALED;
static WRONG: LayerKind = LayerKind { build: |spec| build(spec, true), ..SCALED };

fn build(spec: &LayerSpec, wrong: bool) -> Box<dyn Layer> {
    let option = spec.options.get("option").copied().unwrap_or(3.0) as f32;
    let (width, parameters) = (spec.inputs, vec![ParameterSpec::new("w", &[1], Initial::Ones)]);
    Box::new(Scaled { width, option, wrong, facts: Facts::new(width, width, parameters) })
}

impl Layer for Scaled {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn message(&self, at: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), self.width);
        copy_scaled(at.compute, out, Store::Set, x, 1.0, None);
    }

    fn fold(&self, at: &mut At<'_>, Sources { side, block, messages, .. }: Sources<'_>, folded: &mut Matrix) {
        folded.reshape(block.destinations(), self.width);
        let store = if side == Side::Own { Store::Set } else { Store::Add };
        sum_fold(at.compute, folded, store, block, messages);
    }

    fn close(&self, at: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        let Used(factor) = at.state.own.get();
        *factor = self.option * at.p[0];
        out.reshape(input.folded.rows(), self.width);
        copy_scaled(at.compute, out, Store::Set, input.folded, *factor, None);
    }

    fn add_close_gradients(&self, _at: &mut At<'_>, g: &mut [f32], input: Closing<'_>, dz: &Matrix) {
        let (mut folded, mut along) = (vec![0.0; self.width], 0.0);
        for row in 0..dz.rows() {
            input.folded.copy_row(row, &mut folded);
            along += dz.row(row).iter().zip(&folded).map(|(a, b)| a * b).sum::<f32>();
        }
        g[0] += if self.wrong { along } else { self.option * along };
    }

    fn close_adjoint(&self, at: &mut At<'_>, dz: &mut Matrix, wanted: Wanted<'_>) {
        if let Some(dfolded) = wanted.dfolded {
            let Used(factor) = at.state.own.get();
            dfolded.reshape(dz.rows(), self.width);
            copy_scaled(at.compute, dfolded, Store::Set, Rows::Dense(dz), *factor, None);
        }
    }

    fn fold_adjoint(&self, at: &mut At<'_>, _g: &mut [f32], sources: Sources<'_>, dfolded: &Matrix, out: &mut Matrix) {
        out.reshape(sources.block.sources(), self.width);
        sum_fold_adjoint(at.compute, out, Store::Set, sources.block, dfolded);
    }

    fn message_adjoint(
        &self,
        at: &mut At<'_>,
        _g: &mut [f32],
        _senders: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    ) {
        if let Some((dx, store)) = dx {
            dx.reshape(dmessages.rows(), self.width);
            copy_scaled(at.compute, dx, store, Rows::Dense(dmessages), 1.0, None);
        }
    }
}

#[test]
fn a_foreign_layer_is_found_by_name_and_keeps_the_laws() {
    let registry = LayerRegistry::default().with(&RIGHT);
    laws::check(registry.get("scaled").expect("it was added"));
}

#[test]
#[should_panic(expected = "scaled")]
fn the_laws_notice_a_wrong_gradient() {
    laws::check(&WRONG);
}
