//! The first unit of a network, whose inputs are frozen: five ways to know the neighbours, forward and backward.

use laconic_key::Purpose;
use laconic_nn::{At, Closing, Rows, Senders, Side, Sources, Wanted};
use laconic_wire::Direction;

use super::inputs::{Neighbours, fold_once, weigh, weigh_adjoint};
use super::network::{FirstInputs, Pass, Tape, Walk};
use crate::error::Result;

impl Pass {
    pub(super) fn first_forward(&mut self, walk: &mut Walk<'_, '_>) -> Result<()> {
        let unit = &walk.network.units()[0];
        let (layer, inputs, graph) = (unit.layer.as_ref(), walk.inputs, walk.graph);
        let (p, nodes) = (&walk.p[walk.network.ranges(0).layer.clone()], graph.nodes);
        let FirstInputs { own, folded, halo, refolded, nothing } = &mut self.first;
        let tape = &mut self.tapes[0];
        let dropout = walk.context.dropout(Purpose::Dropout, 0, unit.dropout);
        let after_fold = walk.context.dropout(Purpose::AggregateDropout, 0, unit.dropout);
        let x = own.view(walk.peers.compute, &inputs.x, dropout, nodes.ids);
        // `None` where the fold stands on the tape.
        let folded = match &inputs.neighbours {
            Neighbours::Nobody => {
                nothing.reshape(nodes.ids.len(), 0);
                Some(Rows::Dense(nothing))
            }
            Neighbours::Folded(frozen) => Some(folded.view(walk.peers.compute, frozen, after_fold, nodes.ids)),
            Neighbours::Copies(copies) => {
                let copies = halo.view(walk.peers.compute, copies, dropout, graph.halo_ids);
                let Tape { messages, halo_messages, folded, state, .. } = &mut *tape;
                let at = &mut At { compute: walk.peers.compute, p, nodes, state };
                layer.message(at, x, messages);
                layer.message(at, copies, halo_messages);
                weigh(at.compute, layer, &inputs.presence, halo_messages, at.state);
                layer.fold(at, Sources { side: Side::Own, block: graph.own, messages }, folded);
                layer.fold(at, Sources { side: Side::Halo, block: graph.halo, messages: halo_messages }, folded);
                layer.finish_fold(at, folded);
                None
            }
            Neighbours::Exchanged if layer.message_has_parameters() => {
                let at = &mut At { compute: walk.peers.compute, p, nodes, state: &mut tape.state };
                layer.message(at, x, &mut tape.messages);
                tape.exchange_and_fold(walk, 0)?;
                None
            }
            Neighbours::Exchanged => {
                // The same arithmetic as with a kept fold: dropout comes after it.
                let tag = walk.context.tag(0, Direction::Forward);
                fold_once(walk.peers, graph, layer, inputs.x.view(), tag, refolded.dense_mut())?;
                Some(folded.view(walk.peers.compute, refolded, after_fold, nodes.ids))
            }
        };
        let Tape { folded: own_fold, z, state, .. } = tape;
        let folded = match folded {
            Some(rows) => rows,
            None => Rows::Dense(own_fold),
        };
        layer.close(&mut At { compute: walk.peers.compute, p, nodes, state }, Closing { x, folded }, z);
        Ok(())
    }

    pub(super) fn first_backward(&mut self, walk: &mut Walk<'_, '_>, g: &mut [f32]) -> Result<()> {
        let (layer, inputs, graph) = (walk.network.units()[0].layer.as_ref(), walk.inputs, walk.graph);
        let range = walk.network.ranges(0).layer.clone();
        let (p, g, nodes) = (&walk.p[range.clone()], &mut g[range], graph.nodes);
        let FirstInputs { own, folded: kept, halo, refolded, nothing } = &self.first;
        let Tape { messages, halo_messages, folded, state, presence, .. } = &mut self.tapes[0];
        let x = own.last(&inputs.x);
        let folded = match &inputs.neighbours {
            Neighbours::Nobody => Rows::Dense(nothing),
            Neighbours::Folded(frozen) => kept.last(frozen),
            Neighbours::Exchanged if !layer.message_has_parameters() => kept.last(refolded),
            _ => Rows::Dense(folded),
        };
        let (input, dz) = (Closing { x, folded }, &mut self.gradient);
        let at = &mut At { compute: walk.peers.compute, p, nodes, state };
        if !layer.message_has_parameters() {
            layer.close_adjoint(at, g, input, dz, Wanted::default());
            return Ok(());
        }
        let (dfolded, dm, dhalo) = (&mut self.folded_gradient, &mut self.message_gradient, &mut self.halo_gradient);
        let halo_sources = Sources { side: Side::Halo, block: graph.halo, messages: halo_messages };
        let own_sources = Sources { side: Side::Own, block: graph.own, messages };
        layer.close_adjoint(at, g, input, dz, Wanted { dfolded: Some(dfolded), dx: None });
        layer.fold_adjoint(at, g, halo_sources, dfolded, dhalo);
        match &inputs.neighbours {
            Neighbours::Copies(copies) => {
                layer.fold_adjoint(at, g, own_sources, dfolded, dm);
                let x = halo.last(copies);
                layer.message_adjoint(at, g, Senders { side: Side::Halo, x, messages: halo_messages }, dhalo, None);
            }
            _ => {
                weigh_adjoint(walk.peers.compute, layer, presence, dhalo);
                walk.peers.exchange(walk.context.tag(0, Direction::Reverse), dhalo, dm, |compute, dm| {
                    layer.fold_adjoint(&mut At { compute, p, nodes, state }, g, own_sources, dfolded, dm);
                })?;
            }
        }
        let at = &mut At { compute: walk.peers.compute, p, nodes, state };
        layer.message_adjoint(at, g, Senders { side: Side::Own, x, messages }, dm, None);
        Ok(())
    }
}

impl Tape {
    /// Sends this unit's messages and folds both blocks, the local one while the halo's travel.
    pub(super) fn exchange_and_fold(&mut self, walk: &mut Walk<'_, '_>, index: usize) -> Result<()> {
        let layer = walk.network.units()[index].layer.as_ref();
        let (p, graph) = (&walk.p[walk.network.ranges(index).layer.clone()], walk.graph);
        let Tape { messages, halo_messages, folded, state, presence, .. } = self;
        halo_messages.reshape(walk.peers.halo.rows(), messages.columns());
        let tag = walk.context.tag(index, Direction::Forward);
        *presence = walk.peers.exchange(tag, messages, halo_messages, |compute, _| {
            let own = Sources { side: Side::Own, block: graph.own, messages };
            layer.fold(&mut At { compute, p, nodes: graph.nodes, state }, own, folded);
        })?;
        weigh(walk.peers.compute, layer, presence, halo_messages, state);
        let at = &mut At { compute: walk.peers.compute, p, nodes: graph.nodes, state };
        layer.fold(at, Sources { side: Side::Halo, block: graph.halo, messages: halo_messages }, folded);
        layer.finish_fold(at, folded);
        Ok(())
    }
}
