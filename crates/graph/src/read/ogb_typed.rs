//! OGB folders of several types of nodes and edges, as ogbn-mag's, with raw CSV, packed or not:
//!
//! | file | what is in it |
//! |---|---|
//! | `raw/num-node-dict.csv` | the types' names, and below how many nodes each has |
//! | `raw/triplet-type-list.csv` | a line a relation: type of sources, name, type of targets |
//! | `raw/relations/S___R___T/edge.csv` | its edges, by rows of their types |
//! | `raw/node-feat/TYPE/node-feat.csv` | features of the types that have some |
//! | `raw/node-label/TYPE/node-label.csv` | labels of the one type that is learned |
//! | `split/NAME/TYPE/{train,valid,test}.csv` | its splits |

use super::numbers::{read_numbers, shorten};
use super::ogb::{read_edges, read_splits, required};
use super::text::{Lines, find_text};
use super::typed::{EdgesFound, NodesFound, TYPES_MAX, together, type_named};
use super::{ReadOptions, Reader, features, labels};
use crate::dataset::{Dataset, Features, Labels};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::limits::Limits;
use crate::node_types::TypedNodes;
use std::path::Path;

/// The reader of OGB folders with several types.
pub struct OgbTyped;

const COUNTS: &str = "num-node-dict.csv";
const TRIPLETS: &str = "triplet-type-list.csv";

impl Reader for OgbTyped {
    fn name(&self) -> &'static str {
        "OGB folder of several types"
    }

    fn recognises(&self, path: &Path) -> bool {
        let raw = path.join("raw");
        find_text(&raw, &[COUNTS]).is_some() && find_text(&raw, &[TRIPLETS]).is_some()
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let (raw, limits) = (path.join("raw"), &options.limits);
        let counts = read_counts(&required(&raw, COUNTS)?, limits)?;
        let mut types: Vec<NodesFound> =
            counts.into_iter().map(|kind| read_nodes(path, kind, limits)).collect::<Result<_>>()?;
        let triplets_path = required(&raw, TRIPLETS)?;
        let triplet = |triplet: [String; 3]| {
            let [source, name, target] = &triplet;
            let ends = [type_named(&triplets_path, &types, source)?, type_named(&triplets_path, &types, target)?];
            let folder = raw.join("relations").join(format!("{source}___{name}___{target}"));
            let file = required(&folder, "edge.csv")?;
            let (sources, targets) = read_edges(&file, limits)?;
            for (rows, end) in [(&sources, ends[0]), (&targets, ends[1])] {
                let count = types[end].count;
                if let Some(edge) = rows.iter().position(|&row| row as usize >= count) {
                    let (row, of) = (rows[edge], &types[end].nodes.name);
                    let what = format!("expected a node of {of} in 0..{count}, found {row}");
                    return Err(GraphError::format(&file, format!("line {}", edge + 1), what));
                }
            }
            Ok(EdgesFound { name: triplet.join("__"), ends, sources, targets, weights: None })
        };
        let relations = read_triplets(&triplets_path, limits)?.into_iter().map(triplet);
        let relations: Vec<EdgesFound> = relations.collect::<Result<_>>()?;
        // What is counted must be vouched for by something that is there.
        let known = |kind: &&NodesFound| kind.nodes.features != Features::None || kind.labels != Labels::None;
        let rows: usize = types.iter().filter(known).map(|kind| kind.count).sum();
        let edges: usize = relations.iter().map(|relation| relation.sources.len()).sum();
        let all: usize = types.iter().map(|kind| kind.count).sum();
        limits.accept_nodes(&raw.join(COUNTS), "line 2", all as u64, (rows as u64, 2 * edges as u64))?;
        for kind in &mut types {
            kind.splits = read_splits(&path.join("split"), Some(&kind.nodes.name), kind.count, limits)?;
        }
        together(path, (types, relations), options)
    }
}

/// The types' names in the first line and how many nodes each has in the second.
fn read_counts(path: &Path, limits: &Limits) -> Result<Vec<(String, usize)>> {
    let mut lines = Lines::open(path, limits)?;
    let names: Vec<String> = lines.next_line()?.unwrap_or("").split(',').map(|name| name.trim().to_owned()).collect();
    if names.len() > TYPES_MAX {
        return Err(GraphError::too_large(path, "types", TYPES_MAX as u64));
    }
    if let Some(place) = names.iter().position(|name| !is_name(name)) {
        let what = format!("expected the names of the types of nodes, found {:?}", shorten(&names[place]));
        return Err(lines.error(what));
    }
    if let Some(place) = (1..names.len()).find(|&place| names[..place].contains(&names[place])) {
        return Err(lines.error(format!("the type {:?} stands there twice", names[place])));
    }
    let cells: Vec<String> = lines.next_line()?.unwrap_or("").split(',').map(|cell| cell.trim().to_owned()).collect();
    if cells.len() != names.len() {
        return Err(lines.error(format!("expected {} counts, one a type, found {}", names.len(), cells.len())));
    }
    let mut all = 0u64;
    let mut counts = Vec::new();
    for (name, cell) in names.into_iter().zip(cells) {
        let count =
            cell.parse::<u32>().map_err(|_| lines.error(format!("expected a count, found '{}'", shorten(&cell))))?;
        all += u64::from(count);
        counts.push((name, count as usize));
    }
    if all > limits.nodes_max {
        return Err(GraphError::too_large(path, "line 2: nodes", limits.nodes_max));
    }
    Ok(counts)
}

/// Whether this can be the name of a type: also of a folder, and of nothing beyond it.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\'])
}

/// Type of sources, name, type of targets.
fn read_triplets(path: &Path, limits: &Limits) -> Result<Vec<[String; 3]>> {
    let mut lines = Lines::open(path, limits)?;
    let mut triplets = Vec::new();
    loop {
        let cells: Vec<String> = match lines.next_line()? {
            None => return Ok(triplets),
            Some("") => continue,
            Some(line) => line.split(',').map(|cell| cell.trim().to_owned()).collect(),
        };
        let triplet: std::result::Result<[String; 3], _> = cells.try_into();
        let triplet = triplet.ok().filter(|cells| cells.iter().all(|cell| is_name(cell)));
        triplets.push(triplet.ok_or_else(|| lines.error("expected source type,relation,target type"))?);
        if triplets.len() > TYPES_MAX {
            return Err(GraphError::too_large(path, "relations", TYPES_MAX as u64));
        }
    }
}

/// Features and labels of one type.
fn read_nodes(path: &Path, (name, count): (String, usize), limits: &Limits) -> Result<NodesFound> {
    let raw = path.join("raw");
    let (features, exact) = match find_text(&raw.join("node-feat").join(&name), &["node-feat.csv"]) {
        Some(file) => features::text_features(&file, count, limits)?,
        None => (Features::None, Exact::default()),
    };
    let labels = match find_text(&raw.join("node-label").join(&name), &["node-label.csv"]) {
        Some(file) => {
            let array = read_numbers::<f64>(&file, limits, limits.features_values_max)?;
            let labels = labels::from_array(&array.shape, &array.values, count, limits);
            labels.map_err(|what| GraphError::format(&file, "lines", what))?
        }
        None => Labels::None,
    };
    let nodes = TypedNodes { name, features, columns: Vec::new() };
    Ok(NodesFound { nodes, exact, count, ids: Vec::new(), labels, classes: Vec::new(), splits: Vec::new() })
}
