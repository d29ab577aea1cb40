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

use std::ops::Range;

use crate::block::{Block, EdgeData};
use crate::kernels::Store;
use crate::layer::{
    Aggregator, At, Closing, Layer, LayerKind, LayerSpec, Nodes, Senders, Side, Sources, State, Wanted,
};
use crate::matrix::{Matrix, Rows};
use crate::parameters::ParameterSpec;
use crate::threads::Compute;
use laconic_key::{Key, Purpose};

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
        a_piece_of_the_destinations_puts_out_their_rows(kind, &spec);
        outputs_that_are_folds_are_these_to_the_bit(kind, &spec);
        rows_multiplied_by_their_owner_make_the_same_messages(kind, &spec);
        messages_that_are_rows_are_these_to_the_bit(kind, &spec);
        what_a_layer_adds_to_every_row_it_adds(kind, &spec);
    }
}

/// One more in what [`Layer::shift`] names is one more in every value that goes out, within 10⁻⁵.
///
/// # Panics
///
/// If it is not.
pub fn what_a_layer_adds_to_every_row_it_adds(kind: &LayerKind, spec: &LayerSpec) {
    let subject = Subject::new(kind, spec);
    let Some(shift) = subject.layer.shift() else { return };
    let (x, mut shifted, mut start) = (random(ALL, spec.inputs, 1), subject.p.clone(), 0);
    for parameter in subject.layer.parameters() {
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
    if !subject.layer.messages_are_rows(&nodes) {
        return;
    }
    let (mut compute, mut out) = (Compute::new(1), Matrix::default());
    let at = &mut At { compute: &mut compute, p: &subject.p, nodes, state: &mut State::default() };
    subject.layer.message(at, Rows::Dense(&x), &mut out);
    assert!(out == x, "{} {spec:?}", kind.name);
}

/// The messages of rows that were multiplied by [`Layer::sender_weight`], made with nodes of weight 1, are those of the
/// rows, within 10⁻⁵ of each value.
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
    if let Some(weights) = subject.layer.sender_weight(&nodes) {
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
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.outputs(), 2));
    let divided = subject.run(&subject.p, &x, true, Some(&dz));
    let whole = subject.run(&subject.p, &x, false, Some(&dz));
    let pairs = divided.values().zip(whole.values());
    for (a, b) in pairs {
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
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.outputs(), 2));
    let (divided, sampled) = (subject.run(&subject.p, &x, true, Some(&dz)), subject.run_sampled(&x, &dz));
    for (a, b) in sampled.values().zip(divided.values()) {
        assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{} {spec:?}: {a} against {b}", kind.name);
    }
}

/// Folding and closing some destinations, told which of the sources they are, puts out their rows of the whole, to the
/// bit.
///
/// # Panics
///
/// If it does not.
pub fn a_piece_of_the_destinations_puts_out_their_rows(kind: &LayerKind, spec: &LayerSpec) {
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
    layer.finish_fold(at, &mut folded);
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
    if !subject.layer.outputs_are_folds() {
        return;
    }
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.outputs(), 2));
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
    let (x, dz) = (random(ALL, spec.inputs, 1), random(OWN, subject.layer.outputs(), 2));
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
    for parameter in subject.layer.parameters() {
        let mut d = vec![0.0; subject.p.len()];
        d[start..start + parameter.len()].copy_from_slice(random(1, parameter.len(), 4).data());
        start += parameter.len();
        compare(&parameter.name, &|e| value(&moved(&subject.p, &d, e), &x), product(&done.g, &d));
    }
}

/// A layer with parameters on a directed random graph over 60 nodes, node 7 without in-edges, cut into own (0..40) and
/// halo (40..60) sources of the first 40 nodes; and the same edges as one undivided block.
struct Subject {
    layer: Box<dyn Layer>,
    p: Vec<f32>,
    own: Block,
    halo: Block,
    whole: Block,
    /// No edges and no sources: the halo of an undivided block.
    nothing: Block,
    ids: Vec<u64>,
    degree: Vec<f32>,
    root: Vec<f32>,
    /// Whether outputs take the place of folds.
    in_place: bool,
}

/// What a pass gives: outputs and, where it went back, the gradients of parameters and of all input rows.
struct Done {
    z: Matrix,
    g: Vec<f32>,
    dx: Matrix,
}

impl Done {
    fn values(&self) -> impl Iterator<Item = &f32> {
        self.z.data().iter().chain(&self.g).chain(self.dx.data())
    }
}

