//! Rows that nobody waits for: independent trainers tell each other theirs every so many means, and fold what has
//! come.
//!
//! A refresh is sent by the first pass after a mean was taken up, layer by layer, so that all trainers' rows come from
//! the same parameters; a trainer folds the latest that is here, whatever mean it is of, and rows that have not come
//! yet are absent. Gradients of these rows go nowhere. It is asynchronous training on historical rows, as pipelined
//! training (PipeGCN, Wan et al., 2022) is with a staleness of one round, but with no bound on it and no wait.
//!
//! Bytes of a refresh are those of one forward exchange of all layers but the first, whose inputs cross once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use laconic_nn::kernels::Store;
use laconic_nn::kernels::elementwise::copy_scaled;
use laconic_nn::{Compute, Matrix, Rows};
use laconic_wire::transport::by_hand::ByHand;
use laconic_wire::{Direction, Frame, Kind, Ledger, Metered, Rank, Tag, Transport, WireError};

use super::drawn::Presence;
use super::halo::{Halo, Request};
use crate::config::Carried;
use crate::error::{Result, TrainError};
use crate::schedule::Stage;
use crate::selection::Scope;

/// Refreshes that a peer gets which says nothing itself: it may have stopped reading, and what is sent to it takes
/// memory until it reads.
const UNHEARD_MAX: u32 = 16;

/// Refreshes of a layer that are kept for the next pass, of each peer.
const COMING_MAX: usize = 4;

/// A trainer's way to the others after they have met.
pub enum Mesh {
    /// A network.
    Network(Box<Metered>),
    /// A simulation, which carries the frames and counts them.
    ByHand(ByHand),
}

impl Mesh {
    fn transport(&mut self) -> &mut dyn Transport {
        match self {
            Mesh::Network(metered) => &mut **metered,
            Mesh::ByHand(by_hand) => by_hand,
        }
    }
}

/// What a trainer knows of others' rows, and when it tells its own.
pub struct Stale {
    /// Means from one refresh to the next.
    every: u32,
    /// What crosses: rows, or their products with weights.
    pub carries: Carried,
    mesh: Option<Mesh>,
    /// The mean whose rows the next pass sends.
    due: Option<u32>,
    /// Whether any rows have been sent since the trainer has come.
    has_told: bool,
    streams: BTreeMap<u16, Stream>,
    /// By peer, refreshes that it was sent since it was heard.
    unheard: Vec<u32>,
    /// Who is gone, or has sent what no trainer sends.
    lost: Vec<bool>,
}

/// One layer's rows.
#[derive(Default)]
struct Stream {
    /// The width of what crosses.
    columns: usize,
    /// The mean that this layer was last told of.
    told: Option<u32>,
    /// What has come from each peer and was not read.
    coming: BTreeMap<Rank, VecDeque<Frame>>,
    /// The latest rows, and which of them have ever come.
    rows: Matrix,
    known: Vec<f32>,
    presence: Presence,
}

impl Stale {
    /// Nothing known, nobody linked; `None` for a stage without such rows.
    pub fn of(stage: &Stage) -> Option<Stale> {
        let late = stage.late?;
        let stream = |columns| Stream { columns, ..Stream::default() };
        let streams = stage.live_exchanges().into_iter().map(|(tag, columns)| (tag.layer, stream(columns))).collect();
        Some(Stale {
            every: late.refresh?.max(1),
            carries: late.carries,
            mesh: None,
            due: None,
            has_told: false,
            streams,
            unheard: Vec::new(),
            lost: Vec::new(),
        })
    }

    /// Links the trainer with the others.
    pub fn link(&mut self, mesh: Mesh) {
        let mut mesh = mesh;
        let size = mesh.transport().size();
        (self.unheard, self.lost) = (vec![0; size], vec![false; size]);
        self.mesh = Some(mesh);
    }

    /// Notes that the trainer goes on from the mean of this number.
    pub fn set_out(&mut self, number: u32) {
        if !self.has_told || number.is_multiple_of(self.every) {
            self.due = Some(number);
        }
    }

    /// Forgets what others have said, as a process does that is started again.
    pub fn restart(&mut self) {
        self.streams.values_mut().for_each(|stream| {
            *stream = Stream { columns: stream.columns, ..Stream::default() };
        });
        (self.due, self.has_told) = (None, false);
        self.unheard.fill(0);
        self.lost.fill(false);
        if let Some(Mesh::ByHand(by_hand)) = &mut self.mesh {
            by_hand.forget();
        }
    }

    /// What this trainer has sent over its network; nothing where somebody else counts.
    pub fn sent(&self) -> Ledger {
        match &self.mesh {
            Some(Mesh::Network(metered)) => metered.sent().clone(),
            _ => Ledger::new(),
        }
    }

    /// Frames to be carried since the last time.
    pub fn take(&mut self) -> Vec<(Rank, Frame)> {
        match &mut self.mesh {
            Some(Mesh::ByHand(by_hand)) => by_hand.take(),
            _ => Vec::new(),
        }
    }

    /// A frame that was carried here.
    pub fn put(&mut self, from: Rank, frame: Frame) {
        if let Some(Mesh::ByHand(by_hand)) = &mut self.mesh {
            by_hand.put(from, frame);
        }
    }

