//! One pass over a batch: sampled neighbourhoods whose destinations are the first of their sources, all of it here.
//!
//! No message crosses: whatever a batch needs of other workers has come before the pass. Input rows stand among own
//! ones; or else the rows that each layer reads of the halo stand beside them, and no gradient returns to these.

use std::sync::Arc;

use laconic_key::Purpose;
use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::{add, gather};
use laconic_nn::kernels::normalise::{Activated, Statistics};
use laconic_nn::network::Network;
use laconic_nn::{
    At, Block, Closing, Compute, Dropout, Ending, Layer, Matrix, Nodes, Operand, Rows, Senders, Side, Sources, State,
    Wanted,
};

use super::between::Between;
use super::context::PassContext;
use super::inputs::{rows_as_messages, weigh, weigh_adjoint};
use super::jump::{Jumping, join_all, return_part, rows_of};
use crate::exchange::drawn::Presence;
use crate::exchange::stale::Stale;

/// The rows of the halo that a batch reads, of each layer the first ones.
pub struct BatchHalo {
    /// The edges from them, as [`Batch::blocks`] are those from own rows.
    pub blocks: Vec<Block>,
    /// Which rows of the halo they are.
    pub rows: Vec<u32>,
    /// Their global ids.
    ids: Vec<u64>,
    /// Degrees count as 1, since owners multiply by them what they send.
    ones: Vec<f32>,
    /// What the first layer reads of them, with the round's dropout.
    pub inputs: Option<Operand>,
    /// How much each counts there.
    pub presence: Presence,
}

impl BatchHalo {
    /// These rows of the halo with their global ids and the edges from them; without what the first layer reads.
    pub fn new(blocks: Vec<Block>, rows: Vec<u32>, ids: Vec<u64>) -> BatchHalo {
        let ones = vec![1.0; rows.len()];
        BatchHalo { blocks, rows, ids, ones, inputs: None, presence: None }
    }

    /// Their global ids.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    fn inputs(&self) -> Rows<'_> {
        self.inputs.as_ref().expect("a batch has its inputs before the pass").view()
    }

    fn nodes(&self, rows: usize) -> Nodes<'_> {
        let ones = &self.ones[..rows];
        Nodes { ids: &self.ids[..rows], inverse_degree: ones, inverse_root_degree: ones }
    }

    /// How much the first rows count, of what is known of all of the halo.
    pub fn presence_of(&self, presence: &Presence, rows: usize) -> Presence {
        let of = |presence: &Arc<Vec<f32>>| {
            let counts: Vec<f32> = self.rows[..rows].iter().map(|&row| presence[row as usize]).collect();
            counts.iter().any(|count| *count != 1.0).then(|| Arc::new(counts))
        };
        presence.as_ref().and_then(of)
    }
}

/// What a pass over a batch runs over. Rows of each layer are the first of those of the layer before.
#[derive(Default)]
pub struct Batch {
    /// The edges that each layer with messages reads, first layer first; one block alone is read by all.
    pub blocks: Vec<Block>,
    /// What the first layer reads, with the round's dropout ([`input_dropout`]).
    pub inputs: Option<Operand>,
    /// Global ids of its rows.
    pub ids: Vec<u64>,
    /// 1 / Σ weights of each row's in-edges, of all that it has.
    pub inverse_degree: Vec<f32>,
    /// (Σ weights)^(−1/2) of them, likewise.
    pub inverse_root_degree: Vec<f32>,
    /// What it reads of the halo, where that does not stand among its rows.
    pub halo: Option<BatchHalo>,
}

impl Batch {
    /// The first rows as layers see them.
    fn nodes(&self, rows: usize) -> Nodes<'_> {
        Nodes {
            ids: &self.ids[..rows],
            inverse_degree: &self.inverse_degree[..rows],
            inverse_root_degree: &self.inverse_root_degree[..rows],
        }
    }
}

/// The dropout of what a network's first layer reads in a round's batch.
pub fn input_dropout(network: &Network, context: PassContext) -> Option<Dropout> {
    context.dropout(Purpose::Dropout, 0, network.units()[0].dropout)
}

/// What both directions of a pass over a batch need.
pub struct BatchWalk<'a> {
    /// Threads and scratch memory.
    pub compute: &'a mut Compute,
    /// The layers that it runs through.
    pub network: &'a Network,
    /// All parameters, one flat slice.
    pub p: &'a [f32],
    /// The rows and edges.
    pub batch: &'a Batch,
    /// What layers behind the first read of the halo.
    pub stale: Option<&'a Stale>,
    /// What the pass is for.
    pub context: PassContext,
}

