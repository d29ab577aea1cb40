//! What workers ask each other before a window of batches: the draws of each other's nodes, layer by layer, and in the
//! end for whose rows they come back.
//!
//! A question has for each batch how many nodes and their ids, as ascending distances; the answer for each of them its
//! degree and the edges that were drawn, as ids with their owners. Steps: two all-to-alls a layer but the last, and two
//! for the rows.

use laconic_graph::sample::{Drawn, Lists, Sampled};
use laconic_wire::{Rank, Transport, WireError, collectives};

use super::draws::{Draws, Elsewhere};
use super::job::Job;
use super::known::Known;
use super::varint::{Reader, put, put_ids};
use crate::error::Result;
use crate::exchange::steps::Step;

/// For which layer who asks whom.
#[derive(Clone, Copy)]
struct Asking {
    layer: usize,
    /// This worker's number.
    rank: Rank,
    /// How many workers there are.
    size: usize,
}

/// Own nodes of each batch that a peer asks for, by row.
type Asked = Vec<Vec<u32>>;

/// The foreign nodes of each peer in each batch, ascending by id.
fn foreign(known: &Known, size: usize, batches: &[Sampled]) -> Vec<Vec<Vec<u32>>> {
    let mut wanted = vec![vec![Vec::new(); batches.len()]; size];
    for (at, batch) in batches.iter().enumerate() {
        for &node in batch.nodes.iter().filter(|&&node| known.is_foreign(node)) {
            wanted[known.owner(node).index()][at].push(node);
        }
    }
    wanted.iter_mut().flatten().for_each(|nodes| nodes.sort_unstable_by_key(|&node| known.ids[node as usize]));
    wanted
}

/// Own rows of ids that a peer asks for.
fn rows_of(known: &Known, ids: Vec<u64>) -> std::result::Result<Vec<u32>, WireError> {
    let row = |id| known.own_row(id).ok_or_else(|| WireError::malformed(format!("node {id} is not of this worker")));
    ids.into_iter().map(row).collect()
}

/// A question to each peer: for each batch the ids of its nodes.
fn ids_by_batch(known: &Known, wanted: &[Vec<Vec<u32>>]) -> Vec<Vec<u8>> {
    let question = |of_peer: &Vec<Vec<u32>>| {
        let mut bytes = Vec::new();
        for nodes in of_peer {
            put_ids(&mut bytes, nodes.iter().map(|&node| known.ids[node as usize]));
        }
        bytes
    };
    wanted.iter().map(question).collect()
}

/// The own rows that such a question asks for, in each of so many batches.
fn asked_rows(known: &Known, batches: usize, bytes: &[u8]) -> std::result::Result<Asked, WireError> {
    let mut reader = Reader::new(bytes);
    let asked = (0..batches).map(|_| rows_of(known, reader.ids()?)).collect::<std::result::Result<_, _>>()?;
    reader.finish().map(|()| asked)
}

/// Asks owners for the in-neighbours that they draw for `layer` of the foreign nodes among each batch's, and answers
/// what others ask.
///
/// # Errors
/// If another worker does not answer, or sends something else.
pub(super) fn ask_draws(
    transport: &mut dyn Transport,
    draws: &Draws,
    known: &mut Known,
    layer: usize,
    jobs: &[Job],
    batches: &[Sampled],
    elsewhere: &mut [Elsewhere],
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let (asking, wanted) = (Asking { layer, rank, size }, foreign(known, size, batches));
    let steps = [Step::DrawQuestions, Step::DrawAnswers];
    let [questions, answers] = steps.map(|step| step.of_exchange(jobs[0].round, layer));
    let asked = collectives::all_to_all(transport, questions, ids_by_batch(known, &wanted))?;
    let mut answered = vec![Vec::new(); size];
    for peer in rank.others(size) {
        let asked = asked_rows(known, jobs.len(), &asked[peer.index()]);
        let asked = asked.map_err(|error| error.from_peer(rank, peer, questions))?;
        answered[peer.index()] = answer(draws, known, asking, jobs, &asked);
    }
    let told = collectives::all_to_all(transport, answers, answered)?;
    for peer in rank.others(size) {
        let wanted = &wanted[peer.index()];
        take(draws, known, asking, &told[peer.index()], wanted, elsewhere)
            .map_err(|error| error.from_peer(rank, peer, answers))?;
    }
    Ok(())
}

