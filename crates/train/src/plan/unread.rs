//! What data say of edges that a model has no use for, or cannot use: every layer and decoder says what it reads.

use laconic_graph::edges::Edges;
use laconic_graph::part::{GlobalCounts, Part};
use laconic_nn::layer::EdgeWeights;
use laconic_nn::{Layer, LayerSpec};

use super::Plan;
use super::links::RankedAmong;
use crate::config::Config;
use crate::error::{Result, TrainError};

/// Names with commas and an "and" between.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => "no layer".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The sum of the weights of edges into each node, as degrees are made, and what is odd about them.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    edges: usize,
    negative: usize,
    nodes: usize,
    /// Nodes with edges of which none counts, because the sum is 0 or less.
    lost: usize,
    /// Nodes all of whose edges weigh 0.
    weightless: usize,
    /// Nodes whose sum, or what it is divided by, is no number of 32 bits.
    beyond: usize,
}

impl Sums {
    fn add(&mut self, edges: &Edges<u64>, loops: f32) {
        let Some(weights) = &edges.data.weights else { return };
        self.edges += weights.len();
        self.negative += weights.iter().filter(|weight| **weight < 0.0).count();
        for row in 0..edges.rows() {
            let into = &weights[edges.in_edges(row)];
            self.nodes += 1;
            if into.is_empty() {
                continue;
            }
            let sum = into.iter().sum::<f32>() + loops;
            let is_weightless = into.iter().all(|weight| *weight == 0.0);
            self.weightless += usize::from(is_weightless);
            self.lost += usize::from(sum <= 0.0 && !is_weightless);
            self.beyond += usize::from(sum > 0.0 && !(sum.is_finite() && sum.recip().is_finite()));
        }
    }
}

impl Plan {
    /// What the data say of edges and the model does not read, a line each.
    pub fn unread(&self, data: &GlobalCounts) -> Vec<String> {
        let layer = self.messaging_layer();
        let of_edges = match layer {
            Some(layer) => self.unread_by(layer, data),
            None if data.edges > 0 && !self.propagates() => vec![self.no_edges(data)],
            None => Vec::new(),
        };
        of_edges.into_iter().chain(self.unread_by_decoder(data)).chain(self.unread_pairs(data)).collect()
    }

    /// What is to be said where data give pairs that are no edges, and held-out edges are ranked among others.
    fn unread_pairs(&self, data: &GlobalCounts) -> Option<String> {
        let RankedAmong::Drawn(number) = self.links.as_ref()?.ranked_among else { return None };
        let given = data.negatives.iter().flatten().map(|given| given.pairs.saturating_mul(given.each.max(1)));
        let given = given.fold(0, u64::saturating_add);
        (given > 0).then(|| {
            format!(
                "the {given} pairs that these data give as no edges (val_neg_edge_index or val_neg_targets, and those \
                 of test) are not read: task.eval_negatives = {number} draws others to judge held-out edges by; \
                 task.split = \"given\" with task.eval_negatives = \"given\" reads them"
            )
        })
    }

    /// Whether weights of edges make a difference to the model.
    pub fn reads_weights(&self) -> bool {
        let reads = |layer: &dyn Layer| layer.facts().edge_weights != EdgeWeights::Unread;
        self.messaging_layer().is_some_and(reads) || self.propagates()
    }

    fn no_edges(&self, data: &GlobalCounts) -> String {
        let count = data.edges;
        let beside = match (data.weighted, data.relations > 1) {
            (true, true) => "their weights and their relations",
            (true, false) => "their weights",
            (false, true) => "their relations",
            (false, false) => "",
        };
        let and = |word: &str| if beside.is_empty() { String::new() } else { format!(", {word} {beside},") };
        let told: Vec<&str> = self.inputs.told.iter().map(|kind| kind.name).collect();
        let what = match self.links {
            Some(_) => format!("the {count} edges{} pass no messages, and are pairs to learn from alone", and("with")),
            None if told.is_empty() => format!("the {count} edges of these data{} count for nothing", and("with")),
            None => {
                let told = told.join(", ");
                format!("the {count} edges of these data{} are read for model.inputs alone ({told})", and("without"))
            }
        };
        let readers = self.layers_that(|layer| layer.facts().message_width > 0);
        format!("model.arch = {:?} reads no edges: {what}; {} read them", self.layer.name, listed(&readers))
    }

    /// What the layers leave out that read neighbours.
    fn unread_by(&self, layer: &dyn Layer, data: &GlobalCounts) -> Vec<String> {
        let (name, mut notes) = (self.called(), Vec::new());
        if data.weighted && layer.facts().edge_weights == EdgeWeights::Unread {
            let readers = self.layers_that(|layer| layer.facts().edge_weights != EdgeWeights::Unread);
            notes.push(format!(
                "{name} reads no weights of edges, and these data have some: all edges count the same; {} read them",
                listed(&readers)
            ));
        }
        if data.weighted && self.layer.is_relational && layer.facts().edge_weights == EdgeWeights::Shares {
            notes.push(format!("{name} takes means over the neighbours of a relation by the weights of edges"));
        }
        if data.relations > 1 && !self.layer.is_relational {
            let relational = self.members.layers.iter().filter(|kind| kind.is_relational);
            let readers: Vec<String> = relational.map(|kind| kind.name.to_owned()).collect();
            let count = data.relations;
            notes.push(format!(
                "{name} reads no relations, and the edges of these data are of {count}: all pass messages alike; \
                 {} tells them apart",
                listed(&readers)
            ));
        }
        notes
    }

