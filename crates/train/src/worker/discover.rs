//! How workers find their halo plan.
//!
//! Whoever cut the graph tells each part who owns what it needs ([`Told`]). Workers then say in a digest what they need
//! of each other and what they take the other to need; an owner that is wrong about that gets a list of its rows, or of
//! their ids where rows are not known, as at sites that know by an id whose it is. Nobody else is asked about an id.
//! Step: 1 all-to-all, and lists.
//!
//! Where nobody has seen the whole graph they ask each other by global id: each worker sends the ids that its edges
//! start from and that it does not own to every peer; each peer answers which of them it owns, by their places in the
//! question. Both travel as [`encode_ids`] has it: on a random partition a question takes about a bit for each node of
//! the graph, and an answer one for each id of its question. Steps: 2 all-to-alls.
//!
//! Where training sees training nodes alone, 2 more.

use laconic_graph::owners::Owners;
use laconic_graph::part::Part;
use laconic_graph::plan::{
    DIGEST, HaloPlan, IdDigest, Link, Listed, Told, Topology, among_training, decode_ids, encode_ids, into_training,
    needed, owned_of, places_in, resolve_owners, trained_of,
};
use laconic_wire::{Ledger, Rank, Transport, WireError, collectives};

use crate::error::{Result, TrainError};
use crate::exchange::shapes::{Finding, SOME_TOLD, Shapes, TrainingShapes, among};
use crate::exchange::steps::Step;

/// Finds plan and blocks of `part`, and its shapes, together with the other workers.
///
/// # Errors
/// If another worker does not answer, or several own one node, or nobody does.
pub fn discover(transport: &mut dyn Transport, part: &Part, self_loops: bool) -> Result<(HaloPlan, Topology, Shapes)> {
    let (owners, asked_by, finding) = match Told::of(part)? {
        Some(told) => {
            let (asked_by, lists) = tell(transport, part, &told)?;
            (told.owners, asked_by, Finding::Told(lists))
        }
        None => {
            let wanted = needed(part);
            let owned = |asked: &[u64]| {
                owned_of(part, asked).into_iter().zip(asked).filter_map(|(row, &id)| row.map(|_| id)).collect()
            };
            let known = ask(transport, [Step::Questions, Step::Answers], 0, &wanted, owned)?;
            let owners = resolve_owners(part, &wanted, &known.owned_by)?;
            let asked = Listed::of(wanted).bytes() as usize;
            (owners, known.asked_by, Finding::Asked(asked, known.answer_bytes))
        }
    };
    let (plan, topology) = HaloPlan::build(part, &owners, &asked_by, self_loops)?;
    let shapes = Shapes::of(part, &plan, &topology, finding);
    Ok((plan, topology, shapes))
}

/// What workers send each other first who have been told owners, in place of ids: a number that no list of ids begins
/// with, a digest of what they need, and one of what they take the other to need.
const DIGESTS: usize = 1 + 2 * DIGEST;
const TOLD: u8 = 2;
/// The same of who knows owners and not their rows: its lists are of ids.
const TOLD_IDS: u8 = 3;

/// The own nodes that each peer needs, and bytes of the list that each peer gets, where owners have been told.
fn tell(transport: &mut dyn Transport, part: &Part, told: &Told) -> Result<(Vec<Vec<u64>>, Vec<usize>)> {
    let (rank, size) = (transport.rank(), transport.size());
    let digests: Vec<_> =
        told.peers.iter().map(|peer| [IdDigest::of(&peer.needed), IdDigest::of(&peer.taken)]).collect();
    let form = if part.owners.as_ref().is_some_and(Owners::are_told_ids) { TOLD_IDS } else { TOLD };
    let first = digests.iter().map(|[needed, taken]| [&[form][..], &needed.0, &taken.0].concat()).collect();
    let first = collectives::all_to_all(transport, Step::Questions.tag(0), first)?;
    let (mut theirs, mut lists) = (vec![None; size], vec![0; size]);
    for peer in rank.others(size) {
        let (form, [needed, taken]) = digests_of(&first[peer.index()]).map_err(|what| {
            let error = WireError::malformed(what).from_peer(rank, peer, Step::Questions.tag(0));
            TrainError::from(error)
        })?;
        let between = &told.peers[peer.index()];
        if taken != digests[peer.index()][0] && !between.needed.is_empty() {
            let list = told.list(peer.index());
            lists[peer.index()] = list.len();
            collectives::send_bytes(transport, peer, Step::Lists.tag(0), &list)?;
        }
        theirs[peer.index()] = Some((form, needed)).filter(|(_, needed)| *needed != digests[peer.index()][1]);
    }
    let mut asked_by: Vec<Vec<u64>> = told.peers.iter().map(|peer| peer.taken.clone()).collect();
    for peer in rank.others(size) {
        if let Some((form, needed)) = theirs[peer.index()] {
            asked_by[peer.index()] = match needed == IdDigest::of(&[]) {
                true => Vec::new(),
                false => listed_by(transport, peer, part, (form, needed))?,
            };
        }
    }
    Ok((asked_by, lists))
}

