//! Files of named tensors (safetensors): the one place that encodes and decodes them.
//!
//! A file with a text about it also has a checksum in that text, over every byte of the file but the checksum's own. So
//! other programs read the files as they are, and here not one bit of them can change unnoticed.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::saved::Numbers;

/// Named tensors and one line of text about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tensors {
    /// Shape and numbers of each.
    pub tensors: BTreeMap<String, (Vec<usize>, Numbers)>,
    /// The file's metadata: a key and a JSON object as its text. More than one key would stand in an order that changes
    /// from run to run.
    pub metadata: Option<(String, String)>,
}

/// What is wrong with a file of tensors: what was expected.
type Expected = String;

/// The text's first field, the checksum; and how it looks in the file's header, which is JSON around that text.
const FIELD: &str = "\"blake3\":\"";
const FIELD_IN_HEADER: &[u8] = br#"\"blake3\":\""#;

/// A checksum, in hexadecimal; while it is computed its place holds zeros.
const ZEROS: [u8; 64] = [b'0'; 64];

/// Where a file without a checksum may come from.
const FOREIGN: &str = "is it of an earlier build, or of another program?";

/// The place of a file's checksum, if it has one.
fn place_of_checksum(bytes: &[u8]) -> Option<Range<usize>> {
    let (len, rest) = bytes.split_first_chunk()?;
    let header = rest.get(..usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    let found = header.windows(FIELD_IN_HEADER.len()).position(|window| window == FIELD_IN_HEADER)?;
    let start = len.len() + found + FIELD_IN_HEADER.len();
    (start + ZEROS.len() <= len.len() + header.len()).then_some(start..start + ZEROS.len())
}

fn checksum(bytes: &[u8], place: &Range<usize>) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes[..place.start]).update(&ZEROS).update(&bytes[place.end..]);
    hasher.finalize()
}

/// Writes the checksum of a file into its place, if it has one.
pub fn seal(bytes: &mut [u8]) {
    if let Some(place) = place_of_checksum(bytes) {
        let sum = checksum(bytes, &place).to_hex();
        bytes[place].copy_from_slice(sum.as_bytes());
    }
}

impl Tensors {
    /// Adds a flat tensor of f32.
    pub fn put(&mut self, name: impl Into<String>, values: Vec<f32>) {
        self.tensors.insert(name.into(), (vec![values.len()], Numbers::F32(values)));
    }

    /// Takes a tensor of f32 out, whatever its shape.
    ///
    /// # Errors
    /// If there is none of this name and kind.
    pub fn take(&mut self, name: &str) -> Result<Vec<f32>, Expected> {
        match self.tensors.remove(name) {
            Some((_, Numbers::F32(values))) => Ok(values),
            Some(_) => Err(format!("{name}: expected f32")),
            None => Err(format!("expected a tensor {name}")),
        }
    }

    /// The text about the tensors.
    pub fn text(&self) -> &str {
        self.metadata.as_ref().map_or("", |(_, text)| text)
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// If a shape does not fit its numbers.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Expected> {
        let mut views = Vec::with_capacity(self.tensors.len());
        for (name, (shape, numbers)) in &self.tensors {
            let (dtype, bytes): (Dtype, &[u8]) = match numbers {
                Numbers::F32(values) => (Dtype::F32, bytemuck::cast_slice(values)),
                Numbers::F64(values) => (Dtype::F64, bytemuck::cast_slice(values)),
                Numbers::U8(values) => (Dtype::U8, values),
                Numbers::U32(values) => (Dtype::U32, bytemuck::cast_slice(values)),
            };
            let view = TensorView::new(dtype, shape.clone(), bytes).map_err(|error| format!("{name}: {error}"))?;
            views.push((name.clone(), view));
        }
        let with_field = |(key, text): &(String, String)| {
            let rest = text.strip_prefix('{').unwrap_or(text);
            let comma = if rest == "}" { "" } else { "," };
            (key.clone(), format!("{{{FIELD}{}\"{comma}{rest}", String::from_utf8_lossy(&ZEROS)))
        };
        let metadata = self.metadata.as_ref().map(|pair| HashMap::from([with_field(pair)]));
        let mut bytes = safetensors::serialize(views, metadata).map_err(|error| error.to_string())?;
        if self.metadata.is_some() {
            seal(&mut bytes);
        }
        Ok(bytes)
    }

    /// Reads a file's bytes, with the text under `key` of its metadata.
    ///
    /// # Errors
    /// If it is no such file, has another checksum than it should, or holds a kind of number that nothing here writes.
    pub fn from_bytes(bytes: &[u8], key: &str) -> Result<Tensors, Expected> {
        let malformed = |error: safetensors::SafeTensorError| format!("expected a safetensors file: {error}");
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
        let text = metadata.metadata().as_ref().and_then(|fields| fields.get(key));
        let text = text.ok_or_else(|| format!("expected metadata {key}; {FOREIGN}"))?;
        let rest = text.strip_prefix('{').and_then(|text| text.strip_prefix(FIELD)?.get(ZEROS.len() + 1..));
        let (Some(rest), Some(place)) = (rest, place_of_checksum(bytes)) else {
            return Err(format!("expected a checksum; {FOREIGN}"));
        };
        if checksum(bytes, &place).to_hex().as_bytes() != &bytes[place] {
            return Err("its checksum is not that of its content: the file is damaged, or was changed".to_owned());
        }
        let text = format!("{{{}", rest.strip_prefix(',').unwrap_or(rest));
        let mut tensors = BTreeMap::new();
        for (name, view) in SafeTensors::deserialize(bytes).map_err(malformed)?.tensors() {
            let data = view.data();
            let numbers = match view.dtype() {
                Dtype::F32 => Numbers::F32(data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()),
                Dtype::F64 => Numbers::F64(data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()),
                Dtype::U8 => Numbers::U8(data.to_vec()),
                Dtype::U32 => Numbers::U32(data.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b)).collect()),
                other => return Err(format!("{name}: expected f32, f64, u8 or u32, found {other:?}")),
            };
            tensors.insert(name, (view.shape().to_vec(), numbers));
        }
        Ok(Tensors { tensors, metadata: Some((key.to_owned(), text)) })
    }
}
