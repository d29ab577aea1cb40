//! The model that a run leaves behind can be used whatever its messages were.

use laconic_graph::dataset::Split;
use laconic_train::record::weights;

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{config, folder, graph, into_folder, parts, try_run};
use crate::methods::{ARCHS, BOUNDED, CODECS, OTHERS, SCHEDULES, go_together};

/// Where evaluations see what inference sees, every row as it is, the figures are the same; elsewhere there are some.
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
            let whole = !keys.iter().any(|key| key.starts_with("messages.evaluation"));
            if whole && keys.contains(&"schedule.cache_inputs=false") {
                assert_eq!(found, scores["accuracy"], "{keys:?}");
            }
            assert!(found > 0.0, "{keys:?}: {found}");
        }
    }
}
