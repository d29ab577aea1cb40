//! From edges in any order to rows, on the disk: edges go into buckets of consecutive targets, and each bucket is
//! sorted by itself.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use blake3::Hasher;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::append::{Appending, BUFFERS};
use super::state;
use super::written::Written;
use crate::build::BuildOptions;
use crate::error::{GraphError, Result};
use crate::source::{EachRows, EdgeSource, RowSource, Rows};

/// Rows in files, a bucket of consecutive nodes in each.
pub(super) struct RowFiles {
    folder: PathBuf,
    done: Done,
}

/// What has been done of it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Done {
    /// The first node of each bucket, and one beyond the last of all.
    bounds: Vec<u64>,
    /// The edges of each bucket in any order, once all are there.
    spilled: Vec<Written>,
    /// The number of edges of each bucket that has been sorted.
    edges: Vec<u64>,
    /// The rows of each of these.
    sorted: Vec<Written>,
}

/// How many edges end at each node, as they come and in both directions where that is asked for.
pub(super) struct Degrees(Vec<u32>);

impl Degrees {
    /// Counts, in one pass.
    pub(super) fn count(source: &dyn EdgeSource, how: BuildOptions) -> Result<Degrees> {
        let mut counts = vec![0u32; source.nodes() as usize];
        source.pass(&mut |pairs| {
            each_edge(pairs, how, |_, target| {
                let count = &mut counts[target as usize];
                *count = count.saturating_add(1);
                Ok(())
            })
        })?;
        Ok(Degrees(counts))
    }

    /// All edges, repeated ones included.
    pub(super) fn edges(&self) -> u64 {
        self.0.iter().map(|&count| u64::from(count)).sum()
    }

    /// The most edges at one node.
    pub(super) fn largest(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0).into()
    }

    /// Buckets of at most so many edges, or of one node that has more.
    fn bounds(&self, edges_max: u64) -> Vec<u64> {
        let mut bounds = vec![0];
        let mut edges = 0;
        for (node, &count) in self.0.iter().enumerate() {
            // Nodes without edges take room, too.
            let room = u64::from(count) + 1;
            if edges > 0 && edges + room > edges_max {
                bounds.push(node as u64);
                edges = 0;
            }
            edges += room;
        }
        bounds.push(self.0.len() as u64);
        bounds
    }
}

/// The edges that are meant: in both directions where that is asked for, and loops where they are kept.
fn each_edge(pairs: &[(u64, u64)], how: BuildOptions, mut edge: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    for &(source, target) in pairs {
        if source == target {
            if how.keep_self_loops {
                edge(source, target)?;
            }
            continue;
        }
        edge(source, target)?;
        if how.symmetrise {
            edge(target, source)?;
        }
    }
    Ok(())
}

impl RowFiles {
    /// Makes the rows in `folder`, or goes on where an earlier call was ended; each bucket has at most `edges_max`
    /// edges unless one node has more.
    pub(super) fn build(
        (source, how): (&dyn EdgeSource, BuildOptions),
        folder: &Path,
        degrees: impl FnOnce() -> Result<Degrees>,
        edges_max: u64,
        tell: &dyn Fn(&str),
    ) -> Result<RowFiles> {
        std::fs::create_dir_all(folder).map_err(|source| GraphError::io(folder, source))?;
        let mut rows = RowFiles { folder: folder.to_owned(), done: state::load(&folder.join(STATE)) };
        if rows.done.spilled.is_empty() {
            rows.done = Done { bounds: degrees()?.bounds(edges_max), ..Done::default() };
            tell(&format!("putting edges into {} buckets", rows.buckets()));
            rows.done.spilled = rows.spill(source, how)?;
            rows.store()?;
        }
        for bucket in rows.done.edges.len()..rows.buckets() {
            tell(&format!("sorting bucket {} of {}", bucket + 1, rows.buckets()));
            let (edges, written) = rows.sort(bucket)?;
            rows.done.edges.push(edges);
            rows.done.sorted.push(written);
            rows.store()?;
            // Not before it is written down that nobody needs it.
            let _ = std::fs::remove_file(rows.spilled(bucket));
        }
        Ok(rows)
    }

    fn store(&self) -> Result<()> {
        state::store(&self.folder.join(STATE), &self.done)
    }

    /// Whether what has been written down in `folder` fits together and all of its files are as they were written.
    pub(super) fn is_sound(folder: &Path) -> Result<bool> {
        let rows = RowFiles { folder: folder.to_owned(), done: state::load(&folder.join(STATE)) };
        let Done { bounds, spilled, edges, sorted } = &rows.done;
        if spilled.is_empty() {
            return Ok(true);
        }
        let fits = spilled.len() + 1 == bounds.len() && sorted.len() == edges.len() && edges.len() <= spilled.len();
        if !fits || !bounds.is_sorted() {
            return Ok(false);
        }
        let written = |bucket: usize| match sorted.get(bucket) {
            Some(sorted) => sorted.is(&rows.sorted(bucket)),
            None => spilled[bucket].is(&rows.spilled(bucket)),
        };
        (0..spilled.len()).try_fold(true, |sound, bucket| Ok(sound && written(bucket)?))
    }

    /// How many buckets there are.
    pub(super) fn buckets(&self) -> usize {
        self.done.bounds.len() - 1
    }

    fn spilled(&self, bucket: usize) -> PathBuf {
        self.folder.join(format!("edges-{bucket}"))
    }

    fn sorted(&self, bucket: usize) -> PathBuf {
        self.folder.join(format!("rows-{bucket}"))
    }

