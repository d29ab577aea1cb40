//! `laconic data synth`

use std::fmt;
use std::time::Instant;

use anyhow::Result;
use laconic_graph::dataset::Dataset;
use laconic_graph::error::GraphError;
use laconic_graph::synth::{RmatSpec, SbmSpec, rmat, rmat_arrays, sbm};
use laconic_train::TrainError;
use schemars::JsonSchema;
use serde::Serialize;

use super::new_file::{NewFile, Written, not_written};
use crate::command::signals::clean_up;
use crate::output::Output;

/// The generators of graphs.
#[derive(clap::Subcommand)]
pub enum Synth {
    /// Communities: a stochastic block model with given degrees, whose blocks are the classes and whose features follow
    /// them
    Sbm(Sbm),
    /// Hubs without communities: the R-MAT graph of Graph500; labels and split mean nothing
    Rmat(Rmat),
}

/// What [`sbm()`] generates, and where it goes.
#[derive(clap::Args)]
#[command(after_help = SBM_EXAMPLE)]
pub struct Sbm {
    /// Number of nodes
    #[arg(long, default_value_t = SbmSpec::default().nodes)]
    nodes: usize,
    /// Mean number of neighbours
    #[arg(long, value_name = "MEAN", default_value_t = SbmSpec::default().mean_degree)]
    mean_degree: f64,
    /// Classes, all equally likely
    #[arg(long, value_name = "COUNT", default_value_t = SbmSpec::default().classes)]
    classes: usize,
    /// Expected share of the edges that join nodes of one class
    #[arg(long, value_name = "SHARE", default_value_t = SbmSpec::default().homophily)]
    homophily: f64,
    /// Degrees beyond d have probability d^(1 − EXPONENT); above 2, inf for equal degrees
    #[arg(long, value_name = "EXPONENT", default_value_t = SbmSpec::default().degree_exponent)]
    degree_exponent: f64,
    /// No node has a larger expected degree
    #[arg(long, value_name = "MAX", default_value_t = SbmSpec::default().degree_max)]
    degree_max: f64,
    /// Number of feature columns
    #[arg(long, value_name = "COLUMNS", default_value_t = SbmSpec::default().features)]
    features: usize,
    /// Distance between the mean features of two classes, in standard deviations of the noise in one column
    #[arg(long, value_name = "DISTANCE", default_value_t = SbmSpec::default().feature_signal)]
    feature_signal: f64,
    /// Share of training nodes
    #[arg(long, value_name = "SHARE", default_value_t = SbmSpec::default().train)]
    train: f64,
    /// Share of validation nodes; the others are for testing
    #[arg(long, value_name = "SHARE", default_value_t = SbmSpec::default().val)]
    val: f64,
    /// The seed of everything random
    #[arg(long, default_value_t = SbmSpec::default().seed)]
    seed: u64,
    #[command(flatten)]
    file: NewFile,
}

/// What [`rmat()`] generates, and where it goes.
#[derive(clap::Args)]
#[command(after_help = RMAT_EXAMPLE)]
pub struct Rmat {
    /// There are 2^SCALE nodes; at most 31
    #[arg(long, default_value_t = RmatSpec::default().scale)]
    scale: u32,
    /// Edges drawn for each node; those drawn twice and self-loops are dropped
    #[arg(long, value_name = "COUNT", default_value_t = RmatSpec::default().edge_factor)]
    edge_factor: usize,
    /// Probability of the upper left quadrant
    #[arg(long, value_name = "SHARE", default_value_t = RmatSpec::default().a)]
    a: f64,
    /// Probability of the upper right quadrant
    #[arg(long, value_name = "SHARE", default_value_t = RmatSpec::default().b)]
    b: f64,
    /// Probability of the lower left quadrant; the lower right one has what is left
    #[arg(long, value_name = "SHARE", default_value_t = RmatSpec::default().c)]
    c: f64,
    /// Whether each edge gets its other direction
    #[arg(long, value_name = "BOOL", default_value_t = RmatSpec::default().symmetric, action = clap::ArgAction::Set)]
    symmetric: bool,
    /// Feature columns, standard normal
    #[arg(long, value_name = "COLUMNS", default_value_t = RmatSpec::default().features)]
    features: usize,
    /// Classes, drawn independently of everything; 0 for no labels and no split
    #[arg(long, value_name = "COUNT", default_value_t = RmatSpec::default().classes)]
    classes: usize,
    /// The seed of everything random
    #[arg(long, default_value_t = RmatSpec::default().seed)]
    seed: u64,
    #[command(flatten)]
    file: NewFile,
}

