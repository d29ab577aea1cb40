//! Trained weights: named tensors in one safetensors file, and the networks that they belong to.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::error::{Result, TrainError};
use crate::record::folder::write_aside;
use crate::schedule::Stage;

/// The file in a run's folder.
pub const FILE: &str = "model.safetensors";

/// The one key of the file's metadata.
const METADATA: &str = "laconic";

/// Each parameter of a run by its name (PyTorch Geometric's for `convs.*`, `lins.*`, `norms.*`), with shape and values. The classifiers
/// that lazy training throws away are `heads.*`.
pub type Weights = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// The weights of stages with these parameters.
pub fn weights(stages: &[Stage], parameters: &[Vec<f32>]) -> Weights {
    let mut weights = Weights::new();
    for (stage, values) in stages.iter().zip(parameters) {
        for (spec, values) in stage.network.named(values) {
            weights.insert(spec.name.clone(), (spec.shape.clone(), values.to_vec()));
        }
    }
    weights
}

/// The parameters of each stage from named weights.
pub fn parameters(stages: &[Stage], weights: &Weights) -> Result<Vec<Vec<f32>>> {
    let stored: usize = weights.values().map(|(_, values)| values.len()).sum();
    let of_stage = |stage: &Stage| {
        if stage.network.len() > stored {
            let what = format!("expected {} values, found {stored}", stage.network.len());
            return Err(TrainError::file(FILE, what));
        }
        let mut values = Vec::with_capacity(stage.network.len());
        for spec in stage.network.parameters() {
            match weights.get(&spec.name) {
                Some((shape, stored)) if *shape == spec.shape => values.extend_from_slice(stored),
                Some((shape, _)) => {
                    let what = format!("{}: expected shape {:?}, found {shape:?}", spec.name, spec.shape);
                    return Err(TrainError::file(FILE, what));
                }
                None => return Err(TrainError::file(FILE, format!("expected a tensor {}", spec.name))),
            }
        }
        Ok(values)
    };
    stages.iter().map(of_stage).collect()
}

/// Writes weights, all or nothing.
///
/// `metadata` goes into one JSON value: several would stand in an order that changes from run to run.
pub fn write(path: &Path, weights: &Weights, metadata: BTreeMap<&str, String>) -> Result<()> {
    let malformed = |error: safetensors::SafeTensorError| TrainError::file(path, error.to_string());
    let mut views = Vec::with_capacity(weights.len());
    for (name, (shape, values)) in weights {
        let view = TensorView::new(Dtype::F32, shape.clone(), bytemuck::cast_slice(values)).map_err(malformed)?;
        views.push((name.clone(), view));
    }
    let text = serde_json::to_string(&metadata).map_err(|e| TrainError::file(path, e.to_string()))?;
    let metadata = (!metadata.is_empty()).then(|| HashMap::from([(METADATA.to_owned(), text)]));
    write_aside(path, &safetensors::serialize(views, metadata).map_err(malformed)?)
}

/// Reads weights.
pub fn read(path: &Path) -> Result<Weights> {
    Ok(read_with_widths(path)?.0)
}

/// Reads weights, and the widths of features and classes that they are made for.
pub fn read_with_widths(path: &Path) -> Result<(Weights, [usize; 2])> {
    const BYTES_MAX: u64 = 16 << 30;
    let size = std::fs::metadata(path).map_err(|source| TrainError::io(path, source))?.len();
    if size > BYTES_MAX {
        return Err(TrainError::file(path, format!("expected at most {BYTES_MAX} bytes, found {size}")));
    }
    let bytes = std::fs::read(path).map_err(|source| TrainError::io(path, source))?;
    let malformed =
        |error: safetensors::SafeTensorError| TrainError::file(path, format!("expected safetensors: {error}"));
    let tensors = SafeTensors::deserialize(&bytes).map_err(malformed)?;
    let mut weights = Weights::new();
    for (name, tensor) in tensors.tensors() {
        if tensor.dtype() != Dtype::F32 {
            return Err(TrainError::file(path, format!("{name}: expected f32, found {:?}", tensor.dtype())));
        }
        let values = tensor.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        weights.insert(name, (tensor.shape().to_vec(), values));
    }
    let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(malformed)?;
    let text = metadata.metadata().as_ref().and_then(|fields| fields.get(METADATA)).map_or("{}", String::as_str);
    let fields: BTreeMap<String, String> = serde_json::from_str(text).unwrap_or_default();
    let width = |name: &str| {
        let value = fields.get(name).and_then(|text| text.parse().ok()).filter(|v| (1..=1 << 24).contains(v));
        value.ok_or_else(|| TrainError::file(path, format!("expected metadata {name}, a width")))
    };
    Ok((weights, [width("inputs")?, width("classes")?]))
}

/// A digest of parameters: the chosen ones of every stage, then the last stage's after its last round. Equal digests mean equal bits.
pub fn digest(chosen: &[Vec<f32>], last: &[f32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    for values in chosen.iter().map(Vec::as_slice).chain([last]) {
        hasher.update(&(values.len() as u64).to_le_bytes());
        for value in values {
            hasher.update(&value.to_le_bytes());
        }
    }
    *hasher.finalize().as_bytes()
}
