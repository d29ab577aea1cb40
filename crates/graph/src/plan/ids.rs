//! Lists of ids as bytes, for the exchange of ids when a run starts.
//!
//! An empty list is no bytes. Any other begins with a byte that says in which of two forms the rest is:
//!
//! - 0: the first id, then each one's distance to the one before, as LEB128 variable-length integers. One byte an id
//!   where more than one node in 128 is listed.
//! - 1: the first id as such an integer, then a bit for each id that could follow, up to the last. Less where more than
//!   about one node in eight is listed.
//!
//! A list has the shorter of both, and of two as long the first.

use crate::error::{GraphError, Result};

const DISTANCES: u8 = 0;
const BITS: u8 = 1;

/// How long [`encode_ids`] makes a list, whose ids are told one after the other and not kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct Listed {
    rows: u64,
    first: u64,
    last: u64,
    /// Bytes of the first id and of distances.
    distances: u64,
}

impl Listed {
    /// A list of these ids.
    ///
    /// # Panics
    ///
    /// If the ids do not ascend.
    pub fn of(ids: impl IntoIterator<Item = u64>) -> Listed {
        let mut listed = Listed::default();
        ids.into_iter().for_each(|id| listed.add(id));
        listed
    }

    /// Adds an id to the end of the list.
    ///
    /// # Panics
    ///
    /// If it is not above the one before.
    pub fn add(&mut self, id: u64) {
        assert!(self.rows == 0 || self.last < id, "ids must ascend: {id} follows {}", self.last);
        if self.rows == 0 {
            self.first = id;
        }
        // Nothing is before the first, and `last` still 0.
        self.distances += number_bytes(id - self.last);
        self.rows += 1;
        self.last = id;
    }

    /// How many ids.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes.
    pub fn bytes(&self) -> u64 {
        if self.rows == 0 { 0 } else { 1 + self.distances.min(self.bits()) }
    }

    /// No list of at most `rows` ids, all below `end`, has more bytes.
    pub fn most(rows: u64, end: u64) -> u64 {
        if rows == 0 || end == 0 {
            return 0;
        }
        // Distances add up to less than `end`: one in 128 of it take a second byte, one in 128² a third, and so on.
        let distances = rows.min(end).saturating_add(end / 127);
        1 + distances.min(number_bytes(end) + end.div_ceil(8))
    }

    fn is_set_of_bits(&self) -> bool {
        self.rows > 0 && self.bits() < self.distances
    }

    /// Bytes of the first id and of the set of bits.
    fn bits(&self) -> u64 {
        number_bytes(self.first) + (self.last - self.first).div_ceil(8)
    }
}

/// Encodes ascending, unique ids.
///
/// # Panics
///
/// If the ids do not ascend.
pub fn encode_ids(ids: &[u64]) -> Vec<u8> {
    let Some(&first) = ids.first() else { return Vec::new() };
    let listed = Listed::of(ids.iter().copied());
    let mut bytes = Vec::with_capacity(listed.bytes() as usize);
    if listed.is_set_of_bits() {
        bytes.push(BITS);
        put(&mut bytes, first);
        let start = bytes.len();
        bytes.resize(listed.bytes() as usize, 0);
        for at in ids[1..].iter().map(|id| id - first - 1) {
            bytes[start + (at / 8) as usize] |= 1 << (at % 8);
        }
    } else {
        bytes.push(DISTANCES);
        put(&mut bytes, first);
        ids.windows(2).for_each(|pair| put(&mut bytes, pair[1] - pair[0]));
    }
    bytes
}

/// Decodes what [`encode_ids`] made, at most `limit` ids. Takes only bytes that [`encode_ids`] could have made and
/// allocates at most 64 bytes for each byte given, whatever the limit.
///
/// # Errors
///
/// If the bytes are not what [`encode_ids`] makes, or hold more ids than `limit`.
pub fn decode_ids(bytes: &[u8], limit: usize) -> Result<Vec<u64>> {
    let (ids, is_set) = match bytes.first() {
        None => return Ok(Vec::new()),
        Some(&DISTANCES) => (from_distances(bytes, limit)?, false),
        Some(&BITS) => (from_bits(bytes, limit)?, true),
        Some(other) => return Err(bad(0, &format!("expected a form, 0 or 1, found {other}"))),
    };
    if Listed::of(ids.iter().copied()).is_set_of_bits() != is_set {
        return Err(bad(0, "expected the shorter form"));
    }
    Ok(ids)
}

