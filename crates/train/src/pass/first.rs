//! The first unit of a network, whose inputs are frozen: five ways to know the neighbours, forward and backward.

use laconic_key::Purpose;
use laconic_nn::{At, Closing, Dropout, Facts, Layer, Rows, Senders, Side, Sources, Wanted};
use laconic_wire::Direction;

use super::inputs::{Neighbours, first_rows};
use super::neighbourhood::{Neighbourhood, Returning, UnitRows};
use super::network::{FirstInputs, Pass, Tape};
use super::walk::Walk;
use crate::error::Result;

/// Whether a layer reads own rows, as they are or in messages; else it reads kept folds alone.
fn reads_rows(layer: &dyn Layer) -> bool {
    layer.facts().reads_own_row || layer.facts().message_has_parameters
}

/// What the rows of a network's inputs are dropped out with, and kept folds of them.
fn dropouts(walk: &Walk<'_, '_>) -> (Option<Dropout>, Option<Dropout>) {
    let of = |purpose| walk.context.dropout(purpose, 0, walk.network.units()[0].dropout);
    (of(Purpose::Dropout), of(Purpose::AggregateDropout))
}

impl Pass {
    pub(super) fn first_forward(&mut self, walk: &mut Walk<'_, '_>) -> Result<()> {
        let unit = &walk.network.units()[0];
        let (layer, inputs, graph) = (unit.layer.as_ref(), walk.inputs, walk.graph_of(0));
        let (p, nodes) = (&walk.p[walk.network.ranges(0).layer.clone()], graph.nodes);
        let FirstInputs { own, folded, halo, refolding, refolded, nothing } = &mut self.first;
        let tape = &mut self.tapes[0];
        let in_place = walk.outputs_replace_folds(0);
        if in_place {
            self.spare.take(&mut tape.z);
        }
        let (dropout, after_fold) = dropouts(walk);
        let (rows, halo_ids) = (nodes.ids.len(), graph.halo_nodes.ids);
        let x = own.view(first_rows(&inputs.x, rows), dropout.filter(|_| reads_rows(layer)), nodes.ids);
        // `None` where the fold stands on the tape.
        let folded = match &inputs.neighbours {
            Neighbours::Nobody => {
                nothing.reshape(rows, 0);
                Some(Rows::Dense(nothing))
            }
            Neighbours::Folded(frozen) => Some(folded.view(first_rows(frozen, rows), after_fold, nodes.ids)),
            Neighbours::Copies(copies) => {
                tape.near.fold_copies(walk, x, halo.view(copies.view(), dropout, halo_ids), &mut self.spare);
                None
            }
            Neighbours::Exchanged if layer.facts().message_has_parameters => {
                tape.near.gather(walk, 0, x, &mut self.spare)?;
                None
            }
            Neighbours::Exchanged => {
                // The same arithmetic as with a kept fold: dropout comes after it.
                let tag = walk.context.tag(0, Direction::Forward);
                let into = refolded.dense_mut();
                into.store_as(walk.context.precision);
                refolding.fold(walk.peers, graph, layer, (inputs.x.view(), tag), into)?;
                Some(folded.view(refolded.view(), after_fold, nodes.ids))
            }
        };
        let Tape { near: Neighbourhood { folded: own_fold, state, .. }, z, .. } = tape;
        if in_place {
            std::mem::swap(z, own_fold);
        } else {
            self.spare.shape_as(z, (x.rows(), layer.facts().outputs), walk.stores_outputs(0));
            let folded = match folded {
                Some(rows) => rows,
                None => Rows::Dense(own_fold),
            };
            layer.close(&mut At { compute: walk.peers.compute, p, nodes, state }, Closing { x, folded }, z);
        }
        Ok(())
    }

    pub(super) fn first_backward(&mut self, walk: &mut Walk<'_, '_>, g: &mut [f32]) -> Result<()> {
        let (layer, inputs, graph) = (walk.network.units()[0].layer.as_ref(), walk.inputs, walk.graph_of(0));
        let Facts { message_has_parameters, message_width, fold_width, .. } = *layer.facts();
        let range = walk.network.ranges(0).layer.clone();
        let (p, g, nodes) = (&walk.p[range.clone()], &mut g[range], graph.nodes);
        let FirstInputs { own, folded: kept, halo, refolded, nothing, .. } = &self.first;
        let (Tape { near, z, .. }, returning) = (&mut self.tapes[0], &mut self.returning);
        let (in_place, makes_messages_again) = (walk.outputs_replace_folds(0), walk.makes_messages_again(0));
        let (dropout, after_fold) = dropouts(walk);
        let (ids, rows, halo_ids) = (nodes.ids, nodes.ids.len(), graph.halo_nodes.ids);
        let x = own.last(first_rows(&inputs.x, rows), dropout.filter(|_| reads_rows(layer)), ids);
        let folded = match &inputs.neighbours {
            Neighbours::Nobody => Rows::Dense(nothing),
            Neighbours::Folded(frozen) => kept.last(first_rows(frozen, rows), after_fold, ids),
            Neighbours::Exchanged if !message_has_parameters => kept.last(refolded.view(), after_fold, ids),
            _ => Rows::Dense(if in_place { z } else { &near.folded }),
        };
        let (input, dz) = (Closing { x, folded }, &mut self.gradient);
        let at = &mut At { compute: walk.peers.compute, p, nodes, state: &mut near.state };
        layer.add_close_gradients(at, g, input, dz);
        self.spare.take(&mut near.folded);
        if in_place && !walk.is_last(0) {
            self.spare.take(z);
        }
        if !message_has_parameters {
            self.spare.take(dz);
            return Ok(());
        }
        if !in_place {
            self.spare.shape(&mut returning.folded, (dz.rows(), fold_width));
        }
        let at = &mut At { compute: walk.peers.compute, p, nodes, state: &mut near.state };
        layer.close_adjoint(at, dz, Wanted { dfolded: Some(&mut returning.folded), dx: None });
        self.spare.take(dz);
        let Neighbours::Copies(copies) = &inputs.neighbours else {
            return near.scatter(walk, UnitRows { index: 0, x }, returning, &mut self.spare, g, None);
        };
        let Returning { folded: dfolded, messages: dm, halo: dhalo, .. } = returning;
        let Neighbourhood { messages, halo_messages, state, .. } = near;
        let at = &mut At { compute: walk.peers.compute, p, nodes, state };
        if makes_messages_again {
            self.spare.shape(messages, (x.rows(), message_width));
            layer.message(at, x, messages);
        }
        let halo_sources = Sources::new(Side::Halo, graph.halo, halo_messages);
        self.spare.shape_halo(dhalo, (graph.halo.sources(), message_width));
        layer.fold_adjoint(at, g, halo_sources, dfolded, dhalo);
        self.spare.shape(dm, (messages.rows(), messages.columns()));
        layer.fold_adjoint(at, g, Sources::new(Side::Own, graph.own, messages), dfolded, dm);
        self.spare.take(dfolded);
        let copies = halo.last(copies.view(), dropout, halo_ids);
        let senders = Senders { side: Side::Halo, x: copies, messages: halo_messages };
        at.nodes = graph.halo_nodes;
        layer.message_adjoint(at, g, senders, dhalo, None);
        at.nodes = nodes;
        layer.message_adjoint(at, g, Senders { side: Side::Own, x, messages }, dm, None);
        [dm, messages].into_iter().for_each(|used| self.spare.take(used));
        [dhalo, halo_messages].into_iter().for_each(|used| self.spare.take_halo(used));
        Ok(())
    }
}
