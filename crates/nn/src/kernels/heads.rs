//! What attention does with its heads, whose columns stand side by side: head h has columns h·width to (h + 1)·width.

use super::stored::{Access, read, rows};
use crate::matrix::Matrix;
use crate::threads::Compute;

/// `out[v][d] = Σ_h x[v][h·width + d] / heads`: the mean over heads. `x` is n × (heads · width), `out` n × width.
pub fn average_heads(compute: &Compute, out: &mut Matrix, x: &Matrix, heads: usize) {
    let (width, rooms) = (out.columns(), compute.rooms());
    rows(compute, out, Access::Write, |row, out| {
        out.fill(0.0);
        read(&rooms, x.all(), row..row + 1, |x| {
            for head in x.chunks(width) {
                out.iter_mut().zip(head).for_each(|(sum, value)| *sum += value);
            }
        });
        out.iter_mut().for_each(|sum| *sum /= heads as f32);
    });
}

/// The adjoint of [`average_heads`]: `out[v][h·width + d] = dz[v][d] / heads`. `dz` is n × width, `out` n × (heads ·
/// width).
pub fn spread_heads(compute: &Compute, out: &mut Matrix, dz: &Matrix, heads: usize) {
    let (width, rooms) = (dz.columns(), compute.rooms());
    rows(compute, out, Access::Write, |row, out| {
        read(&rooms, dz.all(), row..row + 1, |dz| {
            for head in out.chunks_mut(width) {
                head.iter_mut().zip(dz).for_each(|(value, dz)| *value = dz / heads as f32);
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::elementwise::dot;

    #[test]
    fn spreading_is_the_adjoint_of_averaging() {
        let compute = Compute::new(1);
        let x = Matrix::from_vec(2, 4, vec![1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 5.0, 2.5]);
        let (mut mean, mut back) = (Matrix::zeros(2, 2), Matrix::zeros(2, 4));
        average_heads(&compute, &mut mean, &x, 2);
        assert_eq!(mean.data(), [2.0, 3.0, 2.0, 1.5]);
        let dz = Matrix::from_vec(2, 2, vec![1.0, -2.0, 3.0, 0.25]);
        spread_heads(&compute, &mut back, &dz, 2);
        assert_eq!(dot(mean.data(), dz.data()), dot(x.data(), back.data()));
    }
}
