//! The id exchange without a network, for predictions, one-process runs and tests.

use crate::error::{GraphError, Result};
use crate::part::Part;
use crate::plan::{HaloPlan, Topology, needed, owned_of, resolve_owners};

/// The plan and the blocks of every part, `parts[k]` being part `k` of all. Also finds nodes that two parts own and
/// nobody needs, which no part alone could.
///
/// # Errors
///
/// If the parts are not all there in order, one breaks its rules, two own one node, or none owns a source.
pub fn plan_all(parts: &[Part], self_loops: bool) -> Result<Vec<(HaloPlan, Topology)>> {
    for (rank, part) in parts.iter().enumerate() {
        part.check()?;
        if part.index as usize != rank || part.parts as usize != parts.len() {
            let what = format!("part {} of {} at place {rank} of {}", part.index, part.parts, parts.len());
            return Err(GraphError::invalid(format!("expected all parts in order, found {what}")));
        }
    }
    no_node_twice(parts)?;
    let needed: Vec<Vec<u64>> = parts.iter().map(needed).collect();
    // answers[p][q]: what rank q told rank p it owns.
    let answers: Vec<Vec<Vec<u64>>> =
        needed.iter().map(|ids| parts.iter().map(|peer| answer(peer, ids)).collect()).collect();
    let plan = |(rank, part): (usize, &Part)| {
        let owners = resolve_owners(part, &needed[rank], &answers[rank])?;
        let asked_by: Vec<Vec<u64>> = answers.iter().map(|of_peer| of_peer[rank].clone()).collect();
        HaloPlan::build(part, &owners, &asked_by, self_loops)
    };
    parts.iter().enumerate().map(plan).collect()
}

/// Those of `ids` that `part` owns.
fn answer(part: &Part, ids: &[u64]) -> Vec<u64> {
    owned_of(part, ids).into_iter().zip(ids).filter_map(|(row, &id)| row.map(|_| id)).collect()
}

fn no_node_twice(parts: &[Part]) -> Result<()> {
    let mut owned: Vec<(u64, u32)> =
        parts.iter().flat_map(|part| part.nodes.iter().map(move |&id| (id, part.index))).collect();
    owned.sort_unstable();
    match owned.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        None => Ok(()),
        Some(pair) => {
            let (id, first, second) = (pair[0].0, pair[0].1, pair[1].1);
            Err(GraphError::invalid(format!("node {id} is owned by both part {first} and part {second}")))
        }
    }
}
