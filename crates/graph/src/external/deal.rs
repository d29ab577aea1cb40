//! Rows and features go to the files of their parts.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use super::append::{Appending, BUFFERS};
use super::rows::RowFiles;
use super::state;
use crate::error::{GraphError, Result};
use crate::read::passes::Input;

/// The files of parts that are not finished.
pub(super) struct Dealt {
    folder: PathBuf,
    done: Done,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Done {
    /// Buckets of rows that have been dealt out.
    buckets: usize,
    /// The lengths of each part's files of degrees and of sources after these.
    lengths: [Vec<u64>; 2],
    /// Whether features have been dealt out.
    features: bool,
}

const DONE: &str = "done.json";
const DEGREES: &str = "degrees";
const SOURCES: &str = "sources";
const FEATURES: &str = "features";

impl Dealt {
    /// Deals everything out, or goes on where an earlier call was ended.
    pub(super) fn deal(
        folder: &Path,
        (rows, data): (&RowFiles, &dyn Input),
        (assignment, parts): (&[u32], u32),
        tell: &dyn Fn(&str),
    ) -> Result<Dealt> {
        std::fs::create_dir_all(folder).map_err(|source| GraphError::io(folder, source))?;
        let mut dealt = Dealt { folder: folder.to_owned(), done: state::load(&folder.join(DONE)) };
        if dealt.done.lengths.iter().any(|lengths| lengths.len() != parts as usize) {
            let nothing = vec![0; parts as usize];
            dealt.done = Done { lengths: [nothing.clone(), nothing], ..Done::default() };
        }
        if dealt.done.buckets < rows.buckets() {
            dealt.rows(rows, assignment, tell)?;
        }
        if !dealt.done.features {
            tell("dealing features out to parts");
            dealt.features(data, (assignment, parts))?;
            dealt.done.features = true;
            dealt.store()?;
        }
        Ok(dealt)
    }

    fn store(&self) -> Result<()> {
        state::store(&self.folder.join(DONE), &self.done)
    }

    fn file(&self, kind: &str, part: u32) -> PathBuf {
        self.folder.join(format!("{kind}-{part}"))
    }

    fn rows(&mut self, rows: &RowFiles, assignment: &[u32], tell: &dyn Fn(&str)) -> Result<()> {
        let open = |kind: &str, lengths: &[u64]| {
            let files = lengths.iter().enumerate();
            Appending::to(files.map(|(part, &length)| (self.file(kind, part as u32), length)), BUFFERS / 2)
        };
        let mut degrees = open(DEGREES, &self.done.lengths[0])?;
        let mut sources = open(SOURCES, &self.done.lengths[1])?;
        rows.pass_from(self.done.buckets, &mut |bucket, rows_of| {
            tell(&format!("dealing bucket {} of {} out to parts", bucket + 1, rows.buckets()));
            for (node, row) in rows_of.iter() {
                let part = assignment[node] as usize;
                degrees.add(part, &(row.len() as u32).to_le_bytes())?;
                sources.add(part, bytemuck::cast_slice(row))?;
            }
            self.done.lengths = [degrees.flush()?, sources.flush()?];
            self.done.buckets = bucket + 1;
            self.store()
        })
    }

    fn features(&self, data: &dyn Input, (assignment, parts): (&[u32], u32)) -> Result<()> {
        let columns = data.columns();
        if columns == 0 {
            return Ok(());
        }
        let mut files = Appending::to((0..parts).map(|part| (self.file(FEATURES, part), 0)), BUFFERS)?;
        let mut node = 0;
        data.features(&mut |values| {
            for row in values.chunks_exact(columns) {
                files.add(assignment[node] as usize, bytemuck::cast_slice(row))?;
                node += 1;
            }
            Ok(())
        })?;
        files.flush().map(drop)
    }

    /// The number of edges of the part that has most.
    pub(super) fn edges_most(&self) -> u64 {
        self.done.lengths[1].iter().max().map_or(0, |bytes| bytes / 4)
    }

    /// The boundaries of a part's rows.
    pub(super) fn offsets(&self, part: u32) -> Result<Vec<u64>> {
        let mut offsets = vec![0u64];
        let mut end = 0;
        for degree in read::<u32>(&self.file(DEGREES, part))? {
            end += u64::from(degree);
            offsets.push(end);
        }
        Ok(offsets)
    }

    /// The sources of a part's edges.
    pub(super) fn sources(&self, part: u32) -> Result<Vec<u64>> {
        Ok(read::<u32>(&self.file(SOURCES, part))?.into_iter().map(u64::from).collect())
    }

    /// The values of a part's features.
    pub(super) fn feature_values(&self, part: u32) -> Result<Vec<f32>> {
        read(&self.file(FEATURES, part))
    }

    /// Removes the files of a part that is finished.
    pub(super) fn remove(&self, part: u32) {
        for kind in [DEGREES, SOURCES, FEATURES] {
            // Removed with the folder in the end.
            let _ = std::fs::remove_file(self.file(kind, part));
        }
    }
}

/// All values of a file.
pub(super) fn read<T: Pod>(path: &Path) -> Result<Vec<T>> {
    let io = |source| GraphError::io(path, source);
    let mut file = File::open(path).map_err(io)?;
    let bytes = file.metadata().map_err(io)?.len() as usize;
    let mut values = vec![T::zeroed(); bytes / size_of::<T>()];
    file.read_exact(bytemuck::cast_slice_mut(&mut values)).map_err(io)?;
    Ok(values)
}
