//! Whether what was predicted is the same for all.

use laconic_nn::metric::argmax;
use laconic_train::record::verdict::{Answered, one_answer};
use laconic_train::run::predict::Predictions;

/// Says so where all nodes of all parts were given one class, or the same labels.
pub fn all_alike(predictions: &[Predictions], name: impl Fn(usize) -> String) -> Option<String> {
    let is_sets = predictions.first()?.multi_label;
    let mut classes: Vec<Answered> = Vec::new();
    let mut nodes = 0;
    for logits in predictions.iter().map(|part| &part.inferred.logits) {
        classes.resize(logits.columns().max(classes.len()), Answered::default());
        nodes += logits.rows() as u64;
        for row in (0..logits.rows()).map(|row| logits.row(row)) {
            if is_sets {
                let given = classes.iter_mut().zip(row).filter(|(_, logit)| **logit > 0.0);
                given.for_each(|(class, _)| class.predicted += 1);
            } else if let Some(class) = classes.get_mut(argmax(row)) {
                class.predicted += 1;
            }
        }
    }
    classes.iter_mut().for_each(|class| class.known = nodes);
    one_answer(&classes, is_sets, "nodes", name)
}

/// The same of scores of pairs.
pub fn all_equal(scores: &[f32]) -> Option<String> {
    let first = scores.first().filter(|_| scores.len() > 1)?;
    let is_equal = scores.iter().all(|score| score == first);
    is_equal.then(|| format!("all {} scores are the same, so their order says nothing", scores.len()))
}
