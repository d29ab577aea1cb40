//! Which pairs of nodes are asked for, by the names of the data: known before anything is computed.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use laconic_graph::dataset::Ids;
use laconic_graph::error::GraphError;
use laconic_graph::limits::read_file;
use laconic_graph::links::{HeldOut, held_in};
use laconic_graph::part::Part;
use laconic_nn::links::PairRows;
use laconic_train::TrainError;
use laconic_train::plan::LinkPlan;

use super::relations::{Relations, is_column};

/// A file of pairs is no larger.
const BYTES_MAX: u64 = 4 << 30;

/// What all nodes are called, in the order of parts and of their rows.
pub struct Names {
    names: Vec<String>,
    rows: HashMap<String, u32>,
}

/// Which pairs are asked for.
pub enum Asked<'a> {
    /// All edges that are held out.
    Held,
    /// Those of a file.
    File(&'a Path),
    /// So many of the best targets for each of these nodes, by edges of a relation.
    Best(usize, &'a [String], Option<&'a str>),
}

/// The same by rows.
pub enum Wanted {
    /// These pairs.
    Pairs(PairRows),
    /// So many of the best targets for each of these nodes, by edges of a relation.
    Best(usize, Vec<u32>, Option<u32>),
}

/// What stands in the lines of a file of pairs, source and target first.
struct Columns {
    cells: usize,
    /// Where the relation stands.
    relation: Option<usize>,
    /// Whether a first line names them.
    are_named: bool,
}

impl Columns {
    /// Of a file without names of columns.
    fn usual(relations: Option<&Relations>) -> Columns {
        let relation = relations.map(|_| 2);
        Columns { cells: 2 + usize::from(relation.is_some()), relation, are_named: false }
    }

    /// Of a file whose first line this is.
    fn named(names: &[&str], relations: Option<&Relations>) -> Result<Columns, String> {
        let relation = names.iter().skip(2).position(|name| is_column(name)).map(|at| at + 2);
        match (relation, relations) {
            (None, Some(relations)) => {
                Err(format!("expected a column relation, found {}{}", names.join(", "), why(relations)))
            }
            _ => {
                Ok(Columns { cells: names.len(), relation: relation.filter(|_| relations.is_some()), are_named: true })
            }
        }
    }

    /// The names of those that nobody reads.
    fn idle<'a>(&self, names: &[&'a str]) -> Vec<&'a str> {
        let read = |at: usize| at < 2 || Some(at) == self.relation;
        names.iter().enumerate().filter(|(at, _)| !read(*at)).map(|(_, name)| *name).collect()
    }

    /// What is said of a line of so many cells, the first of the file or another.
    fn mismatch(&self, found: usize, is_first: bool, relations: Option<&Relations>) -> String {
        let usual = if self.relation.is_some() { "source,target,relation" } else { "source,target" };
        let is_usual = self.cells == Columns::usual(relations).cells;
        let expected = if is_usual { usual.to_owned() } else { format!("{} cells", self.cells) };
        let hint = if is_first { "; a first line may name the columns, source and target first" } else { "" };
        let lacks = relations.filter(|_| found == 2 && !self.are_named).map(why).unwrap_or_default();
        format!("expected {expected}, found {found} cells{hint}{lacks}")
    }
}

/// Why a relation is asked for.
fn why(relations: &Relations) -> String {
    format!("; this model scores pairs by their relation, one of {}: {}", relations.len(), relations.listed())
}

