//! Edge lists beside a node table: what is known of nodes is in memory, edges are read in passes.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::input::{Id, Input, fingerprint};
use crate::about::About;
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::digest::digest;
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::read::edge_list::{files, open_plain};
use crate::read::edge_tables::{ends_wanted, refuse_idle};
use crate::read::float_ids::warn_of_floats;
use crate::read::id_index::{IdIndex, NOWHERE};
use crate::read::node_table::NodeTable;
use crate::read::numbers::shorten;
use crate::read::table::{Cell, IdColumn, Kind, Table, Texts};
use crate::read::{ReadOptions, Unknown, dataset_name};
use crate::roles::Roles;
use crate::source::{EachEdges, EdgeSource};

/// A table of edges between the nodes of another table.
pub struct TableOfNodes {
    path: PathBuf,
    edges_path: PathBuf,
    edges: Box<dyn Table>,
    ends: [(usize, Kind); 2],
    /// What nodes are called; `None` where the rows of their table are.
    ids: Option<IdColumn>,
    /// What is known of the nodes, without any edge.
    nodes: Dataset,
    /// Which of their splits counts.
    split: Option<usize>,
    unknown: Unknown,
    /// Edges of the last pass that name nodes that there are not.
    lost: AtomicU64,
}

/// Edges that are handed over at a time.
const CHUNK: usize = 1 << 14;

/// Texts that are looked up together, and their bytes.
const TEXTS: usize = 4096;
const TEXT_BYTES: usize = 1 << 20;

/// Bytes of an index for each id.
const INDEX: u64 = 48;

impl TableOfNodes {
    /// Reads the node table, and opens the edges; says what became of each column. `None` where there is no node table.
    ///
    /// # Errors
    ///
    /// If either table cannot be read, two nodes have one id, or something is asked for that needs all edges in memory.
    pub fn open(path: &Path, options: &ReadOptions) -> Result<Option<(TableOfNodes, Roles)>> {
        let (edges_path, nodes_path) = files(path, options)?;
        let Some(nodes_path) = nodes_path else { return Ok(None) };
        let mut roles = Roles::default();
        let table = NodeTable::read(&nodes_path, options, &mut roles)?;
        let (edges, columns) = open_plain(&edges_path, options, &mut roles)?;
        refuse_idle(options, true, &roles)?;
        warn_of_floats(&*edges, &[columns.source, columns.target], &mut roles.of_table(&edges_path))?;
        if options.unknown == Unknown::Add {
            let what = "needs all edges in memory; --unknown drop leaves rows out that name unknown nodes";
            return Err(GraphError::format(&edges_path, "--unknown add", what));
        }
        let ends = ends_wanted(&*edges, &columns, Some(&table));
        if let Some(&end) = [columns.source, columns.target]
            .iter()
            .find(|&&end| edges.rows() > 0 && edges.columns()[end].kind == Kind::Float)
        {
            let what = "expected ids, found numbers with decimals";
            return Err(GraphError::format(&edges_path, format!("column '{}'", edges.columns()[end].name), what));
        }
        let ids = table.ids(ends[0].1 == Kind::Text, &options.limits)?;
        // Called by their rows, which is what they are called where nothing is said.
        let are_rows =
            |ids: &IdColumn| matches!(ids, IdColumn::Integers(ids) if ids.iter().zip(0..).all(|(&id, row)| id == row));
        let ids = ids.filter(|ids| !are_rows(ids));
        if let Some(ids) = &ids {
            IdIndex::new(ids).map_err(|what| GraphError::format(&nodes_path, "ids", what))?;
        }
        let dataset = Dataset {
            name: dataset_name(path),
            graph: Graph::new(vec![0; table.nodes + 1], Vec::new()),
            features: table.features,
            exact: table.exact,
            labels: table.labels,
            splits: table.splits,
            ids: Ids::Row,
            about: table.about,
            negatives: None,
        };
        let found = TableOfNodes {
            path: path.to_owned(),
            edges_path,
            edges,
            ends,
            ids,
            nodes: dataset.checked()?,
            split: None,
            unknown: options.unknown,
            lost: AtomicU64::new(0),
        };
        Ok(Some((found, roles)))
    }

