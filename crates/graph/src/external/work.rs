//! The folder of an unfinished cut, beside the folder to be.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cut::Job;
use super::deal::{Dealt, read};
use super::digest::digest;
use super::finish::{Nodes, count, part};
use super::rows::RowFiles;
use super::state;
use crate::aside::{Held, write_aside};
use crate::error::{GraphError, Result};
use crate::part::{FolderToBe, GlobalCounts, OLD, PartEntry, Provenance, clear, may_replace, take_back};
use crate::partition::{PartQuality, Quality};

/// The folder, which one process at a time holds, and what has been done in it.
pub(super) struct Work {
    folder: PathBuf,
    done: Done,
    _held: Held,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Done {
    /// What is being cut, and how.
    what: String,
    /// The bytes of memory that it was begun with; buckets fit into these.
    #[serde(default)]
    memory: u64,
    /// The digest of the data.
    digest: Option<String>,
    /// The parts that are finished, and what they cost.
    parts: BTreeMap<u32, (PartEntry, PartQuality)>,
}

const DONE: &str = "done.json";
const HELD: &str = "lock";
const PARTS: &str = "parts";
const ASSIGNMENT: &str = "assignment";

impl Work {
    /// Goes on with what is there, if it is of the same job, or begins anew.
    pub(super) fn begin(job: &Job) -> Result<Work> {
        let (out, overwrite) = job.out;
        may_replace(out, overwrite)?;
        let folder = beside(out);
        let refused = |source| GraphError::io(&folder, source);
        std::fs::create_dir_all(&folder).map_err(refused)?;
        let busy = || refused(std::io::Error::new(ErrorKind::ResourceBusy, "another process is writing it"));
        let held = Held::take(&folder.join(HELD)).map_err(refused)?.ok_or_else(busy)?;
        take_back(&folder, out)?;
        may_replace(out, overwrite)?;
        let what = job.what()?;
        let mut done: Done = state::load(&folder.join(DONE));
        // Parts that are in their final place already are nothing to go on from.
        let has_parts = done.parts.keys().all(|&part| FolderToBe::has(&folder.join(PARTS), part));
        if done.what == what && has_parts && done.memory <= job.memory {
            (job.tell)(&format!("going on with what {} has", folder.display()));
        } else {
            clear(&folder, HELD).map_err(refused)?;
            done = Done { what, memory: job.memory, ..Done::default() };
        }
        let work = Work { folder, done, _held: held };
        work.store()?;
        Ok(work)
    }

    /// Removes the folder if no edge is in its bucket yet.
    pub(super) fn leave_nothing(&self) {
        if !self.path("rows").join(DONE).exists() {
            // What is left is taken over by the next one who writes there.
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    /// The folder itself.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A place in the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn store(&self) -> Result<()> {
        state::store(&self.path(DONE), &self.done)
    }

    /// The assignment, if there is one already.
    pub(super) fn assignment(&self) -> Result<Option<Vec<u32>>> {
        let path = self.path(ASSIGNMENT);
        if path.exists() { read(&path).map(Some) } else { Ok(None) }
    }

    /// Keeps it.
    pub(super) fn keep_assignment(&self, assignment: &[u32]) -> Result<()> {
        let path = self.path(ASSIGNMENT);
        let written = write_aside::<std::io::Error>(&path, |file| file.write_all(bytemuck::cast_slice(assignment)));
        written.map_err(|source| GraphError::io(&path, source))
    }

    /// The digest of the data.
    pub(super) fn digest(&mut self, job: &Job, rows: &RowFiles, (labels, roles): (&[i32], &[u8])) -> Result<String> {
        if let Some(digest) = &self.done.digest {
            return Ok(digest.clone());
        }
        (job.tell)("computing the digest of the data");
        let found = digest((rows, job.data), (labels, roles))?;
        self.done.digest = Some(found.clone());
        self.store()?;
        Ok(found)
    }

    /// Writes the parts that are not finished; what each costs.
    pub(super) fn parts(
        &mut self,
        job: &Job,
        dealt: &Dealt,
        nodes: &Nodes,
        (global, provenance): (&GlobalCounts, &Provenance),
    ) -> Result<Quality> {
        let folder = FolderToBe::new(&self.path(PARTS), job.parts, provenance, global)?;
        for index in 0..job.parts {
            if self.done.parts.contains_key(&index) {
                continue;
            }
            (job.tell)(&format!("writing part {} of {}", index + 1, job.parts));
            let part = part(dealt, nodes, (index, job.parts), global)?;
            let (counts, figures) = count(&part, nodes.assignment);
            let entry = PartEntry { counts: Some(counts), ..folder.add(&part)? };
            self.done.parts.insert(index, (entry, figures));
            self.store()?;
            dealt.remove(index);
        }
        let finished = || self.done.parts.values();
        let cut_edges = finished().filter_map(|(entry, _)| entry.counts.as_ref()).map(|counts| counts.halo_edges).sum();
        Ok(Quality::of(finished().map(|(_, figures)| *figures).collect(), cut_edges))
    }

    /// Puts the folder in its place and removes what is left.
    pub(super) fn finish(
        self,
        job: &Job,
        (global, provenance): (&GlobalCounts, &Provenance),
        label_skew: Option<f64>,
    ) -> Result<()> {
        let folder = FolderToBe::new(&self.path(PARTS), job.parts, provenance, global)?;
        let entries = self.done.parts.iter().map(|(&index, (entry, _))| (index, entry.clone()));
        let (out, overwrite) = job.out;
        folder.finish((out, overwrite), &self.path(OLD), entries.collect(), label_skew)?;
        std::fs::remove_dir_all(&self.folder).map_err(|source| GraphError::io(&self.folder, source))
    }
}

/// `.NAME.cut` beside the folder `NAME`.
fn beside(out: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(out.file_name().unwrap_or_default());
    name.push(".cut");
    out.with_file_name(name)
}
