//! What can be reached without looking: the figure of the best answer that is the same for every node.

use laconic_graph::dataset::{Labels, Split};
use laconic_graph::info::class_counts;
use laconic_graph::part::Part;
use laconic_nn::metric::Metric;

/// Of a class among nodes: how many have it, and of how many it is known.
pub type Share = (f64, f64);

/// Figures that differ by less are the same.
const SAME: f64 = 1e-9;

/// Whether a figure is no better than the best one of a fixed answer.
pub fn is_no_better(figure: f64, constant: f64) -> bool {
    figure <= constant + SAME
}

/// What has the figures of a fixed answer, behind a number.
pub fn whose(is_of_links: bool) -> &'static str {
    if is_of_links {
        "scores that are the same for every pair"
    } else {
        "the best answer that is the same for every node"
    }
}

/// The best figure on test nodes of an answer that is the same for all of them: for classes the largest one, for sets
/// the best fixed set. An area under the curve is then one half. `None` where the figure is not defined.
pub fn best_constant(metric: &str, parts: &[Part]) -> Option<f64> {
    let (shares, is_sets) = shares(parts)?;
    of_shares(metric, &shares, is_sets)
}

/// The least loss on test nodes of an answer that is the same for all of them: what they say in nats, where they do not
/// all say the same.
pub fn least_constant_loss(parts: &[Part]) -> Option<f64> {
    let (shares, is_sets) = shares(parts)?;
    let nats = |of: f64, all: f64| if of > 0.0 { -of * (of / all).ln() } else { 0.0 };
    let known = shares.iter().map(|(_, of)| *of);
    let (loss, all) = match is_sets {
        false => (shares.iter().map(|(has, of)| nats(*has, *of)).sum::<f64>(), known.fold(0.0, f64::max)),
        true => (shares.iter().map(|(has, of)| nats(*has, *of) + nats(of - has, *of)).sum::<f64>(), known.sum::<f64>()),
    };
    (loss > 0.0).then(|| loss / all)
}

/// The figure of links whose scores are all the same, where so many pairs that are none are drawn for each edge: ties
/// count against the edge, and half in areas.
pub fn of_equal_scores(metric: &str, drawn: Option<u32>) -> Option<f64> {
    let metric = Metric::from_name(metric).filter(|metric| metric.is_of_links())?;
    let rank = drawn.map(|drawn| 1.0 + f64::from(drawn));
    let within = |top: usize, gain: fn(f64) -> f64| rank.map(|rank| if rank <= top as f64 { gain(rank) } else { 0.0 });
    match (metric, metric.recall_top(), metric.gain_top()) {
        (Metric::RocAuc | Metric::RocAucExact, ..) => Some(0.5),
        (_, Some(top), _) => within(top, |_| 1.0),
        (_, _, Some(top)) => within(top, |rank| (1.0 + rank).log2().recip()),
        (Metric::Mrr, ..) => rank.map(f64::recip),
        _ => Some(0.0),
    }
}

/// The best figure of a fixed answer for nodes of which this is known.
pub fn of_shares(metric: &str, shares: &[Share], is_sets: bool) -> Option<f64> {
    let f1 = |positive: f64, chosen: f64, all: f64| if all > 0.0 { 2.0 * positive / (chosen + all) } else { 0.0 };
    let largest = shares.iter().map(|(has, _)| *has).fold(0.0, f64::max);
    let known = shares.iter().map(|(_, of)| *of).fold(0.0, f64::max);
    // Classes that neither occur nor are the answer have no F1.
    let occurring: Vec<&Share> = shares.iter().filter(|(has, _)| *has > 0.0).collect();
    if known == 0.0 || (metric.ends_with("_f1") && occurring.is_empty()) {
        return None;
    }
    Some(match (metric, is_sets) {
        ("accuracy" | "micro_f1", false) => largest / known,
        ("macro_f1", false) => f1(largest, known, largest) / occurring.len() as f64,
        ("accuracy", true) => {
            let right: f64 = shares.iter().map(|(has, of)| has.max(of - has)).sum();
            right / shares.iter().map(|(_, of)| of).sum::<f64>()
        }
        ("micro_f1", true) => {
            // The best set is of the most frequent classes, up to some number of them.
            let mut order = occurring;
            order.sort_by(|a, b| (b.0 / b.1).total_cmp(&(a.0 / a.1)));
            let all: f64 = order.iter().map(|(has, _)| has).sum();
            let mut chosen = (0.0, 0.0);
            let figures = order.iter().map(|(has, of)| {
                chosen = (chosen.0 + has, chosen.1 + of);
                f1(chosen.0, chosen.1, all)
            });
            figures.fold(0.0, f64::max)
        }
        ("macro_f1", true) => {
            occurring.iter().map(|(has, of)| f1(*has, *of, *has)).sum::<f64>() / occurring.len() as f64
        }
        (area, _) if area.starts_with("roc_auc") => {
            shares.iter().any(|(has, of)| *has > 0.0 && has < of).then_some(0.5)?
        }
        _ => return None,
    })
}

