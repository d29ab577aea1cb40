//! The model that a run leaves behind can be used whatever its messages were.

use laconic_graph::dataset::{Dataset, Labels, Split};
use laconic_train::record::weights;

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{config, few_in_splits, folder, graph, into_folder, parts, try_run};
use crate::methods::{ARCHS, BOUNDED, CODECS, OTHERS, SCHEDULES, go_together};

/// Evaluations see what inference sees, every row as it is, unless they are told otherwise: the figures are the same.
#[test]
fn the_model_of_every_method_gives_its_figures_again() {
    // Of the second, evaluations leave out most rows.
    let datasets = [graph(120, 4), few_in_splits(graph(240, 4), 5)];
    for (m, method) in [&CODECS[..], &OTHERS, &BOUNDED].concat().into_iter().enumerate() {
        for (turn, dataset) in datasets.iter().enumerate() {
            let schedule = SCHEDULES[(m + 2 * turn) % SCHEDULES.len()];
            let keys = [schedule, ARCHS[m % ARCHS.len()], method].concat();
            if !go_together(&keys) {
                continue;
            }
            let (config, folder) = (config(&keys), folder());
            let out = folder.path().join("run");
            let outcomes = try_run(&config, dataset, 3, into_folder(&out)).expect("a run");
            let weights = weights::read(&out.join(weights::FILE)).expect("a model").weights;
            let logits = logits(&config, parts(&config, dataset, 3), &weights);
            let found = accuracy(dataset, &logits, Split::TEST).0;
            let scores = &outcomes[0].trained.scores.test;
            if !keys.iter().any(|key| key.starts_with("messages.evaluation")) {
                assert_eq!(Some(found), scores["accuracy"], "{keys:?}");
            }
        }
    }
}

/// The mean loss of the labelled nodes of a role, from their logits, in f64.
fn loss(dataset: &Dataset, logits: &[Vec<f32>], role: u8) -> f64 {
    let Labels::Single { values, .. } = &dataset.labels else { panic!("classes") };
    let roles = &dataset.splits[0].roles;
    let of_role: Vec<usize> = (0..roles.len()).filter(|&v| roles[v] & role != 0 && values[v] >= 0).collect();
    let of_node = |&v: &usize| {
        let sum: f64 = logits[v].iter().map(|&logit| f64::from(logit).exp()).sum();
        sum.ln() - f64::from(logits[v][values[v] as usize])
    };
    of_role.iter().map(of_node).sum::<f64>() / of_role.len() as f64
}

/// Nor does it matter what evaluations were told to read: without the others' rows, on the inputs that crossed in
/// training, or through what a byte budget chose.
#[test]
fn a_model_that_is_judged_in_another_way_gives_its_figures_again() {
    let dataset = graph(120, 4);
    let bytes = |keys: &[&str]| {
        let outcomes = try_run(&config(keys), &dataset, 3, Default::default()).expect("a run");
        outcomes[0].summary.as_ref().expect("worker 0 sums up").bytes.total
    };
    let half = format!("messages.budget={} B", bytes(&["model.layers=3"]) / 2);
    let third = format!("messages.budget={} B", bytes(&["model.layers=3"]) / 3);
    const ALONE: &str = "messages.evaluation=none";
    const GLOBAL: &str = r#"messages.selection={kind="none",degrees="global"}"#;
    let mut chosen = 0;
    for keys in [
        vec![ALONE],
        vec![ALONE, "messages.selection=none"],
        vec![ALONE, GLOBAL],
        vec![ALONE, "schedule.kind=lazy"],
        vec![ALONE, "schedule.kind=lazy", "messages.selection=none"],
        vec![ALONE, "schedule.kind=lazy", GLOBAL],
        vec!["data.inductive=true", "messages.forward=half", "messages.evaluation_inputs=training"],
        vec!["messages.forward=half", "messages.evaluation_inputs=training"],
        vec!["messages.evaluation=half"],
        vec!["model.layers=3", &half],
        vec!["model.layers=3", &third],
    ] {
        for arch in ["model.arch=sage", "model.arch=gin"] {
            let (config, folder) = (config(&[&keys[..], &[arch]].concat()), folder());
            let out = folder.path().join("run");
            let outcomes = try_run(&config, &dataset, 3, into_folder(&out)).expect("a run");
            let weights = weights::read(&out.join(weights::FILE)).expect("a model").weights;
            let config = &outcomes[0].plan.config;
            let of_budget = !config.messages.budget.is_empty();
            chosen += usize::from(of_budget && config.messages.evaluation.config().codec != "exact");
            let logits = logits(config, parts(config, &dataset, 3), &weights);
            let scores = &outcomes[0].trained.scores.test;
            let found = loss(&dataset, &logits, Split::TEST);
            // Rounding at random is another draw in every evaluation.
            let drawn = config.messages.evaluation.config().codec == "quantised";
            let near = if drawn { 1e-3 } else { 1e-6 };
            let loss = scores["loss"].expect("a figure");
            assert!((found - loss).abs() <= near * found, "{keys:?} {arch}: {found}, {loss}");
            if !drawn {
                assert_eq!(Some(accuracy(&dataset, &logits, Split::TEST).0), scores["accuracy"], "{keys:?} {arch}");
            }
        }
    }
    assert!(chosen > 0, "no budget took anything from evaluations");
}
