//! What models read and say of labels, by programs in NumPy that know the documentation and the files of a run alone.

mod program;

use program::{Place, printed};

#[test]
fn columns_of_labels_and_codewords_are_those_that_numpy_makes_of_the_graph() {
    let oracle = "tests/parity/told_inputs.py";
    let Some(said) = printed(oracle, &[env!("CARGO_BIN_EXE_laconic"), "--cases", "8"]) else { return };
    assert!(said.starts_with("8 graphs"), "{said}");
}

#[test]
fn sums_in_the_place_of_rows_are_as_few_as_numpy_finds_and_train_what_it_trains() {
    let oracle = "tests/parity/vertex_cover.py";
    let Some(said) = printed(oracle, &[env!("CARGO_BIN_EXE_laconic"), "--cases", "8"]) else { return };
    assert!(said.starts_with("8 covers"), "{said}");
}

#[test]
fn a_ridge_regression_has_the_weights_that_numpy_solves_for_in_one_place() {
    let oracle = "tests/parity/ridge.py";
    let Some(said) = printed(oracle, &[env!("CARGO_BIN_EXE_laconic"), "--cases", "8"]) else { return };
    assert!(said.starts_with("8 regressions"), "{said}");
}

#[test]
fn one_step_of_a_model_tells_the_distribution_of_labels_and_a_sum_of_several_tells_less() {
    let place = Place::new();
    place.json("data synth sbm --nodes 1200 --features 8 --classes 6 --out graph.npz");
    let graph = place.path("graph.npz").display().to_string();
    let arguments = [&graph, "--program", env!("CARGO_BIN_EXE_laconic"), "--seeds", "1"];
    let Some(said) = printed("examples/python/label_distribution.py", &arguments) else { return };
    // After one step, after many, a guess.
    let row = |name: &str| -> Vec<f64> {
        let row = said.lines().find(|line| line.starts_with(&format!("| {name}"))).unwrap_or_else(|| panic!("{said}"));
        let figures = row.split('|').skip(2).filter_map(|cell| cell.split_whitespace().next());
        figures.map(|figure| figure.parse().expect("a figure")).collect()
    };
    let (alone, few_bits, sum) = (row("another's model"), row("the same in 4 bits"), row("the sum of three"));
    assert!(alone[0] < 0.1 * alone[2] && few_bits[0] < 0.5 * few_bits[2], "{said}");
    assert!(sum[0] > 4.0 * alone[0], "{said}");
}
