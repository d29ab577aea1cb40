//! Inference layer by layer, in pieces: full neighbourhoods in memory that does not grow with the number of layers.
//!
//! What is kept are the rows that go into a layer, the rows that come out, and messages that are no rows; folds and
//! everything after them stand for one piece of the rows at a time.

use std::ops::Range;

use laconic_nn::kernels::joining::join;
use laconic_nn::kernels::normalise::Statistics;
use laconic_nn::{At, Closing, Compute, Ending, Layer, Matrix, Nodes, Operand, Rows, Side, Sources, State};
use laconic_wire::Direction;

use super::between::Between;
use super::inputs::{LocalGraph, Neighbours, rows_as_messages, weigh};
use super::neighbourhood::rows_to_send;
use super::network::Pass;
use super::walk::Walk;
use crate::error::Result;

/// Rows of a piece: large enough for products at full speed, small beside any graph for which memory matters.
const PIECE: usize = 4096;

/// The messages of all rows that a layer folds, where it does.
#[derive(Default)]
struct Messages<'a> {
    /// Own rows, where messages are these.
    rows: Option<&'a Matrix>,
    /// Messages of own rows, where they are others.
    made: Matrix,
    halo: Matrix,
    state: State,
}

/// What a layer closes over.
enum Folds<'a> {
    /// Nothing: it reads no neighbours.
    Nothing,
    /// Folds that stand already.
    Kept(&'a Operand),
    /// Folds of messages that are here.
    Messages(Messages<'a>),
}

/// A layer at work on a piece of the rows.
struct Piece<'a> {
    layer: &'a dyn Layer,
    p: &'a [f32],
    graph: LocalGraph<'a>,
    rows: Range<usize>,
}

fn rows_of(nodes: Nodes<'_>, rows: Range<usize>) -> Nodes<'_> {
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
        // What the pass before has left is nobody's any more.
        self.tapes.clear();
        self.tapes.resize_with(count, Default::default);
        let inputs = walk.inputs;
        let (mut x, mut joined) = (Matrix::default(), Matrix::default());
        for index in 0..count {
            let mut out = Matrix::default();
            let rows = if index == 0 { inputs.x.view() } else { Rows::Dense(&x) };
            let folds = if index == 0 { first_folds(walk)? } else { folds(walk, index, rows)? };
            pieces(walk, index, rows, folds, &mut out);
            let done = std::mem::replace(&mut x, out);
            if let Some(all) = walk.network.joined().filter(|all| (all.first..count - 1).contains(&index)) {
                let place = (index - all.first, count - 1 - all.first);
                join(walk.peers.compute, &mut joined, all.joining, place, &x, x.rows());
                if walk.network.is_top(index) {
                    x = std::mem::take(&mut joined);
                }
            }
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
            let (nodes, x) = (walk.graph.nodes, inputs.x.view());
            let mut messages = Messages { rows: rows_as_messages(layer, x), ..Messages::default() };
            let Messages { rows, made, halo, state } = &mut messages;
            let at = &mut At { compute: walk.peers.compute, p, nodes, state };
            if rows.is_none() {
                layer.message(at, x, made);
            }
            at.nodes = walk.graph.halo_nodes;
            layer.message(at, copies.view(), halo);
            weigh(at.compute, layer, &inputs.presence, halo, at.state);
            Ok(Folds::Messages(messages))
        }
        Neighbours::Exchanged => folds(walk, 0, inputs.x.view()),
    }
}

