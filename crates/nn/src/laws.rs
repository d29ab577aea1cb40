//! Laws that hold for every kind of layer, ours or not, as functions for tests to call.
//!
//! [`check`] runs them all over every specification that a kind reads ([`specs`]):
//!
//! ```
//! use laconic_nn::{laws, layer::LayerRegistry};
//!
//! for kind in LayerRegistry::default().iter() {
//!     laws::check(kind);
//! }
//! ```

mod subject;

use crate::layer::{Aggregator, At, Closing, EdgeWeights, Ending, LayerKind, LayerSpec, Nodes, Side, Sources, State};
use crate::matrix::{Matrix, Rows};
use crate::threads::Compute;
use subject::{Subject, cut, product, random};

/// Rows of the worker of the laws' graph, and rows of its halo.
const OWN: usize = 40;
const HALO: usize = 20;
const ALL: usize = OWN + HALO;
/// Relations that its edges are of.
const RELATIONS: usize = 3;

/// Specifications of a kind that between them reach every branch: narrower and wider, aggregating first or not, and
/// each choice that the kind says it reads ([`LayerKind::options`]).
pub fn specs(kind: &LayerKind) -> Vec<LayerSpec> {
    let base = LayerSpec { relations: RELATIONS, ..LayerSpec::new(6, 4) };
    let mut specs = vec![
        base.clone(),
        LayerSpec { inputs: 4, outputs: 6, ..base.clone() },
        LayerSpec { aggregate_first: true, ..base.clone() },
        LayerSpec { inner: 5, ..base.clone() },
        LayerSpec { residual: true, ..base.clone() },
        LayerSpec { residual: true, inputs: 6, outputs: 6, ..base.clone() },
        LayerSpec { residual: true, inputs: 6, outputs: 6, aggregate_first: true, ..base.clone() },
    ];
    if kind.has_heads {
        specs.push(LayerSpec { heads: 2, ..base.clone() });
        specs.push(LayerSpec { heads: 3, concatenate: false, ..base.clone() });
    }
    if kind.options.contains(&"aggregator") {
        specs.push(LayerSpec { aggregator: Aggregator::Max, ..base.clone() });
    }
    if kind.options.contains(&"bases") {
        specs.push(LayerSpec { bases: 2, ..base.clone() });
        specs.push(LayerSpec { bases: 2, inputs: 13, ..base.clone() });
        specs.push(LayerSpec { inputs: 13, ..base.clone() });
    }
    if kind.options.contains(&"learn_epsilon") {
        specs.push(LayerSpec { learn_epsilon: false, ..base });
    }
    specs
}

/// Every law over every specification of a kind.
///
/// # Panics
///
/// If a law does not hold; the message names kind, specification and the two numbers.
pub fn check(kind: &LayerKind) {
    for spec in specs(kind) {
        folding_two_blocks_equals_folding_one(kind, &spec);
        adjoints_agree_with_finite_differences(kind, &spec);
        destinations_may_be_the_first_of_more_sources(kind, &spec);
        a_piece_of_the_destinations_outputs_their_rows(kind, &spec);
        outputs_that_are_folds_are_these_to_the_bit(kind, &spec);
        rows_multiplied_by_their_owner_make_the_same_messages(kind, &spec);
        messages_that_are_rows_are_these_to_the_bit(kind, &spec);
        what_a_layer_adds_to_every_row_it_adds(kind, &spec);
        one_function_is_what_it_stands_for(kind, &spec);
        weights_of_edges_are_read_as_a_layer_says(kind, &spec);
    }
}

/// Whether weights of edges change what goes out, and whether weights that are all four times as large do, is as
/// [`crate::Facts::edge_weights`] says: within 10⁻⁵ of each value nothing changes, or else some value by 10⁻³ at least.
///
/// # Panics
///
/// If it is not.
pub fn weights_of_edges_are_read_as_a_layer_says(kind: &LayerKind, spec: &LayerSpec) {
    let x = random(ALL, spec.inputs, 1);
    let out = |mean| {
        let subject = Subject::weighing(kind, spec, mean);
        subject.run(&subject.p, &x, true, None).z
    };
    let furthest = |one: &Matrix, other: &Matrix| {
        let pairs = one.data().iter().zip(other.data());
        pairs.map(|(a, b)| (a - b).abs() / (1.0 + b.abs())).fold(0.0, f32::max)
    };
    let [alike, weighted, larger] = [None, Some(1.0), Some(4.0)].map(out);
    let [by_weights, by_size] = [furthest(&weighted, &alike), furthest(&larger, &weighted)];
    let (reads, counts_size) = match kind.layer(spec).facts().edge_weights {
        EdgeWeights::Unread => (false, false),
        EdgeWeights::Factors => (true, true),
        EdgeWeights::Shares => (true, false),
    };
    for (far, changes) in [(by_weights, reads), (by_size, counts_size)] {
        let holds = if changes { far > 1e-3 } else { far < 1e-5 };
        assert!(holds, "{} {spec:?}: {by_weights} by weights, {by_size} by their size", kind.name);
    }
}

