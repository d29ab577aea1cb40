//! Compares Laconic with PyTorch Geometric on a stored case: logits, every gradient, ten losses under Adam, and the
//! weights after ten plain steps along the gradient.
//!
//! ```text
//! cargo run --release --example pyg_parity -- FILE.npz --workers 3 --partition multilevel
//! ```
//!
//! The file holds a directed graph (`edge_index`, `x`, `y`, `train_mask`), initial weights under PyTorch Geometric's
//! names (`param/*`), and what PyTorch Geometric computed from them (`logits`, `grad/*`, `losses`, `after/*`).
//! Architecture, depth, heads, norms, activation and JumpingKnowledge follow from names and shapes; `residual` is there
//! where layers have residual connections, `largest` where JumpingKnowledge takes the largest. Where links are learned
//! (`links`), `logits` are embeddings, and the decoder follows from the names of its parameters. Exits with 1 if a
//! difference exceeds the tolerance.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use laconic_graph::about::About;
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::edges::Relations;
use laconic_graph::graph::Graph;
use laconic_graph::limits::Limits;
use laconic_graph::part::cut;
use laconic_graph::partition::{PartitionInput, PartitionOptions, PartitionerRegistry};
use laconic_graph::read::arrays::Npz;
use laconic_nn::after::{After, Norm, NormKind};
use laconic_nn::kernels::joining::Joining;
use laconic_nn::layer::{Aggregator, LayerSpec, Linear, layer_kind};
use laconic_nn::network::{ACT, LIN, Network, Unit};
use laconic_train::Config;
use laconic_train::config::{LinkSplit, LinkSplitChoice};
use laconic_train::fit::StageInputs;
use laconic_train::fit::progress::Progress;
use laconic_train::fit::trainer::{Fit, StageRun};
use laconic_train::pass::inputs::Inputs;
use laconic_train::plan::Plan;
use laconic_train::schedule::{HandOn, Stage};
use laconic_train::selection::Scope;
use laconic_train::worker::{Worker, WorkerOptions};

#[derive(Parser, Clone)]
#[command(about = "Compare logits, gradients and losses with PyTorch Geometric's")]
struct Arguments {
    /// The stored case
    file: PathBuf,
    /// Number of workers
    #[arg(long, default_value_t = 1)]
    workers: u32,
    /// Partitioner: random, multilevel
    #[arg(long, default_value = "random")]
    partition: String,
    /// Largest relative difference that passes
    #[arg(long, default_value_t = 1e-4)]
    tolerance: f64,
    /// Learning rate of the ten steps of Adam
    #[arg(long, default_value_t = 0.01)]
    lr: f32,
    /// Learning rate of the ten plain steps
    #[arg(long, default_value_t = 0.05)]
    sgd_lr: f32,
    /// Add self-loops or not; by default as PyTorch Geometric's layer does
    #[arg(long)]
    self_loops: Option<bool>,
}

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

struct Case {
    dataset: Dataset,
    parameters: Tensors,
    gradients: Tensors,
    logits: Vec<f32>,
    losses: Vec<f32>,
    /// The weights after as many plain steps, where the file has them.
    after: Tensors,
    links: bool,
    /// Whether what goes into a layer is added to what comes out.
    residual: bool,
    /// Whether JumpingKnowledge takes the largest.
    largest: bool,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let case = read_case(&arguments.file)?;
    let arch = architecture_name(&case.parameters)?;
    let mut config = Config::default();
    config.model.arch = arch.to_owned();
    config.model.self_loops = arguments.self_loops;
    config.train.weight_decay = 0.0;
    config.train.eval_every = 0;
    if case.links {
        config.task.kind = "link_prediction".to_owned();
        config.task.split = LinkSplitChoice::Drawn(LinkSplit { val: 0.0, test: 0.0, seed: 0 });
        (config.model.hidden, config.model.heads) = (case.dataset.labels.classes(), 1);
        let hidden = case.parameters.keys().filter(|name| name.starts_with("decoder.acts.")).count();
        if hidden > 0 {
            (config.task.decoder, config.task.decoder_layers) = ("mlp".to_owned(), hidden);
        }
        if case.parameters.contains_key("decoder.relations") {
            config.task.decoder = "distmult".to_owned();
        }
    }
    let Ours { logits, gradients, losses, .. } = ours(&case, &config, &arguments)?;

