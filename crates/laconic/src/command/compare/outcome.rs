//! What a comparison found: every run, and per method what its runs say together.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use laconic_graph::part::Part;
use laconic_train::TrainError;
use laconic_train::record::account::Account;
use laconic_train::record::aside::write_aside;
use laconic_train::record::constant::{best_constant, least_constant_loss, of_equal_scores};
use laconic_train::record::purposes::Purposes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::front::front;
use super::matrix::{Matrix, Method};
use super::paired::Against;
use super::seeds::Seeds;
use crate::learned::Learned;
use crate::recorded::{Recorded, read_text};
use crate::typed::command_line;

/// The file with a comparison in its folder.
pub const FILE: &str = "compare.json";

/// `compare.json`: what a comparison found.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The program's version.
    pub version: String,
    /// (asked for on a command line) What was typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The graph that all runs share.
    pub graph: Graph,
    /// What its runs learn: `node_classification` or `link_prediction`.
    #[serde(default)]
    #[schemars(with = "String")]
    pub task: Learned,
    /// The metric of every `test`; null before the first run, and where nothing is tested.
    pub metric: Option<String>,
    /// The link model on whose clock `seconds` were taken; null for real time.
    pub link: Option<String>,
    /// The best test figure of an answer that is the same for every node, or pair; null where there is none.
    #[serde(default)]
    pub constant: Option<f64>,
    /// The least test loss of such an answer; null where all nodes are alike.
    #[serde(default)]
    pub constant_loss: Option<f64>,
    /// What fronts, `against` and `is_constant` go by: the metric, or `loss` where that is not defined in a run; null
    /// before the first run, and where nothing is tested.
    #[serde(default)]
    pub judged_by: Option<String>,
    /// The method that the others are measured against.
    #[serde(default)]
    pub baseline: String,
    /// The methods, in the order of the file; a method without runs has none yet.
    pub methods: Vec<Line>,
}

/// What tells one partitioned graph from another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Graph {
    /// The name of the dataset.
    pub dataset: String,
    /// Its digest, as `data info` says it, where it is known.
    pub digest: String,
    /// How many nodes there are.
    pub nodes: u64,
    /// How many directed edges there are.
    pub edges: u64,
    /// Own nodes of each part.
    pub parts: Vec<usize>,
    /// A digest of which node went to which part; empty where nobody saw all of them.
    #[serde(default)]
    pub cut: String,
}

/// One method with its runs and what they say together.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// The name that the file of methods gives it.
    pub name: String,
    /// What it changes.
    pub set: Vec<String>,
    /// Its runs, in the order in which they ended.
    pub runs: Vec<Run>,
    /// The test metric over the runs; null where it is not defined in one.
    pub test: Option<Spread>,
    /// The test loss over the runs; null where it is not defined in one.
    #[serde(default)]
    pub loss: Option<Spread>,
    /// Bytes of all workers: the mean over the runs, as all that follow; null before its first run.
    pub bytes: Option<f64>,
    /// Bytes of rows of neighbours and their gradients.
    #[serde(default)]
    pub boundary: Option<f64>,
    /// Bytes of gradients of parameters, or of models.
    #[serde(default)]
    pub parameters: Option<f64>,
    /// Bytes of all that evaluations send.
    #[serde(default)]
    pub evaluation: Option<f64>,
    /// Bytes of what is agreed on before the first round and reported after the last.
    #[serde(default)]
    pub start_up: Option<f64>,
    /// Bytes of all but evaluations.
    #[serde(default)]
    pub training: Option<f64>,
    /// How many times fewer bytes of training than the baseline's.
    pub fewer: Option<f64>,
    /// Messages that `messages.skip` left out.
    #[serde(default)]
    pub skipped: Option<f64>,
    /// Seconds from start to end, on the clock that the comparison says.
    pub seconds: Option<f64>,
    /// (independent trainers, simulated) Seconds on their clock at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
    /// (independent trainers) Seconds until a mean was worth 99 % of the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence_seconds: Option<f64>,
    /// The largest resident size of the process in bytes.
    #[serde(default)]
    pub memory: Option<f64>,
    /// What it is judged by against the baseline's over the seeds that both have; null of the baseline, and where
    /// there are none.
    #[serde(default)]
    pub against: Option<Against>,
    /// Whether it is no better than `constant`, or `constant_loss`: then it is on no front.
    #[serde(default)]
    pub is_constant: bool,
    /// How the graph was cut for it, such as `4 parts by multilevel`; null before its first run.
    #[serde(default)]
    pub partition: Option<String>,
    /// The share of edges whose ends are of two parts; null where nobody saw all parts.
    #[serde(default)]
    pub edge_cut: Option<f64>,
    /// Which process had to hold the whole graph, `aggregator` or (one part) `worker`; null where none had to.
    #[serde(default)]
    pub whole_graph_at: Option<String>,
    /// Who had to hold the whole graph, who saw what of others' nodes, and how often somebody waited, as foreseen for
    /// its last run; null before its first run, and of runs of older programs.
    #[serde(default)]
    pub account: Option<Account>,
    /// Rounds over all stages; of independent trainers, means.
    #[serde(default)]
    pub rounds: Option<f64>,
    /// (something to note) What its last run had to say of its configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether no other method is at least as good in bytes of training and in what they are judged by, and better in
    /// one.
    pub front: bool,
    /// The same of seconds.
    pub front_by_seconds: bool,
}