    /// Waits until what was sent has left, as far as somebody is there to take it.
    ///
    /// # Errors
    /// What the transport says, but for peers that are gone.
    pub fn finish(&mut self) -> Result<()> {
        match self.mesh.as_mut().map(|mesh| mesh.transport().finish()) {
            None | Some(Ok(()) | Err(WireError::Gone { .. } | WireError::Unfinished { .. })) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Tells others these `rows` if a refresh is due, and sets `into` to the latest of theirs. Never waits.
    ///
    /// # Errors
    /// If a codec refuses the rows, or the transport fails.
    pub fn exchange(
        &mut self,
        compute: &Compute,
        halo: &mut Halo,
        tag: Tag,
        rows: &Matrix,
        into: &mut Matrix,
    ) -> Result<Presence> {
        let Some(mut mesh) = self.mesh.take() else {
            into.clear();
            return Ok(Some(halo.nobody()));
        };
        let told = self.tell(halo, mesh.transport(), tag, rows).and_then(|()| self.hear(mesh.transport()));
        let Stale { streams, lost, .. } = self;
        let stream = streams.entry(tag.layer).or_default();
        stream.columns = rows.columns();
        stream.read(halo, mesh.transport(), lost);
        self.mesh = Some(mesh);
        told?;
        let stream = &self.streams[&tag.layer];
        copy_scaled(compute, into, Store::Set, Rows::Dense(&stream.rows), 1.0, None);
        Ok(stream.presence.clone())
    }

    /// Whether the next pass over all own rows would tell others.
    pub fn is_due(&self) -> bool {
        let has_others = self.unheard.len() > 1;
        has_others && self.due.is_some() && self.streams.values().any(|stream| stream.told != self.due)
    }

    /// Takes what has come, for passes that tell nothing; they read [`Stale::known`].
    ///
    /// # Errors
    /// If the transport fails.
    pub fn listen(&mut self, halo: &mut Halo) -> Result<()> {
        let Some(mut mesh) = self.mesh.take() else {
            self.streams.values_mut().for_each(|stream| stream.shape(halo));
            return Ok(());
        };
        let heard = self.hear(mesh.transport());
        let Stale { streams, lost, .. } = self;
        streams.values_mut().for_each(|stream| stream.read(halo, mesh.transport(), lost));
        self.mesh = Some(mesh);
        heard
    }

    /// The latest of others' rows for a layer, and which of them have come, as they were when last listened.
    pub fn known(&self, layer: u16) -> Option<(&Matrix, &Presence)> {
        self.streams.get(&layer).map(|stream| (&stream.rows, &stream.presence))
    }

    fn tell(&mut self, halo: &mut Halo, mesh: &mut dyn Transport, tag: Tag, rows: &Matrix) -> Result<()> {
        let stream = self.streams.entry(tag.layer).or_default();
        let Some(number) = self.due.filter(|due| stream.told != Some(*due)) else { return Ok(()) };
        stream.told = Some(number);
        self.has_told = true;
        // Layers of one refresh count once.
        let is_first = self.streams.keys().next() == Some(&tag.layer);
        let request = Request::now(Tag { round: number, ..tag }, Scope::Selected);
        for peer in halo.rank().others(mesh.size()) {
            let expects = halo.hears_from(peer);
            if self.lost[peer.index()] || (expects && self.unheard[peer.index()] >= UNHEARD_MAX) {
                continue;
            }
            if is_first {
                self.unheard[peer.index()] += 1;
            }
            match halo.tell(mesh, request, peer, rows) {
                Err(TrainError::Wire(WireError::Gone { .. })) => self.lost[peer.index()] = true,
                told => told?,
            }
        }
        Ok(())
    }

    /// Takes what has come, whatever layer it is of.
    fn hear(&mut self, mesh: &mut dyn Transport) -> Result<()> {
        for peer in mesh.rank().others(mesh.size()) {
            while !self.lost[peer.index()] {
                let frame = match mesh.poll(peer) {
                    Ok(Some(frame)) => frame,
                    Ok(None) => break,
                    Err(WireError::Gone { .. }) => {
                        self.lost[peer.index()] = true;
                        break;
                    }
                    Err(error) => return Err(error.into()),
                };
                let tag = frame.tag();
                let is_of_rows = tag.direction == Direction::Forward && tag.step == 0;
                let is_of_rows = is_of_rows && matches!(tag.kind(), Kind::Features | Kind::Activations);
                let Some(stream) = self.streams.get_mut(&tag.layer).filter(|_| is_of_rows) else {
                    // Who says something else is no trainer, and nobody depends on it.
                    self.lost[peer.index()] = true;
                    break;
                };
                self.unheard[peer.index()] = 0;
                let coming = stream.coming.entry(peer).or_default();
                coming.push_back(frame);
                if coming.len() > COMING_MAX
                    && let Some(old) = coming.pop_front()
                {
                    mesh.recycle(old);
                }
            }
        }
        Ok(())
    }
}

impl Stream {
    /// Makes room, in which nobody has said anything yet, where there is none.
    fn shape(&mut self, halo: &Halo) {
        let count = halo.rows();
        if self.known.len() != count || self.rows.columns() != self.columns {
            self.rows = Matrix::zeros(count, self.columns);
            self.known = vec![0.0; count];
            self.presence = Some(halo.nobody());
        }
    }

    /// Puts what has come into its places; who has sent what does not fit is heard no more.
    fn read(&mut self, halo: &mut Halo, mesh: &mut dyn Transport, lost: &mut [bool]) {
        self.shape(halo);
        let mut has_come = false;
        for (peer, coming) in &mut self.coming {
            while let Some(frame) = coming.pop_front() {
                let request = Request::now(frame.tag(), Scope::Selected);
                match halo.absorb(&frame, request, *peer, &mut self.rows, &mut self.known) {
                    Ok(()) => has_come = true,
                    Err(_) => lost[peer.index()] = true,
                }
                mesh.recycle(frame);
            }
        }
        if has_come {
            let is_whole = self.known.iter().all(|known| *known > 0.0);
            self.presence = (!is_whole).then(|| Arc::new(self.known.clone()));
        }
    }
}
