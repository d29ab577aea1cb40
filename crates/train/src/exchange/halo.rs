//! The halo exchange: the one linear operator that stands between message and fold, and its adjoint.
//!
//! Forward, owned rows go out to the workers that need copies and *set* their halo rows. In reverse, the gradients of the copies
//! come back and *add* to the owners' rows, peers in rank order. Both directions use the same plan. [`Halo::start`] encodes,
//! queues and returns at once; what the caller does before [`Pending::finish`] overlaps with the wire.

use std::sync::Arc;
use std::time::{Duration, Instant};

use laconic_graph::plan::{HaloPlan, Link};
use laconic_key::{Key, Purpose};
use laconic_nn::Matrix;
use laconic_wire::codec::{self, MessageKey, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Direction, Frame, Kind, Ledger, Rank, Tag, Transport, WireError};

use crate::config::WIDTHS;
use crate::error::{Result, TrainError};
use crate::exchange::late::Late;
use crate::exchange::skip::Skipper;
use crate::exchange::timeline::{Phase, Timeline};
use crate::exchange::widths::Adaptive;
use crate::messages::codecs::{Codecs, End, Setting};
use crate::record::state::Saved;
use crate::selection::Selection;

/// Which of the rows that edges need take part in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Whole,
    /// Those that the selection draws for the round.
    Selected,
    /// None: nothing is sent and every halo row is absent.
    Nothing,
}

/// How much each halo row counts: 0 for a row that is absent. `None` if all are there and count once.
pub type Presence = Option<Arc<Vec<f32>>>;

/// Plan, codecs and what is remembered from round to round of one worker.
pub struct Halo {
    pub(crate) rank: Rank,
    pub(crate) links: Vec<Link>,
    /// Which codec codes which message.
    pub codecs: Codecs,
    own_rows: usize,
    seed: u64,
    coding: Duration,
    selection: Option<Box<dyn Selection>>,
    drawn: Vec<Arc<Drawn>>,
    /// Exchanges whose rows hardly moved.
    pub(crate) skipper: Option<Skipper>,
    /// Rows that are used a round after they were sent.
    pub(crate) late: Option<Late>,
    /// Traces for the assigner of bit-widths.
    pub(crate) adaptive: Adaptive,
    /// What happens when, in the round that is recorded.
    pub timeline: Timeline,
    /// Values sent by their width, in the order of [`WIDTHS`].
    pub values: [u64; WIDTHS.len()],
}

/// The rows that a round's selection has drawn, the same for all layers and both directions.
#[derive(Debug)]
pub struct Drawn {
    round: u32,
    /// Per peer the positions on its link that it gets, and the own rows that these are.
    send: Vec<(Vec<u32>, Vec<u32>)>,
    /// Per peer the positions on its link that come from it, and the halo rows that these are.
    receive: Vec<(Vec<u32>, Vec<u32>)>,
    presence: Arc<Vec<f32>>,
}

/// An exchange under way. It must be finished, or the peers' frames stay behind.
#[must_use = "the peers' rows are only there once the exchange is finished"]
pub struct Pending {
    tag: Tag,
    scope: Scope,
    drawn: Option<Arc<Drawn>>,
    columns: usize,
    /// Per peer the level of the message that comes from it.
    settings: Vec<Option<Setting>>,
}

impl Halo {
    /// The exchange that `plan` describes between workers of which this one has `own_rows`. `selection` is `None` where every row travels.
    pub fn new(
        (plan, own_rows): (HaloPlan, usize),
        codecs: Codecs,
        seed: u64,
        selection: Option<Box<dyn Selection>>,
    ) -> Halo {
        Halo {
            rank: Rank(plan.rank),
            links: plan.links,
            own_rows,
            codecs,
            seed,
            coding: Duration::ZERO,
            selection,
            drawn: Vec::new(),
            skipper: None,
            late: None,
            adaptive: Adaptive::default(),
            timeline: Timeline::default(),
            values: [0; WIDTHS.len()],
        }
    }

    /// Rows that arrive in one forward exchange.
    pub fn rows(&self) -> usize {
        self.links.iter().map(|link| link.receive.len()).sum()
    }

