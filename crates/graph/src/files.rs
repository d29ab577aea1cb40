//! Files that stay: whole under their name, or not there.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::error::{GraphError, Result};

/// The folder that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Waits until the disk has the names in `folder`: without that, a rename may be undone by a power cut.
#[cfg(unix)]
pub(crate) fn keep_names(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
pub(crate) fn keep_names(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes a folder for work under a fixed name, or takes the one that is there if it is a folder, no link to one, in
/// which everything is called as `ours` is: anything else is somebody's, and will not be cleared away.
pub(crate) fn own_folder(folder: &Path, ours: &dyn Fn(&str) -> bool) -> Result<()> {
    let refused = |source| GraphError::io(folder, source);
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.map_err(refused),
    }
    if !fs::symlink_metadata(folder).map_err(refused)?.is_dir() {
        let what = "this name is needed for a folder of work, and something else has it: move it away";
        return Err(GraphError::format(folder, "folder", what));
    }
    for entry in fs::read_dir(folder).map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        if !name.to_str().is_some_and(ours) {
            let what = format!("it holds {name:?}, which is not of this program's work: move the folder away");
            return Err(GraphError::format(folder, "folder", what));
        }
    }
    Ok(())
}
