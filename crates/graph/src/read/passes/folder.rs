//! A graph as a folder of plain arrays, which programs can write piece by piece and which is read in pieces.
//!
//! | file | array |
//! | --- | --- |
//! | `graph.json` | [`About`] |
//! | `edges-*.npy` | integers \[edges, 2\]: source and target |
//! | `features-*.npy` | numbers \[rows, columns\] |
//! | `labels-*.npy` | integers \[rows\], −1 where unknown |
//! | `split-*.npy` | integers \[rows\]: 1 train, 2 validation, 4 test, 0 nothing |
//!
//! Files of one kind follow one another by name; each may also be one file without a number, such as `edges.npy`. Rows
//! are nodes, in order; together there are as many as nodes, or none.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::array::ArrayFile;
use super::input::Input;
use crate::error::{GraphError, Result};
use crate::exact::{Exact, Spread, Wide};
use crate::limits::{Limits, read_limited};
use crate::source::{EachEdges, EdgeSource};

/// The file that tells such a folder from others.
pub const ABOUT: &str = "graph.json";

/// The name in [`About::format`].
pub const FORMAT: &str = "laconic-arrays";

/// What stands in `graph.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Always [`FORMAT`], which tells the file from any other.
    pub format: String,
    /// Always 1 in a file that this program reads.
    pub version: u32,
    /// What the graph is called.
    pub name: String,
    /// The number of nodes.
    pub nodes: u64,
    /// Whether edges lead one way; otherwise each is there once and leads both ways.
    pub directed: bool,
    /// The number of classes; 0 without labels.
    #[serde(default)]
    pub classes: u64,
}

/// A folder whose files fit together, as far as their headers say.
pub struct ArrayFolder {
    path: PathBuf,
    about: About,
    edges: Vec<ArrayFile>,
    features: Vec<ArrayFile>,
    labels: Vec<ArrayFile>,
    split: Vec<ArrayFile>,
}

/// `graph.json` is no longer.
const ABOUT_BYTES_MAX: u64 = 1 << 16;

impl ArrayFolder {
    /// Whether this seems to be such a folder.
    pub fn recognises(path: &Path) -> bool {
        path.join(ABOUT).is_file()
    }

    /// Reads `graph.json` and the headers of all arrays.
    ///
    /// # Errors
    ///
    /// If a file is not what it should be, or there are not as many rows of something as nodes.
    pub fn open(path: &Path, limits: &Limits) -> Result<ArrayFolder> {
        let about = read_about(&path.join(ABOUT), limits)?;
        let files = |kind: &str, columns_max: u64| open_all(path, kind, (limits, columns_max));
        let folder = ArrayFolder {
            edges: files("edges", 2)?,
            features: files("features", limits.columns_max)?,
            labels: files("labels", 1)?,
            split: files("split", 1)?,
            path: path.to_owned(),
            about,
        };
        folder.check(limits)?;
        Ok(folder)
    }

    fn check(&self, limits: &Limits) -> Result<()> {
        let bad = |what: String| Err(GraphError::format(&self.path, "folder", what));
        if self.edges.is_empty() {
            return bad("expected edges.npy or edges-*.npy, found none".to_owned());
        }
        for file in &self.edges {
            if file.columns != 2 {
                let what = format!("expected the shape [edges, 2], found {} columns", file.columns);
                return Err(GraphError::format(file.path(), "array", what));
            }
        }
        if self.edges_stored() > limits.edges_max {
            return Err(GraphError::too_large(&self.path, "edges", limits.edges_max));
        }
        let rows = |files: &[ArrayFile]| files.iter().map(|file| file.rows).fold(0, u64::saturating_add);
        for (kind, files) in [("features", &self.features), ("labels", &self.labels), ("split", &self.split)] {
            if !files.is_empty() && rows(files) != self.about.nodes {
                return bad(format!("{kind}: expected {} rows, one a node, found {}", self.about.nodes, rows(files)));
            }
        }
        if let Some(file) = self.features.iter().find(|file| file.columns != self.columns()) {
            let what = format!("expected {} columns as in the first file, found {}", self.columns(), file.columns);
            return Err(GraphError::format(file.path(), "array", what));
        }
        if self.labels.is_empty() != (self.about.classes == 0) {
            return bad(format!("expected labels and their number of classes, found {} classes", self.about.classes));
        }
        let vouched = rows(&self.features).max(rows(&self.labels)).max(rows(&self.split));
        limits.accept_nodes(&self.path, "nodes", self.about.nodes, (vouched, 8 * self.edges_stored())).map(drop)
    }

    /// What `graph.json` says.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Edges as the files have them.
    pub fn edges_stored(&self) -> u64 {
        self.edges.iter().map(|file| file.rows).fold(0, u64::saturating_add)
    }

