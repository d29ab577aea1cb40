//! Link prediction as a configuration asks for it, resolved.

use std::sync::Arc;

use laconic_graph::links::{EdgeSplit, HeldOut, Links, NegativeScope, hold_out, hold_out_given};
use laconic_graph::part::{GlobalCounts, Part};
use laconic_nn::decoder::{DECODER, Decoder, DecoderSpec};
use laconic_nn::metric::Metric;
use laconic_nn::parameters::ParameterSpec;

use super::{Members, Plan};
use crate::config::{Config, TaskChoice};
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
    /// How many each held-out edge is ranked among.
    pub ranked_among: u32,
    /// How many nodes all workers have together.
    pub nodes: u64,
}

/// The edges that a worker learns from and is judged by.
#[derive(Debug, Clone, Default)]
pub struct LinkSets {
    /// Edges to learn from, which pass messages as well.
    pub train: Links,
    /// Edges that are held out.
    pub held: HeldOut,
}

impl LinkSets {
    /// How many edges each split has.
    pub fn counts(&self) -> [usize; 3] {
        [self.train.len(), self.held.val.len(), self.held.test.len()]
    }
}

/// A decoder has fewer hidden layers.
const LAYERS_MAX: usize = 16;

/// More pairs for an edge are refused.
const PAIRS_MAX: u32 = 100_000;

impl LinkPlan {
    /// `None` where links are not what is learned.
    ///
    /// # Errors
    /// If a name is unknown or a value makes no sense.
    pub fn of(members: &Members, config: &Config) -> Result<Option<LinkPlan>> {
        let task = &config.task;
        if task.kind != TaskChoice::LinkPrediction {
            return Ok(None);
        }
        let kind = members.decoder(config)?;
        let (layers, width) = (task.decoder_layers, config.model.hidden);
        if layers == 0 || layers > LAYERS_MAX {
            let what = format!("expected 1 to {LAYERS_MAX}; without any it is the dot product");
            return Err(TrainError::config(format!("task.decoder_layers = {layers}: {what}")));
        }
        for (key, number) in [("negatives_per_edge", task.negatives_per_edge), ("eval_negatives", task.eval_negatives)]
        {
            if number == 0 || number > PAIRS_MAX {
                return Err(TrainError::config(format!("task.{key} = {number}: expected 1 to {PAIRS_MAX}")));
            }
        }
        if !task.exclude_targets && config.batch.size == 0 {
            let what = "a round on all edges at once passes messages along all of them; batch.size divides them";
            return Err(TrainError::config(format!("task.exclude_targets = false: {what}")));
        }
        Ok(Some(LinkPlan {
            decoder: Arc::from((kind.build)(&DecoderSpec { width, layers, relations: 1 })),
            split: task.split.spec().map_err(|error| TrainError::config(format!("task.split: {error}")))?,
            scope: task.negatives.into(),
            filters: task.filter_negatives,
            number: task.negatives_per_edge,
            ranked_among: task.eval_negatives,
            nodes: 0,
        }))
    }

    /// What draws the pairs that evaluations rank among.
    pub fn evaluation_seed(&self) -> u64 {
        self.split.map_or(0, |split| split.seed)
    }

    /// About how many of all edges are to learn from.
    ///
    /// # Errors
    /// If the data hold none out and should.
    pub(super) fn training_edges(&self, counts: &GlobalCounts) -> Result<u64> {
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
        let (part, held) = match &self.split {
            Some(split) => hold_out(part, split)?,
            None => hold_out_given(part),
        };
        let train = Links::of(&part);
        Ok((part, LinkSets { train, held }))
    }
}

impl Plan {
    /// The part as training sees it, and the edges to predict where links are learned.
    ///
    /// # Errors
    /// If the split is none.
    pub fn take_links(&self, part: Part) -> Result<(Part, Option<LinkSets>)> {
        match &self.links {
            None => Ok((part, None)),
            Some(links) => links.sets(part).map(|(part, sets)| (part, Some(sets))),
        }
    }

    /// Refuses what link prediction cannot be combined with.
    pub(super) fn check_links(&self) -> Result<()> {
        if self.links.is_none() {
            return Ok(());
        }
        let refuse = |key: &str, what: &str| Err(TrainError::config(format!("{key} with link prediction: {what}")));
        let config = &self.config;
        if config.data.inductive {
            return refuse("data.inductive", "it is edges that are held out, and no nodes");
        }
        if config.train.class_weights.is_some() {
            return refuse("train.class_weights", "there are no classes; edges and pairs that are none weigh the same");
        }
        if self.stages.iter().any(|stage| stage.late.is_some()) {
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

/// The metrics of these names, or what is usual.
pub(super) fn link_metrics(names: &[String]) -> Vec<Metric> {
    let metrics: Vec<Metric> = names.iter().filter_map(|name| Metric::from_name(name)).collect();
    if metrics.is_empty() { vec![Metric::Mrr, Metric::Hits50] } else { metrics }
}