/// What own nodes draw, as it is told.
fn answer(draws: &Draws, known: &Known, asking: Asking, jobs: &[Job], asked: &Asked) -> Vec<u8> {
    let [weighted, related] = draws.columns();
    let (mut bytes, mut drawn) = (Vec::new(), Drawn::new(weighted, related));
    for (job, rows) in jobs.iter().zip(asked) {
        let lists = draws.own(job.round, &job.left_out.skip);
        for &row in rows {
            drawn.sources.clear();
            drawn.weights.iter_mut().for_each(Vec::clear);
            drawn.relations.iter_mut().for_each(Vec::clear);
            let degree = lists.append(asking.layer, row, &mut drawn);
            put(&mut bytes, degree.into());
            if (weighted || related) && draws.has_loops() {
                let (weight, relation) = lists.loop_data(row);
                bytes.extend_from_slice(&weight.to_le_bytes());
                put(&mut bytes, relation.into());
            }
            let ids = drawn.sources.iter().map(|&source| known.ids[source as usize]);
            put_ids(&mut bytes, ids);
            for &source in &drawn.sources {
                let owner = if known.is_foreign(source) { known.owner(source) } else { asking.rank };
                put(&mut bytes, owner.0.into());
            }
            drawn.weights.iter().flatten().for_each(|weight| bytes.extend_from_slice(&weight.to_le_bytes()));
            drawn.relations.iter().flatten().for_each(|&relation| put(&mut bytes, relation.into()));
        }
    }
    bytes
}

/// Takes up what a peer has drawn.
fn take(
    draws: &Draws,
    known: &mut Known,
    asking: Asking,
    bytes: &[u8],
    wanted: &[Vec<u32>],
    elsewhere: &mut [Elsewhere],
) -> std::result::Result<(), WireError> {
    let Asking { layer, rank, size } = asking;
    let ([weighted, related], mut reader) = (draws.columns(), Reader::new(bytes));
    let (fanout, last_relation) = (draws.fanout(layer), draws.relations().saturating_sub(1));
    for (nodes, elsewhere) in wanted.iter().zip(elsewhere) {
        for &node in nodes {
            let degree = reader.at_most(u32::MAX.into())? as u32;
            let loop_data = match (weighted || related) && draws.has_loops() {
                true => (reader.float()?, reader.at_most(last_relation.into())? as u16),
                false => (1.0, 0),
            };
            elsewhere.tell(layer, node, degree, loop_data, |into| {
                let ids = reader.ids()?;
                let drawn = fanout.map_or(degree as usize, |fanout| fanout.min(degree as usize));
                if ids.len() != drawn {
                    let what = format!("expected {drawn} of {degree} in-neighbours of a node, found {}", ids.len());
                    return Err(WireError::malformed(what));
                }
                for id in &ids {
                    let owner = Rank(reader.at_most(size as u64 - 1)? as u32);
                    let source = match known.own_row(*id) {
                        Some(row) => row,
                        // Nobody could be asked for it later.
                        None if owner == rank => {
                            return Err(WireError::malformed(format!("node {id} is not of this worker")));
                        }
                        None => known.number_of(*id, owner),
                    };
                    into.sources.push(source);
                }
                for _ in ids.iter().filter(|_| weighted) {
                    into.weights.get_or_insert_default().push(reader.float()?);
                }
                for _ in ids.iter().filter(|_| related) {
                    into.relations.get_or_insert_default().push(reader.at_most(last_relation.into())? as u16);
                }
                Ok::<(), WireError>(())
            })?;
        }
    }
    reader.finish()
}

