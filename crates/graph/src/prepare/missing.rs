//! Cells without a value.

use crate::about::About;
use crate::dataset::{Features, Split};
use crate::exact::Exact;

/// Puts the mean of a column where a cell has no value and its recipe in `about` leaves that open, as
/// [`crate::read::Missing::Mean`] does, and writes the means into the recipe.
///
/// Means are over the nodes that have the role [`Split::TRAIN`] in `roles`, so that nothing is learned from the others;
/// over all nodes where there are no roles, or none that has a value; 0 where there is no value at all.
pub fn fill_missing((features, exact): (&mut Features, &mut Exact), about: &mut About, roles: Option<&[u8]>) {
    let Features::Dense { columns: width, values } = features else { return };
    let mut start = 0;
    for column in &mut about.columns {
        for (place, fill) in column.fill.iter_mut().flatten().enumerate().filter(|(_, fill)| fill.is_nan()) {
            let at = start + place;
            let mut kept = exact.columns.iter_mut().find(|of| of.column == at);
            let trains = |row: usize| roles.is_none_or(|roles| roles[row] & Split::TRAIN != 0);
            let mean_of = |counts: &dyn Fn(usize) -> bool| match &kept {
                Some(of) => mean(of.values.iter().enumerate().filter(|(row, _)| counts(*row)).map(|(_, of)| of.value)),
                None => {
                    let rows = values.chunks_exact(*width).map(|row| f64::from(row[at])).enumerate();
                    mean(rows.filter(|(row, _)| counts(*row)).map(|(_, value)| value))
                }
            };
            *fill = mean_of(&trains).or_else(|| mean_of(&|_| true)).unwrap_or(0.0);
            let gaps = values.chunks_exact_mut(*width).map(|row| &mut row[at]).filter(|value| value.is_nan());
            gaps.for_each(|value| *value = *fill as f32);
            let gaps = kept.iter_mut().flat_map(|of| &mut of.values).filter(|of| of.value.is_nan());
            gaps.for_each(|of| *of = (*fill).into());
        }
        start += column.width();
    }
}

/// The mean of those that are there.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0f64, 0u64);
    for value in values.filter(|value| !value.is_nan()) {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f64)
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
        let columns = vec![column("a", None), column("b", Some(vec![f64::NAN])), column("c", Some(vec![7.0]))];
        let mut about = About { columns, ..About::default() };
        let nan = f32::NAN;
        let values = vec![9.0, 1.0, 0.0, 5.0, 9.0, 3.0, 0.0, 5.0, 9.0, 50.0, 0.0, 5.0, 9.0, nan, 1.0, 5.0];
        let mut features = Features::Dense { columns: 4, values: values.into() };
        let unsplit = (&mut features.clone(), &mut about.clone());
        fill_missing((unsplit.0, &mut Exact::default()), unsplit.1, None);
        assert_eq!(unsplit.1.columns[1].fill, Some(vec![18.0]));
        fill_missing(
            (&mut features, &mut Exact::default()),
            &mut about,
            Some(&[Split::TRAIN, Split::TRAIN, Split::TEST, Split::TRAIN]),
        );
        assert_eq!((&about.columns[1].fill, &about.columns[2].fill), (&Some(vec![2.0]), &Some(vec![7.0])));
        let Features::Dense { values, .. } = features else { panic!("dense stays dense") };
        assert_eq!(values[12..], [9.0, 2.0, 1.0, 5.0]);
    }
}
