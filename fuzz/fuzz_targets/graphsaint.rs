//! GraphSAINT folders: npz, npy and JSON.
#![no_main]

use laconic_fuzz::{fixtures, read};

libfuzzer_sys::fuzz_target!(|input: &[u8]| read(fixtures::graphsaint(), input));
