//! Part folders: `meta.json` and, for each part `k` that is there, `part-k/{graph,nodes,features}.safetensors`.
//!
//! | file | tensors |
//! | --- | --- |
//! | `graph` | `offsets` u64 \[n + 1\], `sources` u64 \[e\] |
//! | | with weights `weights` f32 \[e\], with edge types `relations` u16 \[e\], with edges held out `held` u8 \[e\] |
//! | | with pairs that are no edges `val_negative_sources`, `val_negative_targets` u64 \[p\] |
//! | | and `val_negative_others` u64 \[p, each\]; the same of `test` |
//! | | where owners were told `owned_ids` u64 \[h\], `owners`, `owner_rows` u32 \[h\] |
//! | `nodes` | `nodes` u64 \[n\] |
//! | | with a split `roles` u8 \[n\] |
//! | | `labels` i32 \[n\], or u8 \[n, classes\], or nothing |
//! | | `ids` i64 \[n\], or `id_bytes` u8 and `id_offsets` u64 \[n + 1\], or nothing |
//! | `features` | `features` f32 \[n, columns\], or nothing, or |
//! | | `features_offsets` u64 \[n + 1\], `features_indices` u32 and `features_values` f32 |
//!
//! Everything is written under another name beside its final place and renamed when complete.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use safetensors::Dtype;

use crate::aside::{Held, keep_rights, part_of};
use crate::dataset::{Features, Ids, Labels};
use crate::edges::{EdgeData, Edges, Relations};
use crate::error::{GraphError, Result};
use crate::files::{keep_names, own_folder, parent};
use crate::part::mapped::FeaturesIn;
use crate::part::meta::{Meta, PartEntry, Provenance};
use crate::part::tensors::{self, Tensor, Tensors};
use crate::part::{GlobalCounts, Part, PartCounts, negatives, owned};

pub(super) const META: &str = "meta.json";
const GRAPH: &str = "graph.safetensors";
const NODES: &str = "nodes.safetensors";
const FEATURES: &str = "features.safetensors";

/// Writes a folder of `parts`, all of one graph, as [`crate::part::cut()`] or [`crate::part::cut_one_by_one`] makes
/// them. Refuses to replace a folder that holds anything unless `overwrite` is set and it is a part folder; what it
/// replaces is gone only once the new folder is complete.
///
/// # Errors
///
/// If the folder may not be replaced, there is no part, a part breaks its rules ([`Part::check`]), is given twice or is
/// of another graph than the first, or the system refuses to write. The old folder is then as it was.
pub fn write_parts<P: Borrow<Part>>(
    dir: &Path,
    parts: impl IntoIterator<Item = P>,
    provenance: &Provenance,
    overwrite: bool,
) -> Result<()> {
    may_replace(dir, overwrite)?;
    let aside = Aside::beside(dir)?;
    // An old folder may have come back.
    let occupied = may_replace(dir, overwrite)?;
    let folder = aside.path(NEW);
    fs::create_dir(&folder).map_err(|source| GraphError::io(&folder, source))?;
    let mut meta: Option<Meta> = None;
    for part in parts {
        let part = part.borrow();
        let meta = meta.get_or_insert_with(|| Meta::new(part.parts, provenance, &part.global));
        add(&folder, meta, part)?;
    }
    let mut meta = meta.ok_or_else(|| GraphError::invalid("expected at least one part to write"))?;
    meta.write(&folder.join(META))?;
    put_in_place(&folder, (dir, occupied), &aside.path(OLD))
}

/// Puts a folder in its place; what is there, if it is `occupied`, is at `old` for a moment.
pub(super) fn put_in_place(folder: &Path, (dir, occupied): (&Path, bool), old: &Path) -> Result<()> {
    if occupied {
        keep_rights(folder, dir, META).map_err(|source| GraphError::io(folder, source))?;
        rename(dir, old)?;
        // If the new folder cannot take the place, the old one takes it again.
        rename(folder, dir).or_else(|error| rename(old, dir).and(Err(error)))?;
    } else {
        rename(folder, dir)?;
    }
    keep(dir)
}

