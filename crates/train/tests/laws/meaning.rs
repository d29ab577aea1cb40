//! A model is more than weights: what its inputs and classes mean is kept with it.

use laconic_graph::about::{About, Scale};
use laconic_graph::dataset::{Dataset, Features, Split};
use laconic_train::config::Config;
use laconic_train::record::weights;
use laconic_train::run::source::prepared;

use crate::fixture::{FEATURES, config, folder, graph, into_folder, multi_label, try_run, weighted};

fn named(dataset: Dataset) -> Dataset {
    let classes = (0..dataset.labels.classes()).map(|class| format!("class {class}, \"ß\"")).collect();
    let features = (0..FEATURES).map(|column| format!("f{column}")).collect();
    Dataset { about: About { classes, features, ..About::default() }, ..dataset }
}

#[test]
fn a_model_says_what_its_classes_and_features_mean_of_which_data_it_is_and_by_which_program() {
    for (dataset, multi, weights_given) in
        [(graph(60, 3), false, false), (weighted(60, 3), false, true), (multi_label(60, 3), true, false)]
    {
        let (dataset, place) = (named(dataset), folder());
        let out = place.path().join("run");
        let outcomes = try_run(&config(&["train.epochs=1"]), &dataset, 2, into_folder(&out)).expect("a run");
        let card = weights::read_of_run(&out).expect("a model").card;
        assert_eq!(card.about, dataset.about);
        assert_eq!(card.data_digest, laconic_graph::digest::digest(&dataset));
        assert_eq!((card.version.as_str(), card.inputs, card.classes), (env!("CARGO_PKG_VERSION"), FEATURES, 3));
        assert_eq!((card.multi_label, card.weighted), (multi, weights_given));
        let summary = outcomes[0].summary.as_ref().expect("worker 0 sums up");
        assert_eq!(summary.class_names, dataset.about.classes);
    }
}

/// Means and deviations as a plain loop over the training nodes finds them.
#[test]
fn the_scale_that_features_are_prepared_with_is_kept_with_the_data() {
    let (dataset, place) = (graph(60, 3), folder());
    let path = place.path().join("graph.npz");
    laconic_graph::write::write_interchange(&path, &dataset).expect("written");
    let about = |how: &str| {
        let keys = [format!("data.path={}", path.display()), format!("data.features={how}")];
        prepared(&Config::parse("", &keys).expect("keys").data).expect("a dataset").dataset.about
    };
    assert!(about("given").scale.is_given());
    assert_eq!(about("row-normalised").scale, Scale::RowNormalised);
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    let training = |row: &usize| dataset.splits[0].roles[*row] & Split::TRAIN != 0;
    let rows: Vec<usize> = (0..dataset.graph.nodes()).filter(training).collect();
    let Scale::Standardised { means, deviations } = about("standardised").scale else { panic!("means") };
    for column in 0..*columns {
        let of_column: Vec<f64> = rows.iter().map(|row| f64::from(values[row * columns + column])).collect();
        let mean = of_column.iter().sum::<f64>() / of_column.len() as f64;
        let variance = of_column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / of_column.len() as f64;
        assert!((means[column] - mean).abs() < 1e-12 && (deviations[column] - variance.sqrt()).abs() < 1e-12);
    }
}
