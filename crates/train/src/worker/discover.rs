//! How workers find their halo plan: they ask each other by global id who owns what they need.
//!
//! Nobody ever holds the whole graph or a map of it. Each worker sends the ids that its edges start from and that it
//! does not own to every peer; each peer answers with those that it owns. Ids travel as ascending differences in
//! LEB128, 1 to 2 bytes each on a random partition. Steps: 2 all-to-alls, and 2 more where training sees training nodes
//! alone.

use laconic_graph::part::Part;
use laconic_graph::plan::{
    HaloPlan, Topology, among_training, decode_ids, encode_ids, into_training, needed, owned_of, resolve_owners,
    trained_of,
};
use laconic_wire::{Ledger, Rank, Transport, WireError, collectives};

use crate::error::Result;
use crate::exchange::shapes::{Shapes, TrainingShapes};
use crate::exchange::steps::Step;

/// Finds plan and blocks of `part` together with the other workers.
///
/// # Errors
/// If another worker does not answer, or several own one node, or nobody does.
pub fn discover(transport: &mut dyn Transport, part: &Part, self_loops: bool) -> Result<(HaloPlan, Topology)> {
    let wanted = needed(part);
    let owned =
        |asked: &[u64]| owned_of(part, asked).into_iter().zip(asked).filter_map(|(row, &id)| row.map(|_| id)).collect();
    let Known { asked_by, owned_by } = ask(transport, [Step::Questions, Step::Answers], 0, &wanted, owned)?;
    let owners = resolve_owners(part, &wanted, &owned_by)?;
    Ok(HaloPlan::build(part, &owners, &asked_by, self_loops)?)
}

/// Finds plan and blocks of the subgraph that training nodes induce, and its shapes, together with the other workers.
///
/// # Errors
/// As [`discover`].
pub fn discover_training(
    transport: &mut dyn Transport,
    part: &Part,
    self_loops: bool,
) -> Result<(HaloPlan, Topology, TrainingShapes)> {
    let into = into_training(part);
    let wanted = needed(&into);
    let steps = [Step::TrainingQuestions, Step::TrainingAnswers];
    let Known { asked_by, owned_by } = ask(transport, steps, 0, &wanted, |asked| trained_of(part, asked))?;
    let mut trained = owned_by.concat();
    trained.sort_unstable();
    let induced = among_training(part, &into, &trained);
    let owners = resolve_owners(&induced, &needed(&induced), &owned_by)?;
    let (plan, topology) = HaloPlan::build(&induced, &owners, &asked_by, self_loops)?;
    let shapes = TrainingShapes::of(part, &wanted, &plan, &topology);
    Ok((plan, topology, shapes))
}

/// What a round of questions and answers ends with.
pub(super) struct Known {
    /// Per peer the ids that it gets from here.
    pub asked_by: Vec<Vec<u64>>,
    /// Per peer the ids that come from it.
    pub owned_by: Vec<Vec<u64>>,
}

/// Asks every peer for the wanted ids, and answers what peers ask.
pub(super) fn ask(
    transport: &mut dyn Transport,
    [questions, answers]: [Step; 2],
    round: u32,
    wanted: &[u64],
    answer: impl Fn(&[u64]) -> Vec<u64>,
) -> Result<Known> {
    let (size, rank) = (transport.size(), transport.rank());
    let question = encode_ids(wanted);
    let asked = collectives::all_to_all(transport, questions.tag(round), vec![question; size])?;
    let mut known = Known { asked_by: vec![Vec::new(); size], owned_by: vec![Vec::new(); size] };
    let mut answered = vec![Vec::new(); size];
    for peer in rank.others(size) {
        let asked = ids_of(rank, peer, questions, &asked[peer.index()])?;
        known.asked_by[peer.index()] = answer(&asked);
        answered[peer.index()] = encode_ids(&known.asked_by[peer.index()]);
    }
    for (peer, bytes) in collectives::all_to_all(transport, answers.tag(round), answered)?.iter().enumerate() {
        if peer != rank.index() {
            known.owned_by[peer] = ids_of(rank, Rank(peer as u32), answers, bytes)?;
        }
    }
    Ok(known)
}

/// The ids that came from a peer.
fn ids_of(rank: Rank, peer: Rank, step: Step, bytes: &[u8]) -> Result<Vec<u64>> {
    let malformed = |error| WireError::malformed(format!("ids of another form ({error})"));
    decode_ids(bytes, bytes.len()).map_err(|error| malformed(error).from_peer(rank, peer, step.tag(0)).into())
}

/// Enters what [`discover`] asks, and [`discover_training`] where it is called.
pub fn forecast_questions(shapes: &Shapes, ledger: &mut Ledger) {
    for peer in Rank(shapes.rank).others(shapes.workers()) {
        ledger.record(Step::Questions.tag(0), peer, shapes.asked_bytes);
        if let Some((asked, _)) = shapes.training.as_ref().and_then(|training| training.questions.as_ref()) {
            ledger.record(Step::TrainingQuestions.tag(0), peer, *asked);
        }
    }
}

/// Enters what they answer.
pub fn forecast_answers(shapes: &Shapes, ledger: &mut Ledger) {
    for peer in Rank(shapes.rank).others(shapes.workers()) {
        ledger.record(Step::Answers.tag(0), peer, shapes.answer_bytes[peer.index()]);
        if let Some((_, answers)) = shapes.training.as_ref().and_then(|training| training.questions.as_ref()) {
            ledger.record(Step::TrainingAnswers.tag(0), peer, answers[peer.index()]);
        }
    }
}
