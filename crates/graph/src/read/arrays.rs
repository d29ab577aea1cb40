//! Arrays from `.npy` and `.npz` files, or lent by another program, as the element type that is wanted.

pub use super::decoded::Array;
use super::decoded::{decode, decode_each};
use super::lent::LentItems;
pub use super::lent::{LentArray, LentArrays, Steps};
use crate::error::{GraphError, Result};
use crate::limits::{Limits, not_opened, open_file};
use crate::memory::afford;
use crate::npy::{Header, Kind};
pub use crate::read::element::Element;
use bytemuck::AnyBitPattern;
use laconic_array::Lend;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Deflate cannot pack better than 1032 to 1, so a member that promises more than this lies.
const UNPACKING_RATIO_MAX: u64 = 1040;

/// An open `.npz` file, a zip archive of `.npy` members; or arrays by name that another program lends.
pub struct Npz {
    /// The file, or what errors call the arrays that are lent.
    path: PathBuf,
    source: Source,
    limits: Limits,
}

enum Source {
    Archive(zip::ZipArchive<BufReader<File>>),
    Lent(LentArrays),
}

/// An array behind its header.
pub(super) enum Member<'a> {
    Packed(zip::read::ZipFile<'a, BufReader<File>>),
    Lent(LentItems<'a>),
}

impl Read for Member<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Member::Packed(file) => file.read(into),
            Member::Lent(items) => items.read(into),
        }
    }
}

/// Numbers that are lent as bytes.
struct LentNumbers(Arc<dyn Lend<u8>>);

impl<T: AnyBitPattern> Lend<T> for LentNumbers {
    fn values(&self) -> &[T] {
        // Whoever makes one has looked.
        bytemuck::try_cast_slice(self.0.values()).unwrap_or_default()
    }
}

/// Bytes as numbers, where they begin where such can.
fn numbers<T: AnyBitPattern>(bytes: &Arc<dyn Lend<u8>>) -> Option<Arc<dyn Lend<T>>> {
    let is_even = bytemuck::try_cast_slice::<u8, T>(bytes.values()).is_ok();
    is_even.then(|| Arc::new(LentNumbers(bytes.clone())) as Arc<dyn Lend<T>>)
}

impl Npz {
    /// Opens the archive; reads no member yet.
    ///
    /// # Errors
    ///
    /// If the file is larger than the limits allow, or no archive.
    pub fn open(path: &Path, limits: &Limits) -> Result<Npz> {
        let file = open_limited(path, limits)?;
        let archive = zip::ZipArchive::new(BufReader::new(file))
            .map_err(|e| GraphError::format(path, "archive", format!("expected a zip of .npy arrays: {e}")))?;
        Ok(Npz { path: path.to_owned(), source: Source::Archive(archive), limits: limits.clone() })
    }

    /// Arrays that are lent, which errors call `name`.
    ///
    /// # Errors
    ///
    /// If an array has not as many bytes as its header says.
    pub(super) fn of(name: &str, arrays: LentArrays, limits: &Limits) -> Result<Npz> {
        let path = PathBuf::from(name);
        for (name, array) in &arrays {
            if !array.is_whole() {
                let (shape, found) = (&array.header.shape, array.bytes.values().len());
                let what = format!("its shape {shape:?} does not fit its {found} bytes");
                return Err(GraphError::format(&path, format!("array '{name}'"), what));
            }
        }
        Ok(Npz { path, source: Source::Lent(arrays), limits: limits.clone() })
    }

