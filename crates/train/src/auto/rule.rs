//! When no further way is tried, and which one is kept: from figures alone.

use crate::record::constant::is_no_better;
use crate::record::tries::Stop;

/// Ways in a row that gain too little before it ends.
const SMALL_GAINS: usize = 2;

/// What bounds the search.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// Bytes that all tries together may send.
    pub budget: Option<u64>,
    /// The validation figure with which it is content.
    pub target: Option<f64>,
    /// How many validation nodes there are.
    pub nodes: u64,
    /// The figure of the best answer that is the same for all of them, where it is known.
    pub constant: Option<f64>,
}

/// How a way ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried {
    /// Bytes of all workers.
    pub sent: u64,
    /// The validation figure, where it is defined.
    pub figure: Option<f64>,
    /// What its model is told besides own features, a bit an input.
    pub told: u64,
    /// Whether its schedule passes labels on, rather than learns from rows of others.
    pub passes_on: bool,
}

/// Those that learn: what labels alone come to on a graph says nothing about what more rows or means would gain.
fn learners(tried: &[Tried]) -> Vec<Tried> {
    tried.iter().copied().filter(|tried| !tried.passes_on).collect()
}

/// Those of which one says something about the next: which were told all that the best before them was told. That less
/// gains nothing says nothing about more.
fn measures(tried: &[Tried]) -> Vec<Tried> {
    let mut measures: Vec<Tried> = Vec::new();
    for tried in learners(tried) {
        let best = measures.iter().filter_map(|known| Some((known.figure?, known.told)));
        let best = best.max_by(|a, b| a.0.total_cmp(&b.0));
        let is_better = |best: f64| tried.figure.is_some_and(|figure| figure > best);
        if best.is_none_or(|(best, has)| has & !tried.told == 0 || is_better(best)) {
            measures.push(tried);
        }
    }
    measures
}

impl Limits {
    /// Half the standard error of a share of the validation nodes: figures of the same nodes differ by less than those
    /// of others would, as most nodes are right or wrong in both.
    pub fn error(&self, figure: f64) -> f64 {
        let share = figure.clamp(0.0, 1.0);
        (share * (1.0 - share) / self.nodes.max(1) as f64).sqrt() / 2.0
    }

    fn is_reached(&self, tried: &Tried) -> bool {
        self.target.zip(tried.figure).is_some_and(|(target, figure)| figure >= target)
    }

    /// Whether the last of these gained less than half a standard error of the best before it. Beside what is no better
    /// than a fixed answer nothing is: more has to be sent before anything is learned.
    fn gained_little(&self, tried: &[Tried]) -> bool {
        let Some((last, before)) = tried.split_last() else { return false };
        let best = best(before).filter(|best| self.constant.is_none_or(|constant| !is_no_better(*best, constant)));
        best.is_some_and(|best| last.figure.is_none_or(|figure| figure < best + self.error(best)))
    }
}

fn best(tried: &[Tried]) -> Option<f64> {
    tried.iter().filter_map(|tried| tried.figure).max_by(f64::total_cmp)
}

/// Why nothing is tried after these, where the next would send so much; `None` where it is tried.
pub(super) fn stop(tried: &[Tried], next: Option<u64>, limits: &Limits) -> Option<Stop> {
    let measures = measures(tried);
    let small_gains =
        || (0..SMALL_GAINS).all(|last| limits.gained_little(&measures[..measures.len().saturating_sub(last)]));
    let sent: u64 = tried.iter().map(|tried| tried.sent).sum();
    // What would send more than all so far has to be worth a try.
    let is_dear = |next: u64| next > sent && limits.gained_little(&measures);
    match next {
        _ if tried.last().is_some_and(|last| limits.is_reached(last)) => Some(Stop::Target),
        None => Some(Stop::Ladder),
        // Who names a target wants it, whatever the steps on the way.
        Some(next) if limits.target.is_none() && (small_gains() || is_dear(next)) => Some(Stop::Gain),
        Some(next) => limits.budget.is_some_and(|budget| sent.saturating_add(next) > budget).then_some(Stop::Budget),
    }
}

/// Whether a way that is told so much is passed over: it lacks something by which the best that learns is better than
/// all of these that lack it, by half a standard error. So what has shown its worth is kept, and more of it is tried
/// rather than less.
pub(super) fn lacks_what_gained(told: u64, tried: &[Tried], limits: &Limits) -> bool {
    let tried = learners(tried);
    let best = tried.iter().filter_map(|tried| Some((tried.figure?, tried.told)));
    let Some((best, has)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) else { return false };
    let gained = |bit: u64| {
        let without = tried.iter().filter(|tried| tried.told & bit == 0).filter_map(|tried| tried.figure);
        without.max_by(f64::total_cmp).is_some_and(|without| without + limits.error(best) <= best)
    };
    (0..u64::BITS).map(|bit| 1 << bit).any(|bit| has & !told & bit != 0 && gained(bit))
}

