//! `laconic predict`: what a trained model says about every node, keyed by the user's ids.

mod alike;
mod candidates;
mod figures;
mod links;
mod pairs;
mod parquet_file;
mod passing;
mod relations;
mod table;
mod text_file;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use laconic_graph::aside::write_aside;
use laconic_train::config::{DataConfig, MessagesConfig};
use laconic_train::record::card::Card;
use laconic_train::record::summary::chosen_messages;
use laconic_train::record::weights::{self, Model};
use laconic_train::run::other::open_other;
use laconic_train::run::predict::Prediction;
use laconic_train::run::source::Source;
use laconic_train::{Config, Members, TrainError};
use schemars::JsonSchema;
use serde::Serialize;

use self::alike::{all_alike, all_equal};
use self::candidates::Candidates;
use self::figures::{Figures, SPLITS, figures};
use self::links::{Embedded, Judged};
use self::pairs::{Asked, Names, Wanted};
use self::passing::Passing;
use self::relations::Relations;
use self::table::Table;
use super::data::{Reading, refuse_occupied};
use super::signals::clean_up;
use crate::bytes::{figure, human_bytes};
use crate::output::Output;

/// Arguments of `predict`.
#[derive(Args)]
#[command(after_help = COLUMNS)]
// Of the two things that are called so the older one keeps the name: the relation that targets are asked for.
#[command(mut_arg("relation", |column| column.long("relation-column")))]
pub struct Predict {
    /// The run's folder
    dir: PathBuf,
    /// The file to write: .parquet, .csv or .jsonl
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Also write what the last layer reads, as columns emb_0, emb_1, …
    #[arg(long)]
    embeddings: bool,
    /// Other data than the run's, in any format that `laconic data info` reads, or a folder of parts; they need no
    /// labels and no split, and are prepared as the run's were
    #[arg(long, value_name = "PATH")]
    data: Option<PathBuf>,
    /// Of a folder of parts, this one alone with the edges between its nodes
    #[arg(long, value_name = "K", requires = "data", conflicts_with = "workers")]
    part: Option<u32>,
    /// How many workers predict [default: as many as trained; 1 for other data; one for each part of a folder]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    workers: Option<u32>,
    /// What workers send each other: every row as it is, or what the run was judged with [default: as-trained for the
    /// run's data, exact for other]
    #[arg(long, value_enum)]
    messages: Option<Messages>,
    /// Replace an existing file, and start even if there may be too little memory
    #[arg(long)]
    force: bool,
    /// A model of links: score the pairs of this file, CSV or TSV: a source and a target a line, by the ids of the
    /// data, and a relation where the decoder tells relations apart; with a first line of names, further columns are
    /// left out
    #[arg(long, value_name = "FILE", conflicts_with = "best")]
    pairs: Option<PathBuf>,
    /// A model of links: list so many best targets for each node of --of, of the types of nodes that edges lead to from
    /// its type, known edges among them
    #[arg(long, value_name = "K", requires = "of", value_parser = clap::value_parser!(u32).range(1..))]
    best: Option<u32>,
    /// The nodes for --best
    #[arg(long, value_name = "ID", requires = "best")]
    of: Vec<String>,
    /// Leave out targets that the node has an edge to already, those that the run held out among them
    #[arg(long, requires = "best")]
    new: bool,
    /// A model of links: which edges pass messages: all; those that the run's task.split leaves to training; or those
    /// that other data do not hold out themselves, so that the held-out ones can be judged [default: training for the
    /// run's data; for other given where they hold some out, else all]
    #[arg(long, value_enum)]
    edges: Option<Passing>,
    /// The relation for --best, by its name or number in the data, where the decoder tells relations apart
    #[arg(id = "best_relation", long = "relation", value_name = "NAME", requires = "best")]
    relation: Option<String>,
    #[command(flatten)]
    reading: Reading,
}

