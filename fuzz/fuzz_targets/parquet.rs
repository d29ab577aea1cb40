//! Edge lists and node tables in Parquet, with lists and dates.
//!
//! The reader contains panics of the library that decodes pages, so a panic alone is no finding here; one that gets out
//! still ends the process.
#![no_main]

use laconic_fuzz::{choice, fixtures, read};

libfuzzer_sys::fuzz_target!(
    init: {
        // The fuzzer's own hook aborts on every panic, caught or not.
        drop(std::panic::take_hook());
        std::panic::set_hook(Box::new(|_| {}));
    },
    |input: &[u8]| {
        let (which, input) = choice(input);
        let lists: [&[f32]; 3] = [&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]];
        read(if which % 2 == 0 { fixtures::parquet() } else { fixtures::parquet_of_lists(&lists) }, input);
    }
);