/// Makes the messages of a unit, where they are not its rows, and exchanges them.
fn folds<'a>(walk: &mut Walk<'_, '_>, index: usize, x: Rows<'a>) -> Result<Folds<'a>> {
    let layer = walk.network.units()[index].layer.as_ref();
    if layer.facts().message_width == 0 {
        return Ok(Folds::Nothing);
    }
    // The first reads inputs of all rows.
    let (p, nodes) = (&walk.p[walk.network.ranges(index).layer.clone()], walk.graph.nodes.head(x.rows()));
    let mut messages = Messages { rows: rows_as_messages(layer, x), ..Messages::default() };
    let Messages { rows, made, halo, state } = &mut messages;
    if rows.is_none() {
        layer.message(&mut At { compute: walk.peers.compute, p, nodes, state }, x, made);
    }
    let tag = walk.context.tag(index, Direction::Forward);
    let [mut weighted, mut copies]: [Matrix; 2] = Default::default();
    let rows_cross = walk.carries_rows(layer);
    let (sent, into) = match rows_cross {
        true => (rows_to_send(walk.peers.compute, layer, &nodes, x, &mut weighted), &mut copies),
        false => (rows.unwrap_or(made), &mut *halo),
    };
    into.reshape(walk.peers.halo.rows(), sent.columns());
    let presence = walk.peers.exchange(tag, sent, into, |_, _| {})?;
    if rows_cross {
        let at = &mut At { compute: walk.peers.compute, p, nodes: walk.graph.halo_nodes, state };
        layer.message(at, Rows::Dense(&copies), halo);
    }
    weigh(walk.peers.compute, layer, &presence, halo, state);
    Ok(Folds::Messages(messages))
}

/// Folds and closes piece after piece, and sets `out` to what the next unit reads, of the rows that this one outputs.
fn pieces(walk: &mut Walk<'_, '_>, index: usize, x: Rows<'_>, mut folds: Folds<'_>, out: &mut Matrix) {
    let unit = &walk.network.units()[index];
    let (layer, p) = (unit.layer.as_ref(), &walk.p[walk.network.ranges(index).layer.clone()]);
    let graph = walk.graph_of(index);
    let (network, compute, count) = (walk.network, &mut *walk.peers.compute, graph.nodes.ids.len());
    let between = Between { network, p: walk.p, context: walk.context, index, weight: None };
    out.reshape(count, layer.facts().outputs);
    let [mut folded_piece, mut nothing, mut z, mut next]: [Matrix; 4] = Default::default();
    let mut statistics = Statistics::default();
    let mut nobody = State::default();
    for start in (0..count).step_by(PIECE) {
        let piece = start..count.min(start + PIECE);
        let nodes = rows_of(graph.nodes, piece.clone());
        let folded = match &mut folds {
            Folds::Nothing => {
                nothing.reshape(piece.len(), 0);
                Rows::Dense(&nothing)
            }
            Folds::Kept(folded) => folded.view().span(piece.clone()),
            Folds::Messages(messages) => {
                fold(compute, &Piece { layer, p, graph, rows: piece.clone() }, messages, &mut folded_piece);
                Rows::Dense(&folded_piece)
            }
        };
        let state = if let Folds::Messages(messages) = &mut folds { &mut messages.state } else { &mut nobody };
        let own = x.span(piece.clone());
        layer.close(&mut At { compute, p, nodes, state }, Closing { x: own, folded }, &mut z);
        between.forward(compute, nodes.ids, &z, &mut statistics, &mut next);
        let width = next.columns();
        out.data_mut()[piece.start * width..piece.end * width].copy_from_slice(next.data());
    }
}

/// Sets `folded` to the folds of one piece of the rows.
fn fold(compute: &mut Compute, piece: &Piece<'_>, messages: &mut Messages<'_>, folded: &mut Matrix) {
    let Piece { layer, p, graph, ref rows } = *piece;
    let [own_block, halo_block] = [graph.own, graph.halo].map(|block| block.piece(rows.clone()));
    let nodes = rows_of(graph.nodes, rows.clone());
    let Messages { rows: as_they_are, made, halo, state } = messages;
    let (at, own) = (&mut At { compute, p, nodes, state }, as_they_are.unwrap_or(made));
    layer.fold(at, Sources { first: rows.start, ..Sources::new(Side::Own, &own_block, own) }, folded);
    layer.fold(at, Sources::new(Side::Halo, &halo_block, halo), folded);
    layer.finish_fold(at, folded, Ending::Folds);
}
