//! The file of what one worker alone remembers, beside the checkpoint that it belongs to.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::aside::{read_within, write_aside};
use super::tensors::Tensors;
use crate::error::{Result, TrainError};
use crate::saved::{Name, Numbers, Saved};

const FORMAT: &str = "laconic-state-1";
/// Larger files are refused.
const BYTES_MAX: u64 = 64 << 30;

/// Whose state a file holds, and of when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// What the run is called in the checkpoint that the state belongs to.
    pub run: String,
    /// The worker whose state it is.
    pub rank: u32,
    /// The round after which it was written.
    pub round: u32,
}

impl Owner {
    /// The file in a run's folder.
    pub fn path(&self, out: &Path) -> PathBuf {
        path(out, self.rank, self.round)
    }
}

/// The file of a worker for the checkpoint after a round.
pub fn path(out: &Path, rank: u32, round: u32) -> PathBuf {
    out.join(format!("state-{rank}-{round}.safetensors"))
}

/// The file's bytes.
///
/// # Errors
/// If an array's shape does not fit its numbers; the text says which.
pub fn to_bytes(saved: Saved, owner: &Owner) -> std::result::Result<Vec<u8>, String> {
    let tensor = |(name, array): (Name, (Vec<usize>, Numbers))| (name.to_string(), array);
    let text = serde_json::to_string(owner).map_err(|error| error.to_string())?;
    let metadata = Some((FORMAT.to_owned(), text));
    Tensors { tensors: saved.into_arrays().map(tensor).collect(), metadata }.to_bytes()
}

/// Reads a file's bytes.
///
/// # Errors
/// If they are no such file, or hold an array whose name nothing here writes; the text says what was expected.
pub fn from_bytes(bytes: &[u8]) -> std::result::Result<(Saved, Owner), String> {
    let file = Tensors::from_bytes(bytes, FORMAT)?;
    let owner = serde_json::from_str(file.text()).map_err(|error| format!("whose state it is: {error}"))?;
    let mut saved = Saved::default();
    for (name, (shape, numbers)) in file.tensors {
        saved.insert(name.parse()?, shape, numbers);
    }
    Ok((saved, owner))
}

/// Writes the file and forgets those of this worker that no checkpoint can need any more: all but this one and that of
/// `last`.
///
/// # Errors
/// If the operating system refuses.
pub fn write(saved: Saved, out: &Path, owner: &Owner, last: u32) -> Result<()> {
    let (file, rank) = (owner.path(out), owner.rank);
    write_aside(&file, &to_bytes(saved, owner).map_err(|error| TrainError::file(&file, error))?)?;
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

/// Reads the file of this owner.
///
/// # Errors
/// If there is none, or one that is not what it should be, or of somebody else.
pub fn read(out: &Path, owner: &Owner) -> Result<Saved> {
    let file = owner.path(out);
    let refuse = |what: String| TrainError::file(&file, what);
    let (saved, found) = from_bytes(&read_within(&file, BYTES_MAX)?).map_err(refuse)?;
    if (found.rank, found.round) != (owner.rank, owner.round) {
        let [expected, found] = [owner, &found].map(|owner| format!("worker {}, round {}", owner.rank, owner.round));
        return Err(refuse(format!("expected the state of {expected}, found that of {found}")));
    }
    if found.run != owner.run {
        return Err(refuse("it belongs to another run than the checkpoint beside it".to_owned()));
    }
    Ok(saved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_wire::{Direction, Rank};

    fn owner(rank: u32, round: u32) -> Owner {
        Owner { run: "r".to_owned(), rank, round }
    }

    #[test]
    fn what_is_saved_reads_back_with_its_names_shapes_and_every_bit() {
        let mut saved = Saved::default();
        let late = Name::of("late", (1, Direction::Forward), None);
        saved.put_shaped(late.clone(), vec![3, 1], &[1.0, -0.0, f32::from_bits(0x7fa0_0001)]);
        saved.put(Name::of("widths", (0, Direction::Reverse), Some((Rank(2), true))), &[2u8, 8]);
        saved.put(Name::one("sums"), &[1e300f64]);
        saved.put::<u32>(Name::one("alone"), &[]);
        let mut back = from_bytes(&to_bytes(saved.clone(), &owner(1, 2)).expect("writable")).expect("its own bytes").0;
        let names = |saved: &Saved| saved.clone().into_arrays().map(|(n, (s, _))| (n, s)).collect::<Vec<_>>();
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
            write(saved.clone(), folder.path(), &owner(1, round), last).expect("written");
        }
        let there = |round| path(folder.path(), 1, round).exists();
        assert_eq!([2, 4, 6].map(there), [false, true, true]);
        assert_eq!(read(folder.path(), &owner(1, 6)).expect("read"), saved);
        assert!(read(folder.path(), &owner(1, 2)).is_err());
    }

    #[test]
    fn a_state_is_read_for_its_owner_alone_and_the_error_names_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |owner: &Owner| owner.path(folder.path());
        let mut saved = Saved::default();
        saved.put(Name::one("x"), &[1.0f32]);
        let mine = owner(1, 6);
        write(saved.clone(), folder.path(), &mine, 0).expect("written");
        for (other, words) in [
            (owner(2, 6), "worker 2, round 6, found that of worker 1, round 6"),
            (owner(1, 7), "worker 1, round 7, found that of worker 1, round 6"),
            (Owner { run: "s".to_owned(), ..mine.clone() }, "another run"),
        ] {
            if place(&other) != place(&mine) {
                std::fs::copy(place(&mine), place(&other)).expect("copied");
            }
            let error = read(folder.path(), &other).expect_err(words);
            assert_eq!(error.exit_code(), 5);
            let (error, file) = (error.to_string(), place(&other));
            assert!(error.contains(words) && error.contains(file.to_str().expect("text")), "{error}");
        }
    }

    #[test]
    fn a_state_of_which_one_bit_is_another_is_refused() {
        let mut saved = Saved::default();
        saved.put(Name::of("widths", (0, Direction::Reverse), Some((Rank(2), true))), &[2u8, 8]);
        let sound = to_bytes(saved, &owner(1, 2)).expect("writable");
        for at in 0..sound.len() {
            for bit in 0..8 {
                let mut bytes = sound.clone();
                bytes[at] ^= 1 << bit;
                assert!(from_bytes(&bytes).is_err(), "bit {bit} of byte {at}");
            }
        }
    }
}
