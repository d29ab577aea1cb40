//! The halo plan: per peer, which own rows it needs and where its rows land among the halo rows.

use std::ops::Range;

use rayon::prelude::*;

use crate::error::{GraphError, Result};
use crate::owners::ids_of_bits;
use crate::part::Part;
use crate::plan::index::IdIndex;
use crate::plan::topology::{self, Topology};

/// What travels between this rank and one peer. The own rank, and a peer without traffic, has an empty link.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Link {
    /// The own rows that the peer needs, ascending in row and so in global id.
    pub send: Vec<u32>,
    /// Where the peer's rows land among the halo rows.
    pub receive: Range<u32>,
}

impl Link {
    /// Whether nothing travels.
    pub fn is_empty(&self) -> bool {
        self.send.is_empty() && self.receive.is_empty()
    }
}

/// All links of one rank, in rank order. Halo rows are ordered by owner, and by global id within an owner, so each
/// peer's rows arrive as one range and need no permutation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HaloPlan {
    /// The own rank: the index of the part.
    pub rank: u32,
    /// One link a rank.
    pub links: Vec<Link>,
}

impl HaloPlan {
    /// The plan of a graph without the edges to other parts: nothing is sent.
    pub fn own_alone(&self) -> HaloPlan {
        HaloPlan { rank: self.rank, links: vec![Link::default(); self.links.len()] }
    }

    /// Turns the answers of the id exchange into plan and blocks. `owners[i]` is the rank that owns the `i`-th id of
    /// [`needed`]; `asked_by[p]` are the ids, ascending, that rank `p` gets from this part; its length is the number of
    /// ranks. With `self_loops`, each own node gets exactly one loop, see [`Topology`].
    ///
    /// # Errors
    ///
    /// If there is no owner for each needed id, or a peer asked for a node that the part does not own; the message
    /// names an edge.
    pub fn build(part: &Part, owners: &[u32], asked_by: &[Vec<u64>], self_loops: bool) -> Result<(HaloPlan, Topology)> {
        part.check()?;
        let needed = needed(part);
        countable(part, &needed)?;
        let (rank, ranks) = (part.index, part.parts);
        if owners.len() != needed.len() || asked_by.len() != ranks as usize {
            return Err(GraphError::invalid(format!(
                "rank {rank} of {ranks} needs {} ids, but was given owners of {} and the wishes of {} ranks",
                needed.len(),
                owners.len(),
                asked_by.len()
            )));
        }
        let mut links = vec![Link::default(); ranks as usize];
        for (&id, &owner) in needed.iter().zip(owners) {
            if owner >= ranks || owner == rank {
                let what = format!("cannot belong to rank {owner} of {ranks}");
                return Err(GraphError::invalid(format!("{} {what}", needed_by(part, id))));
            }
            links[owner as usize].receive.end += 1;
        }
        let mut start = 0;
        for (peer, (link, asked)) in links.iter_mut().zip(asked_by).enumerate() {
            link.receive = start..start + link.receive.end;
            start = link.receive.end;
            link.send = rows_for(part, peer, asked)?;
        }
        let mut next: Vec<u32> = links.iter().map(|link| link.receive.start).collect();
        let mut halo_ids = vec![0; needed.len()];
        let halo_rows: Vec<u32> = (needed.iter().zip(owners))
            .map(|(&id, &owner)| {
                let row = next[owner as usize];
                next[owner as usize] += 1;
                halo_ids[row as usize] = id;
                row
            })
            .collect();
        let (own, halo) = topology::split(part, &needed, &halo_rows, self_loops);
        Ok((HaloPlan { rank, links }, Topology { own, halo, halo_ids }))
    }

    /// The number of halo rows: rows received in one exchange.
    pub fn halo_rows(&self) -> usize {
        self.links.iter().map(|link| link.receive.len()).sum()
    }

    /// The number of rows sent in one exchange; a row that two peers need counts twice.
    pub fn sent_rows(&self) -> usize {
        self.links.iter().map(|link| link.send.len()).sum()
    }
}

/// The global ids of the nodes that `part` needs from others: its edges' sources that are not its own. Ascending,
/// unique.
pub fn needed(part: &Part) -> Vec<u64> {
    needed_by_edges(part).0
}

/// What a part needs from others ([`needed`]), and how many of its edges start there.
pub(super) fn needed_by_edges(part: &Part) -> (Vec<u64>, usize) {
    Foreign::of(part).map_or_else(|| listed(part), |foreign| (foreign.ids(), foreign.edges))
}

/// How many nodes `part` needs from others ([`needed`]), and how many of its edges start there.
pub fn count_needed(part: &Part) -> (usize, usize) {
    let count = |(ids, edges): (Vec<u64>, usize)| (ids.len(), edges);
    Foreign::of(part).map_or_else(|| count(listed(part)), |foreign| (foreign.count(), foreign.edges))
}

/// [`needed_by_edges`], whatever ids are like.
fn listed(part: &Part) -> (Vec<u64>, usize) {
    let own = IdIndex::new(&part.nodes);
    let mut ids: Vec<u64> = part.edges.sources.par_iter().copied().filter(|&id| own.row(id).is_none()).collect();
    let edges = ids.len();
    ids.par_sort_unstable();
    ids.dedup();
    (ids, edges)
}

/// Nodes of others that a part's edges start at.
struct Foreign {
    /// A bit for each node of the graph.
    seen: Vec<u64>,
    /// How many edges.
    edges: usize,
}