    /// The bytes of the archive, or of the arrays that are lent.
    pub(super) fn bytes(&self) -> u64 {
        match &self.source {
            Source::Archive(_) => std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len()),
            Source::Lent(arrays) => arrays.values().map(|array| array.items().len()).sum(),
        }
    }

    /// Whether another program lends the arrays.
    pub(super) fn is_lent(&self) -> bool {
        matches!(self.source, Source::Lent(_))
    }

    /// The numbers of the array `name` without a copy, where it is lent as rows of `f32` or bfloat16 as this machine
    /// has them.
    pub(super) fn lent(&self, name: &str) -> Option<laconic_array::Array<f32>> {
        let Source::Lent(arrays) = &self.source else { return None };
        let LentArray { header, bytes, steps } = arrays.get(name)?;
        let in_order = steps.is_none()
            && !(header.fortran && header.shape.len() > 1)
            && header.big_endian == cfg!(target_endian = "big");
        match (header.kind, header.item_bytes) {
            _ if !in_order => None,
            (Kind::Float, 4) => numbers(bytes).map(laconic_array::Array::lent),
            (Kind::Bfloat, 2) => numbers(bytes).map(laconic_array::Array::of_bf16),
            _ => None,
        }
    }

    /// The archive's file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all arrays.
    pub fn names(&self) -> Vec<String> {
        match &self.source {
            Source::Archive(archive) => {
                let names = archive.file_names_raw().map(|name| String::from_utf8_lossy(name));
                names.map(|name| name.strip_suffix(".npy").unwrap_or(&name).to_owned()).collect()
            }
            Source::Lent(arrays) => arrays.keys().cloned().collect(),
        }
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        match &self.source {
            Source::Archive(archive) => archive.index_for_name(&format!("{name}.npy")).is_some(),
            Source::Lent(arrays) => arrays.contains_key(name),
        }
    }

    /// The array `name`, if it is there; at most `values_max` values.
    ///
    /// # Errors
    ///
    /// As [`Npz::read`], but not if it is not there.
    pub fn optional<T: Element>(&mut self, name: &str, values_max: u64) -> Result<Option<Array<T>>> {
        if self.has(name) { self.read(name, values_max).map(Some) } else { Ok(None) }
    }

    /// The array `name` of at most `values_max` values.
    ///
    /// # Errors
    ///
    /// If it is not there, broken, larger than `values_max` or than its file, or holds a value that `T` cannot.
    pub fn read<T: Element>(&mut self, name: &str, values_max: u64) -> Result<Array<T>> {
        let path = self.path.clone();
        let (header, mut member) = self.open_array(name, (Items::Numbers, values_max))?;
        let array = decode(&mut member, &header).map_err(|e| member_error(&path, name, &e))?;
        at_end(&mut member, (&path, name)).map(|()| array)
    }

    /// Calls `each` with the values of the array `name`, in the order of the file and some thousands at a time.
    ///
    /// # Errors
    ///
    /// As [`Npz::read`].
    pub(super) fn each<T: Element>(&mut self, name: &str, values_max: u64, each: &mut dyn FnMut(&[T])) -> Result<()> {
        let path = self.path.clone();
        let (header, mut member) = self.open_array(name, (Items::Numbers, values_max))?;
        decode_each(&mut member, &header, each).map_err(|e| member_error(&path, name, &e))?;
        at_end(&mut member, (&path, name))
    }

    /// Whether the array `name` is there and holds text.
    ///
    /// # Errors
    ///
    /// If its header is broken.
    pub fn holds_texts(&mut self, name: &str) -> Result<bool> {
        if !self.has(name) {
            return Ok(false);
        }
        Ok(self.header(name)?.kind == Kind::Unicode)
    }

    /// The texts of the array `name` of at most `count_max`, if it is there.
    ///
    /// # Errors
    ///
    /// If it holds something else, or is broken or larger than the limits allow.
    pub fn texts(&mut self, name: &str, count_max: u64) -> Result<Option<Vec<String>>> {
        if !self.has(name) {
            return Ok(None);
        }
        let (path, string_max) = (self.path.clone(), self.limits.string_bytes_max);
        let (header, mut member) = self.open_array(name, (Items::Texts, count_max))?;
        if header.item_bytes as u64 > string_max.saturating_mul(4) {
            return Err(GraphError::too_large(&path, format!("array '{name}': bytes of a text"), string_max));
        }
        let count = header.values().unwrap_or(u64::MAX);
        let refuse = |what: String| GraphError::format(&path, format!("array '{name}'"), what);
        afford(count.saturating_mul((size_of::<String>() + header.item_bytes) as u64)).map_err(refuse)?;
        let mut texts = Vec::new();
        let mut item = vec![0; header.item_bytes];
        for _ in 0..count {
            member.read_exact(&mut item).map_err(|e| member_error(&path, name, &e))?;
            let text =
                text_of(&item, header.big_endian).ok_or_else(|| refuse("expected text in Unicode".to_owned()))?;
            texts.push(text);
        }
        Ok(Some(texts))
    }

    /// The one short word of the array `name`, of bytes or of characters.
    ///
    /// # Errors
    ///
    /// If it is not there or something else.
    pub(super) fn word(&mut self, name: &str) -> Result<String> {
        let path = self.path.clone();
        let (header, mut member) = self.member(name)?;
        let is_short = header.values() == Some(1) && header.item_bytes <= 256;
        let mut item = vec![0; if is_short { header.item_bytes } else { 0 }];
        member.read_exact(&mut item).map_err(|e| member_error(&path, name, &e))?;
        let text = match header.kind {
            Kind::Bytes if is_short => String::from_utf8(item).ok().map(|text| text.trim_end_matches('\0').to_owned()),
            Kind::Unicode if is_short => text_of(&item, header.big_endian),
            _ => None,
        };
        text.ok_or_else(|| GraphError::format(&path, format!("array '{name}'"), "expected one word"))
    }

    /// The header of the array `name`, whatever it holds.
    ///
    /// # Errors
    ///
    /// If it is not there or broken.
    pub(super) fn header(&mut self, name: &str) -> Result<Header> {
        Ok(self.member(name)?.0)
    }

    /// The number of rows of the array `name`; 0 if it is not there.
    ///
    /// # Errors
    ///
    /// If its header is broken, or it is larger than its packed form can be.
    pub(super) fn rows(&mut self, name: &str) -> Result<u64> {
        if !self.has(name) {
            return Ok(0);
        }
        let header = self.open_array(name, (Items::Any, u64::MAX))?.0;
        Ok(header.shape.first().copied().unwrap_or(0))
    }

    /// The header of the array `name`, which can be as large as it says, and the member that goes on with its values.
    pub(super) fn open_array(&mut self, name: &str, expected: (Items, u64)) -> Result<(Header, Member<'_>)> {
        let (path, unpacked_max) = (self.path.clone(), self.limits.unpacked_bytes_max);
        let (header, member) = self.member(name)?;
        let bound = match &member {
            Member::Packed(file) => file.compressed_size().saturating_mul(UNPACKING_RATIO_MAX).min(unpacked_max),
            Member::Lent(items) => items.len(),
        };
        let bytes = check_size(&path, name, &header, expected)?;
        if bytes > bound {
            let shape = &header.shape;
            let what =
                format!("its shape {shape:?} needs {bytes} bytes, more than the {bound} that fit its packed form");
            return Err(GraphError::format(&path, format!("array '{name}'"), what));
        }
        Ok((header, member))
    }

    /// An error about the array `name`.
    pub fn error(&self, name: &str, expected: impl Into<String>) -> GraphError {
        GraphError::format(&self.path, format!("array '{name}'"), expected)
    }

    fn member(&mut self, name: &str) -> Result<(Header, Member<'_>)> {
        let (path, place) = (&self.path, format!("array '{name}'"));
        match &mut self.source {
            Source::Archive(archive) => {
                let absent = |e| GraphError::format(path, place, format!("expected in the archive: {e}"));
                let mut file = archive.by_name(&format!("{name}.npy")).map_err(absent)?;
                let header = Header::read(&mut file).map_err(|e| member_error(path, name, &e))?;
                Ok((header, Member::Packed(file)))
            }
            Source::Lent(arrays) => match arrays.get(name) {
                Some(array) => Ok((array.header.clone(), Member::Lent(array.items()))),
                None => Err(GraphError::format(path, place, "expected among the arrays")),
            },
        }
    }
}

