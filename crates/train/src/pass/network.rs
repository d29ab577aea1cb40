//! One pass of a network over a worker's rows, forward and backward: the only place where layers meet the exchange.
//!
//! Overlap is the order of statements here and nowhere else. Forward: start the exchange, fold the local block, finish, fold the
//! halo block. Backward is the mirror: the halo's gradients are computed and sent first, then the local block's.

use laconic_key::{Key, Purpose};
use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::Dropout;
use laconic_nn::kernels::normalise::{Activated, Activation, Affine, activate, activate_adjoint};
use laconic_nn::network::{After, Network};
use laconic_nn::{At, Closing, Matrix, Rows, Senders, Side, Sources, State, Wanted};
use laconic_wire::{Direction, Kind, Tag};

use crate::error::Result;
use crate::exchange::drawn::Presence;
use crate::exchange::peers::Peers as Links;
use crate::pass::inputs::{Dropped, Ground, Inputs, Neighbours, fold_once, weigh, weigh_adjoint};

/// What a pass is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassContext {
    /// The round that messages and dropout masks carry.
    pub round: u32,
    /// The number of the network's first layer, counted over stages.
    pub first_layer: u16,
    /// With dropout and to be followed by a backward pass, or without.
    pub training: bool,
    /// The run's seed.
    pub seed: u64,
}

impl PassContext {
    fn tag(&self, unit: usize, direction: Direction) -> Tag {
        let kind = match (self.training, direction, unit) {
            (false, ..) => Kind::Evaluation,
            (true, Direction::Reverse, _) => Kind::ActivationGradients,
            (true, Direction::Forward, 0) => Kind::Features,
            (true, Direction::Forward, _) => Kind::Activations,
        };
        Tag { kind, direction, layer: self.first_layer + unit as u16, round: self.round, step: 0 }
    }

    fn dropout(&self, purpose: Purpose, unit: usize, probability: f32) -> Option<Dropout> {
        let layer = u64::from(self.first_layer) + unit as u64;
        let key = Key::new(self.seed, purpose).with(self.round.into()).with(layer);
        (self.training && probability > 0.0).then_some(Dropout { probability, key })
    }
}

/// What one unit's forward pass leaves for its backward pass; memory is used again every round.
#[derive(Default)]
struct Tape {
    /// Input rows: output of the unit before, after norm, ReLU and dropout. Empty in the first unit.
    x: Matrix,
    messages: Matrix,
    halo_messages: Matrix,
    folded: Matrix,
    z: Matrix,
    statistics: Matrix,
    state: State,
    /// How much each halo row counted.
    presence: Presence,
}

/// The memory of passes over one network.
#[derive(Default)]
pub struct Pass {
    tapes: Vec<Tape>,
    own_inputs: Dropped,
    folded_inputs: Dropped,
    halo_inputs: Dropped,
    gradient: Matrix,
    next_gradient: Matrix,
    folded_gradient: Matrix,
    message_gradient: Matrix,
    halo_gradient: Matrix,
    nothing: Matrix,
}

impl Pass {
    /// The output of the last forward pass; rows × classes.
    pub fn logits(&self) -> &Matrix {
        &self.tapes.last().expect("a network has layers").z
    }

    /// The rows that the first unit handed on in the last forward pass, after norm and ReLU.
    pub fn hidden(&self) -> &Matrix {
        &self.tapes[1].x
    }

    /// The rows that the last of several units read in the last forward pass.
    pub fn last_hidden(&self) -> Option<&Matrix> {
        self.tapes.get(1..)?.last().map(|tape| &tape.x)
    }

    /// The gradient that [`Pass::backward`] starts from; rows × classes.
    pub fn logits_gradient(&mut self) -> (&mut Matrix, &Matrix) {
        (&mut self.gradient, &self.tapes.last().expect("a network has layers").z)
    }

