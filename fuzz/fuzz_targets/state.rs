//! The file of what one worker alone remembers. What is accepted reads back as itself.
#![no_main]

use std::sync::LazyLock;

use laconic_fuzz::apply;
use laconic_train::record::state::{self, Owner};
use laconic_train::record::tensors::seal;
use laconic_train::saved::{Name, Saved};
use laconic_wire::{Direction, Rank};

/// Arrays of every kind of number, and of every kind of owner.
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut saved = Saved::default();
    saved.put_shaped(Name::of("late.arrived", (1, Direction::Forward), None), vec![2, 2], &[0.5f32; 4]);
    saved.put(Name::of("widths", (0, Direction::Reverse), Some((Rank(2), true))), &[2u8, 8]);
    saved.put(Name::one("sums"), &[1.5f64]);
    saved.put::<u32>(Name::one("alone"), &[]);
    state::to_bytes(saved, &Owner { run: "a run".to_owned(), rank: 1, round: 2 }).expect("plain values")
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut bytes = VALID.clone();
    apply(input, &mut bytes);
    seal(&mut bytes);
    match state::from_bytes(&bytes) {
        Ok((saved, owner)) => {
            let written = state::to_bytes(saved, &owner).expect("what was read can be written");
            let (again, owner) = state::from_bytes(&written).expect("what was written can be read");
            assert_eq!(state::to_bytes(again, &owner).expect("as before"), written);
        }
        Err(error) => assert!(!input.is_empty(), "the valid state is refused: {error}"),
    }
});