/// A mean and how far numbers lie from it.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// The arithmetic mean of the numbers.
    pub mean: f64,
    /// The sample standard deviation; null of a single number.
    pub sd: Option<f64>,
}

/// One run of a method with one choice of seeds.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// `train.seed`: initial values and dropout.
    pub seed: u64,
    /// (where the runs file says so) `partition.seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition_seed: Option<u64>,
    /// (where the runs file says so) `data.split.seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_seed: Option<u64>,
    /// Its folder within that of the comparison.
    pub folder: String,
    /// The test metric of the best validation round; null where it is not defined.
    pub test: Option<f64>,
    /// The test loss of that round; null where it is not defined.
    #[serde(default)]
    pub loss: Option<f64>,
    /// Bytes over all workers, as one start sends them; all that follow count likewise.
    pub bytes: u64,
    /// The same by what they are for.
    #[serde(flatten)]
    pub purposes: Purposes,
    /// Bytes of all but evaluations.
    #[serde(default)]
    pub training: u64,
    /// Messages that `messages.skip` left out.
    #[serde(default)]
    pub skipped: u64,
    /// Bytes that were predicted; null where nobody could know it.
    pub predicted: Option<u64>,
    /// How often it was started: once, and once more each time that it was stopped and went on.
    #[serde(default = "once")]
    pub starts: u32,
    /// Rounds done, over all stages.
    pub rounds: u32,
    /// The share of edges whose ends are of two parts; null where nobody saw all parts.
    #[serde(default)]
    pub edge_cut: Option<f64>,
    /// Seconds from start to end, on the clock that the comparison says.
    pub seconds: f64,
    /// (independent trainers, simulated) Seconds on their clock at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated_seconds: Option<f64>,
    /// (independent trainers) Seconds until a mean was worth 99 % of the best.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence_seconds: Option<f64>,
    /// The largest resident size of the process in bytes.
    #[serde(default)]
    pub memory: u64,
}

fn once() -> u32 {
    1
}

impl Run {
    /// What it drew from.
    pub fn seeds(&self) -> Seeds {
        Seeds { train: self.seed, partition: self.partition_seed, split: self.split_seed }
    }
}

impl Graph {
    /// The graph of these parts.
    pub fn of(parts: &[Part]) -> Graph {
        let global = &parts[0].global;
        Graph {
            dataset: global.dataset.clone(),
            digest: global.data_digest.clone(),
            nodes: global.nodes,
            edges: global.edges,
            parts: parts.iter().map(Part::rows).collect(),
            cut: global.partition_digest.clone(),
        }
    }

    /// Whether runs on one may stand beside runs on the other: where a cut is not known its sizes have to do.
    pub fn is(&self, other: &Graph) -> bool {
        let is_unknown = self.cut.is_empty() || other.cut.is_empty();
        Graph { cut: other.cut.clone(), ..self.clone() } == *other && (is_unknown || self.cut == other.cut)
    }
}

impl Comparison {
    /// A comparison without runs.
    pub fn new(matrix: &Matrix, graph: Graph) -> Comparison {
        let line = |method: &Method| Line::new(method.name.clone(), method.set.clone());
        Comparison {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: command_line(),
            graph,
            task: Learned::default(),
            metric: None,
            link: matrix.link.clone(),
            constant: None,
            constant_loss: None,
            judged_by: None,
            baseline: matrix.methods[matrix.baseline].name.clone(),
            methods: matrix.methods.iter().map(line).collect(),
        }
    }

