//! How workers find their halo plan: they ask each other by global id who owns what they need.
//!
//! Nobody ever holds the whole graph or a map of it. Each worker sends the ids that its edges start from and that it
//! does not own to every peer; each peer answers which of them it owns, by their places in the question. Both travel
//! as [`encode_ids`] has it: on a random partition a question takes about a bit for each node of the graph, and an
//! answer one for each id of its question. Steps: 2 all-to-alls, and 2 more where training sees training nodes alone.

use laconic_graph::part::Part;
use laconic_graph::plan::{
    HaloPlan, Topology, among_training, decode_ids, encode_ids, into_training, needed, owned_of, places_in,
    resolve_owners, trained_of,
};
use laconic_wire::{Ledger, Rank, Transport, WireError, collectives};

use crate::error::{Result, TrainError};
use crate::exchange::shapes::{Shapes, TrainingShapes};
use crate::exchange::steps::Step;

/// Finds plan and blocks of `part`, and its shapes, together with the other workers.
///
/// # Errors
/// If another worker does not answer, or several own one node, or nobody does.
pub fn discover(transport: &mut dyn Transport, part: &Part, self_loops: bool) -> Result<(HaloPlan, Topology, Shapes)> {
    let wanted = needed(part);
    let owned =
        |asked: &[u64]| owned_of(part, asked).into_iter().zip(asked).filter_map(|(row, &id)| row.map(|_| id)).collect();
    let known = ask(transport, [Step::Questions, Step::Answers], 0, &wanted, owned)?;
    let owners = resolve_owners(part, &wanted, &known.owned_by)?;
    let (plan, topology) = HaloPlan::build(part, &owners, &known.asked_by, self_loops)?;
    let shapes = Shapes::of(part, &plan, &topology, known.answer_bytes);
    Ok((plan, topology, shapes))
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
    let Known { asked_by, owned_by, answer_bytes } =
        ask(transport, steps, 0, &wanted, |asked| trained_of(part, asked))?;
    let mut trained = owned_by.concat();
    trained.sort_unstable();
    let induced = among_training(part, &into, &trained);
    let owners = resolve_owners(&induced, &needed(&induced), &owned_by)?;
    let (plan, topology) = HaloPlan::build(&induced, &owners, &asked_by, self_loops)?;
    let shapes = TrainingShapes::of(&wanted, &plan, &topology, answer_bytes);
    Ok((plan, topology, shapes))
}

/// What a round of questions and answers ends with.
pub(super) struct Known {
    /// Per peer the ids that it gets from here.
    pub asked_by: Vec<Vec<u64>>,
    /// Per peer the ids that come from it.
    pub owned_by: Vec<Vec<u64>>,
    /// Per peer the bytes of the answer from here, which say where in its question these ids stand.
    pub answer_bytes: Vec<usize>,
}

/// Asks every peer for the wanted ids, which ascend, and answers what peers ask; `answer` picks some of theirs.
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
    let nothing = || vec![Vec::new(); size];
    let mut known = Known { asked_by: nothing(), owned_by: nothing(), answer_bytes: vec![0; size] };
    let mut answered = vec![Vec::new(); size];
    for peer in rank.others(size) {
        let asked = ids_of(rank, peer, questions, &asked[peer.index()])?;
        let ids = answer(&asked);
        let places: Vec<u64> = places_in(&asked, &ids).collect();
        answered[peer.index()] = encode_ids(&places);
        known.answer_bytes[peer.index()] = answered[peer.index()].len();
        known.asked_by[peer.index()] = ids;
    }
    for (peer, bytes) in collectives::all_to_all(transport, answers.tag(round), answered)?.iter().enumerate() {
        if peer != rank.index() {
            let peer = Rank(peer as u32);
            let places = ids_of(rank, peer, answers, bytes)?.into_iter();
            let ids: Option<_> = places.map(|place| wanted.get(place as usize).copied()).collect();
            let count = wanted.len();
            let beyond = || malformed(rank, peer, answers, &format!("a place beyond the {count} ids of the question"));
            known.owned_by[peer.index()] = ids.ok_or_else(beyond)?;
        }
    }
    Ok(known)
}

/// The ids that came from a peer.
fn ids_of(rank: Rank, peer: Rank, step: Step, bytes: &[u8]) -> Result<Vec<u64>> {
    let other = |error| malformed(rank, peer, step, &format!("ids of another form ({error})"));
    // The bytes that have come bound how many there are.
    decode_ids(bytes, usize::MAX).map_err(other)
}

fn malformed(rank: Rank, peer: Rank, step: Step, what: &str) -> TrainError {
    WireError::malformed(what.to_owned()).from_peer(rank, peer, step.tag(0)).into()
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