/// Adds one part to a folder, which is made if it is not there. So a site can write its part without the whole graph;
/// the parts that are there already must be of the same graph, cut the same way. Two programs must not add to one
/// folder at the same time.
///
/// The second of two banks, which knows its customers 20 and 21 and who sends money to them, customer 10 of the other
/// bank among them:
///
/// ```
/// use laconic_graph::dataset::{Features, Ids, Labels, Split};
/// use laconic_graph::edges::{EdgeData, Edges};
/// use laconic_graph::part::{GlobalCounts, Part, Provenance, open_part, write_part};
///
/// // What the banks tell each other beforehand: sizes, but no rows.
/// let global = GlobalCounts {
///     dataset: "transfers".to_owned(),
///     nodes: 4,
///     edges: 5,
///     train: 2,
///     val: 1,
///     test: 1,
///     columns: 2,
///     classes: 2,
///     ..GlobalCounts::default()
/// };
/// let part = Part {
///     index: 1,
///     parts: 2,
///     nodes: vec![20, 21],
///     // Money comes to 20 from 21, and to 21 from 10 and 20.
///     edges: Edges {
///         offsets: vec![0, 1, 3],
///         sources: vec![21, 10, 20],
///         data: EdgeData { weights: Some(vec![250.0, 10.0, 99.5]), ..EdgeData::default() },
///     },
///     // Nobody has told the bank who owns customer 10: it asks when training starts.
///     owners: None,
///     left_out: Vec::new(),
///     negatives: None,
///     features: Features::Dense { columns: 2, values: vec![0.1, 0.2, 0.3, 0.4].into() },
///     labels: Labels::Single { classes: 2, values: vec![0, 1] },
///     roles: vec![Split::TRAIN, Split::TEST],
///     // Global ids need not run from 0 where nodes have names of their own.
///     ids: Ids::Integers(vec![20, 21]),
///     global,
/// };
/// # let place = tempfile::tempdir()?;
/// # let dir = place.path().join("bank-1");
/// write_part(&dir, &part, &Provenance { method: "given".to_owned(), seed: 0 })?;
/// assert_eq!(open_part(&dir, 1)?, part);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If the folder holds other files, this part already, or parts of another graph or cut another way, if the part breaks
/// its rules ([`Part::check`]), or the system refuses to write. What was in the folder is then as it was.
pub fn write_part(dir: &Path, part: &Part, provenance: &Provenance) -> Result<()> {
    let path = dir.join(META);
    let exists = path.exists();
    if !exists && holds_anything(dir)? {
        return Err(GraphError::format(dir, "folder", "expected a part folder or an empty one, found other files"));
    }
    let mut meta = if exists { Meta::read(&path)? } else { Meta::new(part.parts, provenance, &part.global) };
    if meta.provenance != *provenance {
        let what = format!("expected {:?} as in {}, found {provenance:?}", meta.provenance, path.display());
        return Err(GraphError::invalid(format!("part {}: {what}", part.index)));
    }
    fs::create_dir_all(dir).map_err(|source| GraphError::io(dir, source))?;
    let aside = Aside::beside(&path)?;
    let place = dir.join(part_name(part.index));
    if meta.files.contains_key(&part.index) || place.exists() {
        return Err(GraphError::format(&place, "part", "expected no such part yet"));
    }
    add(&aside.folder, &mut meta, part)?;
    meta.write(&aside.path(META))?;
    rename(&aside.path(&part_name(part.index)), &place)?;
    rename(&aside.path(META), &path)?;
    keep(&path)
}

/// Whether `dir` seems to be a part folder: it has meta data or a part. Whether they are sound is [`open_meta`]'s and
/// [`open_part`]'s to say.
pub fn is_part_folder(dir: &Path) -> bool {
    let is_part = |entry: fs::DirEntry| {
        entry.file_name().to_string_lossy().starts_with("part-") && entry.path().join(GRAPH).is_file()
    };
    fs::symlink_metadata(dir.join(META)).is_ok() || fs::read_dir(dir).is_ok_and(|dir| dir.flatten().any(is_part))
}

/// Adds what predictions need to know of each part, and how far labels differ between all, to the meta data of a
/// folder, so that they open no part.
///
/// # Errors
///
/// If this is not a folder of these parts, or the system refuses to write.
pub fn write_counts(dir: &Path, counts: BTreeMap<u32, PartCounts>, label_skew: Option<f64>) -> Result<()> {
    let path = dir.join(META);
    let mut meta = Meta::read(&path)?;
    meta.label_skew = label_skew;
    for (part, counts) in counts {
        let missing = || GraphError::format(&path, format!("part {part}"), "expected in the folder");
        meta.files.get_mut(&part).ok_or_else(missing)?.counts = Some(counts);
    }
    let aside = Aside::beside(&path)?;
    meta.write(&aside.path(META))?;
    rename(&aside.path(META), &path)
}

