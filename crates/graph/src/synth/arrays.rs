//! Generated graphs as folders of arrays, written piece by piece: every edge and node depends on its number alone, so
//! no piece needs another.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use bytemuck::Pod;
use rayon::prelude::*;

use crate::dataset::Features;
use crate::error::{GraphError, Result};
use crate::npy::write_header;
use crate::part::Aside;
use crate::read::passes::{ABOUT, About, FORMAT};
use crate::synth::nodes;
use crate::synth::rmat::{Drawing, RmatSpec, TRAIN, VAL};
use crate::{disk, memory};

/// Edges in a file, half of which are in memory at a time.
const EDGES: u64 = 1 << 24;
/// Nodes in a file, all of which are in memory at a time.
const NODES: usize = 1 << 20;

/// Writes the graph that [`rmat`](super::rmat()) generates as the new folder `dir`, with one file of it in memory.
/// `tell` is told what is being done. Returns how many edges were drawn; the folder has those that were drawn twice,
/// and self-loops, too, which readers drop.
///
/// # Errors
///
/// If the specification asks for what there cannot be, or for more memory or disk than there is, or the system refuses
/// to write; then nothing is left of it.
pub fn rmat_arrays(spec: &RmatSpec, dir: &Path, tell: &dyn Fn(&str)) -> Result<u64> {
    let drawing = Drawing::new(spec)?;
    let refused = |what: String| GraphError::invalid(format!("rmat: a graph of that size {what}"));
    memory::afford(in_memory(spec)).map_err(refused)?;
    let parent = dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    disk::afford(on_disk(spec, drawing.edges), parent).map_err(refused)?;
    // Removed with all that it has in the end, however that comes.
    let aside = Aside::beside(dir)?;
    let new = aside.path("new");
    std::fs::create_dir(&new).map_err(|source| GraphError::io(&new, source))?;
    write_all(spec, &drawing, &new, tell)?;
    std::fs::rename(&new, dir).map_err(|source| GraphError::io(dir, source))?;
    Ok(drawing.edges)
}

/// The bytes of the larger of the pieces that are in memory at a time.
fn in_memory(spec: &RmatSpec) -> u64 {
    let rows = NODES.min(1 << spec.scale) as u64;
    // The mean of every column is a row more; labels and roles are five bytes a node.
    let nodes = (rows + 1).saturating_mul(spec.features as u64 * 4 + 5);
    nodes.max(EDGES / 2 * 8)
}

/// The bytes of all files, about.
fn on_disk(spec: &RmatSpec, edges: u64) -> u64 {
    let of_node = spec.features as u64 * 4 + if spec.classes > 0 { 5 } else { 0 };
    edges.saturating_mul(8).saturating_add((1u64 << spec.scale).saturating_mul(of_node))
}

fn write_all(spec: &RmatSpec, drawing: &Drawing, aside: &Path, tell: &dyn Fn(&str)) -> Result<()> {
    let nodes = 1usize << spec.scale;
    let files = drawing.edges.div_ceil(EDGES).max(1);
    for file in 0..files {
        tell(&format!("edges, file {} of {files}", file + 1));
        let range = file * EDGES..((file + 1) * EDGES).min(drawing.edges);
        edge_file(drawing, range, &aside.join(format!("edges-{file:05}.npy")))?;
    }
    let pieces = nodes.div_ceil(NODES);
    for piece in 0..pieces {
        tell(&format!("nodes, file {} of {pieces}", piece + 1));
        node_files(spec, piece * NODES..((piece + 1) * NODES).min(nodes), (aside, piece))?;
    }
    let about = About {
        format: FORMAT.to_owned(),
        version: 1,
        name: "rmat".to_owned(),
        nodes: nodes as u64,
        directed: !spec.symmetric,
        classes: spec.classes as u64,
    };
    let text = serde_json::to_vec_pretty(&about).expect("plain data");
    std::fs::write(aside.join(ABOUT), text).map_err(|source| GraphError::io(aside, source))
}

fn edge_file(drawing: &Drawing, edges: Range<u64>, path: &Path) -> Result<()> {
    let mut file = Array::new(path, "<u4", &[(edges.end - edges.start) as usize, 2])?;
    for first in edges.clone().step_by(EDGES as usize / 2) {
        let last = (first + EDGES / 2).min(edges.end);
        let pairs: Vec<[u32; 2]> = (first..last).into_par_iter().map(|edge| drawing.edge(edge)).collect();
        file.add(pairs.as_flattened())?;
    }
    Ok(())
}

fn node_files(spec: &RmatSpec, nodes: Range<usize>, (dir, piece): (&Path, usize)) -> Result<()> {
    let rows = nodes.len();
    let path = |kind: &str| dir.join(format!("{kind}-{piece:05}.npy"));
    let means = vec![0.0; spec.features];
    if let Features::Dense { columns, values } = nodes::features(nodes.clone(), spec.features, spec.seed, &means, |_| 0)
    {
        Array::new(&path("features"), "<f4", &[rows, columns])?.add(&values)?;
    }
    if spec.classes > 0 {
        Array::new(&path("labels"), "<i4", &[rows])?.add(&nodes::classes(nodes.clone(), spec.classes, spec.seed))?;
        Array::new(&path("split"), "|u1", &[rows])?.add(&nodes::split(nodes, TRAIN, VAL, spec.seed).roles)?;
    }
    Ok(())
}

/// An array that is being written.
struct Array<'a> {
    path: &'a Path,
    file: File,
}

impl Array<'_> {
    fn new<'a>(path: &'a Path, descr: &str, shape: &[usize]) -> Result<Array<'a>> {
        let io = |source| GraphError::io(path, source);
        let mut file = File::create(path).map_err(io)?;
        write_header(&mut file, descr, shape).map_err(io)?;
        Ok(Array { path, file })
    }

    fn add<T: Pod>(&mut self, values: &[T]) -> Result<()> {
        self.file.write_all(bytemuck::cast_slice(values)).map_err(|source| GraphError::io(self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::{RmatSpec, rmat_arrays};

    #[test]
    fn a_folder_that_cannot_be_had_leaves_nothing_behind() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("web");
        std::fs::create_dir_all(dir.join("somebody's")).unwrap();
        let spec = RmatSpec { scale: 5, ..RmatSpec::default() };
        assert!(rmat_arrays(&spec, &dir, &|_| ()).is_err());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }

    /// The first is not robbed of what it writes, and what a killed process has left is taken over.
    #[test]
    fn two_who_write_one_folder_do_not_mix() {
        let place = tempfile::tempdir().unwrap();
        let (dir, spec) = (place.path().join("web"), RmatSpec { scale: 5, ..RmatSpec::default() });
        std::fs::create_dir_all(place.path().join(".web.part/new")).unwrap();
        std::fs::write(place.path().join(".web.part/new/left"), "behind").unwrap();
        let second = |_: &str| {
            let refused = rmat_arrays(&spec, &dir, &|_| ()).unwrap_err().to_string();
            assert!(refused.contains("another process is writing it"), "{refused}");
        };
        rmat_arrays(&spec, &dir, &second).unwrap();
        assert!(!dir.join("left").exists() && dir.join("edges-00000.npy").exists());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
