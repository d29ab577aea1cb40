//! Trained weights: named tensors in one safetensors file, and the networks that they belong to.

use std::collections::BTreeMap;
use std::path::Path;

use super::aside::{read_within, write_aside};
use super::tensors::Tensors;
use crate::error::{Result, TrainError};
use crate::saved::Numbers;
use crate::schedule::Stage;

/// The file in a run's folder.
pub const FILE: &str = "model.safetensors";

/// The one key of the file's metadata.
const METADATA: &str = "laconic";

/// Each parameter of a run by its name (PyTorch Geometric's for `convs.*`, `lins.*`, `norms.*`), with shape and values.
/// The classifiers of lazy training's stages are `heads.*`, the maps to the columns that it hands on `bottlenecks.*`.
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
///
/// # Errors
/// If a tensor is missing or has another shape.
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

/// Writes weights, all or nothing. `about` goes into the file's metadata as one JSON value, with a checksum; a file for
/// other programs has neither.
///
/// # Errors
/// If the operating system refuses.
pub fn write(path: &Path, weights: &Weights, about: BTreeMap<&str, String>) -> Result<()> {
    let refuse = |what: String| TrainError::file(path, what);
    let tensor = |(name, (shape, values)): (&String, &(Vec<usize>, Vec<f32>))| {
        (name.clone(), (shape.clone(), Numbers::F32(values.clone())))
    };
    let text = serde_json::to_string(&about).map_err(|e| refuse(e.to_string()))?;
    let metadata = (!about.is_empty()).then(|| (METADATA.to_owned(), text));
    let file = Tensors { tensors: weights.iter().map(tensor).collect(), metadata };
    write_aside(path, &file.to_bytes().map_err(refuse)?)
}

/// Reads the weights in the folder of a run, as [`read_with_widths`].
///
/// # Errors
/// If there are none, or they are another run's than the summary beside them.
pub fn read_of_run(out: &Path) -> Result<(Weights, [usize; 2])> {
    const BYTES_MAX: u64 = 1 << 28;
    let (path, summary) = (out.join(FILE), out.join("summary.json"));
    let (about, file) = read_tensors(&path)?;
    if summary.exists() {
        let text: serde_json::Value = serde_json::from_slice(&read_within(&summary, BYTES_MAX)?)
            .map_err(|error| TrainError::file(&summary, format!("expected a run's summary: {error}")))?;
        let digest = &text["parameters"]["digest"];
        if about.get("digest").is_some_and(|own| digest != own) {
            let what = format!("it is not the model that summary.json beside it speaks of ({digest})");
            return Err(TrainError::file(&path, what));
        }
    }
    weights_of(&path, &about, file)
}

/// Reads weights, and the widths of features and classes that they are made for.
///
/// # Errors
/// If there is no such file, or it is not one of weights.
pub fn read_with_widths(path: &Path) -> Result<(Weights, [usize; 2])> {
    let (about, file) = read_tensors(path)?;
    weights_of(path, &about, file)
}

fn read_tensors(path: &Path) -> Result<(BTreeMap<String, String>, Tensors)> {
    const BYTES_MAX: u64 = 16 << 30;
    let file = Tensors::from_bytes(&read_within(path, BYTES_MAX)?, METADATA);
    let file = file.map_err(|what| TrainError::file(path, what))?;
    Ok((serde_json::from_str(file.text()).unwrap_or_default(), file))
}

fn weights_of(path: &Path, about: &BTreeMap<String, String>, file: Tensors) -> Result<(Weights, [usize; 2])> {
    let refuse = |what: String| TrainError::file(path, what);
    let width = |name: &str| {
        let value = about.get(name).and_then(|text| text.parse().ok()).filter(|v| (1..=1 << 24).contains(v));
        value.ok_or_else(|| refuse(format!("expected metadata {name}, a width")))
    };
    let widths = [width("inputs")?, width("classes")?];
    let mut weights = Weights::new();
    for (name, (shape, numbers)) in file.tensors {
        let Numbers::F32(values) = numbers else { return Err(refuse(format!("{name}: expected f32"))) };
        if let Some(odd) = values.iter().find(|value| !value.is_finite()) {
            return Err(refuse(format!("{name}: expected finite numbers, found {odd}: the model's file is broken")));
        }
        weights.insert(name, (shape, values));
    }
    Ok((weights, widths))
}

/// A digest of parameters: the chosen ones of every stage, then the last stage's after its last round. Equal digests
/// mean equal bits.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn model(value: f32) -> Weights {
        Weights::from([("convs.0.weight".to_owned(), (vec![2, 1], vec![value, 0.5]))])
    }

    fn about() -> BTreeMap<&'static str, String> {
        [("inputs", "2"), ("classes", "1"), ("digest", "blake3:0")].map(|(key, value)| (key, value.to_owned())).into()
    }

    /// Whatever is refused is an error of files that names this one.
    fn refused(path: &Path) -> String {
        let error = read_with_widths(path).expect_err("a refusal");
        assert_eq!(error.exit_code(), 5, "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        error.to_string()
    }

    #[test]
    fn a_model_of_which_one_bit_is_another_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        write(&path, &model(0.25), about()).expect("written");
        assert_eq!(read_with_widths(&path).expect("a model"), (model(0.25), [2, 1]));
        let sound = std::fs::read(&path).expect("a file");
        for bit in (0..8 * sound.len()).step_by(3) {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &bytes).expect("written");
            refused(&path);
        }
    }

    #[test]
    fn a_model_with_what_is_no_number_and_one_without_a_checksum_are_refused_with_what_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        write(&path, &model(f32::NAN), about()).expect("written");
        assert!(refused(&path).contains("convs.0.weight: expected finite numbers, found NaN"));
        write(&path, &model(0.25), BTreeMap::new()).expect("written");
        assert!(refused(&path).contains("earlier build"));
    }
}
