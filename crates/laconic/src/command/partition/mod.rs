//! `laconic partition`: who owns which node, what that costs, and the folder of parts.

mod measured;
mod on_disk;
mod preparation;
mod split;
mod table;
mod target;

use std::fmt;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValuesParser;
use laconic_graph::dataset::{Dataset, Split};
use laconic_graph::info::one_hot;
use laconic_graph::part::Provenance;
use laconic_graph::partition::{
    GIVEN, Objective, PartitionerKind, PartitionerRegistry, Quality, RULES, clusterers, quality,
};
use laconic_graph::read::assignment::is_table;
use laconic_graph::roles::Roles;
use laconic_graph::skew::{LabelCounts, LabelSkew};
use laconic_train::config::PartitionConfig;
use laconic_train::run::source::{Prepared, assigned, idle_key, prepared_to_cut};
use laconic_train::{Config, Members};
use schemars::JsonSchema;
use serde::Serialize;

use crate::command::data::flag;
use crate::command::mistaken::refuse_in_place_of_data;
use crate::output::Output;

/// What to cut, how, and where the parts go.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Partition {
    /// The dataset, in any format that `laconic data info` reads
    #[arg(value_name = "DATA")]
    data: PathBuf,
    /// The number of parts, one worker each [default: as many as --part-column or a table --file names]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=4096),
        required_unless_present_any = ["part_column", "file"])]
    parts: Option<u32>,
    /// How to cut: random (each node anywhere), multilevel (METIS: few edges between parts), super_node (clusters
    /// assigned at random), streaming (few edges, in passes that need no graph in memory), given (from --part-column or
    /// --file) [default: random, or given where one of these is there]
    #[arg(long, value_parser = PossibleValuesParser::new(PartitionerRegistry::default().names()))]
    method: Option<String>,
    /// The seed of what the method draws; given draws nothing
    #[arg(long, default_value_t = PartitionConfig::default().seed)]
    seed: u64,
    /// Cut on the disk, in at most so much memory, such as 12GB: the data are a folder of arrays (graph.json,
    /// edges-*.npy, …), an interchange npz or an edge list, and never in memory but for a node table. Goes on where an
    /// earlier call was ended
    #[arg(long, value_name = "SIZE", value_parser = on_disk::parse_size)]
    memory: Option<u64>,
    /// Also measure how alike parts are for who learns on each: total variation of labels (of clusters of features
    /// where there are none), and how far the gradients of a small model differ
    #[arg(long, conflicts_with = "memory")]
    measure: bool,
    #[command(flatten)]
    wishes: Wishes,
    #[command(flatten)]
    target: target::Target,
    #[command(flatten)]
    preparation: preparation::Preparation,
}

/// Flags of one method only. Optional, so that one that would do nothing can be refused.
#[derive(clap::Args)]
struct Wishes {
    /// Multilevel: make the number of cut edges or the number of halo rows small [default: cut]
    #[arg(long, value_parser = Objective::ALL.map(Objective::name))]
    objective: Option<String>,
    /// Multilevel: balance training nodes too
    #[arg(long)]
    balance_train: bool,
    /// Multilevel, super_node, streaming: balance the edges that end at a part's nodes too
    #[arg(long)]
    balance_edges: bool,
    /// Multilevel, super_node, streaming: how much larger than the mean a part may be [default: 0.05]
    #[arg(long, value_name = "SHARE")]
    imbalance: Option<f64>,
    /// Super_node: clusters to assign [default: 15000, or a 64th of the nodes]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    clusters: Option<u32>,
    /// Super_node: what makes the clusters [default: multilevel]
    #[arg(long, value_parser = clusterers().map(|(name, _)| name))]
    clusterer: Option<String>,
    /// Streaming, also for super_node's clusters: how nodes find their parts [default: clusters]
    #[arg(long, value_parser = RULES)]
    rule: Option<String>,
    /// Streaming, also for super_node's clusters: how often it goes through the edges [default: 10]
    #[arg(long, value_name = "COUNT")]
    passes: Option<u32>,
    /// Given: a table with the columns id and part, in any order of rows; or one part number a line for the node of
    /// that row, or an .npy
    #[arg(long, value_name = "ASSIGNMENT")]
    file: Option<PathBuf>,
    /// Given: the column of the node table (or of --file) that says which part each node belongs to, such as region;
    /// parts keep its names. It is no feature then, unless --features-columns names it
    #[arg(long, value_name = "COLUMN")]
    part_column: Option<String>,
}

const EXAMPLES: &str = "\
Without --out it only prints what the partition costs.

Examples:
  laconic partition cora.npz --parts 4 --method multilevel
  laconic partition cora.npz --parts 4 --method multilevel --split train=20,val=500 --out cora-4
  laconic partition cora.npz --parts 4 --method super_node --clusters 100 --out cora-4
  laconic partition web-arrays --parts 64 --method streaming --memory 12GB --out web-64
  laconic partition roads.graph --parts 8 --method given --file roads.graph.part.8 --out roads-8
  laconic partition calls.csv --nodes customers.csv --part-column region --out regions";

