//! Cutting a dataset into parts along an assignment of its nodes.

use laconic_array::Array;
use rayon::prelude::*;

use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::digest::{digest, digest_of_assignment};
use crate::edges::{Edges, in_pieces};
use crate::error::{GraphError, Result};
use crate::given::GivenPairs;
use crate::graph::Graph;
use crate::info::overlapping_roles;
use crate::leaks::Leaks;
use crate::node_types::types_of;
use crate::owners::{IdBits, Owners};
use crate::part::{GlobalCounts, Part};
use crate::type_runs::TypeRuns;

/// Nodes whose rows one thread copies at once.
const AT_ONCE: usize = 1 << 14;

/// Cuts `dataset` into `parts` parts: node `v` goes to part `assignment[v]`, each edge to the part of its target.
/// `split` chooses one of [`Dataset::splits`].
///
/// # Errors
///
/// If there is not a part below `parts` for each node, no such split, or a node that is for more than one thing in it.
pub fn cut(dataset: &Dataset, split: Option<usize>, assignment: &[u32], parts: u32) -> Result<Vec<Part>> {
    Ok(cut_one_by_one(dataset, split, assignment, parts)?.collect())
}

/// Like [`cut`], but makes each part when it is asked for, so that only one needs to be in memory besides the dataset.
///
/// # Errors
///
/// As [`cut`], before the first part is made.
pub fn cut_one_by_one<'a>(
    dataset: &'a Dataset,
    split: Option<usize>,
    assignment: &[u32],
    parts: u32,
) -> Result<impl Iterator<Item = Part> + use<'a>> {
    let nodes = dataset.graph.nodes();
    if assignment.len() != nodes {
        return Err(GraphError::invalid(format!("{nodes} nodes, but parts for {}", assignment.len())));
    }
    if let Some(node) = assignment.iter().position(|&part| part >= parts) {
        let part = assignment[node];
        return Err(GraphError::invalid(format!("node {node} goes to part {part}, but there are only {parts} parts")));
    }
    let roles: &[u8] = match split {
        None => &[],
        Some(index) => &dataset.splits.get(index).map(|split| &split.roles).ok_or_else(|| {
            GraphError::invalid(format!("{} has {} splits, no split {index}", dataset.name, dataset.splits.len()))
        })?[..],
    };
    if let Some(what) = overlapping_roles(roles, &dataset.ids) {
        return Err(GraphError::invalid(format!("{}: split {}: {what}", dataset.name, split.unwrap_or(0))));
    }
    let mut members = vec![Vec::new(); parts as usize];
    let mut places = Vec::with_capacity(nodes);
    for (node, &part) in assignment.iter().enumerate() {
        places.push((part, members[part as usize].len() as u32));
        members[part as usize].push(node as u32);
    }
    let global =
        GlobalCounts { partition_digest: digest_of_assignment(assignment, parts), ..global_counts(dataset, roles) };
    Ok(members.into_iter().enumerate().map(move |(index, members)| Part {
        index: index as u32,
        parts,
        nodes: members.iter().map(|&node| u64::from(node)).collect(),
        edges: edges_into(&dataset.graph, &members),
        owners: Some(owners_for(&dataset.graph, &members, (index as u32, &places))),
        left_out: Vec::new(),
        negatives: dataset.negatives.as_ref().map(|given| {
            let own = |_, target: u32| members.binary_search(&target).is_ok();
            given.each_ref().map(|pairs| pairs.renamed(own, |node| Some(u64::from(node))))
        }),
        features: feature_rows(&dataset.features, &members),
        labels: label_rows(&dataset.labels, &members),
        roles: if roles.is_empty() { Vec::new() } else { gather(roles, 1, &members) },
        ids: match &dataset.ids {
            Ids::Row => Ids::Row,
            Ids::Integers(ids) => Ids::Integers(gather(ids, 1, &members)),
            Ids::Strings(ids) => Ids::Strings(members.iter().map(|&node| ids[node as usize].clone()).collect()),
        },
        global: global.clone(),
    }))
}

fn global_counts(dataset: &Dataset, roles: &[u8]) -> GlobalCounts {
    let count = |role| roles.iter().filter(|&&r| r & role != 0).count() as u64;
    GlobalCounts {
        dataset: dataset.name.clone(),
        data_digest: digest(dataset),
        schema: String::new(),
        partition_digest: String::new(),
        nodes: dataset.graph.nodes() as u64,
        edges: dataset.graph.edges() as u64,
        train: count(Split::TRAIN),
        val: count(Split::VAL),
        test: count(Split::TEST),
        columns: dataset.features.columns(),
        classes: dataset.labels.classes(),
        multi_label: matches!(dataset.labels, Labels::Multi { .. }),
        weighted: dataset.graph.data.weights.is_some(),
        relations: dataset.graph.data.kinds(),
        held: dataset.graph.data.held_counts(),
        leaks: Leaks::of(&dataset.graph),
        negatives: dataset.negatives.as_ref().map(|given| given.each_ref().map(GivenPairs::counts)),
        types: types_of(&dataset.features, &dataset.about.node_types).map(TypeRuns::of).unwrap_or_default(),
        about: dataset.about.clone(),
        part_names: Vec::new(),
    }
}

