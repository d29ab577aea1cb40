//! The graphs and the short runs that the laws are stated over.
//!
//! Every graph is directed, has nodes without in-edges and nodes without a label, and every random partition into three
//! parts or more has a part without training and validation nodes: what published code tends to forget.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_graph::edges::{EdgeData, Relations};
use laconic_graph::part::{Part, cut};
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_key::{Key, Purpose};
use laconic_train::config::Config;
use laconic_train::error::Result;
use laconic_train::fit::observe::RoundReport;
use laconic_train::plan::Members;
use laconic_train::record::observer::Observer;
use laconic_train::run::source::{Source, assign};
use laconic_train::run::{Options, Outcome, run_threads};
use laconic_train::worker::evaluate::Scores;

/// Feature columns of every graph here.
pub const FEATURES: usize = 12;

/// Random numbers of one purpose within the tests.
pub fn draw(purpose: u64) -> Key {
    Key::new(20, Purpose::GraphEdges).with(purpose)
}

/// Whether a node of these graphs is left without in-edges.
pub fn is_source_only(node: usize) -> bool {
    node % 11 == 3
}

/// A directed graph with classes: edges of a symmetric one, a third of them taken away in one direction only and some
/// added.
pub fn graph(nodes: usize, classes: usize) -> Dataset {
    directed(nodes, classes, false)
}

/// The same with a weight on every edge.
pub fn weighted(nodes: usize, classes: usize) -> Dataset {
    directed(nodes, classes, true)
}

/// The same nodes, of which one of so many alone is in any split.
pub fn few_in_splits(mut dataset: Dataset, every: usize) -> Dataset {
    let roles = dataset.splits[0].roles.iter_mut().enumerate();
    roles.filter(|(node, _)| node % every > 0).for_each(|(_, role)| *role = 0);
    dataset
}

/// The same with edges of three relations.
pub fn related(nodes: usize, classes: usize) -> Dataset {
    let mut dataset = graph(nodes, classes);
    let of = (0..dataset.graph.edges() as u64).map(|edge| draw(6).with(edge).below(3) as u16).collect();
    dataset.graph.data.relations = Some(Relations { count: 3, of });
    dataset
}

/// The same with edges of other relations beside some of them, so that there are several between two nodes.
pub fn parallel(nodes: usize, classes: usize) -> Dataset {
    let mut dataset = related(nodes, classes);
    let (mut sources, mut targets, mut of) = (Vec::new(), Vec::new(), Vec::new());
    for target in 0..nodes {
        for edge in dataset.graph.in_edges(target) {
            let first = dataset.graph.data.relation(edge);
            let more = draw(7).with(edge as u64).below(3) as u16;
            for relation in std::iter::once(first).chain((more != first).then_some(more)) {
                sources.push(dataset.graph.sources[edge]);
                targets.push(target as u32);
                of.push(relation);
            }
        }
    }
    let relations = Some(Relations { count: 3, of });
    let data = EdgeData { relations, ..EdgeData::default() };
    (dataset.graph, _) = build_graph(nodes, sources, targets, data, BuildOptions::default()).expect("sound edges");
    dataset
}

/// The same with any number of classes a node; a tenth of the labels are not known, and nothing at all of some nodes.
pub fn multi_label(nodes: usize, classes: usize) -> Dataset {
    let mut dataset = graph(nodes, classes);
    let Labels::Single { values, .. } = &dataset.labels else { unreachable!("generated graphs have classes") };
    let has = |node: usize, class: usize| {
        values[node] == class as i32 || draw(2).with(node as u64).with(class as u64).unit() < 0.2
    };
    let is_unknown =
        |node: usize, class: usize| node % 13 == 6 || draw(4).with(node as u64).with(class as u64).unit() < 0.1;
    let label = |node, class| if is_unknown(node, class) { Labels::UNKNOWN } else { u8::from(has(node, class)) };
    let sets = (0..nodes * classes).map(|i| label(i / classes, i % classes)).collect();
    dataset.labels = Labels::Multi { classes, values: sets };
    dataset
}

fn directed(nodes: usize, classes: usize, weighted: bool) -> Dataset {
    let (train, val, features) = (0.3, 0.2, FEATURES);
    let (degree_exponent, mean_degree) = (f64::INFINITY, 6.0);
    let spec =
        SbmSpec { nodes, mean_degree, classes, degree_exponent, features, train, val, seed: 5, ..SbmSpec::default() };
    let mut dataset = sbm(&spec).expect("a sound specification");
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for target in 0..nodes {
        for &source in dataset.graph.in_neighbours(target) {
            if draw(0).with(target as u64).with(source.into()).unit() < 0.67 {
                sources.push(source);
                targets.push(target as u32);
            }
        }
        let added = draw(1).with(target as u64);
        if added.unit() < 0.2 {
            sources.push(added.with(1).below(nodes as u64) as u32);
            targets.push(target as u32);
        }
    }
    let kept = |(_, target): &(u32, u32)| !is_source_only(*target as usize);
    let (sources, targets): (Vec<u32>, Vec<u32>) = sources.into_iter().zip(targets).filter(kept).unzip();
    let weight = |edge: usize| 0.25 + draw(3).with(edge as u64).unit() as f32;
    let weights = weighted.then(|| (0..sources.len()).map(weight).collect());
    (dataset.graph, _) = build_graph(nodes, sources, targets, weights, BuildOptions::default()).expect("sound edges");
    let Labels::Single { values, .. } = &mut dataset.labels else { unreachable!("generated graphs have classes") };
    values.iter_mut().skip(5).step_by(13).for_each(|class| *class = -1);
    dataset
}

