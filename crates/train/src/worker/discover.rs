//! How workers find their halo plan: they ask each other by global id who owns what they need.
//!
//! Nobody ever holds the whole graph or a map of it. Each worker sends the ids that its edges start from and that it does not own
//! to every peer; each peer answers with those that it owns. Ids travel as ascending differences in LEB128, 1 to 2 bytes each
//! on a random partition. Steps: 2 all-to-alls.

use laconic_graph::part::Part;
use laconic_graph::plan::{HaloPlan, Topology, decode_ids, encode_ids, needed, owned_of, resolve_owners};
use laconic_wire::{Direction, Kind, Ledger, Rank, Tag, Transport, collectives};

use crate::error::Result;
use crate::exchange::halo::LinkRows;

/// The steps of start-up and reports, all of kind `control`.
pub fn control(round: u32, step: u16) -> Tag {
    Tag { kind: Kind::Control, direction: Direction::Forward, layer: 0, round, step }
}

/// What predictions must know about one worker: shapes alone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shapes {
    /// The worker.
    pub rank: u32,
    /// Own rows.
    pub rows: usize,
    /// Rows on each link.
    pub links: Vec<LinkRows>,
    /// Bytes of the question sent to every peer at start-up.
    pub asked_bytes: usize,
    /// Bytes of the answer sent to each peer at start-up.
    pub answer_bytes: Vec<usize>,
    /// Rows of each split.
    pub split_rows: [usize; 3],
    /// Edges of the own block and the halo block.
    pub edges: [usize; 2],
    /// Stored feature values.
    pub feature_values: usize,
}

impl Shapes {
    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.links.len()
    }

    /// Rows of the halo.
    pub fn halo_rows(&self) -> usize {
        self.links.iter().map(|link| link.receive).sum()
    }

    /// The shapes of a part whose plan is known.
    pub fn of(part: &Part, plan: &HaloPlan, topology: &Topology) -> Shapes {
        use laconic_graph::dataset::{Features, Split};
        let links: Vec<LinkRows> = plan.links.iter().map(LinkRows::from).collect();
        let mut asked = topology.halo_ids.clone();
        asked.sort_unstable();
        let answer = |link: &laconic_graph::plan::Link| {
            encode_ids(&link.send.iter().map(|&row| part.nodes[row as usize]).collect::<Vec<u64>>()).len()
        };
        let labelled = |row: usize| match &part.labels {
            laconic_graph::dataset::Labels::Single { values, .. } => values[row] >= 0,
            _ => true,
        };
        let count = |role: u8| (0..part.roles.len()).filter(|&r| part.roles[r] & role != 0 && labelled(r)).count();
        Shapes {
            rank: part.index,
            rows: part.rows(),
            links,
            asked_bytes: encode_ids(&asked).len(),
            answer_bytes: plan.links.iter().map(answer).collect(),
            split_rows: [count(Split::TRAIN), count(Split::VAL), count(Split::TEST)],
            edges: [topology.own.edges(), topology.halo.edges()],
            feature_values: match &part.features {
                Features::None => 0,
                Features::Dense { values, .. } | Features::Sparse { values, .. } => values.len(),
            },
        }
    }
}

/// Finds plan and blocks of `part` together with the other workers.
pub fn discover(channel: &mut dyn Transport, part: &Part, self_loops: bool) -> Result<(HaloPlan, Topology)> {
    let (size, rank) = (channel.size(), channel.rank());
    let wanted = needed(part);
    let question = encode_ids(&wanted);
    let questions = collectives::all_to_all(channel, control(0, 0), vec![question; size])?;
    let mut asked_by = vec![Vec::new(); size];
    let mut answers = vec![Vec::new(); size];
    for peer in rank.others(size) {
        let asked = decode_ids(&questions[peer.index()], questions[peer.index()].len())?;
        let rows = owned_of(part, &asked);
        asked_by[peer.index()] = rows.iter().zip(&asked).filter_map(|(row, &id)| row.map(|_| id)).collect();
        answers[peer.index()] = encode_ids(&asked_by[peer.index()]);
    }
    let mut owned_by = vec![Vec::new(); size];
    for (peer, bytes) in collectives::all_to_all(channel, control(0, 1), answers)?.iter().enumerate() {
        if peer != rank.index() {
            owned_by[peer] = decode_ids(bytes, bytes.len())?;
        }
    }
    let owners = resolve_owners(part, &wanted, &owned_by)?;
    Ok(HaloPlan::build(part, &owners, &asked_by, self_loops)?)
}

/// Enters what [`discover`] sends.
pub fn predict_discover(shapes: &Shapes, ledger: &mut Ledger) {
    for peer in Rank(shapes.rank).others(shapes.workers()) {
        ledger.record(control(0, 0), peer, shapes.asked_bytes);
        ledger.record(control(0, 1), peer, shapes.answer_bytes[peer.index()]);
    }
}
