//! The file of what one worker alone remembers, beside the checkpoint that it belongs to.

use std::path::{Path, PathBuf};

use super::aside::{read_within, write_aside};
use super::tensors::Tensors;
use crate::error::{Result, TrainError};
use crate::saved::{Name, Saved};

/// Larger files are refused.
const BYTES_MAX: u64 = 64 << 30;

/// The file of a worker for the checkpoint after a round.
pub fn path(out: &Path, rank: u32, round: u32) -> PathBuf {
    out.join(format!("state-{rank}-{round}.safetensors"))
}

/// The file's bytes.
///
/// # Errors
/// If an array's shape does not fit its numbers; the text says which.
pub fn to_bytes(saved: &Saved) -> std::result::Result<Vec<u8>, String> {
    let tensor = |(name, shape, numbers): (&Name, &[usize], &_)| {
        let numbers: &crate::saved::Numbers = numbers;
        (name.to_string(), (shape.to_vec(), numbers.clone()))
    };
    Tensors { tensors: saved.iter().map(tensor).collect(), metadata: None }.to_bytes()
}

/// Reads a file's bytes.
///
/// # Errors
/// If they are no such file, or hold an array whose name nothing here writes; the text says what was expected.
pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Saved, String> {
    let mut saved = Saved::default();
    for (name, (shape, numbers)) in Tensors::from_bytes(bytes, "")?.tensors {
        saved.insert(name.parse()?, shape, numbers);
    }
    Ok(saved)
}

/// Writes the file and forgets those of this worker that no checkpoint can need any more: all but this one and that of
/// `last`.
///
/// # Errors
/// If the operating system refuses.
pub fn write(saved: &Saved, out: &Path, rank: u32, round: u32, last: u32) -> Result<()> {
    let file = path(out, rank, round);
    std::fs::create_dir_all(out).map_err(|source| TrainError::io(out, source))?;
    write_aside(&file, &to_bytes(saved).map_err(|error| TrainError::file(&file, error))?)?;
    let keeps = [file, path(out, rank, last)];
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
///
/// # Errors
/// If there is none, or one that is not what it should be.
pub fn read(out: &Path, rank: u32, round: u32) -> Result<Saved> {
    let file = path(out, rank, round);
    from_bytes(&read_within(&file, BYTES_MAX)?).map_err(|what| TrainError::file(&file, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_wire::{Direction, Rank};

    #[test]
    fn what_is_saved_reads_back_with_its_names_shapes_and_every_bit() {
        let mut saved = Saved::default();
        let late = Name::of("late", (1, Direction::Forward), None);
        saved.put_shaped(late.clone(), vec![3, 1], &[1.0, -0.0, f32::from_bits(0x7fa0_0001)]);
        saved.put(Name::of("widths", (0, Direction::Reverse), Some((Rank(2), true))), &[2u8, 8]);
        saved.put(Name::one("sums"), &[1e300f64]);
        saved.put::<u32>(Name::one("alone"), &[]);
        let mut back = from_bytes(&to_bytes(&saved).expect("writable")).expect("its own bytes");
        let names = |saved: &Saved| saved.iter().map(|(n, s, _)| (n.clone(), s.to_vec())).collect::<Vec<_>>();
        assert_eq!(names(&back), names(&saved));
        let bits = |saved: &mut Saved| {
            let values = saved.take::<f32>(&late).expect("of its kind").expect("there");
            values.into_iter().map(f32::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(bits(&mut back), bits(&mut saved));
        assert_eq!(back, saved);
    }

    #[test]
    fn the_files_of_this_and_the_last_checkpoint_stay_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut saved = Saved::default();
        saved.put(Name::one("x"), &[1.0f32]);
        for (round, last) in [(2, 0), (4, 2), (6, 4)] {
            write(&saved, folder.path(), 1, round, last).expect("written");
        }
        let there = |round| path(folder.path(), 1, round).exists();
        assert_eq!([2, 4, 6].map(there), [false, true, true]);
        assert_eq!(read(folder.path(), 1, 6).expect("read"), saved);
        assert!(read(folder.path(), 1, 2).is_err());
    }
}
