//! Counter-based randomness.
//!
//! Nothing in Laconic owns a random number generator. A random number is a pure function of a [`Key`], and a key is
//! built by folding in what the number is *for*: the run's seed, a [`Purpose`], then round, layer, global node id,
//! column. So two ends of a link agree on a mask without sending it, and a dropout mask does not depend on which worker
//! holds the node, on the number of threads, or on what was drawn before.
//!
//! ```
//! use laconic_key::{Key, Purpose};
//! let dropout = Key::new(7, Purpose::Dropout).with(3).with(1); // round 3, layer 1
//! let of_node = dropout.with(4711);
//! assert_eq!(of_node.with(5).bits(), Key::new(7, Purpose::Dropout).with(3).with(1).with(4711).with(5).bits());
//! assert!((0.0..1.0).contains(&of_node.unit()));
//! ```

/// What a random number is for. Two purposes never share a stream, whatever else their keys have in common.
///
/// The numbers are part of every result: changing one changes every run that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u64)]
pub enum Purpose {
    /// Initial values of parameters.
    Initialise = 1,
    /// Dropout masks on a layer's input rows.
    Dropout = 2,
    /// Dropout masks on frozen aggregates of neighbours.
    AggregateDropout = 3,
    /// Assignment of nodes to parts.
    Partition = 4,
    /// Random train, validation and test splits.
    Split = 5,
    /// Generated graphs: which edges exist.
    GraphEdges = 6,
    /// Generated graphs: classes, degrees and other properties of nodes.
    GraphNodes = 7,
    /// Generated graphs: feature values.
    GraphFeatures = 8,
    /// Stochastic rounding in codecs.
    Rounding = 9,
    /// Column masks in codecs.
    Mask = 10,
    /// Which halo rows travel.
    Selection = 11,
    /// Numbers drawn by tests.
    Test = 12,
    /// Bits of single messages, where they are drawn.
    Width = 13,
    /// Signs of differences, where a permutation test cannot try all.
    Signs = 14,
    /// Which in-edges of a node a mini-batch reads.
    Neighbours = 15,
    /// Which batch of an epoch a training node, or a cluster of nodes, is in.
    Batches = 16,
    /// Which edges are held out.
    EdgeSplit = 17,
    /// Pairs of nodes that stand for edges that are not.
    Negatives = 18,
    /// Orders of a worker's own rows.
    RowOrder = 19,
    /// Which values differ in their last bit, where it is asked what rounding does.
    LastBits = 20,
    /// Directions that gradients of matrices are multiplied by at first.
    Directions = 21,
}

/// A point in the space of random streams; see the crate documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key(u64);