/// Which of these is kept: of those that have reached the target the cheapest, otherwise of those within half a
/// standard error of the best the cheapest.
pub(super) fn chosen(tried: &[Tried], limits: &Limits) -> Option<usize> {
    let best = best(tried);
    let is_near = |tried: &Tried| best.is_none_or(|best| tried.figure.is_some_and(|f| f >= best - limits.error(best)));
    let cheapest = |keep: &dyn Fn(&Tried) -> bool| {
        let kept = tried.iter().enumerate().filter(|(_, tried)| keep(tried));
        kept.min_by_key(|(_, tried)| tried.sent).map(|(at, _)| at)
    };
    cheapest(&|tried| limits.is_reached(tried)).or_else(|| cheapest(&is_near))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A figure of 0.5 of 25 nodes has a standard error of 0.1.
    const NODES: u64 = 25;

    fn tried(figures: &[f64]) -> Vec<Tried> {
        let sent = (1..).map(|step| 10 * step);
        figures
            .iter()
            .zip(sent)
            .map(|(&figure, sent)| Tried { sent, figure: (figure >= 0.0).then_some(figure), told: 0, passes_on: false })
            .collect()
    }

    #[test]
    fn it_ends_by_target_ladder_small_gains_or_budget_in_this_order() {
        let of = |budget, target| Limits { budget, target, nodes: NODES, constant: None };
        let above = |constant| Limits { constant: Some(constant), ..of(None, None) };
        for (figures, next, limits, expected) in [
            (&[][..], Some(10), of(None, None), None),
            (&[0.5], Some(20), of(None, None), None),
            (&[0.5], None, of(None, None), Some(Stop::Ladder)),
            (&[0.5, 0.51], Some(30), of(None, None), None),
            (&[0.5, 0.51], Some(31), of(None, None), Some(Stop::Gain)),
            (&[0.5, 0.57], Some(31), of(None, None), None),
            (&[0.5, 0.51], Some(31), of(None, Some(0.9)), None),
            (&[0.5, 0.51, 0.52], Some(40), of(None, None), Some(Stop::Gain)),
            (&[0.5, 0.51, 0.57], Some(40), of(None, None), None),
            (&[0.5, 0.57, 0.58], Some(40), of(None, None), None),
            (&[0.5, 0.4, -1.0], Some(40), of(None, None), Some(Stop::Gain)),
            (&[0.5, 0.51, 0.52], Some(40), of(None, Some(0.9)), None),
            (&[0.5, 0.51, 0.52], Some(40), of(Some(99), Some(0.9)), Some(Stop::Budget)),
            // What is no better than a fixed answer has learned nothing yet.
            (&[0.5, 0.4, 0.3], Some(40), above(0.5), None),
            (&[0.5, 0.4, 0.3], Some(40), above(0.49), Some(Stop::Gain)),
            // What is not defined is no best to measure by.
            (&[-1.0, -1.0, 0.1], Some(40), of(None, None), None),
            (&[0.5], Some(20), of(Some(30), None), None),
            (&[0.5], Some(20), of(Some(29), None), Some(Stop::Budget)),
            (&[], Some(20), of(Some(19), None), Some(Stop::Budget)),
            (&[0.5], Some(20), of(Some(29), Some(0.5)), Some(Stop::Target)),
            (&[0.5, 0.4], Some(20), of(None, Some(0.5)), None),
            (&[0.5, 0.5, 0.6], None, of(None, Some(0.6)), Some(Stop::Target)),
            (&[0.5], Some(u64::MAX), of(Some(u64::MAX), None), None),
        ] {
            assert_eq!(stop(&tried(figures), next, &limits), expected, "{figures:?}, {next:?}, {limits:?}");
        }
    }

    #[test]
    fn the_cheapest_within_half_a_standard_error_of_the_best_is_kept_or_that_reached_the_target() {
        let of = |target| Limits { target, nodes: NODES, ..Limits::default() };
        for (figures, target, expected) in [
            (&[0.40, 0.46, 0.50][..], None, Some(1)),
            (&[0.46, 0.45, 0.50], None, Some(0)),
            (&[0.40, 0.44, 0.50], None, Some(2)),
            (&[0.46, 0.50], Some(0.5), Some(1)),
            (&[0.46, 0.50], Some(0.6), Some(0)),
            (&[-1.0, 0.2], None, Some(1)),
            (&[-1.0, -1.0], None, Some(0)),
            (&[], None, None),
        ] {
            assert_eq!(chosen(&tried(figures), &of(target)), expected, "{figures:?}, {target:?}");
        }
        // Bounds may be far off: what was sent counts, not the order.
        let [dear, cheap] = [30, 20].map(|sent| Tried { sent, figure: Some(0.5), told: 0, passes_on: false });
        assert_eq!(chosen(&[dear, cheap], &of(None)), Some(1));
    }

    #[test]
    fn what_lacks_an_input_that_gained_is_passed_over() {
        let limits = Limits { nodes: NODES, ..Limits::default() };
        let tried = |ways: &[(u64, f64)]| -> Vec<Tried> {
            ways.iter().map(|&(told, figure)| Tried { sent: 1, figure: Some(figure), told, passes_on: false }).collect()
        };
        // 0.5 has half a standard error of 0.05.
        for (ways, told, expected) in [
            (&[(0b00, 0.44), (0b01, 0.5)][..], 0b00, true),
            (&[(0b00, 0.46), (0b01, 0.5)], 0b00, false),
            (&[(0b00, 0.44), (0b01, 0.5)], 0b11, false),
            (&[(0b00, 0.44), (0b01, 0.5)], 0b10, true),
            // Whether it was one of the two or both nobody knows: who lacks one of them lacks some of it.
            (&[(0b00, 0.44), (0b11, 0.5)], 0b01, true),
            // The second gained nothing over the first alone.
            (&[(0b00, 0.3), (0b01, 0.48), (0b11, 0.5)], 0b01, false),
            (&[(0b00, 0.3), (0b01, 0.48), (0b11, 0.5)], 0b00, true),
            (&[(0b01, 0.5)], 0b00, false),
            (&[], 0b00, false),
        ] {
            assert_eq!(lacks_what_gained(told, &tried(ways), &limits), expected, "{ways:?}, {told:b}");
        }
    }

    #[test]
    fn what_passes_labels_on_is_no_measure_of_what_more_would_gain() {
        let limits = Limits { nodes: NODES, ..Limits::default() };
        let of = |sent, figure, told, passes_on| Tried { sent, figure: Some(figure), told, passes_on };
        let smoothed = of(40, 0.8, 0, true);
        let mut tried = vec![of(30, 0.4, 0, false), smoothed, of(50, 0.5, 1, false), of(60, 0.6, 1, false)];
        assert_eq!(stop(&tried, Some(70), &limits), None, "both gained over those that learn");
        assert!(lacks_what_gained(0, &tried, &limits), "the input gained among those that learn");
        assert_eq!(chosen(&tried, &limits), Some(1), "it may be kept all the same");
        tried.extend([of(70, 0.6, 1, false), of(80, 0.6, 1, false)]);
        assert_eq!(stop(&tried, Some(90), &limits), Some(Stop::Gain));
        assert_eq!(stop(&[of(30, 0.4, 0, false), smoothed, smoothed], Some(50), &limits), None);
    }

    #[test]
    fn what_was_told_less_than_the_best_is_no_measure_of_what_more_would_gain() {
        let limits = Limits { nodes: NODES, ..Limits::default() };
        let of = |sent, figure, told| Tried { sent, figure: Some(figure), told, passes_on: false };
        let (labels, neither) = (of(30, 0.8, 1), of(40, 0.4, 0));
        assert_eq!(stop(&[labels, neither], Some(80), &limits), None, "the next may have both");
        assert_eq!(stop(&[labels, of(40, 0.4, 1)], Some(80), &limits), Some(Stop::Gain));
        assert_eq!(stop(&[labels, neither, neither], Some(90), &limits), None);
        assert_eq!(stop(&[labels, neither, of(50, 0.8, 1), of(60, 0.8, 3)], Some(90), &limits), Some(Stop::Gain));
        // One that is better without it is a measure of its own.
        assert_eq!(stop(&[labels, of(40, 0.95, 0), of(50, 0.95, 0)], Some(900), &limits), Some(Stop::Gain));
    }

    #[test]
    fn the_error_is_half_that_of_a_share() {
        let limits = Limits { nodes: NODES, ..Limits::default() };
        assert!((limits.error(0.5) - 0.05).abs() < 1e-12 && limits.error(1.0) == 0.0 && limits.error(-3.0) == 0.0);
    }
}
