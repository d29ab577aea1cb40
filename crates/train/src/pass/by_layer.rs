//! Inference layer by layer, in pieces: full neighbourhoods in memory that does not grow with the number of layers.
//!
//! What is kept are the rows that go into a layer, their messages, and the rows that come out; folds and everything
//! after them stand for one piece of the rows at a time.

use laconic_nn::{At, Closing, Compute, Matrix, Nodes, Operand, Rows, Side, Sources, State};
use laconic_wire::Direction;

use super::between::Between;
use super::inputs::{LocalGraph, Neighbours, fold_once, weigh};
use super::network::Pass;
use super::walk::Walk;
use crate::error::Result;

/// Rows of a piece: large enough for products at full speed, small beside any graph for which memory matters.
const PIECE: usize = 8192;

/// The messages of all rows that a layer folds, where it does.
#[derive(Default)]
struct Messages {
    own: Matrix,
    halo: Matrix,
    state: State,
}

/// What a layer closes over.
enum Folds<'a> {
    /// Nothing: it reads no neighbours.
    Nothing,
    /// Folds that stand already.
    Kept(&'a Operand),
    /// Folds that were made for this pass.
    Made(Operand),
    /// Folds of messages that are here.
    Messages(Messages),
}

fn rows_of(nodes: Nodes<'_>, rows: std::ops::Range<usize>) -> Nodes<'_> {
    Nodes {
        ids: &nodes.ids[rows.clone()],
        inverse_degree: &nodes.inverse_degree[rows.clone()],
        inverse_root_degree: &nodes.inverse_root_degree[rows],
    }
}

impl Pass {
    /// As [`Pass::forward`], without dropout and without anything that a backward pass would need: logits and the last
    /// hidden rows stand where that leaves them.
    ///
    /// # Errors
    /// If a peer does not answer, or a codec refuses the rows.
    pub fn infer(&mut self, walk: &mut Walk<'_, '_>) -> Result<()> {
        let count = walk.network.units().len();
        self.tapes.resize_with(count, Default::default);
        let mut x = Matrix::default();
        for index in 0..count {
            let folds = match index {
                0 => first_folds(walk)?,
                _ => folds(walk, index, Rows::Dense(&x))?,
            };
            let mut out = Matrix::default();
            let rows = if index == 0 { walk.inputs.x.view() } else { Rows::Dense(&x) };
            pieces(walk, index, (rows, folds), &mut out);
            let done = std::mem::replace(&mut x, out);
            if index + 1 == count {
                self.tapes[index].keep(done, std::mem::take(&mut x));
            }
        }
        Ok(())
    }
}

/// What the first layer closes over.
fn first_folds<'a>(walk: &mut Walk<'a, '_>) -> Result<Folds<'a>> {
    let layer = walk.network.units()[0].layer.as_ref();
    let inputs = walk.inputs;
    match &inputs.neighbours {
        Neighbours::Nobody => Ok(Folds::Nothing),
        Neighbours::Folded(folded) => Ok(Folds::Kept(folded)),
        Neighbours::Copies(copies) => {
            let p = &walk.p[walk.network.ranges(0).layer.clone()];
            let mut messages = Messages::default();
            let Messages { own, halo, state } = &mut messages;
            let at = &mut At { compute: walk.peers.compute, p, nodes: walk.graph.nodes, state };
            layer.message(at, inputs.x.view(), own);
            at.nodes = walk.graph.halo_nodes;
            layer.message(at, copies.view(), halo);
            weigh(at.compute, layer, &inputs.presence, halo, at.state);
            Ok(Folds::Messages(messages))
        }
        Neighbours::Exchanged if layer.message_has_parameters() => folds(walk, 0, inputs.x.view()),
        Neighbours::Exchanged => {
            let tag = walk.context.tag(0, Direction::Forward);
            let mut folded = Matrix::default();
            fold_once(walk.peers, walk.graph, layer, inputs.x.view(), tag, &mut folded)?;
            Ok(Folds::Made(Operand::Dense(folded)))
        }
    }
}

/// Makes the messages of a unit and exchanges them.
fn folds<'a>(walk: &mut Walk<'a, '_>, index: usize, x: Rows<'_>) -> Result<Folds<'a>> {
    let layer = walk.network.units()[index].layer.as_ref();
    if layer.message_width() == 0 {
        return Ok(Folds::Nothing);
    }
    let (p, nodes) = (&walk.p[walk.network.ranges(index).layer.clone()], walk.graph.nodes);
    let mut messages = Messages::default();
    let Messages { own, halo, state } = &mut messages;
    layer.message(&mut At { compute: walk.peers.compute, p, nodes, state }, x, own);
    halo.reshape(walk.peers.halo.rows(), own.columns());
    let presence = walk.peers.exchange(walk.context.tag(index, Direction::Forward), own, halo, |_, _| {})?;
    weigh(walk.peers.compute, layer, &presence, halo, state);
    Ok(Folds::Messages(messages))
}

