//! Edges that an interchange npz holds out to be predicted.

use std::collections::HashMap;

use super::arrays::{Array, Npz};
use crate::edges::EdgeData;
use crate::error::Result;
use crate::limits::Limits;

/// Names of the arrays, each with that of their relations and with the role of their edges; the first two are one.
const NAMES: [(&str, &str, u8); 3] = [
    ("val_edge_index", "val_edge_type", 1),
    ("valid_edge_index", "valid_edge_type", 1),
    ("test_edge_index", "test_edge_type", 2),
];

/// Edges that are held out.
pub struct Held(Vec<HeldArray>);

/// Those of one array.
struct HeldArray {
    name: &'static str,
    /// The name of the array that says their relations.
    of: &'static str,
    role: u8,
    ends: [Vec<u32>; 2],
    /// The relation of each, where that is said; otherwise an edge stands for all between its ends.
    relations: Option<Vec<u16>>,
}

/// All edges as the file lists them.
#[derive(Clone, Copy)]
pub struct Listed<'a> {
    pub sources: &'a [u32],
    pub targets: &'a [u32],
    pub data: &'a EdgeData,
    /// Whether their directions count for nothing: each gets its other one.
    pub undirected: bool,
    /// Whether edges are of several relations, those of other directions among them.
    pub are_several: bool,
}

/// The edges of a graph that is to be.
pub struct EdgeLists {
    /// Where each edge starts.
    pub sources: Vec<u32>,
    /// Where each edge ends.
    pub targets: Vec<u32>,
    /// What else is known of them.
    pub data: EdgeData,
}

/// Reads them, with their relations where edges are `typed`; `None` where there is no such array.
pub fn read(npz: &mut Npz, typed: bool, limits: &Limits) -> Result<Option<Held>> {
    let mut found = Vec::new();
    for (name, of, role) in NAMES {
        if npz.has(name) {
            let (sources, targets) = edge_index(npz, name, limits)?;
            let relations = if typed { npz.optional::<u16>(of, limits.edges_max)? } else { None };
            let relations = relations.map(|Array { values, .. }| values);
            if relations.is_some() && !npz.has("edge_type") {
                return Err(npz.error(of, "expected edge_type beside it, the relations of edge_index"));
            }
            if let Some(relations) = relations.as_ref().filter(|relations| relations.len() != sources.len()) {
                let what = format!("expected {} values, one an edge, found {}", sources.len(), relations.len());
                return Err(npz.error(of, what));
            }
            found.push(HeldArray { name, of, role, ends: [sources, targets], relations });
        }
    }
    Ok((!found.is_empty()).then_some(Held(found)))
}

impl HeldArray {
    /// Each edge, with its relation where that is said.
    fn edges(&self) -> impl Iterator<Item = (u32, u32, Option<u16>)> {
        let relations = self.relations.iter().flatten().copied().map(Some).chain(std::iter::repeat(None));
        let [sources, targets] = &self.ends;
        sources.iter().zip(targets).zip(relations).map(|((&source, &target), relation)| (source, target, relation))
    }
}

impl Held {
    /// Every node at the end of one.
    pub fn ends(&self) -> impl Iterator<Item = &u32> {
        self.0.iter().flat_map(|array| array.ends.iter().flatten())
    }

    /// The sources and targets of one of the arrays.
    pub fn of(&self, array: &str) -> Option<&[Vec<u32>; 2]> {
        self.0.iter().find(|held| held.name == array).map(|held| &held.ends)
    }

    /// The largest relation that is named, with the array that names it.
    pub fn last_relation(&self) -> Option<(u16, &'static str)> {
        let lasts = self.0.iter().filter_map(|held| Some((held.relations.iter().flatten().copied().max()?, held.of)));
        lasts.max_by_key(|(last, _)| *last)
    }