impl Names {
    /// Of all parts.
    ///
    /// # Errors
    /// If two nodes are called alike.
    pub fn of(parts: &[Part]) -> Result<Names> {
        let mut names = Vec::new();
        for part in parts {
            names.extend(part.nodes.iter().enumerate().map(|(row, node)| match &part.ids {
                Ids::Row => node.to_string(),
                Ids::Integers(ids) => ids[row].to_string(),
                Ids::Strings(ids) => ids[row].clone(),
            }));
        }
        let rows: HashMap<String, u32> = names.iter().cloned().zip(0..).collect();
        if rows.len() != names.len() {
            bail!("{} nodes have {} names: pairs could not be told apart", names.len(), rows.len());
        }
        Ok(Names { names, rows })
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// What the node of a row is called.
    pub fn name(&self, row: u32) -> &str {
        &self.names[row as usize]
    }

    /// What is asked for, by rows, with what is to be said about its reading.
    ///
    /// # Errors
    /// If the file cannot be read, a node or relation is unknown, or there is no relation where the model has some.
    pub fn find(&self, asked: &Asked<'_>, relations: Option<&Relations>) -> Result<(Wanted, Vec<String>)> {
        match asked {
            Asked::Held => bail!(NONE_HELD),
            Asked::File(path) => {
                let (pairs, notes) = self.read(path, relations)?;
                Ok((Wanted::Pairs(pairs), notes))
            }
            Asked::Best(count, names, relation) => {
                let row = |name: &String| self.row(name).with_context(|| nobody(name));
                let relation = match (relations, relation) {
                    (None, None) => None,
                    (None, Some(_)) => bail!("--relation: this model scores pairs of all relations alike"),
                    (Some(relations), None) => bail!("--best needs --relation NAME{}", why(relations)),
                    (Some(relations), Some(name)) => {
                        Some(relations.number(name).map_err(|what| anyhow::anyhow!("--relation: {what}"))?)
                    }
                };
                Ok((Wanted::Best(*count, names.iter().map(row).collect::<Result<_>>()?, relation), Vec::new()))
            }
        }
    }

    fn row(&self, name: &str) -> Option<u32> {
        self.rows.get(name).or_else(|| self.rows.get(name.trim())).copied()
    }

    /// The pairs of a file: a source and a target a line, and a relation where there are some; with a heading, columns
    /// may stand beside them.
    fn read(&self, path: &Path, relations: Option<&Relations>) -> Result<(PairRows, Vec<String>)> {
        let bytes = read_file(path, BYTES_MAX).map_err(|source| TrainError::io(path, source))?;
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&bytes);
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.has_headers(false).flexible(true).delimiter(separator(path, bytes)).from_reader(bytes);
        let (mut pairs, mut notes, mut columns) = (PairRows::default(), Vec::new(), Columns::usual(relations));
        let mut record = csv::StringRecord::new();
        for number in 0.. {
            let at = reader.position().clone();
            let error = |what: String| GraphError::format(path, format!("line {}", line(&at, bytes)), what);
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => return Err(error("expected text in UTF-8".to_owned()).into()),
            }
            let cells: Vec<&str> = record.iter().collect();
            if number == 0
                && let Some(said) = self.heading(&cells)
            {
                columns = Columns::named(&cells, relations).map_err(error)?;
                let idle = columns.idle(&cells);
                notes.extend(said.then(|| format!("note: the first line, {}, names the columns", cells.join(", "))));
                notes.extend((!idle.is_empty()).then(|| format!("note: not read: {}", idle.join(", "))));
                continue;
            }
            if cells.len() != columns.cells {
                return Err(error(columns.mismatch(cells.len(), number == 0, relations)).into());
            }
            let row = |name: &str| self.row(name).ok_or_else(|| error(nobody(name)));
            pairs.sources.push(row(cells[0])?);
            pairs.destinations.push(row(cells[1])?);
            if let (Some(relations), Some(at)) = (relations, columns.relation) {
                pairs.relations.push(relations.number(cells[at]).map_err(error)?);
            }
        }
        if pairs.is_empty() {
            return Err(GraphError::format(path, "end", "expected pairs, source,target a line, found none").into());
        }
        Ok((pairs, notes))
    }

    /// Whether the cells of a first line name its columns: by usual names, or because no node is called so, which is to
    /// be said.
    fn heading(&self, cells: &[&str]) -> Option<bool> {
        let [source, target, ..] = cells else { return None };
        let is_one_of = |name: &str, names: [&str; 4]| names.contains(&name.trim().to_lowercase().as_str());
        if is_one_of(source, ["source", "src", "from", "u"]) && is_one_of(target, ["target", "dst", "to", "v"]) {
            return Some(false);
        }
        // A number would be somebody's id, of other data.
        let is_word = |cell: &&str| self.row(cell).is_none() && cell.trim().parse::<f64>().is_err();
        [source, target].into_iter().all(is_word).then_some(true)
    }
}

/// What is said where nothing was asked for.
const NONE_HELD: &str = "this model predicts links, and no edges of these data are held out, which would be scored: \
    --pairs FILE scores some, --best K --of ID lists";

/// The edges of all parts that are held out, by validation and then by testing.
///
/// # Errors
/// If there are none, or some from nodes that no part has.
pub fn held(parts: &[Part], links: &LinkPlan) -> Result<PairRows> {
    let ids = parts.iter().flat_map(|part| part.nodes.iter().copied());
    let rows: HashMap<u64, u32> = ids.zip(0..).collect();
    let held: Vec<HeldOut> = parts.iter().map(|part| held_in(part, links.split.as_ref())).collect();
    let mut pairs = PairRows::default();
    for edge in held.iter().flat_map(|held| held.val.pairs()).chain(held.iter().flat_map(|held| held.test.pairs())) {
        let row = |id: u64| rows.get(&id).copied().with_context(|| format!("no part has node {id}"));
        pairs.sources.push(row(edge.source)?);
        pairs.destinations.push(row(edge.target)?);
        pairs.relations.extend(edge.relation.filter(|_| links.relations > 1).map(u32::from));
    }
    if pairs.is_empty() {
        bail!(NONE_HELD);
    }
    Ok(pairs)
}

fn nobody(name: &str) -> String {
    format!("no node is called {name:?}")
}

/// What stands between cells: what the file's name says, or what its first line has.
fn separator(path: &Path, bytes: &[u8]) -> u8 {
    let first = bytes.split(|&byte| byte == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    let is_csv = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let by_comma = is_csv && first.contains(&b',');
    if first.contains(&b'\t') && !by_comma { b'\t' } else { b',' }
}

/// The line in which a row begins that is read from here: empty lines before it count.
fn line(at: &csv::Position, bytes: &[u8]) -> u64 {
    let rest = bytes.get(at.byte() as usize..).unwrap_or_default();
    let empty = rest.iter().take_while(|byte| [b'\n', b'\r'].contains(byte));
    at.line() + empty.filter(|&&byte| byte == b'\n').count() as u64
}
