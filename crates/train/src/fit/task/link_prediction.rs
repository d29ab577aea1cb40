//! Link prediction: rows are embeddings of nodes, a decoder scores pairs of them, and the loss is binary cross entropy
//! over edges and as many pairs that are none.
//!
//! A worker has the edges that end at its own nodes. The other end of an edge, and of a pair that stands for none, may
//! be anywhere: its embedding is fetched and its gradient given back ([`Ends`]). Batches have both ends' rows here.

use std::ops::Range;
use std::sync::Arc;

use laconic_graph::links::{NegativeScope, TRIES};
use laconic_nn::links::{Examples, PairGradients, PairScorer, Scoring};
use laconic_nn::parameters::ParameterSpec;
use laconic_nn::{Compute, Matrix};
use laconic_wire::Direction;

use super::{Learning, Task, makes};
use crate::error::Result;
use crate::exchange::steps::Step;
use crate::fit::pairs::{Drawn, Pairs, weights};
use crate::plan::{LinkPlan, LinkSets, Plan, TaskKind, Words};
use crate::worker::Worker;
use crate::worker::edges::EdgesAmong;
use crate::worker::ends::{self, Ends};
use crate::worker::evaluate::Evaluated;
use crate::worker::judged::Judged;
use crate::worker::judgements::{Judgements, Measured};
use crate::worker::left::Left;

pub(super) const KIND: TaskKind = TaskKind {
    name: "link_prediction",
    options: &[
        "decoder",
        "split",
        "negatives",
        "negatives_per_edge",
        "filter_negatives",
        "exclude_targets",
        "eval_negatives",
    ],
    of_pairs: true,
    of_labels: false,
    words: Words {
        noun: "edges",
        rows: "hidden rows of nodes that others have edges from, and embeddings of nodes at the ends of others' pairs",
        gradients: "gradients of the model, summed over training edges",
        draws: "ids of nodes that batches and pairs reach, pairs that may be edges, and neighbours that were drawn",
        figures: "for evaluations: how its held-out edges rank and score, as counts and sums over all of them",
        scored: |edges| format!("for evaluations: scores of pairs set against its {edges} held-out edges, or of both"),
        evaluation: "evaluation: rows, counts, scores of held-out edges and of pairs",
        parts: "figures of its own validation and test edges",
        unlearned: "no edge joins two nodes and is left to learn from",
        unvalidated: "no edge is held out for validation",
    },
    check: |_, _| Ok(()),
    resolve: Plan::on_links,
    build: || {
        makes(|plan, stage| {
            let links = plan.links.clone().expect("plans of tasks of pairs have them");
            Box::new(LinkPrediction::new(links, stage.last_layer() + 1))
        })
    },
};

/// Which nodes have an edge between them, from an embedding of each.
struct LinkPrediction {
    plan: Arc<LinkPlan>,
    /// The number of the layer behind the last, which reads embeddings.
    layer: u16,
    scorer: PairScorer,
    /// Embeddings of others' nodes, and their gradients.
    others: [Matrix; 2],
    /// The ends of held-out edges and of what they are ranked among, what of that are edges, and where few are left.
    judged: Option<(Ends, EdgesAmong, [Left; 2])>,
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

    /// The loss of pairs of these rows, with what edges weigh and what the loss of a pair is multiplied by: sets the
    /// gradients by own rows, and by others', and adds to `g`.
    fn learn(
        &mut self,
        compute: &mut Compute,
        learned: (&Pairs, (f32, f32)),
        p: &[f32],
        outputs: &Matrix,
        gradient: &mut Matrix,
        g: &mut [f32],
    ) -> f64 {
        let (pairs, how) = learned;
        let tail = self.tail(p.len());
        let [others, dothers] = &mut self.others;
        for (zeros, like) in [(&mut *gradient, outputs), (&mut *dothers, &*others)] {
            zeros.reshape(like.rows(), like.columns());
            zeros.data_mut().fill(0.0);
        }
        let scoring = Scoring { decoder: &*self.plan.decoder, p: &p[tail.clone()], rows: [outputs, others] };
        let gradients = PairGradients { parameters: &mut g[tail], rows: [gradient, dothers] };
        let (positive_weight, scale) = how;
        let examples = Examples { pairs: &pairs.rows, truth: &pairs.truth(), positive_weight, scale };
        self.scorer.loss(compute, scoring, examples, gradients)
    }

