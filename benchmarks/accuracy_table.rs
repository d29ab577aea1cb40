//! Accuracy of layers × schedules × datasets over several seeds, as a table in Markdown.
//!
//! ```text
//! cargo run --release --example accuracy_table -- --data ../shared/data --seeds 5
//! ```
//!
//! Four random parts, and the settings of RETEXO's published configuration: 2 layers, hidden width 256 (gat: 8 heads of
//! 32, averaged), LayerNorm (none on CiteSeer, where it costs 1 to 2 points), dropout 0.3, Adam with rate 0.003 and
//! weight decay 5e-4, 200 rounds (a stage), best round by validation. A seed draws split, partition and initial
//! weights: splits have RETEXO's sizes and are not the public ones, on which other papers' figures are. Datasets that
//! are not there are said to be skipped.

use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use laconic_train::run::Data;
use laconic_train::{Config, Options, train};

#[derive(Parser)]
#[command(about = "Accuracy of layers, schedules and datasets over several seeds")]
struct Arguments {
    /// The folder with the datasets
    #[arg(long)]
    data: PathBuf,
    /// Number of seeds
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// Only this dataset
    #[arg(long)]
    only: Option<String>,
    /// Further keys, as in --set train.epochs=100
    #[arg(long = "set")]
    set: Vec<String>,
}

/// Dataset, keys, and RETEXO's table: mean and standard deviation of gcn, sage, gat, each synchronous, then lazy.
struct Case {
    name: &'static str,
    /// Who trains and who validates; all others test.
    split: &'static str,
    keys: &'static [&'static str],
    published: [[(f64, f64); 2]; 3],
}

const CASES: [Case; 3] = [
    Case {
        name: "cora",
        split: "drawn: 86 a class train, 300 validate",
        keys: &["data.split.train=86", "data.split.val=300"],
        published: [[(82.0, 0.5), (82.8, 0.6)], [(82.6, 0.4), (82.5, 0.4)], [(80.7, 0.7), (81.8, 0.6)]],
    },
    Case {
        name: "citeseer",
        split: "drawn: 178 a class train, 357 validate",
        keys: &["data.split.train=178", "data.split.val=357", "model.norm=none"],
        published: [[(72.5, 0.6), (73.9, 0.9)], [(74.3, 1.0), (76.6, 0.8)], [(71.4, 1.1), (73.8, 1.0)]],
    },
    Case {
        name: "facebook_pages",
        split: "drawn: 20.1 % train, 9.9 % validate",
        keys: &["data.split.train=0.201", "data.split.val=0.099"],
        published: [[(91.7, 0.1), (91.6, 0.3)], [(92.5, 0.1), (91.0, 0.2)], [(91.2, 0.3), (91.3, 0.2)]],
    },
];

/// Settings of all layers.
const SETTINGS: [&str; 8] = [
    "partition.parts=4",
    "model.layers=2",
    "model.hidden=256",
    "model.norm=layer",
    "model.dropout=0.3",
    "train.lr=0.003",
    "train.weight_decay=0.0005",
    "train.epochs=200",
];

/// The layers, each with the keys that it alone reads.
const LAYERS: [(&str, &[&str]); 3] =
    [("gcn", &[]), ("sage", &[]), ("gat", &["model.heads=8", "model.head_merge=mean"])];

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    println!("| dataset | split | layer | schedule | test accuracy | published | sent a run | seconds a run |");
    println!("| --- | --- | --- | --- | --- | --- | --: | --: |");
    for case in CASES.iter().filter(|case| arguments.only.as_ref().is_none_or(|name| name == case.name)) {
        let path = arguments.data.join(format!("{}.npz", case.name));
        if !path.exists() {
            println!("| {} | {} | | | skipped: no {} | | | |", case.name, case.split, path.display());
            continue;
        }
        for (layer, (arch, own)) in LAYERS.into_iter().enumerate() {
            for (column, schedule) in ["synchronous", "lazy"].into_iter().enumerate() {
                let (mut figures, mut bytes, mut seconds) = (Vec::new(), 0, 0.0);
                for seed in 0..arguments.seeds {
                    let settings = SETTINGS.iter().chain(own).chain(case.keys);
                    let mut set: Vec<String> = settings.map(|key| key.to_string()).collect();
                    set.push(format!("data.path={}", path.display()));
                    set.push(format!("model.arch={arch}"));
                    set.push(format!("schedule.kind={schedule}"));
                    for key in ["data.split.seed", "partition.seed", "train.seed"] {
                        set.push(format!("{key}={seed}"));
                    }
                    set.extend(arguments.set.iter().cloned());
                    let config = Config::parse("", &set)?;
                    let summary = train(&config, Data::Configured, Options::default())?.summary;
                    figures.push(100.0 * summary.metrics.scores.test.get("accuracy").copied().flatten().unwrap_or(0.0));
                    bytes = summary.bytes.total;
                    seconds += summary.seconds.total;
                }
                let (mean, deviation) = mean_and_deviation(&figures);
                let (theirs, spread) = case.published[layer][column];
                println!(
                    "| {} | {} | {arch} | {schedule} | {mean:.1} ± {deviation:.1} | {theirs:.1} ± {spread:.1} \
                     | {:.1} MB | {:.1} |",
                    case.name,
                    case.split,
                    bytes as f64 / 1e6,
                    seconds / figures.len().max(1) as f64
                );
            }
        }
    }
    Ok(())
}

/// Mean and standard deviation of a sample.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