impl<'a> BatchWalk<'a> {
    fn between(&self, index: usize) -> Between<'a> {
        Between { network: self.network, p: self.p, context: self.context, index, weight: None }
    }

    /// Which of the blocks unit `index` reads, if it reads any.
    fn hop(&self, index: usize) -> Option<usize> {
        let units = self.network.units();
        let reads = |index: usize| units[index].layer.facts().message_width > 0;
        let number = (0..index).filter(|&before| reads(before)).count();
        reads(index).then(|| number.min(self.batch.blocks.len() - 1))
    }

    /// What others have told of the rows that unit `index` reads, and which of them have come.
    fn told(&self, index: usize) -> Option<(&'a Matrix, &'a Presence)> {
        self.stale?.known(self.context.first_layer + index as u16)
    }

    fn inputs(&self) -> &'a Operand {
        self.batch.inputs.as_ref().expect("a batch has its inputs before the pass")
    }
}

/// What one unit's forward pass leaves for its backward pass.
#[derive(Default)]
struct Tape {
    /// Input rows; empty in the first unit.
    x: Matrix,
    /// The first of them, those of destinations, where they are sparse and the layer reads them.
    own: Option<Operand>,
    /// Where they are not the input rows.
    messages: Matrix,
    halo: HaloTape,
    folded: Matrix,
    state: State,
    z: Matrix,
    statistics: Statistics,
}

/// What messages of the halo's rows are made of.
#[derive(Default)]
enum MadeOf {
    /// They have come as they are.
    #[default]
    Nothing,
    /// Inputs, by parameters.
    Inputs,
    /// Rows that others have told, by parameters.
    Rows,
}

/// What a unit has read of the halo.
#[derive(Default)]
struct HaloTape {
    made_of: MadeOf,
    rows: Matrix,
    messages: Matrix,
    presence: Presence,
}

/// The gradients of a fold.
struct OfFold<'a> {
    /// Of what was folded, as it came back.
    folded: &'a Matrix,
    /// Of the messages, to be set.
    messages: &'a mut Matrix,
}

impl HaloTape {
    /// Makes or takes the messages of the halo's rows that unit `index` reads, as they count.
    fn gather(&mut self, walk: &mut BatchWalk<'_>, index: usize, block: &Block, halo: &BatchHalo, state: &mut State) {
        let HaloTape { made_of, rows, messages, presence } = self;
        let layer = walk.network.units()[index].layer.as_ref();
        let (p, count) = (&walk.p[walk.network.ranges(index).layer.clone()], block.sources());
        *made_of = match index {
            0 if layer.facts().message_has_parameters => MadeOf::Inputs,
            0 => MadeOf::Nothing,
            _ if walk.stale.is_some_and(|stale| stale.carries.rows_of(layer)) => MadeOf::Rows,
            _ => MadeOf::Nothing,
        };
        let told = walk.told(index);
        let at = &mut At { compute: walk.compute, p, nodes: halo.nodes(count), state };
        if index == 0 {
            layer.message(at, halo.inputs(), messages);
            presence.clone_from(&halo.presence);
        } else {
            let (told, all) = told.expect("layers behind the first read what others have told");
            let into = if matches!(made_of, MadeOf::Rows) { &mut *rows } else { &mut *messages };
            into.reshape(count, told.columns());
            gather(at.compute, into, |row| told.row(halo.rows[row] as usize), None, &halo.ids[..count]);
            *presence = halo.presence_of(all, count);
            if let MadeOf::Rows = made_of {
                layer.message(at, Rows::Dense(rows), messages);
            }
        }
        weigh(walk.compute, layer, presence, messages, state);
    }

    /// The adjoint of the fold of what [`HaloTape::gather`] made, which ends at weights: adds to the unit's `g`. Leaves
    /// the halo's rows in `at`.
    fn scatter<'n>(
        &self,
        at: &mut At<'n>,
        layer: &dyn Layer,
        g: &mut [f32],
        halo: &'n BatchHalo,
        block: &Block,
        gradients: OfFold<'_>,
    ) {
        let OfFold { folded: dfolded, messages: dmessages } = gradients;
        let HaloTape { made_of, rows, messages, presence } = self;
        layer.fold_adjoint(at, g, Sources::new(Side::Halo, block, messages), dfolded, dmessages);
        weigh_adjoint(at.compute, layer, presence, dmessages);
        at.nodes = halo.nodes(block.sources());
        let x = match made_of {
            MadeOf::Nothing => return,
            MadeOf::Inputs => halo.inputs(),
            MadeOf::Rows => Rows::Dense(rows),
        };
        layer.message_adjoint(at, g, Senders { side: Side::Halo, x, messages }, dmessages, None);
    }
}

