//! Folders of arrays, which are read in pieces: JSON and npy.
#![no_main]

use laconic_fuzz::{fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| read(fixtures::array_folder(), input));
