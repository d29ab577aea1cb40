//! Link prediction: rows are embeddings of nodes, a decoder scores pairs of them, and the loss is binary cross entropy
//! over edges and as many pairs that are none.
//!
//! A worker has the edges that end at its own nodes. The other end of an edge, and of a pair that stands for none, may
//! be anywhere: its embedding is fetched and its gradient given back ([`Ends`]).

use std::ops::Range;
use std::sync::Arc;

use laconic_graph::links::{Links, NegativeScope, Negatives};
use laconic_nn::Matrix;
use laconic_nn::links::{PairRows, PairScorer, Scoring, positive_weight};
use laconic_nn::parameters::ParameterSpec;
use laconic_wire::{Direction, collectives};

use super::{Learning, Task};
use crate::error::Result;
use crate::exchange::steps::Step;
use crate::plan::LinkPlan;
use crate::worker::Worker;
use crate::worker::ends::{self, Ends};
use crate::worker::evaluate::Scores;
use crate::worker::judged::{Judged, Judgement};

/// Which nodes have an edge between them, from an embedding of each.
pub(in crate::fit) struct LinkPrediction {
    plan: Arc<LinkPlan>,
    /// The number of the layer behind the last, which reads embeddings.
    layer: u16,
    scorer: PairScorer,
    /// Embeddings of others' nodes, and their gradients.
    others: [Matrix; 2],
    /// The ends of held-out edges and of what they are ranked among.
    judged: Option<Ends>,
}

/// A round's pairs, by global ids: edges first, then pairs that are none.
struct Drawn {
    sources: Vec<u64>,
    targets: Vec<u64>,
    edges: usize,
}

impl LinkPrediction {
    pub fn new(plan: Arc<LinkPlan>, layer: u16) -> LinkPrediction {
        LinkPrediction { plan, layer, scorer: PairScorer::default(), others: Default::default(), judged: None }
    }

    /// Where the decoder's parameters stand among all.
    fn tail(&self, len: usize) -> Range<usize> {
        let own: usize = self.plan.decoder.parameters().iter().map(ParameterSpec::len).sum();
        len - own..len
    }

    fn draw(&self, worker: &Worker, links: &Links, round: u32) -> Drawn {
        let LinkPlan { scope, number, nodes, .. } = *self.plan;
        let negatives = Negatives { scope, number, own: &worker.local.ids, nodes };
        let key = Negatives::of_round(worker.plan.config.train.seed, round);
        let mut drawn =
            Drawn { sources: links.sources.clone(), targets: links.targets.clone(), edges: links.sources.len() };
        for (source, target) in links.iter() {
            for other in negatives.targets(key, (source, target)) {
                drawn.sources.push(source);
                drawn.targets.push(other);
            }
        }
        drawn
    }

    /// What pairs of a round weigh and what the loss of one is multiplied by, so that it is a mean over all workers',
    /// or where models are averaged over own ones.
    fn weights(&self, worker: &mut Worker, counts: [usize; 2], round: u32) -> Result<(f32, f32)> {
        let mut counts = counts.map(|count| count as f64);
        if !worker.plan.cadence.is_local() {
            collectives::all_reduce_f64(&mut worker.transport, Step::PairCounts.tag(round), &mut counts)?;
        }
        let [edges, others] = counts;
        Ok((positive_weight(edges, others) as f32, (1.0 / (edges + others).max(1.0)) as f32))
    }

    /// The ends of what evaluations look at: always the same, so they are asked for once.
    fn find_judged(&self, worker: &mut Worker, judged: &Judged<'_>, round: u32) -> Result<Ends> {
        let mut wanted = Vec::new();
        judged.each_end(|id| wanted.push(id));
        wanted.sort_unstable();
        wanted.dedup();
        Ends::find(worker, &mut wanted, [Step::JudgedQuestions, Step::JudgedAnswers], round)
    }
}

impl Task for LinkPrediction {
    fn loss(
        &mut self,
        worker: &mut Worker,
        learning: Learning<'_>,
        outputs: &Matrix,
        gradient: &mut Matrix,
        g: &mut [f32],
    ) -> Result<f64> {
        let Learning { p, round, .. } = learning;
        let links = worker.links.as_ref().map(|sets| sets.train.clone()).unwrap_or_default();
        let Drawn { sources, targets, edges } = self.draw(worker, &links, round);
        let mut truth = vec![1; edges];
        truth.resize(sources.len(), 0);
        let mut wanted: Vec<u64> = sources[..edges].to_vec();
        if self.plan.scope == NegativeScope::Global {
            wanted.extend(&targets[edges..]);
        }
        let mut ends = Ends::find(worker, &mut wanted, [Step::PairQuestions, Step::PairAnswers], round)?;
        drop(wanted);
        let pairs = {
            let row = ends.index();
            let rows = |ids: Vec<u64>| ids.into_iter().map(&row).collect::<Vec<u32>>();
            PairRows { sources: rows(sources), destinations: rows(targets), relations: Vec::new() }
        };
        let how = self.weights(worker, [edges, truth.len() - edges], round)?;
        let tail = self.tail(p.len());
        let [others, dothers] = &mut self.others;
        ends.fetch(worker, ends::embeddings(self.layer, round, Direction::Forward), outputs, others)?;
        for (zeros, like) in [(&mut *gradient, outputs), (&mut *dothers, &*others)] {
            zeros.reshape(like.rows(), like.columns());
            zeros.data_mut().fill(0.0);
        }
        let scoring = Scoring { decoder: &*self.plan.decoder, p: &p[tail.clone()], rows: [outputs, others] };
        let gradients = (&mut g[tail], [&mut *gradient, &mut *dothers]);
        let value = self.scorer.loss(&mut worker.compute, scoring, (&pairs, &truth), how, gradients);
        ends.give_back(worker, ends::embeddings(self.layer, round, Direction::Reverse), dothers, gradient)?;
        Ok(value)
    }

    fn evaluate(&mut self, worker: &mut Worker, p: &[f32], outputs: &Matrix, round: u32) -> Result<(Scores, u64)> {
        let sent = worker.transport.sent().total().framed;
        let sets = worker.links.take().unwrap_or_default();
        let judged = Judged { plan: &self.plan, sets: [&sets.held.val, &sets.held.test] };
        let mut ends = match self.judged.take() {
            Some(ends) => ends,
            None => self.find_judged(worker, &judged, round)?,
        };
        let tail = self.tail(p.len());
        let [others, _] = &mut self.others;
        ends.fetch(worker, ends::evaluated(self.layer, round), outputs, others)?;
        let scoring = Scoring { decoder: &*self.plan.decoder, p: &p[tail], rows: [outputs, others] };
        let metrics = worker.plan.metrics.clone();
        let judgements = judged.judge((&mut worker.compute, &mut self.scorer), scoring, ends.index());
        worker.links = Some(sets);
        self.judged = Some(ends);
        Judgement::figures(judgements, &mut worker.transport, &metrics, (round, sent))
    }
}