const COLUMNS: &str = "\
Columns: id, pred (the number of the class), class (its name), label (the true class) and split where they are known,
prob_0, prob_1, … in the order of classes, and emb_0, … if asked for. With several labels a node: pred_0, pred_1, …, and
class and label are the names of all of them with ';' between. The metadata of a Parquet file say of which model and
data it is, and what the classes are called. Of a model of links: source, target, score and probability, and behind the
target the relation where the decoder tells relations apart; for --pairs in the order of the file, for --best from the
best on; .csv or .jsonl. Without either all edges that are held out are scored. Wherever some are held out and pass no
messages, figures of theirs are printed: those of train.metrics, as in training (val and test).

Examples:
  laconic predict runs/gcn --out predictions.parquet
  laconic predict runs/gcn --data new_calls.csv --nodes new_people.csv --out new.csv
  laconic predict runs/links --best 10 --of ann --of bob --out best.csv
  laconic predict runs/typed --best 10 --of ann --relation pays --out best.csv";

/// What workers send each other.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Messages {
    /// Every row as it is
    Exact,
    /// What the run's own figures were taken with
    AsTrained,
}

/// The predictions that were written.
#[derive(Serialize, JsonSchema)]
pub struct Written {
    /// What was written.
    path: PathBuf,
    /// How many nodes were predicted.
    nodes: usize,
    /// Bytes of the file.
    bytes: u64,
    /// How many workers there were.
    workers: usize,
    /// `exact`, or `as-trained`: what workers sent each other.
    messages: Messages,
    /// Figures by split, and of all nodes whose label is known (`labelled`): those that have such nodes; null where
    /// one is not defined.
    #[schemars(extend("x-name" = "SPLIT.METRIC"))]
    figures: Figures,
    /// What the model's classes are called; none where they have no names.
    class_names: Vec<String>,
    /// What is to be said of the predictions, such as that all nodes were given one class.
    notes: Vec<String>,
    /// The digest of its parameters.
    model: String,
    /// The digest of what was predicted, as `data info` says it.
    data_digest: String,
}

/// The same of pairs, with figures of edges that are held out.
#[derive(Serialize, JsonSchema)]
pub struct WrittenPairs {
    /// What was written.
    path: PathBuf,
    /// How many pairs were scored.
    pairs: usize,
    /// Bytes of the file.
    bytes: u64,
    /// How many workers there were.
    workers: usize,
    /// `exact`, or `as-trained`: what workers sent each other.
    messages: Messages,
    #[serde(flatten)]
    judged: Judged,
    /// The digest of its parameters.
    model: String,
    /// The digest of what was predicted, as `data info` says it.
    data_digest: String,
}

