//! The rows that a round's selection has drawn, the same for all layers and both directions.

use std::sync::Arc;

use laconic_graph::plan::Link;
use laconic_key::{Key, Purpose};
use laconic_wire::codec::RowSet;
use laconic_wire::{Direction, Rank, Tag};

use super::shapes::PeerRows;
use crate::messages::coders::End;
use crate::selection::{Scope, Selection};

/// How much each halo row counts: 0 for a row that is absent. `None` if all are there and count once.
pub type Presence = Option<Arc<Vec<f32>>>;

/// Positions on a link, and the rows that these are.
#[derive(Debug)]
struct Picked {
    positions: Vec<u32>,
    rows: Vec<u32>,
}

/// What a selection has drawn in one round.
#[derive(Debug)]
pub struct Drawn {
    /// The round that it was drawn for.
    pub round: u32,
    /// Per peer what it gets of the own rows.
    send: Vec<Picked>,
    /// Per peer what comes from it of the halo rows.
    receive: Vec<Picked>,
    /// How much each halo row counts.
    pub presence: Arc<Vec<f32>>,
}

/// The key of the rows that are drawn on a link in a round.
fn link_key(seed: u64, round: u32, owner: Rank, holder: Rank) -> Key {
    Key::new(seed, Purpose::Selection).with(round.into()).with(owner.0.into()).with(holder.0.into())
}

impl Drawn {
    /// Draws the rows of a round on all links of a worker.
    pub fn new(selection: &dyn Selection, seed: u64, round: u32, rank: Rank, links: &[Link]) -> Drawn {
        let mut presence = vec![0.0; links.iter().map(|link| link.receive.len()).sum()];
        let (mut send, mut receive) = (Vec::new(), Vec::new());
        for (peer, link) in links.iter().enumerate() {
            let peer = Rank(peer as u32);
            let mut positions = Vec::new();
            selection.draw(link_key(seed, round, rank, peer), link.send.len(), &mut positions);
            let rows = positions.iter().map(|&p| link.send[p as usize]).collect();
            send.push(Picked { positions, rows });
            let mut positions = Vec::new();
            selection.draw(link_key(seed, round, peer, rank), link.receive.len(), &mut positions);
            let rows: Vec<u32> = positions.iter().map(|&p| link.receive.start + p).collect();
            let weight = link.receive.len() as f32 / rows.len().max(1) as f32;
            rows.iter().for_each(|&row| presence[row as usize] = weight);
            receive.push(Picked { positions, rows });
        }
        Drawn { round, send, receive, presence: Arc::new(presence) }
    }

    /// The own rows that each peer gets, and the halo rows that come from it.
    pub fn rows(&self) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
        let rows = |picked: &[Picked]| picked.iter().map(|picked| picked.rows.clone()).collect();
        (rows(&self.send), rows(&self.receive))
    }
}

/// The rows of a message between this worker and a peer, and the link as the message sees it.
pub(super) fn on_link<'a>(
    link: &'a Link,
    direction: Direction,
    outgoing: bool,
    drawn: Option<&'a Drawn>,
    rank: Rank,
    peer: Rank,
) -> (RowSet<'a>, End<'a>) {
    // Own rows go out forward and come back in reverse; with halo rows it is the other way round.
    let own = (direction == Direction::Forward) == outgoing;
    let picked = drawn.map(|drawn| if own { &drawn.send[peer.index()] } else { &drawn.receive[peer.index()] });
    let set = match picked {
        Some(picked) => RowSet::Indices(&picked.rows),
        None if own => RowSet::Indices(&link.send),
        None => RowSet::Range(link.receive.start as usize..link.receive.end as usize),
    };
    let rows = if own { link.send.len() } else { link.receive.len() };
    (set, End { rank, peer, outgoing, rows, drawn: picked.map(|picked| picked.positions.as_slice()) })
}

/// What predictions of exchanges are made from: one worker's links, and which rows are drawn.
#[derive(Clone, Copy)]
pub struct Route<'a> {
    /// The worker that sends.
    pub rank: Rank,
    /// Rows on each of its links.
    pub links: &'a [PeerRows],
    /// The selection, where not every row travels.
    pub selection: Option<&'a dyn Selection>,
    /// The run's seed.
    pub seed: u64,
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

    /// The positions that are drawn in a round on the link to a peer.
    pub(super) fn positions(&self, tag: Tag, round: u32, peer: Rank, rows: usize) -> Vec<u32> {
        let (owner, holder) = if tag.direction == Direction::Forward { (self.rank, peer) } else { (peer, self.rank) };
        let mut positions = Vec::new();
        if let Some(selection) = self.selection {
            selection.draw(link_key(self.seed, round, owner, holder), rows, &mut positions);
        }
        positions
    }
}
