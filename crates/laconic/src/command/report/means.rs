//! What several runs come to, in a title, a sentence and the table that their page opens with.

use std::collections::BTreeSet;

use super::run::Run;
use crate::bytes::{human_bytes, separated};
use crate::command::compare::outcome::{Comparison, Line, Run as Done, Spread};
use crate::command::compare::p;
use crate::page::table::Table;
use crate::plot::key;

/// Data, partition, and how much is compared.
pub fn title(comparison: &Comparison, runs: &[Run]) -> String {
    let methods = comparison.methods.len();
    let each = runs.len().checked_div(methods).unwrap_or(0);
    let is_even = comparison.methods.iter().all(|line| line.runs.len() == each);
    let counted = match (is_even, each) {
        _ if comparison.command.is_empty() && methods == runs.len() => format!("{methods} runs"),
        (true, 1) => format!("{methods} methods"),
        (true, _) => format!("{methods} methods, {each} runs each"),
        (false, _) => format!("{methods} methods, {} runs", runs.len()),
    };
    format!("{} in {}: {counted}", comparison.graph.dataset, partitions(runs))
}

fn partitions(runs: &[Run]) -> String {
    let partitions: BTreeSet<String> = runs.iter().map(Run::partition).collect();
    partitions.into_iter().collect::<Vec<String>>().join(" and ")
}

/// The seeds of all runs: of training, and of partition and split where they differ from the run file's.
fn seeds(comparison: &Comparison) -> String {
    let all = |seed: fn(&Done) -> Option<u64>| -> BTreeSet<u64> {
        comparison.methods.iter().flat_map(|line| &line.runs).filter_map(seed).collect()
    };
    let lists = [
        ("", all(|run| Some(run.seed))),
        (" of partition", all(|run| run.partition_seed)),
        (" of split", all(|run| run.split_seed)),
    ];
    let list = |(what, seeds): &(&str, BTreeSet<u64>)| {
        let named: Vec<String> = seeds.iter().map(u64::to_string).collect();
        let plural = if named.len() == 1 { "seed" } else { "seeds" };
        format!("{plural}{what} {}", named.join(", "))
    };
    lists.iter().filter(|(_, seeds)| !seeds.is_empty()).map(list).collect::<Vec<String>>().join("; ")
}

/// Data, partition, seeds, link and version in a sentence.
pub fn about(comparison: &Comparison, runs: &[Run]) -> String {
    let graph = &comparison.graph;
    let size = match graph.nodes {
        0 => String::new(),
        nodes => format!(" ({} nodes, {} edges)", separated(nodes), separated(graph.edges)),
    };
    let clock = match &comparison.link {
        Some(link) => format!("seconds are those of a model of the link {link}"),
        None => "seconds are real".to_owned(),
    };
    format!(
        "Data: {}{size}, {}; {}; {} of the round that validation chose; {clock}; laconic {}.",
        graph.dataset,
        partitions(runs),
        seeds(comparison),
        comparison.metric.as_deref().unwrap_or("nothing was tested, so no metric"),
        comparison.version
    )
}

/// The table that the page opens with, what matters most at its left. Columns that say nothing are left out.
pub fn table(comparison: &Comparison) -> Table {
    let metric = comparison.metric.as_deref().unwrap_or("metric");
    let has = |known: fn(&Line) -> bool| comparison.methods.iter().any(known);
    let several = has(|line| line.runs.len() > 1);
    let columns = [
        ("method", true),
        (metric, true),
        ("loss", comparison.is_by_loss()),
        ("training", true),
        ("fewer", true),
        ("front", has(|line| !marks(line).is_empty())),
        ("p", has(is_tested)),
        ("boundary", true),
        ("parameters", true),
        ("start-up", true),
        ("evaluation", true),
        ("rounds", has(|line| line.rounds.is_some())),
        ("cut", comparison.has_cuts()),
        ("seconds", true),
        ("memory", true),
        ("skipped", has(|line| line.skipped.unwrap_or(0.0) > 0.0)),
        ("runs", several),
    ];
    let kept = |cells: Vec<String>| cells.into_iter().zip(columns).filter(|(_, (_, is_shown))| *is_shown);
    let mut table = Table::new(&columns.iter().filter(|column| column.1).map(|column| column.0).collect::<Vec<_>>());
    for (style, line) in comparison.methods.iter().enumerate() {
        table.keys.push(key(style));
        table.rows.push(kept(row(line)).map(|(cell, _)| cell).collect());
    }
    table
}

/// All cells of a method, in the order of the columns.
fn row(line: &Line) -> Vec<String> {
    let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let bytes = |bytes: Option<f64>| known(bytes.map(|bytes| human_bytes(bytes.round() as u64)));
    vec![
        line.name.clone(),
        known(line.test.map(spread)),
        known(line.loss.map(spread)),
        bytes(line.training),
        known(line.fewer.map(|fewer| format!("{fewer:.1}x"))),
        marks(line),
        p(line),
        bytes(line.boundary),
        bytes(line.parameters),
        bytes(line.start_up),
        bytes(line.evaluation),
        known(line.rounds.map(|rounds| separated(rounds.round() as u64))),
        line.cut(),
        known(line.seconds.map(|seconds| format!("{seconds:.2}"))),
        bytes(line.memory),
        known(line.skipped.map(|skipped| separated(skipped.round() as u64))),
        line.runs.len().to_string(),
    ]
}

/// Whether there are enough runs for a test against the baseline.
fn is_tested(line: &Line) -> bool {
    line.against.as_ref().is_some_and(|against| !against.is_too_small())
}

/// On which fronts a method is, or that it learned nothing.
fn marks(line: &Line) -> String {
    let marks = [(line.front, "bytes"), (line.front_by_seconds, "time"), (line.is_constant, "chance")];
    let marks: Vec<&str> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, name)| name).collect();
    marks.join(", ")
}

fn spread(spread: Spread) -> String {
    match spread.sd {
        Some(sd) => format!("{:.4} ± {sd:.4}", spread.mean),
        None => format!("{:.4}", spread.mean),
    }
}

/// What the columns mean.
pub fn legend(comparison: &Comparison) -> String {
    let first = comparison.methods.first().map_or("", |line| line.name.as_str());
    let baseline = if comparison.baseline.is_empty() { first } else { comparison.baseline.as_str() };
    let judged = comparison.judged_by();
    let several = comparison.methods.iter().any(|line| line.runs.len() > 1);
    let means = if several { "Means over runs ± one standard deviation. " } else { "" };
    let mut text = format!(
        "{means}Training: all bytes but those of evaluations, that is boundary (rows of neighbours and their \
         gradients), parameters (their gradients, or models) and start-up. Fewer: times fewer of them than {baseline}. \
         Front: no other method is at least as good in {judged} and in these bytes, or in {judged} and in time, and \
         better in one."
    );
    if comparison.methods.iter().any(is_tested) {
        text += &format!(
            " p: permutation test (exact to 20 pairs) of differences from {baseline} with the same seeds, two-sided."
        );
    }
    if let Some(chance) = comparison.chance() {
        text += &format!(" Chance: {chance}.");
    }
    if let Some(said) = comparison.fallback() {
        text += &format!(" Note: {said}.");
    }
    text
}