    /// A comparison of runs that no matrix asked for, without methods yet; `link` is on whose clock they ran.
    pub fn of_runs(dataset: String, link: Option<String>) -> Comparison {
        Comparison {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command: String::new(),
            graph: Graph { dataset, digest: String::new(), nodes: 0, edges: 0, parts: Vec::new(), cut: String::new() },
            task: Learned::default(),
            metric: None,
            link,
            constant: None,
            constant_loss: None,
            judged_by: None,
            baseline: String::new(),
            methods: Vec::new(),
        }
    }

    /// The number of the method with number `style`, which is entered under this name if it is not there.
    pub fn method(&mut self, name: &str, style: usize) -> usize {
        while self.methods.len() <= style {
            let own = if self.methods.len() == style { name } else { "" };
            self.methods.push(Line::new(own.to_owned(), Vec::new()));
        }
        style
    }

    /// Reads the comparison in a folder; `None` where there is none.
    pub fn read(folder: &Path) -> Result<Option<Comparison>, TrainError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let expected = |error: serde_json::Error| TrainError::file(&path, format!("expected a comparison: {error}"));
        serde_json::from_str(&read_text(&path)?).map(Some).map_err(expected)
    }

    /// Writes `compare.json` into a folder.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(write_aside(&folder.join(FILE), text.as_bytes())?)
    }

    /// Whether its methods do not share one cut of the graph.
    pub fn has_cuts(&self) -> bool {
        let mut cuts = self.methods.iter().filter(|line| !line.runs.is_empty()).map(|line| &line.partition);
        cuts.next().is_some_and(|first| cuts.any(|cut| cut != first))
    }

    /// Enters a run of method number `index` with its seeds and the share of edges between parts.
    pub fn enter(
        &mut self,
        index: usize,
        (seeds, edge_cut): (Seeds, Option<f64>),
        folder: String,
        recorded: &Recorded,
    ) {
        let summary = &recorded.summary;
        // What one start costs: a run that was stopped has sent some of it twice.
        let (purposes, bytes) = summary.bytes.cost();
        self.task = recorded.task;
        self.metric = self.metric.take().or_else(|| recorded.metric.clone());
        self.methods[index].notes.clone_from(&summary.notes);
        self.methods[index].partition = Some(recorded.partition());
        self.methods[index].account.clone_from(&summary.account);
        self.methods[index].whole_graph_at = recorded.whole_graph_at().map(str::to_owned);
        self.methods[index].runs.push(Run {
            seed: seeds.train,
            partition_seed: seeds.partition,
            split_seed: seeds.split,
            folder,
            test: recorded.test(),
            loss: recorded.test_loss(),
            bytes,
            purposes,
            training: purposes.training(),
            skipped: summary.bytes.skipped,
            predicted: summary.bytes.predicted_cost(),
            starts: summary.bytes.starts.len().max(1) as u32,
            rounds: summary.rounds,
            edge_cut,
            seconds: recorded.seconds(self.link.is_some()),
            simulated_seconds: summary.averaging.as_ref().and(summary.seconds.simulated),
            convergence_seconds: summary.averaging.as_ref().and_then(|averaging| averaging.convergence_seconds),
            memory: summary.memory.peak_bytes,
        });
    }

    /// Notes what a fixed answer reaches on these parts, or pairs of this run; of several splits the best counts.
    pub fn look_at(&mut self, parts: &[Part], recorded: &Recorded) {
        let metric = self.metric.as_deref();
        let (constant, loss) = if self.task.of_pairs {
            (metric.and_then(|metric| of_equal_scores(metric, recorded.drawn_negatives())), None)
        } else {
            (metric.and_then(|metric| best_constant(metric, parts)), least_constant_loss(parts))
        };
        self.constant = self.constant.into_iter().chain(constant).reduce(f64::max);
        self.constant_loss = self.constant_loss.into_iter().chain(loss).reduce(f64::min);
    }

    /// Sets what follows from the runs.
    pub fn conclude(&mut self) {
        self.choose_figure();
        for line in &mut self.methods {
            let tests: Option<Vec<f64>> = line.runs.iter().map(|run| run.test).collect();
            line.test = tests.as_deref().and_then(Spread::of);
            let losses: Option<Vec<f64>> = line.runs.iter().map(|run| run.loss).collect();
            line.loss = losses.as_deref().and_then(Spread::of);
            let of = |figure: fn(&Run) -> u64| mean(line.runs.iter().map(|run| figure(run) as f64));
            line.bytes = of(|run| run.bytes);
            line.boundary = of(|run| run.purposes.boundary);
            line.parameters = of(|run| run.purposes.parameters);
            line.evaluation = of(|run| run.purposes.evaluation);
            line.start_up = of(|run| run.purposes.start_up);
            line.training = of(|run| run.training);
            line.skipped = of(|run| run.skipped);
            line.memory = of(|run| run.memory);
            line.seconds = mean(line.runs.iter().map(|run| run.seconds));
            let known = |of: fn(&Run) -> Option<f64>| {
                let seconds: Option<Vec<f64>> = line.runs.iter().map(of).collect();
                seconds.and_then(|seconds| mean(seconds.into_iter()))
            };
            line.edge_cut = known(|run| run.edge_cut);
            line.rounds = mean(line.runs.iter().map(|run| run.rounds.into()));
            let of_trainers = [known(|run| run.simulated_seconds), known(|run| run.convergence_seconds)];
            [line.simulated_seconds, line.convergence_seconds] = of_trainers;
        }
        self.measure();
        for (index, on_front) in self.front_of(|line| line.training) {
            self.methods[index].front = on_front;
        }
        for (index, on_front) in self.front_of(|line| line.seconds) {
            self.methods[index].front_by_seconds = on_front;
        }
    }

    /// Measures every method against the baseline, and against no method at all.
    fn measure(&mut self) {
        let constant: Vec<bool> = self.methods.iter().map(|line| self.is_constant(line)).collect();
        let named = self.methods.iter().position(|line| line.name == self.baseline);
        let baseline = named.unwrap_or(0);
        let bytes = self.methods[baseline].training;
        let figures = |line: &Line| -> BTreeMap<Seeds, f64> {
            line.runs.iter().filter_map(|run| Some((run.seeds(), self.figure(run)?))).collect()
        };
        let of_baseline = figures(&self.methods[baseline]);
        let difference = |(seeds, figure): (Seeds, f64)| Some(figure - of_baseline.get(&seeds)?);
        let differences = |line: &Line| figures(line).into_iter().filter_map(difference).collect::<Vec<f64>>();
        let differences: Vec<Vec<f64>> = self.methods.iter().map(differences).collect();
        for (index, line) in self.methods.iter_mut().enumerate() {
            let both = bytes.zip(line.training).filter(|(_, bytes)| *bytes > 0.0);
            line.fewer = both.map(|(baseline, bytes)| baseline / bytes);
            line.against = Against::of(&differences[index]).filter(|_| index != baseline);
            line.is_constant = constant[index];
            (line.front, line.front_by_seconds) = (false, false);
        }
    }

    /// For each method that is worth more than a fixed answer whether it is on the front of this cost.
    fn front_of(&self, cost: impl Fn(&Line) -> Option<f64>) -> Vec<(usize, bool)> {
        let known = |(index, line): (usize, &Line)| Some((index, (cost(line)?, self.worth(line)?)));
        let known: Vec<(usize, (f64, f64))> =
            self.methods.iter().enumerate().filter(|(_, line)| !line.is_constant).filter_map(known).collect();
        let points: Vec<(f64, f64)> = known.iter().map(|(_, point)| *point).collect();
        known.iter().map(|(index, _)| *index).zip(front(&points)).collect()
    }
}