/// Where ids stand in a list that has them; both ascend.
pub fn places_in<'a>(list: &'a [u64], ids: &'a [u64]) -> impl Iterator<Item = u64> + 'a {
    let mut place = 0;
    ids.iter().map(move |&id| {
        place += list[place..].iter().take_while(|&&before| before < id).count();
        place as u64
    })
}

fn bad(at: usize, what: &str) -> GraphError {
    GraphError::invalid(format!("list of ids: byte {at}: {what}"))
}

fn too_many(at: usize, limit: usize) -> GraphError {
    bad(at, &format!("expected at most {limit} ids"))
}

/// How many bytes a number takes.
fn number_bytes(number: u64) -> u64 {
    u64::from((u64::BITS - number.leading_zeros()).max(1).div_ceil(7))
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The number that begins at `at`, which goes on to the next.
fn take(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let (start, mut number) = (*at, 0u64);
    loop {
        let &byte = bytes.get(*at).ok_or_else(|| bad(*at, "expected the rest of a number, found the end"))?;
        let shift = 7 * (*at - start) as u32;
        if shift > 63 || shift == 63 && byte > 1 {
            return Err(bad(*at, "expected a number below 2^64"));
        }
        number |= u64::from(byte & 0x7f) << shift;
        *at += 1;
        if byte & 0x80 == 0 {
            if byte == 0 && *at - start > 1 {
                return Err(bad(start, "expected the shortest form of a number"));
            }
            return Ok(number);
        }
    }
}

fn from_distances(bytes: &[u8], limit: usize) -> Result<Vec<u64>> {
    let mut at = 1;
    let mut last = take(bytes, &mut at)?;
    if limit == 0 {
        return Err(too_many(1, limit));
    }
    let mut ids = Vec::with_capacity(bytes.len().min(limit));
    ids.push(last);
    while at < bytes.len() {
        let start = at;
        let step = take(bytes, &mut at)?;
        if step == 0 {
            return Err(bad(start, "expected ascending ids, found one twice"));
        }
        if ids.len() == limit {
            return Err(too_many(start, limit));
        }
        last = last.checked_add(step).ok_or_else(|| bad(start, "expected ids below 2^64"))?;
        ids.push(last);
    }
    Ok(ids)
}

fn from_bits(bytes: &[u8], limit: usize) -> Result<Vec<u64>> {
    let mut start = 1;
    let first = take(bytes, &mut start)?;
    let set = &bytes[start..];
    if set.last() == Some(&0) {
        return Err(bad(bytes.len() - 1, "expected the bit of the last id, found none"));
    }
    let rows = 1 + set.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    if rows > limit {
        return Err(too_many(start, limit));
    }
    let mut ids = Vec::with_capacity(rows);
    ids.push(first);
    for (place, &byte) in set.iter().enumerate() {
        let mut rest = byte;
        while rest != 0 {
            let step = 8 * place as u64 + u64::from(rest.trailing_zeros()) + 1;
            ids.push(first.checked_add(step).ok_or_else(|| bad(start + place, "expected ids below 2^64"))?);
            rest &= rest - 1;
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BITS, DISTANCES, Listed, decode_ids, encode_ids, places_in};

    /// Lists with dense stretches, with ids far apart, and with both.
    fn lists() -> impl Strategy<Value = Vec<u64>> {
        let near = |of: u64, most: usize| proptest::collection::btree_set(0..of, 0..most);
        let start = prop_oneof![Just(0u64), 0u64..20_000, Just(u64::MAX - 600)];
        let far = prop_oneof![Just(0usize), 0usize..20];
        let far = far.prop_flat_map(|most| proptest::collection::btree_set(any::<u64>(), 0..most + 1));
        (prop_oneof![near(500, 60), near(100, 100)], start, far).prop_map(|(near, start, far)| {
            let near = near.into_iter().map(|id| start + id).collect();
            far.union(&near).copied().collect()
        })
    }

    fn by_form(form: u8, rest: &[u8]) -> Vec<u8> {
        [&[form], rest].concat()
    }

    proptest! {
        #[test]
        fn ids_come_back_as_they_were(ids in lists()) {
            prop_assert_eq!(decode_ids(&encode_ids(&ids), ids.len()).unwrap(), ids.clone());
            if !ids.is_empty() {
                prop_assert!(decode_ids(&encode_ids(&ids), ids.len() - 1).is_err());
            }
        }

        #[test]
        fn the_length_of_a_list_is_known_without_the_list(ids in lists()) {
            let (listed, bytes) = (Listed::of(ids.iter().copied()), encode_ids(&ids).len() as u64);
            prop_assert_eq!((listed.rows(), listed.bytes()), (ids.len() as u64, bytes));
            if let Some(end) = ids.last().and_then(|last| last.checked_add(1)) {
                prop_assert!(bytes <= Listed::most(ids.len() as u64, end));
            }
        }

        /// Bounds of what training asks build on that.
        #[test]
        fn fewer_ids_and_their_places_among_fewer_take_at_most_a_byte_more(
            ids in lists(), kept in proptest::collection::vec(any::<[bool; 2]>(), 130),
        ) {
            let of = |which: &dyn Fn([bool; 2]) -> bool| -> Vec<u64> {
                ids.iter().zip(&kept).filter(|(_, kept)| which(**kept)).map(|(id, _)| *id).collect()
            };
            let length = |ids: &[u64]| Listed::of(ids.iter().copied()).bytes();
            let (asked, answered, both) = (of(&|kept| kept[0]), of(&|kept| kept[1]), of(&|kept| kept[0] && kept[1]));
            prop_assert!(length(&asked) <= length(&ids) + 1);
            let places = |list: &[u64], ids: &[u64]| Listed::of(places_in(list, ids)).bytes();
            prop_assert!(places(&asked, &both) <= places(&ids, &answered) + 1);
        }

        #[test]
        fn bytes_are_refused_or_are_the_only_bytes_for_their_ids(
            form in 0u8..3,
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0x7eu8..0x82, Just(0xff), Just(1)], 0..40),
        ) {
            let bytes = by_form(form, &bytes);
            if let Ok(ids) = decode_ids(&bytes, 1000) {
                prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert_eq!(encode_ids(&ids), bytes);
            }
        }

        #[test]
        fn places_are_those_of_the_ids(ids in lists(), kept in proptest::collection::vec(any::<bool>(), 130)) {
            let some: Vec<u64> = ids.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(id, _)| *id).collect();
            let found: Vec<u64> = places_in(&ids, &some).map(|place| ids[place as usize]).collect();
            prop_assert_eq!(found, some);
        }
    }

    #[test]
    fn ids_of_one_node_in_a_hundred_take_one_byte_each() {
        let ids: Vec<u64> = (1_000_000..1_001_000).map(|i| i * 100).collect();
        assert!(encode_ids(&ids).len() < ids.len() + 9);
        assert_eq!(decode_ids(&encode_ids(&[0, u64::MAX]), 2).unwrap(), [0, u64::MAX]);
    }

    #[test]
    fn dense_ids_take_a_bit_for_each_node_of_their_range() {
        for start in [0, 1_000_000_000, u64::MAX - 40_000] {
            for every in 1..=7 {
                let ids: Vec<u64> = (0..40_000 / every).map(|i| start + i * every).collect();
                let (bytes, range) = (encode_ids(&ids), ids[ids.len() - 1] - start);
                assert!(8.0 * (bytes.len() as f64) < 1.2 * range as f64 + 100.0, "{start} {every}: {}", bytes.len());
                assert_eq!(decode_ids(&bytes, ids.len()).unwrap(), ids);
            }
        }
    }

    #[test]
    fn lists_are_what_the_format_says() {
        assert!(encode_ids(&[]).is_empty());
        assert_eq!(encode_ids(&[0]), [DISTANCES, 0]);
        assert_eq!(encode_ids(&[300, 301, 1000]), [DISTANCES, 0xac, 2, 1, 0xbb, 5]);
        assert_eq!(encode_ids(&[7, 8]), [DISTANCES, 7, 1], "as long as bits");
        assert_eq!(encode_ids(&[7, 8, 9]), [BITS, 7, 0b11]);
        assert_eq!(encode_ids(&[300, 301, 303, 310]), [BITS, 0xac, 2, 0b101, 0b10]);
    }

    #[test]
    fn other_bytes_are_refused() {
        for (bytes, words) in [
            (&[2, 7, 0b11][..], "expected a form"),
            (&[DISTANCES], "found the end"),
            (&[DISTANCES, 7, 0x81], "found the end"),
            (&[DISTANCES, 7, 0], "found one twice"),
            (&[DISTANCES, 0x87, 0], "the shortest form"),
            (&[DISTANCES, 7, 1, 1], "the shorter form"),
            (&[BITS], "found the end"),
            (&[BITS, 7], "the shorter form"),
            (&[BITS, 7, 0b1], "the shorter form"),
            (&[BITS, 7, 0b11, 0], "the last id"),
            (&[BITS, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0b11], "below 2^64"),
        ] {
            let error = decode_ids(bytes, 100).unwrap_err().to_string();
            assert!(error.contains(words), "{bytes:?}: {error}");
        }
    }
}