/// Reads and verifies the meta data of the part folder `dir`.
///
/// # Errors
///
/// If `meta.json` is not there, cannot be read, is of another version, or its checksum is another.
pub fn open_meta(dir: &Path) -> Result<Meta> {
    Meta::read(&dir.join(META))
}

/// The parts whose files are in the folder, ascending: whoever owns a part may have it alone, with the meta data.
pub fn parts_here(dir: &Path, meta: &Meta) -> Vec<u32> {
    meta.files.keys().copied().filter(|&index| dir.join(part_name(index)).is_dir()).collect()
}

/// The bytes that the features of some parts take, as their files are.
pub fn features_bytes(meta: &Meta, parts: impl IntoIterator<Item = u32>) -> u64 {
    let entries = parts.into_iter().filter_map(|index| meta.files.get(&index)?.files.get(FEATURES));
    entries.map(|entry| entry.bytes).sum()
}

/// Reads and verifies part `index` of the part folder `dir`. Touches `meta.json` and the files of that part, nothing
/// else.
///
/// # Errors
///
/// If the folder does not hold that part, a file is not of the size or checksum that `meta.json` names, an array breaks
/// a rule of parts, or the system refuses to read.
pub fn open_part(dir: &Path, index: u32) -> Result<Part> {
    open_part_with(dir, index, FeaturesIn::Memory)
}

/// The same with dense features where they are wanted.
///
/// # Errors
///
/// As [`open_part`].
pub fn open_part_with(dir: &Path, index: u32, features_in: FeaturesIn) -> Result<Part> {
    let meta = open_meta(dir)?;
    let place = format!("part {index}");
    let entry = meta.files.get(&index).ok_or_else(|| {
        let known: Vec<_> = meta.files.keys().map(u32::to_string).collect();
        let what = format!("expected in the folder, which holds {} of {} parts", known.join(", "), meta.parts);
        GraphError::format(&dir.join(META), &place, what)
    })?;
    let folder = dir.join(part_name(index));
    let open = |name: &str| {
        let expected = entry.files.get(name).ok_or_else(|| {
            GraphError::format(&dir.join(META), &place, format!("expected a file {name}, found none listed"))
        })?;
        Tensors::open(&folder.join(name), expected)
    };
    let (graph, nodes, features) = (open(GRAPH)?, open(NODES)?, open(FEATURES)?);
    let own = nodes.vector("nodes")?;
    let part = Part {
        index,
        parts: meta.parts,
        edges: Edges {
            offsets: graph.vector("offsets")?,
            sources: graph.vector("sources")?,
            data: EdgeData {
                weights: graph.has("weights").then(|| graph.vector("weights")).transpose()?,
                relations: match graph.has("relations") {
                    true => Some(Relations { count: meta.global.relations, of: graph.vector("relations")? }),
                    false => None,
                },
                held: graph.has("held").then(|| graph.vector("held")).transpose()?,
            },
        },
        owners: owned::read(&graph)?,
        left_out: Vec::new(),
        negatives: negatives::read(&graph)?,
        features: read_features(&features, (own.len(), meta.global.columns), features_in)?,
        labels: read_labels(&nodes, own.len(), &meta.global)?,
        roles: if nodes.has("roles") { nodes.vector("roles")? } else { Vec::new() },
        ids: read_ids(&nodes)?,
        nodes: own,
        global: meta.global,
    };
    if let Some((array, what)) = part.violation().or_else(|| part.count_violation()) {
        let file = match array {
            "offsets" | "sources" | "weights" | "relations" | "held" => &graph,
            array if owned::is_name(array) || array.contains("_negative_") => &graph,
            array if array.starts_with("features") => &features,
            _ => &nodes,
        };
        return Err(file.bad(array, what));
    }
    if (entry.nodes, entry.edges) != (part.rows() as u64, part.edges.edges() as u64) {
        let what = format!("expected {} nodes and {} edges", entry.nodes, entry.edges);
        return Err(graph.bad("offsets", format!("{what}, found {} and {}", part.rows(), part.edges.edges())));
    }
    Ok(part)
}

