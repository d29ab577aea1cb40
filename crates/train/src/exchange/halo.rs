//! The halo exchange: the one linear operator that stands between message and fold, and its adjoint.
//!
//! Forward, owned rows go out to the workers that need copies and *set* their halo rows. In reverse, the gradients of
//! the copies come back and *add* to the owners' rows, peers in rank order. Both directions use the same plan.
//! [`Halo::start`] encodes, queues and returns at once; what the caller does before [`Pending::finish`] overlaps with
//! the wire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laconic_graph::edges::Edges;
use laconic_graph::plan::{HaloPlan, Link};
use laconic_nn::{Compute, Matrix};
use laconic_wire::codec::{MessageKey, Store};
use laconic_wire::{Direction, Frame, Ledger, Rank, Tag, Transport, WireError};

use super::assigner::Assigner;
use super::drawn::{Drawn, Presence, Route, on_link};
use super::staged::{self, Message};
use super::sums::Sums;
use super::timeline::{Phase, Timeline};
use crate::error::{Result, TrainError};
use crate::messages::coders::{Coders, End, Setting};
use crate::messages::coding::WidthCounts;
use crate::plan::Plan;
use crate::saved::{Name, Remembers, Saved};
use crate::selection::{Scope, Selection};

/// How many messages were skipped, in a worker's state.
const SKIPPED: &str = "skipped";

/// Plan, codecs and what is remembered from round to round of one worker.
pub struct Halo {
    pub(super) rank: Rank,
    pub(super) links: Vec<Link>,
    /// Which codec codes which message.
    pub coders: Coders,
    own_rows: usize,
    seed: u64,
    pub(super) coding: Duration,
    selection: Option<Arc<dyn Selection>>,
    drawn: Vec<Arc<Drawn>>,
    /// What the assigner of bit-widths weighs messages by.
    pub(super) assigner: Assigner,
    /// What happens when, in the round that is recorded.
    pub timeline: Timeline,
    /// Values sent by their width, in the order of [`crate::config::WIDTHS`].
    pub values: WidthCounts,
    /// Messages that the codec found no need to send.
    pub skipped: u64,
    /// Rows of a message whose matrix stores them as bf16.
    room: Vec<f32>,
    /// What goes out in the place of own rows, where links name that and not these.
    sums: Option<Sums>,
}

/// One exchange: which rows, under which tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// What its frames are about.
    pub tag: Tag,
    /// Which rows take part.
    pub scope: Scope,
    /// The round whose draw of the selection it belongs to.
    pub draw: u32,
}

impl Request {
    /// An exchange whose rows are drawn for its own round.
    pub fn now(tag: Tag, scope: Scope) -> Request {
        Request { tag, scope, draw: tag.round }
    }

    /// An exchange of a stage whose rows are `late`, used a round after they were sent: gradients belong to the rows
    /// that were used, and those came a round ago. So they travel for the same nodes, in the same columns and at the
    /// same level.
    pub fn of(tag: Tag, scope: Scope, late: bool) -> Request {
        let before = u32::from(late && tag.direction == Direction::Reverse);
        Request { tag, scope, draw: tag.round.saturating_sub(before) }
    }

    /// Whether it answers rows of the round before.
    fn is_late(&self) -> bool {
        self.draw < self.tag.round
    }
}

/// An exchange under way. It must be finished, or the peers' frames stay behind.
#[must_use = "the peers' rows are only there once the exchange is finished"]
pub struct Pending {
    request: Request,
    drawn: Option<Arc<Drawn>>,
    columns: usize,
    /// Per peer the level of the message that comes from it.
    settings: Vec<Option<Setting>>,
}

impl Halo {
    /// The exchange that `plan` describes between workers of which this one has `own_rows`. `selection` is `None` where
    /// every row travels.
    pub fn new(
        plan: HaloPlan,
        own_rows: usize,
        coders: Coders,
        seed: u64,
        selection: Option<Arc<dyn Selection>>,
    ) -> Halo {
        Halo {
            rank: Rank(plan.rank),
            links: plan.links,
            own_rows,
            coders,
            seed,
            coding: Duration::ZERO,
            selection,
            drawn: Vec::new(),
            assigner: Assigner::default(),
            timeline: Timeline::default(),
            values: WidthCounts::default(),
            skipped: 0,
            room: Vec::new(),
            sums: None,
        }
    }

    /// The same, where links name sums of own rows: those that these edges from own rows end at.
    #[must_use]
    pub fn with_sums(self, outgoing: Edges<u32>) -> Halo {
        Halo { sums: Some(Sums::new(outgoing, self.own_rows)), ..self }
    }

