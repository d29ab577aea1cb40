//! The random numbers of stochastic rounding: cheap enough for one per value, and free of any state.

use laconic_key::Key;

/// The random numbers of one row.
///
/// A hash of 32 bits, so that a vector register holds as many of them as of values; [`Key`] itself works on 64 bits
/// with three multiplications. The row's key is split into the counter's start and a salt that enters halfway: two rows
/// whose counters overlap, as some of 10⁵ rows do, still differ.
#[derive(Debug, Clone, Copy)]
pub(super) struct Noise {
    start: u32,
    salt: u32,
}

impl Noise {
    /// The numbers of no row.
    pub const NONE: Noise = Noise { start: 0, salt: 0 };

    /// The numbers of the row with this key.
    #[inline(always)]
    pub fn new(row: Key) -> Noise {
        let bits = row.bits();
        Noise { start: bits as u32, salt: (bits >> 32) as u32 }
    }

    /// 32 bits for a column, the upper half for one value and the lower half for another. Wellons' "lowbias32" (2018):
    /// two rounds of multiply and shift.
    #[inline(always)]
    pub fn at(self, column: u32) -> u32 {
        let mut z = self.start.wrapping_add(column);
        z = (z ^ z >> 16).wrapping_mul(0x7feb_352d) ^ self.salt;
        z = (z ^ z >> 15).wrapping_mul(0x846c_a68b);
        z ^ z >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::Purpose;

    const ROWS: u64 = 512;
    const COLUMNS: u32 = 512;

    fn rows() -> impl Iterator<Item = Noise> {
        (0..ROWS).map(|row| Noise::new(Key::new(1, Purpose::Test).with(row)))
    }

    #[test]
    fn every_bit_is_fair_and_every_byte_is_uniform() {
        let n = ROWS as f64 * f64::from(COLUMNS);
        let mut ones = [0u32; 32];
        let mut counts = [[0u32; 256]; 4];
        for noise in rows() {
            for column in 0..COLUMNS {
                let bits = noise.at(column);
                for (bit, ones) in ones.iter_mut().enumerate() {
                    *ones += bits >> bit & 1;
                }
                for (byte, counts) in bits.to_le_bytes().into_iter().zip(&mut counts) {
                    counts[usize::from(byte)] += 1;
                }
            }
        }
        for ones in ones {
            assert!((f64::from(ones) - n / 2.0).abs() < 4.5 * n.sqrt() / 2.0, "{ones} of {n}");
        }
        for counts in counts {
            let chi: f64 = counts.iter().map(|&count| (f64::from(count) - n / 256.0).powi(2) / (n / 256.0)).sum();
            // 255 degrees of freedom: mean 255, standard deviation 22.6.
            assert!((chi - 255.0).abs() < 4.0 * 22.6, "{chi}");
        }
    }

    #[test]
    fn neighbouring_columns_and_rows_are_uncorrelated_in_every_bit() {
        let rows: Vec<Noise> = rows().collect();
        let n = f64::from(COLUMNS - 8) * (ROWS - 8) as f64;
        for (down, right) in [(0, 1), (0, 2), (0, 8), (1, 0), (1, 1), (8, 0)] {
            let mut same = [0u32; 32];
            for row in 0..(ROWS - 8) as usize {
                for column in 0..COLUMNS - 8 {
                    let differing = rows[row].at(column) ^ rows[row + down].at(column + right);
                    for (bit, same) in same.iter_mut().enumerate() {
                        *same += 1 - (differing >> bit & 1);
                    }
                }
            }
            for same in same {
                assert!((f64::from(same) - n / 2.0).abs() < 4.5 * n.sqrt() / 2.0, "{down}, {right}: {same} of {n}");
            }
        }
    }

    #[test]
    fn rows_whose_counters_overlap_differ() {
        let row = Noise { start: 5, salt: 7 };
        let shifted = Noise { start: 4, salt: 8 };
        let same = (0..10_000).filter(|&column| row.at(column) >> 16 == shifted.at(column + 1) >> 16).count();
        assert!(same < 5, "{same} of 10,000 equal");
    }
}