/// One more in what [`crate::Facts::shift`] names is one more in every value that goes out, within 10⁻⁵.
///
/// # Panics
///
/// If it is not.
pub fn what_a_layer_adds_to_every_row_it_adds(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let Some(shift) = subject.layer.facts().shift else { return };
    let (x, mut shifted, mut start) = (random(ALL, spec.inputs, 1), subject.p.clone(), 0);
    for parameter in &subject.layer.facts().parameters {
        let more = if parameter.name == shift { 1.0 } else { 0.0 };
        shifted[start..start + parameter.len()].iter_mut().for_each(|value| *value += more);
        start += parameter.len();
    }
    assert!(shifted != subject.p, "{} {spec:?}: no parameter is called {shift}", kind.name);
    let [before, after] = [&subject.p, &shifted].map(|p| subject.run(p, &x, true, None).z);
    for (a, b) in after.data().iter().zip(before.data()) {
        assert!((a - b - 1.0).abs() < 1e-5 * (1.0 + b.abs()), "{} {spec:?}: {a} after {b}", kind.name);
    }
}

/// Where a layer says that messages are rows and multiplies them by nothing, they are, to the bit.
///
/// # Panics
///
/// If they are not.
pub fn messages_that_are_rows_are_these_to_the_bit(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let (nodes, x) = (subject.nodes(0..OWN), random(OWN, spec.inputs, 1));
    if !subject.layer.facts().messages_are_rows() {
        return;
    }
    let (mut compute, mut out) = (Compute::new(1), Matrix::default());
    let at = &mut At { compute: &mut compute, p: &subject.p, nodes, state: &mut State::default() };
    subject.layer.message(at, Rows::Dense(&x), &mut out);
    assert!(out == x, "{} {spec:?}", kind.name);
}

/// The messages of rows that were multiplied by [`crate::Facts::sender_weight`], made with nodes of weight 1, are those
/// of the rows, within 10⁻⁵ of each value.
///
/// # Panics
///
/// If they are not.
pub fn rows_multiplied_by_their_owner_make_the_same_messages(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let (nodes, x, ones) = (subject.nodes(0..OWN), random(OWN, spec.inputs, 1), [1.0; OWN]);
    let messages = |x: &Matrix, nodes| {
        let (mut compute, mut out) = (Compute::new(1), Matrix::default());
        let at = &mut At { compute: &mut compute, p: &subject.p, nodes, state: &mut State::default() };
        subject.layer.message(at, Rows::Dense(x), &mut out);
        out
    };
    let mut weighted = x.clone();
    if let Some(weights) = subject.layer.facts().sender_weight.of(&nodes) {
        let rows = weighted.data_mut().chunks_exact_mut(spec.inputs);
        rows.zip(weights).for_each(|(row, weight)| row.iter_mut().for_each(|value| *value *= weight));
    }
    let anonymous = Nodes { inverse_degree: &ones, inverse_root_degree: &ones, ..nodes };
    let (sent, made) = (messages(&x, nodes), messages(&weighted, anonymous));
    assert_eq!((sent.rows(), sent.columns()), (made.rows(), made.columns()));
    for (a, b) in made.data().iter().zip(sent.data()) {
        assert!((a - b).abs() < 1e-5 * (1.0 + b.abs()), "{} {spec:?}: {a} against {b}", kind.name);
    }
}

/// Outputs, gradients and input gradients are the same whether the edges come as an own and a halo block or as one, up
/// to the order of sums: within 2·10⁻⁵ of each value.
///
/// # Panics
///
/// If they are not.
pub fn folding_two_blocks_equals_folding_one(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.facts().outputs, 2));
    let divided = subject.run(&subject.p, &x, true, Some(&dz));
    let whole = subject.run(&subject.p, &x, false, Some(&dz));
    let pairs = divided.values().zip(whole.values());
    for (a, b) in pairs {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{} {spec:?}: {a} against {b}", kind.name);
    }
}

/// Where a layer is one function for rows whose neighbours are all here ([`crate::Layer::undivided`]), that gives the
/// outputs and all gradients that its message, fold and close give, within 2·10⁻⁵ of each value.
///
/// # Panics
///
/// If it does not.
pub fn one_function_is_what_it_stands_for(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let (x, dz) = (random(OWN, spec.inputs, 1), random(OWN, subject.layer.facts().outputs, 2));
    let Some(at_once) = subject.run_undivided(&x, &dz) else { return };
    let apart = subject.run_inside(&x, &dz);
    assert_eq!(at_once.values().count(), apart.values().count());
    for (a, b) in at_once.values().zip(apart.values()) {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{} {spec:?}: {a} against {b}", kind.name);
    }
}