    /// Runs the network forward.
    pub fn forward(
        &mut self,
        links: &mut Links<'_>,
        ground: Ground<'_>,
        network: &Network,
        p: &[f32],
        inputs: &Inputs,
        what: PassContext,
    ) -> Result<()> {
        let units = network.units();
        self.tapes.resize_with(units.len(), Tape::default);
        self.first_unit(links, ground, network, p, inputs, what)?;
        for (index, unit) in units.iter().enumerate() {
            let ranges = network.ranges(index);
            if index > 0 {
                let Tape { x, messages, halo_messages, folded, z, state, presence, .. } = &mut self.tapes[index];
                let (layer, p) = (unit.layer.as_ref(), &p[ranges.layer.clone()]);
                if layer.message_width() > 0 {
                    let at = &mut At { compute: links.compute, p, nodes: ground.nodes, state };
                    layer.message(at, Rows::Dense(x), messages);
                    let tag = what.tag(index, Direction::Forward);
                    *presence =
                        exchange_and_fold(links, ground, layer, p, tag, (messages, halo_messages, folded), state)?;
                }
                let input = Closing { x: Rows::Dense(x), folded: Rows::Dense(folded) };
                layer.close(&mut At { compute: links.compute, p, nodes: ground.nodes, state }, input, z);
            }
            if index + 1 < units.len() {
                let (before, after) = self.tapes.split_at_mut(index + 1);
                let Tape { z, statistics, .. } = &mut before[index];
                let dropout = what.dropout(Purpose::Dropout, index + 1, units[index + 1].dropout);
                let norm = affine(network, index, p);
                let between = Activation { norm, dropout };
                activate(links.compute, &mut after[0].x, z, between, ground.nodes.ids, statistics);
            }
        }
        Ok(())
    }

    /// The first unit, whose inputs are frozen.
    fn first_unit(
        &mut self,
        links: &mut Links<'_>,
        ground: Ground<'_>,
        network: &Network,
        p: &[f32],
        inputs: &Inputs,
        what: PassContext,
    ) -> Result<()> {
        let unit = &network.units()[0];
        let (layer, p) = (unit.layer.as_ref(), &p[network.ranges(0).layer.clone()]);
        let Tape { messages, halo_messages, folded, z, state, presence, .. } = &mut self.tapes[0];
        let nodes = ground.nodes;
        let dropout = what.dropout(Purpose::Dropout, 0, unit.dropout);
        let after_fold = what.dropout(Purpose::AggregateDropout, 0, unit.dropout);
        let x = self.own_inputs.view(links.compute, &inputs.x, dropout, nodes.ids);
        match &inputs.neighbours {
            Neighbours::Nobody => {
                self.nothing.reshape(nodes.ids.len(), 0);
                let input = Closing { x, folded: Rows::Dense(&self.nothing) };
                layer.close(&mut At { compute: links.compute, p, nodes, state }, input, z);
            }
            Neighbours::Folded(frozen) => {
                let folded = self.folded_inputs.view(links.compute, frozen, after_fold, nodes.ids);
                layer.close(&mut At { compute: links.compute, p, nodes, state }, Closing { x, folded }, z);
            }
            Neighbours::Copies(copies) => {
                let halo = self.halo_inputs.view(links.compute, copies, dropout, ground.halo_ids);
                let at = &mut At { compute: links.compute, p, nodes, state };
                layer.message(at, x, messages);
                layer.message(at, halo, halo_messages);
                weigh(at.compute, layer, &inputs.presence, halo_messages, at.state);
                layer.fold(at, Sources { side: Side::Own, block: ground.own, messages }, folded);
                layer.fold(at, Sources { side: Side::Halo, block: ground.halo, messages: halo_messages }, folded);
                layer.finish_fold(at, folded);
                layer.close(at, Closing { x, folded: Rows::Dense(folded) }, z);
            }
            Neighbours::Exchanged if layer.message_has_parameters() => {
                layer.message(&mut At { compute: links.compute, p, nodes, state }, x, messages);
                let tag = what.tag(0, Direction::Forward);
                *presence = exchange_and_fold(links, ground, layer, p, tag, (messages, halo_messages, folded), state)?;
                let input = Closing { x, folded: Rows::Dense(folded) };
                layer.close(&mut At { compute: links.compute, p, nodes, state }, input, z);
            }
            Neighbours::Exchanged => {
                // The same arithmetic as with a kept fold: dropout comes after it.
                fold_once(links, ground, layer, inputs.x.view(), what.tag(0, Direction::Forward), folded)?;
                let fresh = laconic_nn::Operand::Dense(std::mem::take(folded));
                let view = self.folded_inputs.view(links.compute, &fresh, after_fold, nodes.ids);
                layer.close(&mut At { compute: links.compute, p, nodes, state }, Closing { x, folded: view }, z);
                let laconic_nn::Operand::Dense(fresh) = fresh else { unreachable!("it was made dense above") };
                *folded = fresh;
            }
        }
        Ok(())
    }

