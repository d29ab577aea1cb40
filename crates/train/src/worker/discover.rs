//! How workers find their halo plan: they ask each other by global id who owns what they need.
//!
//! Nobody ever holds the whole graph or a map of it. Each worker sends the ids that its edges start from and that it
//! does not own to every peer; each peer answers with those that it owns. Ids travel as ascending differences in
//! LEB128, 1 to 2 bytes each on a random partition. Steps: 2 all-to-alls.

use laconic_graph::part::Part;
use laconic_graph::plan::{HaloPlan, Topology, decode_ids, encode_ids, needed, owned_of, resolve_owners};
use laconic_wire::{Ledger, Rank, Transport, collectives};

use crate::error::Result;
use crate::exchange::shapes::Shapes;
use crate::exchange::steps::Step;

/// Finds plan and blocks of `part` together with the other workers.
///
/// # Errors
/// If another worker does not answer, or several own one node, or nobody does.
pub fn discover(transport: &mut dyn Transport, part: &Part, self_loops: bool) -> Result<(HaloPlan, Topology)> {
    let (size, rank) = (transport.size(), transport.rank());
    let wanted = needed(part);
    let question = encode_ids(&wanted);
    let questions = collectives::all_to_all(transport, Step::Questions.tag(0), vec![question; size])?;
    let mut asked_by = vec![Vec::new(); size];
    let mut answers = vec![Vec::new(); size];
    for peer in rank.others(size) {
        let asked = decode_ids(&questions[peer.index()], questions[peer.index()].len())?;
        let rows = owned_of(part, &asked);
        asked_by[peer.index()] = rows.iter().zip(&asked).filter_map(|(row, &id)| row.map(|_| id)).collect();
        answers[peer.index()] = encode_ids(&asked_by[peer.index()]);
    }
    let mut owned_by = vec![Vec::new(); size];
    for (peer, bytes) in collectives::all_to_all(transport, Step::Answers.tag(0), answers)?.iter().enumerate() {
        if peer != rank.index() {
            owned_by[peer] = decode_ids(bytes, bytes.len())?;
        }
    }
    let owners = resolve_owners(part, &wanted, &owned_by)?;
    Ok(HaloPlan::build(part, &owners, &asked_by, self_loops)?)
}

/// Enters what [`discover`] sends.
pub fn forecast_discover(shapes: &Shapes, ledger: &mut Ledger) {
    for peer in Rank(shapes.rank).others(shapes.workers()) {
        ledger.record(Step::Questions.tag(0), peer, shapes.asked_bytes);
        ledger.record(Step::Answers.tag(0), peer, shapes.answer_bytes[peer.index()]);
    }
}
