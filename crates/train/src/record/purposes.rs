//! What bytes are for: the kinds of frames in four columns, so that methods are compared by what they change.

use laconic_wire::{Kind, PerKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `bytes.by_purpose`: four sums over kinds of frames that come to `bytes.total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Purposes {
    /// Bytes of rows of neighbours and their gradients in training, frozen inputs among them, and of what is said of
    /// their widths and of what batches draw.
    pub boundary: u64,
    /// Bytes of gradients of parameters, or of models, and of the checkpoint that a resumed run hands round.
    pub parameters: u64,
    /// Bytes of all that evaluations send: rows, inputs that are fetched for them apart, and counts.
    pub evaluation: u64,
    /// Bytes of ids, shapes and agreement before the first round, the sums of a checkpoint, and the closing report.
    pub start_up: u64,
}

impl Purposes {
    /// The purposes of these bytes.
    pub fn of(bytes: &PerKind<u64>) -> Purposes {
        let mut purposes = Purposes::default();
        bytes.iter().for_each(|(kind, bytes)| *purposes.of_kind(kind) += bytes);
        purposes
    }

    /// The same of bytes by the names of kinds, as summaries hold them.
    pub fn of_names(bytes: &BTreeMap<String, u64>) -> Purposes {
        let known = |kind: Kind| bytes.get(kind.name()).copied().unwrap_or(0);
        Purposes::of(&Kind::ALL.map(known).into())
    }

    fn of_kind(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Features | Kind::Activations | Kind::ActivationGradients => &mut self.boundary,
            Kind::Widths | Kind::Draws => &mut self.boundary,
            Kind::ParameterGradients | Kind::Parameters => &mut self.parameters,
            Kind::Evaluation => &mut self.evaluation,
            Kind::Control => &mut self.start_up,
        }
    }

    /// All but evaluations.
    pub fn training(&self) -> u64 {
        self.boundary + self.parameters + self.start_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_one_purpose_and_names_say_the_same() {
        let bytes: PerKind<u64> = std::array::from_fn(|kind| 10u64.pow(kind as u32)).into();
        let purposes = Purposes::of(&bytes);
        let expected = Purposes { boundary: 110_000_111, parameters: 11_000, evaluation: 100_000, start_up: 1_000_000 };
        assert_eq!((purposes, purposes.training()), (expected, 111_011_111));
        let names = bytes.iter().map(|(kind, bytes)| (kind.name().to_owned(), *bytes)).collect();
        assert_eq!(Purposes::of_names(&names), purposes);
        assert_eq!(Purposes::of_names(&BTreeMap::new()), Purposes::default());
    }
}
