//! The subgraph that training nodes induce: what training sees where validation and test nodes are to be new to it.
//!
//! Rows stay what they are, so that both graphs share features, labels and masks; only edges go. A part knows roles of
//! its own nodes alone, so owners are asked once more: of the sources of edges that end at training nodes, they own up
//! to those that are training nodes. The others' edges are dropped.

use crate::dataset::{Features, Ids, Labels, Split};
use crate::edges::Edges;
use crate::error::Result;
use crate::part::{GlobalCounts, Part};
use crate::plan::halo::{HaloPlan, needed, owned_of};
use crate::plan::index::IdIndex;
use crate::plan::memory::plan_all;
use crate::plan::topology::Topology;

/// The part without edges that end at nodes which do not train, and without anything but edges.
pub fn into_training(part: &Part) -> Part {
    with_edges(part, |row, _| trains(part, row))
}

/// Of an [`into_training`], the edges that start at training nodes: own ones, or those of `trained`, ascending, which
/// others own.
pub fn among_training(part: &Part, into_training: &Part, trained: &[u64]) -> Part {
    let (own, others) = (IdIndex::new(&part.nodes), IdIndex::new(trained));
    with_edges(into_training, |_, source| match own.row(source) {
        Some(row) => trains(part, row as usize),
        None => others.row(source).is_some(),
    })
}

/// Those of the `asked` ids that `part` owns and trains on.
pub fn trained_of(part: &Part, asked: &[u64]) -> Vec<u64> {
    let rows = owned_of(part, asked).into_iter().zip(asked);
    rows.filter_map(|(row, &id)| row.filter(|&row| trains(part, row as usize)).map(|_| id)).collect()
}

/// What [`plan_all`] does, for the subgraph that training nodes induce; and the ids that each part asks for.
///
/// # Errors
///
/// As [`plan_all`].
pub fn plan_training(parts: &[Part], self_loops: bool) -> Result<Vec<(Vec<u64>, HaloPlan, Topology)>> {
    let of = |part: &Part| {
        let into = into_training(part);
        let asked = needed(&into);
        let mut trained: Vec<u64> = parts.iter().flat_map(|peer| trained_of(peer, &asked)).collect();
        trained.sort_unstable();
        (asked, among_training(part, &into, &trained))
    };
    let (asked, induced): (Vec<Vec<u64>>, Vec<Part>) = parts.iter().map(of).unzip();
    let plans = plan_all(&induced, self_loops)?;
    Ok(asked.into_iter().zip(plans).map(|(asked, (plan, topology))| (asked, plan, topology)).collect())
}

fn trains(part: &Part, row: usize) -> bool {
    part.roles.get(row).is_some_and(|role| role & Split::TRAIN != 0)
}

/// The nodes of a part with those of its edges that `keep` says, by own row and source.
fn with_edges(part: &Part, keep: impl Fn(usize, u64) -> bool) -> Part {
    let (mut offsets, mut sources) = (vec![0], Vec::new());
    let (edges, mut data) = (&part.edges, part.edges.data.like(0));
    for row in 0..part.rows() {
        for edge in edges.in_edges(row).filter(|&edge| keep(row, edges.sources[edge])) {
            sources.push(edges.sources[edge]);
            data.extend(&edges.data, edge..edge + 1);
        }
        offsets.push(sources.len() as u64);
    }
    // Who plans an exchange asks for no links.
    data.held = None;
    Part {
        index: part.index,
        parts: part.parts,
        nodes: part.nodes.clone(),
        edges: Edges { offsets, sources, data },
        owners: None,
        left_out: Vec::new(),
        negatives: None,
        features: Features::None,
        labels: Labels::None,
        roles: Vec::new(),
        ids: Ids::Row,
        global: GlobalCounts { nodes: u64::MAX, ..GlobalCounts::default() },
    }
}
