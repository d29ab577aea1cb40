//! Training that leaves the numbers ends with an error that says so, wherever the first of them shows.

use laconic_graph::dataset::Features;
use laconic_train::TrainError;
use laconic_train::run::Options;

use crate::fixture::{config, graph, try_run};
use crate::methods::{ARCHS, SCHEDULES};

/// Features as large as numbers get: what overflows first is a message, a fold, a product or the loss, by the layer.
#[test]
fn numbers_that_overflow_are_a_divergence_wherever_they_show_first() {
    let mut dataset = graph(120, 3);
    let columns = dataset.features.columns();
    dataset.features = Features::Dense { columns, values: vec![3e38; 120 * columns] };
    for schedule in SCHEDULES {
        for arch in ARCHS {
            let keys = [schedule, arch].concat();
            let error = try_run(&config(&keys), &dataset, 3, Options::default()).err().expect("no numbers are left");
            assert!(matches!(error, TrainError::Diverged { .. }), "{keys:?}: {error}");
            assert_eq!(error.exit_code(), 6);
        }
    }
}