impl Subject {
    fn new(kind: &LayerKind, spec: &LayerSpec) -> Subject {
        let layer = kind.layer(spec);
        let len = layer.parameters().iter().map(ParameterSpec::len).sum();
        let key = Key::new(11, Purpose::Test);
        let mut parts = [(); 3].map(|()| (vec![0], vec![], vec![]));
        let mut counts = [0.0f32; OWN];
        for v in 0..OWN as u64 {
            for u in 0..ALL as u64 {
                if v != 7 && key.with(v).with(u).unit() < 0.15 {
                    let (part, source) = if u < OWN as u64 { (0, u) } else { (1, u - OWN as u64) };
                    let relation = key.with(v).with(u).with(1).below(RELATIONS as u64) as u16;
                    for (part, source) in [(part, source), (2, u)] {
                        parts[part].1.push(source as u32);
                        parts[part].2.push(relation);
                    }
                    counts[v as usize] += 1.0;
                }
            }
            for (offsets, columns, _) in &mut parts {
                offsets.push(columns.len());
            }
        }
        let [own, halo, whole] = parts.map(|(offsets, columns, relations)| {
            (offsets, columns, EdgeData { weights: None, relations: Some(relations) })
        });
        // The halo's owner scales its messages by its own degrees: here by 0.5.
        let inverse = |power: f32| {
            let own = counts.iter().map(|&d| if d > 0.0 { d.powf(-power) } else { 0.0 });
            own.chain([0.5; HALO]).collect::<Vec<f32>>()
        };
        let halo = Block::new(HALO, halo.0, halo.1, halo.2).naming((OWN as u32..ALL as u32).collect());
        let [own, halo] = Block::share_relations([Block::new(OWN, own.0, own.1, own.2), halo]);
        let nothing = Block::new(0, vec![0; OWN + 1], vec![], None);
        let [whole, nothing] = Block::share_relations([Block::new(ALL, whole.0, whole.1, whole.2), nothing]);
        Subject {
            layer,
            p: random(1, len, 5).into_vec(),
            own,
            halo,
            whole,
            nothing,
            ids: (0..ALL as u64).collect(),
            degree: inverse(1.0),
            root: inverse(0.5),
            in_place: false,
        }
    }

    fn nodes(&self, rows: Range<usize>) -> Nodes<'_> {
        Nodes {
            ids: &self.ids[rows.clone()],
            inverse_degree: &self.degree[rows.clone()],
            inverse_root_degree: &self.root[rows],
        }
    }

    /// One pass as a worker makes it, forward and, given the gradient of the output, backward. What the halo's owner
    /// would do is done here as well.
    fn run(&self, p: &[f32], x: &Matrix, divided: bool, dz: Option<&Matrix>) -> Done {
        let (mut compute, mut state) = (Compute::new(2), State::default());
        let layer = self.layer.as_ref();
        let at = &mut At { compute: &mut compute, p, nodes: self.nodes(0..ALL), state: &mut state };
        let (mut all, mut folded, mut z) = (Matrix::default(), Matrix::default(), Matrix::default());
        layer.message(at, Rows::Dense(x), &mut all);
        let messages = [0..OWN, OWN..ALL, ALL..ALL].map(|rows| cut(&all, rows));
        let x = [cut(x, 0..OWN), cut(x, OWN..ALL)];
        let blocks = if divided {
            [(Side::Own, &self.own, &messages[0]), (Side::Halo, &self.halo, &messages[1])]
        } else {
            [(Side::Own, &self.whole, &all), (Side::Halo, &self.nothing, &messages[2])]
        };
        let blocks = blocks.map(|(side, block, messages)| Sources::new(side, block, messages));
        at.nodes = self.nodes(0..OWN);
        blocks.iter().for_each(|sources| layer.fold(at, *sources, &mut folded));
        let end = if self.in_place { Layer::finish_outputs } else { Layer::finish_fold };
        end(layer, at, &mut folded);
        let input = Closing { x: Rows::Dense(&x[0]), folded: Rows::Dense(&folded) };
        if self.in_place {
            z.clone_from(&folded);
        } else {
            layer.close(at, input, &mut z);
        }
        let (mut g, width) = (vec![0.0; p.len()], x[0].columns());
        let Some(dz) = dz else { return Done { z, g, dx: Matrix::default() } };
        let (mut dz, mut dfolded) = (dz.clone(), Matrix::default());
        let (mut dx, mut dx_halo) = (Matrix::zeros(OWN, width), Matrix::zeros(HALO, width));
        let wanted = Wanted { dfolded: Some(&mut dfolded), dx: Some(&mut dx) };
        layer.add_close_gradients(at, &mut g, input, &dz);
        layer.close_adjoint(at, &mut dz, wanted);
        // Where messages have no parameters, nobody reads rows and messages on the way back.
        let [unread, unread_halo] = [&messages[0], &messages[1]].map(spoiled);
        let [unread_x, unread_x_halo] = [&x[0], &x[1]].map(spoiled);
        let is_read = layer.message_has_parameters();
        let blocks = if is_read || !divided {
            blocks
        } else {
            [Sources { messages: &unread, ..blocks[0] }, Sources { messages: &unread_halo, ..blocks[1] }]
        };
        let messages = if is_read { [&messages[0], &messages[1]] } else { [&unread, &unread_halo] };
        let x = if is_read { [&x[0], &x[1]] } else { [&unread_x, &unread_x_halo] };
        let [mut own, mut halo] = [Matrix::default(), Matrix::default()];
        layer.fold_adjoint(at, &mut g, blocks[1], &dfolded, &mut halo);
        layer.fold_adjoint(at, &mut g, blocks[0], &dfolded, &mut own);
        if !divided {
            [own, halo] = [cut(&own, 0..OWN), cut(&own, OWN..ALL)];
        }
        let store = if layer.reads_own_row() { Store::Add } else { Store::Set };
        let senders = Senders { side: Side::Own, x: Rows::Dense(x[0]), messages: messages[0] };
        layer.message_adjoint(at, &mut g, senders, &mut own, Some((&mut dx, store)));
        at.nodes = self.nodes(OWN..ALL);
        let senders = Senders { side: Side::Halo, x: Rows::Dense(x[1]), messages: messages[1] };
        layer.message_adjoint(at, &mut g, senders, &mut halo, Some((&mut dx_halo, Store::Set)));
        let dx = Matrix::from_vec(ALL, width, [dx.into_vec(), dx_halo.into_vec()].concat());
        Done { z, g, dx }
    }
}

