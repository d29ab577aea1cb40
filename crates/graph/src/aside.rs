//! Files that are never seen half-written, and files that one process at a time holds.
//!
//! What is being written has a fixed name beside its final one ([`part_of`]), so that what a killed process leaves
//! behind is taken up by the next one that writes the same file, and does not pile up. Whoever writes it holds it.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A file that no other process holds; the right ends with the value, however its process ends.
#[derive(Debug)]
pub struct Held {
    /// The file, open for reading and writing.
    pub file: File,
    path: PathBuf,
}

impl Held {
    /// Opens the file, which is made if it is not there, and holds it. `None` if somebody else does. File systems that
    /// know no locks grant them all.
    ///
    /// # Errors
    ///
    /// If the system refuses, or a link is in the file's place.
    pub fn take(path: &Path) -> io::Result<Option<Held>> {
        loop {
            let file = open_no_link(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
            if std::fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
                return Err(io::Error::new(ErrorKind::AlreadyExists, "expected a file, found something else"));
            }
            // Whoever held it before may have renamed or removed it while we waited for nobody.
            let held = Held { file, path: path.to_owned() };
            if held.is_in_place() {
                return Ok(Some(held));
            }
        }
    }

    /// Whether the file is still where it was opened, and not another one by its name.
    pub fn is_in_place(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|found| match self.file.metadata() {
            Ok(own) => is_same(&own, &found),
            Err(_) => false,
        })
    }

    /// Says that the file, or a folder above it, was renamed.
    pub fn moved_to(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Removes the file and ends the right to it.
    pub fn remove(self) {
        if self.is_in_place() {
            // Empty or superseded either way.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens a file, which is made if it is not there; a link in its place is refused, and nothing made where it leads.
fn open_no_link(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    }
    options.open(path).map_err(|error| match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            io::Error::new(ErrorKind::AlreadyExists, format!("expected a file at {}, found a link", path.display()))
        }
        _ => error,
    })
}

#[cfg(unix)]
fn is_same(a: &std::fs::Metadata, b: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_same(_: &std::fs::Metadata, _: &std::fs::Metadata) -> bool {
    true
}

/// The name under which a file is written before it gets its own: `.NAME.part`.
pub fn part_of(path: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(PART);
    path.with_file_name(name)
}

/// The end of every name that [`part_of`] gives.
const PART: &str = ".part";

/// Removes what processes that were killed while they wrote files of names that are `ours` in this folder have left
/// there. Nobody else may be writing them.
///
/// # Errors
///
/// If the system refuses.
pub fn sweep(folder: &Path, ours: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let of = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(PART));
        if of.is_some_and(&ours) && entry.file_type()?.is_file() {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Has a file written under another name beside it and renames it once the disk has it, so that it is never seen
/// half-written. It gets the rights of the file that it replaces, or those of any new one. A device or a pipe is
/// written to as it is: a file in its place would be seen by every program that uses it.
///
/// # Errors
///
/// If `write` or the system refuses; what was at `path` is then as it was.
pub fn write_aside<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let found = std::fs::metadata(path).ok();
    if found.as_ref().is_some_and(|found| !found.is_file() && !found.is_dir()) {
        return write(&mut File::options().write(true).open(path)?);
    }
    let busy = || io::Error::new(ErrorKind::ResourceBusy, "another process is writing it");
    let mut part = Held::take(&part_of(path))?.ok_or_else(busy)?;
    part.file.set_len(0)?;
    if let Some(before) = found.filter(|found| found.is_file()) {
        part.file.set_permissions(before.permissions())?;
    }
    let written = write(&mut part.file).and_then(|()| {
        part.file.sync_all()?;
        std::fs::rename(&part.path, path)?;
        Ok(sync_folder(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))?)
    });
    if written.is_err() {
        part.remove();
    }
    written
}

