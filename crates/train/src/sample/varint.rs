//! Numbers in the questions and answers about draws: LEB128, ids as distances.

use laconic_wire::WireError;

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends how many ids there are, and the ids, which must not descend.
pub(super) fn put_ids(bytes: &mut Vec<u8>, ids: impl ExactSizeIterator<Item = u64>) {
    put(bytes, ids.len() as u64);
    let mut before = 0;
    for id in ids {
        put(bytes, id - before);
        before = id;
    }
}

/// Reads numbers that a peer sent.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The next number.
    ///
    /// # Errors
    /// If there is none.
    pub fn number(&mut self) -> Result<u64, WireError> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let Some((&byte, rest)) = self.rest.split_first() else { break };
            self.rest = rest;
            if shift == 63 && byte > 1 {
                break;
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(WireError::malformed("expected a number of a question about draws, found something else"))
    }

    /// The next number, at most `most`.
    ///
    /// # Errors
    /// If there is none, or a larger one.
    pub fn at_most(&mut self, most: u64) -> Result<u64, WireError> {
        let number = self.number()?;
        if number > most {
            return Err(WireError::malformed(format!("expected a number up to {most}, found {number}")));
        }
        Ok(number)
    }

    /// What [`put_ids`] wrote.
    ///
    /// # Errors
    /// If it is something else.
    pub fn ids(&mut self) -> Result<Vec<u64>, WireError> {
        // Each takes a byte at least.
        let count = self.at_most(self.rest.len() as u64)?;
        let mut before = 0u64;
        let mut next = || {
            let id = before.checked_add(self.number()?);
            before = id.ok_or_else(|| WireError::malformed("ids beyond 2^64"))?;
            Ok(before)
        };
        (0..count).map(|_| next()).collect()
    }

    /// The next four bytes as a number that is finite.
    ///
    /// # Errors
    /// If there are none, or they are something else.
    pub fn float(&mut self) -> Result<f32, WireError> {
        let Some((bytes, rest)) = self.rest.split_first_chunk::<4>() else {
            return Err(WireError::malformed("expected four bytes of a number, found the end"));
        };
        self.rest = rest;
        let value = f32::from_le_bytes(*bytes);
        if value.is_finite() { Ok(value) } else { Err(WireError::malformed("a number that is not finite")) }
    }

    /// Refuses what is left.
    ///
    /// # Errors
    /// If there is anything.
    pub fn finish(self) -> Result<(), WireError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(WireError::malformed(format!("{left} bytes after the last number"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Reader, put, put_ids};

    #[test]
    fn numbers_come_back_and_what_is_no_number_is_refused() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut bytes = Vec::new();
        numbers.iter().for_each(|&number| put(&mut bytes, number));
        put_ids(&mut bytes, [3u64, 3, 900, u64::MAX].into_iter());
        let mut reader = Reader::new(&bytes);
        assert!(numbers.iter().all(|&number| reader.number().is_ok_and(|read| read == number)));
        assert_eq!(reader.ids().expect("they were written"), [3, 3, 900, u64::MAX]);
        reader.finish().expect("that is all");
        for bad in [&[][..], &[0x80], &[0xff; 10], &[0xff; 11]] {
            assert!(Reader::new(bad).number().is_err());
        }
        assert!(Reader::new(&[200, 1, 1]).ids().is_err(), "more ids than bytes");
        assert!(Reader::new(&[2, 1]).ids().is_err(), "the end is missing");
    }
}
