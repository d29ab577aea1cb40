//! `laconic export`: a trained model for other programs.

mod loader;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use laconic_nn::network::After;
use laconic_train::record::aside::write_aside;
use laconic_train::record::weights;
use laconic_train::{Config, Members, Plan, Weights};
use serde::Serialize;

use self::loader::{kept, loader};
use crate::output::Output;

/// Arguments of `export`.
#[derive(Args)]
#[command(after_help = "Example: laconic export runs/gcn --to pyg")]
pub struct Export {
    /// The run's folder
    dir: PathBuf,
    /// For which program
    #[arg(long, value_enum)]
    to: Target,
    /// The folder to write into (otherwise DIR/pyg)
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Who reads it.
#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// PyTorch Geometric: safetensors and a Python file that builds the model
    Pyg,
}

#[derive(Serialize)]
struct Written {
    weights: PathBuf,
    loader: PathBuf,
}

/// Writes the weights of the best round and what loads them.
pub fn run(arguments: Export, output: &Output) -> Result<u8> {
    let Target::Pyg = arguments.to;
    let config = Config::load(&arguments.dir.join("config.toml"), &[])
        .with_context(|| format!("{} is not the folder of a run", arguments.dir.display()))?;
    let model = weights::read_of_run(&arguments.dir)?;
    let plan = Plan::for_model(&Members::default(), &config, model.widths())?;
    let weights = model.weights;
    let stages = &plan.stages;
    // Complain about a model that does not fit its configuration now rather than in Python.
    weights::parameters(stages, &weights).map_err(|error| error.within(&arguments.dir))?;
    let norms = kept(&plan).filter_map(|unit| if let After::NormRelu(norm) = &unit.after { Some(norm) } else { None });
    let names: Vec<&String> = kept(&plan).map(|unit| &unit.name).chain(norms).collect();
    let is_kept = |tensor: &str| {
        names.iter().any(|name| tensor.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.')))
    };
    let mut kept: Weights = weights.into_iter().filter(|(name, _)| is_kept(name)).collect();
    // PyTorch Geometric keeps an ε beside every inner perceptron, whether it is learned or not.
    for layer in 0..=config.model.layers {
        let layer = format!("{}.{layer}", plan.layer.prefix);
        if kept.contains_key(&format!("{layer}.nn.0.weight")) {
            kept.entry(format!("{layer}.eps")).or_insert_with(|| (vec![1], vec![0.0]));
        }
    }
    let out = arguments.out.unwrap_or_else(|| arguments.dir.join("pyg"));
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let text = loader(&plan);
    let (weights, loader) = (out.join("model.safetensors"), out.join("load.py"));
    weights::write(&weights, &kept, None)?;
    write_aside(&loader, text.as_bytes())?;
    output.say(format!("written to {}", out.display()));
    output.result(text.trim_end(), &Written { weights, loader })?;
    Ok(0)
}