    /// The ends of what evaluations look at: always the same, so they are asked for once.
    fn find_judged(&self, worker: &mut Worker, sets: &LinkSets, round: u32) -> Result<(Ends, EdgesAmong, [Left; 2])> {
        let mut edges = EdgesAmong::default();
        for tries in TRIES.iter().filter(|_| self.plan.filters_judged()) {
            let pairs = Judged { plan: &self.plan, sets, edges: &edges }.candidates(tries);
            let steps = [Step::JudgedEdgeQuestions, Step::JudgedEdgeAnswers];
            edges.add(EdgesAmong::of((worker, sets), pairs.into_iter(), (steps, round), true)?);
        }
        let judged = Judged { plan: &self.plan, sets, edges: &edges };
        let mut left = [Left::default(); 2];
        if self.plan.filters_judged() {
            left = Left::of_all(judged.left(), &mut worker.transport, round)?;
        }
        let mut wanted = Vec::new();
        judged.each_end(|id| wanted.push(id));
        wanted.sort_unstable();
        wanted.dedup();
        let ends = Ends::find(worker, &mut wanted, [Step::JudgedQuestions, Step::JudgedAnswers], round)?;
        Ok((ends, edges, left))
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
        let Learning { p, round, pairs, .. } = learning;
        if let Some(pairs) = pairs {
            self.others = Default::default();
            return Ok(self.learn(&mut worker.compute, pairs, p, outputs, gradient, g));
        }
        let links = worker.links.as_ref();
        let drawn = links.map(|sets| Drawn::of(worker, &self.plan, &sets.train, round)).unwrap_or_default();
        let drawn = Drawn::filtered(worker, &self.plan, vec![drawn], round)?.swap_remove(0);
        let mut wanted: Vec<u64> = drawn.sources[..drawn.edges].to_vec();
        if self.plan.scope == NegativeScope::Global {
            wanted.extend(&drawn.targets[drawn.edges..]);
        }
        let mut ends = Ends::find(worker, &mut wanted, [Step::PairQuestions, Step::PairAnswers], round)?;
        drop(wanted);
        let pairs = drawn.rows(ends.index());
        let how = weights(worker, pairs.counts, round)?;
        ends.fetch(worker, ends::embeddings(self.layer, round, Direction::Forward), outputs, &mut self.others[0])?;
        let value = self.learn(&mut worker.compute, (&pairs, how), p, outputs, gradient, g);
        let back = ends::embeddings(self.layer, round, Direction::Reverse);
        ends.give_back(worker, back, &self.others[1], gradient)?;
        Ok(value)
    }

    fn evaluate(&mut self, worker: &mut Worker, p: &[f32], outputs: &Matrix, round: u32) -> Result<Evaluated> {
        let sent = worker.transport.sent().total().framed;
        let metrics = worker.plan.metrics.clone();
        let tells = worker.evaluator.parts().is_some();
        let (judgements, left) = worker.with_links(|worker, sets| -> Result<(Judgements, [Left; 2])> {
            let (mut ends, edges, left) = match self.judged.take() {
                Some(found) => found,
                None => self.find_judged(worker, sets, round)?,
            };
            let judged = Judged { plan: &self.plan, sets, edges: &edges };
            let tail = self.tail(p.len());
            let [others, _] = &mut self.others;
            ends.fetch(worker, ends::evaluated(self.layer, round), outputs, others)?;
            let scoring = Scoring { decoder: &*self.plan.decoder, p: &p[tail], rows: [outputs, others] };
            let Worker { compute, local, .. } = &mut *worker;
            let judgements = judged.judge(compute, &mut self.scorer, scoring, ends.index(), local, tells);
            self.judged = Some((ends, edges, left));
            Ok((judgements, left))
        })?;
        let measured = Measured { links: &self.plan, metrics: &metrics };
        judgements.figures(&mut worker.transport, measured, left, round, sent, tells)
    }
}
