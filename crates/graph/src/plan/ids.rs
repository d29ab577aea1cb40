//! Lists of ids as bytes, for the exchange of ids when a run starts.

use crate::error::{GraphError, Result};

/// Encodes ascending, unique ids: the first, then each one's distance to the one before, as LEB128 variable-length
/// integers. One byte an id where more than one node in 128 is listed.
///
/// # Panics
///
/// If the ids do not ascend.
pub fn encode_ids(ids: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ids.len() + 9);
    let mut before = None;
    for &id in ids {
        let mut rest = match before {
            None => id,
            Some(before) => {
                assert!(before < id, "ids must ascend: {id} follows {before}");
                id - before
            }
        };
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        before = Some(id);
    }
    bytes
}

/// Decodes what [`encode_ids`] made, at most `limit` ids. Takes only bytes that [`encode_ids`] could have made and
/// allocates at most eight bytes for each byte given.
///
/// # Errors
///
/// If the bytes are not what [`encode_ids`] makes, or hold more ids than `limit`.
pub fn decode_ids(bytes: &[u8], limit: usize) -> Result<Vec<u64>> {
    let bad = |at: usize, what: &str| GraphError::invalid(format!("list of ids: byte {at}: {what}"));
    let mut ids: Vec<u64> = Vec::with_capacity(bytes.len().min(limit));
    let mut at = 0;
    while at < bytes.len() {
        let (start, mut step) = (at, 0u64);
        loop {
            let &byte = bytes.get(at).ok_or_else(|| bad(at, "expected the rest of a number, found the end"))?;
            let shift = 7 * (at - start) as u32;
            if shift > 63 || shift == 63 && byte > 1 {
                return Err(bad(at, "expected a number below 2^64"));
            }
            step |= u64::from(byte & 0x7f) << shift;
            at += 1;
            if byte & 0x80 == 0 {
                if byte == 0 && at - start > 1 {
                    return Err(bad(start, "expected the shortest form of a number"));
                }
                break;
            }
        }
        let id = match ids.last() {
            None => step,
            Some(_) if step == 0 => return Err(bad(start, "expected ascending ids, found one twice")),
            Some(before) => before.checked_add(step).ok_or_else(|| bad(start, "expected ids below 2^64"))?,
        };
        if ids.len() == limit {
            return Err(bad(start, &format!("expected at most {limit} ids")));
        }
        ids.push(id);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{decode_ids, encode_ids};

    proptest! {
        #[test]
        fn ids_come_back_as_they_were(
            near in proptest::collection::btree_set(0u64..500, 0..60),
            far in proptest::collection::btree_set(any::<u64>(), 0..20),
        ) {
            let ids: Vec<u64> = near.union(&far).copied().collect();
            prop_assert_eq!(decode_ids(&encode_ids(&ids), ids.len()).unwrap(), ids.clone());
            if !ids.is_empty() {
                prop_assert!(decode_ids(&encode_ids(&ids), ids.len() - 1).is_err());
            }
        }

        #[test]
        fn bytes_are_refused_or_are_the_only_bytes_for_their_ids(
            bytes in proptest::collection::vec(prop_oneof![any::<u8>(), 0x7eu8..0x82, Just(0xff)], 0..40),
        ) {
            if let Ok(ids) = decode_ids(&bytes, 1000) {
                prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
                prop_assert_eq!(encode_ids(&ids), bytes);
            }
        }
    }

    #[test]
    fn dense_ids_take_one_byte_each() {
        let ids: Vec<u64> = (1_000_000..1_001_000).map(|i| i * 100).collect();
        assert!(encode_ids(&ids).len() < ids.len() + 9);
        assert_eq!(decode_ids(&encode_ids(&[0, u64::MAX]), 2).unwrap(), [0, u64::MAX]);
    }
}
