//! How high the edges that are rank among those that are not: mean reciprocal rank, Hits@K, in the definitions of the
//! Open Graph Benchmark; recall@k and nDCG@k of queries with one right answer.
//!
//! Two ways to compare are in use. Where each edge that is comes with negatives of its own, as in ogbl-citation2, it
//! has a rank among them ([`Ranks`]). Where all share one pool of negatives, as in ogbl-collab and ogbl-ppa, it is a
//! hit with a score above the K-th best of the pool ([`Best`]). Both are tallies: those of several workers add up.

/// The rank of a score among negatives, 1 for the best. Ties count against the edge that is, and so does what is no
/// number on either side.
pub fn rank(positive: f32, negatives: &[f32]) -> usize {
    1 + negatives
        .iter()
        .filter(|&&negative| !matches!(positive.partial_cmp(&negative), Some(std::cmp::Ordering::Greater)))
        .count()
}

/// Negatives that all edges are ranked among, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pool {
    /// Scores that are numbers, ascending.
    ascending: Vec<f32>,
    /// How many are none.
    nameless: usize,
}

impl Pool {
    /// A pool of these scores, in any order.
    pub fn new(mut scores: Vec<f32>) -> Pool {
        let all = scores.len();
        scores.retain(|score| !score.is_nan());
        scores.sort_unstable_by(f32::total_cmp);
        Pool { nameless: all - scores.len(), ascending: scores }
    }

    /// [`rank`] among all of them.
    pub fn rank(&self, positive: f32) -> usize {
        let below = self.ascending.partition_point(|&negative| negative < positive);
        1 + self.nameless + self.ascending.len() - below
    }
}

/// What is counted over edges with negatives of their own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ranks {
    /// How many edges were ranked.
    pub edges: f64,
    /// Σ 1 / rank.
    pub reciprocal: f64,
    /// Per k asked for, how many have a rank of k at most.
    pub within: Vec<f64>,
    /// Per k asked for, Σ 1 / log2(1 + rank) over these: each edge's discounted cumulative gain, where it alone is
    /// right and so the best that there can be is 1.
    pub gains: Vec<f64>,
}

impl Ranks {
    /// Counts nothing yet, for these k.
    pub fn new(tops: &[usize]) -> Ranks {
        Ranks { within: vec![0.0; tops.len()], gains: vec![0.0; tops.len()], ..Ranks::default() }
    }

    /// Counts an edge of this rank; `tops` are the same k as in the beginning.
    pub fn add(&mut self, rank: usize, tops: &[usize]) {
        self.edges += 1.0;
        self.reciprocal += 1.0 / rank as f64;
        let sums = self.within.iter_mut().zip(&mut self.gains).zip(tops);
        for ((count, gain), _) in sums.filter(|(_, top)| rank <= **top) {
            *count += 1.0;
            *gain += (1.0 + rank as f64).log2().recip();
        }
    }

    /// The numbers that [`Ranks::flatten`] appends for so many k.
    pub const fn flat_len(tops: usize) -> usize {
        2 + 2 * tops
    }

    /// Appends the tally to a flat vector that can be summed over workers.
    pub fn flatten(&self, into: &mut Vec<f64>) {
        into.extend([self.edges, self.reciprocal]);
        into.extend(self.within.iter().chain(&self.gains));
    }

    /// Reads back what [`Ranks::flatten`] wrote, or a sum of such.
    ///
    /// # Panics
    ///
    /// If there are fewer than two numbers.
    pub fn unflatten(flat: &[f64]) -> Ranks {
        let (within, gains) = flat[2..].split_at((flat.len() - 2) / 2);
        Ranks { edges: flat[0], reciprocal: flat[1], within: within.to_vec(), gains: gains.to_vec() }
    }

    /// The mean reciprocal rank; `None` without edges.
    pub fn mean_reciprocal(&self) -> Option<f64> {
        self.share(self.reciprocal)
    }

