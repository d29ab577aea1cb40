//! Files that stay: whole under their name, or not there.

use std::fs::File;
use std::io;
use std::path::Path;

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