    /// All features, and those columns as they are of which `f32` loses too much; goes once more through these.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn features_whole(&self) -> Result<(Vec<f32>, Exact)> {
        let columns = self.columns();
        let (mut values, mut spreads) = (Vec::new(), vec![Spread::default(); columns]);
        self.each_feature(&mut |number| {
            spreads[values.len() % columns].add(number);
            values.push(number.value as f32);
        })?;
        let mut exact = Exact::of(&spreads, values.len() / columns.max(1));
        if !exact.is_empty() {
            let mut at = 0;
            self.each_feature(&mut |number| {
                if let Some(of) = exact.columns.iter_mut().find(|of| of.column == at % columns) {
                    of.values[at / columns] = number;
                }
                at += 1;
            })?;
        }
        Ok((values, exact))
    }

    fn each_feature(&self, each: &mut dyn FnMut(Wide)) -> Result<()> {
        let mut of_piece = |numbers: &[Wide]| {
            numbers.iter().for_each(|&number| each(number));
            Ok(())
        };
        self.features.iter().try_for_each(|file| file.pass(&mut of_piece))
    }

    fn all<T: crate::read::arrays::Element + std::fmt::Display>(
        &self,
        files: &[ArrayFile],
        expected: &str,
        is_sound: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>> {
        let mut all: Vec<T> = Vec::new();
        for file in files {
            let before = all.len();
            file.pass(&mut |values: &[T]| {
                if let Some(at) = values.iter().position(|value| !is_sound(value)) {
                    let place = format!("row {}", all.len() - before + at);
                    return Err(GraphError::format(
                        file.path(),
                        place,
                        format!("expected {expected}, found {}", values[at]),
                    ));
                }
                all.extend_from_slice(values);
                Ok(())
            })?;
        }
        Ok(all)
    }
}

impl EdgeSource for ArrayFolder {
    fn nodes(&self) -> u64 {
        self.about.nodes
    }

    fn pass(&self, each: &mut EachEdges) -> Result<()> {
        let nodes = self.about.nodes;
        let mut pairs = Vec::new();
        for file in &self.edges {
            let mut row = 0;
            file.pass(&mut |ends: &[u32]| {
                pairs.clear();
                pairs.extend(ends.chunks_exact(2).map(|ends| (u64::from(ends[0]), u64::from(ends[1]))));
                if let Some(at) = pairs.iter().position(|(source, target)| source.max(target) >= &nodes) {
                    let (source, target) = pairs[at];
                    let what = format!("expected nodes in 0..{nodes}, found {source} and {target}");
                    return Err(GraphError::format(file.path(), format!("row {}", row + at), what));
                }
                row += pairs.len();
                each(&pairs)
            })?;
        }
        Ok(())
    }
}

impl Input for ArrayFolder {
    fn name(&self) -> String {
        self.about.name.clone()
    }

    fn is_directed(&self) -> bool {
        self.about.directed
    }

    fn classes(&self) -> usize {
        self.about.classes as usize
    }

    fn columns(&self) -> usize {
        self.features.first().map_or(0, |file| file.columns)
    }

    fn features(&self, each: &mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> {
        self.features.iter().try_for_each(|file| file.pass(each))
    }

    fn labels(&self) -> Result<Vec<i32>> {
        let classes = self.about.classes;
        self.all(&self.labels, &format!("−1 or a class below {classes}"), |&label: &i32| {
            label == -1 || u64::try_from(label).is_ok_and(|label| label < classes)
        })
    }

    fn roles(&self) -> Result<Vec<u8>> {
        self.all(&self.split, "1 (train), 2 (validation), 4 (test) or 0", |role: &u8| [0, 1, 2, 4].contains(role))
    }

    fn fingerprint(&self) -> Result<String> {
        let mut text = format!("{:?}", self.about);
        for file in [&self.edges, &self.features, &self.labels, &self.split].into_iter().flatten() {
            text += &super::input::fingerprint(file.path())?;
        }
        Ok(text)
    }
}

fn read_about(path: &Path, limits: &Limits) -> Result<About> {
    let text = read_limited(path, "bytes of the file", ABOUT_BYTES_MAX)?;
    let about: About =
        serde_json::from_slice(&text).map_err(|error| GraphError::format(path, "JSON", error.to_string()))?;
    if about.format != FORMAT || about.version != 1 {
        let what = format!("expected {FORMAT:?} version 1, found {:?} version {}", about.format, about.version);
        return Err(GraphError::format(path, "format", what));
    }
    if about.nodes > limits.nodes_max.min(u64::from(u32::MAX)) {
        return Err(GraphError::too_large(path, "nodes", limits.nodes_max));
    }
    if about.classes > limits.classes_max {
        return Err(GraphError::too_large(path, "classes", limits.classes_max));
    }
    Ok(about)
}

/// `KIND.npy` and `KIND-*.npy`, by name.
fn open_all(folder: &Path, kind: &str, (limits, columns_max): (&Limits, u64)) -> Result<Vec<ArrayFile>> {
    let is_kind = |name: &str| {
        let stem = name.strip_suffix(".npy").and_then(|stem| stem.strip_prefix(kind));
        stem.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let entries = std::fs::read_dir(folder).map_err(|source| GraphError::io(folder, source))?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(|source| GraphError::io(folder, source))?.file_name();
        names.extend(name.into_string().ok().filter(|name| is_kind(name)));
    }
    names.sort_unstable();
    names.iter().map(|name| ArrayFile::open(&folder.join(name), limits, columns_max)).collect()
}
