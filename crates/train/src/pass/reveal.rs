//! Progressive reveal: rows that never change cross bit by bit, and what has come stays.
//!
//! Fresh random subsets would send the same columns again and again. Here a mask draws its columns without replacement:
//! once the ratio has come down to 1, every column has crossed exactly once. Likewise rows that were quantised coarsely
//! are refined, when the bits go up, by their residual: what is missing between the row and what the receiver holds,
//! quantised to the bits that were added, two at least. Training starts on the first slice, so the rest travels while
//! it goes on.

use laconic_key::{Key, Purpose};
use laconic_nn::kernels::columns::{add_columns, gather_columns, scatter_columns};
use laconic_nn::kernels::{self, fold::sum_fold};
use laconic_nn::{At, Compute, Ending, Layer, Matrix, Nodes, Operand, Side, Sources, State};
use laconic_wire::codec::{self, Bits, Codec, CodecRegistry, Level, Memory, Message, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Frame, Ledger, Rank, Tag};

use crate::config::ramp::{Reading, kept_columns};
use crate::error::Result;
use crate::exchange::drawn::{Presence, Route};
use crate::exchange::halo::{Request, refused};
use crate::exchange::peers::Peers;
use crate::messages::coding::{Coding, Widths, width_above, width_below};
use crate::pass::inputs::{Inputs, LocalGraph, Neighbours, travelling, weigh};
use crate::selection::Scope;

/// What one round adds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    /// Columns that cross for the first time, in ascending order.
    columns: Vec<u32>,
    /// Their bits.
    bits: u8,
    /// Bits by which all columns that crossed before are refined; 0 for none.
    refine: u8,
}

/// What is revealed when: depends on the configuration and the round alone, so that it can be predicted.
#[derive(Debug, Clone)]
struct Agenda {
    coding: Coding,
    order: Vec<u32>,
    shown: usize,
    bits: u8,
}

impl Agenda {
    fn new(coding: &Coding, seed: u64, tag: Tag, width: usize) -> Agenda {
        let mut order: Vec<u32> = (0..width as u32).collect();
        if !coding.takes_prefix {
            Key::new(seed, Purpose::Mask).with(u64::from(u32::MAX) + 1).with(tag.layer.into()).shuffle(&mut order);
        }
        // What never changes is revealed by epochs whatever the clock, so that a resumed run can reveal it again.
        Agenda { coding: coding.by_epochs(), order, shown: 0, bits: 0 }
    }

    /// The step of a round.
    fn step(&mut self, reading: &Reading) -> Step {
        let (reads, width) = (self.coding.kind.reads, self.order.len());
        let wanted = if reads.ratio { kept_columns(width, self.coding.ratio.at(reading)) } else { width };
        let bits = match &self.coding.widths {
            Widths::Same(bits) if reads.bits => width_below(bits.at(reading)),
            // Widths of single messages are for messages that repeat; what is revealed has the assigner's first width
            // throughout.
            _ => self.coding.first_bits(),
        };
        // A residual ranges over two steps, so that with a single bit its own step would be wider than the one it
        // refines.
        let more = bits.saturating_sub(self.bits);
        let refine = if self.shown > 0 && more > 0 { width_above(more.max(2)) } else { 0 };
        let mut columns = self.order[self.shown..wanted.max(self.shown)].to_vec();
        columns.sort_unstable();
        self.shown += columns.len();
        self.bits = self.bits.max(bits);
        Step { columns, bits: self.bits, refine }
    }
}

/// Frozen inputs that are being revealed.
pub struct Reveal {
    agenda: Agenda,
    codec: Box<dyn Codec>,
    tag: Tag,
    /// Own travelling rows.
    own: Matrix,
    /// What is kept of the halo's: copies, or where messages have no parameters their fold with the own block's.
    kept: Matrix,
    /// Per peer the rows that it gets, and what it knows of them where that is ever refined.
    send: Vec<(Vec<u32>, Vec<f32>)>,
    /// Per peer the halo rows that come from it.
    receive: Vec<Vec<u32>>,
    presence: Presence,
    refines: bool,
}

