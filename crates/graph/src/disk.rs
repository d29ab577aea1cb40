//! How much room there is for files.

use std::path::Path;

/// Refuses to write `bytes` into `folder` where its file system has not got them; the text says how many are needed and
/// how many there are. Where the system does not say, nothing can be refused beforehand.
pub(crate) fn afford(bytes: u64, folder: &Path) -> Result<(), String> {
    let mega = |bytes: u64| format!("{} MB", bytes.div_ceil(1_000_000));
    match free(folder) {
        Some(there) if bytes > there => {
            Err(format!("needs {} on the disk, and there are {}", mega(bytes), mega(there)))
        }
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    #[test]
    #[cfg(unix)]
    fn what_no_disk_has_is_refused_with_both_figures() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(super::afford(1, folder.path()), Ok(()));
        let error = super::afford(u64::MAX, folder.path()).unwrap_err();
        assert!(error.starts_with("needs 18446744073710 MB on the disk, and there are "), "{error}");
    }
}
