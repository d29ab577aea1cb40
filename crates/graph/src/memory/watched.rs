//! Files that arrays are maps of, and whether any of them is another than when it was opened.

use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::places;

/// A file under a map.
struct Watched {
    /// The place of the map, and where its array begins.
    place: (usize, usize),
    file: File,
    path: PathBuf,
    opened: Metadata,
}

impl Watched {
    /// Whether the file itself has changed: one that was put in its place has not.
    fn has_changed(&self) -> bool {
        let same = |now: Metadata| now.len() == self.opened.len() && now.modified().ok() == self.opened.modified().ok();
        !self.file.metadata().is_ok_and(same)
    }
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

/// Notes the file of a map; of what it was like when it was `opened`.
pub(super) fn watch(place: (usize, usize), file: File, path: &Path, opened: Metadata) {
    let mut all = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    // A place that is taken again is no longer that of the array before.
    all.retain(|other| other.place.0 != place.0 && places::is_at(other.place));
    all.push(Watched { place, file, path: path.to_owned(), opened });
}

/// The first file, of those that arrays are maps of, that has been written to or cut since it was opened. What is read
/// of such an array from then on is not what was checked. Costs a call of the system for each file.
pub fn changed_file() -> Option<PathBuf> {
    if !places::are_there() {
        return None;
    }
    let all = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    all.iter().find(|file| places::is_at(file.place) && file.has_changed()).map(|file| file.path.clone())
}
