//! One pass of a network over a worker's rows, forward and backward: the only place where layers meet the exchange.
//!
//! Overlap is the order of statements here and nowhere else. Forward: start the exchange, fold the local block, finish,
//! fold the halo block. Backward is the mirror: the halo's gradients are computed and sent first, then the local
//! block's.

use laconic_nn::kernels::elementwise::copy_scaled;
use laconic_nn::kernels::normalise::{Activated, Statistics};
use laconic_nn::kernels::{Store, Through};
use laconic_nn::matrix::Values;
use laconic_nn::{At, Closing, Matrix, Operand, Precision, Rows, Undivided, Wanted, Whole};

use crate::error::Result;
use crate::pass::inputs::{Dropped, Refolding};
use crate::pass::jump::{Jumping, join_all, return_part, rows_of};
use crate::pass::neighbourhood::{Neighbourhood, Returning, UnitRows};
use crate::pass::spare::{Spare, widest};
use crate::pass::walk::{Walk, activates_in_place};

/// What one unit's forward pass leaves for its backward pass; memory is used again every round.
#[derive(Default)]
pub(super) struct Tape {
    /// Input rows: output of the unit before, after norm, ReLU and dropout. Empty in the first unit.
    x: Matrix,
    pub(super) near: Neighbourhood,
    pub(super) z: Matrix,
    statistics: Statistics,
}

impl Tape {
    /// Keeps what a pass without a backward pass leaves: the rows that the last unit read, and what it output.
    pub(super) fn keep(&mut self, x: Matrix, z: Matrix) {
        (self.x, self.z) = (x, z);
    }
}

/// The memory of passes over one network.
#[derive(Default)]
pub struct Pass {
    pub(super) tapes: Vec<Tape>,
    pub(super) first: FirstInputs,
    pub(super) gradient: Matrix,
    next_gradient: Matrix,
    jumping: Jumping,
    pub(super) returning: Returning,
    pub(super) spare: Spare,
}

/// What the first unit reads in a pass: frozen rows with this round's dropout.
pub(super) struct FirstInputs {
    pub own: Dropped,
    pub folded: Dropped,
    pub halo: Dropped,
    /// The fold, where it is made anew in every pass, and what it is made in.
    pub refolded: Operand,
    pub refolding: Refolding,
    pub nothing: Matrix,
}

impl Default for FirstInputs {
    fn default() -> Self {
        let (own, folded, halo, refolding, nothing) = Default::default();
        FirstInputs { own, folded, halo, refolding, refolded: Operand::Dense(Matrix::default()), nothing }
    }
}

/// A matrix in no more memory than it fills, and an empty one in its place.
fn fitted(matrix: &mut Matrix) -> Matrix {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let mut values = std::mem::take(matrix).into_values();
    match &mut values {
        Values::F32(values) => values.shrink_to_fit(),
        Values::Bf16(values) => values.shrink_to_fit(),
    }
    Matrix::from_values(rows, columns, values)
}

impl Pass {
    /// The output of the last forward pass; rows × classes.
    pub fn logits(&self) -> &Matrix {
        &self.tapes.last().expect("a network has layers").z
    }

    /// The same, moved out of the pass.
    pub fn take_logits(&mut self) -> Matrix {
        fitted(&mut self.tapes.last_mut().expect("a network has layers").z)
    }

    /// The rows that the last of several units read in the last forward pass, moved out of it.
    pub fn take_last_hidden(&mut self) -> Option<Matrix> {
        self.tapes.get_mut(1..)?.last_mut().map(|tape| fitted(&mut tape.x))
    }

    /// The gradient that [`Pass::backward`] starts from; rows × classes.
    pub fn logits_gradient(&mut self) -> (&mut Matrix, &Matrix) {
        let z = &self.tapes.last().expect("a network has layers").z;
        self.spare.shape_as(&mut self.gradient, (z.rows(), z.columns()), Precision::F32);
        (&mut self.gradient, z)
    }

