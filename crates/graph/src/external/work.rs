//! The folder of an unfinished cut, beside the folder to be.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::deal::Dealt;
use super::digest::digest;
use super::finish::{Nodes, count, part};
use super::job::Job;
use super::rows::RowFiles;
use super::state;
use super::written::{read_numbers, write_numbers};
use crate::aside::Held;
use crate::error::{GraphError, Result};
use crate::files::{own_folder, parent};
use crate::part::{FolderToBe, GlobalCounts, OLD, PartCounts, PartEntry, Provenance};
use crate::part::{clear, may_replace, take_back};
use crate::partition::{PartQuality, Quality};
use crate::plan::{Sums, count_lists};

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
    /// The parts that are finished, what they have to tell each other, and what they cost.
    parts: BTreeMap<u32, (PartEntry, BTreeMap<u32, Sums>, PartQuality)>,
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
        std::fs::create_dir_all(parent(&folder)).map_err(refused)?;
        own_folder(&folder, &is_ours)?;
        let busy = || refused(std::io::Error::new(ErrorKind::ResourceBusy, "another process is writing it"));
        let held = Held::take(&folder.join(HELD)).map_err(refused)?.ok_or_else(busy)?;
        take_back(&folder, out)?;
        may_replace(out, overwrite)?;
        let what = job.what()?;
        let mut done: Done = state::load(&folder.join(DONE));
        let is_same = done.what == what && done.memory <= job.memory;
        if is_same && done.is_sound(&folder)? {
            (job.tell)(&format!("going on with what {} has", folder.display()));
        } else {
            if is_same {
                (job.tell)(&format!("beginning anew: not all in {} is as it was written", folder.display()));
            }
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
        read_numbers(&self.path(ASSIGNMENT))
    }

    /// Keeps it.
    pub(super) fn keep_assignment(&self, assignment: &[u32]) -> Result<()> {
        write_numbers(&self.path(ASSIGNMENT), &[assignment])
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
            let (counts, sums, figures) = count(&part, nodes.assignment);
            let entry = PartEntry { counts: Some(counts), ..folder.add(&part)? };
            self.done.parts.insert(index, (entry, sums, figures));
            self.store()?;
            dealt.remove(index);
        }
        let finished = || self.done.parts.values();
        let cut_edges =
            finished().filter_map(|(entry, ..)| entry.counts.as_ref()).map(|counts| counts.halo_edges).sum();
        Ok(Quality::of(finished().map(|(.., figures)| *figures).collect(), cut_edges))
    }

    /// Puts the folder in its place and removes what is left.
    pub(super) fn finish(
        self,
        job: &Job,
        (global, provenance): (&GlobalCounts, &Provenance),
        label_skew: Option<f64>,
    ) -> Result<()> {
        let folder = FolderToBe::new(&self.path(PARTS), job.parts, provenance, global)?;
        let (out, overwrite) = job.out;
        folder.finish((out, overwrite), &self.path(OLD), self.done.entries(), label_skew)?;
        std::fs::remove_dir_all(&self.folder).map_err(|source| GraphError::io(&self.folder, source))
    }
}

impl Done {
    /// The entries of all parts, once all are finished.
    fn entries(&self) -> BTreeMap<u32, PartEntry> {
        let counts = self.parts.iter().filter_map(|(&index, (entry, ..))| Some((index, entry.counts.clone()?)));
        let mut counts: BTreeMap<u32, PartCounts> = counts.collect();
        let sums = self.parts.iter().map(|(&index, (_, sums, _))| (index, sums.clone())).collect();
        count_lists(&sums, &mut counts);
        let counted = |(&index, (entry, ..)): (&u32, &(PartEntry, _, _))| {
            (index, PartEntry { counts: counts.remove(&index), ..entry.clone() })
        };
        self.parts.iter().map(counted).collect()
    }

    /// Whether all that is needed to go on is as it was written. Parts that are in their final place already are
    /// nothing to go on from.
    fn is_sound(&self, folder: &Path) -> Result<bool> {
        for (&part, (entry, ..)) in &self.parts {
            if !FolderToBe::has(&folder.join(PARTS), part, entry)? {
                return Ok(false);
            }
        }
        let (rows, dealt) = (folder.join("rows"), folder.join("dealt"));
        let are_dealt = Dealt::is_complete(&dealt);
        if are_dealt && read_numbers(&folder.join(ASSIGNMENT))?.is_none() {
            return Ok(false);
        }
        let is_finished = |part| self.parts.contains_key(&part);
        Ok((are_dealt || RowFiles::is_sound(&rows)?)
            && RowFiles::is_sound(&folder.join("neighbours"))?
            && Dealt::is_sound(&dealt, &is_finished)?)
    }
}

/// Whether a cut makes something of this name in its folder.
fn is_ours(name: &str) -> bool {
    let names = [DONE, HELD, PARTS, ASSIGNMENT, OLD, "rows", "neighbours", "dealt", "passes"];
    let of_part = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part"));
    names.contains(&of_part.unwrap_or(name))
}

/// `.NAME.cut` beside the folder `NAME`.
fn beside(out: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(out.file_name().unwrap_or_default());
    name.push(".cut");
    out.with_file_name(name)
}
