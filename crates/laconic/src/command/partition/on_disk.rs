//! `laconic partition --memory`: cutting a graph that is never in memory.

use std::cell::Cell;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use laconic_graph::build::{BuildOptions, Duplicates};
use laconic_graph::external::{Cut, Job, cut};
use laconic_graph::info::one_hot;
use laconic_graph::partition::{PartitionerRegistry, Reads};
use laconic_graph::read::passes::{ArrayFolder, EdgeTable, Input, NpzPasses, TableOfNodes};
use laconic_graph::read::{Reader, edge_list, interchange};
use laconic_graph::roles::Roles;
use laconic_train::config::{DataConfig, FeaturePreparation};
use laconic_train::run::source::{Prepared, prepared_of};
use laconic_train::{Config, Members};

use super::{Partition, Partitioned};
use crate::command::data::not_written;
use crate::output::Output;
use crate::waiting::Ticker;

/// Cuts, in as much memory as is allowed.
pub(super) fn run(args: &Partition, config: &Config, memory: u64, output: &Output) -> Result<u8> {
    let started = Instant::now();
    let path = &args.data;
    let Some(out) = args.target.folder() else { bail!("--memory writes parts, so it needs --out") };
    if args.target.assignment_shown().is_some() {
        bail!("--assignment: with --memory there is none but in the parts");
    }
    if args.wishes.part_column.is_some() {
        bail!(
            "--part-column needs the graph in memory, and --memory does not read it whole; --file has a number a line"
        );
    }
    let Some(parts) = args.parts else { bail!("--memory needs --parts") };
    if let Some(flag) = args.preparation.needs_all() {
        bail!("{flag} needs the graph in memory, and --memory does not read it whole");
    }
    let kind = Members::default().partitioner(config)?;
    let options = config.partition.options();
    if (kind.reads)(&options) == Reads::Graph {
        let registry = PartitionerRegistry::default();
        let streams = registry.iter().filter(|kind| (kind.reads)(&options) != Reads::Graph);
        let names: Vec<&str> = streams.map(|kind| kind.name).collect();
        let cure = if kind.reads("clusterer") { ", or --clusterer streaming" } else { "" };
        bail!("--method {} needs the graph in memory; with --memory there are {}{cure}", kind.name, names.join(", "));
    }
    let (data, roles) = match with_nodes(args, config, memory, output)? {
        Some(found) => found,
        None => (without_nodes(args, config, memory, output)?, Roles::default()),
    };
    let DataConfig { symmetrise, keep_self_loops, duplicates, .. } = config.data;
    if duplicates == Duplicates::Error {
        bail!("--duplicates error needs the graph in memory, and --memory does not read it whole");
    }
    let how = BuildOptions { symmetrise, keep_self_loops, duplicates };
    let tell = teller(started, output);
    let job =
        Job { data: &*data, how, partitioner: (kind, &options), parts, seed: args.seed, memory, out, tell: &tell };
    let about = || format!("{} in {parts} parts", path.display());
    let Cut { quality, labels, memory } = cut(&job).map_err(not_written).with_context(about)?;
    super::say_not_kept(config, &quality, output)?;
    say_gone(&*data, how, quality.edges, output);
    let result = Partitioned {
        data: data.name(),
        nodes: data.nodes() as usize,
        method: args.method(),
        part_names: Vec::new(),
        seed: args.seed,
        seconds: started.elapsed().as_secs_f64(),
        out: Some(out.0.display().to_string()),
        assignment: None,
        roles,
        memory_planned: Some(memory),
        quality,
        labels,
        measured: None,
    };
    output.result(&result, &result)?;
    Ok(0)
}

