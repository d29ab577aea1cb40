//! Keyed draws without replacement.

use std::ops::Range;

use laconic_key::Key;

/// Appends some of `positions` to `into`: all where `fanout` is `None` or not below their number, else `fanout` of
/// them, each set of that size equally likely. Ascending, each once.
///
/// What is drawn is the first distinct numbers of the key's stream, or what they leave where that is fewer. The same
/// key, number of positions and fanout draw the same places among them, wherever they start.
///
/// # Panics
///
/// If there are 2^32 positions or more.
#[inline]
pub fn draw(key: Key, positions: Range<usize>, fanout: Option<usize>, into: &mut Vec<usize>) {
    let (first, degree) = (positions.start, positions.len());
    let take = fanout.map_or(degree, |fanout| fanout.min(degree));
    if take == degree {
        into.extend(positions);
        return;
    }
    let few = take.min(degree - take);
    let below = u32::try_from(degree).expect("a node has fewer than 2^32 in-edges");
    if below <= u64::BITS {
        let drawn = bits(key, below, few as u32);
        push_bits(if few == take { drawn } else { !drawn & (u64::MAX >> (u64::BITS - below)) }, first, into);
    } else if take <= FEW_MAX {
        few_of_many(key, below, take, first, into);
    } else {
        many(key, below, [few, take], first, into);
    }
}

/// The number at `index` of the key's stream, below `degree`. The bias is below `degree / 2^64`.
#[inline]
fn position(key: Key, index: u64, degree: u32) -> u32 {
    ((u128::from(key.number(index)) * u128::from(degree)) >> 64) as u32
}

/// The draw as bits of a word.
#[inline]
fn bits(key: Key, degree: u32, few: u32) -> u64 {
    let mut set = 0u64;
    for index in 0..u64::from(few) {
        set |= 1 << position(key, index, degree);
    }
    let mut index = u64::from(few);
    while set.count_ones() < few {
        set |= 1 << position(key, index, degree);
        index += 1;
    }
    set
}

#[inline]
fn push_bits(mut set: u64, first: usize, into: &mut Vec<usize>) {
    let drawn = set.count_ones();
    into.extend((0..drawn).map(|_| {
        let lowest = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        first + lowest as usize
    }));
}

/// Up to so many positions are sorted by counting for each how many are smaller: no branch depends on what was drawn.
const FEW_MAX: usize = 32;

#[inline]
fn few_of_many(key: Key, degree: u32, take: usize, first: usize, into: &mut Vec<usize>) {
    let sorted = if take <= 16 { ranked::<16>(key, degree, take) } else { ranked::<FEW_MAX>(key, degree, take) };
    let start = into.len();
    into.extend(sorted.positions[..sorted.distinct].iter().map(|&position| first + position as usize));
    if sorted.distinct < take {
        top_up(key, degree, [start, take], first, into);
    }
}

/// The distinct ones among the first numbers of a stream, ascending.
struct Ranked {
    positions: [u32; FEW_MAX],
    distinct: usize,
}

#[inline]
fn ranked<const LANES: usize>(key: Key, degree: u32, take: usize) -> Ranked {
    // Compared as signed numbers, which baseline vector instructions can; the order is that of unsigned ones.
    let mut drawn = [i32::MAX; LANES];
    for (index, slot) in drawn[..take].iter_mut().enumerate() {
        *slot = (position(key, index as u64, degree) ^ (1 << 31)) as i32;
    }
    let mut smaller = [0u32; LANES];
    for &other in &drawn[..take] {
        for (count, &own) in smaller.iter_mut().zip(&drawn) {
            *count += u32::from(other < own);
        }
    }
    let mut positions = [0; FEW_MAX];
    let mut ranks = 0u32;
    for (&own, rank) in drawn[..take].iter().zip(smaller) {
        positions[rank as usize % FEW_MAX] = own as u32 ^ (1 << 31);
        ranks |= 1 << rank;
    }
    // Equal ones have one rank, and the next rank is nobody's.
    let distinct = ranks.count_ones() as usize;
    if distinct < take {
        for (kept, rank) in (0..take).filter(|rank| ranks >> rank & 1 == 1).enumerate() {
            positions[kept] = positions[rank];
        }
    }
    Ranked { positions, distinct }
}

/// Draws on, from the number after the first `take`, until there are that many from `start`.
#[cold]
fn top_up(key: Key, degree: u32, [start, take]: [usize; 2], first: usize, into: &mut Vec<usize>) {
    let mut index = take as u64;
    while into.len() < start + take {
        let drawn = first + position(key, index, degree) as usize;
        index += 1;
        if let Err(place) = into[start..].binary_search(&drawn) {
            into.insert(start + place, drawn);
        }
    }
}

/// The draw for any size: as often as something is missing, that many more numbers, sorted into the rest. Never draws
/// more numbers than are needed, so these are the first distinct ones, too.
fn many(key: Key, degree: u32, [few, take]: [usize; 2], first: usize, into: &mut Vec<usize>) {
    let start = into.len();
    let end = start + few;
    let mut index = 0;
    while into.len() < end {
        let missing = (end - into.len()) as u64;
        into.extend((index..index + missing).map(|index| first + position(key, index, degree) as usize));
        index += missing;
        into[start..].sort_unstable();
        dedup_from(start, into);
    }
    if few < take {
        let mut from = first;
        for at in start..end {
            let left_out = into[at];
            into.extend(from..left_out);
            from = left_out + 1;
        }
        into.extend(from..first + degree as usize);
        into.drain(start..end);
    }
}

