//! Which round's parameters a stage ends with, and when patience ends it.

use super::progress::{Best, Progress};
use crate::config::SelectBy;
use crate::error::{Result, TrainError};
use crate::plan::Plan;
use crate::worker::evaluate::Scores;
use crate::worker::local::SPLITS;
use crate::worker::parts::Known;

/// What chooses the best round: the validation metric, or the negative validation loss; more is better. A metric that
/// is not defined leaves the choice to the loss. `None` without validation nodes.
pub fn worth(plan: &Plan, scores: &Scores) -> Option<f64> {
    by_metric(plan, scores).or_else(|| by_loss(scores))
}

fn by_metric(plan: &Plan, scores: &Scores) -> Option<f64> {
    let metric = plan.metrics.first().filter(|_| plan.config.train.select_by == SelectBy::Metric)?;
    *scores.val.get(metric.name())?
}

fn by_loss(scores: &Scores) -> Option<f64> {
    scores.val.get("loss").copied().flatten().map(|loss| -loss)
}

/// Whether the new figures are better than the old ones; where the metric is not defined in both, by the loss of both.
fn is_better(plan: &Plan, old: &Scores, new: &Scores) -> bool {
    let metric = by_metric(plan, old).zip(by_metric(plan, new));
    metric.or_else(|| by_loss(old).zip(by_loss(new))).is_none_or(|(old, new)| new > old)
}

/// Says so where not what `train.select_by` names chose the best round, which has these figures.
pub fn fallback(plan: &Plan, scores: &Scores) -> Option<String> {
    let metric = plan.metrics.first()?.name();
    match (plan.config.train.select_by, scores.val.get(metric)) {
        _ if scores.val.is_empty() => {
            let why = plan.task.words.unvalidated;
            Some(format!("{why}, so the last round stands for the best (train.select_by, train.patience)"))
        }
        (SelectBy::Metric, Some(None)) => Some(format!(
            "{metric} of validation is not defined, so the least validation loss chose the best round (train.select_by)"
        )),
        _ => None,
    }
}

/// Keeps the parameters if they are the best so far, ties to the earlier. Without validation nodes the latest are the
/// best.
pub(super) fn select(plan: &Plan, progress: &mut Progress, round: u32, scores: &Scores, parts: Known) {
    let Progress { best, parameters, since_best, stopped, .. } = progress;
    if keep_best(plan, best, round, parameters, scores, parts) {
        *since_best = 0;
    } else {
        *since_best += 1;
        let patience = plan.config.train.patience;
        *stopped = patience > 0 && *since_best >= patience;
    }
}

/// The same of parameters that may be older than the latest; whether they are the best.
pub fn keep_best(
    plan: &Plan,
    best: &mut Option<Best>,
    round: u32,
    parameters: &[f32],
    scores: &Scores,
    parts: Known,
) -> bool {
    let is_better = best.as_ref().is_none_or(|best| is_better(plan, &best.scores, scores));
    if is_better {
        let mut kept = best.take().map(|best| best.parameters).unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(parameters);
        *best = Some(Best { round, scores: scores.clone(), parameters: kept, parts });
    }
    is_better
}

/// Figures that are no numbers can neither be compared nor written down.
///
/// # Errors
/// If one is none.
pub(super) fn refuse_infinite(scores: &Scores, round: u32) -> Result<()> {
    for (split, figures) in SPLITS.iter().zip(scores.splits()) {
        let mut defined = figures.iter().filter_map(|(name, figure)| Some((name, (*figure)?)));
        if let Some((name, figure)) = defined.find(|(_, figure)| !figure.is_finite()) {
            return Err(TrainError::Diverged { round, what: format!("{name} of the {split} nodes is {figure}") });
        }
    }
    Ok(())
}
