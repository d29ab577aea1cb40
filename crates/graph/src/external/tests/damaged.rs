//! Whatever becomes of the files of an unfinished cut, the parts are those of one that was never ended; and nobody
//! else's folder is touched.

use std::path::Path;

use super::{Job, cut, files, in_memory, job, spec};
use crate::limits::Limits;
use crate::partition::PartitionOptions;
use crate::read::passes::ArrayFolder;
use crate::synth::{RmatSpec, rmat, rmat_arrays};

fn write_all(dir: &Path, all: &std::collections::BTreeMap<String, Vec<u8>>) {
    let _ = std::fs::remove_dir_all(dir);
    for (name, bytes) in all {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

/// Runs the cut until it says something that begins so, and ends it there.
fn ended_at(job: &Job, at: &'static str) {
    let tell = |text: &str| assert!(!text.starts_with(at), "ended");
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| cut(&Job { tell: &tell, ..*job }).is_ok()));
    std::panic::set_hook(hook);
    assert!(ended.is_err(), "{at}");
}

#[test]
fn whatever_file_of_an_unfinished_cut_is_damaged_it_ends_with_the_same_bytes() {
    let place = tempfile::tempdir().unwrap();
    let (dir, out, left) = (place.path().join("graph"), place.path().join("parts"), place.path().join(".parts.cut"));
    let small = RmatSpec { scale: 6, ..spec(true) };
    rmat_arrays(&small, &dir, &|_| ()).unwrap();
    let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
    let options = PartitionOptions { rule: "ldg".to_owned(), passes: 2, ..PartitionOptions::default() };
    let expected = in_memory(&rmat(&small).unwrap(), ("streaming", &options), 3);
    let job = job(&data, ("streaming", &options), 3, &out, &|_| ());
    for at in ["sorting bucket 1", "pass 2 of 2", "dealing features", "writing part 2"] {
        ended_at(&job, at);
        let unfinished = files(&left);
        for (name, bytes) in unfinished.iter().filter(|(name, _)| *name != "lock") {
            let mut flipped = bytes.clone();
            let middle = bytes.len() / 2;
            flipped[middle] ^= 1;
            let damages = [None, Some(&bytes[..middle]), Some(&flipped[..])];
            for damaged in damages {
                write_all(&left, &unfinished);
                match damaged {
                    Some(bytes) => std::fs::write(left.join(name), bytes).unwrap(),
                    None => std::fs::remove_file(left.join(name)).unwrap(),
                }
                cut(&job).unwrap_or_else(|error| panic!("{at}, {name}: {error}"));
                assert!(files(&out) == expected && !left.exists(), "{at}, {name}");
                std::fs::remove_dir_all(&out).unwrap();
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_folder_of_work_that_is_somebody_elses_is_refused_and_left_as_it_is() {
    let place = tempfile::tempdir().unwrap();
    let (dir, out, victim) = (place.path().join("graph"), place.path().join("parts"), place.path().join("victim"));
    rmat_arrays(&spec(true), &dir, &|_| ()).unwrap();
    let data = ArrayFolder::open(&dir, &Limits::default()).unwrap();
    let options = PartitionOptions::default();
    let refused = |victim: &Path, expected: &str| {
        let error = cut(&job(&data, ("random", &options), 3, &out, &|_| ())).err().expect("refused").to_string();
        assert!(error.contains(expected) && !out.exists(), "{error}");
        assert_eq!(std::fs::read_to_string(victim.join("thesis.txt")).unwrap(), "important");
        assert_eq!(std::fs::read_dir(victim).unwrap().count(), 1);
    };
    std::fs::create_dir(&victim).unwrap();
    std::fs::write(victim.join("thesis.txt"), "important").unwrap();
    let work = place.path().join(".parts.cut");
    std::os::unix::fs::symlink(&victim, &work).unwrap();
    refused(&victim, "something else has it");
    std::fs::remove_file(&work).unwrap();
    std::fs::rename(&victim, &work).unwrap();
    refused(&work, "\"thesis.txt\", which is not of this program's work");
}
