//! Numbers of any count of bits.

/// Bits one behind the other, the first in the lowest of the first byte.
#[derive(Default)]
pub(super) struct Bits<'a> {
    from: &'a [u8],
    into: Vec<u8>,
    held: u128,
    count: u32,
}

impl<'a> Bits<'a> {
    /// Those of bytes.
    pub fn of(from: &'a [u8]) -> Bits<'a> {
        Bits { from, ..Bits::default() }
    }

    /// Adds the lowest `bits` of a value, which has no others.
    pub fn push(&mut self, value: u64, bits: u32) {
        self.held |= u128::from(value) << self.count;
        self.count += bits;
        while self.count >= 8 {
            self.into.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// All of them, the last byte filled up with zeros.
    pub fn bytes(mut self) -> Vec<u8> {
        if self.count > 0 {
            self.into.push(self.held as u8);
        }
        self.into
    }

    /// The next `bits`; `None` where there are fewer.
    pub fn take(&mut self, bits: u32) -> Option<u64> {
        while self.count < bits {
            let (&byte, rest) = self.from.split_first()?;
            self.held |= u128::from(byte) << self.count;
            (self.from, self.count) = (rest, self.count + 8);
        }
        let value = (self.held & ((1u128 << bits) - 1)) as u64;
        self.held >>= bits;
        self.count -= bits;
        Some(value)
    }
}