    /// The share of edges with a rank of k at most, the `index`-th that was asked for; `None` without edges.
    pub fn recall(&self, index: usize) -> Option<f64> {
        self.share(self.within[index])
    }

    /// The mean gain of edges up to rank k, the `index`-th that was asked for; `None` without edges.
    pub fn gain(&self, index: usize) -> Option<f64> {
        self.share(self.gains[index])
    }

    fn share(&self, count: f64) -> Option<f64> {
        (self.edges > 0.0).then(|| count / self.edges)
    }
}

/// The best K scores of a pool. What is no number counts as better than all, so that it is nobody's advantage.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// How many are kept.
    pub top: usize,
    /// The best of those seen, in no order that means anything.
    scores: Vec<f32>,
}

/// From the best to the worst.
fn descending(a: &f32, b: &f32) -> std::cmp::Ordering {
    let key = |score: &f32| if score.is_nan() { f32::INFINITY } else { *score };
    key(b).total_cmp(&key(a))
}

impl Best {
    /// Keeps this many.
    pub fn new(top: usize) -> Best {
        Best { top, scores: Vec::new() }
    }

    /// Sees more of the pool.
    pub fn extend(&mut self, scores: impl IntoIterator<Item = f32>) {
        // Thinned out once as many again have come: a score costs a comparison or two on average.
        let room = 2 * self.top.max(512);
        for score in scores {
            self.scores.push(score);
            if self.scores.len() >= room {
                self.thin();
            }
        }
        self.thin();
    }

    fn thin(&mut self) {
        if self.scores.len() > self.top {
            if self.top > 0 {
                self.scores.select_nth_unstable_by(self.top - 1, descending);
            }
            self.scores.truncate(self.top);
        }
    }

    /// The scores that are kept.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// The K-th best; `None` where fewer have been seen.
    pub fn threshold(&self) -> Option<f32> {
        let kth = self.scores.iter().copied().max_by(descending)?;
        (self.scores.len() == self.top).then_some(if kth.is_nan() { f32::INFINITY } else { kth })
    }