/// The array in the `.npy` file `path`; at most `values_max` values.
///
/// # Errors
///
/// As [`Npz::read`], about the file.
pub fn read_npy<T: Element>(path: &Path, limits: &Limits, values_max: u64) -> Result<Array<T>> {
    let (header, mut file) = open_npy(path, limits, values_max)?;
    decode(&mut file, &header).map_err(|e| member_error(path, "data", &e))
}

/// Calls `each` with the values of the `.npy` file `path`, in its order and some thousands at a time.
pub(super) fn each_of_npy<T: Element>(
    path: &Path,
    (limits, values_max): (&Limits, u64),
    each: &mut dyn FnMut(&[T]),
) -> Result<()> {
    let (header, mut file) = open_npy(path, limits, values_max)?;
    decode_each(&mut file, &header, each).map_err(|e| member_error(path, "data", &e))
}

/// The header of a `.npy` file, which can be as large as it says, and the file, which goes on with its values.
pub(super) fn open_npy(path: &Path, limits: &Limits, values_max: u64) -> Result<(Header, BufReader<File>)> {
    let file = open_limited(path, limits)?;
    let there = file.metadata().map_err(|e| GraphError::io(path, e))?.len();
    let mut file = BufReader::new(file);
    let header = Header::read(&mut file).map_err(|e| member_error(path, "data", &e))?;
    let bytes = check_size(path, "data", &header, (Items::Numbers, values_max))?;
    if bytes > there {
        let expected = format!("its shape {:?} needs {bytes} bytes, but the file has {there}", header.shape);
        return Err(GraphError::format(path, "array 'data'", expected));
    }
    Ok((header, file))
}