    /// This worker.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Per peer the own rows that it gets and the halo rows that come from it, in an exchange of this scope.
    pub fn rows_of(&mut self, tag: Tag, scope: Scope) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let drawn = if scope == Scope::Selected { self.draw(tag) } else { None };
        if scope == Scope::Nothing {
            return (vec![Vec::new(); self.links.len()], vec![Vec::new(); self.links.len()]);
        }
        let send = |(peer, link): (usize, &Link)| match &drawn {
            Some(drawn) => drawn.send[peer].1.clone(),
            None => link.send.clone(),
        };
        let receive = |(peer, link): (usize, &Link)| match &drawn {
            Some(drawn) => drawn.receive[peer].1.clone(),
            None => link.receive.clone().collect(),
        };
        (self.links.iter().enumerate().map(send).collect(), self.links.iter().enumerate().map(receive).collect())
    }

    /// Puts what must survive a resumed run into `saved`; what is late must have been waited for ([`crate::exchange::late::settle`]).
    pub fn save(&self, saved: &mut Saved) {
        self.codecs.save(saved);
        self.adaptive.save(saved);
        if let Some(skipper) = &self.skipper {
            skipper.save(saved);
        }
        if let Some(late) = &self.late {
            late.save(saved);
        }
    }

    /// Takes it back.
    pub fn restore(&mut self, saved: &Saved) -> Result<()> {
        self.codecs.restore(saved)?;
        self.adaptive.restore(saved);
        if let Some(skipper) = &mut self.skipper {
            skipper.restore(saved);
        }
        if let Some(late) = &mut self.late {
            late.restore(saved);
        }
        Ok(())
    }

    /// Time spent encoding and decoding so far.
    pub fn coding(&self) -> Duration {
        self.coding
    }

    pub(crate) fn key(&self, tag: Tag, from: Rank, to: Rank) -> MessageKey {
        MessageKey { seed: self.seed, tag, from, to }
    }

    /// How much each halo row counts in an exchange of this scope.
    pub fn presence(&mut self, tag: Tag, scope: Scope) -> Presence {
        match scope {
            Scope::Nothing => Some(Arc::new(vec![0.0; self.rows()])),
            Scope::Selected => self.draw(tag).map(|drawn| drawn.presence.clone()),
            Scope::Whole => None,
        }
    }

    /// The rows of a round, drawn once; `None` if all travel. Those of the round before are kept, too.
    fn draw(&mut self, tag: Tag) -> Option<Arc<Drawn>> {
        let selection = self.selection.as_ref()?;
        let round = drawn_in(tag, self.late.is_some());
        if let Some(drawn) = self.drawn.iter().find(|drawn| drawn.round == round) {
            return Some(drawn.clone());
        }
        let drawn = Arc::new(Drawn::new(selection.as_ref(), self.seed, round, self.rank, &self.links));
        self.drawn.retain(|old| old.round + 1 >= round);
        self.drawn.push(drawn.clone());
        Some(drawn)
    }

    /// Starts an exchange: forward of own rows, in reverse of the gradients of halo rows.
    pub fn start(&mut self, channel: &mut dyn Transport, tag: Tag, scope: Scope, rows: &Matrix) -> Result<Pending> {
        let drawn = if scope == Scope::Selected { self.draw(tag) } else { None };
        let mut settings = vec![None; channel.size()];
        if scope != Scope::Nothing {
            for peer in self.rank.others(channel.size()) {
                self.send(channel, tag, peer, drawn.as_deref(), rows)?;
                settings[peer.index()] = self.incoming(tag, peer, drawn.as_deref())?;
            }
        }
        Ok(Pending { tag, scope, drawn, columns: rows.columns(), settings })
    }

    fn send(
        &mut self,
        channel: &mut dyn Transport,
        tag: Tag,
        peer: Rank,
        drawn: Option<&Drawn>,
        rows: &Matrix,
    ) -> Result<()> {
        let link = &self.links[peer.index()];
        let (set, end) = on_link(link, (tag.direction, true), drawn, self.rank, peer);
        if set.is_empty() {
            return Ok(());
        }
        let key = self.key(tag, self.rank, peer);
        let source = RowsRef { data: rows.data(), columns: rows.columns(), rows: set };
        let start = Instant::now();
        let from = self.timeline.now();
        if let Some(skipper) = &mut self.skipper
            && tag.kind != Kind::Evaluation
            && tag.step == 0
            && skipper.skips(tag, peer, &source)
        {
            self.coding += start.elapsed();
            let nothing = Frame::new(tag, channel.buffer_of(0));
            return Ok(channel.send(peer, nothing)?);
        }
        let (coder, reading) = self.codecs.channel(tag)?;
        if coder.is_adaptive() && tag.kind != Kind::Evaluation {
            self.adaptive.trace(tag, peer, end, &source);
        }
        let setting = coder.setting(reading, end);
        let size = coder.codec.bytes(&setting.level(), source.rows.len(), source.columns);
        coder.config().count_values(&setting.level(), (source.rows.len(), source.columns), &mut self.values);
        let mut frame = Frame::new(tag, channel.buffer_of(size));
        codec::write(coder.codec.as_mut(), &key, &setting.level(), source, &mut frame)
            .map_err(|error| refused(error, self.rank, peer, tag))?;
        self.coding += start.elapsed();
        self.timeline.note(Phase::Encode, tag, from);
        Ok(channel.send(peer, frame)?)
    }

    /// The level of what will come from `peer`; `None` if nothing will.
    fn incoming(&mut self, tag: Tag, peer: Rank, drawn: Option<&Drawn>) -> Result<Option<Setting>> {
        let link = &self.links[peer.index()];
        let (set, end) = on_link(link, (tag.direction, false), drawn, self.rank, peer);
        if set.is_empty() {
            return Ok(None);
        }
        let (coder, reading) = self.codecs.channel(tag)?;
        Ok(Some(coder.setting(reading, end)))
    }

    /// Enters into `ledger` what [`Halo::start`] sends for rows of this width. Where a level depends on what happens during a run,
    /// the codecs must be told the most.
    pub fn predict(
        route: &Route<'_>,
        codecs: &mut Codecs,
        scope: Scope,
        (tag, width): (Tag, usize),
        ledger: &mut Ledger,
    ) -> Result<()> {
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
            let (coder, reading) = codecs.channel(tag)?;
            let positions = (count < rows).then(|| route.positions(tag, peer, rows));
            let end = End { rank: route.rank, peer, outgoing: true, rows, drawn: positions.as_deref() };
            ledger.record(tag, peer, coder.bytes(reading, end, width));
        }
        Ok(())
    }
}