/// Folds and closes piece after piece, and sets `out` to what the next unit reads.
fn pieces(walk: &mut Walk<'_, '_>, index: usize, (x, mut folds): (Rows<'_>, Folds<'_>), out: &mut Matrix) {
    let unit = &walk.network.units()[index];
    let (layer, p) = (unit.layer.as_ref(), &walk.p[walk.network.ranges(index).layer.clone()]);
    let (network, compute, count) = (walk.network, &mut *walk.peers.compute, x.rows());
    let between = Between { network, p: walk.p, context: walk.context, index };
    out.reshape(count, layer.outputs());
    let [mut z, mut statistics, mut next]: [Matrix; 3] = Default::default();
    let mut nobody = State::default();
    for start in (0..count).step_by(PIECE) {
        let piece = start..count.min(start + PIECE);
        let rows: Vec<u32> = (piece.start as u32..piece.end as u32).collect();
        let nodes = rows_of(walk.graph.nodes, piece.clone());
        let folded = match &mut folds {
            Folds::Nothing => Operand::Dense(Matrix::zeros(piece.len(), 0)),
            Folds::Kept(folded) => folded.gather(&rows),
            Folds::Made(folded) => folded.gather(&rows),
            Folds::Messages(messages) => {
                Operand::Dense(fold(compute, layer, (p, nodes), walk.graph, piece.clone(), messages))
            }
        };
        let state = if let Folds::Messages(messages) = &mut folds { &mut messages.state } else { &mut nobody };
        let own = gather(x, &rows);
        let input = Closing { x: own.view(), folded: folded.view() };
        layer.close(&mut At { compute, p, nodes, state }, input, &mut z);
        between.forward(compute, nodes.ids, [&mut z, &mut statistics], &mut next);
        let width = next.columns();
        out.data_mut()[piece.start * width..piece.end * width].copy_from_slice(next.data());
    }
}

fn gather(x: Rows<'_>, rows: &[u32]) -> Operand {
    match x {
        Rows::Dense(matrix) => {
            let (width, first) = (matrix.columns(), rows.first().map_or(0, |&row| row as usize));
            let values = matrix.data()[first * width..(first + rows.len()) * width].to_vec();
            Operand::Dense(Matrix::from_vec(rows.len(), width, values))
        }
        Rows::Sparse(sparse) => Operand::Sparse(sparse.gather(rows)),
    }
}

/// The folds of one piece of the rows.
fn fold(
    compute: &mut Compute,
    layer: &dyn laconic_nn::Layer,
    (p, nodes): (&[f32], Nodes<'_>),
    graph: LocalGraph<'_>,
    piece: std::ops::Range<usize>,
    Messages { own, halo, state }: &mut Messages,
) -> Matrix {
    let mut folded = Matrix::default();
    let [own_block, halo_block] = [graph.own, graph.halo].map(|block| block.piece(piece.clone()));
    let at = &mut At { compute, p, nodes, state };
    layer.fold(at, Sources { first: piece.start, ..Sources::new(Side::Own, &own_block, own) }, &mut folded);
    layer.fold(at, Sources::new(Side::Halo, &halo_block, halo), &mut folded);
    layer.finish_fold(at, &mut folded);
    folded
}
