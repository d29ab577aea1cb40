//! What predictions must know about one worker: shapes alone.

use laconic_graph::dataset::{Features, Labels, Split};
use laconic_graph::part::Part;
use laconic_graph::plan::{HaloPlan, Link, Topology, encode_ids};

/// How many rows travel between this worker and one peer in one exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PeerRows {
    /// Forward, from here; in reverse, to here.
    pub send: usize,
    /// Forward, to here; in reverse, from here.
    pub receive: usize,
}

impl From<&Link> for PeerRows {
    fn from(link: &Link) -> Self {
        PeerRows { send: link.send.len(), receive: link.receive.len() }
    }
}

/// The sizes of one worker's part and of its exchanges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shapes {
    /// The worker's number.
    pub rank: u32,
    /// How many rows it owns.
    pub rows: usize,
    /// Rows exchanged with each peer.
    pub links: Vec<PeerRows>,
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
    /// What training sees of all that, where it is less.
    pub training: Option<TrainingShapes>,
}

/// The sizes of the subgraph that training nodes induce.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrainingShapes {
    /// Rows exchanged with each peer.
    pub links: Vec<PeerRows>,
    /// Bytes of the question sent to every peer at start-up.
    pub asked_bytes: usize,
    /// Bytes of the answer sent to each peer at start-up.
    pub answer_bytes: Vec<usize>,
    /// Edges of the own block and the halo block.
    pub edges: [usize; 2],
}

impl TrainingShapes {
    /// The shapes of a part's training graph whose plan is known; `asked` are the ids that it asks for.
    pub fn of(part: &Part, asked: &[u64], plan: &HaloPlan, topology: &Topology) -> TrainingShapes {
        TrainingShapes {
            links: plan.links.iter().map(PeerRows::from).collect(),
            asked_bytes: encode_ids(asked).len(),
            answer_bytes: plan.links.iter().map(|link| answer_bytes(part, link)).collect(),
            edges: [topology.own.edges(), topology.halo.edges()],
        }
    }
}

/// Bytes of the answer to the peer at the other end: the ids of the rows that it gets.
fn answer_bytes(part: &Part, link: &Link) -> usize {
    encode_ids(&link.send.iter().map(|&row| part.nodes[row as usize]).collect::<Vec<u64>>()).len()
}

impl Shapes {
    /// The number of workers.
    pub fn workers(&self) -> usize {
        self.links.len()
    }

    /// Rows exchanged with each peer in training.
    pub fn training_links(&self) -> &[PeerRows] {
        self.training.as_ref().map_or(&self.links, |training| &training.links)
    }

    /// Rows of the halo.
    pub fn halo_rows(&self) -> usize {
        self.links.iter().map(|link| link.receive).sum()
    }

    /// The shapes of a part whose plan is known.
    pub fn of(part: &Part, plan: &HaloPlan, topology: &Topology) -> Shapes {
        let mut asked = topology.halo_ids.clone();
        asked.sort_unstable();
        let labelled = |row: usize| match &part.labels {
            Labels::Single { values, .. } => values[row] >= 0,
            _ => true,
        };
        let count = |role: u8| (0..part.roles.len()).filter(|&r| part.roles[r] & role != 0 && labelled(r)).count();
        Shapes {
            rank: part.index,
            rows: part.rows(),
            links: plan.links.iter().map(PeerRows::from).collect(),
            asked_bytes: encode_ids(&asked).len(),
            answer_bytes: plan.links.iter().map(|link| answer_bytes(part, link)).collect(),
            split_rows: [count(Split::TRAIN), count(Split::VAL), count(Split::TEST)],
            edges: [topology.own.edges(), topology.halo.edges()],
            feature_values: match &part.features {
                Features::None => 0,
                Features::Dense { values, .. } | Features::Sparse { values, .. } => values.len(),
            },
            training: None,
        }
    }
}
