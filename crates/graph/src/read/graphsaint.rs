//! GraphSAINT folders: `adj_full.npz` (a SciPy CSR matrix), `feats.npy`, `class_map.json` (node → class, or → list of
//! 0 and 1), `role.json` (`tr`, `va`, `te` → nodes).
//!
//! Edges go from the row to the column of the matrix. The matrix holds both directions already in the published sets.
//! `feats.npy` may be missing; `adj_train.npz` is not needed, since the full graph and the roles say the same.

use super::arrays::{Npz, open_limited};
use super::gnn_benchmark::read_adjacency;
use super::{ReadOptions, Reader, dataset_name, features, labels};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::limits::Limits;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::io::BufReader;
use std::path::Path;

/// The reader of GraphSAINT folders.
pub struct GraphSaint;

impl Reader for GraphSaint {
    fn name(&self) -> &'static str {
        "GraphSAINT folder"
    }

    fn recognises(&self, path: &Path) -> bool {
        path.join("adj_full.npz").is_file() && path.join("role.json").is_file()
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        let limits = &options.limits;
        let mut npz = Npz::open(&path.join("adj_full.npz"), limits)?;
        let (nodes, sources, targets) = read_adjacency(&mut npz, "", limits)?;
        let built = build_graph(nodes, sources, targets, None, options.build());
        let graph = built.map_err(|error| npz.error("indices", error.to_string()))?.0;

        let feats = path.join("feats.npy");
        let (features, exact) = match feats.is_file() {
            true => features::read_features(&feats, nodes, limits)?,
            false => (Features::None, Exact::default()),
        };

        let class_map = path.join("class_map.json");
        let labels = if class_map.is_file() {
            let found = parse_json(&class_map, limits, Classes { nodes })?;
            found.labels(nodes, limits).map_err(|what| GraphError::format(&class_map, "classes", what))?
        } else {
            Labels::None
        };
        let splits = vec![parse_json(&path.join("role.json"), limits, Roles { nodes })?];
        Dataset {
            name: dataset_name(path),
            graph,
            features,
            exact,
            labels,
            splits,
            ids: Ids::Row,
            about: About::default(),
            negatives: None,
        }
        .checked()
    }
}

/// Reads a JSON file through `seed`, which takes the values as they come instead of building a tree of them.
fn parse_json<S: for<'de> DeserializeSeed<'de, Value = T>, T>(path: &Path, limits: &Limits, seed: S) -> Result<T> {
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(open_limited(path, limits)?));
    let value = seed.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| GraphError::format(path, "JSON", error.to_string()))
}

/// A node as a key or as a number.
fn check_node<E: de::Error>(node: Option<u64>, nodes: usize) -> std::result::Result<u32, E> {
    let node = node.filter(|&node| node < nodes as u64);
    node.map(|node| node as u32).ok_or_else(|| E::custom(format!("expected a node in 0..{nodes}")))
}

/// Reads `class_map.json`.
struct Classes {
    nodes: usize,
}

/// The entries of `class_map.json` in the order of the file.
struct Entries {
    order: Vec<u32>,
    values: Vec<f64>,
    /// The length of each list; `None` where classes are numbers.
    width: Option<usize>,
}

impl Entries {
    fn labels(&self, nodes: usize, limits: &Limits) -> std::result::Result<Labels, String> {
        let mut places = vec![None; nodes];
        for (place, &node) in self.order.iter().enumerate() {
            if places[node as usize].replace(place).is_some() {
                return Err(format!("node {node} is there twice"));
            }
        }
        let Some(width) = self.width else {
            let values: Vec<f64> =
                places.iter().map(|place| place.map_or(f64::NAN, |place| self.values[place])).collect();
            return labels::single(&values, 0, limits);
        };
        let mut values = Vec::with_capacity(self.values.len());
        for (node, place) in places.iter().enumerate() {
            let place = place.ok_or_else(|| format!("node {node} is missing"))?;
            values.extend_from_slice(&self.values[place * width..(place + 1) * width]);
        }
        labels::multi(&values, width)
    }
}

impl<'de> DeserializeSeed<'de> for Classes {
    type Value = Entries;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Entries, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Classes {
    type Value = Entries;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map from nodes to classes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Entries, A::Error> {
        let mut entries = Entries { order: Vec::new(), values: Vec::new(), width: None };
        while let Some(key) = map.next_key::<String>()? {
            let node = check_node::<A::Error>(key.parse().ok(), self.nodes)?;
            let width = map.next_value_seed(Numbers { into: &mut entries.values })?;
            if entries.order.is_empty() {
                entries.width = width;
            }
            if width != entries.width || width == Some(0) {
                return Err(de::Error::custom(format!("the class of node {node} is not like that of the first node")));
            }
            entries.order.push(node);
        }
        Ok(entries)
    }
}

/// Appends a number (gives `None`) or a list of numbers (gives its length).
struct Numbers<'a> {
    into: &'a mut Vec<f64>,
}

impl<'de> DeserializeSeed<'de> for Numbers<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Option<usize>, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Numbers<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a number or a list of numbers")
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> std::result::Result<Option<usize>, E> {
        self.visit_f64(value as f64)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> std::result::Result<Option<usize>, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> std::result::Result<Option<usize>, E> {
        self.into.push(value);
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<Option<usize>, A::Error> {
        let before = self.into.len();
        while let Some(value) = list.next_element::<f64>()? {
            self.into.push(value);
        }
        Ok(Some(self.into.len() - before))
    }
}

/// Reads `role.json`.
struct Roles {
    nodes: usize,
}

impl<'de> DeserializeSeed<'de> for Roles {
    type Value = Split;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<Split, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Roles {
    type Value = Split;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map with lists of nodes under 'tr', 'va' and 'te'")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Split, A::Error> {
        let mut split = Split { roles: vec![0; self.nodes] };
        while let Some(key) = map.next_key::<String>()? {
            let role = match key.as_str() {
                "tr" => Split::TRAIN,
                "va" => Split::VAL,
                "te" => Split::TEST,
                _ => return Err(de::Error::custom("expected the keys 'tr', 'va' and 'te'")),
            };
            for node in map.next_value::<Vec<u64>>()? {
                split.roles[check_node::<A::Error>(Some(node), self.nodes)? as usize] |= role;
            }
        }
        Ok(split)
    }
}