/// The form of lists and the digests in what came first.
fn digests_of(bytes: &[u8]) -> std::result::Result<(u8, [IdDigest; 2]), &'static str> {
    match bytes {
        [form @ (TOLD | TOLD_IDS), digests @ ..] if bytes.len() == DIGESTS => {
            let (digests, _) = digests.as_chunks();
            Ok((*form, [IdDigest(digests[0]), IdDigest(digests[1])]))
        }
        [TOLD | TOLD_IDS, ..] => Err("digests of ids of another size"),
        _ => Err(SOME_TOLD),
    }
}

/// The own nodes of which a peer says that it needs them, by their rows here or by their ids.
fn listed_by(
    transport: &mut dyn Transport,
    peer: Rank,
    part: &Part,
    (form, needed): (u8, IdDigest),
) -> Result<Vec<u64>> {
    let (rank, step) = (transport.rank(), Step::Lists);
    let bytes = collectives::recv_bytes(transport, peer, step.tag(0))?;
    let rows = ids_of(rank, peer, step, &bytes)?;
    if form == TOLD_IDS {
        let unknown = owned_of(part, &rows).iter().filter(|row| row.is_none()).count();
        return match (unknown, IdDigest::of(&rows) == needed) {
            (0, true) => Ok(rows),
            (0, false) => Err(malformed(rank, peer, step, "ids of other nodes than it needs")),
            _ => {
                let (asking, own) = (part.global.called(peer.0), part.global.called(rank.0));
                let what =
                    format!("{unknown} of {} nodes that edges of {asking} start at are none of {own}", rows.len());
                let way = "build the parts of both again from tables of the same day, or leave these edges out";
                Err(TrainError::config(format!("{what}: {way}")))
            }
        };
    }
    let ids: Option<Vec<u64>> = rows.iter().map(|&row| part.nodes.get(usize::try_from(row).ok()?).copied()).collect();
    let beyond = || malformed(rank, peer, step, &format!("a row beyond the {} here", part.rows()));
    let ids = ids.ok_or_else(beyond)?;
    match IdDigest::of(&ids) == needed {
        true => Ok(ids),
        false => Err(malformed(rank, peer, step, "rows of other nodes than it needs; cut the graph again")),
    }
}

/// Finds plan and blocks of the subgraph that training nodes induce, and its shapes, together with the other workers:
/// each asks the owner which of what comes from it is a training node, by places in what comes.
///
/// # Errors
/// As [`discover`].
pub fn discover_training(
    transport: &mut dyn Transport,
    part: &Part,
    (links, topology): (&HaloPlan, &Topology),
    self_loops: bool,
) -> Result<(HaloPlan, Topology, TrainingShapes)> {
    let (rank, size) = (transport.rank(), transport.size());
    let into = into_training(part);
    let wanted = needed(&into);
    let coming = |link: &Link| &topology.halo_ids[link.receive.start as usize..link.receive.end as usize];
    let wanted: Vec<Vec<u64>> = links.links.iter().map(|link| among(&wanted, coming(link))).collect();
    let asked = links.links.iter().zip(&wanted).map(|(link, wanted)| coded_places(coming(link), wanted));
    let asked: Vec<Vec<u8>> = asked.collect();
    let mut bytes: Vec<[usize; 2]> = asked.iter().map(|asked| [asked.len(), 0]).collect();
    let asked = collectives::all_to_all(transport, Step::TrainingQuestions.tag(0), asked)?;
    let (mut asked_by, mut answers) = (vec![Vec::new(); size], vec![Vec::new(); size]);
    for peer in rank.others(size) {
        let sent: Vec<u64> = links.links[peer.index()].send.iter().map(|&row| part.nodes[row as usize]).collect();
        let asked = at_places(rank, peer, Step::TrainingQuestions, &asked[peer.index()], &sent)?;
        let trained = trained_of(part, &asked);
        answers[peer.index()] = coded_places(&asked, &trained);
        bytes[peer.index()][1] = answers[peer.index()].len();
        asked_by[peer.index()] = trained;
    }
    let answers = collectives::all_to_all(transport, Step::TrainingAnswers.tag(0), answers)?;
    let mut owned_by = vec![Vec::new(); size];
    for peer in rank.others(size) {
        let (answer, wanted) = (&answers[peer.index()], &wanted[peer.index()]);
        owned_by[peer.index()] = at_places(rank, peer, Step::TrainingAnswers, answer, wanted)?;
    }
    let mut trained = owned_by.concat();
    trained.sort_unstable();
    let induced = among_training(part, &into, &trained);
    let owners = resolve_owners(&induced, &needed(&induced), &owned_by)?;
    let (plan, topology) = HaloPlan::build(&induced, &owners, &asked_by, self_loops)?;
    let shapes = TrainingShapes::of(bytes, &plan, &topology);
    Ok((plan, topology, shapes))
}

