//! Moments and days, both of UTC.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat};

/// A moment, in milliseconds since 1970, between then and the end of 9999. Its text form has one length:
/// `2026-12-01T09:14:07.112Z` (RFC 3339).
///
/// ```
/// let time: laconic_federation::Time = "2026-12-01T09:14:07.112Z".parse().unwrap();
/// assert_eq!(time.date().to_string(), "2026-12-01");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// A day: `2027-01-31`, with a year of four digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(NaiveDate);

/// The last millisecond that four digits of a year have.
const LAST: i64 = 253_402_300_799_999;

impl Time {
    /// The clock of this machine.
    pub fn now() -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(LAST))
    }

    /// So many milliseconds after 1970; what lies outside the years 1970 to 9999 becomes their first or last moment.
    pub fn from_millis(millis: i64) -> Time {
        Time(millis.clamp(0, LAST))
    }

    /// The day in which it lies.
    pub fn date(self) -> Date {
        Date(self.moment().date_naive())
    }

    fn moment(self) -> DateTime<chrono::Utc> {
        DateTime::from_timestamp_millis(self.0).unwrap_or(DateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.moment().to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        let wrong = || format!("{text:?}: expected a time of UTC such as 2026-12-01T09:14:07.112Z");
        let millis = millis(text).filter(|millis| (0..=LAST).contains(millis));
        millis.map(Time).ok_or_else(wrong)
    }
}

/// Milliseconds since 1970 of a text of exactly the form that [`Time`] has.
fn millis(text: &str) -> Option<i64> {
    let bytes: &[u8; 24] = text.as_bytes().try_into().ok()?;
    let form = b"0000-00-00T00:00:00.000Z";
    let fits = |(byte, form): (&u8, &u8)| if *form == b'0' { byte.is_ascii_digit() } else { byte == form };
    if !bytes.iter().zip(form).all(fits) {
        return None;
    }
    let number =
        |range: std::ops::Range<usize>| bytes[range].iter().fold(0, |sum, byte| 10 * sum + u32::from(byte - b'0'));
    let date = NaiveDate::from_ymd_opt(i32::try_from(number(0..4)).ok()?, number(5..7), number(8..10))?;
    let moment = date.and_hms_milli_opt(number(11..13), number(14..16), number(17..19), number(20..23))?;
    Some(moment.and_utc().timestamp_millis())
}

impl Date {
    /// A day by its numbers; `None` if there is none such.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Date> {
        let date = NaiveDate::from_ymd_opt(year.into(), month.into(), day.into());
        date.filter(|date| (1000..=9999).contains(&date.year())).map(Date)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d"))
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Date, String> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(Date);
        let same = date.filter(|date| date.to_string() == text && text.len() == 10);
        same.ok_or_else(|| format!("{text:?}: expected a day such as 2027-01-31"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_moment_and_day_has_one_text_and_no_other_text_is_read() {
        for text in ["1970-01-01T00:00:00.000Z", "2026-12-01T09:14:07.112Z", "9999-12-31T23:59:59.999Z"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        let others = ["", "2026-12-01", "2026-12-01T09:14:07Z", "2026-12-01 09:14:07.112Z", "1969-12-31T23:59:59.999Z"];
        let more = ["2026-12-01T10:14:07.112+01:00", "2026-12-01T09:14:07.1120Z", "2026-12-01T09:14:60.000Z"];
        others.iter().chain(&more).for_each(|text| assert!(text.parse::<Time>().is_err(), "{text}"));
        assert_eq!("2024-02-29".parse::<Date>().unwrap(), Date::new(2024, 2, 29).unwrap());
        for text in ["2023-02-29", "2024-2-29", "+2024-02-29", "12024-02-29", " 2024-02-29", ""] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}
