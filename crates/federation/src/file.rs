//! Small files, read whole and written whole.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::error::{FederationError, Result};

/// The most bytes that a file may have, logs excepted.
pub const FILE_MAX: usize = 64 * 1024;

/// Reads a text of at most [`FILE_MAX`] bytes.
pub(crate) fn read(path: &Path) -> Result<String> {
    let file = File::open(path).map_err(FederationError::io(path, "read"))?;
    read_open(path, &file)
}

/// Reads what is open already.
pub(crate) fn read_open(path: &Path, file: &File) -> Result<String> {
    let mut bytes = Vec::new();
    file.take(FILE_MAX as u64 + 1).read_to_end(&mut bytes).map_err(FederationError::io(path, "read"))?;
    if bytes.len() > FILE_MAX {
        return Err(FederationError::TooLarge { path: path.to_owned(), limit: FILE_MAX });
    }
    let not_text = |e: std::string::FromUtf8Error| {
        let at = e.utf8_error().valid_up_to();
        FederationError::text(&path.display().to_string(), format!("byte {}", at + 1), "not UTF-8 text")
    };
    String::from_utf8(bytes).map_err(not_text)
}

/// Writes under another name and renames, so that nobody ever reads half a file.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let new = Path::new(&name);
    let written = File::create(new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(new, path)).map_err(FederationError::io(path, "write"))
}

/// Creates a file that is not there yet; with `private`, for its owner's eyes only where the system knows this.
pub(crate) fn create(path: &Path, what: &'static str, private: bool) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(unix))]
    let _ = private;
    options.open(path).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => FederationError::Exists { path: path.to_owned(), what },
        _ => FederationError::io(path, "create")(e),
    })
}

/// Parses TOML; what is wrong is said with its line.
pub(crate) fn toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T> {
    check_length(file, text)?;
    toml::from_str(text).map_err(|e| {
        let place = e.span().map_or("the file".to_owned(), |span| format!("line {}", line_of(text, span.start)));
        FederationError::text(file, place, e.message())
    })
}

/// An error where a text is longer than a file may be.
pub(crate) fn check_length(file: &str, text: &str) -> Result<()> {
    match text.len() {
        length if length > FILE_MAX => {
            let what = format!("{length} bytes; at most {FILE_MAX} are expected");
            Err(FederationError::text(file, "the whole text", what))
        }
        _ => Ok(()),
    }
}

/// The line, counted from 1, in which a byte stands.
pub(crate) fn line_of(text: &str, byte: usize) -> usize {
    1 + text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
}