impl Key {
    /// The root key of one purpose in the run with this seed.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Key(mix(seed ^ 0x1ac0_71c5_0000_0000)).with(purpose as u64)
    }

    /// Folds one more coordinate (round, layer, node, column, …) into the key. Order matters.
    #[inline]
    #[must_use]
    pub fn with(self, coordinate: u64) -> Self {
        Key(mix(self.0.rotate_left(23) ^ mix(coordinate.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// 64 uniform bits, the same for the same key.
    #[inline]
    pub fn bits(self) -> u64 {
        mix(self.0 ^ 0x94d0_49bb_1331_11eb)
    }

    /// The 64 uniform bits at `index` of a stream of their own (SplitMix64): for those who draw many numbers from one
    /// key, at a third of what `with(index).bits()` costs.
    #[inline]
    pub fn number(self, index: u64) -> u64 {
        mix(self.0.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    #[inline]
    pub fn unit(self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform integer in `0..bound`. The bias is below `bound / 2^64`.
    ///
    /// # Panics
    ///
    /// If `bound` is 0.
    #[inline]
    pub fn below(self, bound: u64) -> u64 {
        assert!(bound > 0, "no integer lies below 0");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A standard normal number (Box–Muller, one of the pair). `libm` rather than the
    /// system's mathematics library, so that every machine gets the same bits.
    pub fn normal(self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.with(0).unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.with(1).unit())
    }

    /// Puts `items` into a uniformly random order (Fisher–Yates).
    pub fn shuffle<T>(self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.with(last as u64).below(last as u64 + 1) as usize);
        }
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, 2014) in the variant called Mix13: a bijection whose output bits
/// each depend on every input bit.
#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made by another program, in Python, from the description of keys: streams are part of every result.
    #[test]
    fn streams_are_those_that_runs_were_made_with() {
        let of = |seed, purpose, coordinates: &[u64]| {
            coordinates.iter().fold(Key::new(seed, purpose), |key, &c| key.with(c))
        };
        for (key, bits, below) in [
            (of(0, Purpose::Mask, &[]), 0x07e6_f56f_faf1_fd73, 30),
            (of(7, Purpose::Dropout, &[3, 1, 4711, 5]), 0x038b_f680_6e3f_5f73, 13),
            (of(u64::MAX, Purpose::Test, &[u64::MAX]), 0xd847_dc54_2f0e_2332, 844),
        ] {
            assert_eq!((key.bits(), key.below(1000)), (bits, below));
        }
        let mut items = [0, 1, 2, 3, 4, 5, 6, 7];
        Key::new(5, Purpose::Test).shuffle(&mut items);
        assert_eq!(items, [7, 2, 1, 6, 5, 4, 0, 3]);
    }

    /// The figures are those of the published SplitMix64 (`java.util.SplittableRandom`) for the seed 1234567.
    #[test]
    fn numbers_of_a_key_are_those_of_split_mix_64() {
        let numbers: Vec<u64> = (0..5).map(|index| Key(1_234_567).number(index)).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(numbers, published);
    }

    #[test]
    fn order_and_purpose_separate_streams() {
        let a = Key::new(1, Purpose::Test);
        assert_ne!(a.with(1).with(2).bits(), a.with(2).with(1).bits());
        assert_ne!(a.bits(), Key::new(1, Purpose::Dropout).bits());
        assert_ne!(a.bits(), Key::new(2, Purpose::Test).bits());
    }

    #[test]
    fn unit_numbers_have_the_moments_of_the_uniform_law() {
        let key = Key::new(3, Purpose::Test);
        let n = 200_000;
        let (mut sum, mut square) = (0.0, 0.0);
        for i in 0..n {
            let u = key.with(i).unit();
            sum += u;
            square += u * u;
        }
        // Standard errors: 0.00065 of the mean and 0.00067 of the second moment; the bounds are 5 of them.
        assert!((sum / n as f64 - 0.5).abs() < 0.0033);
        assert!((square / n as f64 - 1.0 / 3.0).abs() < 0.0034);
    }

    #[test]
    fn consecutive_coordinates_are_uncorrelated_in_every_bit() {
        let key = Key::new(9, Purpose::Test);
        let n = 40_000u64;
        for bit in 0..64 {
            let same = (0..n).filter(|&i| (key.with(i).bits() ^ key.with(i + 1).bits()) >> bit & 1 == 0).count();
            // A fair coin: 5 standard deviations are 5 * sqrt(n) / 2 = 500.
            assert!((same as i64 - n as i64 / 2).abs() < 500, "bit {bit}: {same} of {n} equal");
        }
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let key = Key::new(4, Purpose::Test);
        let n = 100_000;
        let values: Vec<f64> = (0..n).map(|i| key.with(i).normal()).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.016 && (variance - 1.0).abs() < 0.023, "mean {mean}, variance {variance}");
    }

    #[test]
    fn shuffle_is_a_permutation_and_each_place_is_equally_likely() {
        let mut first_in_last_place = 0;
        for round in 0..6000 {
            let mut items = [0, 1, 2];
            Key::new(5, Purpose::Test).with(round).shuffle(&mut items);
            let mut sorted = items;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            first_in_last_place += usize::from(items[2] == 0);
        }
        assert!((1800..2200).contains(&first_in_last_place), "{first_in_last_place} of 6000");
    }
}