impl Reveal {
    /// Prepares to reveal the inputs of a layer; nothing has crossed yet.
    ///
    /// # Errors
    /// If the codec of values cannot be made.
    pub fn new(
        peers: &mut Peers<'_>,
        layer: &dyn Layer,
        nodes: &Nodes<'_>,
        x: &Operand,
        at: (Tag, Scope),
    ) -> Result<Reveal> {
        let (tag, scope) = at;
        let own = travelling(peers.compute, layer, nodes, x.view());
        let coding = peers.halo.coders.coding(tag).clone();
        let refines = coding.refines();
        let (send, receive) = peers.halo.rows_of(Request::now(tag, scope));
        let known = |rows: &Vec<u32>| if refines { vec![0.0; rows.len() * own.columns()] } else { Vec::new() };
        let send = send.into_iter().map(|rows| (rows.clone(), known(&rows))).collect();
        Ok(Reveal {
            codec: peers.halo.coders.build(coding.of_values())?,
            agenda: Agenda::new(&coding, peers.halo.seed(), tag, own.columns()),
            tag,
            kept: Matrix::zeros(peers.halo.rows(), own.columns()),
            own,
            send,
            receive,
            presence: peers.halo.presence(Request::now(tag, scope)),
            refines,
        })
    }

    /// Inputs of which nothing of the neighbours is known yet.
    pub fn inputs(&mut self, compute: &mut Compute, graph: LocalGraph<'_>, layer: &dyn Layer, x: Operand) -> Inputs {
        if !layer.facts().message_has_parameters {
            let own = Sources::new(Side::Own, graph.own, &self.own);
            let at = &mut At { compute, p: &[], nodes: graph.nodes, state: &mut State::default() };
            layer.fold(at, own, &mut self.kept);
        }
        let mut inputs = Inputs { x, neighbours: Neighbours::Nobody, presence: self.presence.clone() };
        inputs.keep(layer, self.finished(compute, graph, layer));
        inputs
    }

    /// What is kept, where it is a fold with its end.
    fn finished(&self, compute: &mut Compute, graph: LocalGraph<'_>, layer: &dyn Layer) -> Matrix {
        let mut kept = self.kept.clone();
        if !layer.facts().message_has_parameters {
            layer.finish_fold(
                &mut At { compute, p: &[], nodes: graph.nodes, state: &mut State::default() },
                &mut kept,
                Ending::Folds,
            );
        }
        kept
    }

    /// Sends and receives what the round adds and puts it into `inputs`; whether anything was added.
    ///
    /// # Errors
    /// If another worker does not answer, or a codec refuses the rows.
    pub fn advance(
        &mut self,
        peers: &mut Peers<'_>,
        graph: LocalGraph<'_>,
        layer: &dyn Layer,
        round: u32,
        reading: &Reading,
        inputs: &mut Inputs,
    ) -> Result<bool> {
        let before = self.agenda.clone();
        let step = self.agenda.step(reading);
        let tag = Tag { round, ..self.tag };
        if step.refine > 0 {
            let mut columns = before.order[..before.shown].to_vec();
            columns.sort_unstable();
            let came = self.cross(peers, tag.later(1), &columns, step.refine)?;
            self.keep(peers.compute, graph, layer, &columns, came);
        }
        if !step.columns.is_empty() {
            let came = self.cross(peers, tag, &step.columns, step.bits)?;
            self.keep(peers.compute, graph, layer, &step.columns, came);
        }
        let added = step.refine > 0 || !step.columns.is_empty();
        if added {
            inputs.keep(layer, self.finished(peers.compute, graph, layer));
        }
        Ok(added)
    }

    /// Adds these columns of halo rows to what is kept. Messages without parameters are folded by sums, and sums column
    /// by column, so a step costs what its own columns cost.
    fn keep(
        &mut self,
        compute: &mut Compute,
        graph: LocalGraph<'_>,
        layer: &dyn Layer,
        columns: &[u32],
        mut came: Matrix,
    ) {
        let width = self.own.columns();
        if layer.facts().message_has_parameters {
            return add_columns(compute, self.kept.data_mut(), width, columns, came.data());
        }
        weigh(compute, layer, &self.presence, &mut came, &mut State::default());
        let mut folded = Matrix::zeros(self.kept.rows(), columns.len());
        gather_columns(compute, folded.data_mut(), columns, self.kept.data(), width);
        sum_fold(compute, &mut folded, kernels::Store::Add, graph.halo, &came);
        scatter_columns(compute, self.kept.data_mut(), width, columns, folded.data());
    }