impl Line {
    /// How the graph was cut for it, with the share of edges between parts in per cent where that is known.
    pub fn cut(&self) -> String {
        let partition = self.partition.as_deref().unwrap_or("no runs yet");
        match self.edge_cut {
            Some(share) => format!("{partition}, {:.1} %", 100.0 * share),
            None => partition.to_owned(),
        }
    }

    /// A method without runs.
    fn new(name: String, set: Vec<String>) -> Line {
        Line {
            name,
            set,
            runs: Vec::new(),
            test: None,
            loss: None,
            bytes: None,
            boundary: None,
            parameters: None,
            evaluation: None,
            start_up: None,
            training: None,
            fewer: None,
            skipped: None,
            seconds: None,
            simulated_seconds: None,
            convergence_seconds: None,
            memory: None,
            against: None,
            is_constant: false,
            partition: None,
            edge_cut: None,
            whole_graph_at: None,
            account: None,
            rounds: None,
            notes: Vec::new(),
            front: false,
            front_by_seconds: false,
        }
    }
}

impl Spread {
    /// Mean and sample standard deviation; `None` of no numbers.
    pub fn of(numbers: &[f64]) -> Option<Spread> {
        let mean = mean(numbers.iter().copied())?;
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        let sd = (numbers.len() > 1).then(|| (squares / (numbers.len() - 1) as f64).sqrt());
        Some(Spread { mean, sd })
    }
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let count = numbers.len();
    (count > 0).then(|| numbers.sum::<f64>() / count as f64)
}
