//! Edges that an interchange npz holds out to be predicted.

use std::collections::HashMap;

use super::arrays::Npz;
use super::interchange::edge_index;
use crate::edges::EdgeData;
use crate::error::Result;
use crate::limits::Limits;

/// Names of the arrays, each with the role of its edges; the first two are one.
const NAMES: [(&str, u8); 3] = [("val_edge_index", 1), ("valid_edge_index", 1), ("test_edge_index", 2)];

/// Edges that are held out.
pub struct Held(Vec<(&'static str, u8, [Vec<u32>; 2])>);

/// Reads them; `None` where there is no such array.
pub fn read(npz: &mut Npz, limits: &Limits) -> Result<Option<Held>> {
    let mut found = Vec::new();
    for (name, role) in NAMES {
        if npz.has(name) {
            let (sources, targets) = edge_index(npz, name, limits)?;
            found.push((name, role, [sources, targets]));
        }
    }
    Ok((!found.is_empty()).then_some(Held(found)))
}

impl Held {
    /// Every node at the end of one.
    pub fn ends(&self) -> impl Iterator<Item = &u32> {
        self.0.iter().flat_map(|(_, _, ends)| ends.iter().flatten())
    }

    /// The sources and targets of one of the arrays.
    pub fn of(&self, array: &str) -> Option<&[Vec<u32>; 2]> {
        self.0.iter().find(|(name, ..)| *name == array).map(|(.., ends)| ends)
    }

    /// Marks those that are among the edges, whose directions count for nothing where they are `undirected`, and
    /// appends those that are not.
    ///
    /// # Errors
    /// If an edge is held out for validation and for testing, or one that is not among the edges would have to have a
    /// relation.
    pub fn join(
        self,
        (sources, targets, data): (&mut Vec<u32>, &mut Vec<u32>, &mut EdgeData),
        undirected: bool,
    ) -> std::result::Result<(), (&'static str, String)> {
        let key = |source: u32, target: u32| match undirected {
            true => (source.min(target), source.max(target)),
            false => (source, target),
        };
        let mut roles: HashMap<(u32, u32), (u8, bool)> = HashMap::new();
        for (name, role, [sources, targets]) in &self.0 {
            for (&source, &target) in sources.iter().zip(targets) {
                let (known, _) = roles.entry(key(source, target)).or_insert((*role, false));
                if known != role {
                    return Err((name, format!("the edge from {source} to {target} is held out twice")));
                }
            }
        }
        let mut held = Vec::with_capacity(sources.len());
        for (&source, &target) in sources.iter().zip(targets.iter()) {
            held.push(roles.get_mut(&key(source, target)).map_or(0, |(role, is_there)| {
                *is_there = true;
                *role
            }));
        }
        data.held = Some(held);
        for (name, _, [from, to]) in &self.0 {
            for (&source, &target) in from.iter().zip(to) {
                let Some((role, false)) = roles.get(&key(source, target)).copied() else { continue };
                if data.relations.is_some() {
                    return Err((
                        name,
                        format!("the edge from {source} to {target} is not in edge_index, with a type"),
                    ));
                }
                sources.push(source);
                targets.push(target);
                data.push_plain();
                data.held.iter_mut().filter_map(|held| held.last_mut()).for_each(|last| *last = role);
            }
        }
        Ok(())
    }
}