/// Predicts every node with the weights of the best round and writes the table.
pub fn run(arguments: Predict, output: &Output) -> Result<u8> {
    let config_path = arguments.dir.join("config.toml");
    let mut config = Config::load(&config_path, &[])
        .with_context(|| format!("{} is not the folder of a run", arguments.dir.display()))?;
    let asked = arguments.asked(&config)?;
    let write = writer(&arguments.out)?;
    refuse_occupied(&arguments.out, arguments.force)?;
    let model = weights::read_of_run(&arguments.dir)?;
    let messages = arguments.choose_messages(&mut config)?;
    let source = arguments.source(&mut config, &model.card, output)?;
    arguments.choose_edges(&mut config, &source, output)?;
    source.notes().iter().for_each(|note| output.say(note));
    let prediction = Prediction::of((&Members::default(), &config), source, model.widths())?;
    prediction.notes().iter().for_each(|note| output.say(format!("note: {note}")));
    if let Some(warning) = prediction.admit(arguments.force)? {
        output.say(format!("warning: {warning}"));
    }
    let (workers, data_digest) = (prediction.workers(), prediction.data_digest().to_owned());
    if arguments.data.is_none() && data_digest != model.card.data_digest {
        output.say("note: the data are not what they were when the model was trained");
    }
    let relations = prediction.plan().links.as_ref().and_then(|links| Relations::of(&model.card, links.relations));
    let wanted = asked.map(|asked| wanted(&asked, &prediction, (relations.as_ref(), output))).transpose()?;
    output.say(format!("predicting with {workers} worker{}", if workers == 1 { "" } else { "s" }));
    let plan = prediction.plan().clone();
    let candidates = wanted.as_ref().and_then(|(_, wanted)| arguments.candidates(wanted, &prediction));
    let predictions = prediction.run(&model.weights).map_err(|error| error.within(&arguments.dir))?;
    if let Some((names, wanted)) = wanted {
        let embedded = Embedded::of((names, relations), &predictions);
        let judged = Judged::of(&predictions);
        judged.notes.iter().for_each(|note| output.say(format!("note: {note}")));
        let scored = embedded.score((&plan, &model.weights), wanted, candidates.as_ref())?;
        all_equal(scored.scores()).into_iter().for_each(|what| output.say(format!("note: {what}")));
        let path = arguments.out.clone();
        let is_csv = extension(&path) == "csv";
        let bytes = written_to(&path, |file| embedded.write(&scored, file, is_csv))?;
        let text = format!("{} pairs in {} ({}){judged}", scored.len(), path.display(), human_bytes(bytes));
        let (pairs, model) = (scored.len(), model.card.digest);
        output.result(text, &WrittenPairs { path, pairs, bytes, workers, messages, judged, model, data_digest })?;
        return Ok(0);
    }
    let figures = figures(&predictions, &config.train.metrics);
    let alike = all_alike(&predictions, |class| model.card.about.class(class));
    alike.iter().for_each(|what| output.say(format!("note: {what}")));
    let mut table = Table::of(&predictions, &model.card, arguments.embeddings)?;
    table.metadata = metadata(&model, &data_digest, messages)?;
    let path = arguments.out;
    let bytes = written_to(&path, |file| write(&table, file))?;
    let class_names = model.card.about.classes;
    let (nodes, model) = (table.rows(), model.card.digest);
    let notes = alike.into_iter().collect();
    let written = Written { path, nodes, bytes, workers, messages, figures, class_names, notes, model, data_digest };
    output.result(describe(&written), &written)?;
    Ok(0)
}

/// Writes a file in its place once it is whole, and returns how many bytes it has.
fn written_to(path: &Path, write: impl FnOnce(&mut File) -> anyhow::Result<()>) -> Result<u64> {
    clean_up(path)?;
    // What the system says comes wrapped by the format's own errors.
    write_aside(path, write).map_err(|error| TrainError::file(path, error.root_cause().to_string()))?;
    Ok(std::fs::metadata(path).map_err(|source| TrainError::io(path, source))?.len())
}

impl Predict {
    /// The pairs that a model of links is asked for; `None` for another model.
    fn asked(&self, config: &Config) -> Result<Option<Asked<'_>>> {
        let is_of_links = Members::default().task(config)?.of_pairs;
        match (is_of_links, &self.pairs, self.best) {
            (false, None, None) => Ok(None),
            (false, ..) => bail!("--pairs and --best are for models of links: this one predicts classes of nodes"),
            (true, ..) if extension(&self.out) == "parquet" || self.embeddings => {
                bail!("scores of pairs are written to .csv or .jsonl, without embeddings")
            }
            (true, Some(path), _) => Ok(Some(Asked::File(path))),
            (true, None, None) => Ok(Some(Asked::Held)),
            (true, None, Some(best)) => Ok(Some(Asked::Best(best as usize, &self.of, self.relation.as_deref()))),
        }
    }

    /// Has workers send the messages that were asked for; which these are.
    fn choose_messages(&self, config: &mut Config) -> Result<Messages> {
        let usual = if self.data.is_some() { Messages::Exact } else { Messages::AsTrained };
        let messages = self.messages.unwrap_or(usual);
        match (messages, chosen_messages(&self.dir, config)?) {
            (Messages::Exact, _) => config.messages = MessagesConfig::default(),
            (Messages::AsTrained, Some(chosen)) => config.messages = chosen,
            (Messages::AsTrained, None) => {}
        }
        Ok(messages)
    }

    /// What may be best, where that is asked for.
    fn candidates(&self, wanted: &Wanted, prediction: &Prediction) -> Option<Candidates> {
        match wanted {
            Wanted::Best(_, sources, relation) => {
                Some(Candidates::of(prediction.parts(), sources, *relation, !self.new))
            }
            Wanted::Pairs(_) => None,
        }
    }

    /// Has the edges pass messages that were asked for.
    fn choose_edges(&self, config: &mut Config, source: &Source, output: &Output) -> Result<()> {
        if Members::default().task(config)?.of_pairs {
            return passing::choose((self.edges, self.data.is_some()), config, (source, output));
        }
        if self.edges.is_some() {
            bail!("--edges is for models of links: in this one all edges pass messages");
        }
        Ok(())
    }

    /// The parts to predict: of the run's own data, or of others.
    fn source(&self, config: &mut Config, card: &Card, output: &Output) -> Result<Source> {
        let Some(path) = &self.data else {
            if self.reading.is_given() {
                bail!("how data are read is for --data: the run's own are read as they were");
            }
            config.partition.parts = self.workers.unwrap_or(config.partition.parts);
            return Ok(Source::open(&Members::default(), config, None)?);
        };
        output.say(format_args!("reading {}", path.display()));
        self.reading.refuse_idle_options(path)?;
        if !card.about.columns.is_empty() {
            self.reading.refuse_other_features()?;
        }
        // Columns are called as the run's were where nothing else is said; the model knows which become features.
        let own = DataConfig { features_columns: Vec::new(), ignore: Vec::new(), ..config.data.clone() };
        let options = self.reading.over(own).read_options();
        Ok(open_other(&Members::default(), config, path, &options, card, self.workers, self.part)?)
    }
}

