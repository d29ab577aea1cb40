//! Matrix Market files, `.mtx` or whatever begins with `%%MatrixMarket`, packed or not: the square matrix of a graph.
//!
//! Each entry `row column value` is an edge from the row's node to the column's, counted from 1, with its value as the
//! weight; of a `pattern` there are no weights. Entries of a `symmetric` matrix, of which files hold one triangle, lead
//! both ways, and so do those of a `skew-symmetric` one, with the other sign. A `.mtx` without the first line that says
//! all this is read as `general`, as the Network Repository has some. Where rows and columns are nodes of two kinds
//! (`data.bipartite`) there may be more of one than of the other.

use super::beside::{self, Square};
use super::blocks::{Blocks, Fields};
use super::edge_list::node_table_beside;
use super::edge_tables::refuse_idle;
use super::numbers::shorten;
use super::text::open_text;
use super::typed::{EdgesFound, NodesFound, counted};
use super::{ReadOptions, Reader, dataset_name, extension};
use crate::dataset::{Dataset, Features, Labels};
use crate::edges::EdgeData;
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::limits::Limits;
use crate::memory::{Growth, afford};
use crate::node_types::TypedNodes;
use crate::roles::{Role, Roles};
use std::path::Path;

/// The reader of Matrix Market files.
pub struct MatrixMarket;

const BANNER: &str = "%%MatrixMarket";

impl Reader for MatrixMarket {
    fn name(&self) -> &'static str {
        "Matrix Market file"
    }

    fn recognises(&self, path: &Path) -> bool {
        path.is_file() && (extension(path) == "mtx" || begins_with_banner(path))
    }

    fn reads_key(&self, key: &str) -> bool {
        key == "data.bipartite" || beside::reads_key(key)
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let mut blocks = Blocks::open(path, &options.limits)?;
        let header = Header::read(&mut blocks, path, options)?;
        let entries = header.entries(blocks, path, &options.limits)?;
        let mut roles = Roles::default();
        let mut lines = roles.of_table(path);
        let kept = if header.is_undirected() { ", and back" } else { "" };
        lines.line(Role::Source, &[], "rows of the matrix");
        lines.line(Role::Target, &[], format!("columns of the matrix{kept}"));
        if header.has_values {
            lines.line(Role::Weight, &[], "values");
        }
        let Entries { sources, targets, weights } = entries;
        let weights = header.has_values.then_some(weights);
        if options.bipartite {
            let relation = EdgesFound { name: dataset_name(path), ends: [0, 1], sources, targets, weights };
            return two_kinds(path, [header.rows, header.columns], relation, (options, roles));
        }
        let nodes = header.rows as usize;
        let undirected = header.symmetry == Symmetry::Symmetric;
        let data = EdgeData::from(weights);
        Square { nodes, first: 1, sources, targets, data, undirected }.read(path, options, roles)
    }
}

