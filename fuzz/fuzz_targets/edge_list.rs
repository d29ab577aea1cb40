//! Edge lists and node tables as CSV, and edges alone as text.
#![no_main]

use laconic_fuzz::{choice, fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = choice(input);
    read(if which % 2 == 0 { fixtures::edge_list() } else { fixtures::edges_alone() }, input);
});
