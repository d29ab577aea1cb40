//! How workers agree on sums that cross in the place of rows, where `messages.selection` asks for them.
//!
//! Both ends of a link compute the same cover of the edges between them ([`Cuts`]). First they say in a digest which
//! edges they see there: 16 bytes a peer, in one step.

use laconic_graph::part::Part;
use laconic_graph::plan::{Covered, Cuts, HaloPlan, Topology};
use laconic_wire::{Rank, Transport, collectives};

use super::steps::Step;
use crate::error::{Result, TrainError};

/// What crosses in place of rows where sums may stand for them, once both ends of each link are known to see the same
/// edges; `ids` are those of own rows. 16 bytes a peer.
///
/// # Errors
/// If an edge between parts leads one way alone, or another way with another weight; or another worker does not answer.
pub fn cover(transport: &mut dyn Transport, (links, topology): (&HaloPlan, &Topology), ids: &[u64]) -> Result<Covered> {
    let (rank, tag) = (transport.rank(), Step::Cuts.tag(0));
    let cuts = Cuts::of(links, topology).map_err(|error| one_way(&error.to_string()))?;
    let digests = cuts.digests();
    let met = |peer: &Rank| !links.links[peer.index()].is_empty();
    let met: Vec<Rank> = rank.others(transport.size()).filter(met).collect();
    for &peer in &met {
        collectives::send_bytes(transport, peer, tag, &digests[peer.index()].0)?;
    }
    for &peer in &met {
        if collectives::recv_bytes(transport, peer, tag)? != digests[peer.index()].0 {
            return Err(different(rank.index(), peer.index()));
        }
    }
    Ok(cuts.cover(links, topology, ids))
}

/// That sums cannot stand for rows on this graph.
fn one_way(what: &str) -> TrainError {
    TrainError::config(format!(
        "messages.selection = \"vertex_cover\": {what}; it takes edges that lead both ways, with the same weight: \
        data.symmetrise = true makes them so, and \"all\" sends rows along any"
    ))
}

fn different(one: usize, other: usize) -> TrainError {
    one_way(&format!("part {one} and part {other} see different edges between them"))
}

/// What crosses between all parts, which nobody has to agree on.
///
/// # Errors
/// If an edge between parts leads one way alone, or another way with another weight.
pub fn cover_all(parts: &[Part], plans: &[(HaloPlan, Topology)]) -> Result<Vec<Covered>> {
    let cuts = |(links, topology): &(HaloPlan, Topology)| {
        Cuts::of(links, topology).map_err(|error| one_way(&error.to_string()))
    };
    let cuts = plans.iter().map(cuts).collect::<Result<Vec<Cuts>>>()?;
    let digests: Vec<_> = cuts.iter().map(Cuts::digests).collect();
    for (one, of_one) in digests.iter().enumerate() {
        if let Some(other) = (0..one).find(|&other| of_one[other] != digests[other][one]) {
            return Err(different(one, other));
        }
    }
    let all = cuts.iter().zip(plans).zip(parts);
    Ok(all.map(|((cuts, (links, topology)), part)| cuts.cover(links, topology, &part.nodes)).collect())
}
