//! Text files, packed or not, line by line, with bounds.

use super::arrays::open_limited;
use crate::error::{GraphError, Result};
use crate::limits::{Limits, read_limited};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Opens a text file; `.gz` is recognised by its content.
pub fn open_text(path: &Path, limits: &Limits) -> Result<Box<dyn BufRead + Send>> {
    let file = Bounded { from: open_limited(path, limits)?, left: limits.file_bytes_max, what: "has too many bytes" };
    let mut file = BufReader::with_capacity(1 << 16, file);
    let start = file.fill_buf().map_err(|e| GraphError::io(path, e))?;
    if !start.starts_with(&[0x1f, 0x8b]) {
        return Ok(Box::new(file));
    }
    let from = flate2::bufread::MultiGzDecoder::new(file);
    let unpacked = Bounded { from, left: limits.unpacked_bytes_max, what: "unpacks to too many bytes" };
    Ok(Box::new(BufReader::with_capacity(1 << 16, unpacked)))
}

/// The first of `names` that is in `folder`, each tried as it is and with `.gz`.
pub fn find_text(folder: &Path, names: &[&str]) -> Option<PathBuf> {
    let tries = names.iter().flat_map(|name| [folder.join(name), folder.join(format!("{name}.gz"))]);
    tries.into_iter().find(|path| path.is_file())
}

/// The whole of a file that is not packed.
pub fn read_bytes(path: &Path, limits: &Limits) -> Result<Vec<u8>> {
    read_limited(path, "bytes of the file", limits.file_bytes_max)
}

/// What is wrong with bytes that are no UTF-8, and what mends it.
pub fn other_encoding(bytes: &[u8]) -> String {
    let is_wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) || bytes.contains(&0);
    let (found, name) = match is_wide {
        true => ("perhaps UTF-16, as Excel's \"Unicode Text\" is", "UTF-16"),
        false => ("perhaps Windows' Latin", "WINDOWS-1252"),
    };
    format!("expected text in UTF-8, found another encoding ({found}): `iconv -f {name} -t UTF-8 FILE > NEW` writes it")
}

/// Fails, instead of ending, when more comes out than is allowed.
struct Bounded<R> {
    from: R,
    left: u64,
    what: &'static str,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| io::Error::other(self.what))?;
        Ok(count)
    }
}

/// The lines of a text file.
pub struct Lines {
    path: PathBuf,
    from: Box<dyn BufRead>,
    line: Vec<u8>,
    number: u64,
    bytes_max: u64,
}

impl Lines {
    /// Opens the file.
    pub fn open(path: &Path, limits: &Limits) -> Result<Lines> {
        let from = open_text(path, limits)?;
        let bytes = std::fs::metadata(path).map_err(|e| GraphError::io(path, e))?.len();
        Ok(Lines { path: path.to_owned(), from, line: Vec::new(), number: 0, bytes_max: limits.line_max(bytes) })
    }

    /// The next line, without white space around it; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<&str>> {
        self.line.clear();
        self.number += 1;
        let mut bounded = self.from.by_ref().take(self.bytes_max.saturating_add(1));
        let count = bounded.read_until(b'\n', &mut self.line).map_err(|e| self.error(e.to_string()))?;
        if count as u64 > self.bytes_max {
            return Err(GraphError::too_large(&self.path, format!("line {}", self.number), self.bytes_max));
        }
        if count == 0 {
            return Ok(None);
        }
        if std::str::from_utf8(&self.line).is_err() {
            return Err(self.error(other_encoding(&self.line)));
        }
        Ok(Some(self.line()))
    }

    /// Whether the line that was read last begins with a tab: its first field may be empty.
    pub fn starts_with_tab(&self) -> bool {
        self.line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&self.line).starts_with(b"\t")
    }

    /// The line that was read last; empty before the first and after the last.
    pub fn line(&self) -> &str {
        std::str::from_utf8(&self.line).map_or("", |line| line.trim_start_matches('\u{feff}').trim())
    }

    /// An error about the line that was read last.
    pub fn error(&self, expected: impl Into<String>) -> GraphError {
        GraphError::format(&self.path, format!("line {}", self.number), expected)
    }
}