    /// Puts each edge, its target counted from the bucket's first node, into its bucket.
    fn spill(&self, source: &dyn EdgeSource, how: BuildOptions) -> Result<Vec<Written>> {
        let bounds = &self.done.bounds;
        let empty = (0..self.buckets()).map(|bucket| (self.spilled(bucket), Written::default()));
        let mut files = Appending::to(empty, BUFFERS)?;
        let places = Places::new(bounds);
        source.pass(&mut |pairs| {
            each_edge(pairs, how, |source, target| {
                let bucket = places.bucket(bounds, target);
                let edge = (target - bounds[bucket]) << 32 | source;
                files.add(bucket, &edge.to_le_bytes())
            })
        })?;
        files.flush()
    }

    /// Sorts a bucket, each edge once; returns how many edges it has, and what was written.
    fn sort(&self, bucket: usize) -> Result<(u64, Written)> {
        let path = self.spilled(bucket);
        let io = |source| GraphError::io(&path, source);
        let mut file = File::open(&path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut edges = vec![0u64; (length / 8) as usize];
        file.read_exact(bytemuck::cast_slice_mut(&mut edges)).map_err(io)?;
        edges.par_sort_unstable();
        edges.dedup();
        let nodes = (self.done.bounds[bucket + 1] - self.done.bounds[bucket]) as usize;
        let mut degrees = vec![0u32; nodes];
        for edge in &edges {
            let row = degrees.get_mut((edge >> 32) as usize);
            *row.ok_or_else(|| GraphError::format(&path, "bucket", "expected edges of its nodes"))? += 1;
        }
        let path = self.sorted(bucket);
        let count = edges.len() as u64;
        let sources: Vec<u32> = edges.into_iter().map(|edge| edge as u32).collect();
        let mut hasher = Hasher::new();
        let pieces: [&[u8]; 2] = [bytemuck::cast_slice(&degrees), bytemuck::cast_slice(&sources)];
        let mut written = || -> std::io::Result<()> {
            let mut file = File::create(&path)?;
            for piece in pieces {
                hasher.update(piece);
                file.write_all(piece)?;
            }
            file.sync_all()
        };
        written().map_err(|source| GraphError::io(&path, source))?;
        let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
        Ok((count, Written::of(bytes, &hasher)))
    }

    /// The boundaries of a bucket's rows and their sources.
    pub(super) fn load(&self, bucket: usize) -> Result<(Vec<u64>, Vec<u32>)> {
        let path = self.sorted(bucket);
        let io = |source| GraphError::io(&path, source);
        let mut file = File::open(&path).map_err(io)?;
        let nodes = (self.done.bounds[bucket + 1] - self.done.bounds[bucket]) as usize;
        let mut degrees = vec![0u32; nodes];
        file.read_exact(bytemuck::cast_slice_mut(&mut degrees)).map_err(io)?;
        let mut offsets = Vec::with_capacity(nodes + 1);
        offsets.push(0u64);
        let mut end = 0;
        for degree in degrees {
            end += u64::from(degree);
            offsets.push(end);
        }
        if end != self.done.edges[bucket] {
            let what = format!("expected {} edges, found {end}", self.done.edges[bucket]);
            return Err(GraphError::format(&path, "rows", what));
        }
        let mut sources = vec![0u32; end as usize];
        file.read_exact(bytemuck::cast_slice_mut(&mut sources)).map_err(io)?;
        Ok((offsets, sources))
    }

    /// Removes the files, once nobody needs them any more.
    pub(super) fn remove(&self) {
        for bucket in 0..self.buckets() {
            // Removed with the folder in the end.
            let _ = std::fs::remove_file(self.sorted(bucket));
        }
    }

    /// Calls `each` with the rows of every bucket from `first` on and its number. Buckets are read ahead.
    pub(super) fn pass_from(&self, first: usize, each: &mut dyn FnMut(usize, Rows) -> Result<()>) -> Result<()> {
        std::thread::scope(|scope| {
            let (send, receive) = sync_channel(0);
            scope.spawn(move || (first..self.buckets()).all(|bucket| send.send(self.load(bucket)).is_ok()));
            for bucket in first..self.buckets() {
                let loaded = receive.recv().expect("the reader sends every bucket");
                let (offsets, sources) = loaded?;
                let first = self.done.bounds[bucket] as usize;
                each(bucket, Rows { first, offsets: &offsets, sources: &sources })?;
            }
            Ok(())
        })
    }
}

impl RowSource for RowFiles {
    fn nodes(&self) -> usize {
        self.done.bounds.last().copied().unwrap_or(0) as usize
    }

    fn edges(&self) -> u64 {
        self.done.edges.iter().sum()
    }

    fn pass(&self, each: &mut EachRows) -> Result<()> {
        self.pass_from(0, &mut |_, rows| each(rows))
    }
}

/// Finds buckets by target: where to begin looking, for each piece of all nodes.
struct Places {
    shift: u32,
    first: Vec<u32>,
}

impl Places {
    fn new(bounds: &[u64]) -> Places {
        let nodes = bounds.last().copied().unwrap_or(0);
        let shift = (u64::BITS - nodes.leading_zeros()).saturating_sub(16);
        let of = |piece: u64| bounds.partition_point(|&bound| bound <= piece << shift) as u32 - 1;
        Places { shift, first: (0..=nodes >> shift).map(of).collect() }
    }

    fn bucket(&self, bounds: &[u64], target: u64) -> usize {
        let mut bucket = self.first[(target >> self.shift) as usize] as usize;
        while bounds[bucket + 1] <= target {
            bucket += 1;
        }
        bucket
    }
}

const STATE: &str = "done.json";
