//! Pairs that are given as no edges, in a part and in its file.

use crate::error::Result;
use crate::given::{GivenCounts, GivenNegatives, GivenPairs, NAMES};
use crate::limits::Limits;
use crate::part::Part;
use crate::part::tensors::{Tensor, Tensors};
use crate::rules::Violation;

/// The tensors of a part's file that hold them.
pub(super) fn tensors(part: &Part) -> impl Iterator<Item = Tensor<'_>> {
    part.negatives.iter().flatten().zip(NAMES).flat_map(|(pairs, [sources, targets, others, relations])| {
        let lists = [
            Tensor::vector(sources, &pairs.sources),
            Tensor::vector(targets, &pairs.targets),
            Tensor::matrix(others, pairs.len(), pairs.each, &pairs.others),
        ];
        let related = !pairs.relations.is_empty();
        lists.into_iter().chain(related.then(|| Tensor::vector(relations, &pairs.relations)))
    })
}

/// Those of a file; `None` where it holds none.
pub(super) fn read(file: &Tensors) -> Result<Option<GivenNegatives<u64>>> {
    if !NAMES.iter().flatten().any(|name| file.has(name)) {
        return Ok(None);
    }
    let [val, test] = NAMES.map(|[sources, targets, others, relations]| {
        let sources: Vec<u64> = file.vector(sources)?;
        let (each, others) = file.matrix(others, sources.len())?;
        let relations = if file.has(relations) { file.vector(relations)? } else { Vec::new() };
        Ok(GivenPairs { sources, targets: file.vector(targets)?, others: others.into_vec(), each, relations })
    });
    Ok(Some([val?, test?]))
}

impl Part {
    /// Pairs in all parts or in none, of one form, and with own targets.
    pub(super) fn negative_violation(&self, called_by_row: bool) -> Option<Violation> {
        let (own, all) = (&self.negatives, self.global.negatives);
        if own.is_some() != all.is_some() {
            let what = "expected pairs that are no edges in all parts or in none, as the figures of the whole say";
            return Some((NAMES[0][0], what.to_owned()));
        }
        let most = Limits::default().edges_max;
        let beyond = |all: &GivenCounts| all.pairs.saturating_mul(all.each.max(1)) > most || all.each > most;
        if all.iter().flatten().any(beyond) {
            return Some((NAMES[0][0], format!("expected at most {most} pairs in all parts, found {all:?}")));
        }
        let each = own.iter().flatten().zip(all.iter().flatten()).zip(NAMES);
        each.into_iter().find_map(|((pairs, all), names)| {
            let [sources, targets, others, _] = names;
            let form = || {
                let what = format!("expected {} for each edge as the other parts have, found {}", all.each, pairs.each);
                (pairs.each as u64 != all.each).then_some((others, what))
            };
            let foreign = || {
                let target = pairs.targets.iter().find(|target| self.nodes.binary_search(target).is_err())?;
                Some((targets, format!("expected own nodes, found {target}")))
            };
            let beyond = || {
                let lists = [(sources, &pairs.sources), (others, &pairs.others)];
                lists.into_iter().filter(|_| called_by_row).find_map(|(name, ids)| {
                    let id = ids.iter().find(|&&id| id >= self.global.nodes)?;
                    Some((name, format!("expected ids below {}, found {id}", self.global.nodes)))
                })
            };
            pairs.violation(names, self.global.relations).or_else(form).or_else(foreign).or_else(beyond)
        })
    }
}
