//! Link prediction as a configuration asks for it, resolved.

use std::sync::Arc;

use laconic_graph::given::{GivenCounts, GivenNegatives, GivenPairs};
use laconic_graph::leaks::Leaks;
use laconic_graph::links::{
    EdgeSplit, HeldOut, Links, NegativeScope, Negatives, Pair, Types, hold_out, hold_out_given,
};
use laconic_graph::part::{GlobalCounts, Part};
use laconic_graph::sides::Sides;
use laconic_graph::type_runs::{ByType, TypeRuns};
use laconic_nn::decoder::{DECODER, Decoder, DecoderSpec};
use laconic_nn::metric::Metric;
use laconic_nn::parameters::ParameterSpec;

use super::{Members, Plan};
use crate::config::{Config, EvalNegatives};
use crate::error::{Result, TrainError};
use crate::schedule::Stage;

/// What is learned of links, and from which pairs.
#[derive(Clone)]
pub struct LinkPlan {
    /// What scores a pair of embeddings.
    pub decoder: Arc<dyn Decoder>,
    /// Which edges are held out; `None` for those that the data hold out.
    pub split: Option<EdgeSplit>,
    /// Where the targets of pairs come from that are no edges.
    pub scope: NegativeScope,
    /// Whether those that are edges are left out.
    pub filters: bool,
    /// How many of them for each edge and round.
    pub number: u32,
    /// What held-out edges are judged against.
    pub ranked_among: RankedAmong,
    /// How many nodes all workers have together.
    pub nodes: u64,
    /// Nodes of several types, and those of each among all.
    types: Option<Arc<(TypeRuns, ByType)>>,
    /// How many edges the data hold out, for validation and for testing.
    held: [u64; 2],
    /// How many edges the data hold out and this split does not, but draws from as from all others.
    pub passed_over: u64,
    /// What training edges tell of the edges that are held out, and how many these are, where the data hold them out.
    pub(super) leaks: Option<([Leaks; 2], [u64; 2])>,
    /// How many relations the decoder tells pairs apart by; 1 where it reads none, or the data have but one.
    pub relations: usize,
    /// The decoder's name.
    name: &'static str,
}

/// What held-out edges are judged against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankedAmong {
    /// So many pairs for each, drawn.
    Drawn(u32),
    /// Pairs that the data give, and how many there are in all parts.
    Given([GivenCounts; 2]),
}

/// The edges that a worker learns from and is judged by.
#[derive(Debug, Clone, Default)]
pub struct LinkSets {
    /// Edges to learn from, which pass messages as well.
    pub train: Links,
    /// Edges that are held out.
    pub held: HeldOut,
    /// What they are judged against, where it is given.
    pub given: Option<GivenNegatives<u64>>,
}

impl LinkSets {
    /// How many edges are learned from, and how many of each split are judged.
    pub fn counts(&self) -> [usize; 3] {
        let judged = |split| self.judged(split).len();
        [self.train.len(), judged(0), judged(1)]
    }

    /// Forgets relations that nobody reads.
    fn untell(&mut self) {
        let HeldOut { val, test } = &mut self.held;
        [&mut self.train, val, test].into_iter().for_each(|links| links.relations = Vec::new());
        self.given.iter_mut().flatten().for_each(|given| given.relations = Vec::new());
    }

    /// How many pairs are given for each split, or edges that have pairs of their own.
    pub fn given_counts(&self) -> [usize; 2] {
        self.given.as_ref().map_or([0; 2], |given| given.each_ref().map(GivenPairs::len))
    }

    /// The edges of a split that are judged. Where edges have pairs of their own, they are those that do.
    pub fn judged(&self, split: usize) -> JudgedEdges<'_> {
        let given = self.given.as_ref().map(|given| &given[split]);
        let (sources, targets, relations) = match (given.filter(|given| given.each > 0), split) {
            (Some(own), _) => (&own.sources, &own.targets, &own.relations),
            (None, 0) => self.held.val.columns(),
            (None, _) => self.held.test.columns(),
        };
        JudgedEdges { sources, targets, relations, given }
    }
}

