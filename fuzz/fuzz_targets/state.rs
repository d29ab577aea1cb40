//! The file of what one worker alone remembers.

#![no_main]

use laconic_train::record::state::Saved;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(saved) = Saved::from_bytes(bytes) {
        for what in ["late.arrived", "widths", "skip.sent"] {
            saved.under(what).for_each(drop);
        }
    }
});
