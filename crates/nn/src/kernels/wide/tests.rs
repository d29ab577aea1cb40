use super::*;
use crate::kernels::Store;
use crate::kernels::fold::{self, Weights, sum_piece};
use crate::kernels::product::tests::random;
use crate::matrix::{Precision, each_value};
use crate::threads::Compute;

/// Against the plain loops: empty rows, a hub, all widths about the sizes of vectors and registers.
#[test]
fn sums_of_rows_have_the_same_bits_by_the_widest_vectors_and_by_plain_loops() {
    let columns: Vec<u32> = (0..700).map(|i| i * i % 97).collect();
    let offsets = [0, 0, 1, 4, 9, 9, 609, 700];
    for width in [1, 2, 15, 16, 17, 31, 40, 47, 64, 65, 100, 127, 129, 192, 200, 255, 256, 257] {
        let rows = random(97, width, 1);
        let (begun, factors) = (random(offsets.len() - 1, width, 2), random(1, columns.len(), 3));
        for (precision, add) in Precision::ALL.into_iter().flat_map(|precision| [(precision, false), (precision, true)])
        {
            let rows = rows.clone().converted(precision);
            each_value!(rows.values(), |rows| {
                let sum = Sum { width, add, offsets: &offsets, columns: &columns, rows };
                for is_weighted in [false, true] {
                    let weight = |entry: usize| if is_weighted { factors.data()[entry] } else { 1.0 };
                    let [mut plain, mut wide] = [begun.data().to_vec(), begun.data().to_vec()];
                    sum_piece(&mut plain, sum, weight);
                    let is_done = sum_rows(&mut wide, &sum, weight);
                    assert_eq!(is_done, is_there() && width <= WIDEST);
                    let same = plain.iter().zip(&wide).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(!is_done || same, "{width} columns, {precision:?}");
                }
            });
        }
    }
}

/// By vectors and by plain loops, whichever there are: by the entry that everybody takes.
#[test]
#[should_panic]
fn a_row_that_is_not_there_is_refused() {
    let pattern = fold::Pattern { offsets: &[0, 1], columns: &[3], weights: Weights::Ones };
    fold::sum_rows(&Compute::new(1), &mut [0.0; 16], 16, Store::Set, pattern, &[0.0f32; 48]);
}
