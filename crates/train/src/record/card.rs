//! What a model's file says besides its weights: which run it is of, and what its inputs and classes mean, so that
//! whoever has the file needs nothing else to know what goes in and what comes out.

use laconic_graph::about::About;
use laconic_graph::edges::Relations;
use laconic_graph::part::Part;
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// The text about a model, one JSON object in the metadata of its file. Fields that a later version adds are no error.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Card {
    /// The number of classes; for a model of links the columns of embeddings.
    #[serde(with = "as_text")]
    pub classes: usize,
    /// What scores pairs of embeddings, in a model of links; empty in others.
    pub decoder: String,
    /// The digest of the parameters, as `summary.json` says it.
    pub digest: String,
    /// What kind of file this is.
    pub format: String,
    /// The number of feature columns.
    #[serde(with = "as_text")]
    pub inputs: usize,
    /// The best round, whose parameters these are.
    pub round: String,
    /// The name of what was written of the run.
    pub run: String,
    /// The version of the program.
    pub version: String,
    /// What the data are called.
    pub dataset: String,
    /// `blake3:…` of the dataset, as `laconic data info` says it; empty where nobody ever held the whole.
    pub data_digest: String,
    /// Whether a node may have several classes.
    pub multi_label: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// How many relations edges are of, where the model tells them apart; else 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub relations: usize,
    /// How many of the run's stages were trained, where it was stopped before the last: then this is no whole model.
    pub stages: Option<[usize; 2]>,
    /// What classes and features are called, and how features were made.
    pub about: About,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Widths stand as text, as all of these files have them.
mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(width: &usize, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(width)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<usize, D::Error> {
        let text = String::deserialize(deserializer)?;
        let width = text.parse().ok().filter(|width| (0..=1 << 24).contains(width));
        width.ok_or_else(|| D::Error::custom(format!("expected a width, found {text:?}")))
    }
}

impl Card {
    /// What a worker knows before it has trained.
    pub fn of(part: &Part) -> Card {
        let global = &part.global;
        Card {
            format: "laconic-model-1".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            inputs: global.columns,
            classes: global.classes,
            dataset: global.dataset.clone(),
            data_digest: global.data_digest.clone(),
            multi_label: global.multi_label,
            weighted: global.weighted || part.edges.data.weights.is_some(),
            about: global.about.clone(),
            ..Card::default()
        }
    }

    /// The same of a model that this plan makes: one of links knows no classes.
    #[must_use]
    pub fn of_model(self, plan: &Plan) -> Card {
        let Some(links) = &plan.links else { return self };
        let about = About { classes: Vec::new(), ..self.about };
        let decoder = plan.config.task.decoder.clone();
        Card { classes: links.decoder.width(), decoder, multi_label: false, about, ..self }
    }

    /// What tables are read as, to have the columns and classes of this model
    /// ([`ReadOptions::like`](laconic_graph::read::ReadOptions)).
    pub fn recipe(&self) -> About {
        let classes = (0..self.classes).map(|class| self.about.class(class)).collect();
        About { classes, ..self.about.clone() }
    }

    /// What is wrong with it, if anything is.
    pub(super) fn violation(&self) -> Option<String> {
        // A model may read labels alone, and no features.
        let classes = || (self.classes == 0).then(|| "expected metadata classes, a width".to_owned());
        let relations = || {
            let most = Relations::MOST;
            (self.relations > most).then(|| format!("expected at most {most} relations, found {}", self.relations))
        };
        let about = || self.about.check(self.inputs, self.classes).err().map(|error| error.to_string());
        classes().or_else(relations).or_else(about)
    }
}