/// The edges of one split that are judged here.
#[derive(Clone, Copy)]
pub struct JudgedEdges<'a> {
    sources: &'a [u64],
    targets: &'a [u64],
    relations: &'a [u16],
    /// What is given to judge them against.
    pub given: Option<&'a GivenPairs<u64>>,
}

impl JudgedEdges<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.sources.len()
    }

    /// Edge number `at`.
    pub fn edge(&self, at: usize) -> Pair {
        Pair { source: self.sources[at], target: self.targets[at], relation: self.relations.get(at).copied() }
    }
}

/// A decoder has fewer hidden layers.
const LAYERS_MAX: usize = 16;

/// More pairs for an edge are refused.
const PAIRS_MAX: u32 = 100_000;

impl LinkPlan {
    /// On data of so many relations; `None` where links are not what is learned.
    ///
    /// # Errors
    /// If a name is unknown or a value makes no sense.
    pub fn of(members: &Members, config: &Config, relations: usize) -> Result<Option<LinkPlan>> {
        let task = &config.task;
        if !members.task(config)?.of_pairs {
            return Ok(None);
        }
        let kind = members.decoder(config)?;
        let (layers, width) = (task.decoder_layers, config.model.hidden);
        if layers == 0 || layers > LAYERS_MAX {
            let what = format!("expected 1 to {LAYERS_MAX}; without any it is the dot product");
            return Err(TrainError::config(format!("task.decoder_layers = {layers}: {what}")));
        }
        let drawn = match task.eval_negatives {
            EvalNegatives::Drawn(number) => Some(("eval_negatives", number)),
            EvalNegatives::Named(_) => None,
        };
        for (key, number) in [("negatives_per_edge", task.negatives_per_edge)].into_iter().chain(drawn) {
            if number == 0 || number > PAIRS_MAX {
                return Err(TrainError::config(format!("task.{key} = {number}: expected 1 to {PAIRS_MAX}")));
            }
        }
        let split = task.split.spec().map_err(|error| TrainError::config(format!("task.split: {error}")))?;
        if drawn.is_none() && split.is_some() {
            let what = "belongs to the edges that the data hold out: say task.split = \"given\" as well";
            return Err(TrainError::config(format!("task.eval_negatives = \"given\" {what}")));
        }
        if !task.exclude_targets && config.batch.size == 0 {
            let what = "a round on all edges at once passes messages along all of them; batch.size divides them";
            return Err(TrainError::config(format!("task.exclude_targets = false: {what}")));
        }
        let relations = if kind.is_relational { relations.max(1) } else { 1 };
        Ok(Some(LinkPlan {
            decoder: Arc::from((kind.build)(&DecoderSpec { width, layers, relations })),
            relations,
            name: kind.name,
            split,
            scope: task.negatives.into(),
            filters: task.filter_negatives,
            number: task.negatives_per_edge,
            ranked_among: match task.eval_negatives {
                EvalNegatives::Drawn(number) => RankedAmong::Drawn(number),
                EvalNegatives::Named(_) => RankedAmong::Given(Default::default()),
            },
            nodes: 0,
            types: None,
            held: [0; 2],
            passed_over: 0,
            leaks: None,
        }))
    }

