//! What columns without names hold, as far as their values tell.

use std::cell::Cell as Shared;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::table::{Cell, Kind, Table};
use super::words::days;
use crate::error::Result;

/// Rows that are looked at.
const ROWS: usize = 100_000;

/// With so many heads and tails half as many relations are few.
const MANY: usize = 32;

/// So many rows, of which the first column has the numbers, are numbered.
const NUMBERED: usize = 16;

/// What the first three columns of a table seem to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Third {
    /// Numbers that may be weights.
    Weights,
    /// Times, as this text says.
    Times(&'static str),
    /// Ends of edges, whose relations are in the second column.
    Tails,
    /// Ends of edges that start in the second column.
    Ends,
    /// Texts.
    Texts,
    /// Texts that are dates.
    Dates,
}

/// Looks at the rows of a table's first three columns, the first many of them.
pub fn third(table: &dyn Table) -> Result<Third> {
    let kind = table.columns()[2].kind;
    // Telephone numbers are texts, though they read as numbers.
    let is_text = kind == Kind::Text || kind == Kind::Float && table.are_digits(2);
    let wanted = [(0, Kind::Text), (1, Kind::Text), (2, if is_text { Kind::Text } else { Kind::Float })];
    let mut seen: [HashSet<u64>; 3] = Default::default();
    let mut times = Times::default();
    let mut are_dates = is_text;
    let mut counts = [true; 2];
    let is_enough = Shared::new(false);
    let scanned = table.scan(&wanted, &mut |row, slot, cell| {
        if row == ROWS {
            is_enough.set(true);
            return Err("enough".to_owned());
        }
        match cell {
            Cell::Text(text) => {
                seen[slot].insert(hash(text));
                if slot == 0 && counts != [false; 2] {
                    let number = text.parse::<usize>().ok();
                    counts = [counts[0] && number == Some(row), counts[1] && number == Some(row + 1)];
                }
                are_dates &= slot != 2 || days(text).is_some();
            }
            Cell::Float(value) => {
                // A whole number is called as an id in text is.
                seen[slot].insert(hash(&value.to_string()));
                times.look(value);
            }
            _ => {}
        }
        Ok(())
    });
    if !is_enough.get() {
        scanned?;
    }
    let most = seen[1].len().max(seen[2].len());
    let is_numbered = counts != [false; 2] && seen[0].len() >= NUMBERED.max(2 * most);
    Ok(match (is_text, times.unit()) {
        (true, _) if kind == Kind::Float && starts_in_second(&seen, is_numbered) => Third::Ends,
        (true, _) if kind == Kind::Float => Third::Weights,
        (true, _) if are_dates && !seen[2].is_empty() => Third::Dates,
        (true, _) if is_relation(&seen, false) => Third::Tails,
        (true, _) if starts_in_second(&seen, is_numbered) => Third::Ends,
        (true, _) => Third::Texts,
        (false, Some(unit)) => Third::Times(unit),
        (false, None) if kind == Kind::Float => Third::Weights,
        (false, None) if is_relation(&seen, true) => Third::Tails,
        (false, None) if starts_in_second(&seen, is_numbered) => Third::Ends,
        (false, None) => Third::Weights,
    })
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// How many values of one set are in the other.
fn shared(a: &HashSet<u64>, b: &HashSet<u64>) -> usize {
    a.intersection(b).count()
}

/// Whether the second column holds few values, and the third what the first does.
fn is_relation([heads, relations, tails]: &[HashSet<u64>; 3], are_numbers: bool) -> bool {
    let most = heads.len().min(tails.len());
    let common = shared(tails, heads);
    let are_same = 10 * common >= 7 * heads.len().max(tails.len());
    let are_fewer = are_same && most >= MANY && 2 * relations.len() <= most;
    let are_few = 4 * relations.len() <= most || are_numbers && are_fewer;
    // Weights are numbers, too: those that are not called as often as nodes are, or as none of them, are no nodes.
    let are_like = 2 * common >= tails.len().min(heads.len()) && 2 * tails.len() >= heads.len();
    let are_apart = relations.len() < most && shared(relations, heads) + shared(relations, tails) == 0;
    if are_numbers {
        (are_few || are_apart) && are_like
    } else {
        are_few || 2 * relations.len() <= most + 1 && are_apart
    }
}

/// Whether the third column holds what the second does, and the first something else, or the numbers of the rows.
fn starts_in_second([firsts, seconds, thirds]: &[HashSet<u64>; 3], is_numbered: bool) -> bool {
    let are_like = 2 * shared(thirds, seconds) >= thirds.len().max(seconds.len()) && thirds.len() > 2;
    are_like && (is_numbered || shared(firsts, seconds) + shared(firsts, thirds) == 0)
}

/// Which times numbers can be.
#[derive(Default)]
struct Times {
    range: Option<(f64, f64)>,
    not_days: bool,
    not_years: bool,
    not_months: bool,
}

impl Times {
    /// 1990-01-01 and 2040-01-01 in seconds since 1970.
    const SECONDS: (f64, f64) = (631_152_000.0, 2_208_988_800.0);
    const UNITS: [(&str, f64); 4] =
        [("seconds", 1.0), ("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9)];

    fn look(&mut self, value: f64) {
        if value.is_nan() {
            return;
        }
        let (least, most) = self.range.unwrap_or((value, value));
        self.range = Some((least.min(value), most.max(value)));
        self.not_days |= value.fract() != 0.0 || !is_day(value);
        self.not_years |= value.fract() != 0.0 || !is_year(value);
        self.not_months |= value.fract() != 0.0 || !is_day(value * 100.0 + 1.0);
    }

    /// In which unit all of them are times of the years from 1990 to 2040.
    fn unit(&self) -> Option<&'static str> {
        let (least, most) = self.range?;
        if !self.not_days {
            return Some("days as YYYYMMDD");
        }
        if !self.not_years && least < most {
            return Some("years");
        }
        if !self.not_months {
            return Some("months as YYYYMM");
        }
        let (from, to) = Times::SECONDS;
        let fits = |(_, per_second): &&(&str, f64)| from * per_second <= least && most <= to * per_second;
        Times::UNITS.iter().find(fits).map(|(name, _)| *name)
    }
}

/// Whether a whole number is a year of ours.
fn is_year(value: f64) -> bool {
    (1900.0..2051.0).contains(&value)
}

/// Whether a whole number is a day such as 20261127.
fn is_day(value: f64) -> bool {
    let number = value.clamp(0.0, 1e9) as u32;
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    (1990..2040).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(values: &[f64]) -> Option<&'static str> {
        let mut times = Times::default();
        values.iter().for_each(|&value| times.look(value));
        times.unit()
    }

    #[test]
    fn numbers_that_are_all_times_of_our_years_are_known() {
        assert_eq!(unit(&[1_082_040_961.0, 1_098_777_142.0]), Some("seconds"));
        assert_eq!(unit(&[1_082_040_961_000.0]), Some("milliseconds"));
        assert_eq!(unit(&[1_082_040_961_000_000.0]), Some("microseconds"));
        assert_eq!(unit(&[1_082_040_961e9, 1_582_040_961e9]), Some("nanoseconds"));
        assert_eq!(unit(&[20_040_415.0, 20_261_127.0]), Some("days as YYYYMMDD"));
        assert_eq!(unit(&[1990.0, 2019.0]), Some("years"));
        assert_eq!(unit(&[201_001.0, 202_612.0]), Some("months as YYYYMM"));
        for others in [
            &[1_082_040_961.0, 5.0][..],
            &[0.5, 2.0],
            &[20_041_315.0],
            &[3e9],
            &[2000.0],
            &[2010.5, 2011.0],
            &[201_013.0],
            &[],
        ] {
            assert_eq!(unit(others), None, "{others:?}");
        }
    }

    #[test]
    fn tails_are_told_from_weights_by_what_they_share_with_heads() {
        let sets = |columns: [&[u64]; 3]| columns.map(|column| column.iter().copied().collect::<HashSet<u64>>());
        let many: Vec<u64> = (0..100).collect();
        assert!(is_relation(&sets([&[0, 1, 2], &[5, 6], &[1, 2, 0]]), true));
        assert!(is_relation(&sets([&many, &[0, 1, 2, 3], &many]), true));
        // Films and ratings of many users; weights of few nodes; edges that come at times.
        assert!(!is_relation(&sets([&many, &[200, 201, 202], &[1, 2, 3, 4, 5]]), true));
        assert!(!is_relation(&sets([&[1, 2, 3], &[1, 2, 3], &[1, 2, 3]]), true));
        assert!(is_relation(&sets([&many, &many[..46], &many]), true));
        let calls = sets([&[1000, 1020, 1040], &many[..50], &many[..60]]);
        assert!(starts_in_second(&calls, false));
        let numbered = sets([&many, &many, &many]);
        assert!(!starts_in_second(&numbered, false) && starts_in_second(&numbered, true));
    }
}
