//! Which halo rows travel in a round of training: each selection is one file and one line in [`SELECTIONS`].
//!
//! Both ends of a link draw the same rows from the same key, so no ids travel. Rows that are left out are absent from the fold; what
//! is there may count for more, so that sums stay unbiased. Evaluations and inputs that cross once are not sampled, see
//! [`crate::schedule::Stage::sample_inputs`].

mod all;
mod boundary_sample;
mod none;
mod scope;

use laconic_key::Key;

pub use scope::Scope;

/// A way to choose rows.
pub trait Selection: Send + Sync {
    /// How many of a link's rows travel in a round; must depend on the number alone, since predictions ask for it.
    fn count(&self, rows: usize) -> usize;

    /// Puts the positions that travel, ascending and different, into `into`; called with the same key at both ends of a link.
    fn draw(&self, key: Key, rows: usize, into: &mut Vec<u32>) {
        sample(key, rows, self.count(rows), into);
    }
}

/// Makes a selection with its rate.
pub type Make = fn(rate: f64) -> Box<dyn Selection>;

/// Every selection, by name.
pub const SELECTIONS: &[(&str, Make)] =
    &[("all", all::make), ("boundary_sample", boundary_sample::make), ("none", none::make)];

/// The names of all selections.
pub fn names() -> Vec<&'static str> {
    SELECTIONS.iter().map(|(name, _)| *name).collect()
}

/// The selection of this name.
pub fn named(name: &str, rate: f64) -> Option<Box<dyn Selection>> {
    SELECTIONS.iter().find(|(known, _)| *known == name).map(|(_, make)| make(rate))
}

/// `count` of `rows` positions, each subset as likely as any other (Floyd's algorithm would need a set; selection sampling, Knuth's
/// algorithm S, gives them in ascending order). O(rows) draws of 64 bits.
fn sample(key: Key, rows: usize, count: usize, into: &mut Vec<u32>) {
    into.clear();
    for position in 0..rows {
        let (left, wanted) = (rows - position, count - into.len());
        if wanted == 0 {
            break;
        }
        if wanted == left || key.with(position as u64).below(left as u64) < wanted as u64 {
            into.push(position as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_key::Purpose;

    #[test]
    fn every_row_is_as_likely_as_any_other_and_the_count_is_kept() {
        let selection = named("boundary_sample", 0.3).expect("registered");
        let (rows, draws) = (10, 20_000);
        let mut hits = [0u32; 10];
        let mut drawn = Vec::new();
        for draw in 0..draws {
            selection.draw(Key::new(1, Purpose::Test).with(draw), rows, &mut drawn);
            assert_eq!(drawn.len(), selection.count(rows));
            assert!(drawn.is_sorted_by(|a, b| a < b));
            drawn.iter().for_each(|&row| hits[row as usize] += 1);
        }
        // Binomial with p = 0.3: five standard deviations are 5 · √(20,000 · 0.21) = 324.
        assert!(hits.iter().all(|&hits| hits.abs_diff(6000) < 324), "{hits:?}");
    }

    /// A share that rounds down to no row would silently be another method (and, in the published code, a division by zero).
    #[test]
    fn a_positive_rate_sends_a_row_of_every_boundary_and_the_ends_are_all_and_none() {
        for rows in [1, 2, 5, 100] {
            assert!(named("boundary_sample", 0.001).expect("registered").count(rows) >= 1);
            for (name, rate, count) in
                [("all", 0.5, rows), ("none", 0.5, 0), ("boundary_sample", 0.0, 0), ("boundary_sample", 1.0, rows)]
            {
                let selection = named(name, rate).expect("registered");
                let mut drawn = Vec::new();
                selection.draw(Key::new(1, Purpose::Test), rows, &mut drawn);
                assert_eq!((selection.count(rows), drawn.len()), (count, count), "{name}");
            }
        }
        assert_eq!(named("boundary_sample", 0.5).expect("registered").count(0), 0);
    }
}
