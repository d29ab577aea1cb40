//! GraphSAGE (Hamilton, Ying and Leskovec, 2017, algorithm 1), as PyTorch Geometric's `SAGEConv`:
//! `z = aggregate(neighbours) W_lᵀ + b_l + x W_rᵀ`, aggregating by the mean, or by the maximum of `ReLU(x Wᵀ + b)`
//! (`aggr="max", project=True`). The aggregate of no neighbours is 0.

use super::{
    Absence, Aggregator, At, Closing, EdgeWeights, Ending, Facts, Layer, LayerKind, LayerSpec, NodeWeight, Nodes,
    Product, Senders, Side, Sources, Undivided, Wanted, Whole, store,
};
use crate::kernels::affine::{Left, add_affine_gradients, affine};
use crate::kernels::elementwise::{add_values, copy_scaled, relu, relu_adjoint, scale_and_shift, scale_rows};
use crate::kernels::fold::{begin_maximum, end_maximum, max_fold, max_fold_adjoint, sum_fold, sum_fold_adjoint};
use crate::kernels::neighbours::{Along, Ends, Sums, neighbours_adjoint};
use crate::kernels::product::{
    add_bias_gradient, add_weight_gradient, times_weight, times_weight_then, times_weight_transposed,
};
use crate::kernels::stored::read;
use crate::kernels::{Store, Through};
use crate::matrix::{Matrix, Rows};
use crate::parameters::{Initial, ParameterSpec, split, split_mut};

pub(super) const KIND: LayerKind = LayerKind {
    name: "sage",
    prefix: "convs",
    self_loops: false,
    has_heads: false,
    is_relational: false,
    options: &["aggregator"],
    build,
};

struct Sage {
    inputs: usize,
    outputs: usize,
    pool: bool,
    /// Whether messages are neighbours' rows times `W_l` (narrower where outputs < inputs) rather than the rows.
    transform_first: bool,
    facts: Facts,
}

fn build(spec: &LayerSpec) -> Box<dyn Layer> {
    let pool = spec.aggregator == Aggregator::Max;
    let transform_first = !pool && !spec.aggregate_first && spec.outputs < spec.inputs;
    let (inputs, outputs) = (spec.inputs, spec.outputs);
    let facts = facts(inputs, outputs, pool);
    let facts = if transform_first { facts.with_transformed_messages(outputs) } else { facts };
    Box::new(Sage { inputs, outputs, pool, transform_first, facts })
}

/// Of a layer whose messages are rows as they are, or with `pool` as wide.
fn facts(inputs: usize, outputs: usize, pool: bool) -> Facts {
    let bound = Initial::fan_in(inputs);
    let mut parameters = vec![
        ParameterSpec::new("lin_l.weight", &[outputs, inputs], bound),
        ParameterSpec::new("lin_l.bias", &[outputs], bound),
        ParameterSpec::new("lin_r.weight", &[outputs, inputs], bound),
    ];
    let weight = inputs * outputs;
    let facts = Facts { shift: Some("lin_l.bias"), reads_own_row: true, ..Facts::new(inputs, outputs, Vec::new()) };
    if !pool {
        return Facts {
            parameters,
            is_linear: true,
            products: vec![Product::of_inputs(weight); 2],
            destination_weight: NodeWeight::InverseDegree,
            edge_weights: EdgeWeights::Shares,
            takes_bf16: true,
            pyg: format!("SAGEConv({inputs}, {outputs})"),
            ..facts
        };
    }
    parameters.push(ParameterSpec::new("lin.weight", &[inputs, inputs], bound));
    parameters.push(ParameterSpec::new("lin.bias", &[inputs], bound));
    let project = Product::of_inputs(inputs * inputs);
    let facts = Facts {
        parameters,
        products: vec![project, Product::of_inner(weight), Product::of_inputs(weight)],
        state_values: [inputs, 0],
        absence: Absence::Skipped,
        edge_weights: EdgeWeights::Unread,
        pyg: format!("SAGEConv({inputs}, {outputs}, aggr=\"max\", project=True)"),
        ..facts
    };
    facts.with_transformed_messages(inputs)
}

