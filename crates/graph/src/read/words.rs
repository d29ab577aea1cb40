//! What single cells of text mean.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

/// Whether a cell says that there is no value, as pandas, R and SQL write it.
pub fn is_missing(field: &str) -> bool {
    matches!(
        field,
        "" | "NA" | "N/A" | "n/a" | "na" | "<NA>" | "nan" | "NaN" | "NAN" | "null" | "NULL" | "Null" | "None"
    )
}

/// Whether a cell among numbers says that there is none, in words that may be somebody's name elsewhere.
pub fn is_no_number(field: &str) -> bool {
    matches!(
        field,
        "-" | "--" | "–" | "—" | "?" | "." | "\\N" | "#N/A" | "#NA" | "N.A." | "n.a." | "NaT" | "(null)" | "<null>"
    )
}

/// Days since 1970-01-01 of a date, `2026-11-22`, or a time, `2026-11-22 10:30:00.5+01:00` (`T` for the space, `Z` for
/// the zone, and no zone at all will do); `22.11.2026` is a date as well. Of a time of day, `10:30:00`, the part of a
/// day.
pub fn days(field: &str) -> Option<f64> {
    if !field.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    if field.as_bytes().get(2) == Some(&b':') {
        let since = |time: NaiveTime| time.signed_duration_since(NaiveTime::MIN).num_milliseconds() as f64;
        return NaiveTime::parse_from_str(field, "%H:%M:%S%.f").ok().map(|time| since(time) / 1000.0 / DAY);
    }
    let text = field.replacen('T', " ", 1);
    let text = text.strip_suffix('Z').map_or_else(|| text.clone(), |time| format!("{time}+00:00"));
    ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y"].iter().find_map(|date| {
        let day = NaiveDate::parse_from_str(&text, date).ok().map(|day| day.and_time(NaiveTime::MIN));
        let with = |time: &&str| {
            let (local, zoned) = (format!("{date} {time}"), format!("{date} {time}%#z"));
            let zoned = || DateTime::parse_from_str(&text, &zoned).ok().map(|time| time.naive_utc());
            NaiveDateTime::parse_from_str(&text, &local).ok().or_else(zoned)
        };
        let time = day.or_else(|| ["%H:%M:%S%.f", "%H:%M"].iter().find_map(with))?;
        Some((time.and_utc().timestamp() as f64 + f64::from(time.and_utc().timestamp_subsec_nanos()) * 1e-9) / DAY)
    })
}

const DAY: f64 = 86_400.0;

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
            ("22.11.2026", 20_779.0),
            ("22.11.2026 06:00", 20_779.25),
            ("06:00:00", 0.25),
            ("18:00:00.000", 0.75),
        ] {
            assert_eq!(days(field), Some(expected), "{field}");
        }
        for field in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-31",
            "2026-11-22x",
            "22.13.2026",
            "11:30",
            "24:00:00",
            "31:10:00",
            "1:2:3",
            "2026-11/22",
            "2026-11-22T",
            "é026-11-22é",
        ] {
            assert_eq!(days(field), None, "{field}");
        }
    }

    #[test]
    fn words_for_missing_values_are_known() {
        assert!(["", "NA", "n/a", "NaN", "null"].iter().all(|field| is_missing(field)));
        assert!(!["0", "none of them", "Namibia", "-"].iter().any(|field| is_missing(field)));
        assert!(["-", "?", "\\N", "#N/A"].iter().all(|field| is_no_number(field)) && !is_no_number("-1"));
    }
}
