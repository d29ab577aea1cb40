//! Trained weights: named tensors in one safetensors file, and the networks that they belong to.

use std::collections::BTreeMap;
use std::path::Path;

use super::aside::{read_within, write_aside};
use super::card::Card;
use super::checkpoint;
use super::summary;
use super::tensors::Tensors;
use crate::config::Widths;
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

/// Writes weights, all or nothing. The card goes into the file's metadata as one JSON value, with a checksum.
///
/// # Errors
/// If the operating system refuses.
pub fn write(path: &Path, weights: &Weights, card: &Card) -> Result<()> {
    let refuse = |what: String| TrainError::file(path, what);
    let tensor = |(name, (shape, values)): (&String, &(Vec<usize>, Vec<f32>))| {
        (name.clone(), (shape.clone(), Numbers::F32(values.clone())))
    };
    let text = serde_json::to_string(card).map_err(|e| refuse(e.to_string()))?;
    let metadata = Some((METADATA.to_owned(), text));
    let file = Tensors { tensors: weights.iter().map(tensor).collect(), metadata };
    write_aside(path, &file.to_bytes().map_err(refuse)?)
}

/// A trained model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The parameters of all stages.
    pub weights: Weights,
    /// What it is of, and what its inputs and classes mean.
    pub card: Card,
}

impl Model {
    /// The numbers of feature columns, classes and relations.
    pub fn widths(&self) -> Widths {
        let Card { inputs, classes, relations, .. } = self.card;
        Widths { columns: inputs, classes, relations }
    }
}

/// Reads the model in the folder of a run.
///
/// # Errors
/// If there is none, the run was stopped before its last stage, or it is another run's than the summary beside it.
pub fn read_of_run(out: &Path) -> Result<Model> {
    let (path, summary) = (out.join(FILE), out.join(summary::FILE));
    let resume = || format!("go on with: laconic resume {}", out.display());
    if !path.exists() && out.join(checkpoint::FILE).exists() {
        return Err(TrainError::file(out, format!("the run has not ended, and there is no model yet; {}", resume())));
    }
    let model = read(&path)?;
    if summary.exists() {
        let text: serde_json::Value = serde_json::from_slice(&summary::read(out)?)
            .map_err(|error| TrainError::file(&summary, format!("expected a run's summary: {error}")))?;
        let digest = &text["parameters"]["digest"];
        if *digest != model.card.digest {
            let what = format!("it is not the model that summary.json beside it speaks of ({digest})");
            return Err(TrainError::file(&path, what));
        }
    }
    if let Some([trained, stages]) = model.card.stages {
        let what = format!("the run was stopped in stage {} of {stages}; {}", trained.saturating_sub(1), resume());
        return Err(TrainError::file(&path, what));
    }
    Ok(model)
}

/// Reads a model.
///
/// # Errors
/// If there is no such file, or it is not one of a model.
pub fn read(path: &Path) -> Result<Model> {
    const BYTES_MAX: u64 = 16 << 30;
    let refuse = |what: String| TrainError::file(path, what);
    let file = Tensors::from_bytes(&read_within(path, BYTES_MAX)?, METADATA).map_err(refuse)?;
    let card: Card =
        serde_json::from_str(file.text()).map_err(|error| refuse(format!("metadata {METADATA}: {error}")))?;
    if let Some(what) = card.violation() {
        return Err(refuse(what));
    }
    let mut weights = Weights::new();
    for (name, (shape, numbers)) in file.tensors {
        let Numbers::F32(values) = numbers else { return Err(refuse(format!("{name}: expected f32"))) };
        if let Some(odd) = values.iter().find(|value| !value.is_finite()) {
            return Err(refuse(format!("{name}: expected finite numbers, found {odd}: the model's file is broken")));
        }
        weights.insert(name, (shape, values));
    }
    Ok(Model { weights, card })
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
    use laconic_graph::about::{About, Scale};

    use super::*;

    fn weights(value: f32) -> Weights {
        Weights::from([("convs.0.weight".to_owned(), (vec![2, 1], vec![value, 0.5]))])
    }

    fn card() -> Card {
        let scale = Scale::Standardised {
            means: vec![0.1, -2e-300],
            deviations: vec![1.0, 3.7],
            rests: Vec::new(),
            by_type: false,
        };
        let classes = vec!["\"ok\", ß".to_owned()];
        let about = About { classes, features: ["a", "b"].map(str::to_owned).into(), scale, ..About::default() };
        Card { inputs: 2, classes: 1, digest: "blake3:0".to_owned(), about, ..Card::default() }
    }

    /// Whatever is refused is an error of files that names this one.
    fn refused(path: &Path) -> String {
        let error = read(path).expect_err("a refusal");
        assert_eq!(error.exit_code(), 5, "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        error.to_string()
    }

    #[test]
    fn a_model_of_which_one_bit_is_another_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        write(&path, &weights(0.25), &card()).expect("written");
        assert_eq!(read(&path).expect("a model"), Model { weights: weights(0.25), card: card() });
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
        write(&path, &weights(f32::NAN), &card()).expect("written");
        assert!(refused(&path).contains("convs.0.weight: expected finite numbers, found NaN"));
        std::fs::write(&path, Tensors::default().to_bytes().expect("a file")).expect("written");
        assert!(refused(&path).contains("earlier build"));
    }

    #[test]
    fn nonsense_about_a_model_is_refused_with_the_field_and_what_was_expected() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(FILE);
        let scaled = |means: &[f64], deviations: &[f64]| {
            let scale = Scale::Standardised {
                means: means.to_vec(),
                deviations: deviations.to_vec(),
                rests: Vec::new(),
                by_type: false,
            };
            Card { about: About { scale, ..About::default() }, ..card() }
        };
        let named =
            |names: usize| Card { about: About { classes: vec!["x".to_owned(); names], ..About::default() }, ..card() };
        let huge = About { classes: vec!["x".repeat(About::BYTES_MAX)], ..About::default() };
        for (card, expected) in [
            (scaled(&[1.0], &[1.0, 1.0]), "about.scale.means: expected 2 values, found 1"),
            (scaled(&[1.0; 2], &[1.0; 9]), "about.scale.deviations: expected 2 values, found 9"),
            (scaled(&[1.0; 2], &[1.0, 0.0]), "about.scale.deviations: expected finite numbers above 0, found 0"),
            // What is no number has no form in JSON.
            (scaled(&[1.0; 2], &[1.0, f64::NAN]), "metadata laconic: invalid type: null, expected f64"),
            (named(2), "about.classes: expected 1 values, found 2"),
            (Card { about: huge, ..card() }, "about: expected names and scales of at most"),
            (Card { classes: 0, ..card() }, "expected metadata classes, a width"),
            (Card { classes: 1 << 25, ..card() }, "expected a width, found \"33554432\""),
        ] {
            write(&path, &weights(0.25), &card).expect("written");
            let said = refused(&path);
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }
}