    fn unread_by_decoder(&self, data: &GlobalCounts) -> Option<String> {
        let kind = self.members.decoder(&self.config).ok().filter(|_| self.task.of_pairs)?;
        if kind.is_relational || data.relations < 2 {
            return None;
        }
        let relational = self.members.decoders.iter().filter(|kind| kind.is_relational);
        let readers: Vec<String> = relational.map(|kind| kind.name.to_owned()).collect();
        let (name, count) = (kind.name, data.relations);
        Some(format!(
            "task.decoder = {name:?} reads no relations, and the edges of these data are of {count}: pairs score the \
             same in all of them; {} tells them apart",
            listed(&readers)
        ))
    }

    /// What the layer is called, with the options of its kind where it reads other data than the kind usually does.
    fn called(&self) -> String {
        let Config { model, schedule, .. } = &*self.config;
        if self.propagates() {
            return format!("schedule.kind = {:?}", schedule.kind);
        }
        let usual = self.layer.layer(&LayerSpec::new(1, 1)).facts().edge_weights;
        let of_options = self.messaging_layer().is_some_and(|layer| layer.facts().edge_weights != usual);
        let keys: Vec<String> = self.layer.options.iter().map(|option| format!("model.{option}")).collect();
        let with = if of_options { format!(" with this {}", listed(&keys)) } else { String::new() };
        format!("model.arch = {:?}{with}", model.arch)
    }

    /// The layers that are so with every option at its default.
    fn layers_that(&self, is: impl Fn(&dyn Layer) -> bool) -> Vec<String> {
        let kinds = self.members.layers.iter();
        let kinds = kinds.filter(|kind| is(kind.layer(&LayerSpec::new(1, 1)).as_ref()));
        kinds.map(|kind| kind.name.to_owned()).collect()
    }

    /// Refuses weights of edges that the layers divide by the sum of, and cannot. Returns what else is odd about the
    /// weights, where these are all parts.
    ///
    /// # Errors
    /// If weights are negative, or their sum at a node is too large or too small for a number of 32 bits.
    pub fn check_weights(&self, parts: &[Part]) -> Result<Option<String>> {
        let divides = |layer: &dyn Layer| layer.facts().edge_weights == EdgeWeights::Shares;
        let divides = self.messaging_layer().is_some_and(divides) || self.propagates();
        let Some(first) = parts.first().filter(|_| divides) else { return Ok(None) };
        let (name, data, mut sums) = (self.called(), &first.global.dataset, Sums::default());
        let loops = if self.self_loops { 1.0 } else { 0.0 };
        parts.iter().for_each(|part| sums.add(&part.edges, loops));
        let Sums { edges, negative, nodes, lost, weightless, beyond } = sums;
        let divides = format!("{name} divides by the sum of the weights of a node's edges");
        if negative > 0 {
            let adds = listed(&self.layers_that(|layer| layer.facts().edge_weights == EdgeWeights::Factors));
            let reads_none = |layer: &dyn Layer| {
                layer.facts().message_width > 0 && layer.facts().edge_weights == EdgeWeights::Unread
            };
            let ignores = listed(&self.layers_that(reads_none));
            return Err(TrainError::config(format!(
                "{divides}, and {negative} of the {edges} edges of {data} have negative weights: at {lost} of {nodes} \
                 nodes the sum is 0 or less, so that these would lose all of their neighbours; leave negative edges \
                 out or make their weights positive, or take a model.arch that takes weights as they are ({adds}) or \
                 reads none ({ignores})"
            )));
        }
        if beyond > 0 {
            return Err(TrainError::config(format!(
                "{divides}, and at {beyond} of {nodes} nodes of {data} that, or 1 divided by it, is no number of 32 \
                 bits; multiply or divide all weights by the same, so that they are around 1"
            )));
        }
        let is_all = parts.len() == first.parts as usize;
        Ok((weightless > 0 && is_all).then(|| {
            format!(
                "{weightless} of {nodes} nodes have edges that all weigh 0: {name} tells them nothing of neighbours"
            )
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_weights_are_told_apart_by_what_division_makes_of_them() {
        let edges = |each: &[&[f32]]| {
            let offsets = each.iter().scan(0, |end, into| {
                *end += into.len() as u64;
                Some(*end)
            });
            let mut edges = Edges::new(std::iter::once(0).chain(offsets).collect(), Vec::new());
            edges.data.weights = Some(each.concat());
            edges.sources = vec![0; each.concat().len()];
            edges
        };
        let counted = |each: &[&[f32]], loops: f32| {
            let mut sums = Sums::default();
            sums.add(&edges(each), loops);
            let Sums { negative, lost, weightless, beyond, .. } = sums;
            [negative, lost, weightless, beyond]
        };
        assert_eq!(counted(&[&[1.0, 2.0], &[], &[0.5]], 0.0), [0, 0, 0, 0]);
        // A sum of exactly 0, one below, one above; with a loop of 1 the first and the last have something.
        let signed: [&[f32]; 3] = [&[1.0, -1.0], &[0.5, -2.0], &[3.0, -1.0]];
        assert_eq!(counted(&signed, 0.0), [3, 2, 0, 0]);
        assert_eq!(counted(&signed, 1.0), [3, 1, 0, 0]);
        assert_eq!(counted(&[&[0.0, 0.0], &[0.0, 1.0]], 0.0), [0, 0, 1, 0]);
        assert_eq!(counted(&[&[3e38, 3e38], &[1e-39], &[1e-37]], 0.0), [0, 0, 0, 2]);
        assert_eq!(counted(&[&[1e-39]], 1.0), [0, 0, 0, 0]);
    }
}
