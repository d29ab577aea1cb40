//! A folder of parts that is written over a long time, by one process after another.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{GraphError, Result};
use crate::part::folder::{META, add, may_replace, part_name, put_in_place};
use crate::part::meta::{Meta, PartEntry, Provenance};
use crate::part::{GlobalCounts, Part};

/// Where parts are put until all are there.
pub(crate) struct FolderToBe {
    folder: PathBuf,
    meta: Meta,
}

impl FolderToBe {
    /// In the folder of this name, which nobody else writes to and which may have parts already.
    pub(crate) fn new(folder: &Path, parts: u32, provenance: &Provenance, global: &GlobalCounts) -> Result<FolderToBe> {
        fs::create_dir_all(folder).map_err(|source| GraphError::io(folder, source))?;
        Ok(FolderToBe { folder: folder.to_owned(), meta: Meta::new(parts, provenance, global) })
    }

    /// Whether this part's folder is there with its files as they were written.
    pub(crate) fn has(folder: &Path, part: u32, entry: &PartEntry) -> Result<bool> {
        let place = folder.join(part_name(part));
        for (name, expected) in &entry.files {
            let path = place.join(name);
            let is_there = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() == expected.bytes);
            if !is_there {
                return Ok(false);
            }
            let mut hasher = blake3::Hasher::new();
            let hashed = fs::File::open(&path).and_then(|file| hasher.update_reader(file).map(drop));
            hashed.map_err(|source| GraphError::io(&path, source))?;
            if hasher.finalize().to_hex().as_str() != expected.blake3 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes a part in the place of what a killed process has left of it; its files.
    pub(crate) fn add(&self, part: &Part) -> Result<PartEntry> {
        let place = self.folder.join(part_name(part.index));
        if place.exists() {
            fs::remove_dir_all(&place).map_err(|source| GraphError::io(&place, source))?;
        }
        let mut meta = self.meta.clone();
        add(&self.folder, &mut meta, part)?;
        Ok(meta.files.remove(&part.index).expect("it was added"))
    }

    /// Puts the folder, of these parts, in its final place; what it replaces is at `old` for a moment.
    pub(crate) fn finish(
        mut self,
        (dir, overwrite): (&Path, bool),
        old: &Path,
        parts: BTreeMap<u32, PartEntry>,
        label_skew: Option<f64>,
    ) -> Result<()> {
        self.meta.files = parts;
        self.meta.label_skew = label_skew;
        let meta = self.folder.join(META);
        if meta.exists() {
            fs::remove_file(&meta).map_err(|source| GraphError::io(&meta, source))?;
        }
        self.meta.write(&meta)?;
        put_in_place(&self.folder, (dir, may_replace(dir, overwrite)?), old)
    }
}