    /// Sends these columns of own rows, less what the peers know of them, and returns what comes of the halo's.
    fn cross(&mut self, peers: &mut Peers<'_>, tag: Tag, columns: &[u32], bits: u8) -> Result<Matrix> {
        let Peers { compute, transport, halo, .. } = peers;
        let (rank, size, width) = (halo.rank(), transport.size(), self.own.columns());
        let level = Level { ratio: 1.0, bits: Bits::Uniform(bits) };
        let mut slice = Vec::new();
        for peer in rank.others(size) {
            let (rows, known) = &mut self.send[peer.index()];
            if rows.is_empty() {
                continue;
            }
            slice.clear();
            for (position, &row) in rows.iter().enumerate() {
                let own = self.own.row(row as usize);
                let known = known.get(position * width..(position + 1) * width);
                slice.extend(columns.iter().map(|&c| own[c as usize] - known.map_or(0.0, |known| known[c as usize])));
            }
            let source = RowsRef { data: &slice, columns: columns.len(), rows: RowSet::Range(0..rows.len()) };
            let key = halo.key(Request::now(tag, Scope::Selected), rank, peer);
            let mut frame = Frame::new(tag, transport.buffer_of(self.codec.bytes(&level, rows.len(), columns.len())));
            let message = Message { key: &key, level: &level, memory: &mut Memory::default() };
            codec::write(self.codec.as_mut(), message, source, &mut frame)
                .map_err(|error| refused(error, rank, peer, tag))?;
            if self.refines {
                let target = RowsMut { data: &mut slice, columns: columns.len(), rows: RowSet::Range(0..rows.len()) };
                let message = Message { key: &key, level: &level, memory: &mut Memory::default() };
                self.codec.decode(message, frame.payload(), target, Store::Set)?;
                add_columns(compute, known, width, columns, &slice);
            }
            let (shape, payload) = ((rows.len(), columns.len()), frame.payload().len());
            self.agenda.coding.of_values().count_values(&level, shape, payload, &mut halo.values);
            transport.send(peer, frame)?;
        }
        let mut came = Matrix::zeros(halo.rows(), columns.len());
        for peer in rank.others(size) {
            let rows = &self.receive[peer.index()];
            if rows.is_empty() {
                continue;
            }
            let frame = transport.recv(peer, tag)?;
            let target = RowsMut { data: came.data_mut(), columns: columns.len(), rows: RowSet::Indices(rows) };
            let key = halo.key(Request::now(tag, Scope::Selected), peer, rank);
            let message = Message { key: &key, level: &level, memory: &mut Memory::default() };
            codec::read(self.codec.as_mut(), message, &frame, target, Store::Set)
                .map_err(|error| error.from_peer(rank, peer, tag))?;
            transport.recycle(frame);
        }
        Ok(came)
    }
}

/// Enters what revealing a stage's inputs of this width sends in its rounds; `rounds` gives what controllers see in
/// each.
///
/// # Errors
/// If the codec of values cannot be made.
pub fn forecast(
    route: &Route<'_>,
    registry: &CodecRegistry,
    coding: &Coding,
    request: Request,
    width: usize,
    rounds: impl Iterator<Item = (u32, Reading)>,
    ledger: &mut Ledger,
) -> Result<()> {
    let codec = coding.of_values().build(registry)?;
    let mut agenda = Agenda::new(coding, route.seed, request.tag, width);
    for (round, reading) in rounds {
        let before = agenda.shown;
        let step = agenda.step(&reading);
        let mut enter = |tag: Tag, columns: usize, bits: u8| {
            let level = Level { ratio: 1.0, bits: Bits::Uniform(bits) };
            for (peer, link) in route.links.iter().enumerate() {
                let rows = route.count(request.scope, link.send);
                if rows > 0 && columns > 0 {
                    ledger.record(tag, Rank(peer as u32), codec.bytes(&level, rows, columns));
                }
            }
        };
        let tag = Tag { round, ..request.tag };
        if step.refine > 0 {
            enter(tag.later(1), before, step.refine);
        }
        enter(tag, step.columns.len(), step.bits);
    }
    Ok(())
}