    /// What is known of the nodes, for preparation, without any edge.
    pub fn take_nodes(&mut self) -> Dataset {
        let empty = Dataset {
            name: String::new(),
            graph: Graph::new(vec![0], Vec::new()),
            features: Features::None,
            exact: Default::default(),
            labels: Labels::None,
            splits: Vec::new(),
            ids: Ids::Row,
            about: About::default(),
            negatives: None,
        };
        std::mem::replace(&mut self.nodes, empty)
    }

    /// The same graph with what is known of its nodes as it was prepared, and with one of their splits.
    ///
    /// # Errors
    ///
    /// If they have sparse features or several labels each, or take more than so much `memory`.
    pub fn with_nodes(mut self, nodes: Dataset, split: Option<usize>, memory: u64) -> Result<TableOfNodes> {
        let whole = |what: &str| {
            let what = format!("{what} need the graph in memory: they are not cut with --memory");
            Err(GraphError::format(&self.path, "node table", what))
        };
        if matches!(nodes.features, Features::Sparse { .. }) {
            return whole("sparse features");
        }
        if matches!(nodes.labels, Labels::Multi { .. }) {
            return whole("several labels a node");
        }
        (self.nodes, self.split) = (nodes, split);
        let needed = Input::memory(&self);
        if needed > memory {
            let (needed, allowed) = (needed.div_ceil(1_000_000), memory / 1_000_000);
            let what = format!("what it knows of nodes needs {needed} MB of memory, and {allowed} MB are allowed");
            return Err(GraphError::format(&self.path, "node table", what));
        }
        Ok(self)
    }
}

/// One end of the rows that have been read.
#[derive(Default)]
struct End {
    /// Ids whose nodes are not looked for yet, behind the others.
    texts: Texts,
    /// The nodes of rows whose other end has not been read, [`NOWHERE`] where there is none.
    nodes: VecDeque<u32>,
    numbers: Vec<u32>,
}

impl End {
    fn add(&mut self, cell: Cell, index: &IdIndex) -> std::result::Result<(), String> {
        match (cell, index) {
            (Cell::Text(id), IdIndex::Texts(_)) => {
                self.texts.push(id);
                if self.texts.len() >= TEXTS || self.texts.bytes() >= TEXT_BYTES {
                    self.look_up(index);
                }
            }
            (Cell::Integer(id), _) => self.nodes.push_back(index.integer(id).unwrap_or(NOWHERE)),
            (Cell::Missing, _) => {
                self.look_up(index);
                self.nodes.push_back(NOWHERE);
            }
            _ => return Err("expected a node id".to_owned()),
        }
        Ok(())
    }

    fn look_up(&mut self, index: &IdIndex) {
        if let IdIndex::Texts(texts) = index {
            self.numbers.clear();
            self.numbers.resize(self.texts.len(), NOWHERE);
            texts.rows_of(&self.texts, 0, &mut self.numbers, NOWHERE);
            self.nodes.extend(&self.numbers);
            self.texts.clear();
        }
    }
}

/// Rows whose ends are both known, on their way to who reads them.
struct Pairs<'a, 'b> {
    each: &'a mut EachEdges<'b>,
    pairs: Vec<(u64, u64)>,
    row: u64,
    lost: u64,
    first_lost: Option<u64>,
}

impl Pairs<'_, '_> {
    fn take(&mut self, [sources, targets]: &mut [End; 2]) -> Result<()> {
        while let [Some(&source), Some(&target)] = [sources.nodes.front(), targets.nodes.front()] {
            sources.nodes.pop_front();
            targets.nodes.pop_front();
            if source == NOWHERE || target == NOWHERE {
                self.lost += 1;
                self.first_lost.get_or_insert(self.row);
            } else {
                self.pairs.push((source.into(), target.into()));
            }
            self.row += 1;
            if self.pairs.len() == CHUNK {
                (self.each)(&self.pairs)?;
                self.pairs.clear();
            }
        }
        Ok(())
    }
}

impl EdgeSource for TableOfNodes {
    fn nodes(&self) -> u64 {
        self.nodes.graph.nodes() as u64
    }