    /// Runs the network forward.
    ///
    /// # Errors
    /// If a peer does not answer, or a codec refuses the rows.
    pub fn forward(&mut self, walk: &mut Walk<'_, '_>) -> Result<()> {
        let units = walk.network.units().len();
        self.tapes.resize_with(units, Tape::default);
        self.spare.expect(widest(walk.network) * walk.graph.nodes.ids.len(), walk.context.precision);
        self.first_forward(walk)?;
        self.activate(walk, 0)?;
        for index in 1..units {
            self.unit_forward(walk, index)?;
            self.activate(walk, index)?;
        }
        Ok(())
    }

    /// One unit behind the first.
    fn unit_forward(&mut self, walk: &mut Walk<'_, '_>, index: usize) -> Result<()> {
        let layer = walk.network.units()[index].layer.as_ref();
        let (p, graph) = (&walk.p[walk.network.ranges(index).layer.clone()], walk.graph_of(index));
        let nodes = graph.nodes;
        let Tape { x, near, z, .. } = &mut self.tapes[index];
        let (is_last, in_place) = (walk.is_last(index), walk.outputs_replace_folds(index));
        let forgets = walk.forgets();
        if let Some(undivided) = walk.undivided(index).filter(|of| of.is_for_both_ways()) {
            self.spare.shape_as(z, (nodes.ids.len(), layer.facts().outputs), walk.stores_outputs(index));
            let edges = Whole { weight: walk.sender_weight(index), block: graph.own };
            undivided.forward(&mut At { compute: walk.peers.compute, p, nodes, state: &mut near.state }, edges, x, z);
            if (walk.makes_rows_again(index) || forgets) && !is_last {
                self.spare.take(x);
            }
            return Ok(());
        }
        if in_place {
            self.spare.take(z);
        }
        if layer.facts().message_width > 0 {
            near.gather(walk, index, Rows::Dense(x), &mut self.spare)?;
        }
        if in_place {
            std::mem::swap(z, &mut near.folded);
        } else {
            let rows = nodes.ids.len();
            self.spare.shape_as(z, (rows, layer.facts().outputs), walk.stores_outputs(index));
            let input = Closing { x: Rows::Span(x.span(0..rows)), folded: Rows::Dense(&near.folded) };
            layer.close(&mut At { compute: walk.peers.compute, p, nodes, state: &mut near.state }, input, z);
        }
        // The last unit's backward pass begins at once, and its rows may be handed on.
        if (walk.makes_rows_again(index) || forgets) && !is_last {
            self.spare.take(x);
        }
        if forgets || walk.folds_again(index) {
            self.spare.take(&mut near.folded);
        }
        Ok(())
    }

    /// What stands between a unit and the next. Nothing follows the last.
    fn activate(&mut self, walk: &mut Walk<'_, '_>, index: usize) -> Result<()> {
        let (before, after) = self.tapes.split_at_mut(index + 1);
        if let ([.., Tape { z, statistics, .. }], Some(next)) = (before, after.first_mut()) {
            let ids = walk.senders(index + 1).ids;
            let between = walk.between(index);
            between.measure(walk.peers, z, statistics)?;
            let into = if walk.network.is_top(index) { &mut self.jumping.top } else { &mut next.x };
            let in_place = activates_in_place(walk.network, index);
            if in_place {
                std::mem::swap(z, into);
                between.forward_in_place(walk.peers.compute, ids, into);
            } else {
                self.spare.shape(into, (z.rows(), z.columns()));
                between.forward(walk.peers.compute, ids, z, statistics, into);
            }
            if in_place || walk.forgets() {
                self.spare.take(z);
            }
        }
        if let Some(joined) = walk.network.joined().filter(|_| walk.network.is_top(index)) {
            let (before, last) = self.tapes.split_at_mut(index + 1);
            let xs = rows_of(joined, before.iter().map(|tape| &tape.x), &self.jumping.top);
            join_all(walk.peers.compute, joined, &xs, &mut last[0].x);
        }
        Ok(())
    }

