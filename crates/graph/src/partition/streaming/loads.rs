//! How full parts are.

/// The sizes of parts, none above a capacity, and which part is the smallest.
pub(super) struct Loads {
    sizes: Vec<u64>,
    pub(super) capacity: u64,
    /// A tournament: place `i` has the part that wins against those of places `2i` and `2i + 1`, and parts stand from
    /// place `parts` on.
    smallest: Vec<u32>,
}

impl Loads {
    /// Empty parts.
    pub(super) fn new(parts: u32, capacity: u64) -> Loads {
        let leaves = parts as usize;
        let mut smallest = vec![0; 2 * leaves];
        (0..parts).for_each(|part| smallest[leaves + part as usize] = part);
        (1..leaves).rev().for_each(|place| smallest[place] = smallest[2 * place].min(smallest[2 * place + 1]));
        Loads { sizes: vec![0; leaves], capacity, smallest }
    }

    pub(super) fn size(&self, part: u32) -> u64 {
        self.sizes[part as usize]
    }

    /// Whether one more fits.
    pub(super) fn has_room(&self, part: u32) -> bool {
        self.size(part) < self.capacity
    }

    /// The smallest part, of equals the one of the lowest number.
    pub(super) fn smallest(&self) -> u32 {
        self.smallest[1]
    }

    pub(super) fn put(&mut self, part: u32) {
        self.sizes[part as usize] += 1;
        self.play(part);
    }

    pub(super) fn take(&mut self, part: u32) {
        self.sizes[part as usize] -= 1;
        self.play(part);
    }

    fn play(&mut self, part: u32) {
        let mut place = (self.sizes.len() + part as usize) / 2;
        while place > 0 {
            let (one, other) = (self.smallest[2 * place], self.smallest[2 * place + 1]);
            self.smallest[place] = if (self.size(other), other) < (self.size(one), one) { other } else { one };
            place /= 2;
        }
    }
}

/// How many neighbours of one node are where.
pub(super) struct Tally {
    counts: Vec<u32>,
    seen: Vec<u32>,
}

impl Tally {
    /// For so many places.
    pub(super) fn new(places: usize) -> Tally {
        Tally { counts: vec![0; places], seen: Vec::new() }
    }

    /// Counts where the neighbours of `node` are, itself and those that are nowhere left out.
    pub(super) fn count(&mut self, node: usize, neighbours: &[u32], of: &[u32]) {
        for &place in &self.seen {
            self.counts[place as usize] = 0;
        }
        self.seen.clear();
        for &neighbour in neighbours {
            let place = of[neighbour as usize];
            if place != super::NOWHERE && neighbour as usize != node {
                let count = &mut self.counts[place as usize];
                if *count == 0 {
                    self.seen.push(place);
                }
                *count += 1;
            }
        }
    }

    /// The places that any neighbour is in.
    pub(super) fn seen(&self) -> &[u32] {
        &self.seen
    }

    /// How many neighbours are in `place`.
    pub(super) fn at(&self, place: u32) -> u32 {
        self.counts[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};

    use super::Loads;

    #[test]
    fn the_smallest_part_is_the_one_that_a_search_finds() {
        let key = Key::new(1, Purpose::Test);
        for parts in [1u32, 2, 3, 7, 64] {
            let (mut loads, mut sizes) = (Loads::new(parts, 100), vec![0u64; parts as usize]);
            for step in 0..500 {
                let part = key.with(step).below(u64::from(parts)) as usize;
                if step % 3 == 2 && sizes[part] > 0 {
                    sizes[part] -= 1;
                    loads.take(part as u32);
                } else {
                    sizes[part] += 1;
                    loads.put(part as u32);
                }
                let expected = (0..parts as usize).min_by_key(|&part| sizes[part]).unwrap();
                assert_eq!(loads.smallest() as usize, expected);
            }
        }
    }
}