/// One block whose destinations are the first of its sources, as sampled neighbourhoods are, gives the outputs and all
/// gradients that the divided graph gives, within 2·10⁻⁵ of each value.
///
/// # Panics
///
/// If it does not.
pub fn destinations_may_be_the_first_of_more_sources(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.facts().outputs, 2));
    let (divided, sampled) = (subject.run(&subject.p, &x, true, Some(&dz)), subject.run_sampled(&x, &dz));
    for (a, b) in sampled.values().zip(divided.values()) {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{} {spec:?}: {a} against {b}", kind.name);
    }
}

/// Folding and closing some destinations, told which of the sources they are, outputs their rows of the whole, to the
/// bit.
///
/// # Panics
///
/// If it does not.
pub fn a_piece_of_the_destinations_outputs_their_rows(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let x = random(ALL, spec.inputs, 1);
    let whole = subject.run(&subject.p, &x, true, None).z;
    let (piece, layer) = (11..29, subject.layer.as_ref());
    let (mut compute, mut state) = (Compute::new(2), State::default());
    let at = &mut At { compute: &mut compute, p: &subject.p, nodes: subject.nodes(0..ALL), state: &mut state };
    let (mut all, mut folded, mut z) = (Matrix::default(), Matrix::default(), Matrix::default());
    layer.message(at, Rows::Dense(&x), &mut all);
    let messages = [0..OWN, OWN..ALL].map(|rows| cut(&all, rows));
    let blocks = [&subject.own, &subject.halo].map(|block| block.piece(piece.clone()));
    at.nodes = subject.nodes(piece.clone());
    layer.fold(at, Sources { first: piece.start, ..Sources::new(Side::Own, &blocks[0], &messages[0]) }, &mut folded);
    layer.fold(at, Sources::new(Side::Halo, &blocks[1], &messages[1]), &mut folded);
    layer.finish_fold(at, &mut folded, Ending::Folds);
    let own = cut(&x, piece.clone());
    layer.close(at, Closing { x: Rows::Dense(&own), folded: Rows::Dense(&folded) }, &mut z);
    assert!(z.data() == cut(&whole, piece).data(), "{} {spec:?}", kind.name);
}

/// Where output rows may take the place of folds, they are those that come of closing these, to the bit, and all
/// gradients are the same within 2·10⁻⁵ of each value.
///
/// # Panics
///
/// If they are not.
pub fn outputs_that_are_folds_are_these_to_the_bit(kind: &LayerKind, spec: &LayerSpec) {
    let mut subject = Subject::new(kind, spec);
    if !subject.layer.facts().outputs_are_folds {
        return;
    }
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.facts().outputs, 2));
    let apart = subject.run(&subject.p, &x, true, Some(&dz));
    subject.in_place = true;
    let in_place = subject.run(&subject.p, &x, true, Some(&dz));
    assert!(in_place.z.data() == apart.z.data(), "{} {spec:?}", kind.name);
    for (a, b) in in_place.values().zip(apart.values()) {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{} {spec:?}: {a} against {b}", kind.name);
    }
}

/// ⟨dz, f(x + εd) − f(x − εd)⟩ / 2ε against ⟨f'ᵀ dz, d⟩, for inputs and for each parameter, with blocks folded apart,
/// within a hundredth. A maximum has kinks: a shorter step crosses fewer of them and costs digits, so it gets four
/// hundredths.
///
/// # Panics
///
/// If they are farther apart.
pub fn adjoints_agree_with_finite_differences(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.facts().outputs, 2));
    let done = subject.run(&subject.p, &x, true, Some(&dz));
    let value = |p: &[f32], x: &Matrix| product(subject.run(p, x, true, None).z.data(), dz.data());
    let (step, tolerance) = if spec.aggregator == Aggregator::Max { (1e-4f32, 4e-2) } else { (1e-3, 1e-2) };
    let moved = |base: &[f32], d: &[f32], e: f32| base.iter().zip(d).map(|(b, d)| b + e * d).collect::<Vec<f32>>();
    let compare = |what: &str, at: &dyn Fn(f32) -> f64, exact: f64| {
        let numeric = (at(step) - at(-step)) / f64::from(2.0 * step);
        assert!(
            (numeric - exact).abs() < tolerance * (1.0 + exact.abs()),
            "{} {spec:?}, {what}: {numeric} against {exact}",
            kind.name
        );
    };
    let d = random(ALL, spec.inputs, 3);
    let at = |e: f32| value(&subject.p, &Matrix::from_vec(ALL, spec.inputs, moved(x.data(), d.data(), e)));
    compare("input", &at, product(done.dx.data(), d.data()));
    let mut start = 0;
    for parameter in &subject.layer.facts().parameters {
        let mut d = vec![0.0; subject.p.len()];
        d[start..start + parameter.len()].copy_from_slice(random(1, parameter.len(), 4).data());
        start += parameter.len();
        compare(&parameter.name, &|e| value(&moved(&subject.p, &d, e), &x), product(&done.g, &d));
    }
}
