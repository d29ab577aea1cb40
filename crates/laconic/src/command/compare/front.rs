//! The Pareto front: what nothing beats.

/// For each (cost, gain) whether no other point is at least as good in both and better in one. Equal points stand or
/// fall together. Sorts, so it takes n·log n.
pub fn front(points: &[(f64, f64)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    // By cost; of equal cost the highest gain first.
    order.sort_by(|&a, &b| {
        let ((cost_a, gain_a), (cost_b, gain_b)) = (points[a], points[b]);
        cost_a.total_cmp(&cost_b).then(gain_b.total_cmp(&gain_a))
    });
    let mut on_front = vec![false; points.len()];
    // The last point that was found to be on the front: all before it cost no more and gain no more.
    let mut last: Option<(f64, f64)> = None;
    for index in order {
        let point = points[index];
        if last.is_none_or(|last| point.1 > last.1 || point == last) {
            on_front[index] = true;
            last = Some(point);
        }
    }
    on_front
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, word for word.
    fn plain(points: &[(f64, f64)]) -> Vec<bool> {
        let beats = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.0 && a.1 >= b.1 && (a.0 < b.0 || a.1 > b.1);
        points.iter().map(|point| !points.iter().any(|other| beats(other, point))).collect()
    }

    #[test]
    fn the_front_is_what_nothing_beats() {
        // Knuth's generator; its high bits are random enough to mix points.
        let mut state = 1u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..500 {
            // Few values, so that ties and equal points are common.
            let points: Vec<(f64, f64)> = (0..below(30)).map(|_| (below(6) as f64, below(6) as f64)).collect();
            assert_eq!(front(&points), plain(&points), "{points:?}");
        }
    }
}