/// The memory of passes over batches.
#[derive(Default)]
pub struct BatchPass {
    tapes: Vec<Tape>,
    gradient: Matrix,
    next_gradient: Matrix,
    jumping: Jumping,
    dfolded: Matrix,
    dmessages: Matrix,
    dhalo: Matrix,
    down: Matrix,
}

/// The first rows of some: of sparse ones a copy, which `own` keeps.
fn head<'a>(rows: Rows<'a>, count: usize, own: &'a Option<Operand>) -> Rows<'a> {
    match (rows, own) {
        (Rows::Dense(matrix), _) => Rows::Span(matrix.span(0..count.min(matrix.rows()))),
        (rows, own) => own.as_ref().map_or(rows, Operand::view),
    }
}

fn copied_head(rows: Rows<'_>, count: usize) -> Option<Operand> {
    match rows {
        Rows::Sparse(sparse) if count < sparse.rows() => Some(Operand::Sparse(sparse.span(0..count).copied())),
        _ => None,
    }
}

impl BatchPass {
    /// The rows that the network outputs for the batch's seeds, and the gradient by them that
    /// [`BatchPass::backward`] starts from.
    pub fn outputs(&mut self) -> (&mut Matrix, &Matrix) {
        (&mut self.gradient, &self.tapes.last().expect("a network has layers").z)
    }

    /// Runs the network forward.
    pub fn forward(&mut self, walk: &mut BatchWalk<'_>) {
        let units = walk.network.units();
        self.tapes.resize_with(units.len(), Tape::default);
        for (index, unit) in units.iter().enumerate() {
            let (layer, p) = (unit.layer.as_ref(), &walk.p[walk.network.ranges(index).layer.clone()]);
            let Tape { x, own, messages, halo, folded, state, z, .. } = &mut self.tapes[index];
            let x = if index == 0 { walk.inputs().view() } else { Rows::Dense(x) };
            let (mut rows, hop) = (x.rows(), walk.hop(index));
            let at = &mut At { compute: walk.compute, p, nodes: walk.batch.nodes(rows), state };
            if let Some(hop) = hop {
                let block = &walk.batch.blocks[hop];
                rows = block.destinations();
                let messages = match rows_as_messages(layer, x) {
                    Some(rows) => rows,
                    None => {
                        layer.message(at, x, messages);
                        messages
                    }
                };
                at.nodes = walk.batch.nodes(rows);
                layer.fold(at, Sources::new(Side::Own, block, messages), folded);
                if let Some(beside) = &walk.batch.halo {
                    let block = &beside.blocks[hop];
                    halo.gather(walk, index, block, beside, state);
                    let at = &mut At { compute: walk.compute, p, nodes: walk.batch.nodes(rows), state };
                    layer.fold(at, Sources::new(Side::Halo, block, &halo.messages), folded);
                }
                let at = &mut At { compute: walk.compute, p, nodes: walk.batch.nodes(rows), state };
                layer.finish_fold(at, folded, Ending::Folds);
            }
            *own = if layer.facts().reads_own_row { copied_head(x, rows) } else { None };
            let at = &mut At { compute: walk.compute, p, nodes: walk.batch.nodes(rows), state };
            layer.close(at, Closing { x: head(x, rows, own), folded: Rows::Dense(folded) }, z);
            let (done, next) = self.tapes.split_at_mut(index + 1);
            if let (Some(done), Some(next)) = (done.last_mut(), next.first_mut()) {
                let Tape { z, statistics, .. } = done;
                let into = if walk.network.is_top(index) { &mut self.jumping.top } else { &mut next.x };
                walk.between(index).forward(walk.compute, &walk.batch.ids[..rows], z, statistics, into);
            }
            if walk.network.is_top(index) {
                self.join(walk);
            }
        }
    }

    /// Sets what the last unit reads: of each layer before it the rows of the batch's seeds.
    fn join(&mut self, walk: &BatchWalk<'_>) {
        let (Some(joined), Some((last, before))) = (walk.network.joined(), self.tapes.split_last_mut()) else { return };
        let xs = rows_of(joined, before.iter().map(|tape| &tape.x), &self.jumping.top);
        join_all(walk.compute, joined, &xs, &mut last.x);
    }