/// What a partition costs.
#[derive(Serialize, JsonSchema)]
pub struct Partitioned {
    /// The dataset.
    data: String,
    /// How many nodes there are.
    nodes: usize,
    /// `partition.method`.
    method: String,
    /// (parts that have names) What each part is called, in the order of their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    part_names: Vec<String>,
    /// `partition.seed`.
    seed: u64,
    /// Reading, cutting and writing.
    seconds: f64,
    /// The folder of parts, or null.
    out: Option<String>,
    /// The file with the number of each node's part, or null.
    assignment: Option<String>,
    /// (tables) What became of each column.
    roles: Roles,
    /// (`--memory`) Bytes that the cut was said to take at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_planned: Option<u64>,
    #[serde(flatten)]
    quality: Quality,
    /// (labelled training nodes) How their labels are spread.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<LabelSkew>,
    /// (`--measure`) How alike the parts are for who learns on them.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<measured::Measured>,
}

/// Cuts the graph, says what that costs, and writes what was asked for.
pub fn run(args: Partition, output: &Output) -> Result<u8> {
    let started = Instant::now();
    let config = args.config()?;
    refuse_in_place_of_data(&args.data)?;
    args.target.check()?;
    args.check_who()?;
    if let Some((key, format)) = idle_key(&config.data) {
        bail!("{} belongs to an edge list, but {} is {format}", flag(key), args.data.display());
    }
    if let Some(memory) = args.memory {
        return on_disk::run(&args, &config, memory, output);
    }
    let Prepared { dataset, split, roles, .. } = args.read(&config, output)?;
    let nodes = dataset.graph.nodes();
    let waiting = output.begins(format_args!("assigning {nodes} nodes to parts"));
    let assigned = assigned(&Members::default(), &config, &dataset, split, None)
        .with_context(|| args.data.display().to_string())?;
    waiting.end();
    assigned.notes.iter().for_each(|note| output.say(format_args!("note: {note}")));
    let (assignment, parts) = (&assigned.of[..], assigned.parts);
    let about = || format!("{} in {parts} parts", args.data.display());
    let quality = measure(&dataset, split, assignment, parts).with_context(about)?;
    say_not_kept(&config, &quality, output)?;
    let labels = label_skew(&dataset, split, assignment, parts);
    let waiting = args.measure.then(|| output.begins("measuring"));
    let measured = match &waiting {
        Some(_) => measured::measured(&dataset, split, assignment, parts, args.seed).with_context(about)?,
        None => None,
    };
    drop(waiting);
    let provenance = Provenance { method: config.partition.method.clone(), seed: args.seed };
    let skew = labels.as_ref().map(|labels| labels.skew);
    let waiting = output.begins("writing");
    args.target.write((&dataset, split), (&assigned, skew), &provenance, output)?;
    waiting.end();
    let result = Partitioned {
        data: dataset.name,
        nodes,
        method: provenance.method,
        part_names: assigned.names,
        seed: args.seed,
        seconds: started.elapsed().as_secs_f64(),
        out: args.target.out_shown(),
        assignment: args.target.assignment_shown(),
        roles,
        memory_planned: None,
        quality,
        labels,
        measured,
    };
    output.result(&result, &result)?;
    Ok(0)
}

/// Says what parts were to be and are not.
fn say_not_kept(config: &Config, quality: &Quality, output: &Output) -> Result<()> {
    let kind = Members::default().partitioner(config)?;
    let notes = quality.not_kept(kind, &config.partition.options());
    notes.iter().for_each(|note| output.say(format_args!("note: {note}")));
    Ok(())
}

fn label_skew(dataset: &Dataset, split: Option<usize>, assignment: &[u32], parts: u32) -> Option<LabelSkew> {
    let mut counts = LabelCounts::default();
    counts.reserve(parts as usize);
    counts.see(&dataset.labels, &dataset.splits[split?].roles, |node| assignment[node]);
    counts.finish()
}

fn measure(dataset: &Dataset, split: Option<usize>, assignment: &[u32], parts: u32) -> Result<Quality> {
    let roles = split.map(|index| dataset.splits[index].roles.as_slice());
    Ok(quality(&dataset.graph, assignment, parts, roles, dataset.features.columns())?)
}

impl Partition {
    /// Reads and prepares the data, and says what is to be noted of them.
    fn read(&self, config: &Config, output: &Output) -> Result<Prepared> {
        let waiting = output.begins(format_args!("reading {}", self.data.display()));
        let prepared = prepared_to_cut(config)?;
        waiting.end();
        let Prepared { dataset, split, roles, notes } = &prepared;
        let notes = roles.notes().chain(notes.iter().cloned()).chain(one_hot(&dataset.labels));
        notes.for_each(|note| output.say(format_args!("note: {note}")));
        let learned_from = split.map_or(0, |index| dataset.splits[index].count(Split::TRAIN));
        if config.partition.balance_train && learned_from == 0 {
            bail!("--balance-train: {} has no training nodes; --split draws some", self.data.display());
        }
        if dataset.graph.has_one_way_edges() {
            output.say("note: some edges have one direction only; --symmetrise adds the other");
        }
        Ok(prepared)
    }