    /// Goes on with the messages of this plan, before any row has crossed.
    pub fn use_messages(&mut self, plan: &Plan) {
        self.coders = Coders::new(&plan.messages, self.seed);
    }

    /// Per peer the own rows that it needs, and the halo rows that come from it.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The owner of each halo row.
    pub fn owners(&self) -> Vec<Rank> {
        let of = |(peer, link): (usize, &Link)| std::iter::repeat_n(Rank(peer as u32), link.receive.len());
        self.links.iter().enumerate().flat_map(of).collect()
    }

    /// Rows that arrive in one forward exchange.
    pub fn rows(&self) -> usize {
        self.links.iter().map(|link| link.receive.len()).sum()
    }

    /// Whether no row goes out or comes in, whatever a selection draws.
    pub fn is_empty(&self) -> bool {
        self.links.iter().all(|link| link.send.is_empty() && link.receive.is_empty())
    }

    /// This worker's number.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Per peer the own rows that it gets and the halo rows that come from it, in a forward exchange.
    pub fn rows_of(&mut self, request: Request) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        if request.scope == Scope::Nothing {
            return (vec![Vec::new(); self.links.len()], vec![Vec::new(); self.links.len()]);
        }
        if let Some(drawn) = self.draw(request) {
            return drawn.rows();
        }
        let rows = |link: &Link| (link.send.clone(), link.receive.clone().collect());
        self.links.iter().map(rows).unzip()
    }

    /// Time spent encoding and decoding so far.
    pub fn coding(&self) -> Duration {
        self.coding
    }

    pub(crate) fn key(&self, Request { tag, draw, .. }: Request, from: Rank, to: Rank) -> MessageKey {
        MessageKey { seed: self.seed, tag, from, to, drawn: draw }
    }

    /// How much each halo row counts in an exchange.
    pub fn presence(&mut self, request: Request) -> Presence {
        match request.scope {
            Scope::Nothing => Some(self.nobody()),
            _ => self.draw(request).map(|drawn| drawn.presence.clone()),
        }
    }

    /// How much each halo row counts where all are absent.
    pub(super) fn nobody(&self) -> Arc<Vec<f32>> {
        Arc::new(vec![0.0; self.rows()])
    }

    /// The rows of a round, drawn once; `None` if all travel. Those of the round before are kept, too.
    fn draw(&mut self, request: Request) -> Option<Arc<Drawn>> {
        let selection = self.selection.as_ref().filter(|_| request.scope == Scope::Selected)?;
        let round = request.draw;
        if let Some(drawn) = self.drawn.iter().find(|drawn| drawn.round == round) {
            return Some(drawn.clone());
        }
        let drawn = Arc::new(Drawn::new(selection.as_ref(), self.seed, round, self.rank, &self.links));
        self.drawn.retain(|old| old.round + 1 >= round);
        self.drawn.push(drawn.clone());
        Some(drawn)
    }

    /// Starts an exchange: forward of own rows, in reverse of the gradients of halo rows.
    ///
    /// # Errors
    /// If a peer is gone, or a codec refuses the rows.
    pub fn start(
        &mut self,
        compute: &Compute,
        transport: &mut dyn Transport,
        request: Request,
        rows: &Matrix,
    ) -> Result<Pending> {
        let travels = request.scope != Scope::Nothing && request.tag.direction == Direction::Forward;
        let Some(sums) = self.sums.as_mut().filter(|_| travels) else {
            return self.start_with(transport, request, rows);
        };
        let out = sums.outgoing(compute, rows);
        let started = self.start_with(transport, request, &out);
        if let Some(sums) = &mut self.sums {
            sums.keep(Direction::Forward, out);
        }
        started
    }

    /// Lets go of the memory that an exchange has left, after one of inputs, which are wider than what follows.
    pub fn release(&mut self) {
        self.sums.iter_mut().for_each(Sums::release);
    }

    /// Starts an exchange of rows that links name.
    fn start_with(&mut self, transport: &mut dyn Transport, request: Request, rows: &Matrix) -> Result<Pending> {
        let drawn = self.draw(request);
        let mut settings = vec![None; transport.size()];
        if request.scope != Scope::Nothing {
            for peer in self.rank.others(transport.size()) {
                self.send(transport, request, peer, drawn.as_deref(), rows)?;
                settings[peer.index()] = self.incoming(request, peer, drawn.as_deref())?;
            }
        }
        Ok(Pending { request, drawn, columns: rows.columns(), settings })
    }

    /// Whether rows come from this peer.
    pub(super) fn hears_from(&self, peer: Rank) -> bool {
        !self.links[peer.index()].receive.is_empty()
    }

    /// Sends one peer its rows and expects nothing.
    ///
    /// # Errors
    /// If the peer is gone, or a codec refuses the rows.
    pub(super) fn tell(
        &mut self,
        transport: &mut dyn Transport,
        request: Request,
        peer: Rank,
        rows: &Matrix,
    ) -> Result<()> {
        let drawn = self.draw(request);
        self.send(transport, request, peer, drawn.as_deref(), rows)
    }

    /// Takes rows that nobody has waited for from a frame: they set `into`, and are `known` from now on.
    ///
    /// # Errors
    /// If the frame does not fit.
    pub(super) fn absorb(
        &mut self,
        frame: &Frame,
        request: Request,
        peer: Rank,
        into: &mut Matrix,
        known: &mut [f32],
    ) -> Result<()> {
        let drawn = self.draw(request);
        let (tag, rank) = (request.tag, self.rank);
        let Some(setting) = self.incoming(request, peer, drawn.as_deref())? else {
            return Err(WireError::malformed("rows where none are expected").from_peer(rank, peer, tag).into());
        };
        let start = Instant::now();
        self.receive(frame, request, peer, &setting, drawn.as_deref(), into)
            .map_err(|error| error.from_peer(rank, peer, tag))?;
        self.coding += start.elapsed();
        let (rows, _) = on_link(&self.links[peer.index()], tag.direction, false, drawn.as_deref(), rank, peer);
        (0..rows.len()).for_each(|place| known[rows.at(place)] = 1.0);
        Ok(())
    }

    fn send(
        &mut self,
        transport: &mut dyn Transport,
        request: Request,
        peer: Rank,
        drawn: Option<&Drawn>,
        rows: &Matrix,
    ) -> Result<()> {
        let tag = request.tag;
        let link = &self.links[peer.index()];
        let (set, end) = on_link(link, tag.direction, true, drawn, self.rank, peer);
        if set.is_empty() {
            return Ok(());
        }
        let key = self.key(request, self.rank, peer);
        let start = Instant::now();
        let from = self.timeline.now();
        let (coder, reading) = self.coders.coder_of(tag, request.is_late())?;
        let setting = coder.setting(&reading, end);
        let size = coder.bytes(&setting, set.len(), rows.columns());
        let mut frame = Frame::new(tag, transport.buffer_of(size));
        let message = Message { coder, key: &key, setting: &setting };
        staged::write(message, end, rows, set, &mut frame, &mut self.values, &mut self.room)
            .map_err(|error| refused(error, self.rank, peer, tag))?;
        self.skipped += u64::from(frame.payload().is_empty());
        self.coding += start.elapsed();
        self.timeline.note(Phase::Encode, tag, from);
        Ok(transport.send(peer, frame)?)
    }

    /// The level of what will come from `peer`; `None` if nothing will.
    fn incoming(&mut self, request: Request, peer: Rank, drawn: Option<&Drawn>) -> Result<Option<Setting>> {
        let tag = request.tag;
        let link = &self.links[peer.index()];
        let (set, end) = on_link(link, tag.direction, false, drawn, self.rank, peer);
        if set.is_empty() {
            return Ok(None);
        }
        let (coder, reading) = self.coders.coder_of(tag, request.is_late())?;
        Ok(Some(coder.setting(&reading, end)))
    }

    fn receive(
        &mut self,
        frame: &Frame,
        request: Request,
        peer: Rank,
        setting: &Setting,
        drawn: Option<&Drawn>,
        into: &mut Matrix,
    ) -> std::result::Result<(), WireError> {
        let (tag, key) = (request.tag, self.key(request, peer, self.rank));
        let store = if tag.direction == Direction::Forward { Store::Set } else { Store::Add };
        let (rows, _) = on_link(&self.links[peer.index()], tag.direction, false, drawn, self.rank, peer);
        let message = Message { coder: self.coders.known(tag), key: &key, setting };
        staged::read(message, frame, into, rows, &mut self.room, store)
    }

    /// Enters into `ledger` what [`Halo::start`] sends for rows of this width. Where a level depends on what happens
    /// during a run, the codecs must be told the most.
    ///
    /// # Errors
    /// If a codec cannot be made.
    pub fn forecast(
        route: &Route<'_>,
        coders: &mut Coders,
        request: Request,
        width: usize,
        ledger: &mut Ledger,
    ) -> Result<()> {
        let Request { tag, scope, draw } = request;
        for (peer, link) in route.links.iter().enumerate() {
            let peer = Rank(peer as u32);
            let rows = match tag.direction {
                Direction::Forward => link.send,
                Direction::Reverse => link.receive,
            };
            let count = route.count(scope, rows);
            if count == 0 {
                continue;
            }
            let (coder, reading) = coders.coder_of(tag, request.is_late())?;
            let positions = (count < rows).then(|| route.positions(tag, draw, peer, rows));
            let end = End { rank: route.rank, peer, outgoing: true, rows, drawn: positions.as_deref() };
            ledger.record(tag, peer, coder.forecast(&reading, end, width));
        }
        Ok(())
    }
}

