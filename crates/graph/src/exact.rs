//! Numbers that features of 32 bits do not hold, as they were given, until features are prepared.
//!
//! Seconds since 1970 are steps of 128 s as `f32`, and what is left of a column after its mean is gone is then made of
//! these steps. So whoever reads features keeps the columns whose numbers lie close to each other and far from 0 beside
//! them, and what subtracts means does that here.

use std::collections::HashSet;
use std::num::ParseFloatError;
use std::str::FromStr;

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

    /// The sum of both.
    pub(crate) fn and(self, other: Wide) -> Wide {
        let sum = self.plus(other.value);
        Wide { rest: sum.rest + other.rest, ..sum }
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

impl FromStr for Wide {
    type Err = ParseFloatError;

    fn from_str(text: &str) -> Result<Wide, ParseFloatError> {
        let value: f64 = text.parse()?;
        // Up to here `f64` holds all whole numbers.
        let whole = if value.abs() < 9_007_199_254_740_992.0 { None } else { text.parse().ok() };
        Ok(whole.map_or(Wide::from(value), Wide::integer))
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
    is_rounded: bool,
    /// The largest distance from 0.
    largest: f64,
}

/// Numbers whose mean is further from 0 than so many of their deviations are kept. Of others `f32` loses less than a
/// millionth of a deviation, or of a number far from all others no more than what comes out of it loses as `f32`.
const FAR: f64 = 16.0;

/// Below this `f32` holds fewer digits, and in the end none.
const TINY: f64 = 16.0 * f32::MIN_POSITIVE as f64;

/// Whether so few of the numbers of a column are not 0 that its mean cannot be [`FAR`]: with a share `p` of them it is
/// at most `sqrt(p / (1 - p))` deviations from 0.
pub(crate) fn is_never_lost(filled: usize, rows: usize) -> bool {
    rows.saturating_sub(filled) as f64 * (FAR * FAR + 1.0) >= rows as f64
}

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
        self.is_rounded |= number.is_rounded();
        self.largest = self.largest.max(number.value.abs());
    }

    /// So many zeros more.
    pub(crate) fn add_zeros(&mut self, count: usize) {
        if count > 0 {
            let step = Wide::default().minus(*self.first.get_or_insert_default());
            self.count += count as f64;
            self.sum += count as f64 * step;
            self.squares += count as f64 * step * step;
        }
    }

    /// Whether `f32` rounds the numbers by more than a small part of how far they lie apart.
    pub(crate) fn is_lost(&self) -> bool {
        let step = self.sum / self.count;
        let deviation = (self.squares / self.count - step * step).sqrt();
        let mean = self.first.map_or(0.0, |first| first.plus(step).value);
        let is_tiny = self.largest < TINY;
        self.is_rounded && deviation > 0.0 && (is_tiny || mean.abs() > FAR * deviation)
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

/// The rows whose numbers are held against each other: those of one type of nodes, or all.
#[derive(Clone, Copy)]
pub(crate) struct Groups<'a> {
    of: Option<&'a [u16]>,
    /// How many there are.
    pub count: usize,
}

impl<'a> Groups<'a> {
    /// All rows are held against each other.
    pub const ONE: Groups<'static> = Groups { of: None, count: 1 };

    /// Rows of these groups, one a row.
    pub fn of(groups: &'a [u16]) -> Groups<'a> {
        let count = groups.iter().max().map_or(1, |&last| usize::from(last) + 1);
        Groups { of: Some(groups), count }
    }

    /// The number of a row's group.
    pub fn of_row(&self, row: usize) -> usize {
        self.of.map_or(0, |of| usize::from(of[row]))
    }
}

impl Exact {
    /// Room for the numbers of those columns of which too much would be lost.
    pub(crate) fn of(spreads: &[Spread], rows: usize) -> Exact {
        Exact::of_groups(spreads, spreads.len(), rows)
    }

    /// The same with the spreads of all columns for each group of rows: too much would be lost in one of them.
    pub(crate) fn of_groups(spreads: &[Spread], columns: usize, rows: usize) -> Exact {
        let is_lost = |column: &usize| spreads.iter().skip(*column).step_by(columns).any(Spread::is_lost);
        let column = |column| ExactColumn { column, values: vec![Wide::default(); rows] };
        Exact { columns: (0..columns).filter(is_lost).map(column).collect() }
    }

    /// Those of `columns`, of which all numbers are there, of which too much would be lost in one of the groups.
    pub(crate) fn among(columns: impl IntoIterator<Item = ExactColumn>, groups: Groups<'_>) -> Exact {
        let is_lost = |of: &ExactColumn| {
            let mut spreads = vec![Spread::default(); groups.count];
            of.values.iter().enumerate().for_each(|(row, &number)| spreads[groups.of_row(row)].add(number));
            spreads.iter().any(Spread::is_lost)
        };
        Exact { columns: columns.into_iter().filter(is_lost).collect() }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The number of this row and column, if it is kept.
    pub(crate) fn at(&self, row: usize, column: usize) -> Option<Wide> {
        let found = self.columns.binary_search_by_key(&column, |of| of.column);
        found.ok().map(|at| self.columns[at].values[row])
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
        let read = |text: &str| text.parse::<Wide>().unwrap();
        assert_eq!(read("1152921504606846977").minus(far), 1.0);
        assert_eq!((read("-0.1"), read("3e18"), read("nan").value.is_nan()), ((-0.1).into(), 3e18.into(), true));
    }

    #[test]
    fn columns_far_from_zero_are_lost_and_others_are_not() {
        let lost = |numbers: &[f64]| {
            let mut spread = Spread::default();
            numbers.iter().for_each(|&number| spread.add(number.into()));
            spread.is_lost()
        };
        assert!(lost(&[1e9, 1e9 + 1.0]) && lost(&[1764230400.0, 1764230900.0, f64::NAN]));
        assert!(lost(&[1e-50, 2e-50]));
        // Constant, held by `f32` as they are, or as far apart as from 0.
        for numbers in [&[1e9 + 1.0; 3][..], &[1024.0, 1025.0], &[0.1, 0.7], &[0.0, 1764230401.0, 1764230402.0], &[]] {
            assert!(!lost(numbers), "{numbers:?}");
        }
        // One word of a bag in a thousand: far from the others, which `f32` holds.
        let rare: Vec<f64> = (0..1000).map(|row| if row == 7 { 0.37 } else { 0.0 }).collect();
        assert!(!lost(&rare));
    }

    /// Equal numbers and zeros beside them have the farthest mean that so many zeros allow.
    #[test]
    fn a_column_with_one_zero_in_257_is_never_lost() {
        for (zeros, rows) in [(1, 256), (1, 257), (1, 258), (2, 513), (2, 514), (2, 515), (0, 9)] {
            let mut spread = Spread::default();
            // A little more than 1e9, so that it is rounded; one digit further, so that they are not all equal.
            (zeros..rows).for_each(|row| spread.add(Wide::from(1e9 + 1.0 + f64::from(u8::from(row == zeros)))));
            (0..zeros).for_each(|_| spread.add(Wide::default()));
            let never = is_never_lost(rows - zeros, rows);
            assert_eq!(never, zeros * 257 >= rows, "{zeros} of {rows}");
            assert!(!(never && spread.is_lost()), "{zeros} of {rows}");
            assert!(never || spread.is_lost(), "{zeros} of {rows}");
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
