//! Numbers that are stored in 16 bits and read as such of 32.

use std::sync::{Arc, OnceLock};

use crate::{Array, Lend};

/// The upper halves of numbers of 32 bits, which is what bfloat16 is.
struct Halves {
    stored: Arc<dyn Lend<u16>>,
    /// All of them, once somebody has asked for a slice of all.
    widened: OnceLock<Vec<f32>>,
}

fn widened(stored: u16) -> f32 {
    f32::from_bits(u32::from(stored) << 16)
}

impl Lend<f32> for Halves {
    fn values(&self) -> &[f32] {
        self.widened.get_or_init(|| self.stored.values().iter().map(|&stored| widened(stored)).collect())
    }

    fn is_in_place(&self) -> bool {
        false
    }

    fn count(&self) -> usize {
        self.stored.count()
    }

    fn copy_to(&self, from: usize, into: &mut [f32]) {
        let stored = &self.stored.values()[from..][..into.len()];
        into.iter_mut().zip(stored).for_each(|(into, &stored)| *into = widened(stored));
    }
}

impl Array<f32> {
    /// Numbers that somebody keeps as bfloat16, given as its bits: each is widened where it is read. Only the slice of
    /// all, which [`Array::pieces`] and [`Array::piece`] do without, needs memory for all of them.
    #[must_use]
    pub fn of_bf16(stored: Arc<dyn Lend<u16>>) -> Array<f32> {
        Array::lent(Arc::new(Halves { stored, widened: OnceLock::new() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Kept(Vec<u16>);

    impl Lend<u16> for Kept {
        fn values(&self) -> &[u16] {
            &self.0
        }
    }

    /// Every pattern of bits there is, those of no number too, in every way to read and to own them.
    #[test]
    fn halves_are_the_numbers_of_which_they_are_the_upper_halves() {
        let kept: Arc<dyn Lend<u16>> = Arc::new(Kept((0..=u16::MAX).collect()));
        let expected: Vec<u32> = (0..=u16::MAX).map(|bits| u32::from(bits) << 16).collect();
        let new = || Array::of_bf16(kept.clone());
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
        let (array, mut pieces) = (new(), Vec::new());
        array.pieces(1000, |piece| {
            assert!(piece.len() <= 1000);
            pieces.extend(bits(piece));
        });
        assert_eq!((array.len(), array.is_in_place(), pieces), (1 << 16, false, expected.clone()));
        assert_eq!(bits(array.piece(7..9, &mut Vec::new())), expected[7..9]);
        assert_eq!(array.at(0x3fc0), 1.5);
        assert_eq!(bits(&array), expected, "the slice of all");
        assert_eq!(bits(&new().into_vec()), expected);
        let mut cut = new();
        cut.resize(3);
        assert_eq!((bits(&cut), cut.is_in_place()), (expected[..3].to_vec(), true));
        let mut owned = new();
        owned[1] = 5.0;
        assert_eq!((owned[1], bits(&owned[2..]), new().at(1).to_bits()), (5.0, expected[2..].to_vec(), 1 << 16));
    }
}
