//! The interchange npz: dense features, sparse ones, and several labels a node of which some are not known.
#![no_main]

use laconic_fuzz::{choice, fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = choice(input);
    let fixtures = [fixtures::interchange, fixtures::interchange_sparse, fixtures::interchange_unknown];
    read(fixtures[which % fixtures.len()](), input);
});