/// A short run of a small model with these keys changed.
pub fn config(keys: &[&str]) -> Config {
    const SMALL: &str = "
        [model]
        hidden = 16
        dropout = 0.5
        [train]
        epochs = 4
        threads = 1
        [transport]
        deadline_s = 60.0
    ";
    let mut set: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    if keys.contains(&"model.arch=gat") {
        set.insert(0, "model.heads=4".to_owned());
    }
    Config::parse(SMALL, &set).expect("a sound configuration")
}

/// Cuts the graph as the configuration says, and sees to it that a random partition has a part with nothing to learn
/// from.
pub fn parts(config: &Config, dataset: &Dataset, count: u32) -> Vec<Part> {
    let mut assignment = assign(&Members::default(), config, dataset, Some(0), count).expect("a partition");
    if config.partition.method == "random" && count > 2 {
        for (part, role) in assignment.iter_mut().zip(&dataset.splits[0].roles) {
            if *part == count - 1 && role & (Split::TRAIN | Split::VAL) != 0 {
                *part = 0;
            }
        }
    }
    cut(dataset, Some(0), &assignment, count).expect("parts")
}

/// Runs what must succeed; the outcomes are in rank order.
pub fn run(config: &Config, dataset: &Dataset, count: u32) -> Vec<Outcome> {
    try_run(config, dataset, count, Options::default())
        .unwrap_or_else(|error| panic!("{error}\n{}", config.to_toml().unwrap_or_default()))
}

/// Runs with options.
pub fn try_run(config: &Config, dataset: &Dataset, count: u32, options: Options) -> Result<Vec<Outcome>> {
    run_threads(config, Source::of(parts(config, dataset, count)), options)
}

/// A folder for a while; in memory where the system has such a place, since checkpoints wait until the disk has them.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    folder.or_else(|_| tempfile::tempdir()).expect("a folder")
}

/// Keys of plain gradient steps without chance: after one round of rate 1 the parameters have moved by their gradient.
pub const PLAIN: [&str; 6] = [
    "train.optimiser=sgd",
    "train.momentum=0.0",
    "train.weight_decay=0.0",
    "model.dropout=0.0",
    "train.lr=1.0",
    "train.eval_every=0",
];

/// Keys of a run that stays where it is for this many rounds and then takes steps of rate 1.
pub fn waiting(rounds: u32) -> [String; 4] {
    // A step of 1e-30 changes no parameter of ordinary size in single precision.
    let keys = ["train.lr=1e-30", "train.lr_schedule=step", "train.lr_factor=1e30"].map(str::to_owned);
    let [lr, schedule, factor] = keys;
    [lr, schedule, factor, format!("train.lr_step={rounds}")]
}

/// The first gradient of a run with these keys, over all workers.
pub fn first_gradient(keys: &[&str], dataset: &Dataset, count: u32) -> Vec<f64> {
    let after = |epochs: &str| {
        let keys = [&PLAIN, keys, &[epochs]].concat();
        run(&config(&keys), dataset, count).swap_remove(0).trained.last
    };
    let (before, after) = (after("train.epochs=0"), after("train.epochs=1"));
    before.iter().zip(&after).map(|(before, after)| f64::from(*before) - f64::from(*after)).collect()
}

/// Notes the figures of every evaluation.
struct Figures(Arc<Mutex<Vec<Scores>>>);

impl Observer for Figures {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        self.0.lock().expect("nobody panics with it").extend(report.scores.clone());
        ControlFlow::Continue(())
    }
}

/// The figures of every evaluation.
pub fn figures(keys: &[&str], dataset: &Dataset, count: u32) -> Vec<Scores> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let options = Options { observer: Box::new(Figures(found.clone())), ..Options::default() };
    try_run(&config(keys), dataset, count, options).expect("a run");
    found.lock().expect("nobody panics with it").clone()
}

/// Notes the loss of every round.
struct Losses(Arc<Mutex<Vec<f64>>>);

impl Observer for Losses {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        self.0.lock().expect("nobody panics with it").push(report.loss);
        ControlFlow::Continue(())
    }
}

/// The training loss of every round, before its step.
pub fn losses(keys: &[&str], dataset: &Dataset, count: u32) -> Vec<f64> {
    let config = config(keys);
    losses_on(&config, Source::of(parts(&config, dataset, count)))
}

/// The same on parts from elsewhere.
pub fn losses_on(config: &Config, source: Source) -> Vec<f64> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let options = Options { observer: Box::new(Losses(found.clone())), ..Options::default() };
    run_threads(config, source, options).expect("a run");
    found.lock().expect("nobody panics with it").clone()
}

/// Writes into this folder, and keeps every account in memory as well.
pub fn into_folder(out: &Path) -> Options {
    Options { out: Some(out.to_owned()), keep_accounts: true, ..Options::default() }
}
