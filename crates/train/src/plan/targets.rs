//! What is learned from, resolved: nodes with labels, or edges and pairs that are none; and what others ask of them.

use laconic_graph::dataset::Split;
use laconic_graph::links::NegativeScope;
use laconic_graph::part::{GlobalCounts, Part};
use laconic_nn::metric::Metric;

use super::{Plan, RankedAmong};
use crate::config::{ClassWeights, Config};
use crate::error::{Result, TrainError};

impl Plan {
    /// Refuses data whose nodes have no labels to learn from.
    ///
    /// # Errors
    /// If there are none, or what is asked for does not suit their classes.
    pub fn check_labels(config: &Config, counts: &GlobalCounts) -> Result<()> {
        let refuse = |what: String| Err(TrainError::config(what));
        let name = &counts.dataset;
        if counts.classes == 0 {
            return refuse(format!("{name} has no labels to learn"));
        }
        if counts.train == 0 && counts.are_counted() {
            let hint = "give data.split = { train = …, val = … }";
            return refuse(format!("{name}: no node is in the training split; {hint}"));
        }
        if let Some(ClassWeights::Given(given)) = &config.train.class_weights
            && given.len() != counts.classes
        {
            let (expected, found) = (counts.classes, given.len());
            let what = format!("expected {expected} numbers, one for each class of {name}, found {found}");
            return refuse(format!("train.class_weights: {what}"));
        }
        metrics(&config.train.metrics, counts).map(drop)
    }

    /// The plan of a model of classes on data of these counts, and how many nodes all workers learn from.
    ///
    /// # Errors
    /// If a metric does not suit the labels.
    pub fn on_labels(self, counts: &GlobalCounts) -> Result<(Plan, u64)> {
        let config = self.config.clone();
        let metrics = metrics(&config.train.metrics, counts)?;
        let counts_classes = matches!(config.train.class_weights, Some(ClassWeights::Counted(_)));
        let class_counts = if counts_classes { counts.classes * if counts.multi_label { 2 } else { 1 } } else { 0 };
        let (inductive, class_weights) = (config.data.inductive, config.train.class_weights.clone());
        Ok((Plan { metrics, inductive, class_weights, class_counts, ..self }, counts.train))
    }

    /// Whether own rows are all that losses and figures read of what the network outputs: not the ends of pairs, which
    /// may be anybody's nodes.
    pub fn reads_own_outputs(&self) -> bool {
        !self.task.of_pairs
    }

    /// Whether workers ask each other who has the nodes at the ends of their pairs.
    pub fn asks_for_ends(&self) -> bool {
        self.task.of_pairs
    }

    /// Whether targets take memory of their own beside rows: pairs do.
    pub fn keeps_targets_apart(&self) -> bool {
        self.task.of_pairs
    }

    /// Whether how many targets all workers have follows from the data's counts; how many edges are held out is only
    /// about known.
    pub fn counts_targets(&self) -> bool {
        !self.task.of_pairs
    }

    /// Whether training is on the graph that the parts have, which somebody may have counted: not on the one that
    /// training nodes induce, nor on the one that is left when edges are held out.
    pub fn trains_on_all_edges(&self) -> bool {
        !self.inductive && !self.task.of_pairs
    }

    /// How many nodes a batch begins from for each target: itself, or the ends of an edge and of the pairs that stand
    /// beside it.
    pub fn seeds_of_target(&self) -> usize {
        self.links.as_ref().map_or(1, |links| 2 + links.number as usize)
    }

    /// How many of these may be other workers' nodes where targets are edges: those at own nodes are own.
    pub fn foreign_seeds_of_target(&self) -> usize {
        let drawn = self.links.as_ref().filter(|links| links.scope == NegativeScope::Global);
        1 + drawn.map_or(0, |links| links.number as usize)
    }