fn begins_with_banner(path: &Path) -> bool {
    let mut start = [0; BANNER.len()];
    let read = open_text(path, &Limits::default()).is_ok_and(|mut from| from.read_exact(&mut start).is_ok());
    read && start.eq_ignore_ascii_case(BANNER.as_bytes())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// What stands above the entries.
struct Header {
    rows: u64,
    columns: u64,
    entries: u64,
    symmetry: Symmetry,
    has_values: bool,
}

#[derive(Default)]
struct Entries {
    sources: Vec<u32>,
    targets: Vec<u32>,
    weights: Vec<f32>,
}

impl Header {
    fn read(blocks: &mut Blocks, path: &Path, options: &ReadOptions) -> Result<Header> {
        let limits = &options.limits;
        let mut told = None;
        let mut number = 0;
        let sizes = loop {
            let Some(line) = blocks.next_line()? else {
                return Err(GraphError::format(path, "header", "expected the line 'rows columns entries'"));
            };
            number += 1;
            if number == 1 && line.get(..BANNER.len()).is_some_and(|start| start.eq_ignore_ascii_case(BANNER)) {
                told = Some(banner(&line).map_err(|what| blocks.error(what))?);
            } else if !line.starts_with('%') && !line.is_empty() {
                break line;
            }
        };
        let mut fields = Fields(sizes.as_bytes());
        let found = [fields.count(), fields.count(), fields.count()];
        let [Some(rows), Some(columns), Some(entries)] = found else {
            let what = format!("expected the line 'rows columns entries', found '{}'", shorten(&sizes));
            return Err(blocks.error(what));
        };
        if rows != columns && !options.bipartite {
            let way = "--bipartite (data.bipartite) reads it as links between nodes of two kinds";
            return Err(blocks.error(rectangular((rows, columns), way)));
        }
        if entries > limits.edges_max {
            return Err(GraphError::too_large(path, "entries", limits.edges_max));
        }
        let bytes = std::fs::metadata(path).map_err(|e| GraphError::io(path, e))?.len();
        limits.accept_nodes(path, "rows", rows, (0, bytes))?;
        limits.accept_nodes(path, "columns", columns, (0, bytes))?;
        let (symmetry, has_values) = match told {
            Some(told) => told,
            // Then it is the first entry that says whether there are values.
            None => {
                let first = blocks.peek()?.unwrap_or_default();
                let mut fields = Fields(first.as_bytes());
                (Symmetry::General, std::iter::from_fn(|| fields.next()).count() > 2)
            }
        };
        if options.bipartite && symmetry != Symmetry::General {
            let what = "a matrix that is symmetric has rows and columns of one kind: read it without --bipartite";
            return Err(GraphError::format(path, "header", what));
        }
        Ok(Header { rows, columns, entries, symmetry, has_values })
    }

    fn is_undirected(&self) -> bool {
        self.symmetry != Symmetry::General
    }

    /// All entries, as they are numbered here: from 0.
    fn entries(&self, blocks: Blocks, path: &Path, limits: &Limits) -> Result<Entries> {
        let mut all = Entries::default();
        let bytes = std::fs::metadata(path).map_err(|e| GraphError::io(path, e))?.len();
        // No more than the shortest lines would be, `1 1`: what a header says is only believed as far as a file goes.
        let expected = self.entries.min(bytes / 4) as usize;
        // Where there is no memory for them, the growth below says so.
        if afford(expected as u64 * 12).is_ok() {
            let weights = if self.has_values { expected } else { 0 };
            all.sources = laconic_array::with_capacity(expected);
            all.targets = laconic_array::with_capacity(expected);
            all.weights = laconic_array::with_capacity(weights);
        }
        let mut growth = Growth::new();
        let parse = |line: &[u8], into: &mut Entries| self.entry(line, into);
        blocks.each(parse, |piece: Entries| {
            all.sources.extend(piece.sources);
            all.targets.extend(piece.targets);
            all.weights.extend(piece.weights);
            if all.sources.len() as u64 > limits.edges_max {
                return Err(format!("expected at most {} entries", limits.edges_max));
            }
            growth.to(all.sources.len() as u64 * 12).map_err(|what| format!("what stands above {what}"))
        })?;
        let mirrored = if self.symmetry == Symmetry::Skew { 2 } else { 1 };
        let found = all.sources.len() as u64 / mirrored;
        if found != self.entries {
            let what = format!("expected {} entries, as the line of sizes says, found {found}", self.entries);
            return Err(GraphError::format(path, "end", what));
        }
        Ok(all)
    }

    fn entry(&self, line: &[u8], into: &mut Entries) -> std::result::Result<(), String> {
        let mut fields = Fields(line);
        let before = fields.0;
        let (Some(row), Some(column)) = (fields.count(), fields.count()) else {
            let is_empty = Fields(before).next().is_none_or(|field| field.starts_with(b"%"));
            return if is_empty { Ok(()) } else { Err(self.expected(line)) };
        };
        if row.wrapping_sub(1) >= self.rows || column.wrapping_sub(1) >= self.columns {
            return Err(self.expected(line));
        }
        let weight =
            if self.has_values { Some(fields.number().ok_or_else(|| self.expected(line))? as f32) } else { None };
        if fields.next().is_some() {
            return Err(self.expected(line));
        }
        let (source, target) = ((row - 1) as u32, (column - 1) as u32);
        into.sources.push(source);
        into.targets.push(target);
        into.weights.extend(weight);
        if self.symmetry == Symmetry::Skew {
            if source == target {
                return Err("expected nothing on the diagonal of a skew-symmetric matrix".to_owned());
            }
            into.sources.push(target);
            into.targets.push(source);
            into.weights.extend(weight.map(|weight| -weight));
        }
        Ok(())
    }

    fn expected(&self, line: &[u8]) -> String {
        let value = if self.has_values { " and a value" } else { "" };
        let found = String::from_utf8_lossy(line);
        let sizes = if self.rows == self.columns {
            format!("a row and a column in 1..={}", self.rows)
        } else {
            format!("a row in 1..={} and a column in 1..={}", self.rows, self.columns)
        };
        format!("expected {sizes}{value}, found '{}'", shorten(found.trim()))
    }
}

/// What the first line says: symmetry, and whether there are values.
fn banner(line: &str) -> std::result::Result<(Symmetry, bool), String> {
    let words: Vec<String> = line.split_ascii_whitespace().skip(1).map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [object, format, field, symmetry] = words[..] else {
        return Err(format!("expected '{BANNER} matrix coordinate FIELD SYMMETRY', found '{}'", shorten(line)));
    };
    if object != "matrix" || format != "coordinate" {
        return Err(format!(
            "a {object} in {format} form, expected a matrix in coordinate form: \
             scipy.io.mmwrite(\"graph.mtx\", scipy.sparse.coo_matrix(scipy.io.mmread(FILE))) writes it so"
        ));
    }
    let has_values = match field {
        "real" | "integer" | "double" | "unsigned-integer" => true,
        "pattern" => false,
        "complex" => return Err("complex values are no weights of edges; write their real part or modulus".to_owned()),
        _ => return Err(format!("expected real, integer or pattern, found '{}'", shorten(field))),
    };
    match symmetry {
        "general" => Ok((Symmetry::General, has_values)),
        "symmetric" => Ok((Symmetry::Symmetric, has_values)),
        "skew-symmetric" if has_values => Ok((Symmetry::Skew, true)),
        _ => Err(format!("expected general, symmetric or skew-symmetric with values, found '{}'", shorten(symmetry))),
    }
}

/// Why a matrix whose rows are not its columns is no graph of one kind of nodes, and what to do.
pub(super) fn rectangular((rows, columns): (u64, u64), way: &str) -> String {
    format!(
        "a matrix of {rows} rows and {columns} columns, and a graph's has as many of each: rows and columns are \
         different things; {way}. Counts of genes in cells (10x, scanpy) become a graph of cells by their neighbours \
         (scanpy.pp.neighbors, then examples/savers/from_h5ad.py)"
    )
}

/// The dataset of a matrix whose rows are nodes of one kind and whose columns are nodes of another, both from 1.
fn two_kinds(
    path: &Path,
    counts: [u64; 2],
    relation: EdgesFound,
    (options, mut roles): (&ReadOptions, Roles),
) -> Result<(Dataset, Roles)> {
    if let Some(nodes) = node_table_beside(path, options) {
        let what = "a matrix with --bipartite has no node table: nodes of two kinds need one each, in a folder with \
                    nodes/A.csv, nodes/B.csv and edges/A__RELATION__B.csv";
        return Err(GraphError::format(&nodes, "nodes", what));
    }
    refuse_idle(options, false, &roles)?;
    let side = |(name, count): (&str, u64)| NodesFound {
        nodes: TypedNodes { name: name.to_owned(), features: Features::None, columns: Vec::new() },
        exact: Exact::default(),
        count: count as usize,
        ids: (1..=count).map(|id| id.to_string()).collect(),
        labels: Labels::None,
        classes: Vec::new(),
        splits: Vec::new(),
    };
    let types = ["row", "column"].into_iter().zip(counts).map(side).collect();
    let (entries, weighted) = (relation.sources.len(), relation.weights.is_some());
    let relation = EdgesFound { name: format!("row__{}__column", relation.name), ..relation };
    let (dataset, removed) = counted(path, (types, vec![relation]), options)?;
    let mut lines = roles.of_table(path);
    lines.left_out(&removed, entries, weighted);
    if weighted {
        lines.merged(&removed, options.duplicates);
    }
    Ok((dataset, roles))
}
