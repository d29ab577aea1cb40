//! From a site's tables to its part.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use laconic_array::Array;
use schemars::JsonSchema;
use serde::Serialize;

use super::edges::{Known, Listed};
use super::id::SiteId;
use super::nodes::Nodes;
use super::schema::{FeatureSchema, Schema};
use crate::build::{BuildOptions, Duplicates, Removed, build_graph};
use crate::dataset::{Features, Ids, Labels, Split};
use crate::edges::Edges;
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::limits::Limits;
use crate::owners::Owners;
use crate::part::{GlobalCounts, Part, Provenance};

/// What [`Provenance::method`] says of parts that sites built themselves.
const METHOD: &str = "site";

/// A part, and what became of the tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The part, with this site's nodes alone.
    pub part: Part,
    /// How it was made, as its folder says.
    pub provenance: Provenance,
    /// Edges that start at other sites' nodes, by site.
    pub from: Vec<FromSite>,
    /// Edges that end at other sites' nodes and are not used: these sites have them in tables of their own, or not.
    pub elsewhere: u64,
    /// What was left out of the lists: loops, and edges that are listed several times.
    pub removed: Removed,
    /// Columns of all tables that the schema does not name.
    pub unread: Vec<String>,
}

/// What of a part starts at another site.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FromSite {
    /// What the site is called.
    pub site: String,
    /// Edges that end here and start there.
    pub edges: u64,
    /// Nodes there at which they start.
    pub nodes: u64,
}

/// Builds the part of the site `site` from its node table and its edge tables.
///
/// # Errors
///
/// If a table cannot be read or does not keep the schema, by file, line and column; if two ids of the tables have one
/// number on the wire; if there is no such site.
pub fn build(schema: &Schema, site: &str, nodes: &Path, edges: &[PathBuf], limits: &Limits) -> Result<Built> {
    let number = schema.site(site).map_err(GraphError::invalid)?;
    let mut read = Nodes::read(nodes, schema, number, limits)?;
    let ids = |what| GraphError::format(nodes, "ids", what);
    let mut known = Known::of(schema, number, &read.ids).map_err(ids)?;
    let mut listed = Listed::default();
    for path in edges {
        listed.read(path, &mut known, limits)?;
    }
    read.unread.append(&mut listed.unread);
    let all = known.all();
    if all.len() as u64 > limits.nodes_max {
        return Err(GraphError::too_large(nodes, "nodes, and nodes of other sites", limits.nodes_max));
    }
    let (graph, removed) = graph(schema, &all, listed)?;
    let own: Vec<usize> = (0..all.len()).filter(|&node| known.is_own(all[node])).collect();
    let ours = into(&graph, &own, &all);
    let elsewhere = (graph.edges() - ours.edges()) as u64;
    let owners = owners(&ours, &known);
    let from = from(schema, &ours, &known);
    let unread = std::mem::take(&mut read.unread);
    let part = part(schema, number, read, (ours, owners));
    part.check()?;
    Ok(Built { provenance: Provenance { method: METHOD.to_owned(), seed: 0 }, part, from, elsewhere, removed, unread })
}

impl Built {
    /// Own nodes of each split.
    pub fn split(&self) -> [u64; 3] {
        let of = |wanted: u8| self.part.roles.iter().filter(|&&role| role & wanted != 0).count() as u64;
        [Split::TRAIN, Split::VAL, Split::TEST].map(of)
    }

    /// Own nodes of each class, in the order of the schema.
    pub fn classes(&self) -> Vec<(String, u64)> {
        let Labels::Single { values, .. } = &self.part.labels else { return Vec::new() };
        let names = self.part.global.about.classes.iter().zip(0..);
        names.map(|(name, class)| (name.clone(), values.iter().filter(|&&of| of == class).count() as u64)).collect()
    }

    /// Nodes with a label.
    pub fn labelled(&self) -> u64 {
        let Labels::Single { values, .. } = &self.part.labels else { return 0 };
        values.iter().filter(|&&class| class >= 0).count() as u64
    }
}

