//! Files of trained weights, and whether they fit a model.
#![no_main]

use std::sync::LazyLock;

use laconic_fuzz::{apply, with_file};
use laconic_graph::about::{About, Scale};
use laconic_train::config::Widths;
use laconic_train::record::card::Card;
use laconic_train::record::tensors::seal;
use laconic_train::record::weights;
use laconic_train::{Config, Members, Plan};

/// Wider models are valid, but take more memory than a fuzzer likes.
const WIDTH_MAX: usize = 1 << 10;

/// The file of a small model.
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let plan = plan([3, 2].into());
    let weights = weights::weights(&plan.stages, &[vec![0.5; plan.stages[0].network.len()]]);
    let scale =
        Scale::Standardised { means: vec![0.5; 3], deviations: vec![2.0; 3], rests: Vec::new(), by_type: false };
    let classes = ["no", "yes"].map(str::to_owned).into();
    let about = About { classes, scale, ..About::default() };
    let card = Card { inputs: 3, classes: 2, about, ..Card::default() };
    let mut bytes = Vec::new();
    with_file(weights::FILE, &[], |path| {
        weights::write(path, &weights, &card).expect("room for a small file");
        bytes = std::fs::read(path).expect("what was just written");
    });
    bytes
});

/// The model for so many feature columns and classes.
fn plan(widths: Widths) -> Plan {
    let config = Config::parse("", &["model.hidden=2".to_owned()]).expect("a known key");
    Plan::for_model(&Members::default(), &config, widths).expect("known members")
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut bytes = VALID.clone();
    apply(input, &mut bytes);
    seal(&mut bytes);
    with_file(weights::FILE, &bytes, |path| match weights::read(path) {
        Ok(model) if model.card.inputs.max(model.card.classes).max(model.card.relations) <= WIDTH_MAX => {
            let fits = weights::parameters(&plan(model.widths()).stages, &model.weights);
            assert!(fits.is_ok() || !input.is_empty(), "the valid weights do not fit their model");
        }
        Ok(_) => {}
        Err(error) => assert!(!input.is_empty(), "the valid weights are refused: {error}"),
    });
});
