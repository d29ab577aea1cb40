//! The model that a run leaves behind can be used whatever its messages were.

use laconic_graph::dataset::Split;
use laconic_train::record::weights;

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{config, folder, graph, into_folder, parts, try_run};
use crate::methods::{ARCHS, BOUNDED, CODECS, OTHERS, SCHEDULES, go_together};

/// Evaluations see what inference sees, every row as it is, unless they are told otherwise: the figures are the same.
#[test]
fn the_model_of_every_method_gives_its_figures_again() {
    let dataset = graph(120, 4);
    for (m, method) in [&CODECS[..], &OTHERS, &BOUNDED].concat().into_iter().enumerate() {
        for turn in 0..2 {
            let schedule = SCHEDULES[(m + 2 * turn) % SCHEDULES.len()];
            let keys = [schedule, ARCHS[m % ARCHS.len()], method].concat();
            if !go_together(&keys) {
                continue;
            }
            let (config, folder) = (config(&keys), folder());
            let out = folder.path().join("run");
            let outcomes = try_run(&config, &dataset, 3, into_folder(&out)).expect("a run");
            let (weights, _) = weights::read_with_widths(&out.join(weights::FILE)).expect("a model");
            let logits = logits(&config, parts(&config, &dataset, 3), &weights);
            let found = accuracy(&dataset, &logits, Split::TEST).0;
            let scores = &outcomes[0].trained.scores.test;
            if !keys.iter().any(|key| key.starts_with("messages.evaluation")) {
                assert_eq!(found, scores["accuracy"], "{keys:?}");
            }
        }
    }
}