impl Foreign {
    /// Those of a part, where ids are those of a graph's rows: takes a bit a node of the graph, and another for each
    /// thread where edges are many, which stay in a cache where a list of ids would not.
    fn of(part: &Part) -> Option<Foreign> {
        let nodes = part.global.nodes;
        let is_small = nodes / 32 <= (part.rows() + part.edges.sources.len()) as u64;
        let is_beyond = |&id: &u64| id >= nodes;
        if !is_small || part.nodes.iter().any(is_beyond) || part.edges.sources.par_iter().any(is_beyond) {
            return None;
        }
        let bits = || vec![0u64; nodes as usize / 64 + 1];
        let at = |id: u64| ((id / 64) as usize, 1u64 << (id % 64));
        let mut own = bits();
        for (word, bit) in part.nodes.iter().map(|&id| at(id)) {
            own[word] |= bit;
        }
        // Bits of its own for each share, which together take an eighth of the memory of sources at most.
        let sources = &part.edges.sources;
        let count = rayon::current_num_threads().min(sources.len() / own.len() / 8).max(1);
        let size = sources.len().div_ceil(count).max(1);
        let of_share = |sources: &[u64]| {
            let (mut seen, mut edges) = (bits(), 0);
            for (word, bit) in sources.iter().map(|&id| at(id)) {
                // Whose the next is nobody foresees, so nothing hangs on it but what is written.
                let foreign = bit & !own[word];
                seen[word] |= foreign;
                edges += usize::from(foreign != 0);
            }
            (seen, edges)
        };
        let shares: Vec<_> = sources.par_chunks(size).map(of_share).collect();
        let (mut seen, mut edges) = (bits(), 0);
        for (of_share, more) in shares {
            seen.iter_mut().zip(of_share).for_each(|(seen, of_share)| *seen |= of_share);
            edges += more;
        }
        Some(Foreign { seen, edges })
    }

    /// Their ids, ascending.
    fn ids(&self) -> Vec<u64> {
        ids_of_bits(&self.seen).collect()
    }

    fn count(&self) -> usize {
        self.seen.iter().map(|word| word.count_ones() as usize).sum()
    }
}

/// For each of the `asked` ids, in any order, the own row, or `None` where another part owns it.
pub fn owned_of(part: &Part, asked: &[u64]) -> Vec<Option<u32>> {
    let own = IdIndex::new(&part.nodes);
    asked.iter().map(|&id| own.row(id)).collect()
}

/// The owner of each id of `needed`, from the answers of all ranks: `answers[p]` are the ids, ascending, among `needed`
/// that rank `p` owns.
///
/// # Errors
///
/// If an id has no owner or two; the message names an edge that needs it.
pub fn resolve_owners(part: &Part, needed: &[u64], answers: &[Vec<u64>]) -> Result<Vec<u32>> {
    const NOBODY: u32 = u32::MAX;
    countable(part, needed)?;
    let index = IdIndex::new(needed);
    let mut owners = vec![NOBODY; needed.len()];
    for (rank, answer) in answers.iter().enumerate() {
        for &id in answer {
            let Some(row) = index.row(id) else {
                let what = format!("rank {rank} answered with node {id}, which part {} did not ask for", part.index);
                return Err(GraphError::invalid(what));
            };
            let owner = &mut owners[row as usize];
            if *owner != NOBODY {
                let what = format!("is owned by both part {owner} and part {rank}");
                return Err(GraphError::invalid(format!("{} {what}", needed_by(part, id))));
            }
            *owner = rank as u32;
        }
    }
    match owners.iter().position(|&owner| owner == NOBODY) {
        None => Ok(owners),
        Some(row) => Err(GraphError::invalid(format!("{} is owned by no part", needed_by(part, needed[row])))),
    }
}

/// That no owner of a needed id is told, where owners are told.
pub(super) fn without_owner(part: &Part, id: u64) -> GraphError {
    let what = "is none of the nodes whose owners the part was told; cut the graph again";
    GraphError::invalid(format!("{} {what}", needed_by(part, id)))
}

/// Row numbers have 32 bits.
fn countable(part: &Part, needed: &[u64]) -> Result<()> {
    if needed.len() <= u32::MAX as usize {
        return Ok(());
    }
    Err(GraphError::invalid(format!("part {} needs {} halo rows, more than 2^32 − 1", part.index, needed.len())))
}

/// The own rows that `peer` asked for.
fn rows_for(part: &Part, peer: usize, asked: &[u64]) -> Result<Vec<u32>> {
    let rank = part.index;
    if let Some(pair) = asked.windows(2).find(|pair| pair[0] >= pair[1]) {
        let what = format!("rank {peer} asked rank {rank} for node {} after node {}", pair[1], pair[0]);
        return Err(GraphError::invalid(format!("{what}; expected ascending ids")));
    }
    if peer == rank as usize && !asked.is_empty() {
        return Err(GraphError::invalid(format!("rank {rank} asked itself for node {}", asked[0])));
    }
    let rows = owned_of(part, asked).into_iter().zip(asked);
    rows.map(|(row, id)| {
        row.ok_or_else(|| {
            GraphError::invalid(format!("rank {peer} asked rank {rank} for node {id}, which it does not own"))
        })
    })
    .collect()
}

/// The beginning of a message about a needed id: the id and the first edge that needs it.
fn needed_by(part: &Part, id: u64) -> String {
    let position = part.edges.sources.iter().position(|&source| source == id).unwrap_or(0) as u64;
    let row = part.edges.offsets.partition_point(|&offset| offset <= position).saturating_sub(1);
    let target = part.nodes.get(row).copied().unwrap_or(0);
    format!("node {id}, the source of the edge {id} -> {target} of part {},", part.index)
}