/// Every class among test nodes whose label is known, and whether nodes may have several.
fn shares(parts: &[Part]) -> Option<(Vec<Share>, bool)> {
    let counts = class_counts(parts.iter().map(|part| (&part.labels, part.roles.as_slice())), Split::TEST);
    let is_sets = parts.iter().any(|part| matches!(part.labels, Labels::Multi { .. }));
    let shares: Vec<Share> = counts.iter().map(|[has, of]| (*has as f64, *of as f64)).collect();
    shares.iter().any(|(_, of)| *of > 0.0).then_some((shares, is_sets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_nn::Matrix;
    use laconic_nn::loss::Targets;
    use laconic_nn::metric::{Metric, Tally};

    const CLASSES: usize = 3;

    fn parts(labels: [Labels; 2]) -> [Part; 2] {
        use laconic_graph::dataset::{Features, Ids};
        let part = |(index, labels)| Part {
            index,
            parts: 2,
            nodes: (0..5).map(|node| 2 * node + u64::from(index)).collect(),
            edges: laconic_graph::edges::Edges::new(vec![0; 6], Vec::new()),
            owners: None,
            left_out: Vec::new(),
            negatives: None,
            features: Features::None,
            labels,
            roles: vec![Split::TEST, Split::TEST, Split::TRAIN, Split::TEST, Split::TEST],
            ids: Ids::Row,
            global: Default::default(),
        };
        [0, 1].map(|index| index).into_iter().zip(labels).map(part).collect::<Vec<_>>().try_into().expect("two")
    }

    /// The figures of one fixed answer, by the metrics themselves.
    fn figure(metric: Metric, parts: &[Part], answer: &[f32]) -> Option<f64> {
        let mut sum = [0.0; 4 + 3 * CLASSES];
        for part in parts {
            let logits = Matrix::from_vec(5, CLASSES, answer.repeat(5));
            let known = |row: usize| match &part.labels {
                Labels::Single { values, .. } => values[row] >= 0,
                _ => true,
            };
            let counts: Vec<bool> = (0..5).map(|row| part.roles[row] == Split::TEST && known(row)).collect();
            let (classes, sets);
            let targets = match &part.labels {
                Labels::Single { values, .. } => {
                    classes = values.iter().map(|class| (*class).max(0)).collect::<Vec<_>>();
                    Targets::Classes(&classes)
                }
                Labels::Multi { values, .. } => {
                    sets = values.clone();
                    Targets::Sets(&sets)
                }
                Labels::None => panic!("labels"),
            };
            let mut flat = Vec::new();
            Tally::of(&logits, targets, &counts, 0.0, true).flatten(&mut flat);
            sum.iter_mut().zip(flat).for_each(|(sum, count)| *sum += count);
        }
        Tally::unflatten(&sum).figure(metric)
    }

    #[test]
    fn no_fixed_distribution_has_a_smaller_loss_than_the_least_one_and_one_has_it() {
        let single = |values: [i32; 5]| Labels::Single { classes: CLASSES, values: values.to_vec() };
        let multi = |values: [u8; 15]| Labels::Multi { classes: CLASSES, values: values.to_vec() };
        let classes = parts([single([0, 2, 1, 2, -1]), single([2, 1, 1, 0, 2])]);
        let truths = [0, 2, 2, 2, 1, 0, 2];
        let (mut least, steps) = (f64::INFINITY, 70);
        for a in 1..steps {
            for b in 1..steps - a {
                let of = [a, b, steps - a - b].map(|share| f64::from(share) / f64::from(steps));
                let loss = truths.iter().map(|&truth: &usize| -of[truth].ln()).sum::<f64>() / 7.0;
                least = least.min(loss);
            }
        }
        // Sevenths are among the steps, so the least one is found.
        let found = least_constant_loss(&classes).expect("two classes and more");
        assert!((found - least).abs() < 1e-12, "{found} for {least}");
        let u = Labels::UNKNOWN;
        let sets = parts([multi([1, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0, u, 0, 0, 0]), multi([0; 15])]);
        // Tested rows 0, 1, 3 and 4 of each part: 2 of 8, 1 of 8 and 0 of 7.
        let nats = |has: f64, of: f64| -has * (has / of).ln() - (of - has) * (1.0 - has / of).ln();
        let by_hand = (nats(2.0, 8.0) + nats(1.0, 8.0)) / 23.0;
        assert!((least_constant_loss(&sets).expect("labels") - by_hand).abs() < 1e-12);
        assert_eq!(least_constant_loss(&parts([single([1; 5]), single([1; 5])])), None);
        assert_eq!(least_constant_loss(&parts([multi([0; 15]), multi([0; 15])])), None);
    }

    #[test]
    fn links_whose_scores_are_all_the_same_have_the_figures_of_rankings() {
        use laconic_nn::ranking::{Ranks, rank};
        use laconic_nn::roc::roc_auc;
        for drawn in [1, 7, 20] {
            let mut ranks = Ranks::new(&[10, 20]);
            (0..3).for_each(|_| ranks.add(rank(0.25, &vec![0.25; drawn as usize]), &[10, 20]));
            for (name, figure) in [
                ("mrr", ranks.mean_reciprocal()),
                ("recall@10", ranks.recall(0)),
                ("recall@20", ranks.recall(1)),
                ("ndcg@10", ranks.gain(0)),
                ("ndcg@20", ranks.gain(1)),
            ] {
                let found = of_equal_scores(name, Some(drawn)).zip(figure).expect("edges");
                assert!((found.0 - found.1).abs() < 1e-12, "{name}, {drawn} drawn: {found:?}");
            }
        }
        assert_eq!(of_equal_scores("roc_auc", None), roc_auc(&mut [(0.25, true), (0.25, false), (0.25, false)]));
        assert_eq!(of_equal_scores("roc_auc_exact", None), Some(0.5));
        assert_eq!((of_equal_scores("hits@10", None), of_equal_scores("mrr", None)), (Some(0.0), None));
        assert_eq!((of_equal_scores("accuracy", Some(3)), of_equal_scores("recall@10", None)), (None, None));
    }

    #[test]
    fn no_fixed_answer_is_better_than_the_best_one_and_one_is_as_good() {
        let single = |values: [i32; 5]| Labels::Single { classes: CLASSES, values: values.to_vec() };
        let multi = |values: [u8; 15]| Labels::Multi { classes: CLASSES, values: values.to_vec() };
        let u = Labels::UNKNOWN;
        let cases = [
            ([single([0, 2, 1, 2, -1]), single([2, 1, 1, 0, 2])], true),
            // A class that does not occur; one class for all; no label anywhere.
            ([single([0, 2, 1, 2, -1]), single([2, 2, 1, 0, 2])], true),
            ([single([1; 5]), single([1, 1, 2, -1, 1])], false),
            ([multi([0; 15]), multi([0; 15])], false),
            (
                [
                    multi([1, 0, 0, 0, 1, 0, 1, 1, 1, 1, 0, u, 0, 0, 0]),
                    multi([0, 0, 1, 1, 0, 0, 0, 0, 0, u, 0, 1, 1, 0, 0]),
                ],
                true,
            ),
        ];
        for (labels, has_area) in cases {
            let parts = parts(labels);
            for metric in [Metric::Accuracy, Metric::MicroF1, Metric::MacroF1] {
                let answers = (0..1u8 << CLASSES).map(|set| {
                    let answer: Vec<f32> = (0..CLASSES).map(|c| if set >> c & 1 == 1 { 1.0 } else { -1.0 }).collect();
                    figure(metric, &parts, &answer)
                });
                let answers: Option<Vec<f64>> = answers.collect();
                let best = answers.map(|answers| answers.into_iter().fold(0.0, f64::max));
                let found = best_constant(metric.name(), &parts);
                let is_same = match (found, best) {
                    (Some(found), Some(best)) => (found - best).abs() < 1e-12,
                    (found, best) => found.is_none() && best.is_none(),
                };
                assert!(is_same, "{}: {found:?} for {best:?}", metric.name());
            }
            assert_eq!(best_constant("roc_auc", &parts), has_area.then_some(0.5));
            assert_eq!(best_constant("mrr", &parts), None);
        }
        assert_eq!(best_constant("accuracy", &parts([Labels::None, Labels::None])), None);
    }
}