    /// The relation that each edge of one of the arrays is of among all edges: the one that is said, or else that of
    /// the only edge between its ends. `None` where that is not known. The other direction of an edge of relation r is
    /// one of relation r + R where directions count for nothing, of R relations.
    pub fn relations(&self, array: &str, listed: Listed<'_>) -> Vec<Option<u16>> {
        let Some(held) = self.0.iter().find(|held| held.name == array) else { return Vec::new() };
        let mut between: HashMap<(u32, u32), Vec<u16>> = HashMap::new();
        held.edges().for_each(|(source, target, _)| drop(between.insert((source, target), Vec::new())));
        for (edge, (&source, &target)) in listed.sources.iter().zip(listed.targets).enumerate() {
            let relation = listed.data.relation(edge);
            let back = relation.wrapping_add(listed.data.kinds() as u16);
            for (ends, relation) in
                [((source, target), Some(relation)), ((target, source), listed.undirected.then_some(back))]
            {
                if let (Some(found), Some(relation)) = (between.get_mut(&ends), relation) {
                    found.push(relation);
                }
            }
        }
        let relation = |(source, target, said): (u32, u32, Option<u16>)| {
            let found = &between[&(source, target)];
            match said {
                Some(relation) => {
                    let back = relation.wrapping_add(listed.data.kinds() as u16);
                    let is_back = listed.undirected && !found.contains(&relation) && found.contains(&back);
                    Some(if is_back { back } else { relation })
                }
                None => found.first().copied().filter(|first| found.iter().all(|other| other == first)),
            }
        };
        held.edges().map(relation).collect()
    }

    /// Marks those that are among the edges, whose directions count for nothing where they are `undirected`, and
    /// appends those that are not. One whose relation is not said stands for the edges of all relations between its
    /// ends.
    ///
    /// # Errors
    /// If an edge is held out for validation and for testing, or one that is not among the edges would have to have a
    /// relation.
    pub fn join(self, edges: &mut EdgeLists, undirected: bool) -> std::result::Result<(), (&'static str, String)> {
        let EdgeLists { sources, targets, data } = edges;
        let key = |source: u32, target: u32, relation: Option<u16>| match undirected {
            true => (source.min(target), source.max(target), relation),
            false => (source, target, relation),
        };
        let twice = |name, source, target| (name, format!("the edge from {source} to {target} is held out twice"));
        let mut roles: HashMap<(u32, u32, Option<u16>), (u8, bool)> = HashMap::new();
        for array in &self.0 {
            for (source, target, relation) in array.edges() {
                let (known, _) = roles.entry(key(source, target, relation)).or_insert((array.role, false));
                if *known != array.role {
                    return Err(twice(array.name, source, target));
                }
            }
        }
        let mut held = Vec::with_capacity(sources.len());
        for (edge, (&source, &target)) in sources.iter().zip(targets.iter()).enumerate() {
            let mut role = 0;
            for relation in [None, Some(data.relation(edge))] {
                let Some((known, is_there)) = roles.get_mut(&key(source, target, relation)) else { continue };
                if role > 0 && role != *known {
                    return Err(twice(self.0[0].name, source, target));
                }
                (role, *is_there) = (*known, true);
            }
            held.push(role);
        }
        data.held = Some(held);
        for array in &self.0 {
            for (source, target, relation) in array.edges() {
                let Some((role, false)) = roles.get(&key(source, target, relation)).copied() else { continue };
                if data.relations.is_some() && relation.is_none() {
                    let what = format!("is not in edge_index, with a type, and there is no {} to say one", array.of);
                    return Err((array.name, format!("the edge from {source} to {target} {what}")));
                }
                sources.push(source);
                targets.push(target);
                data.push_plain();
                data.held.iter_mut().filter_map(|held| held.last_mut()).for_each(|last| *last = role);
                let last = data.relations.as_mut().and_then(|relations| relations.of.last_mut());
                last.into_iter().zip(relation).for_each(|(last, relation)| *last = relation);
            }
        }
        Ok(())
    }
}

/// Row 0 and row 1 of an array like `edge_index`.
pub(super) fn edge_index(npz: &mut Npz, name: &str, limits: &Limits) -> Result<(Vec<u32>, Vec<u32>)> {
    let Array { shape, values: mut sources } = npz.read::<u32>(name, limits.edges_max.saturating_mul(2))?;
    if shape.len() != 2 || shape[0] != 2 {
        return Err(npz.error(name, format!("expected the shape [2, edges], found {shape:?}")));
    }
    let targets = sources.split_off(shape[1]);
    Ok((sources, targets))
}