fn edges_into(graph: &Graph, members: &[u32]) -> Edges<u64> {
    let mut offsets = Vec::with_capacity(members.len() + 1);
    offsets.push(0);
    let mut edges = 0;
    for &node in members {
        edges += graph.in_edges(node as usize).len();
        offsets.push(edges as u64);
    }
    let mut data = graph.data.like(edges);
    members.iter().for_each(|&node| data.extend(&graph.data, graph.in_edges(node as usize)));
    let mut sources = laconic_array::zeros::<u64>(edges);
    let lengths = members.chunks(AT_ONCE).map(|members| {
        let edges = members.iter().map(|&node| graph.in_edges(node as usize).len());
        edges.sum()
    });
    let pieces = in_pieces(&mut sources, &lengths.collect::<Vec<usize>>());
    members.par_chunks(AT_ONCE).zip(pieces).for_each(|(members, sources)| {
        let all = members.iter().flat_map(|&node| graph.in_neighbours(node as usize));
        sources.iter_mut().zip(all).for_each(|(into, &source)| *into = u64::from(source));
    });
    Edges { offsets, sources, data }
}

/// Who owns what part `index`, of these members, needs of others, by the part and row of each node.
fn owners_for(graph: &Graph, members: &[u32], (index, places): (u32, &[(u32, u32)])) -> Owners {
    let mut needed = IdBits::new(places.len());
    let sources = members.iter().flat_map(|&node| graph.in_neighbours(node as usize));
    sources.filter(|&&source| places[source as usize].0 != index).for_each(|&source| needed.add(source.into()));
    Owners::of(&needed, |id| places[id as usize])
}

fn feature_rows(features: &Features, members: &[u32]) -> Features {
    match features {
        Features::None => Features::None,
        // All of them in their order: what a program lends is lent on.
        Features::Dense { columns, values } if is_lent_whole(values, members.len() * columns) => {
            Features::Dense { columns: *columns, values: values.clone() }
        }
        Features::Dense { columns, values } => {
            let mut rows = Array::zeros(members.len() * columns);
            gather_with(&mut rows, *columns, members, |node, row| values.copy_to(node * columns, row));
            Features::Dense { columns: *columns, values: rows }
        }
        Features::Sparse { columns, offsets, indices, values } => {
            let row = |node: u32| offsets[node as usize] as usize..offsets[node as usize + 1] as usize;
            let mut own = vec![0];
            let (mut own_indices, mut own_values) = (Vec::new(), Vec::new());
            for &node in members {
                own_indices.extend_from_slice(&indices[row(node)]);
                own_values.extend_from_slice(&values[row(node)]);
                own.push(own_indices.len() as u64);
            }
            Features::Sparse { columns: *columns, offsets: own, indices: own_indices, values: own_values }
        }
    }
}

/// Whether a part of so many values has all that a program lends, which workers can read where they are.
fn is_lent_whole(values: &Array<f32>, part: usize) -> bool {
    values.lender().is_some() && values.is_in_place() && part == values.len()
}

fn label_rows(labels: &Labels, members: &[u32]) -> Labels {
    match labels {
        Labels::None => Labels::None,
        Labels::Single { classes, values } => Labels::Single { classes: *classes, values: gather(values, 1, members) },
        Labels::Multi { classes, values } => {
            Labels::Multi { classes: *classes, values: gather(values, *classes, members) }
        }
    }
}

/// The rows `members` of a matrix of `width` columns.
fn gather<T: Copy + Default + Send + Sync>(values: &[T], width: usize, members: &[u32]) -> Vec<T> {
    let mut rows = vec![T::default(); members.len() * width];
    gather_with(&mut rows, width, members, |node, row| row.copy_from_slice(&values[node * width..][..width]));
    rows
}

/// Fills rows of `width` values, one for each member, with what `copy` writes into the row of a node.
fn gather_with<T: Send>(rows: &mut [T], width: usize, members: &[u32], copy: impl Fn(usize, &mut [T]) + Sync) {
    let pieces = rows.par_chunks_mut((AT_ONCE * width).max(1)).zip(members.par_chunks(AT_ONCE));
    pieces.for_each(|(rows, members)| {
        rows.chunks_exact_mut(width).zip(members).for_each(|(row, &node)| copy(node as usize, row));
    });
}