/// What goes from the fold of a maximum to its adjoint.
#[derive(Default)]
struct Memory {
    /// The source of each maximum; destinations × inputs.
    winner: Vec<u32>,
}

/// The layer's parameters or gradients, cut out of its flat slice.
struct Views<T> {
    neighbour: T,
    bias: T,
    own: T,
    project: T,
    project_bias: T,
}

impl<T> From<[T; 5]> for Views<T> {
    fn from([neighbour, bias, own, project, project_bias]: [T; 5]) -> Self {
        Views { neighbour, bias, own, project, project_bias }
    }
}

impl Sage {
    /// Lengths of the views.
    fn lens(&self) -> [usize; 5] {
        let weight = self.inputs * self.outputs;
        let (project, project_bias) = if self.pool { (self.inputs * self.inputs, self.inputs) } else { (0, 0) };
        [weight, self.outputs, weight, project, project_bias]
    }

    fn views<'a>(&self, p: &'a [f32]) -> Views<&'a [f32]> {
        split(p, self.lens()).into()
    }

    fn views_mut<'a>(&self, g: &'a mut [f32]) -> Views<&'a mut [f32]> {
        split_mut(g, self.lens()).into()
    }

    /// The factor of each folded sum: 1/degree for the mean.
    fn row_scale<'a>(&self, nodes: &Nodes<'a>) -> Option<&'a [f32]> {
        (!self.pool).then_some(nodes.inverse_degree)
    }

    fn along<'a>(&self, nodes: &Nodes<'a>, Whole { weight, block }: Whole<'a>) -> Along<'a> {
        Along { block, of_sources: weight, of_destinations: self.row_scale(nodes) }
    }
}

impl Undivided for Sage {
    fn is_for_both_ways(&self) -> bool {
        !self.transform_first
    }

    fn forward(&self, At { compute, p, nodes, .. }: &mut At<'_>, edges: Whole<'_>, x: &Matrix, out: &mut Matrix) {
        let views = self.views(p);
        let put_out = edges.block.destinations();
        out.reshape(put_out, self.outputs);
        let neighbours = Left::Neighbours(Sums { rows: x, along: self.along(nodes, edges) });
        let terms = [(neighbours, views.neighbour), (Left::Rows(Rows::Span(x.span(0..put_out))), views.own)];
        affine(compute, out, &terms, views.bias, |_, _| {});
    }

    fn backward(
        &self,
        At { compute, p, nodes, .. }: &mut At<'_>,
        g: &mut [f32],
        edges: Whole<'_>,
        dz: &Matrix,
        x: (&mut Matrix, Through),
    ) {
        let (views, [neighbour, bias, ..]) = (self.views(p), self.lens());
        let own = Some((views.own, neighbour + bias));
        let ends = Ends { neighbours: (views.neighbour, 0), own, bias: neighbour };
        neighbours_adjoint(compute, g, ends, self.along(nodes, edges), dz, x);
    }
}

impl Layer for Sage {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn undivided(&self) -> Option<&dyn Undivided> {
        (!self.pool).then_some(self)
    }

    fn message(&self, At { compute, p, .. }: &mut At<'_>, x: Rows<'_>, out: &mut Matrix) {
        out.reshape(x.rows(), self.facts.message_width);
        if !self.facts.message_has_parameters {
            return copy_scaled(compute, out, Store::Set, x, 1.0, None);
        }
        let views = self.views(p);
        if self.pool {
            times_weight_transposed(compute, out, Store::Set, x, views.project);
            scale_and_shift(compute, out, None, Some(views.project_bias));
            relu(compute, out);
        } else {
            times_weight_transposed(compute, out, Store::Set, x, views.neighbour);
        }
    }

    fn fold(
        &self,
        At { compute, state, .. }: &mut At<'_>,
        Sources { side, block, messages, .. }: Sources<'_>,
        folded: &mut Matrix,
    ) {
        folded.reshape(block.destinations(), self.facts.message_width);
        if !self.pool {
            return sum_fold(compute, folded, store(side), block, messages);
        }
        let Memory { winner } = state.own.get();
        if side == Side::Own {
            begin_maximum(compute, folded, winner);
        }
        max_fold(compute, folded, winner, block, messages);
    }

