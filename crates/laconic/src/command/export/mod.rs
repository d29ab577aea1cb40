//! `laconic export`: a trained model for other programs.

mod loader;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use laconic_graph::about::Scale;
use laconic_nn::decoder::DECODER;
use laconic_nn::network::{RESIDUALS, Unit};
use laconic_train::record::aside::write_aside;
use laconic_train::record::tensors::Tensors;
use laconic_train::record::weights::{self, Model};
use laconic_train::saved::Numbers;
use laconic_train::{Config, Members, Plan, TrainError};
use schemars::JsonSchema;
use serde::Serialize;

use self::loader::{Loader, kept};
use crate::output::Output;

/// Arguments of `export`.
#[derive(Args)]
#[command(after_help = FILES)]
pub struct Export {
    /// The run's folder
    dir: PathBuf,
    /// For which program
    #[arg(long, value_enum)]
    to: Target,
    /// The folder to write into [default: one of the program's name in DIR]
    #[arg(long)]
    out: Option<PathBuf>,
}

const FILES: &str = "\
Written are model.safetensors (the weights under PyTorch Geometric's names, means and deviations of features under
scale.*), load.py, which builds the model for them and needs no package but the program's, and about.json: what classes
and features are called, and how the columns of tables became features.

Examples:
  laconic export runs/gcn --to pyg
  laconic export runs/gcn --to torch && python runs/gcn/torch/load.py gcn.onnx";

/// Who reads it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// PyTorch Geometric
    Pyg,
    /// DGL
    Dgl,
    /// PyTorch alone; its load.py writes ONNX, too
    Torch,
    /// Not directly: load.py of torch writes it
    Onnx,
}

/// The files that were written.
#[derive(Serialize, JsonSchema)]
pub struct Written {
    /// The file with the parameters.
    weights: PathBuf,
    /// The file that builds the model for them.
    loader: PathBuf,
    /// The file that says what inputs and classes mean.
    about: PathBuf,
    /// Packages that the loader imports.
    needs: &'static [&'static str],
}

/// Writes the weights of the best round and what loads them.
pub fn run(arguments: Export, output: &Output) -> Result<u8> {
    let folder = match arguments.to {
        Target::Pyg => "pyg",
        Target::Dgl => "dgl",
        Target::Torch => "torch",
        Target::Onnx => {
            let dir = arguments.dir.display();
            let how = format!("laconic export {dir} --to torch, then python {dir}/torch/load.py model.onnx");
            bail!("--to onnx: PyTorch writes ONNX, and this program has no part of it: {how}")
        }
    };
    let config = Config::load(&arguments.dir.join("config.toml"), &[])
        .with_context(|| format!("{} is not the folder of a run", arguments.dir.display()))?;
    let model = weights::read_of_run(&arguments.dir)?;
    let plan = Plan::for_model(&Members::default(), &config, model.widths())?;
    // Complain about a model that does not fit its configuration now rather than in Python.
    weights::parameters(&plan.stages, &model.weights).map_err(|error| error.within(&arguments.dir))?;
    let written = Loader::new(&plan, &model.card, arguments.to).map_err(TrainError::config)?;
    let (text, needs) = (written.text(), written.needs());
    let out = arguments.out.unwrap_or_else(|| arguments.dir.join(folder));
    let is_new = !out.exists();
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let written = write(&out, &plan, &model, &text);
    if written.is_err() && is_new {
        // What was written is of no use alone.
        let _ = std::fs::remove_dir_all(&out);
    }
    let [weights, loader, about] = written?;
    output.say(format!("written to {}; load.py needs {} and no other package", out.display(), needs.join(" and ")));
    output.result(text.trim_end(), &Written { weights, loader, about, needs })?;
    Ok(0)
}

/// Writes weights, loader and what the model is about into a folder.
fn write(out: &Path, plan: &Plan, model: &Model, text: &str) -> Result<[PathBuf; 3]> {
    let [weights, loader, about] = ["model.safetensors", "load.py", "about.json"].map(|name| out.join(name));
    let tensors = Tensors { tensors: tensors(plan, model), metadata: None };
    write_aside(&weights, &tensors.to_bytes().map_err(|what| TrainError::file(&weights, what))?)?;
    write_aside(&loader, text.as_bytes())?;
    write_aside(&about, (serde_json::to_string_pretty(&model.card)? + "\n").as_bytes())?;
    Ok([weights, loader, about])
}

/// The parameters of the layers that rows run through, and the scale of features.
fn tensors(plan: &Plan, model: &Model) -> std::collections::BTreeMap<String, (Vec<usize>, Numbers)> {
    let of_after = |unit: &Unit| -> Vec<String> {
        let norm = unit.after.norm().map(|norm| norm.name.as_str());
        norm.into_iter().chain(unit.after.slope()).map(str::to_owned).collect()
    };
    let residuals = kept(plan).map(|unit| format!("{RESIDUALS}.{}", unit.place().1));
    let names = kept(plan).map(|unit| unit.name.clone()).chain(kept(plan).flat_map(of_after)).chain(residuals);
    let names: Vec<String> = names.chain([DECODER.to_owned()]).collect();
    let is_kept = |tensor: &str| {
        names.iter().any(|name| tensor.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.')))
    };
    let kept = model.weights.iter().filter(|(name, _)| is_kept(name));
    let mut tensors: std::collections::BTreeMap<String, (Vec<usize>, Numbers)> =
        kept.map(|(name, (shape, values))| (name.clone(), (shape.clone(), Numbers::F32(values.clone())))).collect();
    // PyTorch Geometric keeps an ε beside every inner perceptron, whether it is learned or not.
    for layer in 0..=plan.config.model.layers {
        let layer = format!("{}.{layer}", plan.layer.prefix);
        if tensors.contains_key(&format!("{layer}.nn.0.weight")) {
            tensors.entry(format!("{layer}.eps")).or_insert_with(|| (vec![1], Numbers::F32(vec![0.0])));
        }
    }
    if let Scale::Standardised { means, deviations, by_type, .. } = &model.card.about.scale {
        if *by_type {
            let mut flags = Vec::with_capacity(means.len());
            for kind in &model.card.about.node_types {
                let flag = (flags.len() + kind.columns).saturating_sub(1) as f64;
                flags.extend(std::iter::repeat_n(flag, kind.columns));
            }
            tensors.insert("scale.flag".to_owned(), (vec![flags.len()], Numbers::F64(flags)));
        }
        for (name, values) in [("scale.mean", means), ("scale.deviation", deviations)] {
            tensors.insert(name.to_owned(), (vec![values.len()], Numbers::F64(values.clone())));
        }
    }
    tensors
}
