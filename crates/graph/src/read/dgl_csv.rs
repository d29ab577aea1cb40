//! DGL's folders of tables (`dgl.data.CSVDataset`): `meta.yaml` with the files of nodes and edges, each a table with
//! the columns `node_id`, or `src_id` and `dst_id`, and others.
//!
//! Of one kind of nodes and edges they are read as an edge list with its node table, of several as a folder with a
//! table a type. Sets of many graphs are refused.

use super::edge_tables::{Tables, open_edges};
use super::node_table::open_nodes;
use super::numbers::shorten;
use super::typed_tables::read_tables;
use super::{ReadOptions, Reader};
use crate::dataset::Dataset;
use crate::error::{GraphError, Result};
use crate::limits::read_limited;
use crate::roles::Roles;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The reader of DGL's folders of tables.
pub struct DglCsv;

const META: &str = "meta.yaml";
/// It says names alone.
const META_MAX: u64 = 1 << 20;

impl Reader for DglCsv {
    fn name(&self) -> &'static str {
        "DGL CSV folder"
    }

    fn recognises(&self, path: &Path) -> bool {
        Meta::read(path).is_ok_and(|meta| !meta.of("edge_data").is_empty())
    }

    fn reads_key(&self, key: &str) -> bool {
        key != "data.nodes_path"
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let meta = Meta::read(path)?;
        if !meta.of("graph_data").is_empty() {
            let what = "graph_data: a set of many graphs, and one graph is read";
            return Err(GraphError::format(&path.join(META), "graph_data", what));
        }
        let (nodes, edges) = (meta.files(path, "node_data", "ntype")?, meta.files(path, "edge_data", "etype")?);
        if let ([(_, edges)], [] | [_]) = (&edges[..], &nodes[..]) {
            let nodes = nodes.first().map(|(_, nodes)| Ok((open_nodes(nodes, options)?, nodes.clone()))).transpose()?;
            let edges = (open_edges(edges, options)?, edges.clone());
            return Tables { edges, nodes }.read(path, options);
        }
        read_tables(path, (nodes, edges), options)
    }
}

/// Keys and values of an entry in a list.
type Item = Vec<(String, Vec<String>)>;

/// What `meta.yaml` says: lists by their names. That is all of YAML that DGL reads here.
struct Meta(BTreeMap<String, Vec<Item>>);

impl Meta {
    fn read(folder: &Path) -> Result<Meta> {
        let path = folder.join(META);
        let bytes = read_limited(&path, "bytes", META_MAX)?;
        let text = String::from_utf8(bytes).map_err(|_| GraphError::format(&path, "text", "expected UTF-8"))?;
        let mut lists = BTreeMap::new();
        let mut list: &mut Vec<Item> = lists.entry(String::new()).or_default();
        for (number, line) in text.lines().enumerate() {
            let refuse = |what: String| GraphError::format(&path, format!("line {}", number + 1), what);
            let (content, is_top) = (line.trim(), !line.starts_with([' ', '-', '\t']));
            if content.is_empty() || content.starts_with('#') || content == "---" {
                continue;
            }
            if is_top {
                let (key, value) = pair(content).ok_or_else(|| refuse(format!("found '{}'", shorten(content))))?;
                list = lists.entry(key).or_default();
                list.extend((!value.is_empty()).then(|| vec![(String::new(), value)]));
                continue;
            }
            let entry = content.strip_prefix("- ").map(str::trim);
            match (entry, pair(entry.unwrap_or(content))) {
                (Some(_), Some(first)) => list.push(vec![first]),
                (None, Some(next)) => match list.last_mut() {
                    Some(item) => item.push(next),
                    None => list.push(vec![next]),
                },
                (Some(word), None) => {
                    let into = list.last_mut().and_then(|item| item.last_mut());
                    into.ok_or_else(|| refuse("expected a key".to_owned()))?.1.push(plain(word));
                }
                (None, None) => return Err(refuse(format!("expected 'key: value', found '{}'", shorten(content)))),
            }
        }
        Ok(Meta(lists))
    }

    fn of(&self, name: &str) -> &[Item] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The files of a list, each with its type, or with source, relation and target.
    fn files(&self, folder: &Path, list: &str, kind: &str) -> Result<Vec<(String, PathBuf)>> {
        let file = |item: &Item| {
            let value = |key: &str| item.iter().find(|(name, _)| name == key).map(|(_, value)| value);
            let Some([file]) = value("file_name").map(Vec::as_slice) else {
                return Err(GraphError::format(&folder.join(META), list, "expected file_name in every entry"));
            };
            let is_inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
            if !is_inside {
                return Err(GraphError::format(&folder.join(META), list, format!("{file}: expected in the folder")));
            }
            let kind = value(kind).map_or_else(|| "_V".to_owned(), |words| words.join("__"));
            Ok((kind, folder.join(file)))
        };
        self.of(list).iter().map(file).collect()
    }
}

/// A key and its value, which may be a list in brackets.
fn pair(text: &str) -> Option<(String, Vec<String>)> {
    let (key, value) = text.split_once(':')?;
    let value = value.split(" #").next().unwrap_or("").trim();
    let value = match value.strip_prefix('[').and_then(|value| value.strip_suffix(']')) {
        Some(list) => list.split(',').map(plain).collect(),
        None if value.is_empty() => Vec::new(),
        None => vec![plain(value)],
    };
    Some((plain(key), value))
}

/// A word without its quotes.
fn plain(word: &str) -> String {
    let word = word.trim();
    let quoted = |sign: char| word.strip_prefix(sign).and_then(|word| word.strip_suffix(sign));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(word).to_owned()
}
