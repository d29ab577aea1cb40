//! From ids that are texts to node numbers: a table of which eight bytes a slot are read, and the texts themselves only
//! where these agree.
//!
//! What takes the time are reads from all over memory: a slot, where its text ends, and the text, for each id that is
//! looked up. So ids are looked up many at a time, each of these reads for all of them before the next is begun: none
//! then waits for another.

use super::table::Texts;
use std::hash::{BuildHasher, RandomState};

/// Finds the row of a text among texts that differ.
pub struct TextIndex<'a> {
    texts: &'a Texts,
    /// The upper half of a text's hash, and in the lower half its row and one; 0 where nothing is. As many as a power
    /// of two, at least twice as many as texts.
    slots: Vec<u64>,
    hasher: RandomState,
}

/// Ids that are looked up together.
const TOGETHER: usize = 64;

/// The half of a slot that is the row and one.
const ROW: u64 = 0xffff_ffff;

impl<'a> TextIndex<'a> {
    /// The index of these texts; the rows of the first two that are the same where some are.
    pub fn new(texts: &'a Texts) -> Result<TextIndex<'a>, (u32, usize)> {
        let slots = vec![0; (2 * texts.len()).next_power_of_two().max(2)];
        let mut index = TextIndex { texts, slots, hasher: RandomState::new() };
        for row in 0..texts.len() {
            let text = texts.get_bytes(row);
            let hash = index.hasher.hash_one(text);
            let (slot, found) = index.probe(text, hash, index.first(hash));
            if let Some(earlier) = found {
                return Err((earlier, row));
            }
            index.slots[slot] = hash & !ROW | (row as u64 + 1);
        }
        Ok(index)
    }

    fn first(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// From this slot on the first that is empty, or the row of the text.
    fn probe(&self, text: &[u8], hash: u64, mut slot: usize) -> (usize, Option<u32>) {
        loop {
            let entry = self.slots[slot];
            if entry == 0 {
                return (slot, None);
            }
            let row = (entry & ROW) as u32 - 1;
            if entry & !ROW == hash & !ROW && self.texts.get_bytes(row as usize) == text {
                return (slot, Some(row));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// The row of a text.
    pub fn row(&self, text: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(text.as_bytes());
        self.probe(text.as_bytes(), hash, self.first(hash)).1
    }

    /// Puts the rows of `texts` from `start` on into `rows`, and `nowhere` for one that is not there.
    pub fn rows_of(&self, texts: &Texts, start: usize, rows: &mut [u32], nowhere: u32) {
        let (mut hashes, mut entries, mut found) = ([0; TOGETHER], [0; TOGETHER], [&[][..]; TOGETHER]);
        for (block, rows) in rows.chunks_mut(TOGETHER).enumerate() {
            let at = start + block * TOGETHER;
            let hashes = &mut hashes[..rows.len()];
            for (place, hash) in hashes.iter_mut().enumerate() {
                *hash = self.hasher.hash_one(texts.get_bytes(at + place));
            }
            for (entry, hash) in entries.iter_mut().zip(&*hashes) {
                *entry = self.slots[self.first(*hash)];
            }
            for (text, entry) in found.iter_mut().zip(&entries[..rows.len()]) {
                *text = if *entry == 0 { &[] } else { self.texts.get_bytes((entry & ROW) as usize - 1) };
            }
            for (place, row) in rows.iter_mut().enumerate() {
                let (text, hash, entry) = (texts.get_bytes(at + place), hashes[place], entries[place]);
                let is_it = entry != 0 && entry & !ROW == hash & !ROW && found[place] == text;
                *row = match is_it {
                    true => (entry & ROW) as u32 - 1,
                    // Another's slot, or none: seldom, since half of all slots are empty.
                    false => self.probe(text, hash, self.first(hash)).1.unwrap_or(nowhere),
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
        for count in [0, 1, 2, 3, 63, 64, 65, 1000, 4999] {
            let all =
                texts((0..count).map(|step| if step == 2 { String::new() } else { format!("id-{}", number(step)) }));
            let map: HashMap<&str, u32> = all.iter().zip(0..).collect();
            let index = TextIndex::new(&all).expect("texts that differ");
            let asked = texts((0..5000).map(|step| format!("id-{step}")).chain([String::new(), "id".to_owned()]));
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