    /// The same on data of these counts.
    ///
    /// # Errors
    /// If the data give no pairs that are none and should, or give some without the relations that the decoder reads;
    /// or if there are more pairs than can be asked about.
    fn on(&self, counts: &GlobalCounts) -> Result<LinkPlan> {
        self.check_filter(counts)?;
        let held = counts.held.filter(|_| self.split.is_some()).unwrap_or_default();
        let runs = Some(&counts.types).filter(|types| !types.is_empty());
        let types = runs.map(|runs| Arc::new((runs.clone(), runs.all(counts.nodes))));
        // A drawn split holds out all edges between two nodes together.
        let leaks = counts.leaks.zip(counts.held).filter(|_| self.split.is_none());
        let passed_over = held.iter().sum();
        let mut links = LinkPlan {
            nodes: counts.nodes,
            types,
            held: counts.held.unwrap_or_default(),
            passed_over,
            leaks,
            ..self.clone()
        };
        if let RankedAmong::Given(given) = &mut links.ranked_among {
            *given = counts.negatives.unwrap_or_default();
            let held = counts.held.unwrap_or_default().into_iter().zip(given.iter());
            let mut splits = ["val", "test"].into_iter().zip(held);
            if let Some((split, _)) = splits.find(|(_, (held, given))| *held > 0 && given.pairs == 0) {
                let what = format!(
                    "gives no pairs that are no edges ({split}_neg_edge_index or {split}_neg_targets of \
                    an npz) beside {split}_edge_index; a number draws some"
                );
                return Err(TrainError::config(format!("task.eval_negatives = \"given\": {} {what}", counts.dataset)));
            }
            if self.relations > 1 && given.iter().any(|given| given.pairs > 0 && given.each == 0) {
                let what = format!(
                    "{} gives pools (val_neg_edge_index or test_neg_edge_index of an npz) whose pairs have no \
                    relation, and task.decoder = {:?} scores by it; targets of each edge's own (val_neg_targets) have \
                    that edge's, and a number draws some",
                    counts.dataset, self.name
                );
                return Err(TrainError::config(format!("task.eval_negatives = \"given\": {what}")));
            }
        }
        Ok(links)
    }

    /// Pairs are asked about as numbers of 64 bits.
    fn check_filter(&self, counts: &GlobalCounts) -> Result<()> {
        let pairs = u128::from(counts.nodes).saturating_mul(counts.nodes.into());
        if !self.filters || pairs.saturating_mul(self.relations as u128) <= 1 << 64 {
            return Ok(());
        }
        let most = (((1u128 << 64) / self.relations as u128) as f64).sqrt() as u64;
        let of = if self.relations > 1 { format!(" with {} relations", self.relations) } else { String::new() };
        let what = format!("expected at most {most} nodes{of}, {} has {}", counts.dataset, counts.nodes);
        Err(TrainError::config(format!("task.filter_negatives = true: {what}")))
    }

    /// How many pairs one evaluation scores, of so many judged edges and given pairs of each split, edges among them.
    pub fn judged_pairs(&self, [_, val, test]: [usize; 3], given: [usize; 2]) -> u64 {
        let edges = (val + test) as u64;
        match self.ranked_among {
            RankedAmong::Drawn(number) => edges.saturating_mul(1 + u64::from(number)),
            RankedAmong::Given(all) => all
                .iter()
                .zip(given)
                .fold(edges, |sum, (all, given)| sum.saturating_add((given as u64).saturating_mul(all.each.max(1)))),
        }
    }

    /// What will not be defined of figures of so many edges that all workers hold out for validation and testing, or
    /// cannot be missed, a line each.
    pub fn foreseen(&self, metrics: &[Metric], edges: [u64; 2]) -> Vec<String> {
        let mut said = Vec::new();
        for ((split, name), edges) in ["validation", "test"].into_iter().enumerate().zip(edges) {
            if edges == 0 {
                said.push(format!("no edge is held out for {name}, so there will be no figure of it"));
                continue;
            }
            // Of drawn pairs the first of each edge belongs to the pool.
            let pool = match self.ranked_among {
                RankedAmong::Drawn(_) => edges,
                RankedAmong::Given(given) => given[split].pairs.saturating_mul(given[split].each.max(1)),
            };
            let out_of_reach = metrics.iter().filter(|metric| metric.top().is_some_and(|top| pool < top as u64));
            said.extend(out_of_reach.map(|metric| {
                format!("{} of {name} cannot be defined: its pool has {pool} pairs at most", metric.name())
            }));
        }
        said
    }

