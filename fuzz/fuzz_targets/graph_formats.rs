//! The formats of other graph tools; the first byte chooses one.
#![no_main]

use laconic_fuzz::{choice, graph_formats, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = choice(input);
    let mut formats = graph_formats::all();
    let which = which % formats.len();
    read(formats.swap_remove(which), input);
});