/// Writes the files of `part` into the folder `dir` and lists them in `meta`.
pub(super) fn add(dir: &Path, meta: &mut Meta, part: &Part) -> Result<()> {
    part.check()?;
    if meta.parts != part.parts || meta.global != part.global {
        let what = format!("expected a part of the graph that the folder is about, {:?}", meta.global);
        return Err(GraphError::invalid(format!("part {}: {what}, found one of {:?}", part.index, part.global)));
    }
    let folder = dir.join(part_name(part.index));
    fs::create_dir(&folder).map_err(|source| GraphError::io(&folder, source))?;

    let mut graph =
        vec![Tensor::vector("offsets", &part.edges.offsets), Tensor::vector("sources", &part.edges.sources)];
    graph.extend(part.edges.data.weights.as_ref().map(|weights| Tensor::vector("weights", weights)));
    graph.extend(part.edges.data.relations.as_ref().map(|relations| Tensor::vector("relations", &relations.of)));
    graph.extend(part.edges.data.held.as_ref().map(|held| Tensor::vector("held", held)));
    graph.extend(negatives::tensors(part));
    graph.extend(owned::tensors(part));

    let mut nodes = vec![Tensor::vector("nodes", &part.nodes)];
    if !part.roles.is_empty() {
        nodes.push(Tensor::vector("roles", &part.roles));
    }
    match &part.labels {
        Labels::None => {}
        Labels::Single { values, .. } => nodes.push(Tensor::vector("labels", values)),
        Labels::Multi { classes, values } => nodes.push(Tensor::matrix("labels", part.rows(), *classes, values)),
    }
    let (mut id_bytes, mut id_offsets) = (Vec::new(), vec![0u64]);
    match &part.ids {
        Ids::Row => {}
        Ids::Integers(ids) => nodes.push(Tensor::vector("ids", ids)),
        Ids::Strings(ids) => {
            for id in ids {
                id_bytes.extend_from_slice(id.as_bytes());
                id_offsets.push(id_bytes.len() as u64);
            }
            nodes.extend([Tensor::vector("id_bytes", &id_bytes), Tensor::vector("id_offsets", &id_offsets)]);
        }
    }
    let features = match &part.features {
        Features::None => Vec::new(),
        Features::Dense { columns, values } => vec![Tensor::matrix("features", part.rows(), *columns, values)],
        Features::Sparse { offsets, indices, values, .. } => vec![
            Tensor::vector("features_offsets", offsets),
            Tensor::vector("features_indices", indices),
            Tensor::vector("features_values", values),
        ],
    };
    let mut files = BTreeMap::new();
    for (name, tensors) in [(GRAPH, graph), (NODES, nodes), (FEATURES, features)] {
        files.insert(name.to_owned(), tensors::write(&folder.join(name), tensors)?);
    }
    let (nodes, edges) = (part.rows() as u64, part.edges.edges() as u64);
    let roles = (!part.global.are_counted()).then(|| part.role_counts());
    let entry = PartEntry { nodes, edges, files, roles, counts: None };
    if meta.files.insert(part.index, entry).is_some() {
        return Err(GraphError::invalid(format!("part {} was given twice", part.index)));
    }
    Ok(())
}

fn read_features(file: &Tensors, (rows, columns): (usize, usize), features_in: FeaturesIn) -> Result<Features> {
    if file.has("features_offsets") {
        return Ok(Features::Sparse {
            columns,
            offsets: file.vector("features_offsets")?,
            indices: file.vector("features_indices")?,
            values: file.vector("features_values")?,
        });
    }
    if file.has("features") {
        let (columns, values) = match features_in {
            FeaturesIn::Memory => file.matrix("features", rows)?,
            FeaturesIn::File => file.matrix_in_file("features", rows)?,
        };
        return Ok(Features::Dense { columns, values });
    }
    Ok(Features::None)
}

fn read_labels(file: &Tensors, rows: usize, global: &GlobalCounts) -> Result<Labels> {
    match file.dtype("labels") {
        None => Ok(Labels::None),
        Some(Dtype::U8) => {
            let (classes, values) = file.matrix("labels", rows)?;
            Ok(Labels::Multi { classes, values: values.into_vec() })
        }
        Some(_) => Ok(Labels::Single { classes: global.classes, values: file.vector("labels")? }),
    }
}