/// Asks owners which of the foreign nodes that each batch reads have fewer in-edges in it, and what that leaves of
/// their degrees.
///
/// # Errors
/// If another worker does not answer, or sends something else.
pub(super) fn ask_degrees(
    transport: &mut dyn Transport,
    known: &Known,
    jobs: &mut [Job],
    batches: &[Sampled],
) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let wanted = foreign(known, size, batches);
    let [questions, answers] = [Step::DegreeQuestions, Step::DegreeAnswers].map(|step| step.tag(jobs[0].round));
    let asked = collectives::all_to_all(transport, questions, ids_by_batch(known, &wanted))?;
    let mut answered = vec![Vec::new(); size];
    for peer in rank.others(size) {
        let asked = asked_rows(known, jobs.len(), &asked[peer.index()]);
        let asked = asked.map_err(|error| error.from_peer(rank, peer, questions))?;
        let bytes = &mut answered[peer.index()];
        for (job, rows) in jobs.iter().zip(&asked) {
            let fewer = rows.iter().filter_map(|row| Some((*row, job.left_out.degrees.get(row)?)));
            let fewer: Vec<(u32, &[f32; 2])> = fewer.collect();
            put_ids(bytes, fewer.iter().map(|(row, _)| known.ids[*row as usize]));
            let degrees = fewer.iter().flat_map(|(_, degrees)| *degrees);
            degrees.for_each(|degree| bytes.extend_from_slice(&degree.to_le_bytes()));
        }
    }
    let told = collectives::all_to_all(transport, answers, answered)?;
    for peer in rank.others(size) {
        let mut reader = Reader::new(&told[peer.index()]);
        let mut take = || -> std::result::Result<(), WireError> {
            for (job, nodes) in jobs.iter_mut().zip(&wanted[peer.index()]) {
                for id in reader.ids()? {
                    let place = nodes.binary_search_by_key(&id, |&node| known.ids[node as usize]);
                    let not_asked = |_| WireError::malformed(format!("nobody has asked for node {id}"));
                    let node = nodes[place.map_err(not_asked)?];
                    job.left_out.degrees.insert(node, [reader.float()?, reader.float()?]);
                }
            }
            std::mem::replace(&mut reader, Reader::new(&[])).finish()
        };
        take().map_err(|error| error.from_peer(rank, peer, answers))?;
    }
    Ok(())
}

/// Tells owners whose rows are wanted in each batch, and behind these nodes that nobody has told the degrees of, which
/// are asked for; returns the own rows that each peer gets in each batch.
///
/// # Errors
/// If another worker does not answer, or sends something else.
pub(super) fn ask_rows(
    transport: &mut dyn Transport,
    known: &mut Known,
    round: u32,
    batches: usize,
    wanted: &[Vec<Vec<u32>>],
) -> Result<Vec<Asked>> {
    let (rank, size) = (transport.rank(), transport.size());
    let [questions, answers] = [Step::RowQuestions, Step::RowAnswers].map(|step| step.tag(round));
    let asked = collectives::all_to_all(transport, questions, ids_by_batch(known, wanted))?;
    let (mut answered, mut sends) = (vec![Vec::new(); size], vec![Vec::new(); size]);
    for peer in rank.others(size) {
        let asked = asked_rows(known, batches + 1, &asked[peer.index()]);
        let mut rows = asked.map_err(|error| error.from_peer(rank, peer, questions))?;
        let unknown = rows.pop().unwrap_or_default();
        sends[peer.index()] = rows;
        for row in unknown {
            let degrees = [known.inverse_degree[row as usize], known.inverse_root_degree[row as usize]];
            degrees.iter().for_each(|degree| answered[peer.index()].extend_from_slice(&degree.to_le_bytes()));
        }
    }
    let told = collectives::all_to_all(transport, answers, answered)?;
    for peer in rank.others(size) {
        let mut reader = Reader::new(&told[peer.index()]);
        let mut take = || -> std::result::Result<(), WireError> {
            for &node in wanted[peer.index()].last().into_iter().flatten() {
                known.set_degrees(node, [reader.float()?, reader.float()?]);
            }
            std::mem::replace(&mut reader, Reader::new(&[])).finish()
        };
        take().map_err(|error| error.from_peer(rank, peer, answers))?;
    }
    Ok(sends)
}
