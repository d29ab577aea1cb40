//! Planetoid folders: pickles of protocols 0 and 2.
#![no_main]

use laconic_fuzz::{choice, fixtures, pickles, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = choice(input);
    let files = if which % 2 == 0 { &pickles::PROTOCOL_0 } else { &pickles::PROTOCOL_2 };
    read(fixtures::planetoid(files), input);
});
