//! What single cells of text mean.

/// Whether a cell says that there is no value, as pandas, R and SQL write it.
pub fn is_missing(field: &str) -> bool {
    matches!(
        field,
        "" | "NA" | "N/A" | "n/a" | "na" | "<NA>" | "nan" | "NaN" | "NAN" | "null" | "NULL" | "Null" | "None"
    )
}

/// Whether this is a number with a decimal comma, such as `0,5`.
pub fn has_decimal_comma(field: &str) -> bool {
    let digits = field.strip_prefix(['-', '+']).unwrap_or(field);
    let all = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    digits.split_once(',').is_some_and(|(whole, fraction)| all(whole) && all(fraction))
}

/// Days since 1970-01-01 of a date, `2026-11-22`, or a time, `2026-11-22 10:30:00.5+01:00` (`T` for the space, `Z` for
/// the zone, and no zone at all will do).
pub fn days(field: &str) -> Option<f64> {
    let (date, time) = match field.get(10..) {
        Some("") => (field, ""),
        Some(rest) => (field.get(..10)?, rest.strip_prefix(['T', ' '])?),
        None => return None,
    };
    let separator = *date.as_bytes().get(4).filter(|byte| [b'-', b'/'].contains(byte))?;
    if date.as_bytes()[7] != separator {
        return None;
    }
    let [year, month, day] = [number(date.get(..4)?)?, number(date.get(5..7)?)?, number(date.get(8..)?)?];
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let days = days_from_civil(year, month, day);
    if time.is_empty() { (field.len() == 10).then_some(days as f64) } else { Some(days as f64 + seconds(time)? / DAY) }
}

const DAY: f64 = 86_400.0;

/// Seconds since midnight in UTC.
fn seconds(time: &str) -> Option<f64> {
    let time = time.strip_suffix('Z').unwrap_or(time);
    let (time, zone) = match time.rfind(['+', '-']) {
        Some(at) => (time.get(..at)?, time.get(at..)?),
        None => (time, ""),
    };
    let mut parts = time.splitn(3, ':');
    let [hours, minutes] = [number(parts.next()?)?, number(parts.next()?)?];
    let seconds: f64 = parts.next().map_or(Some(0.0), decimal)?;
    if hours > 24 || minutes > 59 || seconds >= 61.0 {
        return None;
    }
    let offset = match zone.strip_prefix(['+', '-']) {
        None => 0.0,
        Some(zone) => {
            let minutes = number(zone.get(2..)?.trim_start_matches(':')).unwrap_or(0);
            (number(zone.get(..2)?)? * 3600 + minutes * 60) as f64
        }
    };
    let offset = if zone.starts_with('-') { -offset } else { offset };
    Some((hours * 3600 + minutes * 60) as f64 + seconds - offset)
}

fn number(digits: &str) -> Option<i64> {
    (!digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
}

fn decimal(digits: &str) -> Option<f64> {
    (digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')).then(|| digits.parse().ok()).flatten()
}

/// Days since 1970-01-01 in the Gregorian calendar, with years that begin in March so that leap days come last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        for (field, expected) in [
            ("1970-01-01", 0.0),
            ("1969-12-31", -1.0),
            ("2000/03/01", 11_017.0),
            ("2026-11-22", 20_779.0),
            ("2026-11-22T12:00", 20_779.5),
            ("2026-11-22 06:00:00.000", 20_779.25),
            ("2026-11-22T06:00:00Z", 20_779.25),
            ("2026-11-22 07:00:00+01:00", 20_779.25),
            ("2026-11-22 01:00:00-0500", 20_779.25),
        ] {
            assert_eq!(days(field), Some(expected), "{field}");
        }
        for field in ["", "2026", "2026-13-01", "2026-11-22x", "22.11.2026", "2026-11/22", "2026-11-22T", "é026-11-22é"]
        {
            assert_eq!(days(field), None, "{field}");
        }
    }

    #[test]
    fn decimal_commas_and_missing_values_are_known() {
        assert!(["0,5", "-12,25", "+1,0"].iter().all(|field| has_decimal_comma(field)));
        assert!(!["0.5", "1,2,3", "a,b", ",5", "5,", "5"].iter().any(|field| has_decimal_comma(field)));
        assert!(["", "NA", "n/a", "NaN", "null"].iter().all(|field| is_missing(field)));
        assert!(!["0", "none of them", "Namibia"].iter().any(|field| is_missing(field)));
    }
}
