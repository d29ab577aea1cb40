//! Graphs whose nodes are the rows of a matrix, and a node table beside it whose rows are those.

use super::edge_list::node_table_beside;
use super::edge_tables::{held_to_its_ids, refuse_idle, refuse_repeated_ids};
use super::id_index::{IdIndex, into_ids};
use super::node_table::NodeTable;
use super::table::IdColumn;
use super::{ReadOptions, dataset_name};
use crate::about::About;
use crate::build::{BuildOptions, build_graph};
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::edges::EdgeData;
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::roles::{Role, Roles};
use std::path::Path;

/// The keys about tables that speak of edges alone; a matrix has none of these columns.
const OF_EDGES: [&str; 6] =
    ["data.source", "data.target", "data.weight", "data.relation", "data.bipartite", "data.unknown"];

/// Whether a matrix with a node table beside it reads this key.
pub fn reads_key(key: &str) -> bool {
    !OF_EDGES.contains(&key)
}

/// A square matrix as edges.
pub struct Square {
    /// Rows, each a node.
    pub nodes: usize,
    /// The number of the first row in the file.
    pub first: i64,
    /// The row of each entry.
    pub sources: Vec<u32>,
    /// The column of each entry.
    pub targets: Vec<u32>,
    /// What is known of each entry.
    pub data: EdgeData,
    /// Whether an entry stands for both directions.
    pub undirected: bool,
}

impl Square {
    /// The dataset of this matrix, with what a node table beside it says of its rows.
    pub fn read(mut self, path: &Path, options: &ReadOptions, mut roles: Roles) -> Result<(Dataset, Roles)> {
        let table_path = node_table_beside(path, options);
        let read = |path| held_to_its_ids(NodeTable::read(path, options, &mut roles), path, options);
        let table = table_path.as_deref().map(read).transpose()?;
        refuse_idle(options, table.is_some(), &roles)?;
        let ids = match (&table, &table_path) {
            (Some(table), Some(table_path)) => self.match_rows((table, table_path), path, options, &mut roles)?,
            _ if self.first == 0 => Ids::Row,
            _ => Ids::Integers((self.first..self.first + self.nodes as i64).collect()),
        };
        let how = BuildOptions { symmetrise: options.symmetrise || self.undirected, ..options.build() };
        let built = build_graph(self.nodes, self.sources, self.targets, self.data, how);
        let (graph, removed) = built.map_err(|error| GraphError::format(path, "entries", error.to_string()))?;
        if graph.data.weights.is_some() {
            roles.of_table(path).merged(&removed, options.duplicates);
        }
        let (features, exact, labels, splits, about) = match table {
            Some(table) => (table.features, table.exact, table.labels, table.splits, table.about),
            None => (Features::None, Exact::default(), Labels::None, Vec::new(), About::default()),
        };
        let name = dataset_name(path);
        let dataset = Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None };
        Ok((dataset.checked()?, roles))
    }

    /// Puts nodes in the order of a table that has a row for each, and says what they are called. Ids that are just the
    /// numbers of the matrix's rows say which row a node is; others are names, and the order of both is one.
    fn match_rows(
        &mut self,
        (table, table_path): (&NodeTable, &Path),
        path: &Path,
        options: &ReadOptions,
        roles: &mut Roles,
    ) -> Result<Ids> {
        let (nodes, first) = (self.nodes, self.first);
        if table.nodes != nodes {
            let what = format!("expected {nodes} rows, one for each row of {}, found {}", path.display(), table.nodes);
            let twice = refuse_repeated_ids(Some(table), table_path, options).err();
            return Err(GraphError::several([GraphError::format(table_path, "rows", what)].into_iter().chain(twice)));
        }
        let Some(ids) = table.ids(table.has_text_ids(), &options.limits)? else {
            return Ok(Ids::Row);
        };
        let index = IdIndex::new(&ids).map_err(|what| GraphError::format(table_path, "ids", what))?;
        let numbers = |from: i64| -> Option<Vec<u32>> {
            let IdColumn::Integers(_) = &ids else { return None };
            (from..from + nodes as i64).map(|id| index.integer(id)).collect()
        };
        let in_order = |rows: &[u32]| rows.iter().enumerate().all(|(at, &row)| at == row as usize);
        let mut how = "names; the rows of the table are those of the matrix, in order";
        if let Some(rows) = numbers(first) {
            how = "the numbers of the matrix's rows";
            if !in_order(&rows) {
                self.sources.iter_mut().chain(&mut self.targets).for_each(|end| *end = rows[*end as usize]);
            }
        } else if let Some(from) = [0, 1].into_iter().find(|&from| numbers(from).is_some_and(|rows| !in_order(&rows))) {
            let what = format!(
                "ids count from {from} and rows of {} from {first}, in another order: which belong together is not \
                 said; sort the table, or count from {first}",
                path.display()
            );
            return Err(GraphError::format(table_path, "ids", what));
        }
        roles.of_table(table_path).line(Role::Ids, &[], how);
        drop(index);
        Ok(into_ids(ids))
    }
}
