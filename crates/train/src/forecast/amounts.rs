//! Amounts of memory, by what they are for.

use crate::exchange::shapes::Shapes;
use crate::plan::Plan;

/// Bytes of a value.
pub(super) const FLOAT: usize = size_of::<f32>();

/// Values of own rows that the first layer reads.
pub(super) fn input_values(shapes: &Shapes, plan: &Plan) -> usize {
    plan.input_values(shapes.rows, shapes.feature_values, shapes.edges.iter().sum())
}

/// Bytes by what they are for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory(Vec<(&'static str, u64)>);

impl Memory {
    /// All of them together.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Adds what something takes.
    pub fn add(&mut self, name: &'static str, bytes: u64) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => self.0.push((name, bytes)),
        }
    }

    /// Adds another worker's.
    pub fn add_all(&mut self, other: &Memory) {
        other.0.iter().for_each(|(name, bytes)| self.add(name, *bytes));
    }

    /// The same so many times.
    #[must_use]
    pub fn times(&self, times: u64) -> Memory {
        Memory(self.0.iter().map(|(name, bytes)| (*name, bytes.saturating_mul(times))).collect())
    }

    /// Forgets items of these names.
    pub(super) fn leave_out(&mut self, names: &[&str]) {
        self.0.retain(|(name, _)| !names.contains(name));
    }

    /// The items, largest first.
    pub fn items(&self) -> Vec<(&'static str, u64)> {
        let mut items = self.0.clone();
        items.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        items
    }
}
