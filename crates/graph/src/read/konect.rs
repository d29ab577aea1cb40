//! KONECT's `out.NAME`, and all lists of edges that begin as these do: `% sym`, `% asym` or `% bip`, and what weights
//! are, then `from to [weight [time]]` with blanks, tabs or commas between them, counted from 1.
//!
//! Edges of a `sym` network lead both ways. In a `bip` one both columns count on their own, so that nodes are called
//! `left/1` and `right/1`. Times are not read.

use super::blocks::{Blocks, Fields};
use super::column::Table;
use super::edge_list::node_table_beside;
use super::edge_tables::Tables;
use super::made_table::{Cells, MadeTable};
use super::node_table::open_nodes;
use super::numbers::shorten;
use super::{ReadOptions, Reader};
use crate::dataset::Dataset;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::Growth;
use crate::roles::Roles;
use std::path::{Path, PathBuf};

/// The reader of KONECT's networks.
pub struct Konect;

impl Reader for Konect {
    fn name(&self) -> &'static str {
        "KONECT network"
    }

    fn recognises(&self, path: &Path) -> bool {
        let Some(path) = list_in(path) else { return false };
        Blocks::open(&path, &LOOK()).is_ok_and(|mut blocks| Heading::read(&mut blocks).is_ok())
    }

    fn reads_key(&self, _key: &str) -> bool {
        true
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let list = list_in(path).ok_or_else(|| GraphError::format(path, "folder", "expected one file out.NAME"))?;
        let path = list.as_path();
        let mut blocks = Blocks::open(path, &options.limits)?;
        let heading = Heading::read(&mut blocks)?;
        let list = read_list(blocks, &heading, path, &options.limits)?;
        let nodes = node_table_beside(path, options).map(|path| Ok((open_nodes(&path, options)?, path))).transpose()?;
        let edges: Box<dyn Table> = Box::new(list.table(path, &heading));
        let options = ReadOptions { symmetrise: options.symmetrise || heading.is_symmetric, ..options.clone() };
        Tables { edges: (edges, path.to_owned()), nodes }.read(path, &options)
    }
}

/// The file of edges: the one that this is, or the only `out.NAME` of a folder as it is unpacked.
fn list_in(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut lists = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("out."));
    lists.next().map(|entry| entry.path()).filter(|list| list.is_file() && lists.next().is_none())
}

/// A file that is only looked at needs no long lines.
const LOOK: fn() -> Limits = || Limits { line_bytes_max: 1 << 12, ..Limits::default() };

/// What the first line says.
struct Heading {
    is_symmetric: bool,
    is_bipartite: bool,
    has_weights: bool,
}

impl Heading {
    fn read(blocks: &mut Blocks) -> Result<Heading> {
        let line = blocks.next_line()?.unwrap_or_default();
        let words: Vec<&str> = line.strip_prefix('%').unwrap_or("").split_ascii_whitespace().collect();
        let is_known = |word: &&str| ["sym", "asym", "bip"].contains(word);
        let Some(kind) = words.first().filter(|word| is_known(word)) else {
            return Err(blocks.error(format!("expected '% sym', '% asym' or '% bip', found '{}'", shorten(&line))));
        };
        // What it is, and what weights are: `unweighted` and `positive` (edges that come several times) have none
        // where there is no third column.
        let has_weights = words.get(1) != Some(&"unweighted");
        Ok(Heading { is_symmetric: *kind == "sym", is_bipartite: *kind == "bip", has_weights })
    }
}

#[derive(Default)]
struct List {
    sources: Vec<i64>,
    targets: Vec<i64>,
    weights: Vec<f64>,
}

fn read_list(blocks: Blocks, heading: &Heading, path: &Path, limits: &Limits) -> Result<List> {
    let mut all = List::default();
    let mut growth = Growth::new();
    let parse = |line: &[u8], into: &mut List| {
        let mut fields = Fields(line);
        let (Some(source), Some(target)) = (fields.count(), fields.count()) else {
            let is_empty = Fields(line).next().is_none_or(|field| field.starts_with(b"%"));
            return if is_empty { Ok(()) } else { Err(expected(line)) };
        };
        into.sources.push(source as i64);
        into.targets.push(target as i64);
        if heading.has_weights && fields.0.iter().any(|byte| !byte.is_ascii_whitespace()) {
            into.weights.push(fields.number().ok_or_else(|| expected(line))?);
        }
        Ok(())
    };
    blocks.each(parse, |piece: List| {
        all.sources.extend(piece.sources);
        all.targets.extend(piece.targets);
        all.weights.extend(piece.weights);
        if all.sources.len() as u64 > limits.edges_max {
            return Err(format!("expected at most {} edges", limits.edges_max));
        }
        growth.to(all.sources.len() as u64 * 24).map_err(|what| format!("what stands above {what}"))
    })?;
    if !all.weights.is_empty() && all.weights.len() != all.sources.len() {
        let (edges, found) = (all.sources.len(), all.weights.len());
        let what = format!("expected a weight of each of {edges} edges or of none, found {found}");
        return Err(GraphError::format(path, "weights", what));
    }
    Ok(all)
}

fn expected(line: &[u8]) -> String {
    let found = String::from_utf8_lossy(line);
    format!("expected from, to, and perhaps a weight and a time, found '{}'", shorten(found.trim()))
}

impl List {
    fn table(self, path: &Path, heading: &Heading) -> MadeTable {
        let ends = |side: &str, ids: Vec<i64>| match heading.is_bipartite {
            true => Cells::Texts(ids.into_iter().map(|id| Some(format!("{side}/{id}"))).collect()),
            false => Cells::Integers(ids),
        };
        let columns = [("source", ends("left", self.sources)), ("target", ends("right", self.targets))];
        let weights = (!self.weights.is_empty()).then_some(("weight", Cells::Floats(self.weights)));
        let columns = columns.into_iter().chain(weights).map(|(name, cells)| (name.to_owned(), cells));
        MadeTable::new(path, columns.collect())
    }
}