/// The edges of all tables between the nodes of these ids, by their places, as any reader of tables makes a graph.
fn graph(schema: &Schema, all: &[u64], listed: Listed) -> Result<(Graph, Removed)> {
    // All ends are among them.
    let places = |ends: Vec<u64>| ends.iter().map(|id| all.partition_point(|other| other < id) as u32).collect();
    let [sources, targets] = listed.ends.map(places);
    let weights = schema.edges.weight.is_some().then_some(listed.weights);
    // The largest, since each of two sites may list an edge between them, or both its directions.
    let options =
        BuildOptions { symmetrise: schema.edges.symmetrise, keep_self_loops: false, duplicates: Duplicates::Max };
    build_graph(all.len(), sources, targets, weights, options)
}

/// The edges that end at own nodes, by the ids of their sources.
fn into(graph: &Graph, own: &[usize], all: &[u64]) -> Edges<u64> {
    let mut edges = Edges { offsets: vec![0], sources: Vec::new(), data: graph.data.like(0) };
    for &node in own {
        edges.sources.extend(graph.in_neighbours(node).iter().map(|&source| all[source as usize]));
        edges.data.extend(&graph.data, graph.in_edges(node));
        edges.offsets.push(edges.sources.len() as u64);
    }
    edges
}

/// Whose the foreign sources are; their rows nobody has told.
fn owners(edges: &Edges<u64>, known: &Known) -> Owners {
    let mut ids: Vec<u64> = edges.sources.iter().copied().filter(|&id| !known.is_own(id)).collect();
    ids.sort_unstable();
    ids.dedup();
    Owners { parts: ids.iter().map(|&id| known.site_of(id)).collect(), ids, rows: Vec::new() }
}

fn from(schema: &Schema, edges: &Edges<u64>, known: &Known) -> Vec<FromSite> {
    let mut sites: BTreeMap<u32, (u64, Vec<u64>)> = BTreeMap::new();
    for &id in edges.sources.iter().filter(|&&id| !known.is_own(id)) {
        let (count, nodes) = sites.entry(known.site_of(id)).or_default();
        *count += 1;
        nodes.push(id);
    }
    let of_site = |(site, (edges, mut nodes)): (u32, (u64, Vec<u64>))| {
        nodes.sort_unstable();
        nodes.dedup();
        FromSite { site: schema.sites[site as usize].clone(), edges, nodes: nodes.len() as u64 }
    };
    sites.into_iter().map(of_site).collect()
}

/// The part of a site, whose rows are in the order of ids on the wire.
fn part(schema: &Schema, site: u32, nodes: Nodes, (edges, owners): (Edges<u64>, Owners)) -> Part {
    let Nodes { ids, features, labels, roles, .. } = nodes;
    let wire: Vec<u64> = ids.iter().map(|own| schema.wire(SiteId { site, own })).collect();
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_unstable_by_key(|&row| wire[row]);
    let columns: usize = schema.nodes.features.iter().map(FeatureSchema::width).sum();
    let mut rows: Array<f32> = Array::zeros(ids.len() * columns);
    for (into, &row) in rows.chunks_exact_mut(columns.max(1)).zip(&order) {
        into.copy_from_slice(&features[row * columns..][..columns]);
    }
    let classes = schema.nodes.label.classes.len();
    let full = |&row: &usize| schema.full(SiteId { site, own: &ids[row] });
    Part {
        index: site,
        parts: schema.sites.len() as u32,
        nodes: order.iter().map(|&row| wire[row]).collect(),
        edges,
        owners: Some(owners),
        left_out: Vec::new(),
        negatives: None,
        features: if columns > 0 { Features::Dense { columns, values: rows } } else { Features::None },
        labels: Labels::Single { classes, values: order.iter().map(|&row| labels[row]).collect() },
        roles: order.iter().map(|&row| roles[row]).collect(),
        ids: Ids::Strings(order.iter().map(full).collect()),
        global: GlobalCounts {
            dataset: schema.name.clone(),
            schema: schema.digest(),
            columns,
            classes,
            weighted: schema.edges.weight.is_some(),
            about: schema.about(),
            part_names: schema.sites.clone(),
            ..GlobalCounts::default()
        },
    }
}
