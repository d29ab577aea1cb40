//! Frames from the wire: what is accepted is exactly what would be sent.
#![no_main]

use laconic_wire::Frame;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Ok(frame) = Frame::parse(input.to_vec(), 1 << 20) {
        assert!(frame.payload().len() <= input.len());
        assert_eq!(frame.into_bytes(), input);
    }
});
