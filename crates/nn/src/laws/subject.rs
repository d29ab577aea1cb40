//! What the laws are about: a layer on a small graph, and passes over it.

use std::ops::Range;

use super::{ALL, HALO, OWN, RELATIONS};
use crate::block::{Block, EdgeData};
use crate::kernels::Store;
use crate::kernels::Through;
use crate::layer::{
    At, Closing, Ending, Layer, LayerKind, LayerSpec, Nodes, Senders, Side, Sources, State, Wanted, Whole,
};
use crate::matrix::{Matrix, Rows};
use crate::parameters::ParameterSpec;
use crate::threads::Compute;
use laconic_key::{Key, Purpose};

/// A layer with parameters on a directed random graph over 60 nodes, node 7 without in-edges, cut into own (0..40) and
/// halo (40..60) sources of the first 40 nodes; and the same edges as one undivided block.
pub(super) struct Subject {
    pub(super) layer: Box<dyn Layer>,
    pub(super) p: Vec<f32>,
    pub(super) own: Block,
    pub(super) halo: Block,
    whole: Block,
    /// No edges and no sources: the halo of an undivided block.
    nothing: Block,
    ids: Vec<u64>,
    degree: Vec<f32>,
    root: Vec<f32>,
    /// Whether outputs take the place of folds.
    pub(super) in_place: bool,
}

/// What a pass gives: outputs and, where it went back, the gradients of parameters and of all input rows.
pub(super) struct Done {
    pub(super) z: Matrix,
    pub(super) g: Vec<f32>,
    pub(super) dx: Matrix,
}

impl Done {
    pub(super) fn values(&self) -> impl Iterator<Item = &f32> {
        self.z.data().iter().chain(&self.g).chain(self.dx.data())
    }
}

impl Subject {
    pub(super) fn new(kind: &LayerKind, spec: &LayerSpec) -> Subject {
        Subject::weighing(kind, spec, None)
    }