/// Refuses what comes after the last value; reading to the end also makes an archive compare the checksum.
fn at_end(member: &mut impl Read, (path, name): (&Path, &str)) -> Result<()> {
    match member.read(&mut [0u8]) {
        Ok(0) => Ok(()),
        Ok(_) => Err(GraphError::format(path, format!("array '{name}'"), "data goes on after the last value")),
        Err(e) => Err(member_error(path, name, &e)),
    }
}

/// Opens a file that is within the limits.
pub(crate) fn open_limited(path: &Path, limits: &Limits) -> Result<File> {
    let file = open_file(path).map_err(|e| not_opened(path, e))?;
    let metadata = file.metadata().map_err(|e| GraphError::io(path, e))?;
    if metadata.len() > limits.file_bytes_max {
        return Err(GraphError::too_large(path, "bytes of the file", limits.file_bytes_max));
    }
    Ok(file)
}

/// What an array should hold.
#[derive(Clone, Copy)]
pub(super) enum Items {
    Numbers,
    Texts,
    Any,
}

const NUMBERS_AND_TEXTS: [Kind; 6] = [Kind::Bool, Kind::Int, Kind::Uint, Kind::Float, Kind::Bfloat, Kind::Unicode];

/// The bytes of the array's data, once its shape and type are known to be acceptable.
fn check_size(path: &Path, name: &str, header: &Header, (expected, values_max): (Items, u64)) -> Result<u64> {
    let (kinds, expected): (&[Kind], _) = match expected {
        Items::Numbers => (&NUMBERS_AND_TEXTS[..5], "numbers"),
        Items::Texts => (&[Kind::Unicode], "texts"),
        Items::Any => (&NUMBERS_AND_TEXTS, "numbers or texts"),
    };
    let place = format!("array '{name}'");
    if !kinds.contains(&header.kind) || header.item_bytes == 0 {
        return Err(GraphError::format(
            path,
            place,
            format!("expected {expected}, found items of type '{}'", header.descr),
        ));
    }
    let Some(values) = header.values().filter(|&values| values <= values_max) else {
        return Err(GraphError::too_large(path, format!("{place} of shape {:?}", header.shape), values_max));
    };
    values.checked_mul(header.item_bytes as u64).ok_or_else(|| GraphError::too_large(path, place, u64::MAX))
}

