//! Cells without a value.

use crate::about::About;
use crate::dataset::{Features, Split};

/// Puts the mean of a column where a cell has no value and its recipe in `about` leaves that open, as
/// [`crate::read::Missing::Mean`] does, and writes the means into the recipe.
///
/// Means are over the nodes that have the role [`Split::TRAIN`] in `roles`, so that nothing is learned from the others;
/// over all nodes where there are no roles, or none that has a value; 0 where there is no value at all.
pub fn fill_missing(features: &mut Features, about: &mut About, roles: Option<&[u8]>) {
    let Features::Dense { columns: width, values } = features else { return };
    let mut start = 0;
    for column in &mut about.columns {
        for (place, fill) in column.fill.iter_mut().flatten().enumerate().filter(|(_, fill)| fill.is_nan()) {
            let at = start + place;
            let rows = || values.chunks_exact(*width).map(|row| row[at]).enumerate();
            let trains = |row: usize| roles.is_none_or(|roles| roles[row] & Split::TRAIN != 0);
            let of_training = mean(rows().filter(|(row, _)| trains(*row)).map(|(_, value)| value));
            *fill = of_training.or_else(|| mean(rows().map(|(_, value)| value))).unwrap_or(0.0);
            let gaps = values.chunks_exact_mut(*width).map(|row| &mut row[at]).filter(|value| value.is_nan());
            gaps.for_each(|value| *value = *fill);
        }
        start += column.width();
    }
}

/// The mean of those that are there.
fn mean(values: impl Iterator<Item = f32>) -> Option<f32> {
    let (mut sum, mut count) = (0.0f64, 0u64);
    for value in values.filter(|value| !value.is_nan()) {
        sum += f64::from(value);
        count += 1;
    }
    (count > 0).then(|| (sum / count as f64) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::about::{Reading, TableColumn};

    #[test]
    fn gaps_get_the_mean_over_training_nodes_and_the_recipe_keeps_it() {
        let column = |name: &str, fill| TableColumn {
            name: name.to_owned(),
            reading: Reading::Number,
            fill,
            indicator: name == "b",
        };
        let columns = vec![column("a", None), column("b", Some(vec![f32::NAN])), column("c", Some(vec![7.0]))];
        let mut about = About { columns, ..About::default() };
        let nan = f32::NAN;
        let values = vec![9.0, 1.0, 0.0, 5.0, 9.0, 3.0, 0.0, 5.0, 9.0, 50.0, 0.0, 5.0, 9.0, nan, 1.0, 5.0];
        let mut features = Features::Dense { columns: 4, values };
        let unsplit = (&mut features.clone(), &mut about.clone());
        fill_missing(unsplit.0, unsplit.1, None);
        assert_eq!(unsplit.1.columns[1].fill, Some(vec![18.0]));
        fill_missing(&mut features, &mut about, Some(&[Split::TRAIN, Split::TRAIN, Split::TEST, Split::TRAIN]));
        assert_eq!((&about.columns[1].fill, &about.columns[2].fill), (&Some(vec![2.0]), &Some(vec![7.0])));
        let Features::Dense { values, .. } = features else { panic!("dense stays dense") };
        assert_eq!(values[12..], [9.0, 2.0, 1.0, 5.0]);
    }
}