    /// How many targets come into a batch together at most: both directions of an edge, and those of all relations.
    pub fn targets_drawn_together(&self) -> usize {
        if self.task.of_pairs { 2 * self.relations.max(1) } else { 1 }
    }

    /// About how many targets of each split a part has, and how many pairs are given for the last two, where that is
    /// not what its nodes' roles say. Draws are rarely further off.
    pub fn outlined_targets(&self, part: &Part) -> Option<([usize; 3], [usize; 2])> {
        let links = self.links.as_ref()?;
        let edges = part.edges.edges();
        let role = |wanted: u8| part.edges.data.held.iter().flatten().filter(|role| **role == wanted).count();
        let drawn = |share: f64| ((edges as f64 * share + 3.0 * (edges as f64).sqrt()) as usize).min(edges);
        let targets = match &links.split {
            Some(split) => [1.0 - split.val - split.test, split.val, split.test].map(drawn),
            None => [edges - role(1) - role(2), role(1), role(2)],
        };
        Some((targets, links.given_pairs()))
    }

    /// The same where no more is known of a worker than how many edges it has.
    pub fn bounded_targets(&self, edges: usize) -> Option<([usize; 3], [usize; 2])> {
        self.links.as_ref().map(|links| ([edges; 3], links.given_pairs()))
    }

    /// What is known of figures before anything is learned, from how many targets all workers have in validation and
    /// for testing, a line each; of labels, more is known from the labels themselves.
    pub fn foreseen(&self, targets: [u64; 2]) -> Vec<String> {
        self.links.as_ref().map(|links| links.foreseen(&self.metrics, targets)).unwrap_or_default()
    }

    /// Whether a part has something that a worker of its own nodes can learn from.
    ///
    /// # Errors
    /// If the split of its edges is none.
    pub fn learns_from(&self, part: &Part) -> Result<bool> {
        if !self.task.of_pairs && !self.task.of_labels {
            return Ok(true);
        }
        if self.task.of_labels {
            return Ok(has_labels_to_learn(part));
        }
        let own = |source: &u64| part.nodes.binary_search(source).is_ok();
        let sets = self.take_links(part.clone())?.1;
        Ok(sets.is_some_and(|sets| sets.train.pairs().any(|edge| own(&edge.source))))
    }
}

impl super::LinkPlan {
    /// How many pairs the data give for each split in all parts; none where they are drawn.
    fn given_pairs(&self) -> [usize; 2] {
        match self.ranked_among {
            RankedAmong::Drawn(_) => [0; 2],
            RankedAmong::Given(all) => all.map(|all| all.pairs as usize),
        }
    }
}

/// Whether a node of the part is to learn from.
pub(crate) fn has_labels_to_learn(part: &Part) -> bool {
    let mut roles = part.roles.iter().enumerate();
    roles.any(|(row, roles)| roles & Split::TRAIN != 0 && part.labels.known(row) > 0)
}

/// The metrics of these names, or the one that suits the labels.
fn metrics(names: &[String], counts: &GlobalCounts) -> Result<Vec<Metric>> {
    let (classes, sets) = (counts.classes, counts.multi_label);
    let mut metrics: Vec<Metric> = names.iter().filter_map(|name| Metric::from_name(name)).collect();
    if let Some(metric) = metrics.iter().find(|metric| !metric.is_of_nodes()) {
        let what = format!("train.metrics: {} is one of links (task.kind = \"link_prediction\")", metric.name());
        return Err(TrainError::config(what));
    }
    if metrics.is_empty() {
        metrics.push(if sets { Metric::MicroF1 } else { Metric::Accuracy });
    }
    let area = metrics.iter().find(|metric| matches!(metric, Metric::RocAuc | Metric::RocAucExact));
    if let Some(area) = area.filter(|_| !sets && classes != 2) {
        let what = format!("train.metrics: {} needs 2 classes or sets, not {classes} classes", area.name());
        return Err(TrainError::config(what));
    }
    Ok(metrics)
}
