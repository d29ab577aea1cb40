//! Some columns of a row-major matrix: taking them out, putting them back, adding to them.
//!
//! `columns` names the columns of the wide side, each once; the narrow side has one column for each name, in that
//! order.

use crate::threads::Compute;

/// `out[v][i] = from[v][columns[i]]`: `from` has rows of `width` values, `out` rows of one value for each column.
///
/// # Panics
///
/// If the two have different numbers of rows, or a column lies beyond `width`.
pub fn gather_columns(compute: &Compute, out: &mut [f32], columns: &[u32], from: &[f32], width: usize) {
    check((from.len(), width), (out.len(), columns.len()));
    compute.rows((out, columns.len()), |row, out| {
        let from = &from[row * width..][..width];
        out.iter_mut().zip(columns).for_each(|(value, &column)| *value = from[column as usize]);
    });
}

/// `into[v][columns[i]] = from[v][i]`: the other way round. Other columns stay.
///
/// # Panics
///
/// If the two have different numbers of rows, or a column lies beyond `width`.
pub fn scatter_columns(compute: &Compute, into: &mut [f32], width: usize, columns: &[u32], from: &[f32]) {
    check((into.len(), width), (from.len(), columns.len()));
    compute.rows((into, width), |row, into| {
        let from = &from[row * columns.len()..][..columns.len()];
        columns.iter().zip(from).for_each(|(&column, value)| into[column as usize] = *value);
    });
}

/// `into[v][columns[i]] += from[v][i]`. Other columns stay.
///
/// # Panics
///
/// If the two have different numbers of rows, or a column lies beyond `width`.
pub fn add_columns(compute: &Compute, into: &mut [f32], width: usize, columns: &[u32], from: &[f32]) {
    check((into.len(), width), (from.len(), columns.len()));
    compute.rows((into, width), |row, into| {
        let from = &from[row * columns.len()..][..columns.len()];
        columns.iter().zip(from).for_each(|(&column, value)| into[column as usize] += value);
    });
}

fn check(wide: (usize, usize), narrow: (usize, usize)) {
    assert_eq!(wide.0 * narrow.1, narrow.0 * wide.1, "{wide:?} and {narrow:?} values and columns: as many rows");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_go_back_to_where_they_were_taken_from() {
        let compute = Compute::new(2);
        let whole: Vec<f32> = (0..12).map(|value| value as f32).collect();
        let mut some = vec![0.0; 6];
        gather_columns(&compute, &mut some, &[3, 1], &whole, 4);
        assert_eq!(some, [3.0, 1.0, 7.0, 5.0, 11.0, 9.0]);
        let mut copy = vec![-1.0; 12];
        scatter_columns(&compute, &mut copy, 4, &[3, 1], &some);
        assert_eq!(copy[..4], [-1.0, 1.0, -1.0, 3.0]);
        add_columns(&compute, &mut copy, 4, &[3, 1], &some);
        assert_eq!(copy[8..], [-1.0, 18.0, -1.0, 22.0]);
    }
}
