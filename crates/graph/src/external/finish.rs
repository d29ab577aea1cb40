//! A part from its files: its arrays, and what predictions need to know of it.

use std::collections::BTreeMap;

use crate::dataset::{Features, Ids, Labels, Split};
use crate::edges::Edges;
use crate::owners::{IdBits, Owners};
use crate::part::{GlobalCounts, Part, PartCounts};
use crate::partition::PartQuality;
use crate::plan::{Listed, Sums, needs, sums};

use super::deal::Dealt;
use crate::error::Result;
use crate::read::passes::Id;

/// What is known of all nodes.
pub(super) struct Nodes<'a> {
    /// The part of each.
    pub(super) assignment: &'a [u32],
    /// The row of each in its part.
    pub(super) rows: &'a [u32],
    /// Empty without labels.
    pub(super) labels: &'a [i32],
    /// Empty without a split.
    pub(super) roles: &'a [u8],
    /// What the user calls each; `None` where they are called by their numbers.
    pub(super) id: &'a dyn Fn(u64) -> Option<Id<'a>>,
}

/// The part `index` of `parts`.
pub(super) fn part(dealt: &Dealt, nodes: &Nodes, (index, parts): (u32, u32), global: &GlobalCounts) -> Result<Part> {
    let of_part = |node: &usize| nodes.assignment[*node] == index;
    let members: Vec<u64> = (0..nodes.assignment.len()).filter(of_part).map(|node| node as u64).collect();
    let at = |node: &u64| *node as usize;
    let edges = Edges::new(dealt.offsets(index)?, dealt.sources(index)?);
    let mut needed = IdBits::new(nodes.assignment.len());
    let foreign = |source: &&u64| nodes.assignment[**source as usize] != index;
    edges.sources.iter().filter(foreign).for_each(|&source| needed.add(source));
    let place = |id: u64| (nodes.assignment[id as usize], nodes.rows[id as usize]);
    Ok(Part {
        index,
        parts,
        edges,
        owners: Some(Owners::of(&needed, place)),
        left_out: Vec::new(),
        negatives: None,
        features: match global.columns {
            0 => Features::None,
            columns => Features::Dense { columns, values: dealt.feature_values(index)?.into() },
        },
        labels: match nodes.labels {
            [] => Labels::None,
            labels => Labels::Single {
                classes: global.classes,
                values: members.iter().map(|node| labels[at(node)]).collect(),
            },
        },
        roles: match nodes.roles {
            [] => Vec::new(),
            roles => members.iter().map(|node| roles[at(node)]).collect(),
        },
        ids: ids(nodes, &members),
        global: global.clone(),
        nodes: members,
    })
}

/// What the user calls these nodes.
fn ids(nodes: &Nodes, members: &[u64]) -> Ids {
    let all = || members.iter().filter_map(|&node| (nodes.id)(node));
    match (nodes.id)(0) {
        None => Ids::Row,
        Some(Id::Integer(_)) => {
            let integer = |id| if let Id::Integer(id) = id { Some(id) } else { None };
            Ids::Integers(all().filter_map(integer).collect())
        }
        Some(Id::Text(_)) => {
            let text = |id| if let Id::Text(id) = id { Some(id.to_owned()) } else { None };
            Ids::Strings(all().filter_map(text).collect())
        }
    }
}

/// What predictions need to know of the part but for what it has to tell others, what it takes to know that, and what
/// the part costs. Sees the length of a list of ids without making the list.
pub(super) fn count(part: &Part, assignment: &[u32]) -> (PartCounts, BTreeMap<u32, Sums>, PartQuality) {
    let mut counts = PartCounts { knows_owners: part.owners.is_some(), ..PartCounts::default() };
    for row in 0..part.rows() {
        for &source in part.edges.in_neighbours(row) {
            if assignment[source as usize] == part.index {
                counts.own_edges += 1;
                counts.loops += u64::from(source == part.nodes[row]);
            } else {
                counts.halo_edges += 1;
            }
        }
    }
    let mut all = Listed::default();
    let mut of_owner = BTreeMap::<u32, Listed>::new();
    for (&id, &owner) in part.owners.iter().flat_map(|owners| owners.ids.iter().zip(&owners.parts)) {
        of_owner.entry(owner).or_default().add(all.rows());
        all.add(id);
    }
    counts.asked_bytes = all.bytes();
    counts.needs = needs(of_owner);
    let is_of = |row: usize, role: u8| part.roles[row] & role != 0 && part.labels.known(row) > 0;
    let labelled = |role| (0..part.roles.len()).filter(|&row| is_of(row, role)).count() as u64;
    counts.labelled = [Split::TRAIN, Split::VAL, Split::TEST].map(labelled);
    counts.feature_values = (part.features.columns() * part.rows()) as u64;
    let train = part.roles.iter().filter(|&&role| role & Split::TRAIN != 0).count() as u64;
    let figures = [part.rows() as u64, part.edges.edges() as u64, train, all.rows()];
    let sums = sums(part, |id| Some(assignment[id as usize]));
    (counts, sums, PartQuality::new(figures, (part.features.columns(), 4)))
}