    /// Runs the network backward from [`Pass::logits_gradient`] and adds to `g`.
    pub fn backward(
        &mut self,
        links: &mut Links<'_>,
        ground: Ground<'_>,
        network: &Network,
        (p, g): (&[f32], &mut [f32]),
        inputs: &Inputs,
        what: PassContext,
    ) -> Result<()> {
        let units = network.units();
        for index in (1..units.len()).rev() {
            let layer = units[index].layer.as_ref();
            let ranges = network.ranges(index);
            let (before, after) = self.tapes.split_at_mut(index);
            let Tape { x, messages, halo_messages, folded, state, presence, .. } = &mut after[0];
            let (own_p, own_g) = (&p[ranges.layer.clone()], &mut g[ranges.layer.clone()]);
            let nodes = ground.nodes;
            let (dz, dx, dfolded) = (&mut self.gradient, &mut self.next_gradient, &mut self.folded_gradient);
            let input = Closing { x: Rows::Dense(x), folded: Rows::Dense(folded) };
            let exchanges = layer.message_width() > 0;
            let wanted = Wanted { dfolded: exchanges.then_some(&mut *dfolded), dx: Some(&mut *dx) };
            let at = &mut At { compute: links.compute, p: own_p, nodes, state };
            layer.close_adjoint(at, own_g, input, dz, wanted);
            if exchanges {
                let (dm, dhalo) = (&mut self.message_gradient, &mut self.halo_gradient);
                let halo = Sources { side: Side::Halo, block: ground.halo, messages: halo_messages };
                layer.fold_adjoint(at, own_g, halo, dfolded, dhalo);
                let tag = what.tag(index, Direction::Reverse);
                weigh_adjoint(links.compute, layer, presence, dhalo);
                // Halo gradients go out before the local product, so that the wire works while we do.
                links.exchange(tag, dhalo, dm, |compute, dm| {
                    let own = Sources { side: Side::Own, block: ground.own, messages };
                    layer.fold_adjoint(&mut At { compute, p: own_p, nodes, state }, own_g, own, dfolded, dm);
                })?;
                let store = if layer.reads_own_row() { Store::Add } else { Store::Set };
                let senders = Senders { side: Side::Own, x: Rows::Dense(x), messages };
                let at = &mut At { compute: links.compute, p: own_p, nodes, state };
                layer.message_adjoint(at, own_g, senders, dm, Some((dx, store)));
            }
            std::mem::swap(&mut self.gradient, &mut self.next_gradient);
            let Tape { z, statistics, .. } = &before[index - 1];
            let dropout = what.dropout(Purpose::Dropout, index, units[index].dropout);
            let norm = affine(network, index - 1, p);
            let ranges = network.ranges(index - 1);
            let (dweight, dbias) = two_mut(g, ranges.norm_weight.clone(), ranges.norm_bias.clone());
            let gradients = (dweight, dbias);
            let (between, done) = (Activation { norm, dropout }, Activated { out: x, z, statistics });
            activate_adjoint(links.compute, &mut self.gradient, between, done, gradients);
        }
        self.first_unit_backward(links, ground, network, (p, g), inputs, what)
    }