/// What predictions of exchanges are made from: one worker's links, and which rows are drawn.
pub struct Route<'a> {
    /// The worker.
    pub rank: Rank,
    /// Rows on each of its links.
    pub links: &'a [LinkRows],
    /// The selection, where not every row travels.
    pub selection: Option<&'a dyn Selection>,
    /// The run's seed.
    pub seed: u64,
    /// Whether rows are used a round after they were sent.
    pub late: bool,
}

impl Route<'_> {
    /// How many of a link's rows travel.
    pub fn count(&self, scope: Scope, rows: usize) -> usize {
        match (scope, self.selection) {
            (Scope::Nothing, _) => 0,
            (Scope::Selected, Some(selection)) => selection.count(rows),
            _ => rows,
        }
    }

    /// The positions that are drawn on the link to a peer.
    fn positions(&self, tag: Tag, peer: Rank, rows: usize) -> Vec<u32> {
        let (owner, holder) = if tag.direction == Direction::Forward { (self.rank, peer) } else { (peer, self.rank) };
        let mut positions = Vec::new();
        if let Some(selection) = self.selection {
            let key = link_key(self.seed, drawn_in(tag, self.late), owner, holder);
            selection.draw(key, rows, &mut positions);
        }
        positions
    }
}

/// The round whose draw a message belongs to. Late gradients belong to the rows that were used, and those came a round ago.
fn drawn_in(tag: Tag, late: bool) -> u32 {
    tag.round.saturating_sub(u32::from(late && tag.direction == Direction::Reverse))
}

/// The key of the rows that are drawn on a link in a round.
fn link_key(seed: u64, round: u32, owner: Rank, holder: Rank) -> Key {
    Key::new(seed, Purpose::Selection).with(round.into()).with(owner.0.into()).with(holder.0.into())
}

impl Drawn {
    fn new(selection: &dyn Selection, seed: u64, round: u32, rank: Rank, links: &[Link]) -> Drawn {
        let mut presence = vec![0.0; links.iter().map(|link| link.receive.len()).sum()];
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        for (peer, link) in links.iter().enumerate() {
            let peer = Rank(peer as u32);
            let mut positions = Vec::new();
            selection.draw(link_key(seed, round, rank, peer), link.send.len(), &mut positions);
            let rows = positions.iter().map(|&p| link.send[p as usize]).collect();
            send.push((positions, rows));
            let mut positions = Vec::new();
            selection.draw(link_key(seed, round, peer, rank), link.receive.len(), &mut positions);
            let rows: Vec<u32> = positions.iter().map(|&p| link.receive.start + p).collect();
            let weight = link.receive.len() as f32 / rows.len().max(1) as f32;
            rows.iter().for_each(|&row| presence[row as usize] = weight);
            receive.push((positions, rows));
        }
        Drawn { round, send, receive, presence: Arc::new(presence) }
    }
}

/// The rows that go to a peer or come from it, and the link as their message sees it.
fn on_link<'a>(
    link: &'a Link,
    (direction, outgoing): (Direction, bool),
    drawn: Option<&'a Drawn>,
    rank: Rank,
    peer: Rank,
) -> (RowSet<'a>, End<'a>) {
    let (set, rows, positions) = match (direction == Direction::Forward) == outgoing {
        true => sent_rows(link, drawn, peer),
        false => received_rows(link, drawn, peer),
    };
    (set, End { rank, peer, outgoing, rows, drawn: positions })
}

