//! What one worker alone remembers between rounds, for its own file beside the checkpoint: late rows, last messages, bit-widths,
//! residuals, its own optimiser where models are averaged only now and then.
//!
//! Values are f32 under names of the form `what/1/0/2`; small integers are stored as numbers too.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use laconic_wire::Direction;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::error::{Result, TrainError};
use crate::record::folder::write_aside;

/// Named values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saved {
    values: BTreeMap<String, Vec<f32>>,
}

/// A name with numbers behind it.
pub fn name(what: &str, numbers: &[u32]) -> String {
    numbers.iter().fold(what.to_owned(), |name, number| format!("{name}/{number}"))
}

/// The direction of a number in a name.
pub fn direction_of(number: u32) -> Direction {
    if number == Direction::Reverse as u32 { Direction::Reverse } else { Direction::Forward }
}

/// Larger files are refused unread.
const BYTES_MAX: u64 = 64 << 30;

impl Saved {
    /// Whether there is nothing to remember.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Puts values under a name.
    pub fn put(&mut self, name: &str, values: &[f32]) {
        self.values.insert(name.to_owned(), values.to_vec());
    }

    /// The values under a name.
    pub fn get(&self, name: &str) -> Option<&[f32]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// Everything under `what/…`, with the numbers of its names.
    pub fn under(&self, what: &str) -> impl Iterator<Item = (Vec<u32>, Vec<f32>)> {
        let prefix = format!("{what}/");
        self.values.iter().filter_map(move |(name, values)| {
            let numbers: Option<Vec<u32>> = name.strip_prefix(&prefix)?.split('/').map(|n| n.parse().ok()).collect();
            Some((numbers?, values.clone()))
        })
    }

    /// The file of a worker for the checkpoint after a round.
    pub fn path(out: &Path, rank: u32, round: u32) -> PathBuf {
        out.join(format!("state-{rank}-{round}.safetensors"))
    }

    /// The file's bytes.
    pub fn to_bytes(&self) -> std::result::Result<Vec<u8>, String> {
        let bytes: Vec<(&String, Vec<u8>)> =
            self.values.iter().map(|(name, values)| (name, bytemuck::cast_slice(values).to_vec())).collect();
        let views = bytes.iter().map(|(name, bytes)| {
            let view =
                TensorView::new(Dtype::F32, vec![bytes.len() / 4], bytes).expect("a flat tensor of its own size");
            (name.as_str(), view)
        });
        safetensors::serialize(views, None).map_err(|error| error.to_string())
    }

    /// Writes the file and forgets those of this worker that no checkpoint can need any more: all but this one and that of `last`.
    pub fn write(&self, out: &Path, rank: u32, round: u32, last: u32) -> Result<()> {
        let path = Saved::path(out, rank, round);
        std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
        write_aside(&path, &self.to_bytes().map_err(|error| TrainError::file(&path, error))?)?;
        let keeps = [path, Saved::path(out, rank, last)];
        let prefix = format!("state-{rank}-");
        for entry in std::fs::read_dir(out).map_err(|source| TrainError::io(out, source))?.flatten() {
            let old = entry.file_name().to_string_lossy().starts_with(&prefix);
            if old && !keeps.contains(&entry.path()) {
                std::fs::remove_file(entry.path()).map_err(|source| TrainError::io(entry.path(), source))?;
            }
        }
        Ok(())
    }

    /// Reads the file of a worker for the checkpoint after a round.
    pub fn read(out: &Path, rank: u32, round: u32) -> Result<Saved> {
        let path = Saved::path(out, rank, round);
        let wrong = |what: String| TrainError::file(&path, what);
        let size = std::fs::metadata(&path).map_err(|source| TrainError::io(&path, source))?.len();
        if size > BYTES_MAX {
            return Err(wrong(format!("expected at most {BYTES_MAX} bytes, found {size}")));
        }
        Saved::from_bytes(&std::fs::read(&path).map_err(|source| TrainError::io(&path, source))?).map_err(wrong)
    }

    /// Reads a file's bytes; the error says what was expected.
    pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Saved, String> {
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let mut saved = Saved::default();
        for (name, view) in tensors.tensors() {
            if view.dtype() != Dtype::F32 {
                return Err(format!("{name}: expected numbers of 32 bits"));
            }
            let values = view.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
            saved.values.insert(name, values);
        }
        Ok(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_reads_back_with_its_names_and_every_bit() {
        let mut saved = Saved::default();
        saved.put(&name("late", &[1, 0]), &[1.0, -0.0, f32::from_bits(0x7fa0_0001)]);
        saved.put("alone", &[]);
        let back = Saved::from_bytes(&saved.to_bytes().expect("writable")).expect("its own bytes");
        let bits = |saved: &Saved| saved.get("late/1/0").map(|v| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
        assert_eq!(bits(&back), bits(&saved));
        assert_eq!(back.under("late").map(|(numbers, _)| numbers).collect::<Vec<_>>(), [[1, 0]]);
        assert_eq!(back.get("alone"), Some(&[][..]));
    }

    #[test]
    fn the_files_of_this_and_the_last_checkpoint_stay_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut saved = Saved::default();
        saved.put("x", &[1.0]);
        for (round, last) in [(2, 0), (4, 2), (6, 4)] {
            saved.write(folder.path(), 1, round, last).expect("written");
        }
        let there = |round| Saved::path(folder.path(), 1, round).exists();
        assert_eq!([2, 4, 6].map(there), [false, true, true]);
        assert_eq!(Saved::read(folder.path(), 1, 6).expect("read"), saved);
        assert!(Saved::read(folder.path(), 1, 2).is_err());
    }
}