const SBM_EXAMPLE: &str = "\
The same flags give the same graph, and the same digest, on every machine.

Example:
  laconic data synth sbm --nodes 100000 --classes 20 --homophily 0.8 --seed 1 --out communities.npz";

const RMAT_EXAMPLE: &str = "\
The same flags give the same graph, and the same digest, on every machine.

Example:
  laconic data synth rmat --scale 18 --edge-factor 16 --features 128 --out hubs.npz

Without .npz at its end the name is that of a folder of arrays (graph.json, edges-*.npy, …), which is written piece by
piece, so that the graph may be larger than the memory; laconic partition --memory cuts it:
  laconic data synth rmat --scale 25 --features 8 --out web";

/// Generates a graph and writes it.
pub(super) fn run(args: &Synth, output: &Output) -> Result<u8> {
    match args {
        Synth::Sbm(args) => generate(&args.file, output, || sbm(&args.spec())),
        Synth::Rmat(args) if args.file.is_folder() => arrays(args, output),
        Synth::Rmat(args) => generate(&args.file, output, || rmat(&args.spec())),
    }
}

fn generate(
    file: &NewFile,
    output: &Output,
    generator: impl FnOnce() -> laconic_graph::error::Result<Dataset>,
) -> Result<u8> {
    let started = Instant::now();
    file.check_extension()?;
    file.check()?;
    output.say("generating");
    let dataset = generator().map_err(refused)?;
    output.say(format_args!("generated in {:.2} s, writing", started.elapsed().as_secs_f64()));
    let written = file.write(&dataset, started)?;
    let text = written.to_string();
    let Written { file, bytes, nodes, edges, digest, seconds, .. } = written;
    output.result(text, &Generated { file, bytes, nodes, edges, digest, seconds })?;
    Ok(0)
}

/// Writes the graph piece by piece.
fn arrays(args: &Rmat, output: &Output) -> Result<u8> {
    let started = Instant::now();
    let dir = args.file.free_folder()?;
    clean_up(dir)?;
    let tell = |text: &str| output.say(format_args!("{:>8.1} s  {text}", started.elapsed().as_secs_f64()));
    let drawn = rmat_arrays(&args.spec(), dir, &tell).map_err(|error| match error {
        GraphError::Io { .. } => not_written(error),
        other => refused(other).into(),
    })?;
    let written = Arrays {
        folder: dir.display().to_string(),
        nodes: 1 << args.scale,
        edges_drawn: drawn,
        seconds: started.elapsed().as_secs_f64(),
    };
    output.result(&written, &written)?;
    Ok(0)
}

/// A file that was written.
#[derive(Serialize, JsonSchema)]
pub struct Generated {
    /// What was written.
    file: String,
    /// Bytes of the file.
    bytes: u64,
    /// How many nodes there are.
    nodes: usize,
    /// How many directed edges there are.
    edges: usize,
    /// As `data info` says it.
    digest: String,
    /// Generating and writing.
    seconds: f64,
}

/// A folder of arrays that was written.
#[derive(Serialize, JsonSchema)]
pub struct Arrays {
    /// What was written in place of a file.
    folder: String,
    /// How many nodes there are.
    nodes: u64,
    /// Edges as they were drawn, repeated ones and self-loops among them.
    edges_drawn: u64,
    /// Generating and writing.
    seconds: f64,
}

impl fmt::Display for Arrays {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Arrays { folder, nodes, edges_drawn, seconds } = self;
        writeln!(f, "wrote      {folder}, in {seconds:.2} s")?;
        write!(f, "graph      {nodes} nodes, {edges_drawn} edges drawn")
    }
}

/// What a generator refuses comes from the command line, not from data.
fn refused(error: GraphError) -> TrainError {
    TrainError::config(error.to_string())
}

impl Sbm {
    fn spec(&self) -> SbmSpec {
        SbmSpec {
            nodes: self.nodes,
            mean_degree: self.mean_degree,
            classes: self.classes,
            homophily: self.homophily,
            degree_exponent: self.degree_exponent,
            degree_max: self.degree_max,
            features: self.features,
            feature_signal: self.feature_signal,
            train: self.train,
            val: self.val,
            seed: self.seed,
        }
    }
}

impl Rmat {
    fn spec(&self) -> RmatSpec {
        RmatSpec {
            scale: self.scale,
            edge_factor: self.edge_factor,
            a: self.a,
            b: self.b,
            c: self.c,
            symmetric: self.symmetric,
            features: self.features,
            classes: self.classes,
            seed: self.seed,
        }
    }
}
