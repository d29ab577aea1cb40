//! How far something goes: `2min`, `500 steps`, `1 epoch`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far something goes: a time, or steps or epochs of a trainer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Pace {
    /// A time on the aggregator's clock.
    Time(Duration),
    /// Steps of each trainer.
    Steps(u64),
    /// Epochs of each trainer over its own rows.
    Epochs(u64),
}

impl Pace {
    /// The same in a trainer's steps, of which an epoch takes so many; `None` of a time.
    pub fn steps(self, of_epoch: u64) -> Option<u64> {
        match self {
            Pace::Time(_) => None,
            Pace::Steps(steps) => Some(steps),
            Pace::Epochs(epochs) => Some(epochs.saturating_mul(of_epoch.max(1))),
        }
    }
}

/// More seconds, steps or epochs are refused: thirty years, and more steps than logs have room for.
const MOST: f64 = 1e9;

/// A number and its unit.
fn parts(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    (number > 0.0 && number <= MOST).then_some((number, text[digits..].trim()))
}

/// A duration such as `90 s`, `2min` or `1.5 h`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = parts(text)?;
    let seconds = match unit {
        "ms" => 1e-3,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64((number * seconds).min(MOST)).ok().filter(|time| !time.is_zero())
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Pace, String> {
        let whole = |(number, unit)| (f64::fract(number) == 0.0).then_some((number as u64, unit));
        match parts(text).and_then(whole) {
            Some((steps, "step" | "steps")) => Ok(Pace::Steps(steps)),
            Some((epochs, "epoch" | "epochs")) => Ok(Pace::Epochs(epochs)),
            _ => parse_duration(text).map(Pace::Time).ok_or_else(|| {
                format!("expected a time, steps or epochs such as \"2min\", \"500 steps\", \"1 epoch\", found {text:?}")
            }),
        }
    }
}

/// A time in seconds, or as few numbers as say it.
pub(super) fn in_words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 60.0 && s % 60.0 == 0.0 => format!("{}min", s / 60.0),
        s if s < 1.0 => format!("{}ms", s * 1e3),
        s => format!("{s}s"),
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Time(time) => f.write_str(&in_words(*time)),
            Pace::Steps(1) => f.write_str("1 step"),
            Pace::Steps(steps) => write!(f, "{steps} steps"),
            Pace::Epochs(1) => f.write_str("1 epoch"),
            Pace::Epochs(epochs) => write!(f, "{epochs} epochs"),
        }
    }
}

impl TryFrom<String> for Pace {
    type Error = String;

    fn try_from(text: String) -> Result<Pace, String> {
        text.parse()
    }
}

impl From<Pace> for String {
    fn from(pace: Pace) -> String {
        pace.to_string()
    }
}

/// A duration in a configuration, as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Span, String> {
        let what = || format!("expected a time above 0 such as \"10 s\", \"2min\" or \"1.5 h\", found {text:?}");
        parse_duration(&text).map(Span).ok_or_else(what)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        in_words(span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_none_is_refused_as_that() {
        for text in ["0s", "0 min", "0.0 h"] {
            let error = Span::try_from(text.to_owned()).expect_err(text);
            assert!(error.contains("a time above 0") && error.contains(text), "{error}");
        }
    }

    #[test]
    fn paces_are_read_with_their_units_and_written_so_that_they_read_back() {
        let seconds = Duration::from_secs_f64;
        for (text, pace) in [
            ("2min", Pace::Time(seconds(120.0))),
            ("90 s", Pace::Time(seconds(90.0))),
            ("250ms", Pace::Time(seconds(0.25))),
            ("1.5 h", Pace::Time(seconds(5400.0))),
            ("500 steps", Pace::Steps(500)),
            ("1 step", Pace::Steps(1)),
            ("1 epoch", Pace::Epochs(1)),
            ("20epochs", Pace::Epochs(20)),
        ] {
            assert_eq!(text.parse(), Ok(pace), "{text}");
            assert_eq!(pace.to_string().parse(), Ok(pace), "{pace}");
        }
        for text in ["", "5", "min", "0 steps", "0 s", "1.5 steps", "-2 s", "1e3 s", "nan s", "2 weeks", "9999999999 s"]
        {
            assert!(text.parse::<Pace>().is_err(), "{text}");
        }
    }
}
