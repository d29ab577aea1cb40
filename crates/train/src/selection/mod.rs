//! Which halo rows travel in a round of training: each selection is one file and one line in [`SELECTIONS`].
//!
//! Both ends of a link draw the same rows from the same key, so no ids travel. Rows that are left out are absent from
//! the fold; what is there may count for more, so that sums stay unbiased. Evaluations and inputs that cross once are
//! not sampled, see [`crate::schedule::Stage::sample_inputs`].

mod all;
mod boundary_sample;
mod none;
mod scope;
mod vertex_cover;

use laconic_nn::registry::{Kind, Registry};
use laconic_wire::WireError;
use laconic_wire::codec::Options;

/// The key that both ends of a link draw rows from.
pub use laconic_key::Key;
pub use scope::Scope;

/// A way to choose rows.
pub trait Selection: Send + Sync {
    /// How many of a link's rows travel in a round; must depend on the number alone, since predictions ask for it.
    fn count(&self, rows: usize) -> usize;

    /// Whether training is on the graph without the edges between workers: rows that never come leave degrees, too.
    fn deletes_edges(&self) -> bool {
        false
    }

    /// Puts the positions that travel, ascending and different, into `into`; called with the same key at both ends of a
    /// link.
    fn draw(&self, key: Key, rows: usize, into: &mut Vec<u32>) {
        sample(key, rows, self.count(rows), into);
    }
}

/// What is known of a selection before it is made: an entry of a [`SelectionRegistry`].
#[derive(Debug)]
pub struct SelectionKind {
    /// The name in configurations.
    pub name: &'static str,
    /// The options that it reads, by the names that they have in configurations.
    pub options: &'static [&'static str],
    /// Whether other rows travel in every round, so that those of one round cannot stand in for those of another.
    pub redraws: bool,
    /// Whether it applies to inputs that cross once as well, so that nothing crosses at all while training.
    pub cuts: bool,
    /// Whether sums of rows stand for rows where that takes fewer ([`laconic_graph::plan::Cuts`]).
    pub covers: bool,
    /// Makes the selection; `None` where every row travels.
    pub build: fn(&Options) -> Result<Made, WireError>,
}

/// A selection, or `None` where every row travels.
pub type Made = Option<Box<dyn Selection>>;

/// Every selection that this crate has.
pub const SELECTIONS: &[SelectionKind] = &[all::KIND, boundary_sample::KIND, vertex_cover::KIND, none::KIND];

/// Selections by name.
pub type SelectionRegistry = Registry<SelectionKind>;

impl Kind for SelectionKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        SELECTIONS
    }
}

/// `count` of `rows` positions, each subset as likely as any other (Floyd's algorithm would need a set; selection
/// sampling, Knuth's algorithm S, gives them in ascending order). O(rows) draws of 64 bits.
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

    fn sample_of(rate: f64) -> Option<Box<dyn Selection>> {
        (boundary_sample::KIND.build)(&Options::default().with("rate", rate)).expect("a share")
    }

    #[test]
    fn every_row_is_as_likely_as_any_other_and_the_count_is_kept() {
        let selection = sample_of(0.3).expect("not every row travels");
        let (rows, draws) = (10, 20_000);
        let mut hits = [0u32; 10];
        let mut drawn = Vec::new();
        for draw in 0..draws {
            selection.draw(Key::new(1, Purpose::Test).with(draw), rows, &mut drawn);
            assert_eq!(drawn.len(), selection.count(rows));
            drawn.iter().for_each(|&row| hits[row as usize] += 1);
        }
        // Binomial with p = 0.3: five standard deviations are 5 · √(20,000 · 0.21) = 324.
        assert!(hits.iter().all(|&hits| hits.abs_diff(6000) < 324), "{hits:?}");
    }

    /// A share that rounds down to no row would silently be another method (and, in the published code, a division by
    /// zero).
    #[test]
    fn a_positive_rate_sends_a_row_of_every_boundary_and_the_ends_are_all_and_none() {
        for rows in [1, 2, 5, 100] {
            assert!(sample_of(0.001).expect("a sample").count(rows) >= 1);
            assert_eq!(sample_of(0.0).expect("a sample").count(rows), 0);
        }
        assert!(sample_of(1.0).is_none());
        assert_eq!(sample_of(0.5).expect("a sample").count(0), 0);
        assert!((boundary_sample::KIND.build)(&Options::default().with("rate", 1.5)).is_err());
    }

    #[test]
    fn every_member_keeps_the_laws() {
        for kind in SelectionRegistry::default().iter() {
            crate::laws::selections::check(kind, &[Options::default()]);
        }
        let rates = [0.0, 0.001, 0.3, 1.0].map(|rate| Options::default().with("rate", rate));
        crate::laws::selections::check(&boundary_sample::KIND, &rates);
    }
}
