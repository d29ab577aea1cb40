//! `laconic demo`: the main job with nothing to prepare.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use laconic_graph::dataset::Dataset;
use laconic_graph::part::{Part, cut};
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_train::record::aside::write_aside;
use laconic_train::record::purposes::Purposes;
use laconic_train::run::source::assign;
use laconic_train::{Config, Members, Options, Summary, TrainError, train};
use schemars::JsonSchema;
use serde::Serialize;

use super::report;
use super::signals::{STOPPED, Signals};
use crate::bytes::human_bytes;
use crate::output::Output;
use crate::plot::{Point, Points, Unit, WIDE};
use crate::progress::Progress;

/// Arguments of `demo`.
#[derive(Args)]
#[command(after_help = "Example: laconic demo")]
pub struct Demo {
    /// Nodes of the generated graph
    #[arg(long, default_value_t = 20_000)]
    nodes: usize,
    /// Parts, one worker each
    #[arg(long, default_value_t = 4)]
    parts: u32,
    /// Rounds, per stage when lazy
    #[arg(long, default_value_t = 60)]
    epochs: u32,
    /// Seed of graph, partition and training
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The page with the runs' curves and bytes
    #[arg(long, value_name = "FILE.html", default_value = "laconic-demo.html")]
    report: PathBuf,
    /// Also write accuracy against bytes as a figure
    #[arg(long, value_name = "FILE.svg")]
    figure: Option<PathBuf>,
}

/// One line of the table: a way to train.
#[derive(Serialize, JsonSchema)]
pub struct Line {
    /// What it is called.
    method: &'static str,
    /// The share of test nodes whose class is right.
    test_accuracy: f64,
    /// Bytes of all workers.
    bytes: u64,
    /// What was predicted of them; null where nobody could know it.
    predicted: Option<u64>,
    /// The bytes by what they are for.
    #[serde(flatten)]
    purposes: Purposes,
    /// Bytes of all but evaluations.
    training: u64,
    /// How many times fewer bytes of training than the first line.
    fewer: f64,
    /// Rounds over all stages.
    rounds: u32,
    /// Seconds that it took.
    seconds: f64,
    /// What crosses between workers.
    crosses: &'static str,
}

/// The ways to train that are compared: name, what crosses, keys. All evaluate alike, and the last ends near the first.
const METHODS: [(&str, &str, &[&str]); 7] = [
    ("standard", "every layer, both ways", &["schedule.kind=synchronous"]),
    (
        "adaptive bits",
        "the same in 2 to 8 bits",
        &[
            "schedule.kind=synchronous",
            "messages.forward={codec=\"quantised\",bits=\"adaptive\"}",
            "messages.backward={codec=\"quantised\",bits=\"adaptive\"}",
        ],
    ),
    ("sampled", "a tenth of its rows", &["schedule.kind=synchronous", "messages.selection=boundary_sample"]),
    ("lazy", "every layer once", &["schedule.kind=lazy"]),
    ("lazy, scores", "class scores once", &["schedule.kind=lazy", "schedule.start=mlp"]),
    (
        "lazy, scores, 4 bits",
        "class scores once *",
        &[
            "schedule.kind=lazy",
            "schedule.start=mlp",
            "messages.forward={codec=\"quantised\",bits=4}",
            "messages.evaluation_inputs=training",
            "messages.parameters={codec=\"quantised\",bits=8}",
            "train.sync_every=10",
        ],
    ),
    (
        "lazy, 4 bits",
        "every layer once *",
        &[
            "schedule.kind=lazy",
            "messages.forward={codec=\"quantised\",bits=4}",
            "messages.evaluation_inputs=training",
            "messages.parameters={codec=\"quantised\",bits=8}",
            "train.sync_every=10",
        ],
    ),
];