    /// Whether it is said who owns what, where that is to be given, and how many they are.
    fn check_who(&self) -> Result<()> {
        match (&self.wishes.part_column, &self.wishes.file) {
            (None, None) if self.method() == GIVEN => bail!("--method {GIVEN} needs --file or --part-column"),
            (None, Some(file)) if self.parts.is_none() && !is_table(file)? => bail!(
                "--parts: how many? A list of numbers may leave out the last part, so {} does not say",
                file.display()
            ),
            _ => Ok(()),
        }
    }

    /// The method, which follows from who says what.
    fn method(&self) -> String {
        let is_given = self.wishes.part_column.is_some() || self.wishes.file.is_some();
        self.method.clone().unwrap_or_else(|| match is_given {
            true => GIVEN.to_owned(),
            false => PartitionConfig::default().method,
        })
    }

    /// The sections of a run's configuration that say the same, checked.
    fn config(&self) -> Result<Config> {
        self.refuse_idle_options()?;
        let Wishes {
            objective,
            balance_train,
            balance_edges,
            imbalance,
            file,
            part_column,
            clusters,
            clusterer,
            rule,
            passes,
        } = &self.wishes;
        let default = PartitionConfig::default();
        let partition = PartitionConfig {
            parts: self.parts.unwrap_or(0),
            method: self.method(),
            seed: self.seed,
            objective: objective.clone().unwrap_or(default.objective),
            balance_train: *balance_train,
            balance_edges: *balance_edges,
            imbalance: imbalance.unwrap_or(default.imbalance),
            file: file.clone(),
            column: part_column.clone(),
            clusters: clusters.unwrap_or(default.clusters),
            clusterer: clusterer.clone().unwrap_or(default.clusterer),
            rule: rule.clone().unwrap_or(default.rule),
            passes: passes.unwrap_or(default.passes),
            // Parts are what they are whatever order workers keep them in.
            order: default.order,
            own: default.own,
        };
        let config = Config { data: self.preparation.config(&self.data), partition, ..Config::default() };
        config.check()?;
        Ok(config)
    }

    /// A flag that does nothing would hide a mistake.
    fn refuse_idle_options(&self) -> Result<()> {
        let Wishes {
            objective,
            balance_train,
            balance_edges,
            imbalance,
            file,
            part_column,
            clusters,
            clusterer,
            rule,
            passes,
        } = &self.wishes;
        let flags = [
            ("--objective", objective.is_some(), "objective"),
            ("--balance-train", *balance_train, "balance_train"),
            ("--balance-edges", *balance_edges, "balance_edges"),
            ("--imbalance", imbalance.is_some(), "imbalance"),
            ("--file", file.is_some(), "file"),
            ("--part-column", part_column.is_some(), "column"),
            ("--clusters", clusters.is_some(), "clusters"),
            ("--clusterer", clusterer.is_some(), "clusterer"),
            ("--rule", rule.is_some(), "rule"),
            ("--passes", passes.is_some(), "passes"),
        ];
        let registry = PartitionerRegistry::default();
        let method = registry.get(&self.method())?;
        let Some((flag, _, key)) = flags.iter().find(|(_, given, key)| *given && !method.reads(key)) else {
            return self.refuse_idle_options_of_clusterers(method, &flags);
        };
        let readers: Vec<&str> = registry.iter().filter(|kind| kind.reads(key)).map(|kind| kind.name).collect();
        bail!("{flag} belongs to --method {}, not to {}", readers.join(" or "), self.method())
    }

    fn refuse_idle_options_of_clusterers(&self, method: &PartitionerKind, flags: &[(&str, bool, &str)]) -> Result<()> {
        let ours = clusterers();
        let chosen = self.wishes.clusterer.as_deref().unwrap_or(ours[0].0);
        for (reader, options) in ours.into_iter().filter(|(name, _)| method.reads("clusterer") && *name != chosen) {
            if let Some((flag, ..)) = flags.iter().find(|(_, given, key)| *given && options.contains(key)) {
                bail!("{flag} belongs to --clusterer {reader}, not to {chosen}");
            }
        }
        Ok(())
    }
}

impl fmt::Display for Partitioned {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "{} in {} parts by {}, {:.2} s", self.data, self.quality.parts.len(), self.method, self.seconds)?;
        write!(f, "{}", table::table(&self.quality, &self.part_names, self.labels.as_ref()))?;
        if let Some(measured) = &self.measured {
            write!(f, "\n{measured}")?;
        }
        for written in self.out.iter().chain(&self.assignment) {
            write!(f, "\nwrote       {written}")?;
        }
        Ok(())
    }
}