    /// How many of these scores lie strictly above the K-th best of the pool; `None` where there is no such. The Open
    /// Graph Benchmark's evaluator counts all of them then, so that Hits@100 against 60 pairs is 1 whatever they are.
    pub fn hits(&self, positives: &[f32]) -> Option<usize> {
        let threshold = self.threshold()?;
        Some(positives.iter().filter(|&&score| score > threshold).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::{Key, Purpose};

    /// Scores with so few values that ties are everywhere.
    fn scores(stream: u64, count: usize) -> Vec<f32> {
        let key = Key::new(stream, Purpose::Test);
        (0..count as u64).map(|i| key.with(i).below(7) as f32 * 0.25 - 0.5).collect()
    }

    #[test]
    fn ties_count_against_the_edge_that_is() {
        assert_eq!(rank(0.5, &[0.5, 0.4, 0.6]), 3);
        let mut ranks = Ranks::new(&[1, 3]);
        ranks.add(3, &[1, 3]);
        assert_eq!(
            (ranks.mean_reciprocal(), ranks.recall(0), ranks.recall(1)),
            (Some(1.0 / 3.0), Some(0.0), Some(1.0))
        );
        assert_eq!((ranks.gain(0), ranks.gain(1)), (Some(0.0), Some(0.5)));
        let none = Ranks::new(&[1]);
        assert_eq!([none.mean_reciprocal(), none.recall(0), none.gain(0)], [None; 3]);
        assert_eq!(rank(0.5, &[]), 1);
        assert_eq!(rank(f32::NAN, &[0.0, 1.0]), 3);
        assert_eq!(rank(1.0, &[f32::NAN, 0.0]), 2);
    }

    #[test]
    fn ranks_in_a_pool_in_order_are_those_of_comparing_with_each() {
        let mut negatives = scores(5, 200);
        negatives.extend([f32::NAN, -0.0, 0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN]);
        let pool = Pool::new(negatives.clone());
        let edges = scores(6, 50).into_iter().chain([f32::NAN, -0.0, 1e9, -1e9, f32::INFINITY, f32::NEG_INFINITY]);
        for edge in edges {
            assert_eq!(pool.rank(edge), rank(edge, &negatives), "{edge}");
            assert_eq!(Pool::default().rank(edge), 1);
        }
    }

    /// OGB's `_eval_mrr` with the pessimistic of its two ranks, in words that share nothing with the tallies: all
    /// scores of an edge sorted, the negatives of a tie in front.
    #[test]
    fn ranks_over_workers_are_those_of_sorting_everything() {
        let (tops, negatives) = ([1, 3, 10], 30);
        let (positive, negative) = (scores(1, 500), scores(2, 500 * negatives));
        let (mut reciprocal, mut within, mut gains) = (0.0, [0.0; 3], [0.0; 3]);
        for (edge, &score) in positive.iter().enumerate() {
            let mut all: Vec<(f32, bool)> =
                negative[edge * negatives..][..negatives].iter().map(|&s| (s, false)).collect();
            all.push((score, true));
            all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            let place = all.iter().position(|(_, is)| *is).expect("it is among them") + 1;
            reciprocal += 1.0 / place as f64;
            tops.iter().zip(&mut within).for_each(|(&top, count)| *count += f64::from(u8::from(place <= top)));
            // The gain of each place of the list as the definition has it: 2^relevance - 1 by log2(1 + place).
            for (top, gain) in tops.into_iter().zip(&mut gains) {
                let gained =
                    |(of, place): (&(f32, bool), u32)| (2f64.powi(of.1.into()) - 1.0) / f64::from(place + 1).log2();
                *gain += all.iter().zip(1..).take(top).map(gained).sum::<f64>();
            }
        }
        let mut flat = vec![0.0; Ranks::flat_len(3)];
        for worker in 0..4 {
            let mut ranks = Ranks::new(&tops);
            for edge in (worker..500).step_by(4) {
                ranks.add(rank(positive[edge], &negative[edge * negatives..][..negatives]), &tops);
            }
            let mut mine = Vec::new();
            ranks.flatten(&mut mine);
            flat.iter_mut().zip(mine).for_each(|(sum, value)| *sum += value);
        }
        let ranks = Ranks::unflatten(&flat);
        assert_eq!(ranks.edges, 500.0);
        assert!((ranks.mean_reciprocal().expect("edges") - reciprocal / 500.0).abs() < 1e-12);
        for index in 0..3 {
            assert_eq!(ranks.recall(index), Some(within[index] / 500.0));
            assert!((ranks.gain(index).expect("edges") - gains[index] / 500.0).abs() < 1e-12);
        }
    }

    /// OGB's `_eval_hits`: the share strictly above the K-th best of all. With fewer than K negatives, where that is 1,
    /// there is none here.
    #[test]
    fn hits_over_workers_are_those_of_one_sorted_pool() {
        for (top, negatives) in [(1, 400), (50, 400), (400, 400), (401, 400), (1000, 4000), (20, 5000), (1, 0)] {
            let (positive, negative) = (scores(3, 300), scores(4, negatives));
            let mut sorted = negative.clone();
            sorted.sort_by(|a, b| b.total_cmp(a));
            let expected = sorted.get(top - 1).map(|threshold| positive.iter().filter(|s| *s > threshold).count());
            let mut merged = Best::new(top);
            for worker in 0..3 {
                let mut best = Best::new(top);
                best.extend(negative.iter().copied().skip(worker).step_by(3));
                assert!(best.scores().len() <= top);
                merged.extend(best.scores().iter().copied());
            }
            assert_eq!(merged.hits(&positive), expected, "Hits@{top} of {negatives}");
        }
        let mut best = Best::new(2);
        best.extend([f32::NAN, 0.0, f32::NAN]);
        assert_eq!(best.hits(&[1.0, f32::NAN]), Some(0));
    }
}