/// Removes repeated ones of the ascending positions from `start`.
fn dedup_from(start: usize, into: &mut Vec<usize>) {
    let mut kept = start;
    for at in start..into.len() {
        if kept == start || into[kept - 1] != into[at] {
            into[kept] = into[at];
            kept += 1;
        }
    }
    into.truncate(kept);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use laconic_key::{Key, Purpose};

    use super::draw;

    fn drawn(key: Key, degree: usize, fanout: usize) -> Vec<u32> {
        let mut into = vec![77];
        draw(key, 500..500 + degree, Some(fanout), &mut into);
        assert_eq!(into.remove(0), 77, "what was there stays");
        into.into_iter().map(|position| position as u32 - 500).collect()
    }

    /// Degrees and fanouts on both sides of every boundary between ways to draw.
    fn sizes() -> impl Iterator<Item = (usize, usize)> {
        let degrees = [0, 1, 2, 3, 5, 15, 16, 31, 32, 33, 63, 64, 65, 66, 97, 128, 1000, 70_000];
        let fanouts = [0, 1, 2, 5, 10, 15, 16, 17, 25, 31, 32, 33, 63, 64, 65, 100, 900, 69_999];
        degrees.into_iter().flat_map(move |degree| fanouts.map(|fanout| (degree, fanout)))
    }

    /// By the definition alone: numbers of the stream, one by one, until there are enough distinct ones.
    fn by_definition(key: Key, degree: usize, fanout: usize) -> Vec<u32> {
        let take = fanout.min(degree);
        let few = take.min(degree - take);
        let mut set = BTreeSet::new();
        let mut index = 0;
        while set.len() < few {
            set.insert(((u128::from(key.number(index)) * degree as u128) >> 64) as u32);
            index += 1;
        }
        let keeps = |position: &u32| (few == take) == set.contains(position);
        (0..degree as u32).filter(|position| take == degree || keeps(position)).collect()
    }

    #[test]
    fn every_way_to_draw_gives_what_the_definition_gives() {
        for (degree, fanout) in sizes() {
            let keys = if degree * fanout > 100_000 { 2 } else { 60 };
            for node in 0..keys {
                let key = Key::new(3, Purpose::Test).with(node);
                let found = drawn(key, degree, fanout);
                assert_eq!(found, by_definition(key, degree, fanout), "{fanout} of {degree}");
                assert_eq!(found.len(), fanout.min(degree));
            }
        }
    }

    #[test]
    fn no_fanout_gives_the_whole_neighbourhood() {
        for degree in [0, 1, 40, 64, 65, 1000] {
            let mut into = Vec::new();
            draw(Key::new(1, Purpose::Test), 3..3 + degree, None, &mut into);
            assert!(into.into_iter().eq(3..3 + degree));
        }
    }

    /// Pearson's statistic of how often each possible set of `fanout` of `degree` was drawn, with its mean and standard
    /// deviation where all are equally likely.
    fn chi_square(degree: usize, fanout: usize, draws: u64, of: &dyn Fn(Key) -> Vec<u32>) -> (f64, f64, f64) {
        let mut counts = std::collections::BTreeMap::new();
        for node in 0..draws {
            *counts.entry(of(Key::new(8, Purpose::Test).with(node))).or_insert(0u64) += 1;
        }
        let choose = |n: usize, k: usize| (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64);
        let sets = choose(degree, fanout).round();
        let expected = draws as f64 / sets;
        let never = (sets - counts.len() as f64) * expected;
        let seen: f64 = counts.values().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        (seen + never, sets - 1.0, (2.0 * (sets - 1.0)).sqrt())
    }

    #[test]
    fn every_set_of_positions_is_equally_likely() {
        for (degree, fanout) in [(6, 2), (6, 3), (7, 5), (64, 2), (65, 2), (66, 65), (70, 2)] {
            let (statistic, mean, deviation) = chi_square(degree, fanout, 200_000, &|key| drawn(key, degree, fanout));
            assert!((statistic - mean).abs() < 5.0 * deviation, "{fanout} of {degree}: {statistic}, expected {mean}");
        }
    }

    /// The same test must see a draw that is a little off: neighbours are a window from a random place.
    #[test]
    fn the_test_of_uniformity_sees_a_draw_that_is_not_uniform() {
        let window = |key: Key| {
            let first = key.number(0) % 6;
            let mut set = vec![first as u32, (first as u32 + 1 + (key.number(1) % 4) as u32) % 6];
            set.sort_unstable();
            set
        };
        let (statistic, mean, deviation) = chi_square(6, 2, 200_000, &window);
        assert!(statistic > mean + 20.0 * deviation, "{statistic}");
    }

    #[test]
    fn each_position_of_a_hub_is_equally_likely() {
        let (degree, fanout, draws) = (1_000_000, 1000, 100);
        let mut by_thousand = vec![0u32; 1000];
        for node in 0..draws {
            let positions = drawn(Key::new(2, Purpose::Test).with(node), degree, fanout);
            assert!(positions.windows(2).all(|pair| pair[0] < pair[1]));
            positions.iter().for_each(|&position| by_thousand[position as usize / 1000] += 1);
        }
        // 100 in each, of 999 degrees of freedom.
        let statistic: f64 = by_thousand.iter().map(|&count| (f64::from(count) - 100.0).powi(2) / 100.0).sum();
        assert!((statistic - 999.0).abs() < 5.0 * (2.0f64 * 999.0).sqrt(), "{statistic}");
    }
}