/// The pairs that are asked for, found before anything is computed.
fn wanted(
    asked: &Asked<'_>,
    prediction: &Prediction,
    (relations, output): (Option<&Relations>, &Output),
) -> Result<(Names, Wanted)> {
    let names = Names::of(prediction.parts())?;
    let (wanted, notes) = match (asked, &prediction.plan().links) {
        (Asked::Held, Some(links)) => (Wanted::Pairs(pairs::held(prediction.parts(), links)?), Vec::new()),
        _ => names.find(asked, relations)?,
    };
    notes.iter().for_each(|note| output.say(note));
    Ok((names, wanted))
}

/// Writes a table in one format.
type Write = fn(&Table<'_>, &mut std::fs::File) -> Result<()>;

/// The name says what is in the file: readers go by it.
fn writer(path: &Path) -> Result<Write> {
    match extension(path).as_str() {
        "parquet" => Ok(parquet_file::write),
        "csv" => Ok(text_file::write_csv),
        "jsonl" | "ndjson" => Ok(text_file::write_json_lines),
        _ => bail!("--out {}: expected a name that ends in .parquet, .csv or .jsonl", path.display()),
    }
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_lowercase()
}

/// What stands in the file besides its columns. No time and no path: the same predictions are the same bytes.
fn metadata(model: &Model, data_digest: &str, messages: Messages) -> Result<BTreeMap<&'static str, String>> {
    let Card { digest, data_digest: trained_on, about, classes, .. } = &model.card;
    let names: Vec<String> = (0..*classes).map(|class| about.class(class)).collect();
    let messages = messages.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
    Ok([
        ("laconic.version", env!("CARGO_PKG_VERSION").to_owned()),
        ("laconic.model", digest.clone()),
        ("laconic.trained_on", trained_on.clone()),
        ("laconic.data", data_digest.to_owned()),
        ("laconic.messages", messages),
        ("laconic.classes", serde_json::to_string(&names)?),
    ]
    .into())
}

fn describe(written: &Written) -> String {
    let Written { path, nodes, bytes, figures, messages, .. } = written;
    let mut text = format!("{nodes} nodes in {} ({})", path.display(), human_bytes(*bytes));
    let figures = SPLITS.iter().filter_map(|split| figures.get_key_value(split));
    for (split, figures) in figures {
        let figures: Vec<String> = figures.iter().map(|(name, value)| format!("{name} {}", figure(*value))).collect();
        text += &format!("\n  {split:<8} {}", figures.join("  "));
    }
    let how = match messages {
        Messages::Exact => "exact messages",
        Messages::AsTrained => "messages as in the run's own evaluations",
    };
    text + "\n" + how
}