    fn first_unit_backward(
        &mut self,
        links: &mut Links<'_>,
        ground: Ground<'_>,
        network: &Network,
        (p, g): (&[f32], &mut [f32]),
        inputs: &Inputs,
        what: PassContext,
    ) -> Result<()> {
        let layer = network.units()[0].layer.as_ref();
        let range = network.ranges(0).layer.clone();
        let (p, g) = (&p[range.clone()], &mut g[range]);
        let Tape { messages, halo_messages, folded, state, presence, .. } = &mut self.tapes[0];
        let nodes = ground.nodes;
        let x = self.own_inputs.last(&inputs.x);
        let dz = &mut self.gradient;
        let fresh;
        let folded = match &inputs.neighbours {
            Neighbours::Nobody => Rows::Dense(&self.nothing),
            Neighbours::Folded(frozen) => self.folded_inputs.last(frozen),
            Neighbours::Exchanged if !layer.message_has_parameters() => {
                fresh = laconic_nn::Operand::Dense(std::mem::take(folded));
                self.folded_inputs.last(&fresh)
            }
            _ => Rows::Dense(folded),
        };
        let input = Closing { x, folded };
        let at = &mut At { compute: links.compute, p, nodes, state };
        if !layer.message_has_parameters() {
            layer.close_adjoint(at, g, input, dz, Wanted::default());
            return Ok(());
        }
        let (dfolded, dm, dhalo) = (&mut self.folded_gradient, &mut self.message_gradient, &mut self.halo_gradient);
        let halo = Sources { side: Side::Halo, block: ground.halo, messages: halo_messages };
        let own = Sources { side: Side::Own, block: ground.own, messages };
        layer.close_adjoint(at, g, input, dz, Wanted { dfolded: Some(dfolded), dx: None });
        layer.fold_adjoint(at, g, halo, dfolded, dhalo);
        match &inputs.neighbours {
            Neighbours::Copies(copies) => {
                layer.fold_adjoint(at, g, own, dfolded, dm);
                let x = self.halo_inputs.last(copies);
                layer.message_adjoint(at, g, Senders { side: Side::Halo, x, messages: halo_messages }, dhalo, None);
            }
            _ => {
                weigh_adjoint(links.compute, layer, presence, dhalo);
                links.exchange(what.tag(0, Direction::Reverse), dhalo, dm, |compute, dm| {
                    layer.fold_adjoint(&mut At { compute, p, nodes, state }, g, own, dfolded, dm);
                })?;
            }
        }
        let at = &mut At { compute: links.compute, p, nodes, state };
        layer.message_adjoint(at, g, Senders { side: Side::Own, x, messages }, dm, None);
        Ok(())
    }
}

/// Sends messages and folds both blocks, the local one while the halo's travel.
fn exchange_and_fold(
    links: &mut Links<'_>,
    ground: Ground<'_>,
    layer: &dyn laconic_nn::Layer,
    p: &[f32],
    tag: Tag,
    (messages, halo_messages, folded): (&Matrix, &mut Matrix, &mut Matrix),
    state: &mut State,
) -> Result<Presence> {
    halo_messages.reshape(links.halo.rows(), messages.columns());
    let presence = links.exchange(tag, messages, halo_messages, |compute, _| {
        let own = Sources { side: Side::Own, block: ground.own, messages };
        layer.fold(&mut At { compute, p, nodes: ground.nodes, state }, own, folded);
    })?;
    weigh(links.compute, layer, &presence, halo_messages, state);
    let at = &mut At { compute: links.compute, p, nodes: ground.nodes, state };
    layer.fold(at, Sources { side: Side::Halo, block: ground.halo, messages: halo_messages }, folded);
    layer.finish_fold(at, folded);
    Ok(presence)
}

fn affine<'a>(network: &Network, unit: usize, p: &'a [f32]) -> Option<Affine<'a>> {
    let ranges = network.ranges(unit);
    let norm = matches!(network.units()[unit].after, After::NormRelu(_));
    norm.then(|| Affine { weight: &p[ranges.norm_weight.clone()], bias: &p[ranges.norm_bias.clone()] })
}

/// Two adjacent ranges of one slice.
fn two_mut(g: &mut [f32], a: std::ops::Range<usize>, b: std::ops::Range<usize>) -> (&mut [f32], &mut [f32]) {
    let (first, second) = g[a.start..b.end].split_at_mut(a.len());
    (first, second)
}