    fn pass(&self, each: &mut EachEdges) -> Result<()> {
        let changed = |what: String| GraphError::format(&self.path, "ids", what);
        let index = match &self.ids {
            None => IdIndex::Row(self.nodes.graph.nodes()),
            Some(ids) => IdIndex::new(ids).map_err(changed)?,
        };
        let mut ends = [End::default(), End::default()];
        let mut pairs = Pairs { each, pairs: Vec::with_capacity(CHUNK), row: 0, lost: 0, first_lost: None };
        let mut failed = None;
        let scanned = self.edges.scan(&self.ends, &mut |_, slot, cell| {
            ends[slot].add(cell, &index)?;
            pairs.take(&mut ends).map_err(|error| {
                failed = Some(error);
                "ended".to_owned()
            })
        });
        if let Some(error) = failed {
            return Err(error);
        }
        scanned?;
        ends.iter_mut().for_each(|end| end.look_up(&index));
        pairs.take(&mut ends)?;
        let Pairs { each, pairs, lost, first_lost, .. } = pairs;
        self.lost.store(lost, Ordering::Relaxed);
        if let (Some(first), Unknown::Error) = (first_lost, self.unknown) {
            let what = format!(
                "{lost} of {} rows name ids that are not among the nodes, or none, the first{}: --unknown drop \
                 (data.unknown) leaves them out",
                self.edges.rows(),
                self.shown(first)
            );
            return Err(GraphError::format(&self.edges_path, "ids", what));
        }
        each(&pairs)
    }
}

impl TableOfNodes {
    /// What a row of edges names.
    fn shown(&self, row: u64) -> String {
        let (mut shown, mut seen) = ([String::new(), String::new()], [0u64; 2]);
        // Ends as soon as both are found, which is no error.
        let _ = self.edges.scan(&self.ends, &mut |_, slot, cell| {
            if seen[slot] == row {
                shown[slot] = match cell {
                    Cell::Text(id) => shorten(id),
                    Cell::Integer(id) => id.to_string(),
                    _ => "nothing".to_owned(),
                };
            }
            seen[slot] += 1;
            if seen.iter().all(|&seen| seen > row) { Err(String::new()) } else { Ok(()) }
        });
        format!(" row {row} with '{}' and '{}'", shown[0], shown[1])
    }
}

impl Input for TableOfNodes {
    fn name(&self) -> String {
        dataset_name(&self.path)
    }

    fn is_directed(&self) -> bool {
        true
    }

    fn listed(&self) -> Option<u64> {
        Some(self.edges.rows() as u64)
    }

    fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn about(&self) -> About {
        self.nodes.about.clone()
    }

    fn classes(&self) -> usize {
        self.nodes.labels.classes()
    }

    fn columns(&self) -> usize {
        self.nodes.features.columns()
    }

    fn features(&self, each: &mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> {
        each(self.nodes.features.stored())
    }

    fn labels(&self) -> Result<Vec<i32>> {
        Ok(match &self.nodes.labels {
            Labels::Single { values, .. } => values.clone(),
            _ => Vec::new(),
        })
    }

    fn roles(&self) -> Result<Vec<u8>> {
        Ok(self.split.map(|split| self.nodes.splits[split].roles.clone()).unwrap_or_default())
    }

    fn id(&self, node: u64) -> Option<Id<'_>> {
        match self.ids.as_ref()? {
            IdColumn::Integers(ids) => ids.get(node as usize).map(|&id| Id::Integer(id)),
            IdColumn::Texts(ids) => ((node as usize) < ids.len()).then(|| Id::Text(ids.get(node as usize))),
        }
    }

    fn memory(&self) -> u64 {
        let nodes = self.nodes();
        let ids = match &self.ids {
            None => 0,
            Some(IdColumn::Integers(_)) => (8 + INDEX) * nodes,
            Some(IdColumn::Texts(ids)) => ids.bytes() as u64 + (4 + INDEX) * nodes,
        };
        let labels = if self.nodes.labels.classes() > 0 { 4 * nodes } else { 0 };
        let waiting = 8 * self.edges.rows_at_once() as u64;
        let roles = nodes * self.nodes.splits.len() as u64;
        4 * self.nodes.features.stored().len() as u64 + labels + roles + ids + waiting
    }

    fn fingerprint(&self) -> Result<String> {
        let files = crate::read::parts::files(self.edges.path(), &crate::limits::Limits::default())?;
        let edges: String = files.iter().map(|file| fingerprint(file)).collect::<Result<_>>()?;
        Ok(format!("{edges}{}\n{:?} {:?}\n", digest(&self.nodes), self.split, self.unknown))
    }
}
