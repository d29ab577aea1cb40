//! Edge lists and node tables as CSV, with columns of all kinds, and edges alone as text.
#![no_main]

use laconic_fuzz::{choice, fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = choice(input);
    let fixtures = [fixtures::edge_list, fixtures::edges_alone, fixtures::columns_of_all_kinds];
    read(fixtures[which % fixtures.len()](), input);
});