    /// Runs the network backward from [`Pass::logits_gradient`] and adds to `g`.
    ///
    /// # Errors
    /// If a peer does not answer, or a codec refuses the rows.
    pub fn backward(&mut self, walk: &mut Walk<'_, '_>, g: &mut [f32]) -> Result<()> {
        self.store_gradient(walk);
        for index in (1..walk.network.units().len()).rev() {
            self.unit_backward(walk, index, &mut g[walk.network.ranges(index).layer.clone()])?;
            self.activate_backward(walk, index, g)?;
            // Rows that are put together again for the last unit are read until the end.
            if walk.network.joined().is_none() {
                self.spare.take(&mut self.tapes[index].x);
            }
            // Where they are folds, too, their own unit reads them once more.
            if !walk.outputs_replace_folds(index - 1) {
                self.spare.take(&mut self.tapes[index - 1].z);
            }
        }
        self.first_backward(walk, g)
    }

    /// Stores the gradient that the backward pass starts from as the others are.
    fn store_gradient(&mut self, walk: &Walk<'_, '_>) {
        if walk.context.precision != self.gradient.precision() {
            let (rows, columns) = (self.gradient.rows(), self.gradient.columns());
            self.spare.shape(&mut self.next_gradient, (rows, columns));
            let exact = Rows::Dense(&self.gradient);
            copy_scaled(walk.peers.compute, &mut self.next_gradient, Store::Set, exact, 1.0, None);
            self.spare.take(&mut self.gradient);
            std::mem::swap(&mut self.gradient, &mut self.next_gradient);
        }
    }

    /// One unit behind the first; `g` are the gradients of its own parameters. What it alone has read is nobody's from
    /// then on.
    fn unit_backward(&mut self, walk: &mut Walk<'_, '_>, index: usize, g: &mut [f32]) -> Result<()> {
        let layer = walk.network.units()[index].layer.as_ref();
        let (p, nodes) = (&walk.p[walk.network.ranges(index).layer.clone()], walk.graph_of(index).nodes);
        let (put_out, read) = (nodes.ids.len(), walk.senders(index).ids.len());
        let exchanges = layer.facts().message_width > 0;
        self.make_again(walk, index);
        if let Some(undivided) = walk.undivided(index) {
            self.undivided_backward(walk, index, undivided, g);
            return Ok(());
        }
        let Tape { x, near, z, .. } = &mut self.tapes[index];
        let (dz, dx, returning) = (&mut self.gradient, &mut self.next_gradient, &mut self.returning);
        let is_frugal = walk.makes_rows_again(index) && !layer.facts().message_has_parameters;
        if walk.folds_again(index) && exchanges {
            near.refold(walk, index, Rows::Dense(x), &mut self.spare);
        }
        let in_place = walk.outputs_replace_folds(index);
        let folded = Rows::Dense(if in_place { z } else { &near.folded });
        let at = &mut At { compute: walk.peers.compute, p, nodes, state: &mut near.state };
        layer.add_close_gradients(at, g, Closing { x: Rows::Span(x.span(0..put_out)), folded }, dz);
        self.spare.take(&mut near.folded);
        if in_place && !walk.is_last(index) {
            self.spare.take(z);
        }
        if is_frugal {
            // Nobody reads them any more but what stands before this unit.
            self.spare.take(x);
        }
        let reads_rows = layer.facts().reads_own_row;
        if reads_rows {
            self.spare.shape(dx, (read, layer.facts().inputs));
        }
        if exchanges && !in_place {
            self.spare.shape(&mut returning.folded, (put_out, layer.facts().fold_width));
        }
        let (dfolded, of_rows) = (exchanges.then_some(&mut returning.folded), reads_rows.then_some(&mut *dx));
        let wanted = Wanted { dfolded, dx: of_rows };
        let at = &mut At { compute: walk.peers.compute, p, nodes, state: &mut near.state };
        layer.close_adjoint(at, dz, wanted);
        self.spare.take(dz);
        if reads_rows {
            // Rows that it read and did not output follow, and are zeros.
            dx.reshape(read, layer.facts().inputs);
        }
        if exchanges {
            let store = if reads_rows { Store::Add } else { Store::Set };
            let x = Rows::Dense(x);
            near.scatter(walk, UnitRows { index, x }, returning, &mut self.spare, g, Some((dx, store)))?;
        }
        std::mem::swap(&mut self.gradient, &mut self.next_gradient);
        self.make_again(walk, index);
        Ok(())
    }

