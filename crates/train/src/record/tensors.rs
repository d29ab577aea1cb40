//! Files of named tensors (safetensors): the one place that encodes and decodes them.

use std::collections::{BTreeMap, HashMap};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::saved::Numbers;

/// Named tensors and one line of text about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tensors {
    /// Shape and numbers of each.
    pub tensors: BTreeMap<String, (Vec<usize>, Numbers)>,
    /// The file's metadata: a key and its text. More than one would stand in an order that changes from run to run.
    pub metadata: Option<(String, String)>,
}

/// What is wrong with a file of tensors: what was expected.
type Expected = String;

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

    /// The text under a key of the metadata.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.metadata.as_ref().filter(|(known, _)| known == key).map(|(_, text)| text.as_str())
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
        let metadata = self.metadata.clone().map(|pair| HashMap::from([pair]));
        safetensors::serialize(views, metadata).map_err(|error| error.to_string())
    }

    /// Reads a file's bytes; of its metadata the text under `key`.
    ///
    /// # Errors
    /// If it is no such file, or holds a kind of number that nothing here writes.
    pub fn from_bytes(bytes: &[u8], key: &str) -> Result<Tensors, Expected> {
        let malformed = |error: safetensors::SafeTensorError| format!("expected a safetensors file: {error}");
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
        let text = metadata.metadata().as_ref().and_then(|fields| fields.get(key)).cloned();
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
        Ok(Tensors { tensors, metadata: text.map(|text| (key.to_owned(), text)) })
    }
}