impl Remembers for Halo {
    fn save(&self, saved: &mut Saved) {
        if self.skipped > 0 {
            saved.put(Name::one(SKIPPED), &[self.skipped as f64]);
        }
        self.coders.save(saved);
    }

    fn restore(&mut self, saved: &mut Saved) -> Result<()> {
        let skipped = saved.take::<f64>(&Name::one(SKIPPED))?.unwrap_or_default();
        self.skipped = skipped.first().map_or(0, |count| *count as u64);
        self.coders.restore(saved)
    }
}

/// Rows that a codec refuses: what a part holds is finite, so rows that are no numbers mean that training has diverged.
pub(crate) fn refused(error: WireError, rank: Rank, peer: Rank, tag: Tag) -> TrainError {
    match error {
        WireError::NotFinite { .. } => {
            TrainError::Diverged { round: tag.round, what: format!("{tag} on rank {rank}: {error}") }
        }
        error => error.from_peer(rank, peer, tag).into(),
    }
}

impl Pending {
    /// How much each halo row counts once the exchange is finished.
    pub fn presence(&self, halo: &Halo) -> Presence {
        match (self.request.scope, &self.drawn) {
            (Scope::Nothing, _) => Some(halo.nobody()),
            (_, drawn) => drawn.as_ref().map(|drawn| drawn.presence.clone()),
        }
    }

