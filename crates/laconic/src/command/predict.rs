//! `laconic predict`: what a trained model says about every node, keyed by the user's ids.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use laconic_graph::aside::write_aside;
use laconic_graph::dataset::Ids;
use laconic_train::config::MessagesConfig;
use laconic_train::record::summary::Summary;
use laconic_train::record::weights;
use laconic_train::run::predict::{Predictions, predict_parts};
use laconic_train::run::source::Source;
use laconic_train::{Config, Members, TrainError};
use parquet::data_type::{ByteArray, ByteArrayType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde::Serialize;

use super::data::refuse_occupied;
use super::signals::clean_up;
use crate::bytes::human_bytes;
use crate::output::Output;
use crate::recorded::read_text;

/// Arguments of `predict`.
#[derive(Args)]
#[command(after_help = "Example: laconic predict runs/gcn --out predictions.parquet\n\
    Columns: id, pred (the class; with several labels a node pred_0, pred_1, …), prob_0, prob_1, …, and emb_0, … \
    if asked for.")]
pub struct Predict {
    /// The run's folder
    dir: PathBuf,
    /// The Parquet file to write
    #[arg(long)]
    out: PathBuf,
    /// Also write what the last layer reads, as columns emb_0, emb_1, …
    #[arg(long)]
    embeddings: bool,
    /// Other data than the run's, of the same features and classes
    #[arg(long)]
    data: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

#[derive(Serialize)]
struct Written {
    path: PathBuf,
    nodes: usize,
    bytes: u64,
}

/// Predicts every node with the weights of the best round and writes the table.
pub fn run(arguments: Predict, output: &Output) -> Result<u8> {
    let config_path = arguments.dir.join("config.toml");
    let mut config = Config::load(&config_path, &[])
        .with_context(|| format!("{} is not the folder of a run", arguments.dir.display()))?;
    refuse_occupied(&arguments.out, arguments.force)?;
    if let Some(chosen) = chosen_messages(&arguments.dir, &config)? {
        config.messages = chosen;
    }
    if let Some(data) = arguments.data {
        config.data.path = data;
    }
    let model = weights::read_of_run(&arguments.dir)?;
    let source = Source::open(&Members::default(), &config, None)?;
    output.say(format!("predicting with {} workers", source.parts()));
    let predictions = predict_parts((&Members::default(), &config), source, &model.weights, model.widths());
    let predictions = predictions.map_err(|error| error.within(&arguments.dir))?;
    let nodes = predictions.iter().map(|p| p.nodes.len()).sum();
    write(&arguments.out, &predictions, arguments.embeddings)?;
    let bytes = std::fs::metadata(&arguments.out).map_err(|source| TrainError::io(&arguments.out, source))?.len();
    let path = arguments.out;
    let text = format!("{nodes} nodes in {} ({})", path.display(), human_bytes(bytes));
    output.result(text, &Written { path, nodes, bytes })?;
    Ok(0)
}

/// The messages that a byte budget chose for the run, which its figures were taken with.
fn chosen_messages(folder: &Path, config: &Config) -> Result<Option<MessagesConfig>> {
    let path = folder.join("summary.json");
    if config.messages.budget.is_empty() || !path.exists() {
        return Ok(None);
    }
    let summary: Summary =
        serde_json::from_str(&read_text(&path)?).map_err(|error| TrainError::file(&path, error.to_string()))?;
    Ok(summary.messages)
}

/// Rows in the order of global ids: which part, which row.
fn order(predictions: &[Predictions]) -> Vec<(usize, usize)> {
    let rows = |(part, p): (usize, &Predictions)| (0..p.nodes.len()).map(move |row| (part, row)).collect::<Vec<_>>();
    let mut places: Vec<(usize, usize)> = predictions.iter().enumerate().flat_map(rows).collect();
    places.sort_by_key(|&(part, row)| predictions[part].nodes[row]);
    places
}

fn write(path: &Path, predictions: &[Predictions], embeddings: bool) -> Result<()> {
    let first = predictions.first().context("there are no parts")?;
    let classes = first.inferred.logits.columns();
    let width = match (&first.inferred.embedding, embeddings) {
        (Some(embedding), true) => embedding.columns(),
        (None, true) => anyhow::bail!("a model of one layer has no embeddings"),
        _ => 0,
    };
    let text_ids = matches!(first.ids, Ids::Strings(_));
    let mut schema = String::from("message predictions { ");
    schema += if text_ids { "required binary id (UTF8); " } else { "required int64 id; " };
    if first.multi_label {
        (0..classes).for_each(|class| schema += &format!("required int32 pred_{class}; "));
    } else {
        schema += "required int32 pred; ";
    }
    (0..classes).for_each(|class| schema += &format!("required float prob_{class}; "));
    (0..width).for_each(|column| schema += &format!("required float emb_{column}; "));
    let schema = Arc::new(parse_message_type(&(schema + "}"))?);
    clean_up(path)?;
    let written = write_aside(path, |file| {
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file = SerializedFileWriter::new(file, schema, properties)?;
        for places in order(predictions).chunks(1 << 16) {
            let mut group = file.next_row_group()?;
            write_group(&mut group, predictions, places, first.multi_label, width)?;
            group.close()?;
        }
        file.close()?;
        Ok(())
    });
    // What the system says comes wrapped by the format's own errors.
    written.map_err(|error: anyhow::Error| TrainError::file(path, error.root_cause().to_string()).into())
}

fn write_group<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    predictions: &[Predictions],
    places: &[(usize, usize)],
    multi_label: bool,
    width: usize,
) -> Result<()> {
    ids(group, predictions, places)?;
    let logits = |&(part, row): &(usize, usize)| predictions[part].inferred.logits.row(row);
    let classes = predictions[0].inferred.logits.columns();
    if multi_label {
        for class in 0..classes {
            integers(group, places.iter().map(|place| i32::from(logits(place)[class] > 0.0)).collect())?;
        }
    } else {
        integers(group, places.iter().map(|place| laconic_nn::metric::argmax(logits(place)) as i32).collect())?;
    }
    let probabilities: Vec<Vec<f32>> = places.iter().map(|place| probability(logits(place), multi_label)).collect();
    for class in 0..classes {
        floats(group, probabilities.iter().map(|row| row[class]).collect())?;
    }
    for column in 0..width {
        let value = |&(part, row): &(usize, usize)| {
            predictions[part].inferred.embedding.as_ref().map_or(0.0, |embedding| embedding.row(row)[column])
        };
        floats(group, places.iter().map(value).collect())?;
    }
    Ok(())
}

fn ids<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    predictions: &[Predictions],
    places: &[(usize, usize)],
) -> Result<()> {
    let mut column = group.next_column()?.context("the schema begins with id")?;
    if matches!(predictions[0].ids, Ids::Strings(_)) {
        let text = |&(part, row): &(usize, usize)| match &predictions[part].ids {
            Ids::Strings(ids) => ByteArray::from(ids[row].as_str()),
            _ => ByteArray::new(),
        };
        column.typed::<ByteArrayType>().write_batch(&places.iter().map(text).collect::<Vec<_>>(), None, None)?;
    } else {
        let number = |&(part, row): &(usize, usize)| match &predictions[part].ids {
            Ids::Integers(ids) => ids[row],
            _ => predictions[part].nodes[row] as i64,
        };
        column.typed::<Int64Type>().write_batch(&places.iter().map(number).collect::<Vec<_>>(), None, None)?;
    }
    Ok(column.close()?)
}

fn integers<W: std::io::Write + Send>(group: &mut SerializedRowGroupWriter<'_, W>, values: Vec<i32>) -> Result<()> {
    let mut column = group.next_column()?.context("the schema has this column")?;
    column.typed::<Int32Type>().write_batch(&values, None, None)?;
    Ok(column.close()?)
}

fn floats<W: std::io::Write + Send>(group: &mut SerializedRowGroupWriter<'_, W>, values: Vec<f32>) -> Result<()> {
    let mut column = group.next_column()?.context("the schema has this column")?;
    column.typed::<FloatType>().write_batch(&values, None, None)?;
    Ok(column.close()?)
}

/// Softmax over classes, or the logistic function of each logit.
fn probability(logits: &[f32], multi_label: bool) -> Vec<f32> {
    if multi_label {
        return logits.iter().map(|l| 1.0 / (1.0 + (-l).exp())).collect();
    }
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|l| (l - largest).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.into_iter().map(|p| p / sum).collect()
}
