//! Training that leaves the numbers ends with an error that says so, wherever the first of them shows.

use laconic_graph::dataset::Features;
use laconic_train::TrainError;
use laconic_train::run::Options;

use crate::fixture::{config, folder, graph, into_folder, try_run};
use crate::methods::{ARCHS, SCHEDULES};

/// Features as large as numbers get: what overflows first is a message, a fold, a product or the loss, by the layer.
#[test]
fn numbers_that_overflow_are_a_divergence_wherever_they_show_first() {
    let mut dataset = graph(120, 3);
    let columns = dataset.features.columns();
    dataset.features = Features::Dense { columns, values: vec![3e38; 120 * columns].into() };
    for schedule in SCHEDULES {
        for arch in ARCHS {
            let keys = [schedule, arch].concat();
            let error = try_run(&config(&keys), &dataset, 3, Options::default()).err().expect("no numbers are left");
            assert!(matches!(error, TrainError::Diverged { .. }), "{keys:?}: {error}");
            assert_eq!(error.exit_code(), 6);
        }
    }
}

/// What overflows is a running statistic, which no loss of training has to show.
#[test]
fn no_checkpoint_is_written_of_statistics_that_are_no_numbers() {
    let mut dataset = graph(120, 3);
    let Features::Dense { values, .. } = &mut dataset.features else { unreachable!("generated features are dense") };
    values.iter_mut().for_each(|value| *value *= 1e30);
    for more in [&[][..], &["out.checkpoint_every=1"], &["train.eval_every=0"]] {
        let place = folder();
        let out = place.path().join("run");
        let keys = [&["model.norm=batch", "model.arch=gcn"], more].concat();
        let error = try_run(&config(&keys), &dataset, 3, into_folder(&out)).err().expect("no numbers are left");
        assert_eq!(error.exit_code(), 6, "{keys:?}: {error}");
        let left = ["checkpoint.safetensors", "model.safetensors", "summary.json"].map(|name| out.join(name).exists());
        assert_eq!(left, [false; 3], "{keys:?}: {error}");
    }
}
