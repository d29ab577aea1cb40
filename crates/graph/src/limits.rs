//! How much a file may ask for.

use crate::error::{GraphError, Result};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// No graph is cut into more parts.
pub const PARTS_MAX: u32 = 4096;

/// Bounds that every reader keeps.
///
/// They are one fence of three. Another holds whatever the limits: a count in a header is never believed before it has
/// been compared with the bytes that are there, so memory stays within a multiple of the (unpacked) file. And what that
/// allows is not asked for where the memory is not there ([`crate::memory`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Nodes of a graph; never more than 32-bit ids can name.
    pub nodes_max: u64,
    /// Edges of a graph, before duplicates are merged and other directions added.
    pub edges_max: u64,
    /// Classes of labels.
    pub classes_max: u64,
    /// Columns of sparse features; nothing in a file is as large as their number says.
    pub columns_max: u64,
    /// Stored feature values (rows × columns if dense, non-zeros if sparse), and likewise labels and masks.
    pub features_values_max: u64,
    /// Values of a dense matrix made from a sparse one.
    pub dense_values_max: u64,
    /// Bytes of a file as it lies on the disk.
    pub file_bytes_max: u64,
    /// Bytes of a file or archive member after it was unpacked.
    pub unpacked_bytes_max: u64,
    /// Bytes of one line of a text file.
    pub line_bytes_max: u64,
    /// Bytes of one node id or other piece of text.
    pub string_bytes_max: u64,
}

impl Default for Limits {
    /// Room for the largest graphs that 32-bit node ids can hold, with billions of edges.
    fn default() -> Self {
        Limits {
            nodes_max: u64::from(u32::MAX),
            edges_max: 1 << 35,
            classes_max: 1 << 20,
            columns_max: 1 << 24,
            features_values_max: 1 << 37,
            dense_values_max: 1 << 31,
            file_bytes_max: 1 << 40,
            unpacked_bytes_max: 1 << 40,
            line_bytes_max: 1 << 30,
            string_bytes_max: 1 << 16,
        }
    }
}

/// So many nodes or columns need not be vouched for.
const FREE: u64 = 1 << 20;

/// So many more nodes for each byte, or columns for each stored value, may be there without anything about them.
const EMPTY_MAX: u64 = 64;

/// So long a line needs no file of its own size.
const LINE_FREE: u64 = 64 << 20;

impl Limits {
    /// Accepts a count of `nodes` in a file of `bytes` bytes, of which `rows` have a row of something.
    pub(crate) fn accept_nodes(
        &self,
        path: &Path,
        place: &str,
        nodes: u64,
        (rows, bytes): (u64, u64),
    ) -> Result<usize> {
        if nodes > self.nodes_max {
            return Err(GraphError::too_large(path, format!("{place}: {nodes} nodes"), self.nodes_max));
        }
        if nodes > rows.saturating_add(FREE).saturating_add(bytes.saturating_mul(EMPTY_MAX)) {
            let expected = format!("{nodes} nodes, but {bytes} bytes of file and {rows} rows of anything for them");
            return Err(GraphError::format(path, place, expected));
        }
        Ok(nodes as usize)
    }

    /// The number of columns of sparse features with so many stored values, if it is within the limits.
    pub(crate) fn accept_columns(&self, columns: i64, stored: usize) -> std::result::Result<u32, String> {
        let most = self.columns_max.min(FREE + EMPTY_MAX.saturating_mul(stored as u64));
        let accepted = u32::try_from(columns).ok().filter(|&columns| u64::from(columns) <= most);
        accepted.ok_or_else(|| format!("{columns} columns, expected at most {most} with {stored} stored values"))
    }

    /// The longest line of a text file of so many bytes on the disk.
    pub(crate) fn line_max(&self, bytes: u64) -> u64 {
        self.line_bytes_max.min(bytes.saturating_mul(EMPTY_MAX).max(LINE_FREE))
    }
}

/// Opens a file and nothing else: a folder, a pipe, or a device without end is an error, and is not waited for.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    // Asked before opening, because opening a pipe waits for whoever writes to it.
    let kind = std::fs::metadata(path)?.file_type();
    match kind.is_file() {
        true => File::open(path),
        false if kind.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "expected a file, found a folder")),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a file, found a pipe or a device")),
    }
}

/// Reads the whole of the file `path` if it has at most `bytes_max` bytes.
///
/// The bytes are counted as they come, so a file that grows meanwhile is held to the limit too, and no more than
/// `bytes_max` bytes are ever in memory. Pipes and devices are refused. The system's errors and this function's own are
/// of one type, so that a caller can wrap all of them in an error of its own:
///
/// ```
/// use laconic_graph::limits::read_file;
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(file.path(), "12345")?;
/// assert_eq!(read_file(file.path(), 5)?, b"12345");
/// let refused = read_file(file.path(), 4).unwrap_err();
/// assert_eq!(refused.kind(), std::io::ErrorKind::FileTooLarge);
/// assert_eq!(refused.to_string(), "more than the limit of 4 bytes");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Of kind [`io::ErrorKind::FileTooLarge`] if there are more bytes, [`io::ErrorKind::IsADirectory`] or
/// [`io::ErrorKind::InvalidInput`] if this is no file, and otherwise whatever the system says about
/// opening and reading.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_large =
        || Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than the limit of {bytes_max} bytes")));
    let file = open_file(path)?;
    let claimed = file.metadata()?.len();
    if claimed > bytes_max {
        return too_large();
    }
    // One byte of room more than there should be, so that the end is found without growing.
    let mut bytes = Vec::with_capacity(claimed as usize + 1);
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { too_large() } else { Ok(bytes) }
}

/// [`read_file`] with the errors of this crate; `place` says what has so few bytes.
pub(crate) fn read_limited(path: &Path, place: &str, bytes_max: u64) -> Result<Vec<u8>> {
    read_file(path, bytes_max).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => GraphError::too_large(path, place, bytes_max),
        _ => not_opened(path, source),
    })
}

/// The error of this crate for a file that [`open_file`] refused.
pub(crate) fn not_opened(path: &Path, source: io::Error) -> GraphError {
    match source.kind() {
        io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput => {
            GraphError::format(path, "input", source.to_string())
        }
        _ => GraphError::io(path, source),
    }
}

#[cfg(test)]
mod tests {
    use super::{read_file, read_limited};
    use crate::error::GraphError;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_not_beyond() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, [7; 10]).unwrap();
        assert_eq!(read_limited(&path, "bytes", 10).unwrap(), [7; 10]);
        assert!(matches!(read_limited(&path, "bytes", 9), Err(GraphError::TooLarge { limit: 9, .. })));
        assert!(matches!(read_limited(dir.path(), "bytes", 9000), Err(GraphError::Format { .. })));
        assert!(matches!(read_limited(&dir.path().join("b"), "bytes", 9), Err(GraphError::Io { .. })));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_device_and_a_pipe_are_refused_and_not_waited_for() {
        let error = read_file("/dev/zero".as_ref(), 1 << 16).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.csv");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let error = crate::read::read(&pipe, &Default::default()).unwrap_err().to_string();
        assert!(error.ends_with("pipe.csv: input: expected a file, found a pipe or a device"), "{error}");
    }
}
