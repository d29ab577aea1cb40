//! Labels that are not known have no part in anything: figures are those of the known ones, and a node of which nothing
//! is known is a node without a label.

use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_graph::part::Part;
use laconic_train::record::weights;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, run_threads};

use crate::defects_of_retexo::logits;
use crate::fixture::{config, folder, into_folder, multi_label, parts, try_run};
use crate::one_is_many::SCHEDULES;

const METRICS: &str = "train.metrics=[\"accuracy\", \"micro_f1\", \"macro_f1\", \"roc_auc\", \"roc_auc_exact\"]";

/// The known labels of the nodes of one role: class, truth and score.
fn known(dataset: &Dataset, logits: &[Vec<f32>], role: u8) -> Vec<(usize, bool, f64)> {
    let Labels::Multi { classes, values } = &dataset.labels else { panic!("sets of labels") };
    let of_role = (0..logits.len()).filter(|&node| dataset.splits[0].roles[node] == role);
    let entries = of_role.flat_map(|node| (0..*classes).map(move |class| (node, class)));
    let known = entries.filter(|(node, class)| values[node * classes + class] != Labels::UNKNOWN);
    known.map(|(node, class)| (class, values[node * classes + class] == 1, f64::from(logits[node][class]))).collect()
}

/// The bin of a score by what is documented of it: 64 bins in each octave of its size and 1/256 together.
fn bin(score: f64) -> f64 {
    let size = f64::from(score.abs() as f32 + 1.0 / 256.0);
    let octave = size.log2().floor();
    let bin = (octave + 8.0) * 64.0 + ((size / octave.exp2() - 1.0) * 64.0).floor();
    if score < 0.0 { -1.0 - bin } else { bin }
}

/// Loss, accuracy, micro F1, macro F1 and areas under the ROC curve of these labels by their definitions.
fn figures(known: &[(usize, bool, f64)], classes: usize) -> [(&'static str, f64); 6] {
    let count = known.len() as f64;
    let of = |condition: &dyn Fn(&(usize, bool, f64)) -> bool| known.iter().filter(|k| condition(k)).count() as f64;
    let loss = known.iter().map(|&(_, truth, score)| (1.0 + (if truth { -score } else { score }).exp()).ln());
    let f1 = |within: &dyn Fn(usize) -> bool| {
        let both = of(&|&(class, truth, score)| within(class) && truth && score > 0.0);
        let said = of(&|&(class, _, score)| within(class) && score > 0.0);
        let there = of(&|&(class, truth, _)| within(class) && truth);
        if both > 0.0 { 2.0 * both / (said + there) } else { 0.0 }
    };
    let area = |class: usize, place: &dyn Fn(f64) -> f64| {
        let (mut pairs, mut right) = (0.0, 0.0);
        for &(_, _, up) in known.iter().filter(|k| k.0 == class && k.1) {
            for &(_, _, down) in known.iter().filter(|k| k.0 == class && !k.1) {
                let (up, down) = (place(up), place(down));
                pairs += 1.0;
                right += if up > down { 1.0 } else { f64::from(u8::from(up == down)) / 2.0 };
            }
        }
        (pairs > 0.0).then_some(right / pairs)
    };
    let areas = |place: &dyn Fn(f64) -> f64| {
        let areas: Vec<f64> = (0..classes).filter_map(|class| area(class, place)).collect();
        areas.iter().sum::<f64>() / areas.len() as f64
    };
    [
        ("loss", loss.sum::<f64>() / count),
        ("accuracy", of(&|&(_, truth, score)| truth == (score > 0.0)) / count),
        ("micro_f1", f1(&|_| true)),
        ("macro_f1", (0..classes).map(|class| f1(&|c| c == class)).sum::<f64>() / classes as f64),
        ("roc_auc", areas(&bin)),
        ("roc_auc_exact", areas(&|score| score)),
    ]
}

#[test]
fn figures_are_those_of_the_known_labels() {
    let dataset = multi_label(180, 3);
    for schedule in SCHEDULES {
        for workers in [1, 3] {
            let (config, folder) = (config(&[schedule, &[METRICS, "train.lr=0.05"]].concat()), folder());
            let out = folder.path().join("run");
            let outcomes = try_run(&config, &dataset, workers, into_folder(&out)).expect("a run");
            let weights = weights::read(&out.join(weights::FILE)).expect("a model").weights;
            let logits = logits(&config, parts(&config, &dataset, workers), &weights);
            let scores = &outcomes[0].trained.scores;
            for (scores, role) in
                [(&scores.train, Split::TRAIN), (&scores.val, Split::VAL), (&scores.test, Split::TEST)]
            {
                let known = known(&dataset, &logits, role);
                for (name, expected) in figures(&known, 3) {
                    let found = scores[name].expect("a figure");
                    assert!((found - expected).abs() < 1e-6, "{schedule:?}, {name}: {found} instead of {expected}");
                }
            }
        }
    }
}

#[test]
fn a_node_of_which_nothing_is_known_trains_as_one_without_a_role_bit_for_bit() {
    let dataset = multi_label(180, 3);
    let nameless = |part: &Part| (0..part.rows()).filter(|&row| part.labels.known(row) == 0).collect::<Vec<usize>>();
    for keys in [&["train.sync_every=1"][..], &["train.sync_every=2"], &["schedule.kind=lazy"]] {
        let config = config(&[keys, &[METRICS]].concat());
        let with = parts(&config, &dataset, 3);
        let mut without = with.clone();
        let mut roles_lost = 0;
        for part in &mut without {
            for row in nameless(part) {
                roles_lost += usize::from(std::mem::take(&mut part.roles[row]) == Split::TRAIN);
            }
        }
        assert!(roles_lost > 0, "no training node is without a known label");
        let run = |parts| run_threads(&config, Source::of(parts), Options::default()).expect("a run").remove(0).trained;
        let (with, without) = (run(with), run(without));
        assert_eq!(with.chosen, without.chosen, "{keys:?}");
        assert_eq!(with.scores, without.scores, "{keys:?}");
    }
}
