//! What a user says about the columns of tables: one flag for each key of a configuration's section `[data]`.

use laconic_graph::read::{Dates, Header, Missing, Unknown};
use laconic_train::config::DataConfig;

/// The columns of edge lists and node tables, and what becomes of their cells.
#[derive(clap::Args)]
pub(in crate::command) struct TableFlags {
    /// Where an edge starts [default: source, src, from, u, or a pair of names such as caller and callee]
    #[arg(long, value_name = "COLUMN", help_heading = HEADING)]
    source: Option<String>,
    /// Where an edge ends [default: target, dst, to, v, or the other one of such a pair]
    #[arg(long, value_name = "COLUMN", help_heading = HEADING)]
    target: Option<String>,
    /// The weight of an edge [default: weight or w, or without a header the third]; count: how often it is listed
    #[arg(long, value_name = "COLUMN", help_heading = HEADING)]
    weight: Option<String>,
    /// The relation that an edge is of, as the second of head, relation and tail
    #[arg(long, value_name = "COLUMN", help_heading = HEADING)]
    relation: Option<String>,
    /// The ends of edges are nodes of two types, as users and films, which may have the same ids
    #[arg(long, help_heading = HEADING)]
    bipartite: bool,
    /// Rows that name nodes which the node table has not, or none: refuse them, leave them out, or add the nodes with
    /// features of 0 [default: error]
    #[arg(long, value_name = "HOW", value_parser = ["error", "drop", "add"], help_heading = HEADING)]
    unknown: Option<String>,
    /// Edges from a node to itself [default: drop]; keep is --keep-self-loops
    #[arg(long, value_name = "HOW", value_parser = ["keep", "drop"], help_heading = HEADING)]
    #[arg(conflicts_with = "keep_self_loops")]
    self_loops: Option<String>,
    /// The node table's ids [default: id, node or node_id]; row: the row's number is the id
    #[arg(long, value_name = "COLUMN", help_heading = HEADING)]
    id: Option<String>,
    /// The node table's labels, or label_* for a column of 0 and 1 a class [default: label, y or class, else label_*]
    #[arg(long, value_name = "COLUMN", help_heading = HEADING)]
    label: Option<String>,
    /// What stands between the classes of a node that has several in one cell, as in --label-separator ";"
    #[arg(long, value_name = "TEXT", help_heading = HEADING)]
    label_separator: Option<String>,
    /// The node table's columns that become features [default: all that can]
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', help_heading = HEADING)]
    features_columns: Vec<String>,
    /// Columns that are left out
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',', help_heading = HEADING)]
    ignore: Vec<String>,
    /// What stands for a cell without a value: nothing, the mean over training nodes, or 0; the last two add a column
    /// that is 1 where there was none [default: error]
    #[arg(long, value_name = "WHAT", value_parser = ["error", "mean", "zero"], help_heading = HEADING)]
    missing: Option<String>,
    /// Read dates as days since 1970-01-01 [default: ignore]
    #[arg(long, value_name = "HOW", value_parser = ["ignore", "days"], help_heading = HEADING)]
    dates: Option<String>,
    /// A column of texts becomes a feature column for each text, if there are no more of them [default: 64]
    #[arg(long, value_name = "COUNT", help_heading = HEADING)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=CATEGORIES_MAX))]
    categories: Option<u32>,
    /// Whether the first line names the columns [default: what it and the lines below look like]
    #[arg(long, value_name = "YES", value_parser = ["yes", "no"], help_heading = HEADING)]
    header: Option<String>,
}

const HEADING: &str = "Reading edge lists and node tables";

/// More categories than this are no categories.
const CATEGORIES_MAX: i64 = 65_536;

impl TableFlags {
    /// Says the same in a configuration, in place of what it says so far.
    pub fn put(&self, data: &mut DataConfig) {
        for (key, given) in [
            (&mut data.source, &self.source),
            (&mut data.target, &self.target),
            (&mut data.weight, &self.weight),
            (&mut data.relation, &self.relation),
            (&mut data.id, &self.id),
            (&mut data.label, &self.label),
            (&mut data.label_separator, &self.label_separator),
        ] {
            *key = given.clone().or(key.take());
        }
        for (key, given) in [(&mut data.features_columns, &self.features_columns), (&mut data.ignore, &self.ignore)] {
            if !given.is_empty() {
                *key = given.clone();
            }
        }
        data.bipartite |= self.bipartite;
        data.unknown = match self.unknown.as_deref() {
            Some("drop") => Unknown::Drop,
            Some("add") => Unknown::Add,
            Some(_) => Unknown::Error,
            None => data.unknown,
        };
        data.keep_self_loops = self.self_loops.as_ref().map_or(data.keep_self_loops, |how| how == "keep");
        data.missing = match self.missing.as_deref() {
            Some("mean") => Missing::Mean,
            Some("zero") => Missing::Zero,
            Some(_) => Missing::Error,
            None => data.missing,
        };
        data.dates = match self.dates.as_deref() {
            Some("days") => Dates::Days,
            Some(_) => Dates::Ignore,
            None => data.dates,
        };
        data.categories = self.categories.map_or(data.categories, |most| most as usize);
        data.header = match self.header.as_deref() {
            Some("yes") => Header::Yes,
            Some("no") => Header::No,
            _ => data.header,
        };
    }
}

/// The flag of a key of the section `[data]`.
pub(in crate::command) fn flag(key: &str) -> String {
    match key.strip_prefix("data.").unwrap_or(key) {
        "nodes_path" => "--nodes".to_owned(),
        key => format!("--{}", key.replace('_', "-")),
    }
}