    /// Runs the network backward from the gradient by its outputs and adds to `g`.
    pub fn backward(&mut self, walk: &mut BatchWalk<'_>, g: &mut [f32]) {
        for index in (0..walk.network.units().len()).rev() {
            let range = walk.network.ranges(index).layer.clone();
            self.unit_backward(walk, index, &mut g[range]);
            let (last, Jumping { top, gradient: kept }) = (self.tapes.len() - 1, &mut self.jumping);
            if let Some(joined) = walk.network.joined().filter(|_| index > 0) {
                let xs = rows_of(joined, self.tapes[..last].iter().map(|tape| &tape.x), top);
                let out = &self.tapes[last].x;
                return_part(walk.compute, joined, index, &xs, out, kept, &mut self.gradient);
            }
            let (done, after) = self.tapes.split_at(index);
            if let (Some(Tape { z, statistics, .. }), Some(Tape { x, .. })) = (done.last(), after.first()) {
                let out = if walk.network.is_top(index - 1) { &*top } else { x };
                let done = Activated { out: Some(out), z, statistics };
                let ids = &walk.batch.ids[..z.rows()];
                walk.between(index - 1).backward(walk.compute, ids, &mut self.gradient, done, g);
            }
        }
    }

    /// One unit; `g` are the gradients of its own parameters.
    fn unit_backward(&mut self, walk: &mut BatchWalk<'_>, index: usize, g: &mut [f32]) {
        let layer = walk.network.units()[index].layer.as_ref();
        let p = &walk.p[walk.network.ranges(index).layer.clone()];
        let BatchPass { tapes, gradient: dz, next_gradient: dx, dfolded, dmessages, dhalo, down, .. } = self;
        let Tape { x, own, messages, halo, folded, state, .. } = &mut tapes[index];
        let x = if index == 0 { walk.inputs().view() } else { Rows::Dense(x) };
        let input = Closing { x: head(x, dz.rows(), own), folded: Rows::Dense(folded) };
        let hop = walk.hop(index);
        let at = &mut At { compute: walk.compute, p, nodes: walk.batch.nodes(dz.rows()), state };
        let Some(hop) = hop else {
            let dx = (index > 0).then_some(&mut *dx);
            layer.add_close_gradients(at, g, input, dz);
            layer.close_adjoint(at, dz, Wanted { dfolded: None, dx });
            std::mem::swap(&mut self.gradient, &mut self.next_gradient);
            return;
        };
        if index == 0 && !layer.facts().message_has_parameters {
            return layer.add_close_gradients(at, g, input, dz);
        }
        let adds = index > 0 && layer.facts().reads_own_row;
        layer.add_close_gradients(at, g, input, dz);
        layer.close_adjoint(at, dz, Wanted { dfolded: Some(dfolded), dx: adds.then_some(&mut *down) });
        let block = &walk.batch.blocks[hop];
        // Layers expect the gradients of both sides, the other one's first.
        if let Some(beside) = &walk.batch.halo {
            halo.scatter(at, layer, g, beside, &beside.blocks[hop], OfFold { folded: dfolded, messages: dhalo });
            at.nodes = walk.batch.nodes(block.destinations());
        } else {
            let nobody = Block::new(0, vec![0; block.destinations() + 1], Vec::new(), None);
            let [nobody] = Block::share_relations([nobody]);
            let nothing = Matrix::zeros(0, layer.facts().message_width);
            layer.fold_adjoint(at, g, Sources::new(Side::Halo, &nobody, &nothing), dfolded, dhalo);
        }
        let as_they_are = rows_as_messages(layer, x);
        let messages = as_they_are.unwrap_or(messages);
        layer.fold_adjoint(at, g, Sources::new(Side::Own, block, messages), dfolded, dmessages);
        if as_they_are.is_some() {
            std::mem::swap(dx, dmessages);
        } else {
            at.nodes = walk.batch.nodes(x.rows());
            let senders = Senders { side: Side::Own, x, messages };
            layer.message_adjoint(at, g, senders, dmessages, (index > 0).then_some((&mut *dx, Store::Set)));
        }
        if adds {
            add(at.compute, &mut dx.data_mut()[..down.data().len()], down.data());
        }
        std::mem::swap(&mut self.gradient, &mut self.next_gradient);
    }
}
