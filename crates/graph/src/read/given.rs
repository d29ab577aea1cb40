//! Pairs that an interchange npz gives as no edges, to judge edges against that are held out.

use super::arrays::{Array, Npz};
use super::held::{Held, Listed, edge_index};
use crate::error::Result;
use crate::given::{GivenNegatives, GivenPairs};
use crate::limits::Limits;

/// For each split the names of its arrays: of held-out edges, of a pool, of targets of each edge's own.
const NAMES: [&[[&str; 3]]; 2] = [
    &[
        ["val_edge_index", "val_neg_edge_index", "val_neg_targets"],
        ["valid_edge_index", "valid_neg_edge_index", "valid_neg_targets"],
    ],
    &[["test_edge_index", "test_neg_edge_index", "test_neg_targets"]],
];

/// What stands in the place of targets of an edge that has none.
const NONE: i64 = -1;

/// The edges that pairs stand beside.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    /// Those that are held out.
    pub held: Option<&'a Held>,
    /// All of them.
    pub listed: Listed<'a>,
    /// How many nodes they are between.
    pub nodes: usize,
}

/// Reads them; `None` where there is no such array.
///
/// # Errors
/// If an array has another shape than what it belongs to, names a node that there is not, or a split has both forms; or
/// if nothing says which relation an edge with targets of its own is of.
pub fn read(npz: &mut Npz, beside: Beside<'_>, limits: &Limits) -> Result<Option<GivenNegatives<u32>>> {
    let mut given = [GivenPairs::default(), GivenPairs::default()];
    let mut found = false;
    for (pairs, names) in given.iter_mut().zip(NAMES) {
        let mut form = None;
        for [edges, pool, own] in names {
            for name in [pool, own].into_iter().filter(|name| npz.has(name)).collect::<Vec<_>>() {
                if let Some(other) = form.replace(name).filter(|other| (*other == pool) != (name == pool)) {
                    let what = format!("expected one form of pairs for a split, found {other} as well");
                    return Err(npz.error(name, what));
                }
                match name == pool {
                    true => read_pool(npz, name, (beside.nodes, limits), pairs)?,
                    false => read_own(npz, (name, edges), beside, limits, pairs)?,
                }
                found = true;
            }
        }
    }
    Ok(found.then_some(given))
}

/// Pairs that all edges of a split are judged against.
fn read_pool(
    npz: &mut Npz,
    name: &'static str,
    (nodes, limits): (usize, &Limits),
    into: &mut GivenPairs<u32>,
) -> Result<()> {
    let (sources, targets) = edge_index(npz, name, limits)?;
    if let Some(beyond) = sources.iter().chain(&targets).find(|&&end| end as usize >= nodes) {
        return Err(npz.error(name, format!("expected nodes in 0..{nodes}, found {beyond}")));
    }
    into.sources.extend(sources);
    into.targets.extend(targets);
    Ok(())
}

/// Targets that stand for that of each edge, a row an edge of the array `edges`. An edge from a node to itself is
/// none to predict, and neither are its.
fn read_own(
    npz: &mut Npz,
    (name, edges): (&'static str, &'static str),
    Beside { held, listed, nodes }: Beside<'_>,
    limits: &Limits,
    into: &mut GivenPairs<u32>,
) -> Result<()> {
    let Some([sources, targets]) = held.and_then(|held| held.of(edges)) else {
        return Err(npz.error(name, format!("expected {edges} beside it, whose edges it is about")));
    };
    let Array { shape, values } = npz.read::<i64>(name, limits.edges_max)?;
    if shape.len() != 2 || shape[0] != sources.len() || shape[1] == 0 {
        let expected = format!("[{}, targets], a row for each edge of {edges}", sources.len());
        return Err(npz.error(name, format!("expected the shape {expected}, found {shape:?}")));
    }
    if !into.is_empty() && into.each != shape[1] {
        return Err(npz.error(name, format!("expected {} targets an edge as before, found {}", into.each, shape[1])));
    }
    into.each = shape[1];
    let relations = held.filter(|_| listed.are_several).map(|held| held.relations(edges, listed)).unwrap_or_default();
    let ends = sources.iter().zip(targets).enumerate();
    for ((at, (&source, &target)), others) in ends.zip(values.chunks_exact(shape[1])) {
        if source == target || others.iter().all(|&other| other == NONE) {
            continue;
        }
        if let Some(beyond) = others.iter().find(|&&other| other < 0 || other >= nodes as i64) {
            let what = "or -1 in the whole row of an edge that is not judged";
            return Err(npz.error(name, format!("expected nodes in 0..{nodes}, {what}, found {beyond}")));
        }
        match relations.get(at) {
            None => {}
            Some(Some(relation)) => into.relations.push(*relation),
            Some(None) => {
                let what = format!("nothing says which relation the edge from {source} to {target} is of");
                let array = edges.replace("_index", "_type");
                return Err(npz.error(name, format!("{what}; {array} does, a number an edge of {edges}")));
            }
        }
        into.sources.push(source);
        into.targets.push(target);
        into.others.extend(others.iter().map(|&other| other as u32));
    }
    Ok(())
}
