//! The one way to print bytes.

/// Bytes with a decimal unit and four digits.
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.2} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.2} TB")
}