/// Rows, how many the whole link has, and which positions on it they are.
type OnLink<'a> = (RowSet<'a>, usize, Option<&'a [u32]>);

fn sent_rows<'a>(link: &'a Link, drawn: Option<&'a Drawn>, peer: Rank) -> OnLink<'a> {
    match drawn.map(|drawn| &drawn.send[peer.index()]) {
        Some((positions, rows)) => (RowSet::Indices(rows), link.send.len(), Some(positions)),
        None => (RowSet::Indices(&link.send), link.send.len(), None),
    }
}

fn received_rows<'a>(link: &'a Link, drawn: Option<&'a Drawn>, peer: Rank) -> OnLink<'a> {
    match drawn.map(|drawn| &drawn.receive[peer.index()]) {
        Some((positions, rows)) => (RowSet::Indices(rows), link.receive.len(), Some(positions)),
        None => (RowSet::Range(link.receive.start as usize..link.receive.end as usize), link.receive.len(), None),
    }
}

/// Rows that a codec refuses: hidden rows that are no numbers mean that training has diverged.
pub(crate) fn refused(error: WireError, rank: Rank, peer: Rank, tag: Tag) -> TrainError {
    match error {
        WireError::NotFinite { .. } if tag.kind != Kind::Features => {
            TrainError::Diverged { round: tag.round, what: format!("{tag} on rank {rank}: {error}") }
        }
        error => error.from_peer(rank, peer, tag).into(),
    }
}

/// How many rows travel on one link in one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkRows {
    /// Forward, from here; in reverse, to here.
    pub send: usize,
    /// Forward, to here; in reverse, from here.
    pub receive: usize,
}

impl From<&Link> for LinkRows {
    fn from(link: &Link) -> Self {
        LinkRows { send: link.send.len(), receive: link.receive.len() }
    }
}

impl Pending {
    /// How much each halo row counts once the exchange is finished.
    pub fn presence(&self, halo: &Halo) -> Presence {
        match (self.scope, &self.drawn) {
            (Scope::Nothing, _) => Some(Arc::new(vec![0.0; halo.rows()])),
            (_, drawn) => drawn.as_ref().map(|drawn| drawn.presence.clone()),
        }
    }

    /// The shape of the rows that will come: halo rows forward, own rows in reverse.
    pub(crate) fn shape(&self, halo: &Halo) -> (usize, usize) {
        let rows = if self.tag.direction == Direction::Forward { halo.rows() } else { halo.own_rows };
        (rows, self.columns)
    }

    /// Waits for the peers' rows, in rank order: forward they set `into`'s halo rows, absent ones to 0; in reverse they add to
    /// `into`'s own rows.
    pub fn finish(self, halo: &mut Halo, channel: &mut dyn Transport, into: &mut Matrix) -> Result<()> {
        let Pending { tag, scope, drawn, settings, .. } = self;
        if tag.direction == Direction::Forward && (scope == Scope::Nothing || drawn.is_some()) {
            into.data_mut().fill(0.0);
        }
        for peer in halo.rank.others(channel.size()) {
            let Some(setting) = &settings[peer.index()] else { continue };
            let from = halo.timeline.now();
            let frame = channel.recv(peer, tag)?;
            halo.timeline.note(Phase::Wait, tag, from);
            let from = halo.timeline.now();
            let start = Instant::now();
            halo.receive(&frame, (tag, peer), setting, drawn.as_deref(), into)
                .map_err(|error| error.from_peer(halo.rank, peer, tag))?;
            halo.coding += start.elapsed();
            halo.timeline.note(Phase::Decode, tag, from);
            channel.recycle(frame);
        }
        Ok(())
    }
}

impl Halo {
    fn receive(
        &mut self,
        frame: &Frame,
        (tag, peer): (Tag, Rank),
        setting: &Setting,
        drawn: Option<&Drawn>,
        into: &mut Matrix,
    ) -> std::result::Result<(), WireError> {
        let key = self.key(tag, peer, self.rank);
        let columns = into.columns();
        let store = if tag.direction == Direction::Forward { Store::Set } else { Store::Add };
        let (rows, _) = on_link(&self.links[peer.index()], (tag.direction, false), drawn, self.rank, peer);
        let coder = self.codecs.known(tag);
        let into = RowsMut { data: into.data_mut(), columns, rows };
        match &mut self.skipper {
            Some(skipper) if tag.kind != Kind::Evaluation && tag.step == 0 => {
                skipper.receive(frame, &key, coder.codec.as_mut(), &setting.level(), into, store)
            }
            _ => codec::read(coder.codec.as_mut(), &key, &setting.level(), frame, into, store),
        }
    }
}
