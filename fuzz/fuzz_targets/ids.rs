//! Lists of ids from the wire: what is accepted is the only encoding of its ids.
#![no_main]

use laconic_graph::plan::{decode_ids, encode_ids};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(ids) = decode_ids(input, usize::MAX) {
        assert_eq!(encode_ids(&ids), input);
    }
});
