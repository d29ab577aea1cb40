//! METIS `.graph` files: a header `nodes edges [format [weights]]`, then one line a node with its neighbours, counted
//! from 1.
//!
//! Both directions of an edge are in the file, so an undirected graph comes out as it is. Vertex weights and sizes are
//! skipped, edge weights are kept. Lines that start with `%` are comments; an empty line is a node without neighbours.

use super::numbers::shorten;
use super::text::Lines;
use super::{ReadOptions, Reader, dataset_name, extension};
use crate::about::About;
use crate::build::{Removed, build_graph};
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::error::{GraphError, Result};
use crate::roles::Roles;
use std::path::Path;

/// The reader of METIS graphs.
pub struct MetisGraph;

impl Reader for MetisGraph {
    fn name(&self) -> &'static str {
        "METIS graph"
    }

    fn recognises(&self, path: &Path) -> bool {
        path.is_file() && ["graph", "metis"].contains(&extension(path).as_str())
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let limits = &options.limits;
        let mut lines = Lines::open(path, limits)?;
        let header = match next(&mut lines)? {
            Some(line) => Header::parse(line),
            None => Err("expected the header 'nodes edges', found the end of the file".to_owned()),
        };
        let header = header.map_err(|what| lines.error(what))?;
        // Nothing is made for nodes before each has had its line.
        let nodes = limits.accept_nodes(path, "header", header.nodes, (header.nodes, 0))?;
        if header.edges > limits.edges_max / 2 {
            return Err(GraphError::too_large(path, "header", limits.edges_max));
        }
        let mut edges = Edges { header, sources: vec![], targets: vec![], weights: vec![] };
        for node in 0..nodes {
            let outcome = match next(&mut lines)? {
                Some(line) => edges.add_line(node as u32, line),
                None => Err(format!("expected {nodes} lines of neighbours, found {node}")),
            };
            outcome.map_err(|what| lines.error(what))?;
        }
        while let Some(line) = next(&mut lines)? {
            if !line.is_empty() {
                return Err(lines.error(format!("expected the end after {nodes} lines of neighbours")));
            }
        }
        let Edges { header, sources, targets, weights } = edges;
        // NetworKit lists an edge from a node to itself once.
        let loops = sources.iter().zip(&targets).filter(|(source, target)| source == target).count();
        if sources.len() as u64 != header.edges * 2 && (sources.len() + loops) as u64 != header.edges * 2 {
            let (promised, found) = (header.edges, sources.len());
            let expected = format!("{promised} edges promised, so {} neighbours expected, found {found}", promised * 2);
            return Err(GraphError::format(path, "header", expected));
        }
        let (weights, listed) = (header.edge_weights.then_some(weights), sources.len());
        let built = build_graph(nodes, sources, targets, weights, options.build());
        let (graph, removed) = built.map_err(|e| GraphError::format(path, "edges", e.to_string()))?;
        let mut roles = Roles::default();
        roles.of_table(path).left_out(&Removed { duplicates: 0, reciprocal: 0, ..removed }, listed, false);
        if graph.data.weights.is_some() {
            roles.of_table(path).merged(&removed, options.duplicates);
        }
        let (features, labels) = (Features::None, Labels::None);
        let dataset = Dataset {
            name: dataset_name(path),
            graph,
            features,
            labels,
            splits: Vec::new(),
            ids: Ids::Row,
            about: About::default(),
            exact: Default::default(),
            negatives: None,
        };
        Ok((dataset.checked()?, roles))
    }
}

/// The next line that is not a comment.
fn next(lines: &mut Lines) -> Result<Option<&str>> {
    loop {
        match lines.next_line()? {
            // Asked for again below, because a line that is given away cannot be given up.
            Some(line) if line.starts_with('%') => {}
            Some(_) => return Ok(Some(lines.line())),
            None => return Ok(None),
        }
    }
}

struct Header {
    nodes: u64,
    edges: u64,
    /// How many numbers (vertex size and weights) precede the neighbours.
    skipped: usize,
    edge_weights: bool,
}

impl Header {
    fn parse(line: &str) -> std::result::Result<Header, String> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let found = || format!("expected the header 'nodes edges [format [weights]]', found '{}'", shorten(line));
        let number = |field: usize| fields[field].parse::<u64>().map_err(|_| found());
        if !(2..=4).contains(&fields.len()) {
            return Err(found());
        }
        let format = fields.get(2).copied().unwrap_or("0");
        if format.len() > 3 || !format.bytes().all(|digit| digit == b'0' || digit == b'1') {
            return Err(format!("expected a format of up to three digits 0 or 1, found '{}'", shorten(format)));
        }
        // The digits say, from the left: vertex sizes, vertex weights, edge weights.
        let has = |place: usize| format.len() > place && format.as_bytes()[format.len() - 1 - place] == b'1';
        let weights = if fields.len() == 4 { number(3)? } else { 1 };
        if weights > 1 << 16 {
            return Err(format!("{weights} weights a vertex are more than can be meant"));
        }
        let skipped = usize::from(has(2)) + if has(1) { weights as usize } else { 0 };
        Ok(Header { nodes: number(0)?, edges: number(1)?, skipped, edge_weights: has(0) })
    }
}

struct Edges {
    header: Header,
    sources: Vec<u32>,
    targets: Vec<u32>,
    weights: Vec<f32>,
}

impl Edges {
    fn add_line(&mut self, node: u32, line: &str) -> std::result::Result<(), String> {
        let mut fields = line.split_ascii_whitespace();
        for _ in 0..self.header.skipped {
            let field = fields.next().ok_or_else(|| format!("expected {} vertex weights", self.header.skipped))?;
            field.parse::<f64>().map_err(|_| format!("found '{}', expected a vertex weight", shorten(field)))?;
        }
        while let Some(field) = fields.next() {
            let nodes = self.header.nodes;
            let neighbour = field.parse::<u64>().ok().filter(|id| (1..=nodes).contains(id));
            let neighbour =
                neighbour.ok_or_else(|| format!("found '{}', expected a neighbour in 1..={nodes}", shorten(field)))?;
            if self.header.edge_weights {
                let weight = fields.next().and_then(|weight| weight.parse().ok());
                self.weights.push(weight.ok_or_else(|| format!("expected a weight after neighbour {neighbour}"))?);
            }
            if self.sources.len() as u64 == self.header.edges * 2 {
                return Err(format!("more neighbours than the {} edges of the header have ends", self.header.edges));
            }
            self.sources.push(node);
            self.targets.push((neighbour - 1) as u32);
        }
        Ok(())
    }
}