    /// The same with edges of random weights around `mean`, where there is one.
    pub(super) fn weighing(kind: &LayerKind, spec: &LayerSpec, mean: Option<f32>) -> Subject {
        let layer = kind.layer(spec);
        let len = layer.facts().parameters.iter().map(ParameterSpec::len).sum();
        let key = Key::new(11, Purpose::Test);
        let mut parts = [(); 3].map(|()| (vec![0], vec![], vec![], vec![]));
        let mut counts = [0.0f32; OWN];
        for v in 0..OWN as u64 {
            for u in 0..ALL as u64 {
                if v != 7 && key.with(v).with(u).unit() < 0.15 {
                    let (part, source) = if u < OWN as u64 { (0, u) } else { (1, u - OWN as u64) };
                    let relation = key.with(v).with(u).with(1).below(RELATIONS as u64) as u16;
                    let weight = mean.map_or(1.0, |mean| mean * (0.5 + key.with(v).with(u).with(2).unit() as f32));
                    for (part, source) in [(part, source), (2, u)] {
                        parts[part].1.push(source as u32);
                        parts[part].2.push(relation);
                        parts[part].3.push(weight);
                    }
                    counts[v as usize] += weight;
                }
            }
            for (offsets, columns, ..) in &mut parts {
                offsets.push(columns.len());
            }
        }
        let [own, halo, whole] = parts.map(|(offsets, columns, relations, weights)| {
            (offsets, columns, EdgeData { weights: mean.map(|_| weights), relations: Some(relations) })
        });
        // The halo's owner scales its messages by its own degrees: here by 0.5, of edges that weigh 1.
        let inverse = |power: f32| {
            let own = counts.iter().map(|&d| if d > 0.0 { d.powf(-power) } else { 0.0 });
            own.chain([0.5 * mean.unwrap_or(1.0).powf(-power); HALO]).collect::<Vec<f32>>()
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

    pub(super) fn nodes(&self, rows: Range<usize>) -> Nodes<'_> {
        Nodes {
            ids: &self.ids[rows.clone()],
            inverse_degree: &self.degree[rows.clone()],
            inverse_root_degree: &self.root[rows],
        }
    }

    /// One pass as a worker makes it, forward and, given the gradient of the output, backward. What the halo's owner
    /// would do is done here as well.
    pub(super) fn run(&self, p: &[f32], x: &Matrix, divided: bool, dz: Option<&Matrix>) -> Done {
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
        let ending = if self.in_place { Ending::Outputs } else { Ending::Folds };
        layer.finish_fold(at, &mut folded, ending);
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
        // Where messages have no parameters, nobody reads rows and messages in the backward pass.
        let [unread, unread_halo] = [&messages[0], &messages[1]].map(spoiled);
        let [unread_x, unread_x_halo] = [&x[0], &x[1]].map(spoiled);
        let is_read = layer.facts().message_has_parameters;
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
        let store = if layer.facts().reads_own_row { Store::Add } else { Store::Set };
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
    /// Forward and backward over all edges as one block, whose destinations are the first of its sources.
    pub(super) fn run_sampled(&self, x: &Matrix, dz: &Matrix) -> Done {
        self.run_over(&self.whole, x, dz)
    }

    /// Forward and backward over own rows alone, as if no edge came from anywhere else.
    pub(super) fn run_inside(&self, x: &Matrix, dz: &Matrix) -> Done {
        self.run_over(&self.own, x, dz)
    }

    /// Forward and backward by a layer's functions one after the other, over one block whose destinations are the first
    /// of its sources: of these are the rows of x.
    fn run_over(&self, block: &Block, x: &Matrix, dz: &Matrix) -> Done {
        let (mut compute, mut state) = (Compute::new(2), State::default());
        let (layer, all) = (self.layer.as_ref(), 0..block.sources());
        let at = &mut At { compute: &mut compute, p: &self.p, nodes: self.nodes(all.clone()), state: &mut state };
        let (mut messages, mut folded, mut z) = (Matrix::default(), Matrix::default(), Matrix::default());
        layer.message(at, Rows::Dense(x), &mut messages);
        let (sources, nothing) = (Sources::new(Side::Own, block, &messages), Matrix::zeros(0, messages.columns()));
        let nobody = Sources::new(Side::Halo, &self.nothing, &nothing);
        at.nodes = self.nodes(0..OWN);
        layer.fold(at, sources, &mut folded);
        layer.finish_fold(at, &mut folded, Ending::Folds);
        let own = cut(x, 0..OWN);
        let input = Closing { x: Rows::Dense(&own), folded: Rows::Dense(&folded) };
        layer.close(at, input, &mut z);
        let (mut g, mut dz, mut dfolded) = (vec![0.0; self.p.len()], dz.clone(), Matrix::default());
        let (mut dx_own, mut dx) = (Matrix::zeros(OWN, x.columns()), Matrix::zeros(x.rows(), x.columns()));
        let wanted = Wanted { dfolded: Some(&mut dfolded), dx: Some(&mut dx_own) };
        layer.add_close_gradients(at, &mut g, input, &dz);
        layer.close_adjoint(at, &mut dz, wanted);
        let mut dmessages = Matrix::default();
        layer.fold_adjoint(at, &mut g, nobody, &dfolded, &mut dmessages);
        layer.fold_adjoint(at, &mut g, sources, &dfolded, &mut dmessages);
        at.nodes = self.nodes(all);
        let senders = Senders { side: Side::Own, x: Rows::Dense(x), messages: &messages };
        layer.message_adjoint(at, &mut g, senders, &mut dmessages, Some((&mut dx, Store::Add)));
        if layer.facts().reads_own_row {
            dx.data_mut().iter_mut().zip(dx_own.data()).for_each(|(all, own)| *all += own);
        }
        Done { z, g, dx }
    }

    /// Forward and backward over own rows alone by one function, where the layer has one.
    pub(super) fn run_undivided(&self, x: &Matrix, dz: &Matrix) -> Option<Done> {
        let undivided = self.layer.undivided()?;
        let (mut compute, mut state) = (Compute::new(2), State::default());
        let nodes = self.nodes(0..OWN);
        let edges = Whole { weight: self.layer.facts().sender_weight.of(&nodes), block: &self.own };
        let at = &mut At { compute: &mut compute, p: &self.p, nodes, state: &mut state };
        let (mut z, mut dx) = (spoiled(dz), x.clone());
        undivided.forward(at, edges, x, &mut z);
        let mut g = vec![0.0; self.p.len()];
        undivided.backward(at, &mut g, edges, dz, (&mut dx, Through::All));
        Some(Done { z, g, dx })
    }
}

/// A matrix of the same shape that spoils whatever is made of it.
pub(super) fn spoiled(of: &Matrix) -> Matrix {
    Matrix::from_vec(of.rows(), of.columns(), vec![f32::NAN; of.data().len()])
}

/// Some rows of a matrix.
pub(super) fn cut(from: &Matrix, rows: Range<usize>) -> Matrix {
    let width = from.columns();
    Matrix::from_vec(rows.len(), width, from.data()[rows.start * width..rows.end * width].to_vec())
}

pub(super) fn random(rows: usize, columns: usize, stream: u64) -> Matrix {
    let key = Key::new(stream, Purpose::Test);
    let value = |i: usize| key.with(i as u64).normal() as f32 * 0.5;
    Matrix::from_vec(rows, columns, (0..rows * columns).map(value).collect())
}

pub(super) fn product(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
}
