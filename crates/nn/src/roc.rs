//! The area under the ROC curve: exact, from scores; or from counts in fixed bins of the score, which add up over
//! workers.

/// The bins that a score may fall into.
pub const BINS: usize = 2 * SIDE;

/// Bins of one sign: [`OCTAVES`] octaves of `1 << BITS` bins.
const SIDE: usize = OCTAVES << BITS;
const OCTAVES: usize = 32;
/// Bits of the mantissa that tell bins of an octave apart.
const BITS: u32 = 6;
/// What is added to a score's size before its octave is taken, so that bins near 0 are of one width.
const OFFSET: f32 = 1.0 / 256.0;

/// The bin of a score: a larger score never falls into a lower bin. A bin is at most a 64th of the score's size and
/// 1/256 wide; the last one on each side begins near 16 million.
pub fn bin(score: f32) -> usize {
    let octaves = |value: f32| (value.to_bits() >> (f32::MANTISSA_DIGITS - 1 - BITS)) as usize;
    let size = (octaves(score.abs() + OFFSET) - octaves(OFFSET)).min(SIDE - 1);
    if score < 0.0 { SIDE - 1 - size } else { SIDE + size }
}

/// What the counts in a range of bins say about the area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Binned {
    /// Scores of things that are.
    pub positives: u64,
    /// Scores of things that are not.
    pub negatives: u64,
    /// Pairs of one of each: 2 where the one that is has the larger bin, 1 where both share one.
    pub ordered: u128,
    /// Those of them that share a bin.
    pub tied: u128,
}

impl Binned {
    /// Of consecutive bins, each with its numbers of negatives and positives. Sums stay at the largest number there is.
    pub fn of(bins: impl IntoIterator<Item = [u64; 2]>) -> Binned {
        bins.into_iter().fold(Binned::default(), |below, [negatives, positives]| {
            let tied = u128::from(positives).saturating_mul(negatives.into());
            below.then(Binned { positives, negatives, ordered: tied, tied })
        })
    }

    /// These bins and, above them, those.
    #[must_use]
    pub fn then(self, above: Binned) -> Binned {
        let across = u128::from(above.positives).saturating_mul(self.negatives.into()).saturating_mul(2);
        Binned {
            positives: self.positives.saturating_add(above.positives),
            negatives: self.negatives.saturating_add(above.negatives),
            ordered: self.ordered.saturating_add(above.ordered).saturating_add(across),
            tied: self.tied.saturating_add(above.tied),
        }
    }

    /// The area with pairs within a bin counted half; `None` unless both truths occur. The exact area is off it by
    /// [`Binned::off`] at most.
    pub fn area(&self) -> Option<f64> {
        (self.pairs() > 0.0).then(|| self.ordered as f64 / 2.0 / self.pairs())
    }

    /// How far the exact area may be from [`Binned::area`], where there is one: half the share of pairs in one bin.
    pub fn off(&self) -> f64 {
        if self.pairs() > 0.0 { self.tied as f64 / 2.0 / self.pairs() } else { 0.0 }
    }

    fn pairs(&self) -> f64 {
        self.positives as f64 * self.negatives as f64
    }
}

