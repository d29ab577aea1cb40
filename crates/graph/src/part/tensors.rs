//! The safetensors files of a part folder: written in one pass with their checksum, read only after it was verified.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use bytemuck::Pod;
use laconic_array::Array;
use memmap2::Mmap;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use crate::error::{GraphError, Result};
use crate::memory;
use crate::part::mapped;
use crate::part::meta::FileEntry;

#[cfg(target_endian = "big")]
compile_error!("safetensors are little-endian, and arrays are written and read as they lie in memory");

/// A type that tensors are made of.
pub(super) trait Element: Pod + Default + Send + Sync {
    /// Its name in safetensors.
    const DTYPE: Dtype;
}

impl Element for u8 {
    const DTYPE: Dtype = Dtype::U8;
}
impl Element for u16 {
    const DTYPE: Dtype = Dtype::U16;
}
impl Element for u32 {
    const DTYPE: Dtype = Dtype::U32;
}
impl Element for i32 {
    const DTYPE: Dtype = Dtype::I32;
}
impl Element for f32 {
    const DTYPE: Dtype = Dtype::F32;
}
impl Element for u64 {
    const DTYPE: Dtype = Dtype::U64;
}
impl Element for i64 {
    const DTYPE: Dtype = Dtype::I64;
}

/// A tensor to be written.
pub(super) struct Tensor<'a> {
    name: &'static str,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: &'a [u8],
}

impl<'a> Tensor<'a> {
    /// A vector of any length.
    pub(super) fn vector<T: Element>(name: &'static str, values: &'a [T]) -> Self {
        Tensor { name, dtype: T::DTYPE, shape: vec![values.len()], bytes: bytemuck::cast_slice(values) }
    }

    /// A row-major matrix.
    pub(super) fn matrix<T: Element>(name: &'static str, rows: usize, columns: usize, values: &'a [T]) -> Self {
        assert_eq!(Some(values.len()), rows.checked_mul(columns), "{name}: {rows} rows of {columns} columns");
        Tensor { name, dtype: T::DTYPE, shape: vec![rows, columns], bytes: bytemuck::cast_slice(values) }
    }
}

/// Writes `tensors` to the new file `path` and returns its size and checksum. The crate's own writer would give the
/// file the rights of a temporary one and would not compute the checksum on the way.
pub(super) fn write(path: &Path, mut tensors: Vec<Tensor>) -> Result<FileEntry> {
    // The widest type first, so that every tensor is aligned in the file.
    tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.dtype.bitsize()));
    let mut end = 0;
    let infos = tensors.iter().map(|tensor| {
        let start = end;
        end += tensor.bytes.len();
        let info = TensorInfo { dtype: tensor.dtype, shape: tensor.shape.clone(), data_offsets: (start, end) };
        (tensor.name.to_owned(), info)
    });
    let metadata = Metadata::new(None, infos.collect()).expect("consecutive tensors make a valid header");
    let mut header = serde_json::to_vec(&metadata).expect("a header is plain data");
    header.resize(header.len().next_multiple_of(8), b' ');

    let mut hash = blake3::Hasher::new();
    let mut bytes = 0;
    let mut written = || {
        let mut file = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
        let length = (header.len() as u64).to_le_bytes();
        for piece in [&length[..], &header].into_iter().chain(tensors.iter().map(|tensor| tensor.bytes)) {
            hash.update(piece);
            bytes += piece.len() as u64;
            file.write_all(piece)?;
        }
        file.into_inner().map_err(|error| error.into_error())?.sync_all()
    };
    written().map_err(|source| GraphError::io(path, source))?;
    Ok(FileEntry { bytes, blake3: hash.finalize().to_hex().to_string() })
}

/// A file whose size and checksum are those expected. What is taken from it is at most as large as the file.
pub(super) struct Tensors {
    path: PathBuf,
    file: File,
    /// What the file was like before it was read.
    opened: std::fs::Metadata,
    map: Mmap,
    data: usize,
    metadata: Metadata,
}