    fn finish_fold(&self, At { compute, state, nodes, .. }: &mut At<'_>, folded: &mut Matrix, _ending: Ending) {
        match self.row_scale(nodes) {
            Some(scale) => scale_and_shift(compute, folded, Some(scale), None),
            None => end_maximum(compute, folded, &state.own.get::<Memory>().winner),
        }
    }

    fn close(&self, At { compute, p, .. }: &mut At<'_>, input: Closing<'_>, out: &mut Matrix) {
        let views = self.views(p);
        out.reshape(input.x.rows(), self.outputs);
        let own = (Left::Rows(input.x), views.own);
        if self.transform_first {
            let Rows::Dense(folded) = input.folded else { unreachable!("products fold into dense rows") };
            let (rooms, width) = (compute.rooms(), self.outputs);
            return affine(compute, out, &[own], views.bias, |first, out| {
                read(&rooms, folded.all(), first..first + out.len() / width, |folded| add_values(out, folded));
            });
        }
        affine(compute, out, &[(Left::Rows(input.folded), views.neighbour), own], views.bias, |_, _| {});
    }

    fn add_close_gradients(&self, At { compute, .. }: &mut At<'_>, g: &mut [f32], input: Closing<'_>, dz: &Matrix) {
        let [neighbour, bias, own, ..] = self.lens();
        let terms = [(Left::Rows(input.x), neighbour + bias), (Left::Rows(input.folded), 0)];
        let terms = if self.transform_first { &terms[..1] } else { &terms[..] };
        add_affine_gradients(compute, &mut g[..neighbour + bias + own], neighbour, dz, terms);
    }

    fn close_adjoint(
        &self,
        At { compute, p, nodes, .. }: &mut At<'_>,
        dz: &mut Matrix,
        Wanted { dfolded, dx }: Wanted<'_>,
    ) {
        let views = self.views(p);
        if let Some(dx) = dx {
            dx.reshape(dz.rows(), self.inputs);
            times_weight(compute, dx, Store::Set, dz, views.own);
        }
        let Some(dfolded) = dfolded else { return };
        let scale = self.row_scale(nodes);
        if self.transform_first {
            std::mem::swap(dfolded, dz);
            return scale_and_shift(compute, dfolded, scale, None);
        }
        dfolded.reshape(dz.rows(), self.inputs);
        times_weight_then(compute, dfolded, dz, views.neighbour, |first, rows| {
            if let Some(scale) = scale {
                scale_rows(rows, self.inputs, &scale[first..]);
            }
        });
    }

    fn fold_adjoint(
        &self,
        At { compute, state, .. }: &mut At<'_>,
        _g: &mut [f32],
        Sources { block, .. }: Sources<'_>,
        dfolded: &Matrix,
        dmessages: &mut Matrix,
    ) {
        dmessages.reshape(block.sources(), self.facts.message_width);
        if self.pool {
            let Memory { winner } = state.own.get();
            max_fold_adjoint(compute, dmessages, block, dfolded, winner);
        } else {
            sum_fold_adjoint(compute, dmessages, Store::Set, block, dfolded);
        }
    }

    fn message_adjoint(
        &self,
        At { compute, p, .. }: &mut At<'_>,
        g: &mut [f32],
        Senders { x, messages, .. }: Senders<'_>,
        dmessages: &mut Matrix,
        dx: Option<(&mut Matrix, Store)>,
    ) {
        let (views, gradients) = (self.views(p), self.views_mut(g));
        let weight = if self.pool {
            relu_adjoint(compute, dmessages, messages);
            add_bias_gradient(compute, gradients.project_bias, dmessages);
            add_weight_gradient(compute, gradients.project, dmessages, x);
            Some(views.project)
        } else if self.transform_first {
            add_weight_gradient(compute, gradients.neighbour, dmessages, x);
            Some(views.neighbour)
        } else {
            None
        };
        if let Some((dx, store)) = dx {
            dx.reshape(dmessages.rows(), self.inputs);
            match weight {
                Some(weight) => times_weight(compute, dx, store, dmessages, weight),
                None => copy_scaled(compute, dx, store, Rows::Dense(dmessages), 1.0, None),
            }
        }
    }
}
