//! Edge lists and node tables in Parquet.
//!
//! The reader contains panics of the library that decodes pages, so a panic alone is no finding here; one that gets out
//! still ends the process.
#![no_main]

use laconic_fuzz::{fixtures, read};

libfuzzer_sys::fuzz_target!(
    init: {
        // The fuzzer's own hook aborts on every panic, caught or not.
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(|_| {}));
    },
    |input: &[u8]| read(fixtures::parquet(), input)
);
