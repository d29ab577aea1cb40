//! The interchange npz, read in passes: edges and features are never in memory, labels, splits and ids are.

use std::path::{Path, PathBuf};

use super::input::{Id, Input, fingerprint};
use crate::about::About;
use crate::dataset::{Ids, Labels};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::read::arrays::Npz;
use crate::read::{dataset_name, features, interchange};
use crate::source::{EachEdges, EdgeSource};

/// An interchange npz whose arrays fit together, as far as their headers say.
pub struct NpzPasses {
    path: PathBuf,
    limits: Limits,
    about: About,
    nodes: u64,
    edges: u64,
    /// Whether sources and targets take turns; otherwise all sources come first.
    in_pairs: bool,
    directed: bool,
    /// What the features are called, and their columns.
    features: Option<(&'static str, usize)>,
    classes: usize,
    labels: Vec<i32>,
    roles: Vec<u8>,
    ids: Option<Vec<i64>>,
}

/// Edges, and values of features, that are handed over at a time, or one row if that is more.
const CHUNK: u64 = 1 << 14;

/// What such a cut does not carry along.
const REFUSED: [(&str, &str); 13] = [
    ("edge_weight", "weights of edges"),
    ("ids_data", "ids that are texts"),
    ("features_data", "sparse features"),
    ("features_indptr", "sparse features"),
    ("val_edge_index", "edges that are held out"),
    ("valid_edge_index", "edges that are held out"),
    ("test_edge_index", "edges that are held out"),
    ("val_neg_edge_index", "pairs that are no edges"),
    ("valid_neg_edge_index", "pairs that are no edges"),
    ("test_neg_edge_index", "pairs that are no edges"),
    ("val_neg_targets", "pairs that are no edges"),
    ("valid_neg_targets", "pairs that are no edges"),
    ("test_neg_targets", "pairs that are no edges"),
];

impl NpzPasses {
    /// Looks at the headers of edges and features, and reads labels, splits and ids. Goes through the edges where
    /// nothing else says how many nodes there are.
    ///
    /// # Errors
    ///
    /// If an array is not what it should be, or there is one that needs the graph in memory: weights of edges, sparse
    /// features, several labels a node, ids that are texts, edges that are held out.
    pub fn open(path: &Path, limits: &Limits) -> Result<NpzPasses> {
        let mut npz = Npz::open(path, limits)?;
        if let Some((name, what)) = REFUSED.iter().find(|(name, _)| npz.has(name)) {
            return Err(whole(&npz, name, what));
        }
        let header = npz.values("edge_index", limits.edges_max.saturating_mul(2))?.header().clone();
        let [2, edges] = header.shape[..] else {
            let found = &header.shape;
            return Err(npz.error("edge_index", format!("expected the shape [2, edges], found {found:?}")));
        };
        let directed = npz.optional::<u8>("directed", 1)?.is_none_or(|array| array.values.first() != Some(&0));
        let mut about = interchange::read_about(&mut npz, limits)?;
        about.relations.clear();
        about.node_types.clear();
        let mut found = NpzPasses {
            path: path.to_owned(),
            limits: limits.clone(),
            about,
            nodes: u64::MAX,
            edges,
            in_pairs: header.fortran,
            directed,
            features: None,
            classes: 0,
            labels: Vec::new(),
            roles: Vec::new(),
            ids: None,
        };
        let in_edges = if npz.has("num_nodes") { 0 } else { found.largest()?.map_or(0, |largest| largest + 1) };
        let nodes = interchange::count_nodes(&mut npz, path, in_edges, limits)?;
        if nodes as u64 > u64::from(u32::MAX) {
            return Err(GraphError::too_large(path, "nodes", u32::MAX.into()));
        }
        found.nodes = nodes as u64;
        found.features = dense(&mut npz, found.nodes, limits)?;
        found.know_nodes(&mut npz, nodes)?;
        Ok(found)
    }

    /// Reads what is known of each node.
    fn know_nodes(&mut self, npz: &mut Npz, nodes: usize) -> Result<()> {
        match interchange::read_labels(npz, nodes, &self.limits)? {
            Labels::None => {}
            Labels::Single { classes, values } => (self.classes, self.labels) = (classes, values),
            Labels::Multi { .. } => return Err(whole(npz, "labels", "several labels a node")),
        }
        let splits = interchange::read_splits(npz, nodes, &self.limits)?;
        self.roles = splits.into_iter().next().unwrap_or_default().roles;
        match interchange::read_ids(npz, nodes, &self.limits)? {
            Ids::Row => {}
            Ids::Integers(ids) => self.ids = Some(ids),
            Ids::Strings(_) => return Err(whole(npz, "ids", "ids that are texts")),
        }
        Ok(())
    }

    fn largest(&self) -> Result<Option<u64>> {
        let mut largest = None;
        self.ends(&mut |pairs| {
            largest = largest.max(pairs.iter().map(|&(source, target)| source.max(target)).max());
            Ok(())
        })?;
        Ok(largest)
    }

