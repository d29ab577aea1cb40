//! The interchange npz, with dense and with sparse features.
#![no_main]

use laconic_fuzz::{choice, fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = choice(input);
    read(if which % 2 == 0 { fixtures::interchange() } else { fixtures::interchange_sparse() }, input);
});
