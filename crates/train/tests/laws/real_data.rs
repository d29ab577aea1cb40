//! Real data: the numbers that everyone knows.

use laconic_train::config::Config;
use laconic_train::plan::Members;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, run_threads};

use crate::needs::shared;

/// Kipf and Welling's recipe on the public split of Cora, on 3 workers. They report 81.5 %; 0.79 allows for one seed.
#[test]
fn gcn_learns_cora() {
    let Some(path) = shared("data/cora.npz") else { return };
    let recipe = "
        data.features = 'row-normalised'
        partition.parts = 3
        model = { arch = 'gcn', hidden = 16, dropout = 0.5, norm = 'none' }
        train = { epochs = 200, lr = 0.01, weight_decay = 5e-4, seed = 0 }
    ";
    let config = Config::parse(recipe, &[format!("data.path={:?}", path)]).expect("a sound configuration");
    let source = Source::open(&Members::default(), &config, None).expect("Cora");
    let outcomes = run_threads(&config, source, Options::default()).expect("a run");
    let scores = &outcomes[0].trained.scores;
    println!("round {}, {scores:?}", outcomes[0].trained.best_round);
    assert!(scores.test["accuracy"].expect("a figure") > 0.79, "{scores:?}");
}
