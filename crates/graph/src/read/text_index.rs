//! From ids that are texts to node numbers: a table whose slots hold short texts themselves.
//!
//! What takes the time are reads from all over memory. A slot of 16 bytes answers for a text of up to eleven bytes with
//! one such read; for a longer one it holds a hash, and the text is read where that agrees. Ids are looked up many at a
//! time, the first slots of all of them before any is looked at, so that none of these reads waits for another.

use super::table::Texts;
use ahash::RandomState;
use std::hash::BuildHasher;

/// Finds the row of a text among texts that differ.
pub struct TextIndex<'a> {
    texts: &'a Texts,
    /// In the lower four bytes a row and one, in the others the [`tag`] of its text; 0 where nothing is. As many as a
    /// power of two, a third more than texts at least.
    slots: Vec<u128>,
    hasher: RandomState,
}

/// Ids that are looked up together.
const TOGETHER: usize = 64;

/// The part of a slot that is the row and one.
const ROW: u128 = 0xffff_ffff;

/// Texts up to so many bytes are in the slot.
const SHORT: usize = 11;

/// The length that a slot gives for all longer ones.
const LONG: u128 = 0xff;

/// What a slot says of a text: its length in the fifth byte and its bytes behind that, or [`LONG`] and a hash.
fn tag(text: &[u8], hash: u64) -> u128 {
    if text.len() > SHORT {
        return u128::from(hash) << 40 | LONG << 32;
    }
    let mut bytes = [0; 16];
    bytes[4] = text.len() as u8;
    bytes[5..5 + text.len()].copy_from_slice(text);
    u128::from_le_bytes(bytes)
}

impl<'a> TextIndex<'a> {
    /// The index of these texts; the rows of the first two that are the same where some are.
    pub fn new(texts: &'a Texts) -> Result<TextIndex<'a>, (u32, usize)> {
        let slots = vec![0; (texts.len() + texts.len() / 3 + 1).next_power_of_two()];
        // Keys of this process alone: no table of ids can be made that all fall into one place.
        let seed = std::hash::RandomState::new();
        let [a, b, c, d] = [0, 1, 2, 3].map(|number| seed.hash_one(number));
        let mut index = TextIndex { texts, slots, hasher: RandomState::with_seeds(a, b, c, d) };
        for row in 0..texts.len() {
            let text = texts.get_bytes(row);
            let (tag, slot) = index.asked(text);
            let (slot, found) = index.probe(text, tag, slot);
            if let Some(earlier) = found {
                return Err((earlier, row));
            }
            index.slots[slot] = tag | (row as u128 + 1);
        }
        Ok(index)
    }

    /// What a slot of this text says, and the first slot that it may be in.
    fn asked(&self, text: &[u8]) -> (u128, usize) {
        let hash = self.hasher.hash_one(text);
        (tag(text, hash), hash as usize & (self.slots.len() - 1))
    }

    /// Whether a slot that is not empty is that of the text.
    fn is_it(&self, entry: u128, text: &[u8], tag: u128) -> bool {
        entry & !ROW == tag && (text.len() <= SHORT || self.texts.get_bytes((entry & ROW) as usize - 1) == text)
    }

    /// From this slot on the first that is empty, or the row of the text.
    fn probe(&self, text: &[u8], tag: u128, mut slot: usize) -> (usize, Option<u32>) {
        loop {
            let entry = self.slots[slot];
            if entry == 0 {
                return (slot, None);
            }
            if self.is_it(entry, text, tag) {
                return (slot, Some((entry & ROW) as u32 - 1));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The row of a text.
    pub fn row(&self, text: &str) -> Option<u32> {
        let (tag, slot) = self.asked(text.as_bytes());
        self.probe(text.as_bytes(), tag, slot).1
    }

    /// Puts the rows of `texts` from `start` on into `rows`, and `nowhere` for one that is not there.
    pub fn rows_of(&self, texts: &Texts, start: usize, rows: &mut [u32], nowhere: u32) {
        let (mut asked, mut entries) = ([(0, 0); TOGETHER], [0; TOGETHER]);
        for (block, rows) in rows.chunks_mut(TOGETHER).enumerate() {
            let at = start + block * TOGETHER;
            for (place, asked) in asked[..rows.len()].iter_mut().enumerate() {
                *asked = self.asked(texts.get_bytes(at + place));
            }
            for (entry, (_, slot)) in entries.iter_mut().zip(&asked[..rows.len()]) {
                *entry = self.slots[*slot];
            }
            for (place, row) in rows.iter_mut().enumerate() {
                let (text, (tag, slot), entry) = (texts.get_bytes(at + place), asked[place], entries[place]);
                *row = match entry != 0 && self.is_it(entry, text, tag) {
                    true => (entry & ROW) as u32 - 1,
                    // Another's slot, or none.
                    false => self.probe(text, tag, slot).1.unwrap_or(nowhere),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn texts(of: impl Iterator<Item = String>) -> Texts {
        let mut texts = Texts::default();
        of.for_each(|text| texts.push(&text));
        texts
    }

    /// What is found is what a map finds, for texts that are there and for such that are not, the empty one among them.
    #[test]
    fn a_text_is_found_where_a_map_has_it() {
        let number = |step: usize| (step * 7919 + 13) % 5000;
        // Of every length about that of the longest text in a slot, and with zeros at the end.
        let spelt = |number: usize| match number % 3 {
            0 => format!("id-{number}"),
            1 => format!("{number}{}", "\0".repeat(number % 16)),
            _ => format!("{number:0>width$}", width = number % 16),
        };
        for count in [0, 1, 2, 3, 63, 64, 65, 1000, 4999] {
            let all = texts((0..count).map(|step| if step == 2 { String::new() } else { spelt(number(step)) }));
            let map: HashMap<&str, u32> = all.iter().zip(0..).collect();
            let index = TextIndex::new(&all).expect("texts that differ");
            let asked = texts((0..5000).map(spelt).chain([String::new(), "id".to_owned()]));
            let expected: Vec<u32> = asked.iter().map(|text| map.get(text).copied().unwrap_or(u32::MAX)).collect();
            for start in [0, 1, 17] {
                let mut rows = vec![0; asked.len() - start];
                index.rows_of(&asked, start, &mut rows, u32::MAX);
                assert_eq!(rows, expected[start..], "{count} from {start}");
            }
            assert!(asked.iter().zip(&expected).all(|(text, row)| index.row(text).unwrap_or(u32::MAX) == *row));
        }
    }

    #[test]
    fn the_first_two_rows_of_one_text_are_said() {
        let all = texts(["a", "b", "", "b", "a", ""].into_iter().map(str::to_owned));
        assert_eq!(TextIndex::new(&all).err(), Some((1, 3)));
    }
}
