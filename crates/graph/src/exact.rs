//! Numbers that features of 32 bits do not hold, as they were given, until features are prepared.
//!
//! Seconds since 1970 are steps of 128 s as `f32`, and what is left of a column after its mean is gone is then made of
//! these steps. So whoever reads features keeps the columns whose numbers lie close to each other and far from 0 beside
//! them, and what subtracts means does that here.

use std::collections::HashSet;

/// A number as it was given: `value` and what `f64` leaves out of it, as it does of integers beyond 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wide {
    /// The nearest `f64`.
    pub value: f64,
    /// The rest; 0 where there is none.
    pub rest: f64,
}

impl Wide {
    /// A whole number.
    pub fn integer(number: i128) -> Wide {
        let value = number as f64;
        Wide { value, rest: (number - value as i128) as f64 }
    }

    /// The difference, exact where the two lie close to each other.
    pub fn minus(self, other: Wide) -> f64 {
        (self.value - other.value) + (self.rest - other.rest)
    }

    /// The sum, with what `f64` leaves out of it.
    pub fn plus(self, step: f64) -> Wide {
        let value = self.value + step;
        let taken = value - self.value;
        let left = (self.value - (value - taken)) + (step - taken);
        Wide { value, rest: self.rest + left }
    }

    fn is_rounded(self) -> bool {
        self.rest != 0.0 || f64::from(self.value as f32) != self.value
    }
}

impl From<f64> for Wide {
    fn from(value: f64) -> Wide {
        Wide { value, rest: 0.0 }
    }
}

/// How the numbers of a column lie, seen one after the other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread {
    /// What the others are counted from.
    first: Option<Wide>,
    count: f64,
    sum: f64,
    squares: f64,
    largest: f64,
    is_rounded: bool,
}

/// Numbers further from 0 than so many of their deviations are kept: nearer ones `f32` rounds by less than a
/// millionth of a deviation.
const FAR: f64 = 16.0;

impl Spread {
    /// One more number; those that are none count nothing.
    pub(crate) fn add(&mut self, number: Wide) {
        if !number.value.is_finite() {
            return;
        }
        let step = number.minus(*self.first.get_or_insert(number));
        self.count += 1.0;
        self.sum += step;
        self.squares += step * step;
        self.largest = self.largest.max(number.value.abs());
        self.is_rounded |= number.is_rounded();
    }

    /// Whether `f32` rounds the numbers by more than a small part of how far they lie apart.
    pub(crate) fn is_lost(&self) -> bool {
        let mean = self.sum / self.count;
        let deviation = (self.squares / self.count - mean * mean).sqrt();
        self.is_rounded && deviation > 0.0 && self.largest > FAR * deviation
    }
}

/// The columns of features whose numbers `f32` does not hold well enough; most features have none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exact {
    /// These columns, ascending.
    pub columns: Vec<ExactColumn>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct ExactColumn {
    /// Its place among the feature columns.
    pub column: usize,
    /// Its numbers, one a row.
    pub values: Vec<Wide>,
}

impl Exact {
    /// Room for the numbers of those columns of which too much would be lost.
    pub(crate) fn of(spreads: &[Spread], rows: usize) -> Exact {
        let lost = spreads.iter().enumerate().filter(|(_, spread)| spread.is_lost());
        let column = |(column, _)| ExactColumn { column, values: vec![Wide::default(); rows] };
        Exact { columns: lost.map(column).collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The number of this row and column, if it is kept.
    pub(crate) fn at(&self, row: usize, column: usize) -> Option<Wide> {
        self.columns.iter().find(|of| of.column == column).map(|of| of.values[row])
    }

    /// What is lost where features stay as they are given: how many different numbers of a column become how many.
    pub fn lost(&self, names: &[String]) -> Vec<String> {
        let sentence = |ExactColumn { column, values }: &ExactColumn| {
            let bits = |wide: &Wide| (wide.value.to_bits(), wide.rest.to_bits());
            let given = values.iter().map(bits).collect::<HashSet<_>>().len();
            let kept = values.iter().map(|wide| (wide.value as f32).to_bits()).collect::<HashSet<_>>().len();
            let name = names.get(*column).map_or_else(|| format!("column {column}"), |name| format!("column '{name}'"));
            (kept < given).then(|| {
                let cure = "data.features = \"standardised\" subtracts the mean before anything is lost";
                format!(
                    "features: {given} different numbers of {name} fall together to {kept} in the precision of 32 \
                     bits; {cure}"
                )
            })
        };
        self.columns.iter().filter_map(sentence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_beyond_f64_are_told_apart_and_keep_their_differences() {
        let far = Wide::integer(1 << 60);
        assert_eq!(Wide::integer((1 << 60) + 1).minus(far), 1.0);
        assert_eq!(Wide::integer(i128::from(u64::MAX)).minus(Wide::integer(i128::from(u64::MAX) - 3)), 3.0);
        assert_eq!(Wide::integer((1 << 60) + 1).minus(far.plus(0.5)), 0.5);
    }

    #[test]
    fn columns_far_from_zero_are_lost_and_others_are_not() {
        let lost = |numbers: &[f64]| {
            let mut spread = Spread::default();
            numbers.iter().for_each(|&number| spread.add(number.into()));
            spread.is_lost()
        };
        assert!(lost(&[1e9, 1e9 + 1.0]) && lost(&[1764230400.0, 1764230900.0, f64::NAN]));
        // Constant, held by `f32` as they are, or as far apart as from 0.
        for numbers in [&[1e9 + 1.0; 3][..], &[1024.0, 1025.0], &[0.1, 0.7], &[0.0, 1764230401.0, 1764230402.0], &[]] {
            assert!(!lost(numbers), "{numbers:?}");
        }
    }

    #[test]
    fn what_falls_together_is_counted() {
        let values = (0..192).map(|step| Wide::from(1764230400.0 + 3.0 * f64::from(step))).collect();
        let exact = Exact { columns: vec![ExactColumn { column: 1, values }] };
        let said = exact.lost(&["age".to_owned(), "when".to_owned()]);
        assert!(said.len() == 1 && said[0].contains("192 different numbers of column 'when' fall together to 5 in"));
    }
}
