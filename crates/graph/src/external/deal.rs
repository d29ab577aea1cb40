//! Rows and features go to the files of their parts.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::append::{Appending, BUFFERS};
use super::rows::RowFiles;
use super::state;
use super::written::{Written, read};
use crate::error::{GraphError, Result};
use crate::read::passes::Input;

/// The files of parts that are not finished.
pub(super) struct Dealt {
    folder: PathBuf,
    done: Done,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Done {
    /// Buckets of rows that have been distributed.
    buckets: usize,
    /// Each part's files of degrees and of sources after these.
    written: [Vec<Written>; 2],
    /// Each part's file of features, once all have been distributed; empty without features.
    features: Option<Vec<Written>>,
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
        if dealt.done.written.iter().any(|written| written.len() != parts as usize) {
            let nothing = vec![Written::default(); parts as usize];
            dealt.done = Done { written: [nothing.clone(), nothing], ..Done::default() };
        }
        if dealt.done.buckets < rows.buckets() {
            dealt.rows(rows, assignment, tell)?;
        }
        if dealt.done.features.is_none() {
            tell("dealing features out to parts");
            dealt.done.features = Some(dealt.features(data, (assignment, parts))?);
            dealt.store()?;
        }
        Ok(dealt)
    }

    /// Whether all has been distributed: then rows are not needed any more.
    pub(super) fn is_complete(folder: &Path) -> bool {
        state::load::<Done>(&folder.join(DONE)).features.is_some()
    }

    /// Whether the files in `folder`, but those of parts that are `finished`, are as they were written.
    pub(super) fn is_sound(folder: &Path, finished: &dyn Fn(u32) -> bool) -> Result<bool> {
        let dealt = Dealt { folder: folder.to_owned(), done: state::load(&folder.join(DONE)) };
        let none = Vec::new();
        let kinds = [DEGREES, SOURCES, FEATURES];
        let lists = [&dealt.done.written[0], &dealt.done.written[1], dealt.done.features.as_ref().unwrap_or(&none)];
        for (kind, written) in kinds.into_iter().zip(lists) {
            for (part, written) in (0..).zip(written) {
                if !finished(part) && !written.is(&dealt.file(kind, part))? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn store(&self) -> Result<()> {
        state::store(&self.folder.join(DONE), &self.done)
    }

    fn file(&self, kind: &str, part: u32) -> PathBuf {
        self.folder.join(format!("{kind}-{part}"))
    }

    fn rows(&mut self, rows: &RowFiles, assignment: &[u32], tell: &dyn Fn(&str)) -> Result<()> {
        let open = |kind: &str, written: &[Written]| {
            let files = (0..).zip(written);
            Appending::to(files.map(|(part, written)| (self.file(kind, part), written.clone())), BUFFERS / 2)
        };
        let mut degrees = open(DEGREES, &self.done.written[0])?;
        let mut sources = open(SOURCES, &self.done.written[1])?;
        rows.pass_from(self.done.buckets, &mut |bucket, rows_of| {
            tell(&format!("dealing bucket {} of {} out to parts", bucket + 1, rows.buckets()));
            for (node, row) in rows_of.iter() {
                let part = assignment[node] as usize;
                degrees.add(part, &(row.len() as u32).to_le_bytes())?;
                sources.add(part, bytemuck::cast_slice(row))?;
            }
            self.done.written = [degrees.flush()?, sources.flush()?];
            self.done.buckets = bucket + 1;
            self.store()
        })
    }

    fn features(&self, data: &dyn Input, (assignment, parts): (&[u32], u32)) -> Result<Vec<Written>> {
        let columns = data.columns();
        if columns == 0 {
            return Ok(Vec::new());
        }
        let empty = (0..parts).map(|part| (self.file(FEATURES, part), Written::default()));
        let mut files = Appending::to(empty, BUFFERS)?;
        let mut node = 0;
        data.features(&mut |values| {
            for row in values.chunks_exact(columns) {
                files.add(assignment[node] as usize, bytemuck::cast_slice(row))?;
                node += 1;
            }
            Ok(())
        })?;
        files.flush()
    }

    /// The number of edges of the part that has most.
    pub(super) fn edges_most(&self) -> u64 {
        self.done.written[1].iter().map(|written| written.bytes / 4).max().unwrap_or(0)
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