/// Where ids stand in a list that has them, as it is told.
fn coded_places(list: &[u64], ids: &[u64]) -> Vec<u8> {
    encode_ids(&places_in(list, ids).collect::<Vec<u64>>())
}

/// The ids at the places in a list that a peer has told.
fn at_places(rank: Rank, peer: Rank, step: Step, bytes: &[u8], list: &[u64]) -> Result<Vec<u64>> {
    let places = ids_of(rank, peer, step, bytes)?.into_iter();
    let ids: Option<_> = places.map(|place| list.get(usize::try_from(place).ok()?).copied()).collect();
    ids.ok_or_else(|| malformed(rank, peer, step, &format!("a place beyond the {} ids of the list", list.len())))
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
        answered[peer.index()] = coded_places(&asked, &ids);
        known.answer_bytes[peer.index()] = answered[peer.index()].len();
        known.asked_by[peer.index()] = ids;
    }
    for (peer, bytes) in collectives::all_to_all(transport, answers.tag(round), answered)?.iter().enumerate() {
        if peer != rank.index() {
            known.owned_by[peer] = at_places(rank, Rank(peer as u32), answers, bytes, wanted)?;
        }
    }
    Ok(known)
}

/// The ids that came from a peer.
fn ids_of(rank: Rank, peer: Rank, step: Step, bytes: &[u8]) -> Result<Vec<u64>> {
    if matches!(bytes.first(), Some(&(TOLD | TOLD_IDS))) {
        return Err(malformed(rank, peer, step, SOME_TOLD));
    }
    let other = |error| malformed(rank, peer, step, &format!("ids of another form ({error})"));
    // The bytes that have come bound how many there are.
    decode_ids(bytes, usize::MAX).map_err(other)
}

fn malformed(rank: Rank, peer: Rank, step: Step, what: &str) -> TrainError {
    WireError::malformed(what.to_owned()).from_peer(rank, peer, step.tag(0)).into()
}

/// What workers say when they find their plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Ids of all that they need, to all.
    Ids,
    /// Digests of what they need of an owner, and take it to need.
    Digests,
    /// Which of its nodes they need, to an owner, or train on.
    Lists,
    /// Which of the nodes that they were asked for are theirs, or train.
    Answers,
}

/// Enters what [`discover`] says, and [`discover_training`] where it is called.
pub fn forecast_discover(shapes: &Shapes, said: Said, ledger: &mut Ledger) {
    let training = shapes.training.as_ref().and_then(|training| training.questions.as_ref());
    for peer in Rank(shapes.rank).others(shapes.workers()) {
        let at = peer.index();
        let [question, answer] = training.map_or([None; 2], |bytes| bytes[at].map(Some));
        match (said, &shapes.finding) {
            (Said::Ids, Finding::Asked(question, _)) => ledger.record(Step::Questions.tag(0), peer, *question),
            (Said::Digests, Finding::Told(_)) => ledger.record(Step::Questions.tag(0), peer, DIGESTS),
            (Said::Lists, Finding::Told(lists)) if lists[at] > 0 => {
                ledger.record(Step::Lists.tag(0), peer, lists[at]);
            }
            (Said::Answers, Finding::Asked(_, answers)) => ledger.record(Step::Answers.tag(0), peer, answers[at]),
            _ => {}
        }
        match (said, question, answer) {
            (Said::Lists, Some(bytes), _) => ledger.record(Step::TrainingQuestions.tag(0), peer, bytes),
            (Said::Answers, _, Some(bytes)) => ledger.record(Step::TrainingAnswers.tag(0), peer, bytes),
            _ => {}
        }
    }
}