/// The area under the ROC curve of scores with their truth, ties counted half; `None` unless both truths occur.
/// Sorts `scored`.
pub fn roc_auc(scored: &mut [(f32, bool)]) -> Option<f64> {
    scored.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let positives = scored.iter().filter(|s| s.1).count() as f64;
    let negatives = scored.len() as f64 - positives;
    let (mut below, mut area, mut at) = (0.0, 0.0, 0);
    while at < scored.len() {
        // A score that is not a number equals none, not even itself.
        let end = at + 1 + scored[at + 1..].iter().take_while(|s| s.0 == scored[at].0).count();
        let up = scored[at..end].iter().filter(|s| s.1).count() as f64;
        let down = (end - at) as f64 - up;
        area += up * (below + down / 2.0);
        below += down;
        at = end;
    }
    (positives > 0.0 && negatives > 0.0).then(|| area / (positives * negatives))
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    /// Pair by pair, in the words of the definition; `share` says what a pair counts for, 1, 0.5 or 0.
    fn by_pairs(scored: &[(f32, bool)], share: impl Fn(f32, f32) -> f64) -> f64 {
        let (mut pairs, mut right) = (0.0, 0.0);
        for up in scored.iter().filter(|s| s.1) {
            for down in scored.iter().filter(|s| !s.1) {
                pairs += 1.0;
                right += share(up.0, down.0);
            }
        }
        right / pairs
    }

    fn exact(up: f32, down: f32) -> f64 {
        if up > down { 1.0 } else { f64::from(u8::from(up == down)) / 2.0 }
    }

    fn binned(scored: &[(f32, bool)]) -> (Vec<[u64; 2]>, Binned) {
        let mut bins = vec![[0; 2]; BINS];
        scored.iter().for_each(|&(score, truth)| bins[bin(score)][usize::from(truth)] += 1);
        let all = Binned::of(bins.iter().copied());
        (bins, all)
    }

    /// Scores of two classes: normal, `apart` standard deviations apart, times `scale`, from `centre` on.
    fn normal(number: u64, rows: u64, [apart, scale, centre]: [f32; 3]) -> Vec<(f32, bool)> {
        let score = |row: u64| {
            let key = Key::new(number, Purpose::Dropout).with(row);
            let truth = key.with(2).unit() < 0.2;
            (centre + scale * (key.normal() as f32 + if truth { apart } else { 0.0 }), truth)
        };
        (0..rows).map(score).collect()
    }

    #[test]
    fn auc_counts_ordered_pairs_and_ties_half() {
        let mut scored = vec![(0.9, true), (0.8, false), (0.8, true), (0.1, false), (0.3, true), (0.3, false)];
        let expected = by_pairs(&scored, exact);
        assert_eq!(roc_auc(&mut scored), Some(expected));
        assert_eq!(roc_auc(&mut [(1.0, true)]), None);
        assert_eq!(Binned::of([[0, 1], [0, 2]]).area(), None);
    }

    #[test]
    fn a_larger_score_never_falls_into_a_lower_bin_and_bins_are_as_narrow_as_they_say() {
        let sizes: Vec<f32> =
            (0..70_000).map(|step: u32| f32::from_bits(step << 15)).take_while(|s| s.is_finite()).collect();
        let scores = sizes.iter().rev().map(|size| -size).chain(sizes.iter().copied());
        let scores: Vec<f32> = scores.chain([f32::MAX, f32::INFINITY]).collect();
        for two in scores.windows(2).take(scores.len() - 3) {
            assert!(two[0] <= two[1] && bin(two[0]) <= bin(two[1]), "{two:?}");
        }
        assert_eq!((bin(f32::NEG_INFINITY), bin(-1e30), bin(f32::INFINITY), bin(1e30)), (0, 0, BINS - 1, BINS - 1));
        assert_eq!(bin(-0.0), bin(0.0));
        assert!(bin(f32::NAN) < BINS);
        for size in sizes.into_iter().filter(|size| *size < 1e7) {
            let width = (size + OFFSET) / 64.0;
            for score in [size, -size] {
                assert_ne!(bin(score), bin(score + 1.01 * width), "{score}: a bin is {width} wide at most");
            }
        }
    }

    #[test]
    fn counts_in_bins_give_the_area_of_pairs_of_bins_and_the_exact_one_within_the_bound() {
        let cases = [
            // Ordinary logits; hardly trained ones; saturated ones; a sum over many neighbours; beyond all bins.
            ([1.0, 1.0, 0.0], 1e-4),
            ([0.3, 1e-3, 0.0], 5e-3),
            ([2.0, 1.0, 9.0], 2e-3),
            ([0.5, 1e4, -3e4], 2e-3),
            ([1.0, 1e30, 0.0], 0.5),
            ([0.0, 0.0, 3.0], 0.0),
        ];
        for (number, (shape, near)) in cases.into_iter().enumerate() {
            let mut scored = normal(number as u64, 1200, shape);
            let (bins, all) = binned(&scored);
            let of_bins = by_pairs(&scored, |up, down| exact(bin(up) as f32, bin(down) as f32));
            let area = all.area().expect("both truths");
            assert!((area - of_bins).abs() < 1e-12, "{shape:?}: {area} against {of_bins}");
            let exact = roc_auc(&mut scored).expect("both truths");
            let within: u64 = bins.iter().map(|[negatives, positives]| negatives * positives).sum();
            let bound = within as f64 / 2.0 / (all.positives as f64 * all.negatives as f64);
            assert_eq!((all.off(), all.tied), (bound, within.into()), "{shape:?}");
            assert!((area - exact).abs() <= bound + 1e-12, "{shape:?}: {area} against {exact}, bound {bound}");
            assert!((area - exact).abs() <= near, "{shape:?}: {area} against {exact}");
        }
    }

    #[test]
    fn scores_that_are_no_numbers_have_an_end() {
        let mut scored = [(f32::NAN, true), (1.0, false), (f32::NAN, false), (2.0, true)];
        assert!(roc_auc(&mut scored).is_some_and(|area| (0.0..=1.0).contains(&area)));
    }

    #[test]
    fn ranges_of_bins_can_be_counted_apart() {
        let (bins, all) = binned(&normal(9, 500, [1.0, 2.0, 0.0]));
        for cuts in [[0, 0], [1, 4095], [1000, 2100], [2048, BINS]] {
            let [low, high] = cuts;
            let ranges = [&bins[..low], &bins[low..high], &bins[high..]];
            let joined =
                ranges.map(|range| Binned::of(range.iter().copied())).into_iter().fold(Binned::default(), Binned::then);
            assert_eq!(joined, all);
        }
        let most = Binned { positives: u64::MAX, negatives: u64::MAX, ordered: u128::MAX, tied: u128::MAX };
        assert_eq!(most.then(most), most, "numbers that nobody can have counted do no harm");
    }
}