/// Generates, cuts, trains, compares.
pub fn run(arguments: Demo, output: &Output) -> Result<u8> {
    let signals = Signals::install(false)?;
    let dataset = sbm(&SbmSpec {
        nodes: arguments.nodes,
        mean_degree: 10.0,
        classes: 10,
        homophily: 0.5,
        features: 128,
        feature_signal: 3.0,
        train: 0.1,
        val: 0.1,
        seed: arguments.seed,
        ..SbmSpec::default()
    })?;
    let edges = dataset.graph.edges();
    // Before minutes of work whose figures would then have no page.
    for file in std::iter::once(&arguments.report).chain(&arguments.figure) {
        let page = std::path::absolute(file).map_err(|source| TrainError::io(file, source))?;
        if !page.parent().is_some_and(Path::is_dir) {
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(TrainError::io(file, missing).into());
        }
    }
    output.say(format!(
        "a generated graph of {} nodes and {edges} edges, 128 features, 10 classes",
        dataset.graph.nodes()
    ));
    output.say(format!("cut into {} parts at random, one worker each; the baseline first", arguments.parts));
    let parts = parts(&arguments, &dataset)?;
    let folder = tempfile::tempdir().map_err(|source| TrainError::io(std::env::temp_dir(), source))?;
    let (mut lines, mut named): (Vec<Line>, Vec<report::Named>) = (Vec::new(), Vec::new());
    for (style, (method, crosses, keys)) in METHODS.into_iter().enumerate() {
        let config = config(&arguments, keys)?;
        let observer = Box::new(Progress::of_one(output, method));
        let (interrupt, abort) = (signals.interrupt.clone(), signals.abort.clone());
        let out = folder.path().join(style.to_string());
        let options = Options { out: Some(out.clone()), interrupt, abort, observer, ..Options::default() };
        let ended = train(&config, parts.clone(), options);
        let is_stopped = ended.as_ref().is_ok_and(|run| run.summary.interrupted);
        if is_stopped || signals.gave_up() {
            output.say("stopped");
            return Ok(STOPPED);
        }
        let summary = ended?.summary;
        let first = lines.first().map_or(summary.bytes.by_purpose.training(), |line| line.training);
        lines.push(line(method, crosses, first, &summary));
        let name = method.to_owned();
        named.push(report::Named { group: name.clone(), name, style, folder: out });
    }
    output.result(table(&lines), &lines)?;
    if let Some(file) = &arguments.figure {
        write_aside(file, figure(&lines).svg(WIDE).alone().as_bytes())?;
        output.say(format!("accuracy against bytes is in {}", file.display()));
    }
    write_report(&arguments.report, named, output)?;
    Ok(0)
}

fn write_report(file: &Path, named: Vec<report::Named>, output: &Output) -> Result<()> {
    report::write(file, named)?;
    output.say(format!("curves and bytes are in {}", file.display()));
    Ok(())
}

/// Accuracy against bytes; joined are those methods that no other one beats in both.
fn figure(lines: &[Line]) -> Points {
    let point = |(style, line): (usize, &Line)| {
        let beats = |other: &&Line| {
            let (fewer, better) = (other.training <= line.training, other.test_accuracy >= line.test_accuracy);
            fewer && better && (other.training, other.test_accuracy) != (line.training, line.test_accuracy)
        };
        let (at, front) = ((line.training as f64, line.test_accuracy), !lines.iter().any(|other| beats(&other)));
        Point { name: line.method.to_owned(), style, at, sd: (None, None), front }
    };
    Points {
        title: "Accuracy against bytes, of a generated graph".to_owned(),
        x: ("bytes that all workers sent, without those of evaluations".to_owned(), Unit::Bytes),
        y: "accuracy on test nodes, of the round that validation chose".to_owned(),
        points: lines.iter().enumerate().map(point).collect(),
    }
}

fn parts(arguments: &Demo, dataset: &Dataset) -> Result<Vec<Part>> {
    let mut config = Config::default();
    config.partition.seed = arguments.seed;
    let assignment = assign(&Members::default(), &config, dataset, Some(0), arguments.parts)?;
    Ok(cut(dataset, Some(0), &assignment, arguments.parts)?)
}

fn config(arguments: &Demo, keys: &[&str]) -> Result<Config> {
    let mut set: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    set.push(format!("train.epochs={}", arguments.epochs));
    set.push(format!("train.seed={}", arguments.seed));
    set.push("model.hidden=128".to_owned());
    Ok(Config::parse("", &set)?)
}

fn line(method: &'static str, crosses: &'static str, first: u64, summary: &Summary) -> Line {
    let purposes = summary.bytes.by_purpose;
    Line {
        method,
        test_accuracy: summary.metrics.scores.test.get("accuracy").copied().flatten().unwrap_or(0.0),
        bytes: summary.bytes.total,
        predicted: summary.bytes.predicted,
        purposes,
        training: purposes.training(),
        fewer: first as f64 / purposes.training().max(1) as f64,
        rounds: summary.rounds,
        seconds: summary.seconds.total,
        crosses,
    }
}

fn table(lines: &[Line]) -> String {
    use std::fmt::Write;
    let mut text = format!(
        "{:<20} {:>8} {:>10} {:>10} {:>10} {:>7} {:>6} {:>6}  {}\n",
        "method", "accuracy", "boundary", "parameters", "evaluation", "fewer", "rounds", "time", "what crosses"
    );
    for line in lines {
        let Purposes { boundary, parameters, evaluation, .. } = line.purposes;
        let [boundary, parameters, evaluation] = [boundary, parameters, evaluation].map(human_bytes);
        let _ = writeln!(
            text,
            "{:<20} {:>8.4} {boundary:>10} {parameters:>10} {evaluation:>10} {:>6.1}x {:>6} {:>5.1}s  {}",
            line.method, line.test_accuracy, line.fewer, line.rounds, line.seconds, line.crosses
        );
    }
    text += "fewer: all bytes but those of evaluation, against standard\n";
    text += "* in 4 bits; models averaged every 10 rounds in 8 bits, in place of gradients in every round";
    text
}