/// Gives a folder the rights of the one whose place it takes, and takes from others what they could not read of this
/// `file` in there: what stood in closed files is not opened by being written anew.
///
/// # Errors
///
/// If the system refuses.
pub fn keep_rights(folder: &Path, before: &Path, file: &str) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mut mode = std::fs::metadata(before)?.permissions().mode();
        let of_file = std::fs::metadata(before.join(file)).map_or(mode, |found| found.permissions().mode());
        for others in [0o070, 0o007] {
            if of_file & others & 0o444 == 0 {
                mode &= !others;
            }
        }
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = (folder, before, file);
    Ok(())
}

/// Waits until the disk has the folder's names as well: otherwise a power cut could undo the renaming.
fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_seen_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_aside::<io::Error>(&path, |file| file.write_all(b"long and whole")).unwrap();
        // What a killed process has left is longer than what is written now.
        std::fs::write(part_of(&path), "left behind by somebody who was killed").unwrap();
        let refused = write_aside::<io::Error>(&path, |file| {
            file.write_all(b"half")?;
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "long and whole");
            Err(io::Error::other("no more"))
        });
        assert_eq!(refused.unwrap_err().to_string(), "no more");
        assert_eq!(
            (names(folder.path()), std::fs::read(&path).unwrap()),
            (vec!["a.txt".to_owned()], b"long and whole".to_vec())
        );
        std::fs::write(part_of(&path), "left behind by somebody who was killed").unwrap();
        write_aside::<io::Error>(&path, |file| file.write_all(b"short")).unwrap();
        assert_eq!(
            (names(folder.path()), std::fs::read(&path).unwrap()),
            (vec!["a.txt".to_owned()], b"short".to_vec())
        );
    }

    #[test]
    fn two_who_write_one_file_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write_aside::<io::Error>(&path, |file| {
            let second = write_aside::<io::Error>(&path, |file| file.write_all(b"second"));
            assert_eq!(second.unwrap_err().kind(), ErrorKind::ResourceBusy);
            file.write_all(b"first")
        })
        .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
    }

    #[test]
    fn what_is_held_is_held_once_and_knows_whether_it_is_still_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = Held::take(&path).unwrap().unwrap();
        assert!(Held::take(&path).unwrap().is_none() && held.is_in_place());
        std::fs::remove_file(&path).unwrap();
        assert!(!held.is_in_place());
        let other = Held::take(&path).unwrap().unwrap();
        assert!(!held.is_in_place());
        held.remove();
        assert!(other.is_in_place());
        drop(other);
        Held::take(&path).unwrap().unwrap().remove();
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_device_stays_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        write_aside::<io::Error>(&path, |file| file.write_all(b"gone")).unwrap();
        assert_eq!(std::fs::read_link(&path).unwrap(), Path::new("/dev/null"));
        assert_eq!((names(folder.path()), std::fs::read(&path).unwrap()), (vec!["a.txt".to_owned()], Vec::new()));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_a_part_leads_to_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, precious) = (folder.path().join("a.txt"), folder.path().join("precious"));
        std::fs::write(&precious, "precious").unwrap();
        std::os::unix::fs::symlink(&precious, part_of(&path)).unwrap();
        assert!(write_aside::<io::Error>(&path, |file| file.write_all(b"x")).is_err());
        assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
        // Nor is a file made where a link leads to none.
        let (dangling, target) = (folder.path().join("b.txt"), folder.path().join("target"));
        std::os::unix::fs::symlink(&target, part_of(&dangling)).unwrap();
        let error = write_aside::<io::Error>(&dangling, |file| file.write_all(b"x")).unwrap_err();
        assert!(error.to_string().contains("found a link") && !target.exists(), "{error}");
    }

    #[test]
    fn what_killed_processes_left_is_swept_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".a.json.part", ".film.mkv.part", "b.part", ".c", "d.json"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        sweep(folder.path(), |name| name.ends_with(".json")).unwrap();
        assert_eq!(names(folder.path()), [".c", ".film.mkv.part", "b.part", "d.json"]);
    }
}
