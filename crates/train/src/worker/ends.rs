//! The ends of pairs: embeddings of own nodes and of those of others that some pair here needs, fetched from their
//! owners and, as gradients, given back. It is the halo exchange along a plan of its own, which pairs decide.

use laconic_graph::plan::{HaloPlan, IdIndex, Link};
use laconic_nn::Matrix;
use laconic_wire::{Content, Direction, FramePurpose, Tag, Transport};

use super::Worker;
use super::discover::{Known, ask};
use crate::error::{Result, TrainError};
use crate::exchange::halo::{Halo, Request};
use crate::exchange::steps::Step;
use crate::messages::coders::Coders;
use crate::selection::Scope;

/// The step of embeddings, under the tag of the layer behind the last.
const EMBEDDINGS: u16 = 7;

/// Which embeddings some pairs need, and where they come from.
pub struct Ends {
    halo: Halo,
    /// Own nodes and those of others, ascending.
    ids: Vec<u64>,
    /// The row of each: own rows first, then those of others in the order in which they arrive.
    rows: Vec<u32>,
}

impl Ends {
    /// Asks who owns the wanted nodes that are not own ones; called on every worker at once.
    ///
    /// # Errors
    /// If another worker does not answer, or a node is owned by nobody.
    pub fn find(worker: &mut Worker, wanted: &mut Vec<u64>, steps: [Step; 2], round: u32) -> Result<Ends> {
        let own = IdIndex::new(worker.local.ascending_ids());
        wanted.retain(|&id| own.row(id).is_none());
        wanted.sort_unstable();
        wanted.dedup();
        let mine = |asked: &[u64]| asked.iter().copied().filter(|&id| own.row(id).is_some()).collect();
        let Known { asked_by, owned_by, .. } = ask(&mut worker.transport, steps, round, wanted, mine)?;
        let own_rows = worker.local.ids.len();
        let mut all: Vec<(u64, u32)> = worker.local.ids.iter().copied().zip(0..).collect();
        let (mut links, mut end) = (Vec::with_capacity(owned_by.len()), 0);
        for (asked, owned) in asked_by.iter().zip(&owned_by) {
            let start = end;
            end += owned.len() as u32;
            all.extend(owned.iter().copied().zip(own_rows as u32 + start..));
            let places = asked.iter().filter_map(|&id| own.row(id));
            let send = places.map(|place| worker.local.by_id.row(place)).collect();
            links.push(Link { send, receive: start..end });
        }
        all.sort_unstable();
        let (ids, rows): (Vec<u64>, Vec<u32>) = all.into_iter().unzip();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(owned_by_two(pair[0]));
        }
        let index = IdIndex::new(&ids);
        if let Some(&missing) = wanted.iter().find(|&&id| index.row(id).is_none()) {
            return Err(owned_by_nobody(missing));
        }
        let seed = worker.plan.config.train.seed;
        let coders = Coders::new(&worker.plan.messages, seed);
        let plan = HaloPlan { rank: worker.transport.rank().0, links };
        Ok(Ends { halo: Halo::new(plan, own_rows, coders, seed, None), ids, rows })
    }

    /// Rows of nodes that can be looked up while this is held.
    pub fn index(&self) -> impl Fn(u64) -> u32 {
        let index = IdIndex::new(&self.ids);
        move |id| self.rows[index.row(id).expect("every node of a pair was asked for") as usize]
    }

    /// Sets `others` to the embeddings of others' nodes, from everybody's own rows.
    ///
    /// # Errors
    /// If another worker does not answer, or a codec refuses the rows.
    pub fn fetch(&mut self, worker: &mut Worker, tag: Tag, own: &Matrix, others: &mut Matrix) -> Result<()> {
        others.reshape(self.halo.rows(), own.columns());
        let pending = self.halo.start(&worker.compute, &mut worker.transport, Request::now(tag, Scope::Whole), own)?;
        pending.finish(&mut self.halo, &worker.compute, &mut worker.transport, others)
    }

    /// Adds the gradients of others' nodes to those of their owners' rows.
    ///
    /// # Errors
    /// As [`Ends::fetch`].
    pub fn give_back(&mut self, worker: &mut Worker, tag: Tag, others: &Matrix, own: &mut Matrix) -> Result<()> {
        let pending =
            self.halo.start(&worker.compute, &mut worker.transport, Request::now(tag, Scope::Whole), others)?;
        pending.finish(&mut self.halo, &worker.compute, &mut worker.transport, own)
    }
}

/// Which of the wanted nodes, ascending and none of them own, each peer owns; called on every worker at once.
///
/// # Errors
/// If another worker does not answer, or a node is owned by nobody, or by two.
pub fn owners(worker: &mut Worker, wanted: &[u64], round: u32) -> Result<Vec<Vec<u64>>> {
    let own = IdIndex::new(worker.local.ascending_ids());
    let mine = |asked: &[u64]| asked.iter().copied().filter(|&id| own.row(id).is_some()).collect();
    let steps = [Step::PairQuestions, Step::PairAnswers];
    let Known { owned_by, .. } = ask(&mut worker.transport, steps, round, wanted, mine)?;
    let mut found = owned_by.concat();
    found.sort_unstable();
    if let Some(pair) = found.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(owned_by_two(pair[0]));
    }
    match wanted.iter().find(|id| found.binary_search(id).is_err()) {
        Some(&missing) => Err(owned_by_nobody(missing)),
        None => Ok(owned_by),
    }
}

fn owned_by_two(id: u64) -> TrainError {
    TrainError::config(format!("node {id} is owned by two parts"))
}

fn owned_by_nobody(id: u64) -> TrainError {
    let what = "targets drawn from all nodes need global ids from 0 to their number; \
        task.negatives = \"local\" draws own ones, evaluations draw from all";
    TrainError::config(format!("node {id} is owned by no part: {what}"))
}

/// The tag of embeddings on their way to whoever has a pair with them, or of their gradients on their return.
pub fn embeddings(layer: u16, round: u32, direction: Direction) -> Tag {
    let content = match direction {
        Direction::Forward => Content::Embeddings,
        Direction::Reverse => Content::RowGradients,
    };
    Tag { content, purpose: FramePurpose::Training, direction, layer, round, step: EMBEDDINGS }
}

/// The tag of embeddings for an evaluation.
pub fn evaluated(layer: u16, round: u32) -> Tag {
    Tag { purpose: FramePurpose::Evaluation, ..embeddings(layer, round, Direction::Forward) }
}

/// No smaller than the bytes of a list of so many of `nodes` ids: a byte each, and one more for each distance of 128 or
/// more, of which there are not many below the largest id; and the byte of the form.
pub fn ids_bytes(count: u64, nodes: u64) -> usize {
    (count + nodes / 127 + 10) as usize
}
