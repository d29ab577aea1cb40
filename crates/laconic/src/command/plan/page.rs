//! A plan as a page for those who have to agree to it, the egress report: what each worker sends and to whom, made of
//! which columns, once or in each round, and what that says of people.

use std::path::{Path, PathBuf};

use laconic_graph::about::{About, Reading, Scale};
use laconic_train::Config;
use laconic_train::config::MeansEvaluator;

use super::Costs;
use super::text::{by_words, name};
use crate::bytes::{human_bytes, separated};
use crate::page::Page;
use crate::page::table::Table;
use crate::typed::command_line;
use crate::visible::markdown as escaped;

/// Names of columns that are said.
const COLUMNS_SAID: usize = 200;

/// A piece of the page, whatever the page is written in.
enum Piece {
    Heading(String),
    Say(String),
    Table(Table),
}

/// A file whose name says what the page is written in.
pub(super) fn file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "md") => Ok(path),
        _ => Err("expected a name that ends in .html or .md".to_owned()),
    }
}

/// The page, as the file's name asks for it.
pub(super) fn text(path: &Path, costs: &Costs, what: (&Config, &About)) -> String {
    let pieces = pieces(costs, what);
    let data = what.0.data.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let title = format!("Egress report: {data}");
    if path.extension().is_some_and(|extension| extension == "md") {
        markdown(&title, &pieces)
    } else {
        html(&title, &pieces)
    }
}

fn html(title: &str, pieces: &[Piece]) -> String {
    let mut page = Page::default();
    for piece in pieces {
        match piece {
            Piece::Heading(text) => page.heading(text),
            Piece::Say(text) => page.say(text),
            Piece::Table(table) => page.table(table),
        }
    }
    page.finish(title)
}

fn markdown(title: &str, pieces: &[Piece]) -> String {
    let row =
        |cells: &[String]| format!("| {} |\n", cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join(" | "));
    let mut text = format!("# {}\n", escaped(title));
    for piece in pieces {
        match piece {
            Piece::Heading(heading) => text += &format!("\n## {}\n", escaped(heading)),
            Piece::Say(said) => text += &format!("\n{}\n", escaped(said)),
            Piece::Table(table) => {
                text += &format!("\n{}|{}\n", row(&table.head), "---|".repeat(table.head.len()));
                table.rows.iter().for_each(|cells| text += &row(cells));
            }
        }
    }
    text
}

fn pieces(costs: &Costs, (config, about): (&Config, &About)) -> Vec<Piece> {
    let (most, known) = match (costs.bytes, costs.is_bound) {
        (None, _) => ("at least ", "Each mean of models takes more, and a time decides how many there are."),
        (_, true) => ("at most ", "It may send less, never more."),
        (_, false) => ("exactly ", "The run counts what it sends and compares."),
    };
    let mut pieces = vec![
        Piece::Say(format!(
            "A run of {} over {} sends {most}{} in all ({} bytes). {known} Nothing has run yet: it \
             was computed from the configuration and the sizes of the parts, by laconic {}, with the command {}",
            config.data.path.display(),
            whose(costs),
            human_bytes(costs.least.framed),
            separated(costs.least.framed),
            env!("CARGO_PKG_VERSION"),
            command_line()
        )),
        Piece::Heading("What leaves each".to_owned()),
        Piece::Table(leaving(costs)),
        Piece::Heading("What features are made of".to_owned()),
    ];
    pieces.extend(features(costs, about).into_iter().map(Piece::Say));
    pieces.push(Piece::Heading("What that says of people".to_owned()));
    pieces.extend(of_people(costs).into_iter().map(Piece::Say));
    pieces.push(Piece::Heading("What does not leave".to_owned()));
    pieces.push(Piece::Say(stays(costs)));
    if !costs.notes.is_empty() {
        pieces.push(Piece::Heading("Notes".to_owned()));
        pieces.extend(costs.notes.iter().map(|note| Piece::Say(format!("{note}."))));
    }
    pieces
}

fn whose(costs: &Costs) -> String {
    match costs.part_names.is_empty() {
        true => format!("{} parts", costs.workers - usize::from(costs.averaging.is_some())),
        false => format!("the parts {}", costs.part_names.join(", ")),
    }
}

/// Who sends what to whom, how often, in how many bytes.
fn leaving(costs: &Costs) -> Table {
    let mut table = Table::new(&["from", "to", "what", "bytes"]);
    table.words = 3;
    for &rank in &costs.ranks {
        for (words, [peers, bytes]) in by_words(costs, rank) {
            let to = peers.strip_prefix("to ").unwrap_or(&peers).to_owned();
            table.rows.push(vec![name(costs, rank), to, words, bytes]);
        }
    }
    table
}