    println!("{arch}, {} workers, {}:", arguments.workers, arguments.partition);
    let mut worst = report("logits", &logits, &case.logits);
    for (name, (_, expected)) in &case.gradients {
        let (_, found) = gradients.get(name).with_context(|| format!("no gradient of {name}"))?;
        worst = worst.max(report(&format!("gradient of {name}"), found, expected));
    }
    worst = worst.max(report("losses", &losses, &case.losses));
    // Adam's steps are of one length, whatever is left of a gradient that nearly vanishes.
    (config.train.optimiser, config.train.momentum) = ("sgd".to_owned(), 0.0);
    let Ours { after, .. } = ours(&case, &config, &Arguments { lr: arguments.sgd_lr, ..arguments.clone() })?;
    for (name, (_, expected)) in &case.after {
        let (_, found) = after.get(name).with_context(|| format!("no {name}"))?;
        worst = worst.max(report(&format!("{name} after the steps"), found, expected));
    }
    let passes = worst <= arguments.tolerance;
    println!(
        "largest {worst:.2e}, tolerance {:.0e}: {}",
        arguments.tolerance,
        if passes { "agrees" } else { "DIFFERS" }
    );
    Ok(if passes { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints and returns the largest difference relative to the largest expected value. NaN counts as infinitely wrong.
fn report(what: &str, found: &[f32], expected: &[f32]) -> f64 {
    let largest = expected.iter().map(|v| f64::from(v.abs())).fold(0.0, f64::max);
    let differences = found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    let worst = differences.fold(0.0, |m: f64, d| if d.is_nan() { f64::INFINITY } else { m.max(d) });
    let relative = if found.len() != expected.len() { f64::INFINITY } else { worst / largest.max(1e-6) };
    println!("  {what:<32} {relative:.2e}");
    relative
}

fn read_case(path: &std::path::Path) -> Result<Case> {
    let limits = Limits::default();
    let most = 1 << 28;
    let mut npz = Npz::open(path, &limits)?;
    let names = npz.names();
    let x = npz.read::<f32>("x", most)?;
    ensure!(x.shape.len() == 2, "x: expected rows and columns");
    let (nodes, columns) = (x.shape[0], x.shape[1]);
    let edges = npz.read::<i64>("edge_index", most)?.values;
    let relations = npz.optional::<u16>("edge_type", most)?.map(|array| array.values);
    let labels = npz.read::<i32>("y", most)?.values;
    let train = npz.read::<u8>("train_mask", most)?.values;
    let mut group = |prefix: &str| -> Result<Tensors> {
        let of_group = names.iter().filter_map(|name| name.strip_prefix(prefix).map(|short| (name, short)));
        let read = |(name, short): (&String, &str)| {
            let array = npz.read::<f32>(name, most)?;
            Ok((short.replace(".module.", "."), (array.shape, array.values)))
        };
        of_group.map(read).collect()
    };
    let (parameters, gradients, after) = (group("param/")?, group("grad/")?, group("after/")?);
    let logits = npz.read::<f32>("logits", most)?;
    let losses = npz.read::<f32>("losses", most)?.values;
    let classes = logits.shape.last().copied().unwrap_or(0);
    let roles = train.iter().map(|&t| if t != 0 { Split::TRAIN } else { 0 }).collect();
    let dataset = Dataset {
        name: "case".to_owned(),
        graph: graph(nodes, &edges, relations)?,
        features: Features::Dense { columns, values: x.values.into() },
        labels: Labels::Single { classes, values: labels },
        splits: vec![Split { roles }],
        ids: Ids::Row,
        about: About::default(),
        exact: Default::default(),
        negatives: None,
    };
    let [links, residual, largest] = ["links", "residual", "largest"].map(|flag| names.iter().any(|name| name == flag));
    Ok(Case { dataset, parameters, gradients, logits: logits.values, losses, after, links, residual, largest })
}

/// The graph exactly as it stands, duplicates and self-loops included, as PyTorch Geometric's layers see it.
fn graph(nodes: usize, edge_index: &[i64], relations: Option<Vec<u16>>) -> Result<Graph> {
    let (sources, targets) = edge_index.split_at(edge_index.len() / 2);
    ensure!(edge_index.iter().all(|&v| v >= 0 && (v as usize) < nodes), "edge_index: a node beyond {nodes}");
    let relation = |edge: usize| relations.as_ref().map_or(0, |relations| relations[edge]);
    let mut edges: Vec<(i64, i64, u16)> = targets
        .iter()
        .zip(sources)
        .enumerate()
        .map(|(edge, (target, source))| (*target, *source, relation(edge)))
        .collect();
    edges.sort_unstable();
    let mut offsets = vec![0u64; nodes + 1];
    edges.iter().for_each(|(target, ..)| offsets[*target as usize + 1] += 1);
    (0..nodes).for_each(|v| offsets[v + 1] += offsets[v]);
    let mut graph = Graph::new(offsets, edges.iter().map(|(_, source, _)| *source as u32).collect());
    graph.data.relations = relations.map(|relations| Relations {
        count: relations.iter().max().map_or(1, |&last| usize::from(last) + 1),
        of: edges.iter().map(|edge| edge.2).collect(),
    });
    Ok(graph)
}

fn architecture_name(parameters: &Tensors) -> Result<&'static str> {
    let has = |suffix: &str| parameters.keys().any(|name| name.ends_with(suffix));
    Ok(match () {
        _ if has("att_src") => "gat",
        _ if has("root") => "rgcn",
        _ if has("lin_l.weight") => "sage",
        _ if has("nn.0.weight") => "gin",
        _ if has("convs.0.lin.weight") => "gcn",
        _ if parameters.contains_key("lins.0.weight") => "mlp",
        _ => bail!("no layer of ours has parameters named {:?}", parameters.keys().collect::<Vec<_>>()),
    })
}

/// The network that the names and shapes describe.
fn network(arch: &str, case: &Case) -> Result<Network> {
    let kind = layer_kind(arch).context("the architecture is known")?;
    let is_there = |name: &str| case.parameters.contains_key(name);
    let mut units = Vec::new();
    while case.parameters.keys().any(|key| key.starts_with(&format!("{}.{}.", kind.prefix, units.len()))) {
        let name = format!("{}.{}", kind.prefix, units.len());
        let mut spec = layer_spec(arch, case, &name)?;
        // As in every network of ours: the first layer's inputs never change, so it folds them as they are.
        (spec.aggregate_first, spec.residual) = (units.is_empty(), case.residual);
        units.push(Unit { name, layer: kind.layer(&spec), dropout: 0.0, after: After::Nothing });
    }
    ensure!(!units.is_empty(), "no layers found");
    let convs = units.len();
    if let Some((shape, _)) = case.parameters.get("lin.weight") {
        ensure!(shape.len() == 2, "lin.weight: expected a matrix");
        let layer = Box::new(Linear::new(shape[1], shape[0]));
        units.push(Unit { name: LIN.to_owned(), layer, dropout: 0.0, after: After::Nothing });
    }
    let hidden = units.len() - 1;
    for (index, unit) in units[..hidden].iter_mut().enumerate() {
        let name = format!("norms.{index}");
        let kind = if is_there(&format!("{name}.running_mean")) { NormKind::Batch } else { NormKind::Layer };
        let norm = is_there(&format!("{name}.weight")).then_some(Norm { kind, name });
        unit.after = After::Activation { norm, slope: is_there("act.weight").then(|| ACT.to_owned()) };
    }
    let joined = |network: Network| match network.units()[hidden].layer.facts().inputs {
        _ if hidden < convs => network,
        _ if case.largest => network.joining(Joining::Largest, 0),
        inputs if inputs > network.units()[0].layer.facts().outputs => network.joining(Joining::Concatenated, 0),
        _ => network,
    };
    Ok(joined(Network::new(units)))
}

/// The layer of this name.
fn layer_spec(arch: &str, case: &Case, name: &str) -> Result<LayerSpec> {
    let shape = |name: String| case.parameters.get(&name).map(|(shape, _)| shape.clone());
    let of = |part: &str| shape(format!("{name}.{part}")).with_context(|| format!("no {name}.{part}"));
    let weight = match arch {
        "sage" => of("lin_l.weight")?,
        "gin" => of("nn.0.weight")?,
        "mlp" => of("weight")?,
        "rgcn" => of("root").map(|root| root.into_iter().rev().collect())?,
        _ => of("lin.weight")?,
    };
    ensure!(weight.len() == 2, "{name}: expected a matrix");
    let mut spec = LayerSpec::new(weight[1], weight[0]);
    match arch {
        "gin" => {
            spec.inner = weight[0];
            spec.outputs = of("nn.2.weight")?[0];
            spec.learn_epsilon = shape(format!("{name}.eps")).is_some();
        }
        "gat" => {
            let attention = of("att_src")?;
            ensure!(attention.len() == 3, "{name}.att_src: expected [1, heads, width]");
            let bias = of("bias")?[0];
            spec.heads = attention[1];
            spec.concatenate = bias == attention[1] * attention[2];
            spec.outputs = bias;
        }
        "rgcn" => {
            let matrices = of("weight")?[0];
            let mix = shape(format!("{name}.comp"));
            spec.bases = mix.as_ref().map_or(0, |_| matrices);
            spec.relations = mix.map_or(matrices, |mix| mix[0]);
        }
        "sage" if shape(format!("{name}.lin.weight")).is_some() => spec.aggregator = Aggregator::Max,
        _ => {}
    }
    Ok(spec)
}

/// What we compute.
struct Ours {
    /// Rows in node order, or in that of a worker's rows.
    logits: Vec<f32>,
    gradients: Tensors,
    losses: Vec<f32>,
    after: Tensors,
}

/// All of it, in node order.
fn ours(case: &Case, config: &Config, arguments: &Arguments) -> Result<Ours> {
    let options = PartitionOptions { imbalance: 0.03, ..PartitionOptions::default() };
    let input = PartitionInput { graph: &case.dataset.graph, roles: None, parts: arguments.workers, seed: 1 };
    let assignment = PartitionerRegistry::default().get(&arguments.partition)?.build(&options)?.assign(&input)?;
    let parts = cut(&case.dataset, Some(0), &assignment, arguments.workers)?;
    let ends = laconic_wire::threads(parts.len(), Duration::from_secs(60));
    let work = |(part, end)| one_worker(case, config, arguments.lr, part, Box::new(end));
    let results: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = parts.into_iter().zip(ends).map(|pair| scope.spawn(move || work(pair))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a worker panicked")).collect::<Result<_>>()
    })?;
    let classes = case.dataset.labels.classes();
    let mut logits = vec![0.0; case.logits.len()];
    for (ids, of_worker) in &results {
        for (row, &id) in ids.iter().enumerate() {
            logits[id as usize * classes..][..classes].copy_from_slice(&of_worker.logits[row * classes..][..classes]);
        }
    }
    let (_, first) = results.into_iter().next().context("no workers")?;
    Ok(Ours { logits, ..first })
}

fn one_worker(
    case: &Case,
    config: &Config,
    lr: f32,
    part: laconic_graph::part::Part,
    end: Box<dyn laconic_wire::Transport>,
) -> Result<(Vec<u64>, Ours)> {
    let network = network(&config.model.arch, case)?;
    let (hand_on, rounds) = (HandOn::Nothing, case.losses.len() as u32);
    let stage = Stage {
        propagation: None,
        solves: None,
        network,
        cache_inputs: true,
        redraws: false,
        sample_inputs: false,
        late: None,
        hand_on,
        inputs: laconic_wire::Content::Features,
        first_layer: 0,
        rounds,
        span: rounds,
        lr,
    };
    let plan = Plan::of(config, &part.global)?;
    let stages = match &plan.links {
        Some(links) => links.with_decoder(vec![stage]),
        None => vec![stage],
    };
    let plan = Arc::new(plan.with_stages(stages)?);
    let (stage, network) = (&plan.stages[0], &plan.stages[0].network);
    let mut worker = Worker::start(plan.clone(), laconic_wire::Metered::new(end), part, WorkerOptions::default())?;
    let mut progress = Progress::new(&plan, network, 0);
    let mut at = 0;
    for spec in network.parameters() {
        let (shape, values) = case.parameters.get(&spec.name).with_context(|| format!("no param/{}", spec.name))?;
        ensure!(values.len() == spec.len(), "{}: shape {shape:?} instead of {:?}", spec.name, spec.shape);
        progress.parameters[at..at + values.len()].copy_from_slice(values);
        at += values.len();
    }
    let x = worker.take_handed()?.training;
    let inputs = {
        let (mut peers, ground) = worker.split();
        Inputs::freeze(&mut peers, ground, stage.first(), x, (stage.input_tag(0), Scope::Whole))?
    };
    let mut fit = Fit::new(&worker, StageRun { stage, index: 0, rounds_before: 0 }, StageInputs::of(inputs))?;
    let logits = fit.infer(&mut worker, &progress.parameters, 0)?.logits().data().to_vec();
    let (_, gradient) = fit.probe(&mut worker, &progress.parameters, 0)?;
    let named = |values: &[f32]| -> Tensors {
        let named = network.named(values);
        named.map(|(spec, values)| (spec.name.clone(), (spec.shape.clone(), values.to_vec()))).collect()
    };
    let gradients = named(&gradient);
    let mut losses = Vec::new();
    for _ in 0..case.losses.len() {
        losses.push(fit.train_round(&mut worker, &mut progress)?.report.loss as f32);
    }
    let after = named(&progress.parameters);
    Ok((worker.local.ids.clone(), Ours { logits, gradients, losses, after }))
}
