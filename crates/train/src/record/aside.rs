//! Writing files so that they are never seen half-written, and reading them within limits.

use std::io::{BufWriter, Read, Write};
use std::path::Path;

use crate::error::{Result, TrainError};

/// Writes a file under another name beside it and renames it, so that it is never seen half-written.
///
/// # Errors
/// If the operating system refuses.
pub fn write_aside(path: &Path, bytes: &[u8]) -> Result<()> {
    let io = |source| TrainError::io(path, source);
    write_aside_with(path, |file| file.write_all(bytes).map_err(io))
}

/// As [`write_aside`], of what `fill` writes piece by piece.
///
/// # Errors
/// If `fill` fails, or the operating system refuses.
pub fn write_aside_with(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let io = |source| TrainError::io(path, source);
    let mut file = BufWriter::new(tempfile::NamedTempFile::new_in(folder).map_err(io)?);
    fill(&mut file)?;
    let finish = || {
        let file = file.into_inner().map_err(|error| error.into_error())?;
        make_readable(file.as_file())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        sync_folder(folder)
    };
    finish().map_err(io)
}

/// Waits until the disk has the folder's names as well: otherwise a power cut could undo the renaming.
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    #[cfg(unix)]
    std::fs::File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// Temporary files are private; what they become is not.
fn make_readable(file: &std::fs::File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

/// The bytes of a file of at most `most` bytes; what is read counts, not what the file system says.
///
/// # Errors
/// If the file cannot be read or is larger.
pub fn read_within(path: &Path, most: u64) -> Result<Vec<u8>> {
    let io = |source| TrainError::io(path, source);
    let mut bytes = Vec::new();
    std::fs::File::open(path).map_err(io)?.take(most + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > most {
        return Err(TrainError::file(path, format!("expected at most {most} bytes, found more")));
    }
    Ok(bytes)
}