    /// The shape of the rows that will come: halo rows forward, own rows in reverse.
    pub(super) fn shape(&self, halo: &Halo) -> (usize, usize) {
        let rows = if self.request.tag.direction == Direction::Forward { halo.rows() } else { halo.own_rows };
        (rows, self.columns)
    }

    /// Waits for the peers' rows, in rank order: forward they set `into`'s halo rows, absent ones to 0; in reverse they
    /// add to `into`'s own rows.
    ///
    /// # Errors
    /// If a peer does not answer, or sends what does not fit.
    pub fn finish(
        self,
        halo: &mut Halo,
        compute: &Compute,
        transport: &mut dyn Transport,
        into: &mut Matrix,
    ) -> Result<()> {
        let comes_back = self.request.scope != Scope::Nothing && self.request.tag.direction == Direction::Reverse;
        let Some(sums) = halo.sums.as_mut().filter(|_| comes_back) else {
            return self.finish_with(halo, transport, into);
        };
        let mut came = sums.coming(into);
        self.finish_with(halo, transport, &mut came)?;
        if let Some(sums) = &mut halo.sums {
            sums.add(compute, &came, into);
            sums.keep(Direction::Reverse, came);
        }
        Ok(())
    }

    /// Waits for the rows that links name.
    fn finish_with(self, halo: &mut Halo, transport: &mut dyn Transport, into: &mut Matrix) -> Result<()> {
        let Pending { request, drawn, settings, .. } = self;
        let Request { tag, scope, .. } = request;
        if tag.direction == Direction::Forward && (scope == Scope::Nothing || drawn.is_some()) {
            into.clear();
        }
        for peer in halo.rank.others(transport.size()) {
            let Some(setting) = &settings[peer.index()] else { continue };
            let from = halo.timeline.now();
            let frame = transport.recv(peer, tag)?;
            halo.timeline.note(Phase::Wait, tag, from);
            let from = halo.timeline.now();
            let start = Instant::now();
            halo.receive(&frame, request, peer, setting, drawn.as_deref(), into)
                .map_err(|error| error.from_peer(halo.rank, peer, tag))?;
            halo.coding += start.elapsed();
            halo.timeline.note(Phase::Decode, tag, from);
            transport.recycle(frame);
        }
        Ok(())
    }
}