/// Runs of other shapes than a worker's.
impl Subject {
    /// Forward and backward over one block whose destinations are the first of its sources.
    fn run_sampled(&self, x: &Matrix, dz: &Matrix) -> Done {
        let (mut compute, mut state) = (Compute::new(2), State::default());
        let layer = self.layer.as_ref();
        let at = &mut At { compute: &mut compute, p: &self.p, nodes: self.nodes(0..ALL), state: &mut state };
        let (mut messages, mut folded, mut z) = (Matrix::default(), Matrix::default(), Matrix::default());
        layer.message(at, Rows::Dense(x), &mut messages);
        let (sources, nothing) =
            (Sources::new(Side::Own, &self.whole, &messages), Matrix::zeros(0, messages.columns()));
        let nobody = Sources::new(Side::Halo, &self.nothing, &nothing);
        at.nodes = self.nodes(0..OWN);
        layer.fold(at, sources, &mut folded);
        layer.finish_fold(at, &mut folded);
        let own = cut(x, 0..OWN);
        let input = Closing { x: Rows::Dense(&own), folded: Rows::Dense(&folded) };
        layer.close(at, input, &mut z);
        let (mut g, mut dz, mut dfolded) = (vec![0.0; self.p.len()], dz.clone(), Matrix::default());
        let (mut dx_own, mut dx) = (Matrix::zeros(OWN, x.columns()), Matrix::zeros(ALL, x.columns()));
        let wanted = Wanted { dfolded: Some(&mut dfolded), dx: Some(&mut dx_own) };
        layer.add_close_gradients(at, &mut g, input, &dz);
        layer.close_adjoint(at, &mut dz, wanted);
        let mut dmessages = Matrix::default();
        layer.fold_adjoint(at, &mut g, nobody, &dfolded, &mut dmessages);
        layer.fold_adjoint(at, &mut g, sources, &dfolded, &mut dmessages);
        at.nodes = self.nodes(0..ALL);
        let senders = Senders { side: Side::Own, x: Rows::Dense(x), messages: &messages };
        layer.message_adjoint(at, &mut g, senders, &mut dmessages, Some((&mut dx, Store::Add)));
        if layer.reads_own_row() {
            dx.data_mut().iter_mut().zip(dx_own.data()).for_each(|(all, own)| *all += own);
        }
        Done { z, g, dx }
    }
}

/// A matrix of the same shape that spoils whatever is made of it.
fn spoiled(of: &Matrix) -> Matrix {
    Matrix::from_vec(of.rows(), of.columns(), vec![f32::NAN; of.data().len()])
}

/// Some rows of a matrix.
fn cut(from: &Matrix, rows: Range<usize>) -> Matrix {
    let width = from.columns();
    Matrix::from_vec(rows.len(), width, from.data()[rows.start * width..rows.end * width].to_vec())
}

fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
    let key = Key::new(stream, Purpose::Test);
    let value = |i: usize| key.with(i as u64).normal() as f32 * 0.5;
    Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
}

fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
