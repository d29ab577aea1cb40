//! `laconic partition --measure`: how alike the parts are for who learns on them.

use std::fmt::{self, Write};

use anyhow::Result;
use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_graph::part::cut;
use laconic_graph::prepare::feature_clusters;
use laconic_graph::skew::LabelCounts;
use laconic_train::Config;
use laconic_train::run::discrepancy::gradient_discrepancy;
use schemars::JsonSchema;
use serde::Serialize;

/// What was measured.
#[derive(Serialize, JsonSchema)]
pub struct Measured {
    /// What the distances are of: `labels` of training nodes, or `feature clusters` where there are none.
    by: &'static str,
    /// The total variation between each part and all of them.
    distances: Vec<f64>,
    /// (`--measure`, labelled data with features) The largest difference between the gradients of two parts over the
    /// length of the mean one.
    #[serde(skip_serializing_if = "Option::is_none")]
    gradient_discrepancy: Option<f64>,
}

/// Measures a partition; nothing where there are neither labels nor features.
pub(super) fn measured(
    dataset: &Dataset,
    split: Option<usize>,
    assignment: &[u32],
    parts: u32,
    seed: u64,
) -> Result<Option<Measured>> {
    let nodes = dataset.graph.nodes();
    let roles = split.map(|index| &dataset.splits[index].roles);
    let clusters = match (&dataset.labels, roles) {
        (Labels::None, _) | (_, None) => Some(feature_clusters(&dataset.features, nodes, seed)),
        _ => None,
    };
    let all = vec![Split::TRAIN; nodes];
    let (by, labels, roles) = match &clusters {
        Some(clusters) => ("feature clusters", clusters, &all),
        None => ("labels", &dataset.labels, roles.unwrap_or(&all)),
    };
    let mut counts = LabelCounts::default();
    counts.reserve(parts as usize);
    counts.see(labels, roles, |node| assignment[node]);
    let Some(skew) = counts.finish() else { return Ok(None) };
    let gradient_discrepancy = match clusters {
        Some(_) => None,
        None if dataset.features.columns() == 0 => None,
        None => gradient_discrepancy(&Config::default(), &cut(dataset, split, assignment, parts)?)?,
    };
    let distances = skew.parts.iter().map(|part| part.distance).collect();
    Ok(Some(Measured { by, distances, gradient_discrepancy }))
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Measured { by, distances, gradient_discrepancy } = self;
        let mean = distances.iter().sum::<f64>() / distances.len().max(1) as f64;
        let most = distances.iter().copied().fold(0.0, f64::max);
        write!(f, "distance    of {by} from all parts' (total variation): mean {mean:.3}, largest {most:.3}")?;
        if let Some(discrepancy) = gradient_discrepancy {
            f.write_char('\n')?;
            write!(f, "gradients   differ by up to {discrepancy:.3} of their mean")?;
        }
        Ok(())
    }
}
