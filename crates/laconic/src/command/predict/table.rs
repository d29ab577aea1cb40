//! Predictions as a table of named columns, whatever file they go into.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use laconic_graph::dataset::{Ids, Labels, Split};
use laconic_nn::metric::argmax;
use laconic_train::record::card::Card;
use laconic_train::run::predict::Predictions;

/// One value of a row and column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A whole number.
    Integer(i64),
    /// A number.
    Float(f32),
    /// Some words.
    Text(String),
    /// Nobody knows.
    Missing,
}

/// What all cells of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers of 64 bits.
    Id,
    /// Integers of 32 bits.
    Number,
    /// Numbers in single precision.
    Float,
    /// Texts.
    Text,
    /// Texts, of which some are missing.
    TextOrMissing,
}

/// What a column holds: the cell of a part's row.
type Cells<'a> = Box<dyn Fn(usize, usize) -> Cell + 'a>;

/// A named column.
pub struct Column<'a> {
    /// What it is called in files.
    pub name: String,
    /// What its cells are.
    pub kind: Kind,
    cells: Cells<'a>,
}

/// Predictions, a row a node in the order of global ids.
pub struct Table<'a> {
    /// The columns, in their order.
    pub columns: Vec<Column<'a>>,
    /// What else a file may say, by its keys.
    pub metadata: BTreeMap<&'static str, String>,
    /// Which part and which row of it.
    places: Vec<(usize, usize)>,
}

/// What stands between the names of a node's classes where it may have several.
const BETWEEN: &str = ";";

impl<'a> Table<'a> {
    /// The table of what a model says; with embeddings where they are asked for.
    pub fn of(parts: &'a [Predictions], card: &Card, embeddings: bool) -> Result<Table<'a>> {
        let Some(first) = parts.first() else { bail!("there are no parts") };
        let classes = first.inferred.logits.columns();
        let names: Vec<String> = (0..classes).map(|class| card.about.class(class)).collect();
        let width = match (&first.inferred.embedding, embeddings) {
            (Some(embedding), true) => embedding.columns(),
            (None, true) => bail!("a model of one layer has no embeddings"),
            _ => 0,
        };
        let mut columns = vec![ids(parts)];
        columns.extend(decisions(parts, &names));
        if parts.iter().any(|part| (0..part.nodes.len()).any(|row| part.labels.known(row) > 0)) {
            columns.push(labels(parts, names));
        }
        if parts.iter().any(|part| !part.roles.is_empty()) {
            columns.push(column("split", Kind::TextOrMissing, |part, row| role(&parts[part].roles, row)));
        }
        columns.extend(probabilities(parts, classes));
        columns.extend((0..width).map(|at| {
            let value = move |embedding: &laconic_nn::Matrix, row: usize| Cell::Float(embedding.row(row)[at]);
            column(&format!("emb_{at}"), Kind::Float, move |part, row| {
                parts[part].inferred.embedding.as_ref().map_or(Cell::Missing, |embedding| value(embedding, row))
            })
        }));
        let rows =
            |(part, p): (usize, &Predictions)| (0..p.nodes.len()).map(move |row| (part, row)).collect::<Vec<_>>();
        let mut places: Vec<(usize, usize)> = parts.iter().enumerate().flat_map(rows).collect();
        places.sort_by_key(|&(part, row)| parts[part].nodes[row]);
        Ok(Table { columns, metadata: BTreeMap::new(), places })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.places.len()
    }

    /// The cell of a column in one row.
    pub fn cell(&self, column: &Column<'_>, row: usize) -> Cell {
        let (part, row) = self.places[row];
        (column.cells)(part, row)
    }
}

fn column<'a>(name: &str, kind: Kind, cells: impl Fn(usize, usize) -> Cell + 'a) -> Column<'a> {
    Column { name: name.to_owned(), kind, cells: Box::new(cells) }
}

fn ids(parts: &[Predictions]) -> Column<'_> {
    let text = matches!(parts[0].ids, Ids::Strings(_));
    column("id", if text { Kind::Text } else { Kind::Id }, move |part, row| match &parts[part].ids {
        Ids::Strings(ids) => Cell::Text(ids[row].clone()),
        Ids::Integers(ids) => Cell::Integer(ids[row]),
        Ids::Row => Cell::Integer(parts[part].nodes[row] as i64),
    })
}

/// What the model decides: numbers of classes, and their names.
fn decisions<'a>(parts: &'a [Predictions], names: &[String]) -> Vec<Column<'a>> {
    let logits = |part: usize, row: usize| parts[part].inferred.logits.row(row);
    let names = names.to_vec();
    if !parts[0].multi_label {
        let class = move |part, row| argmax(logits(part, row));
        let pred = column("pred", Kind::Number, move |part, row| Cell::Integer(class(part, row) as i64));
        return vec![pred, column("class", Kind::Text, move |part, row| Cell::Text(names[class(part, row)].clone()))];
    }
    let has = move |part, row, class: usize| logits(part, row)[class] > 0.0;
    let of_class = |class| {
        column(&format!("pred_{class}"), Kind::Number, move |part, row| Cell::Integer(has(part, row, class).into()))
    };
    let mut columns: Vec<Column<'a>> = (0..names.len()).map(of_class).collect();
    columns.push(column("class", Kind::Text, move |part, row| joined(&names, |class| has(part, row, class))));
    columns
}

/// The true classes.
fn labels(parts: &[Predictions], names: Vec<String>) -> Column<'_> {
    column("label", Kind::TextOrMissing, move |part, row| match &parts[part].labels {
        labels if labels.known(row) == 0 => Cell::Missing,
        Labels::Single { values, .. } => Cell::Text(names[values[row] as usize].clone()),
        Labels::Multi { classes, values } => joined(&names, |class| values[row * classes + class] == 1),
        Labels::None => Cell::Missing,
    })
}

fn joined(names: &[String], has: impl Fn(usize) -> bool) -> Cell {
    let names: Vec<&str> = names.iter().enumerate().filter(|(class, _)| has(*class)).map(|(_, name)| &**name).collect();
    Cell::Text(names.join(BETWEEN))
}

fn role(roles: &[u8], row: usize) -> Cell {
    let names = [(Split::TRAIN, "train"), (Split::VAL, "val"), (Split::TEST, "test")];
    let role = roles.get(row).copied().unwrap_or(0);
    names.iter().find(|(flag, _)| role & flag != 0).map_or(Cell::Missing, |(_, name)| Cell::Text((*name).to_owned()))
}

fn probabilities<'a>(parts: &'a [Predictions], classes: usize) -> impl Iterator<Item = Column<'a>> {
    let of_part = |part: &Predictions| -> Vec<f32> {
        let rows = (0..part.nodes.len()).map(|row| probability(part.inferred.logits.row(row), part.multi_label));
        rows.flatten().collect()
    };
    let all: std::rc::Rc<[Vec<f32>]> = parts.iter().map(of_part).collect();
    (0..classes).map(move |class| {
        let all = all.clone();
        column(&format!("prob_{class}"), Kind::Float, move |part, row| Cell::Float(all[part][row * classes + class]))
    })
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