/// Whether something of this name leaves somebody.
fn leaves(costs: &Costs, what: &str) -> bool {
    costs.leaves.iter().any(|leaves| leaves.what == what)
}

/// The columns behind the numbers of a node, and whether and how often they cross.
fn features(costs: &Costs, about: &About) -> Vec<String> {
    let of_rows = costs.leaves.iter().filter(|leaves| leaves.what == "features");
    let often = of_rows.map(|leaves| leaves.frames).max();
    let mut said = vec![match often {
        None => "Features never leave their owner in this run.".to_owned(),
        Some(1) => "Features of nodes that others have edges from cross once.".to_owned(),
        Some(often) => format!("Features of nodes that others have edges from cross {} times.", separated(often)),
    }];
    let columns: Vec<String> = match about.columns.is_empty() {
        true => about.features.clone(),
        false => about.columns.iter().map(|column| column.name.clone()).collect(),
    };
    said.push(match columns.len() {
        0 => "The data do not say what their columns are called.".to_owned(),
        count => {
            let shown = columns.iter().take(COLUMNS_SAID).cloned().collect::<Vec<_>>().join(", ");
            let more = count.saturating_sub(COLUMNS_SAID);
            let more = if more > 0 { format!(" and {} more", separated(more as u64)) } else { String::new() };
            format!("They are made of the columns {shown}{more}.")
        }
    });
    let texts = about.columns.iter().filter_map(|column| match &column.reading {
        Reading::Category { values } => Some(format!("{} ({})", column.name, separated(values.len() as u64))),
        _ => None,
    });
    let texts: Vec<String> = texts.take(COLUMNS_SAID).collect();
    if !texts.is_empty() {
        said.push(format!(
            "meta.json, which every owner of a part has, holds the texts of categories: {}. A rare text may be \
             somebody's; --ignore leaves a column out when the graph is cut.",
            texts.join(", ")
        ));
    }
    if let Scale::Standardised { .. } = about.scale {
        said.push(
            "They are standardised: whoever has the model has each column's mean and deviation, and can turn a \
             feature back into the number of the table."
                .to_owned(),
        );
    }
    said
}

/// What a lawyer asks: ids, scores, and what can be worked out from the rest.
fn of_people(costs: &Costs) -> Vec<String> {
    let mut said = Vec::new();
    match costs.averaging.as_ref().map(|averaging| averaging.evaluator) {
        None => {}
        Some(MeansEvaluator::Aggregator) => said.push(
            "The aggregator evaluates each mean on the whole graph, so it has to have the data of all parts: the run \
             does not send them there, and they are there all the same."
                .to_owned(),
        ),
        Some(MeansEvaluator::Workers) => said.push(
            "The aggregator holds no part. All workers evaluate each mean together, each for its own nodes; what \
             crosses for that is listed as for evaluations."
                .to_owned(),
        ),
    }
    let of_ids = ["ids_asked", "digests_of_ids", "rows_needed", "ids_of_ends", "draws"];
    if of_ids.iter().any(|what| leaves(costs, what)) {
        said.push(
            "Ids that cross are numbers of nodes in the data that were cut (rows of a node table), not what a column \
             of ids holds. Who has those data knows whose they are; and to ask for a node is to say that one has an \
             edge from it."
                .to_owned(),
        );
    }
    if leaves(costs, "class_scores") || leaves(costs, "scores_and_labels") {
        said.push(
            "Class scores are what the model predicts of a node. Where nodes are persons they are predictions about \
             persons, and personal data as their features are."
                .to_owned(),
        );
    }
    if ["hidden_rows", "learned_columns", "embeddings", "gradients_of_rows"].iter().any(|what| leaves(costs, what)) {
        said.push(
            "Hidden rows, embeddings and gradients are computed from features and neighbours of single nodes. They \
             are not encrypted and have no noise, so something of what they were made of can be worked out from them."
                .to_owned(),
        );
    }
    said.push(
        "Gradients, models and their means are sums over many nodes, without a promise of privacy (such as \
         differential privacy): something of rare nodes may be worked out from them, too."
            .to_owned(),
    );
    said.push("Nothing here is encrypted on its way by the program itself.".to_owned());
    said
}

/// What nothing of the list above holds.
fn stays(costs: &Costs) -> String {
    let labels = match leaves(costs, "scores_and_labels") {
        true => "labels of training nodes",
        false => "labels of single nodes",
    };
    let features = if leaves(costs, "features") { "" } else { "features, " };
    format!(
        "Nothing else does: not {features}{labels}, ids as a column holds them, nor edges between the nodes of one \
         owner{}.",
        if leaves(costs, "draws") || leaves(costs, "pairs") { ", but for those that the list names" } else { "" }
    )
}
