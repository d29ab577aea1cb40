//! Feature columns that are not on one scale.

use crate::dataset::Features;

/// Columns whose numbers are so many times as large are said.
const RATIO: f64 = 100.0;

/// A sentence where numbers of one column are 100 times as large as those of another, or more: a model that reads them
/// as they are hears little but the largest. The size of a column is the root mean square of its numbers that are not
/// 0. Columns of tables are put on one scale unless somebody says otherwise.
pub fn unlike_scales(features: &Features, names: &[String], are_of_tables: bool) -> Option<String> {
    let columns = features.columns();
    let mut sums = vec![(0.0f64, 0u64); columns];
    features.for_each(|_, column, value| {
        if value != 0.0 && value.is_finite() {
            let (squares, count) = &mut sums[column];
            (*squares, *count) = (*squares + f64::from(value).powi(2), *count + 1);
        }
    });
    let size = |&(squares, count): &(f64, u64)| (squares / count as f64).sqrt();
    let sizes = sums.iter().enumerate().filter(|(_, sum)| sum.1 > 0).map(|(column, sum)| (size(sum), column));
    let sizes: Vec<(f64, usize)> = sizes.collect();
    let least = sizes.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let most = sizes.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = |column: usize| names.get(column).map_or_else(|| format!("column {column}"), |name| format!("'{name}'"));
    (most.0 >= RATIO * least.0).then(|| {
        let (large, small) = (name(most.1), name(least.1));
        let both = format!("{large} is about {:.1e}, {small} about {:.1e}", most.0, least.0);
        let cure = match are_of_tables {
            true => "training puts those of tables on one scale, unless data.features = \"given\"",
            false => "data.features = \"standardised\" (--feature-preparation) puts all on one scale",
        };
        format!("feature columns differ in scale by a factor of {:.0}: {both}; {cure}", most.0 / least.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_differ_by_a_hundred_are_said_and_rare_ones_are_not_small() {
        let of = |columns, values: &[f32]| {
            unlike_scales(&Features::Dense { columns, values: values.to_vec().into() }, &[], false)
        };
        let said = of(2, &[0.5, 50.0, -0.5, -50.0]).unwrap();
        assert!(said.contains("by a factor of 100: column 1 is about 5.0e1, column 0 about 5.0e-1"), "{said}");
        assert_eq!(of(2, &[0.5, 49.0, -0.5, -49.0]), None);
        // One node in a thousand has a word: its column is as large as any other.
        let mut rare = vec![1.0; 2000];
        (0..999).for_each(|row| rare[2 * row] = 0.0);
        assert_eq!(of(2, &rare), None);
        assert_eq!(unlike_scales(&Features::None, &[], false), None);
    }
}
