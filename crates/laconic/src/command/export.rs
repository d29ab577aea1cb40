//! `laconic export`: a trained model for other programs.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use laconic_nn::network::{After, Architecture, Network};
use laconic_train::config::Config;
use laconic_train::plan::{Members, Plan};
use laconic_train::record::aside::write_aside;
use laconic_train::record::weights::{self, Weights};
use laconic_train::schedule::HandOn;
use serde::Serialize;

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
    /// PyTorch Geometric
    Pyg,
}

#[derive(Serialize)]
struct Written {
    weights: PathBuf,
    loader: PathBuf,
}

/// Exports.
pub fn run(arguments: Export, output: &Output) -> Result<u8> {
    let Target::Pyg = arguments.to;
    let config = Config::load(&arguments.dir.join("config.toml"), &[])
        .with_context(|| format!("{} is not the folder of a run", arguments.dir.display()))?;
    let (weights, [inputs, classes]) = weights::read_with_widths(&arguments.dir.join(weights::FILE))?;
    let plan = Plan::for_model(&Members::default(), &config, [inputs, classes])?;
    let stages = &plan.stages;
    // Complain about a model that does not fit its configuration now rather than in Python.
    weights::parameters(stages, &weights)?;
    let scores = stages.iter().any(|stage| stage.hand_on == HandOn::Scores);
    let networks: Vec<&Network> = stages.iter().map(|stage| &stage.network).collect();
    let kept = weights.into_iter().filter(|(name, _)| scores || !name.starts_with("heads."));
    let mut kept: Weights = kept.collect();
    // PyTorch Geometric keeps an ε beside every inner perceptron, whether it is learned or not.
    for layer in 0..=config.model.layers {
        if kept.contains_key(&format!("convs.{layer}.nn.0.weight")) {
            kept.entry(format!("convs.{layer}.eps")).or_insert_with(|| (vec![1], vec![0.0]));
        }
    }
    let out = arguments.out.unwrap_or_else(|| arguments.dir.join("pyg"));
    std::fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let architecture = config.model.architecture(inputs, classes);
    let text = loader(&plan, &architecture, &networks, scores);
    let (weights, loader) = (out.join("model.safetensors"), out.join("load.py"));
    weights::write(&weights, &kept, Default::default())?;
    write_aside(&loader, text.as_bytes())?;
    output.say(format!("written to {}", out.display()));
    output.result(text.trim_end(), &Written { weights, loader })?;
    Ok(0)
}

/// A Python file that builds the model and loads its weights.
fn loader(plan: &Plan, architecture: &Architecture, networks: &[&Network], scores: bool) -> String {
    let (kind, config) = (plan.layer, &plan.config);
    let units = || networks.iter().flat_map(|network| network.units());
    let entry = |name: &str, value: String| {
        let index = name.rsplit('.').next().unwrap_or_default();
        format!("            \"{index}\": {value},\n")
    };
    let mut class = String::new();
    let mut layers = [String::new(), String::new(), String::new(), String::new()];
    for unit in units() {
        let (inputs, outputs) = (unit.layer.inputs(), unit.layer.outputs());
        let linear = format!("Linear({inputs}, {outputs})");
        if unit.name.starts_with("heads.") {
            if scores {
                layers[2] += &entry(&unit.name, linear);
            }
        } else if unit.name.starts_with("mlp.") {
            layers[3] += &entry(&unit.name, linear);
        } else {
            let call = unit.layer.pyg_constructor(plan.self_loops);
            class = call.split('(').next().unwrap_or_default().to_owned();
            layers[0] += &entry(&unit.name, call);
        }
        if let After::NormRelu(norm) = &unit.after {
            layers[1] += &entry(norm, format!("LayerNorm({outputs})"));
        }
    }
    let mut text = String::from("\"\"\"Builds the model and loads its weights; made by `laconic export`.\"\"\"\n");
    text += "import torch\nfrom pathlib import Path\nfrom safetensors.torch import load_file\n";
    text += "from torch.nn import LayerNorm, Linear, ModuleDict, ReLU, Sequential\n";
    if kind.prefix == "convs" {
        text += &format!("from torch_geometric.nn import {class}\n");
    }
    let add_loops = plan.self_loops && !kind.self_loops && kind.prefix == "convs";
    if add_loops {
        text += "from torch_geometric.utils import add_self_loops, remove_self_loops\n";
    }
    text += "\n\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n";
    for (name, entries) in
        [(kind.prefix, &layers[0]), ("norms", &layers[1]), ("heads", &layers[2]), ("mlp", &layers[3])]
    {
        if !entries.is_empty() {
            text += &format!("        self.{name} = ModuleDict({{\n{entries}        }})\n");
        }
    }
    text += "\n    def forward(self, x, edge_index):\n";
    if add_loops {
        text += "        edge_index = add_self_loops(remove_self_loops(edge_index)[0], num_nodes=x.size(0))[0]\n";
    }
    let norm = |index: &str| match config.model.norm.as_str() {
        "layer" => format!("self.norms[{index}](x)"),
        _ => "x".to_owned(),
    };
    let call = if kind.prefix == "convs" { "layer(x, edge_index)" } else { "layer(x)" };
    if scores {
        text += "        x = self.mlp[\"0\"](x)\n";
        text += &format!("        x = {}.relu()\n        x = self.mlp[\"1\"](x)\n", norm("\"0\""));
        text += &format!("        for i, layer in self.{}.items():\n            x = {call}\n", kind.prefix);
        text += &format!("            x = {}.relu()\n            x = self.heads[i](x)\n        return x\n", norm("i"));
    } else {
        let last = architecture.layers - 1;
        text += &format!("        for i, layer in self.{}.items():\n            x = {call}\n", kind.prefix);
        text +=
            &format!("            if i != \"{last}\":\n                x = {}.relu()\n        return x\n", norm("i"));
    }
    text += "\n\ndef load(path=Path(__file__).with_name(\"model.safetensors\")):\n";
    text += "    model = Model()\n    model.load_state_dict(load_file(path))\n    return model.eval()\n";
    text += "\n\n# logits = load()(x, edge_index), with features and edges prepared as the run did:\n";
    let split = format!("{:?}", config.data.features).to_lowercase();
    text += &format!(
        "# features: {split}; reverse edges added: {}; self-loops in the data removed.\n",
        config.data.symmetrise
    );
    text
}
