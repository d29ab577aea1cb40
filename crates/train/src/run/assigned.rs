//! Who owns which node, and what parts are called.

use std::path::Path;

use laconic_graph::dataset::{Dataset, Ids};
use laconic_graph::limits::Limits;
use laconic_graph::part::{self, Part};
use laconic_graph::partition::{GIVEN, PartitionInput};
use laconic_graph::read::assignment::{PartTable, is_table};

use super::prepared::{Prepared, prepared};
use crate::config::{Config, DataConfig};
use crate::error::{Result, TrainError};
use crate::plan::Members;

/// Which node goes to which part.
pub struct Assigned {
    /// The part of each node.
    pub of: Vec<u32>,
    /// How many parts there are.
    pub parts: u32,
    /// What each is called; empty where parts are called by their numbers.
    pub names: Vec<String>,
    /// What is unusual about it, a line each.
    pub notes: Vec<String>,
}

impl Assigned {
    /// The parts, each with the names of all.
    ///
    /// # Errors
    /// As [`part::cut`].
    pub fn cut(&self, dataset: &Dataset, split: Option<usize>) -> Result<Vec<Part>> {
        let mut parts = part::cut(dataset, split, &self.of, self.parts)?;
        parts.iter_mut().for_each(|part| part.global.part_names.clone_from(&self.names));
        Ok(parts)
    }
}

/// What stands for `partition.parts = 0` where nothing else decides: one machine learns from the whole graph.
///
/// # Errors
/// If the graph is to be cut by a list of part numbers, which does not say how many parts there are.
pub fn parts_unsaid(config: &Config) -> Result<u32> {
    match &config.partition.file {
        Some(file) if config.partition.method == GIVEN => Err(TrainError::config(format!(
            "partition.parts is not set, and {} is a list of part numbers: how many parts are there?",
            file.display()
        ))),
        _ => Ok(1),
    }
}

/// Assigns every node to a part, as the configuration says; to so many parts where `workers` decide that and the
/// configuration does not.
///
/// # Errors
/// If there is no such partitioner, or it cannot do what is asked.
pub fn assigned(
    members: &Members,
    config: &Config,
    dataset: &Dataset,
    split: Option<usize>,
    workers: Option<u32>,
) -> Result<Assigned> {
    let limits = Limits::default();
    let asked = Some(config.partition.parts).filter(|&parts| parts > 0);
    let Some(table) = part_table(config)? else {
        let parts = asked.or(workers).map_or_else(|| parts_unsaid(config), Ok)?;
        let roles = split.map(|index| dataset.splits[index].roles.as_slice());
        let input = PartitionInput { graph: &dataset.graph, roles, parts, seed: config.partition.seed };
        let of = members.partitioner(config)?.build(&config.partition.options())?.assign(&input)?;
        let is_by_row = config.partition.method == GIVEN && !matches!(dataset.ids, Ids::Row);
        let by_row = "the assignment goes by row: its line i is the node of row i, whatever that is called; a table \
                      with the columns id and part goes by name";
        return Ok(Assigned {
            of,
            parts,
            names: Vec::new(),
            notes: is_by_row.then(|| by_row.to_owned()).into_iter().collect(),
        });
    };
    let found = table.read(&dataset.ids, dataset.graph.nodes(), &limits)?;
    let count = found.names.len() as u32;
    let are_numbers = found.names.iter().enumerate().all(|(part, name)| *name == part.to_string());
    let parts = match asked {
        Some(parts) if parts == count || parts > count && are_numbers => parts,
        Some(parts) => {
            let shown: Vec<&str> = found.names.iter().take(8).map(String::as_str).collect();
            let more = if found.names.len() > shown.len() { ", …" } else { "" };
            return Err(TrainError::config(format!(
                "partition.parts = {parts}, but {} names {count} parts: {}{more}",
                table.path.display(),
                shown.join(", ")
            )));
        }
        None => count,
    };
    let unknown = format!("{}: {} of its ids are no nodes", table.path.display(), found.unknown);
    let notes = (found.unknown > 0).then_some(unknown).into_iter().collect();
    Ok(Assigned { of: found.of, parts, names: if are_numbers { Vec::new() } else { found.names }, notes })
}

/// Assigns every node to one of so many parts, whatever these are called.
///
/// # Errors
/// As [`assigned`].
pub fn assign(
    members: &Members,
    config: &Config,
    dataset: &Dataset,
    split: Option<usize>,
    parts: u32,
) -> Result<Vec<u32>> {
    let mut config = config.clone();
    config.partition.parts = parts;
    Ok(assigned(members, &config, dataset, split, None)?.of)
}

/// Reads a dataset that is to be cut and prepares features and split: its column of parts is no feature, unless it is
/// named as one.
///
/// # Errors
/// As [`prepared`], and if there is no such column.
pub fn prepared_to_cut(config: &Config) -> Result<Prepared> {
    // Of a column that is not there its own key is to be named.
    prepared(&data_to_cut(config)).or_else(|error| named_parts(config).and(Err(error)))
}

fn data_to_cut(config: &Config) -> DataConfig {
    let mut data = config.data.clone();
    if let (Some(column), None) = (&config.partition.column, &config.partition.file)
        && !data.features_columns.contains(column)
        && !data.ignore.contains(column)
    {
        data.ignore.push(column.clone());
    }
    data
}

/// How many parts a table names, where one does.
///
/// # Errors
/// If it cannot be read.
pub(super) fn named_parts(config: &Config) -> Result<Option<u32>> {
    let names = part_table(config)?.map(|table| table.names(&Limits::default())).transpose()?;
    Ok(names.map(|names| names.len() as u32))
}

/// The table that says who owns what, where it is one.
fn part_table(config: &Config) -> Result<Option<PartTable<'_>>> {
    let (partition, data) = (&config.partition, &config.data);
    if partition.method != GIVEN {
        return Ok(None);
    }
    let of = |path, id| PartTable { path, id, column: partition.column.as_deref(), header: data.header };
    match (&partition.file, &partition.column) {
        (Some(file), None) if !is_table(file)? => Ok(None),
        // Its ids are called as they are there.
        (Some(file), _) => Ok(Some(of(Path::new(file), None))),
        (None, Some(_)) => match &data.nodes_path {
            Some(nodes) => Ok(Some(of(nodes, data.id.as_deref()))),
            None => Err(TrainError::config(
                "partition.column is a column of the node table (data.nodes_path, --nodes) or of partition.file \
                 (--file), and there is neither",
            )),
        },
        (None, None) => Ok(None),
    }
}