    /// The share of a split's edges whose first drawn pair belongs to the pool of Hits@K, so that the pools of both
    /// splits are about as large: of a larger one the K-th best scores higher. Given pools are what they are.
    pub fn pool_share(&self, split: usize) -> f64 {
        let sizes = match (self.ranked_among, &self.split) {
            (RankedAmong::Given(_), _) => return 1.0,
            (_, Some(EdgeSplit { val, test, .. })) => [*val, *test],
            (_, None) => self.held.map(|count| count as f64),
        };
        let least = sizes.into_iter().filter(|size| *size > 0.0).fold(f64::INFINITY, f64::min);
        if sizes[split] > least { least / sizes[split] } else { 1.0 }
    }

    /// The most pairs that areas under the curve compare own edges with.
    pub fn pool_pairs(&self, edges: [usize; 3], given: [usize; 2]) -> u64 {
        let [_, val, test] = edges;
        match self.ranked_among {
            RankedAmong::Drawn(_) => (val + test) as u64,
            RankedAmong::Given(_) => self.judged_pairs(edges, given).saturating_sub((val + test) as u64),
        }
    }

    /// Whether pairs that evaluations look at are drawn, and those that are edges are left out of them.
    pub fn filters_judged(&self) -> bool {
        self.filters && matches!(self.ranked_among, RankedAmong::Drawn(_))
    }

    /// Nodes of several types among all, where there are some.
    pub fn types(&self) -> Option<Types<'_>> {
        self.types.as_deref().map(|(runs, of)| Types { runs, of })
    }

    /// Calls `draw` with what draws pairs to learn from, `own` being the ids of own nodes, ascending.
    pub fn negatives<T>(&self, own: &[u64], draw: impl FnOnce(Negatives<'_>) -> T) -> T {
        let LinkPlan { scope, number, nodes, .. } = *self;
        let runs = self.types.as_deref().map(|(runs, _)| runs).filter(|_| scope == NegativeScope::Local);
        let here = runs.map(|runs| (runs, runs.among(own)));
        let types = here.as_ref().map(|(runs, of)| Types { runs, of }).or_else(|| self.types());
        draw(Negatives { scope, number, own, nodes, types })
    }

    /// What draws the pairs that evaluations rank among.
    pub fn evaluation_seed(&self) -> u64 {
        self.split.map_or(0, |split| split.seed)
    }

    /// About how many of all edges are to learn from.
    ///
    /// # Errors
    /// If the data hold none out and should.
    fn training_edges(&self, counts: &GlobalCounts) -> Result<u64> {
        match (&self.split, counts.held) {
            (Some(split), _) => Ok((counts.edges as f64 * (1.0 - split.val - split.test)) as u64),
            (None, Some([val, test])) => Ok(counts.edges.saturating_sub(val + test)),
            (None, None) => {
                let what = "holds out no edges (val_edge_index and test_edge_index of an npz); \
                    { val = 0.05, test = 0.1 } draws some";
                Err(TrainError::config(format!("task.split = \"given\": {} {what}", counts.dataset)))
            }
        }
    }

    /// The decoder's parameters, behind those of each stage's network. The last stage's decoder is the model's.
    pub fn with_decoder(&self, stages: Vec<Stage>) -> Vec<Stage> {
        let last = stages.len() - 1;
        let named = |index: usize| {
            let list = if index == last { DECODER.to_owned() } else { format!("{DECODER}s.{index}") };
            let name = |spec: ParameterSpec| ParameterSpec { name: format!("{list}.{}", spec.name), ..spec };
            self.decoder.parameters().into_iter().map(name).collect()
        };
        let with = |(index, stage): (usize, Stage)| Stage { network: stage.network.with_tail(named(index)), ..stage };
        stages.into_iter().enumerate().map(with).collect()
    }

    /// A part without the edges that are held out, and all edges by what they are for.
    ///
    /// # Errors
    /// If the split is none.
    pub fn sets(&self, part: Part) -> Result<(Part, LinkSets)> {
        let (part, given) = without_negatives(part);
        let given = given.filter(|_| matches!(self.ranked_among, RankedAmong::Given(_)));
        let (part, held) = match &self.split {
            Some(split) => hold_out(part, split)?,
            None => hold_out_given(part),
        };
        let mut sets = LinkSets { train: Links::of(&part), held, given };
        if self.relations == 1 {
            sets.untell();
        }
        Ok((part, sets))
    }
}

