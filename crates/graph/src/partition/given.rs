//! An assignment that the user has.

use std::path::{Path, PathBuf};

use crate::error::{GraphError, Result};
use crate::limits::{Limits, read_limited};
use crate::partition::{PartitionInput, Partitioner, PartitionerKind, Reads, RowsInput};
use crate::read::arrays::read_npy;

pub(super) static KIND: PartitionerKind = PartitionerKind {
    name: "given",
    options: &["file", "column"],
    reads: |_| Reads::Nodes,
    build: |options| {
        let file = options.file.clone();
        let file = file.ok_or_else(|| GraphError::invalid("the partitioner \"given\" needs a file"))?;
        Ok(Box::new(Given { file }))
    },
};

/// Reads the assignment from a text file with one part number a line, line `i` for node `i` (what METIS writes), or
/// from a `.npy` file with one integer a node.
struct Given {
    file: PathBuf,
}

/// A part number in text: ten digits, carriage return, new line and room for a few spaces.
const BYTES_PER_LINE_MAX: u64 = 24;

impl Partitioner for Given {
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
        self.read(input.graph.nodes(), input.parts)
    }

    fn assign_rows(&self, input: &RowsInput) -> Result<Vec<u32>> {
        self.read(input.rows.nodes(), input.parts)
    }

    /// The numbers as they are read, and the parts.
    fn memory(&self, nodes: u64, _: u32) -> u64 {
        (BYTES_PER_LINE_MAX + 12) * nodes
    }

    fn is_given(&self) -> bool {
        true
    }
}

impl Given {
    fn read(&self, nodes: usize, parts: u32) -> Result<Vec<u32>> {
        let path = self.file.as_path();
        let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
        // Lines are counted from 1, elements from 0, as editors and NumPy do.
        let (numbers, unit, first) = match is_npy {
            true => (read_npy(path, &Limits::default(), nodes as u64)?.values, "element", 0),
            false => (read_lines(path, nodes)?, "line", 1),
        };
        if numbers.len() != nodes {
            let what = format!("expected {nodes}, one a node, found {}", numbers.len());
            return Err(GraphError::format(path, format!("{unit}s"), what));
        }
        let part = |(row, number): (usize, i64)| {
            u32::try_from(number).ok().filter(|&part| part < parts).ok_or_else(|| {
                let what = format!("expected a part number below {parts}, found {number}");
                GraphError::format(path, format!("{unit} {}", row + first), what)
            })
        };
        numbers.into_iter().enumerate().map(part).collect()
    }
}

fn read_lines(path: &Path, nodes: usize) -> Result<Vec<i64>> {
    let limit = (nodes as u64 + 1) * BYTES_PER_LINE_MAX;
    let bytes = read_limited(path, &format!("bytes for {nodes} nodes"), limit)?;
    let text = bytes.trim_ascii_end();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let number = |(row, line): (usize, &[u8])| {
        let line = String::from_utf8_lossy(line.trim_ascii());
        line.parse().map_err(|_| {
            let shown: String = line.chars().take(40).collect();
            GraphError::format(path, format!("line {}", row + 1), format!("expected a part number, found {shown:?}"))
        })
    };
    text.split(|&byte| byte == b'\n').enumerate().map(number).collect()
}

#[cfg(test)]
mod tests {
    use crate::error::Result;
    use crate::graph::Graph;
    use crate::partition::{PartitionInput, PartitionOptions};

    /// What the assignment of four nodes to three parts in the file `name` with these `bytes` is read as.
    fn read(name: &str, bytes: &[u8]) -> Result<Vec<u32>> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let graph = Graph::new(vec![0; 5], Vec::new());
        let options = PartitionOptions { file: Some(file), ..PartitionOptions::default() };
        super::KIND.build(&options)?.assign(&PartitionInput { graph: &graph, roles: None, parts: 3, seed: 0 })
    }

    fn npy(values: &[i16]) -> Vec<u8> {
        let header = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': ({},), }}", values.len());
        let header = format!("{header:117}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    #[test]
    fn text_and_arrays_read_back() {
        assert_eq!(read("a.txt", b"2\n0\n1\n2\n").unwrap(), [2, 0, 1, 2]);
        assert_eq!(read("a.part.3", b"2\r\n 0\r\n1\r\n2").unwrap(), [2, 0, 1, 2]);
        assert_eq!(read("a.npy", &npy(&[2, 0, 1, 2])).unwrap(), [2, 0, 1, 2]);
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        let refused = |name: &str, bytes: &[u8], place: &str| {
            let message = read(name, bytes).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(place), "{message}");
        };
        refused("a.txt", b"0\n1\n3\n0\n", "line 3: expected a part number below 3, found 3");
        refused("a.txt", b"0\n\n1\n0\n", "line 2: expected a part number, found \"\"");
        refused("a.txt", b"0\n1\n-1\n0\n", "line 3");
        refused("a.txt", b"0\n1\n\xff\n0\n", "line 3");
        refused("a.txt", b"0\n1\n0\n", "expected 4, one a node, found 3");
        refused("a.txt", &[b' '; 1000], "limit");
        refused("a.npy", &npy(&[0, 1, 5, 0]), "element 2");
        refused("a.npy", &npy(&[0, 1]), "found 2");
        refused("a.npy", &npy(&[0, 1, 2, 0])[..100], "a.npy");
        let message = super::KIND.build(&PartitionOptions::default()).err().unwrap().to_string();
        assert_eq!(message, "the partitioner \"given\" needs a file");
    }
}
