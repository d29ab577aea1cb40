//! All parts of a graph as one.

use super::Part;
use crate::dataset::{Features, Ids, Labels};
use crate::edges::Edges;
use crate::error::{GraphError, Result};
use crate::given::GivenPairs;

/// Where a node of the whole is: the number of its part, and its row there.
type Place = (usize, usize);

impl Part {
    /// All parts of a graph as its only one: for who judges a model on the whole, where the whole may be seen.
    ///
    /// # Errors
    /// If there are no parts, they are not those of one graph, or a file has changed that features are read from.
    pub fn whole(parts: &[Part]) -> Result<Part> {
        let first = parts.first().ok_or_else(|| GraphError::invalid("there are no parts"))?;
        let places = places(parts)?;
        let nodes: Vec<u64> = places.iter().map(|&(part, row)| parts[part].nodes[row]).collect();
        let count: usize = parts.iter().map(|part| part.edges.edges()).sum();
        let mut edges =
            Edges { offsets: vec![0], sources: Vec::with_capacity(count), data: first.edges.data.like(count) };
        for &(part, row) in &places {
            let of = &parts[part].edges;
            edges.sources.extend_from_slice(of.in_neighbours(row));
            edges.data.extend(&of.data, of.in_edges(row));
            edges.offsets.push(edges.sources.len() as u64);
        }
        let differ = || GraphError::invalid(format!("{}: parts hold different things", first.global.dataset));
        let features = features(parts, &places).ok_or_else(differ)?;
        if let Some(path) = parts.iter().find_map(|part| part.features.changed_file()) {
            let what = "the file has changed since it was opened, and the whole graph takes its features from it";
            return Err(GraphError::format(path, "features", what));
        }
        let global = super::GlobalCounts { partition_digest: String::new(), ..first.global.clone() };
        Ok(Part {
            index: 0,
            parts: 1,
            nodes,
            edges,
            owners: None,
            left_out: Vec::new(),
            negatives: negatives(parts),
            features,
            labels: labels(parts, &places).ok_or_else(differ)?,
            roles: rows(parts, &places, 1, |part| Some(&part.roles)).unwrap_or_default(),
            ids: ids(parts, &places).ok_or_else(differ)?,
            global,
        })
    }
}

/// The places of all nodes, by their ids.
fn places(parts: &[Part]) -> Result<Vec<Place>> {
    let all = parts.iter().enumerate().flat_map(|(part, of)| (0..of.rows()).map(move |row| (part, row)));
    let mut places: Vec<Place> = all.collect();
    let id = |&(part, row): &Place| parts[part].nodes[row];
    places.sort_unstable_by_key(id);
    if let Some(pair) = places.windows(2).find(|pair| id(&pair[0]) == id(&pair[1])) {
        let (name, node, [(a, _), (b, _)]) = (&parts[0].global.dataset, id(&pair[0]), [pair[0], pair[1]]);
        return Err(GraphError::invalid(format!("{name}: node {node} is in part {a} and in part {b}")));
    }
    Ok(places)
}

/// The rows of a matrix of `width` columns that each part has some of; `None` where one has none of it.
fn rows<T: Copy>(parts: &[Part], places: &[Place], width: usize, of: impl Fn(&Part) -> Option<&[T]>) -> Option<Vec<T>> {
    let mut all = Vec::with_capacity(places.len() * width);
    for &(part, row) in places {
        all.extend_from_slice(of(&parts[part])?.get(row * width..(row + 1) * width)?);
    }
    Some(all)
}

fn features(parts: &[Part], places: &[Place]) -> Option<Features> {
    match &parts[0].features {
        Features::None => Some(Features::None),
        Features::Dense { columns, .. } => {
            let values = rows(parts, places, *columns, |part| match &part.features {
                Features::Dense { columns: own, values } if own == columns => Some(values),
                _ => None,
            })?;
            Some(Features::Dense { columns: *columns, values: values.into() })
        }
        Features::Sparse { columns, .. } => {
            let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for &(part, row) in places {
                let Features::Sparse { offsets: of, indices: own, values: given, .. } = &parts[part].features else {
                    return None;
                };
                let range = of[row] as usize..of[row + 1] as usize;
                indices.extend_from_slice(&own[range.clone()]);
                values.extend_from_slice(&given[range]);
                offsets.push(indices.len() as u64);
            }
            Some(Features::Sparse { columns: *columns, offsets, indices, values })
        }
    }
}

fn labels(parts: &[Part], places: &[Place]) -> Option<Labels> {
    match &parts[0].labels {
        Labels::None => Some(Labels::None),
        Labels::Single { classes, .. } => {
            let values = rows(parts, places, 1, |part| match &part.labels {
                Labels::Single { values, .. } => Some(values),
                _ => None,
            })?;
            Some(Labels::Single { classes: *classes, values })
        }
        Labels::Multi { classes, .. } => {
            let values = rows(parts, places, *classes, |part| match &part.labels {
                Labels::Multi { values, classes: own } if own == classes => Some(values),
                _ => None,
            })?;
            Some(Labels::Multi { classes: *classes, values })
        }
    }
}

fn ids(parts: &[Part], places: &[Place]) -> Option<Ids> {
    match &parts[0].ids {
        Ids::Row => Some(Ids::Row),
        Ids::Integers(_) => {
            let integers = rows(parts, places, 1, |part| match &part.ids {
                Ids::Integers(ids) => Some(ids),
                _ => None,
            })?;
            Some(Ids::Integers(integers))
        }
        Ids::Strings(_) => {
            let string = |&(part, row): &Place| match &parts[part].ids {
                Ids::Strings(ids) => ids.get(row).cloned(),
                _ => None,
            };
            Some(Ids::Strings(places.iter().map(string).collect::<Option<Vec<_>>>()?))
        }
    }
}

/// The pairs of all parts, part by part.
fn negatives(parts: &[Part]) -> Option<[GivenPairs<u64>; 2]> {
    let mut all = parts[0].negatives.clone()?;
    for part in &parts[1..] {
        for (all, own) in all.iter_mut().zip(part.negatives.iter().flatten()) {
            all.each = all.each.max(own.each);
            all.sources.extend_from_slice(&own.sources);
            all.targets.extend_from_slice(&own.targets);
            all.others.extend_from_slice(&own.others);
            all.relations.extend_from_slice(&own.relations);
        }
    }
    Some(all)
}