fn read_ids(file: &Tensors) -> Result<Ids> {
    if file.has("ids") {
        return Ok(Ids::Integers(file.vector("ids")?));
    }
    if !file.has("id_offsets") {
        return Ok(Ids::Row);
    }
    let (bytes, offsets): (Vec<u8>, Vec<u64>) = (file.vector("id_bytes")?, file.vector("id_offsets")?);
    if offsets.first() != Some(&0) || offsets.last() != Some(&(bytes.len() as u64)) {
        return Err(file.bad("id_offsets", format!("expected to run from 0 to {}", bytes.len())));
    }
    let id = |(row, ends): (usize, &[u64])| {
        let text = bytes.get(ends[0] as usize..ends[1] as usize).and_then(|text| std::str::from_utf8(text).ok());
        text.map(str::to_owned).ok_or_else(|| file.bad("id_bytes", format!("expected UTF-8 text in row {row}")))
    };
    Ok(Ids::Strings(offsets.windows(2).enumerate().map(id).collect::<Result<_>>()?))
}

pub(super) fn part_name(index: u32) -> String {
    format!("part-{index}")
}

/// Whether there is anything to replace, if it may be.
pub(crate) fn may_replace(dir: &Path, overwrite: bool) -> Result<bool> {
    let occupied = holds_anything(dir)?;
    if occupied && !(overwrite && dir.join(META).is_file()) {
        let hint = if overwrite { " that are not a part folder's" } else { "; ask to overwrite it" };
        let what = format!("expected no such folder or an empty one, found files{hint}");
        return Err(GraphError::format(dir, "folder", what));
    }
    Ok(occupied)
}

fn holds_anything(dir: &Path) -> Result<bool> {
    match fs::read_dir(dir) {
        // What a killed process has left while it wrote the meta data is nobody's.
        Ok(mut entries) => Ok(entries.any(|entry| entry.is_ok_and(|entry| entry.path() != part_of(&dir.join(META))))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(GraphError::io(dir, error)),
    }
}

pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| GraphError::io(to, source))
}

/// Waits until the disk has the names in the folder of `place`.
pub(super) fn keep(place: &Path) -> Result<()> {
    keep_names(parent(place)).map_err(|source| GraphError::io(place, source))
}

/// A folder beside the final place, hence on the same file system, that one process at a time holds and that is removed
/// with all that is still in it. What a killed process has left there goes with the next who writes to this place, but
/// for an old folder of parts that was to be replaced: it comes back.
pub(crate) struct Aside {
    folder: PathBuf,
    _held: Held,
}

const HELD: &str = "lock";
const NEW: &str = "new";
/// What a folder of parts is called that is to be replaced.
pub(crate) const OLD: &str = "old";

/// Puts a folder that was to be replaced back where a process was killed before its successor was there.
pub(crate) fn take_back(folder: &Path, place: &Path) -> Result<()> {
    let old = folder.join(OLD);
    if old.exists() && !place.exists() { rename(&old, place) } else { Ok(()) }
}

/// Removes all that a folder has but the file of this name.
pub(crate) fn clear(folder: &Path, but: &str) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != but {
            remove(&entry)?;
        }
    }
    Ok(())
}

impl Aside {
    /// The folder beside `place`, empty, which nobody else holds.
    pub(crate) fn beside(place: &Path) -> Result<Self> {
        let parent = parent(place);
        fs::create_dir_all(parent).map_err(|source| GraphError::io(parent, source))?;
        let folder = part_of(place);
        let refused = |source| GraphError::io(&folder, source);
        own_folder(&folder, &|name| [HELD, NEW, OLD, META].contains(&name) || name.starts_with("part-"))?;
        let busy = || refused(std::io::Error::new(ErrorKind::ResourceBusy, "another process is writing it"));
        let held = Held::take(&folder.join(HELD)).map_err(refused)?.ok_or_else(busy)?;
        take_back(&folder, place)?;
        clear(&folder, HELD).map_err(refused)?;
        Ok(Aside { folder, _held: held })
    }

    /// A place in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next who writes to this place.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn remove(entry: &fs::DirEntry) -> std::io::Result<()> {
    if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }
}

#[cfg(test)]
mod tests;