/// Refusals inside the archive are about its content; only the system's own are about the file.
pub(super) fn member_error(path: &Path, name: &str, error: &io::Error) -> GraphError {
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the data ends too early".to_owned(),
        _ => error.to_string(),
    };
    GraphError::format(path, format!("array '{name}'"), what)
}

/// A text of four bytes a character, filled up with zeros.
fn text_of(item: &[u8], big_endian: bool) -> Option<String> {
    let code = |bytes: &[u8]| {
        let bytes: [u8; 4] = bytes.try_into().ok()?;
        char::from_u32(if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let text: Option<String> = item.chunks_exact(4).map(code).collect();
    text.map(|text| text.trim_end_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::npy::write_header;

    fn npy(descr: &str, shape: &[usize], data: &[u8]) -> tempfile::NamedTempFile {
        let mut bytes = Vec::new();
        write_header(&mut bytes, descr, shape).unwrap();
        bytes.extend(data);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    fn read<T: Element>(file: &tempfile::NamedTempFile) -> Result<Array<T>> {
        read_npy(file.path(), &Limits::default(), 1 << 40)
    }

    #[test]
    fn every_number_type_reads_as_every_element() {
        let f64s: Vec<u8> = [1.0f64, 0.0, 255.0].iter().flat_map(|v| v.to_be_bytes()).collect();
        let file = npy(">f8", &[3], &f64s);
        assert_eq!(read::<u8>(&file).unwrap().values, [1, 0, 255]);
        assert_eq!(read::<i64>(&file).unwrap().values, [1, 0, 255]);
        assert_eq!(read::<f32>(&file).unwrap().values, [1.0, 0.0, 255.0]);
        let file = npy("|b1", &[3], &[1, 0, 1]);
        assert_eq!(read::<f32>(&file).unwrap().values, [1.0, 0.0, 1.0]);
        let file = npy("<i2", &[2], &[0xff, 0xff, 2, 0]);
        assert_eq!(read::<i64>(&file).unwrap().values, [-1, 2]);
    }

    #[test]
    fn numbers_of_16_bits_are_those_of_the_standard() {
        // Bits and values as IEEE 754 gives them: one, its neighbours, the largest, the least, minus two, no number.
        let bits: [u16; 8] = [0x3c00, 0x3c01, 0x7bff, 0x0001, 0x0400, 0xc000, 0x7c00, 0x3555];
        let file = npy("<f2", &[8], &bits.map(u16::to_le_bytes).concat());
        let small = (2f64.powi(-24), 2f64.powi(-14));
        let expected = [1.0, 1.0009765625, 65504.0, small.0, small.1, -2.0, f64::INFINITY, 0.333251953125];
        assert_eq!(read::<f64>(&file).unwrap().values, expected);
        assert!(read::<f32>(&npy("<f2", &[1], &[0, 0x7e])).unwrap().values[0].is_nan());
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_with_its_place() {
        let file = npy("<i2", &[2], &[2, 0, 0xff, 0xff]);
        assert!(
            read::<u32>(&file).unwrap_err().to_string().ends_with("value 1 is -1, expected an id in 0..4294967296")
        );
        let file = npy("<f4", &[1], &0.5f32.to_le_bytes());
        assert!(read::<i64>(&file).unwrap_err().to_string().contains("value 0 is 0.5"));
    }

    #[test]
    fn a_shape_beyond_the_file_is_refused_before_anything_is_reserved() {
        let started = std::time::Instant::now();
        for shape in [vec![1usize << 60], vec![1 << 40, 1 << 40], vec![1 << 30]] {
            assert!(read::<f32>(&npy("<f4", &shape, &[0; 16])).is_err());
        }
        assert!(started.elapsed().as_secs() < 1);
    }
}