    /// The same, of a unit that is one function: its rows become their gradient. What is put together for the last unit
    /// is read until the end.
    fn undivided_backward(&mut self, walk: &mut Walk<'_, '_>, index: usize, undivided: &dyn Undivided, g: &mut [f32]) {
        let (p, graph) = (&walk.p[walk.network.ranges(index).layer.clone()], walk.graph_of(index));
        let nodes = graph.nodes;
        let Tape { x, near, .. } = &mut self.tapes[index];
        [&mut near.messages, &mut near.folded].into_iter().for_each(|unread| self.spare.take(unread));
        if walk.network.joined().is_some() {
            self.spare.shape(&mut self.next_gradient, (x.rows(), x.columns()));
            copy_scaled(walk.peers.compute, &mut self.next_gradient, Store::Set, Rows::Dense(x), 1.0, None);
        } else {
            std::mem::swap(x, &mut self.next_gradient);
        }
        let edges = Whole { weight: walk.sender_weight(index), block: graph.own };
        let through = walk.returns_through(index);
        let at = &mut At { compute: walk.peers.compute, p, nodes, state: &mut near.state };
        undivided.backward(at, g, edges, &self.gradient, (&mut self.next_gradient, through));
        self.spare.take(&mut self.gradient);
        std::mem::swap(&mut self.gradient, &mut self.next_gradient);
    }

    /// Makes the rows that a unit reads again, where they were not kept.
    fn make_again(&mut self, walk: &Walk<'_, '_>, index: usize) {
        let (before, after) = self.tapes.split_at_mut(index);
        if let ([.., Tape { z, statistics, .. }], Some(Tape { x, .. })) = (before, after.first_mut())
            && walk.makes_rows_again(index)
            && (x.rows(), x.columns()) != (z.rows(), z.columns())
        {
            self.spare.shape(x, (z.rows(), z.columns()));
            walk.between(index - 1).forward(walk.peers.compute, walk.senders(index).ids, z, statistics, x);
        }
    }

    /// The adjoint of what stands before unit `index`; `g` are the gradients of the whole network.
    fn activate_backward(&mut self, walk: &mut Walk<'_, '_>, index: usize, g: &mut [f32]) -> Result<()> {
        let (last, Jumping { top, gradient: kept }) = (self.tapes.len() - 1, &mut self.jumping);
        if let Some(joined) = walk.network.joined() {
            let xs = rows_of(joined, self.tapes[..last].iter().map(|tape| &tape.x), top);
            let out = &self.tapes[last].x;
            return_part(walk.peers.compute, joined, index, &xs, out, kept, &mut self.gradient);
        }
        let Tape { z, statistics, .. } = &self.tapes[index - 1];
        let out = if walk.network.is_top(index - 1) { &*top } else { &self.tapes[index].x };
        let out = Some(out).filter(|_| walk.returns_through(index) == Through::All);
        let done = Activated { out, z, statistics };
        let (between, ids) = (walk.between(index - 1), walk.senders(index).ids);
        between.backward(walk.peers.compute, ids, &mut self.gradient, done, g);
        between.return_columns(walk.peers, &mut self.gradient, done, g)
    }
}
