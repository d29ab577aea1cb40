//! The clock of benchmarks, and what is told of a measure.

use std::time::Instant;

use schemars::JsonSchema;
use serde::Serialize;

/// Repetitions of a measure at least.
const LEAST: usize = 3;
/// Repetitions at most: where one takes no time to speak of.
const MOST: usize = 10_000;

/// What repetitions of one thing took.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Times {
    /// Seconds of the fastest repetition.
    pub best_seconds: f64,
    /// Seconds of the median repetition.
    pub median_seconds: f64,
    /// How many repetitions there were.
    pub repetitions: usize,
}

impl Times {
    /// The figures of these seconds; `None` of none.
    pub fn of(mut seconds: Vec<f64>) -> Option<Times> {
        seconds.sort_by(f64::total_cmp);
        let best_seconds = *seconds.first()?;
        let (half, repetitions) = (seconds.len() / 2, seconds.len());
        let median_seconds = match repetitions % 2 {
            0 => (seconds[half - 1] + seconds[half]) / 2.0,
            _ => seconds[half],
        };
        Some(Times { best_seconds, median_seconds, repetitions })
    }

    /// How much of something the fastest did in a second.
    pub fn rate(&self, amount: f64) -> f64 {
        amount / self.best_seconds.max(1e-9)
    }
}

/// Does something once, to warm up, and then again until so many seconds have passed, three times at least.
pub fn times(seconds: f64, work: &mut dyn FnMut()) -> Times {
    times_after(seconds, &mut || (), work)
}

/// The same of what has to be prepared each time, which does not count.
pub fn times_after(seconds: f64, prepare: &mut dyn FnMut(), work: &mut dyn FnMut()) -> Times {
    prepare();
    work();
    let (begin, mut each) = (Instant::now(), Vec::new());
    while each.len() < LEAST || each.len() < MOST && begin.elapsed().as_secs_f64() < seconds {
        prepare();
        let start = Instant::now();
        work();
        each.push(start.elapsed().as_secs_f64());
    }
    Times::of(each).unwrap_or(Times { best_seconds: 0.0, median_seconds: 0.0, repetitions: 0 })
}

/// A rate for people, in thousand millions a second.
pub fn giga(rate: f64) -> String {
    format!("{:.2}", rate / 1e9)
}

/// Seconds for people.
pub fn milliseconds(seconds: f64) -> String {
    format!("{:.3}", seconds * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_few_is_worked_out_by_hand() {
        let figures = |seconds: &[f64]| {
            let times = Times::of(seconds.to_vec()).expect("some");
            (times.best_seconds, times.median_seconds, times.repetitions)
        };
        assert_eq!(figures(&[3.0, 1.0, 2.0]), (1.0, 2.0, 3));
        assert_eq!(figures(&[4.0, 1.0, 2.0, 8.0]), (1.0, 3.0, 4));
        assert!(Times::of(Vec::new()).is_none());
        let mut calls = 0;
        assert_eq!(times(0.0, &mut || calls += 1).repetitions, LEAST);
        assert_eq!(calls, LEAST + 1);
    }
}
