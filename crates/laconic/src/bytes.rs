//! The one way to print bytes, counts that may be large, and figures.

use std::collections::BTreeMap;

use indicatif::DecimalBytes;

/// Bytes with a decimal unit and two places, such as `2.39 MB`; a text and no `Display`, so that columns can pad it.
pub fn human_bytes(bytes: u64) -> String {
    DecimalBytes(bytes).to_string()
}

/// A count with its thousands apart, such as `12,345`.
pub fn separated(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun.
pub fn plural(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{} {noun}s", separated(number)) }
}

/// A figure with four places; a dash where it is not defined.
pub fn figure(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.4}"))
}

/// Figures of one split by name; Hits@K with how many pairs their pool has, without which they mean nothing.
pub fn listed(figures: &BTreeMap<String, Option<f64>>, pool: Option<u64>) -> String {
    let one = |(name, value): (&String, &Option<f64>)| {
        let pool = pool.filter(|_| name.starts_with("hits@")).map(|pool| format!(" (pool of {})", separated(pool)));
        format!("{name} {}{}", figure(*value), pool.unwrap_or_default())
    };
    figures.iter().map(one).collect::<Vec<String>>().join("  ")
}

#[cfg(test)]
mod tests {
    use super::separated;

    #[test]
    fn thousands_stand_apart() {
        let counts = [0, 999, 1000, 424_612_080, u64::MAX];
        let texts = ["0", "999", "1,000", "424,612,080", "18,446,744,073,709,551,615"];
        assert_eq!(counts.map(separated), texts);
    }
}