    /// Edges as they stand there. Where all sources come before the targets, two readers go along.
    fn ends(&self, each: &mut EachEdges) -> Result<()> {
        let open = || Npz::open(&self.path, &self.limits);
        let (name, most) = ("edge_index", self.edges.saturating_mul(2));
        let (mut first, mut second) = (open()?, open()?);
        let (mut sources, mut targets) = (first.values(name, most)?, second.values(name, most)?);
        if [&sources, &targets].iter().any(|values| values.header().shape != [2, self.edges]) {
            return Err(GraphError::format(&self.path, "array 'edge_index'", "the file changed while it was read"));
        }
        let (mut ends, mut of_targets, mut pairs) = (Vec::<u32>::new(), Vec::<u32>::new(), Vec::new());
        if !self.in_pairs {
            targets.skip(self.edges)?;
        }
        let mut left = self.edges;
        while left > 0 {
            let count = left.min(CHUNK);
            pairs.clear();
            if self.in_pairs {
                sources.next(2 * count, &mut ends)?;
                pairs.extend(ends.chunks_exact(2).map(|ends| (u64::from(ends[0]), u64::from(ends[1]))));
            } else {
                sources.next(count, &mut ends)?;
                targets.next(count, &mut of_targets)?;
                pairs.extend(ends.iter().zip(&of_targets).map(|(&from, &to)| (u64::from(from), u64::from(to))));
            }
            each(&pairs)?;
            left -= count;
        }
        Ok(())
    }
}

fn whole(npz: &Npz, name: &str, what: &str) -> GraphError {
    npz.error(name, format!("{what} need the graph in memory: they are not read in passes"))
}

/// The name of dense features and their columns, if there are any.
fn dense(npz: &mut Npz, nodes: u64, limits: &Limits) -> Result<Option<(&'static str, usize)>> {
    let name = features::name(npz);
    if !npz.has(name) {
        return Ok(None);
    }
    let header = npz.values(name, limits.features_values_max)?.header().clone();
    match header.shape[..] {
        [rows, columns] if rows == nodes && header.fortran && columns > 1 && rows > 1 => {
            Err(npz.error(name, "expected C order, found Fortran order, which is not read in passes"))
        }
        [rows] if rows == nodes => Ok(Some((name, 1))),
        [rows, 0] if rows == nodes => Ok(None),
        [rows, columns] if rows == nodes && columns <= limits.columns_max => Ok(Some((name, columns as usize))),
        _ => {
            let (most, shape) = (limits.columns_max, &header.shape);
            let what =
                format!("expected {nodes} rows, one a node, of at most {most} columns, found the shape {shape:?}");
            Err(npz.error(name, what))
        }
    }
}

impl EdgeSource for NpzPasses {
    fn nodes(&self) -> u64 {
        self.nodes
    }

    fn pass(&self, each: &mut EachEdges) -> Result<()> {
        let nodes = self.nodes;
        let mut edge = 0;
        self.ends(&mut |pairs| {
            if let Some(at) = pairs.iter().position(|(source, target)| source.max(target) >= &nodes) {
                let ((source, target), edge) = (pairs[at], edge + at);
                let what = format!("expected ids in 0..{nodes}, found {source} and {target} at edge {edge}");
                return Err(GraphError::format(&self.path, "array 'edge_index'", what));
            }
            edge += pairs.len();
            each(pairs)
        })
    }
}

impl Input for NpzPasses {
    fn name(&self) -> String {
        dataset_name(&self.path)
    }

    fn is_directed(&self) -> bool {
        self.directed
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn columns(&self) -> usize {
        self.features.map_or(0, |(_, columns)| columns)
    }

    fn features(&self, each: &mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> {
        let Some((name, columns)) = self.features else { return Ok(()) };
        let mut npz = Npz::open(&self.path, &self.limits)?;
        let mut values = npz.values(name, self.limits.features_values_max)?;
        let columns = columns as u64;
        if values.left() != self.nodes * columns {
            let place = format!("array '{name}'");
            return Err(GraphError::format(&self.path, place, "the file changed while it was read"));
        }
        let (at_once, mut piece) = ((CHUNK / columns).max(1) * columns, Vec::new());
        while values.left() > 0 {
            values.next(at_once, &mut piece)?;
            each(&piece)?;
        }
        Ok(())
    }

    fn labels(&self) -> Result<Vec<i32>> {
        Ok(self.labels.clone())
    }

    fn roles(&self) -> Result<Vec<u8>> {
        Ok(self.roles.clone())
    }

    fn id(&self, node: u64) -> Option<Id<'_>> {
        self.ids.as_ref().and_then(|ids| ids.get(node as usize).copied()).map(Id::Integer)
    }

    fn memory(&self) -> u64 {
        let ids = self.ids.as_ref().map_or(0, Vec::len);
        (4 * self.labels.len() + self.roles.len() + 8 * ids) as u64
    }

    fn fingerprint(&self) -> Result<String> {
        fingerprint(&self.path)
    }
}