impl Tensors {
    /// Opens `path` and verifies its size and checksum.
    pub(super) fn open(path: &Path, expected: &FileEntry) -> Result<Self> {
        let (file, opened, map) = mapped::map(path)?;
        if map.len() as u64 != expected.bytes {
            let what = format!("expected {} bytes, found {}", expected.bytes, map.len());
            return Err(GraphError::format(path, "size", what));
        }
        let found = blake3::hash(&map).to_hex();
        if found.as_str() != expected.blake3 {
            let what = format!("expected {}, found {found}: the file has changed", expected.blake3);
            return Err(GraphError::format(path, "blake3 checksum", what));
        }
        let (metadata, data) = header(&map).map_err(|what| GraphError::format(path, "header", what))?;
        Ok(Tensors { path: path.to_owned(), file, opened, map, data, metadata })
    }

    /// Whether there is a tensor of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.metadata.info(name).is_some()
    }

    /// The type of a tensor.
    pub(super) fn dtype(&self, name: &str) -> Option<Dtype> {
        self.metadata.info(name).map(|info| info.dtype)
    }

    /// The values and the length of a vector.
    pub(super) fn vector<T: Element>(&self, name: &str) -> Result<Vec<T>> {
        match self.shaped::<T>(name)? {
            (shape, bytes) if shape.len() == 1 => {
                let mut values = laconic_array::with_capacity(bytes.len() / size_of::<T>());
                values.extend(each::<T>(bytes));
                Ok(values)
            }
            (shape, _) => Err(self.bad(name, format!("expected a vector, found shape {shape:?}"))),
        }
    }

    /// The columns and the values of a matrix of `rows` rows.
    pub(super) fn matrix<T: Element>(&self, name: &str, rows: usize) -> Result<(usize, Array<T>)> {
        match self.shaped::<T>(name)? {
            (&[found, columns], bytes) if found == rows => Ok((columns, each(bytes).collect())),
            (shape, _) => Err(self.bad(name, format!("expected a matrix of {rows} rows, found shape {shape:?}"))),
        }
    }

    /// The same as an array that stays in the file, where it can.
    pub(super) fn matrix_in_file<T: Element>(&self, name: &str, rows: usize) -> Result<(usize, Array<T>)> {
        if let Some(&TensorInfo { dtype, ref shape, data_offsets: (start, end) }) = self.metadata.info(name)
            && dtype == T::DTYPE
            && let &[found, columns] = &shape[..]
            && found == rows
            && let Some(values) = mapped::array(self.opened_file(), self.data + start..self.data + end)
        {
            return Ok((columns, values));
        }
        self.matrix(name, rows)
    }

    /// The file as it was opened.
    fn opened_file(&self) -> mapped::Opened<'_> {
        mapped::Opened { file: &self.file, path: &self.path, metadata: &self.opened }
    }

    /// An error about a tensor of this file.
    pub(super) fn bad(&self, name: &str, what: impl Into<String>) -> GraphError {
        GraphError::format(&self.path, format!("tensor {name}"), what)
    }

    /// The shape and the bytes of a tensor of this type, for which there is memory.
    fn shaped<T: Element>(&self, name: &str) -> Result<(&[usize], &[u8])> {
        let info = self.metadata.info(name).ok_or_else(|| self.bad(name, "expected, but not there"))?;
        if info.dtype != T::DTYPE {
            return Err(self.bad(name, format!("expected type {}, found {}", T::DTYPE, info.dtype)));
        }
        let bytes = &self.map[self.data + info.data_offsets.0..self.data + info.data_offsets.1];
        memory::afford(bytes.len() as u64).map_err(|what| self.bad(name, what))?;
        Ok((&info.shape, bytes))
    }
}

/// The values that these bytes are, which need not be aligned as values are.
fn each<T: Element>(bytes: &[u8]) -> impl Iterator<Item = T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned)
}

/// The header of the file `bytes` and where the data starts. The crate's own reader adds up offsets unchecked.
fn header(bytes: &[u8]) -> std::result::Result<(Metadata, usize), String> {
    let (length, rest) = bytes.split_first_chunk().ok_or("expected at least 8 bytes")?;
    let length = u64::from_le_bytes(*length);
    let header = usize::try_from(length).ok().and_then(|length| rest.get(..length));
    let header = header.ok_or_else(|| format!("expected {length} bytes, found {}", rest.len()))?;
    let metadata: Metadata = serde_json::from_slice(header).map_err(|error| error.to_string())?;
    let data = rest.len() - header.len();
    if metadata.data_len() != data {
        return Err(format!("expected {} bytes of data, found {data}", metadata.data_len()));
    }
    Ok((metadata, bytes.len() - data))
}
