//! Folders of several types: OGB's, and a table a type.
#![no_main]

use laconic_fuzz::{fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (fixture, rest) = match input.split_first() {
        Some((first, rest)) if first % 2 == 1 => (fixtures::typed_tables(), rest),
        Some((_, rest)) => (fixtures::ogb_typed(), rest),
        None => (fixtures::ogb_typed(), input),
    };
    read(fixture, rest);
});