impl Plan {
    /// The part as training sees it, and the edges to predict where links are learned.
    ///
    /// # Errors
    /// If the split is none.
    pub fn take_links(&self, part: Part) -> Result<(Part, Option<LinkSets>)> {
        match &self.links {
            None => Ok((without_negatives(part).0, None)),
            Some(links) => links.sets(part).map(|(part, sets)| (part, Some(sets))),
        }
    }

    /// Says so where links are learned from a graph of two sides and nobody knows that: negatives have targets of both.
    /// Of all parts; of some alone nothing is known.
    pub fn two_sided<'a>(&self, parts: impl Iterator<Item = &'a Part> + Clone) -> Option<String> {
        self.links.as_ref().filter(|links| links.types().is_none())?;
        let all = parts.clone().next()?.global.nodes;
        let rows = parts.flat_map(|part| (0..part.rows()).map(|row| (part.nodes[row], part.edges.in_neighbours(row))));
        Sides::of_rows(all, rows).map(|sides| sides.said())
    }

    /// The same, measuring what the configuration says of edges that are held out of data of these counts; of a model
    /// of other things, as it is.
    ///
    /// # Errors
    /// As where such links are learned.
    pub fn judging_links(self, counts: &GlobalCounts) -> Result<Plan> {
        let Some(links) = &self.links else { return Ok(self) };
        let is_held = match &links.split {
            Some(split) => split.val + split.test > 0.0,
            None => counts.held.is_some_and(|held| held.iter().any(|&count| count > 0)),
        };
        let metrics = if is_held { link_metrics(&self.config.train.metrics) } else { Vec::new() };
        let links = Some(Arc::new(links.on(counts)?));
        Ok(Plan { links, metrics, ..self })
    }

    /// The plan of a model of links on data of these counts, and about how many edges all workers learn from.
    ///
    /// # Errors
    /// If link prediction cannot be combined with what else is asked for, or the data do not have what it needs.
    pub fn on_links(self, counts: &GlobalCounts) -> Result<(Plan, u64)> {
        let links = self.links.as_ref().map(|links| links.on(counts)).transpose()?.map(Arc::new);
        let plan = Plan { links, metrics: link_metrics(&self.config.train.metrics), ..self };
        plan.check_links()?;
        let train = plan.links.as_ref().map_or(Ok(0), |links| links.training_edges(counts))?;
        Ok((plan, train))
    }

    /// Refuses what link prediction cannot be combined with.
    fn check_links(&self) -> Result<()> {
        let refuse = |key: &str, what: &str| Err(TrainError::config(format!("{key} with link prediction: {what}")));
        let config = &self.config;
        if config.data.inductive {
            return refuse("data.inductive", "it is edges that are held out, and no nodes");
        }
        if config.train.class_weights.is_some() {
            return refuse("train.class_weights", "there are no classes; edges and pairs that are none weigh the same");
        }
        if self.stages.iter().any(|stage| stage.late.is_some_and(|late| late.refresh.is_none())) {
            return refuse("schedule.kind", "embeddings of pairs' ends are used in the round in which they are sent");
        }
        if self.messages.are_adaptive() || self.messages.same_rows().is_some() {
            return refuse("messages", "other embeddings cross in every round, so nothing can be known of them before");
        }
        match self.metrics.iter().find(|metric| !metric.is_of_links()) {
            Some(metric) => refuse("train.metrics", &format!("{} is one of nodes", metric.name())),
            None => Ok(()),
        }
    }
}

/// A part without the pairs that its data give as no edges, and these.
fn without_negatives(mut part: Part) -> (Part, Option<GivenNegatives<u64>>) {
    let given = part.negatives.take();
    part.global.negatives = None;
    (part, given)
}

/// The metrics of these names, or what is usual.
fn link_metrics(names: &[String]) -> Vec<Metric> {
    let metrics: Vec<Metric> = names.iter().filter_map(|name| Metric::from_name(name)).collect();
    if metrics.is_empty() { vec![Metric::Mrr, Metric::Hits50] } else { metrics }
}
