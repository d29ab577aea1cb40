//! What frames hold, in words.

use laconic_nn::architecture::Handed;
use laconic_train::{Config, Members};
use laconic_wire::Kind;

/// What the frames of a kind hold, in words.
pub fn content(kind: Kind, config: Option<&Config>) -> String {
    let rows = || match config.filter(|config| config.schedule.kind == "lazy").map(|config| config.schedule.hand_on()) {
        Some(Handed::Scores) => "class scores".to_owned(),
        Some(Handed::Columns(columns)) => format!("{columns} learned columns of a row"),
        Some(Handed::Hidden) | None => "hidden rows".to_owned(),
    };
    match kind {
        Kind::Features => "features".to_owned(),
        Kind::Activations => rows(),
        Kind::ActivationGradients => format!("gradients of {}", rows()),
        Kind::ParameterGradients => "gradients of the model".to_owned(),
        Kind::Parameters if config.is_some_and(|config| Members::default().has_trainers(config).unwrap_or(false)) => {
            "models, or their means".to_owned()
        }
        Kind::Parameters => "how far its model has moved".to_owned(),
        Kind::Evaluation => {
            let task =
                config.filter(|config| shows_scores(config)).and_then(|config| Members::default().task(config).ok());
            task.map_or("evaluation: rows and counts", |task| task.words.evaluation).to_owned()
        }
        Kind::Widths => "how much its rows vary, and bits of messages".to_owned(),
        Kind::Draws => "ids of nodes that its batches and pairs reach, and the neighbours that were drawn".to_owned(),
        Kind::Control => "start-up: ids of foreign nodes, digests, reports".to_owned(),
    }
}

/// Whether a metric is computed from the scores of every labelled node, or held-out edge, in one place.
fn shows_scores(config: &Config) -> bool {
    config.train.metrics.iter().any(|metric| metric == "roc_auc_exact")
}
