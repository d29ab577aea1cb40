//! What models come to that are averaged over workers, or whose gradients are added up as factors, by a program in
//! NumPy that knows the papers' formulas alone.

mod program;

use program::printed;

/// Holds one way to NumPy.
fn agrees(way: &str) {
    let arguments = [env!("CARGO_BIN_EXE_laconic"), "--cases", "4", "--ways", way];
    let Some(said) = printed("tests/parity/parameters.py", &arguments) else { return };
    assert!(said.starts_with("4 sets of points"), "{said}");
}

#[test]
fn models_that_are_averaged_every_so_many_rounds_are_those_of_numpy() {
    agrees("means");
}

#[test]
fn means_with_an_outer_step_are_those_of_numpy() {
    agrees("outer");
}

#[test]
fn models_whose_largest_values_alone_cross_are_those_of_numpy() {
    agrees("largest");
}

#[test]
fn models_whose_gradients_are_corrected_are_those_of_numpy_with_option_ii() {
    agrees("scaffold");
}

#[test]
fn models_that_are_averaged_where_they_have_drifted_are_those_of_numpy() {
    agrees("drift");
}

#[test]
fn gradients_that_are_added_up_as_factors_are_those_of_power_sgd_in_numpy() {
    agrees("power_sgd");
    agrees("power_sgd_1");
}

#[test]
fn all_of_it_together_is_what_numpy_makes_of_it() {
    agrees("all");
}
