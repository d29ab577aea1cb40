//! The interchange npz: dense features, sparse ones, several labels a node of which some are not known, edges that are
//! held out, and pairs that are none to judge them against.
#![no_main]

use laconic_fuzz::{choice, fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = choice(input);
    let fixtures = [
        fixtures::interchange,
        fixtures::interchange_sparse,
        fixtures::interchange_unknown,
        fixtures::interchange_held,
        fixtures::interchange_given,
    ];
    read(fixtures[which % fixtures.len()](), input);
});