/// Edges beside a node table, which is read whole and prepared as it is for a cut in memory.
fn with_nodes(
    args: &Partition,
    config: &Config,
    memory: u64,
    output: &Output,
) -> Result<Option<(Box<dyn Input>, Roles)>> {
    let path = &config.data.path;
    if ArrayFolder::recognises(path)
        || interchange::Interchange.recognises(path)
        || !edge_list::EdgeList.recognises(path)
    {
        return Ok(None);
    }
    let waiting = output.begins(format_args!("reading the nodes of {}", args.data.display()));
    let Some((mut tables, roles)) = TableOfNodes::open(path, &config.data.read_options())? else { return Ok(None) };
    let Prepared { dataset, split, roles, notes } = prepared_of(tables.take_nodes(), roles, &config.data)?;
    waiting.end();
    let notes = roles.notes().chain(notes).chain(one_hot(&dataset.labels));
    notes.for_each(|note| output.say(format_args!("note: {note}")));
    Ok(Some((Box::new(tables.with_nodes(dataset, split, memory)?), roles)))
}

/// Whatever else is read in passes: nothing is prepared.
fn without_nodes(args: &Partition, config: &Config, memory: u64, output: &Output) -> Result<Box<dyn Input>> {
    if let Some(flag) = args.preparation.needs_nodes() {
        bail!("{flag} needs the nodes in memory, and with --memory only those of a node table are (--nodes)");
    }
    let data = input(config, memory)?;
    if config.data.features == FeaturePreparation::Auto && !data.about().columns.is_empty() {
        output.say("note: features of the table stay as they are given: of an npz --memory standardises none");
    }
    Ok(data)
}

/// Says how many rows of a table are no edges of their own.
fn say_gone(data: &dyn Input, how: BuildOptions, edges: u64, output: &Output) {
    // Each edge is there in both directions where they are made, but for one from a node to itself.
    let edges = if how.symmetrise { edges.div_ceil(2) } else { edges };
    let is_known = !(how.symmetrise && how.keep_self_loops);
    let lost = data.lost();
    if lost > 0 {
        output.say(format_args!("note: {lost} rows name ids that are not among the nodes, or none, left out"));
    }
    let listed = data.listed().map(|rows| rows.saturating_sub(lost));
    if let Some(rows) = listed.filter(|rows| *rows > edges && is_known) {
        let gone = rows - edges;
        output.say(format_args!(
            "note: {gone} of {rows} rows are no edges of their own (from a node to itself, or listed before), left out"
        ));
    }
}

/// Says which step is under way: the first, then one every so often, as there are dozens, which may take no time each.
fn teller(started: Instant, output: &Output) -> impl Fn(&str) {
    let (last, ticker) = (Cell::new(None::<Instant>), output.ticker(started));
    move |text| {
        ticker.iter().for_each(|ticker| ticker.at(text.to_owned()));
        if last.get().is_none_or(|last| last.elapsed() >= output.every()) {
            output.say(format_args!("{:>8.1} s  {text}", started.elapsed().as_secs_f64()));
            ticker.iter().for_each(Ticker::said);
            last.set(Some(Instant::now()));
        }
    }
}

/// The data, if they are of a format that is read in passes.
fn input(config: &Config, memory: u64) -> Result<Box<dyn Input>> {
    let (path, options) = (&config.data.path, config.data.read_options());
    let is_edge_list = || edge_list::EdgeList.recognises(path);
    match ArrayFolder::recognises(path) {
        true => Ok(Box::new(ArrayFolder::open(path, &options.limits)?)),
        false if interchange::Interchange.recognises(path) => Ok(Box::new(NpzPasses::open(path, &options.limits)?)),
        false if is_edge_list() => Ok(Box::new(EdgeTable::open(path, &options, memory)?)),
        false => {
            let path = path.display();
            let known = "a folder of arrays with graph.json, an interchange npz or an edge list with integer ids";
            bail!("--memory: {path} is not {known}")
        }
    }
}

/// A size such as `12GB`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    laconic_train::config::parse_bytes(text)
        .ok_or_else(|| "expected bytes such as 12GB, \"1.5 GB\" or 800MiB".to_owned())
}
