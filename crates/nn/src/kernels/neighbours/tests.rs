//! Sums of neighbours, multiplied as they are made, against nested loops.

use super::*;
use crate::block::Csr;
use crate::kernels::affine::{Left, affine};
use crate::kernels::product::tests::random;
use crate::matrix::{Precision, Rows};
use laconic_key::{Key, Purpose};

/// A graph in which the first node hears from everybody and every third from nobody.
fn edges(n: usize, weighted: bool) -> Block {
    let key = Key::new(9, Purpose::Test);
    let (mut offsets, mut columns) = (vec![0], vec![]);
    for v in 0..n {
        let degree = if v == 0 { n } else { [0, 7, 2][v % 3] };
        columns.extend((0..degree).map(|e| key.with(v as u64).with(e as u64).below(n as u64) as u32));
        offsets.push(columns.len());
    }
    let weights = weighted.then(|| random(1, columns.len(), 8).into_vec());
    Block::new(n, offsets, columns, weights)
}

/// A layer of such sums.
struct Subject {
    x: Matrix,
    dz: Matrix,
    block: Block,
    ends: [Option<Vec<f32>>; 2],
    neighbours: Vec<f32>,
    own: Option<Vec<f32>>,
    bias: Vec<f32>,
}

/// Outputs, the gradient of all parameters (W, V, bias), and that of the rows.
type Done = (Matrix, Vec<f32>, Matrix);

impl Subject {
    /// `all`: with weights of edges and of both ends, and a product of the rows themselves; otherwise with none.
    fn new(n: usize, (inputs, outputs): (usize, usize), all: bool) -> Subject {
        Subject {
            x: random(n, inputs, 1),
            dz: random(n, outputs, 2),
            block: edges(n, all),
            ends: [3, 4].map(|stream| all.then(|| random(1, n, stream).into_vec())),
            neighbours: random(outputs, inputs, 5).into_vec(),
            own: all.then(|| random(outputs, inputs, 6).into_vec()),
            bias: random(1, outputs, 7).into_vec(),
        }
    }

    /// The same for the first rows alone, which all of them are read for.
    fn of_first(self, rows: usize) -> Subject {
        let dz = self.dz.gather(&(0..rows as u32).collect::<Vec<_>>());
        Subject { block: self.block.head(rows, self.x.rows()).both_ways(), dz, ..self }
    }

    /// By the functions under test.
    fn run(&self, threads: usize) -> Done {
        self.run_through(threads, Through::All)
    }

    fn run_through(&self, threads: usize, through: Through) -> Done {
        let mut compute = Compute::new(threads);
        let [of_sources, of_destinations] = [&self.ends[0], &self.ends[1]].map(|end| end.as_deref());
        let along = Along { block: &self.block, of_sources, of_destinations };
        let sums = Sums { rows: &self.x, along };
        let (inputs, outputs) = (self.x.columns(), self.dz.columns());
        let precision = self.x.precision();
        let (mut z, mut dx) = (Matrix::stored(precision), self.x.clone());
        z.reshape(self.dz.rows(), outputs);
        let mut terms = vec![(Left::Neighbours(sums), self.neighbours.as_slice())];
        terms.extend(self.own.as_deref().map(|own| (Left::Rows(Rows::Span(self.x.span(0..self.dz.rows()))), own)));
        affine(&mut compute, &mut z, &terms, &self.bias, |_, _| {});
        let own = self.own.as_deref().map(|own| (own, outputs * inputs));
        let ends = Ends { neighbours: (&self.neighbours, 0), own, bias: 2 * outputs * inputs };
        let mut gradient = vec![0.25; 2 * outputs * inputs + outputs];
        neighbours_adjoint(&mut compute, &mut gradient, ends, along, &self.dz, (&mut dx, through));
        (z, gradient, dx)
    }

    /// By loops over edges and columns, in f64.
    fn plain(&self) -> [Vec<f64>; 3] {
        let rows = |m: &Matrix| -> Vec<Vec<f64>> {
            let row = |r: usize| {
                let mut row = vec![0.0; m.columns()];
                m.copy_row(r, &mut row);
                row.into_iter().map(f64::from).collect()
            };
            (0..m.rows()).map(row).collect()
        };
        let (x, dz) = (rows(&self.x), rows(&self.dz));
        let (inputs, outputs) = (self.x.columns(), self.dz.columns());
        let weight = |end: &Option<Vec<f32>>, v: usize| end.as_ref().map_or(1.0, |w| f64::from(w[v]));
        let (mut z, mut dx) = (vec![vec![0.0; outputs]; dz.len()], vec![vec![0.0; inputs]; x.len()]);
        let mut gradient = vec![0.25; 2 * outputs * inputs + outputs];
        let Csr { offsets, columns } = self.block.forward();
        for v in 0..dz.len() {
            let edges = (offsets[v]..offsets[v + 1]).map(|e| {
                let of_edge = self.block.weights().map_or(1.0, |w| f64::from(w[e]));
                let u = columns[e] as usize;
                (u, of_edge * weight(&self.ends[0], u) * weight(&self.ends[1], v), &self.neighbours, 0)
            });
            let own = self.own.iter().map(|own| (v, 1.0, own, outputs * inputs));
            for (u, factor, matrix, at) in edges.chain(own) {
                for o in 0..outputs {
                    for i in 0..inputs {
                        let entry = f64::from(matrix[o * inputs + i]);
                        z[v][o] += factor * x[u][i] * entry;
                        dx[u][i] += factor * dz[v][o] * entry;
                        gradient[at + o * inputs + i] += factor * dz[v][o] * x[u][i];
                    }
                }
            }
            for o in 0..outputs {
                z[v][o] += f64::from(self.bias[o]);
                gradient[2 * outputs * inputs + o] += dz[v][o];
            }
        }
        [z.concat(), gradient, dx.concat()]
    }
}

/// The values of a matrix, in rows, whatever it stores.
fn values(m: &Matrix) -> Vec<f32> {
    let mut out = vec![0.0; m.rows() * m.columns()];
    out.chunks_exact_mut(m.columns()).enumerate().for_each(|(row, out)| m.copy_row(row, out));
    out
}

const SHAPES: [(usize, (usize, usize)); 5] =
    [(2100, (37, 11)), (1, (1, 1)), (1025, (5, 3)), (450, (32, 48)), (0, (4, 2))];

/// Within `tolerance` of the largest value of each kind.
fn agree(subject: &Subject, done: &Done, tolerance: f64) {
    let (z, gradient, dx) = done;
    for (made, exact) in [values(z), gradient.clone(), values(dx)].iter().zip(subject.plain()) {
        assert_eq!(made.len(), exact.len());
        let largest = exact.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
        for (a, b) in made.iter().zip(&exact) {
            assert!((f64::from(*a) - b).abs() < tolerance * largest, "{a} against {b}");
        }
    }
}

#[test]
fn sums_of_neighbours_and_their_adjoint_agree_with_nested_loops() {
    for (n, widths) in SHAPES {
        for all in [false, true] {
            for rows in [n, n * 5 / 7] {
                let subject = Subject::new(n, widths, all).of_first(rows);
                agree(&subject, &subject.run(2), 1e-5);
            }
        }
    }
}

/// A bfloat16 has eight digits, and words that are multiplied have no more of sums that are made on the way.
#[test]
fn stored_halves_agree_with_nested_loops_within_their_digits() {
    for (n, widths) in SHAPES {
        let mut subject = Subject::new(n, widths, true).of_first(n * 5 / 7);
        for matrix in [&mut subject.x, &mut subject.dz] {
            *matrix = matrix.clone().converted(Precision::Bf16);
        }
        agree(&subject, &subject.run(2), 1.0 / 64.0);
    }
}

/// A ReLU that put the rows out is turned back on the way, and nothing else changes.
#[test]
fn a_gradient_that_returns_through_what_is_positive_is_that_of_all_rows_with_zeros() {
    for precision in Precision::ALL {
        let mut subject = Subject::new(2100, (37, 11), true);
        for matrix in [&mut subject.x, &mut subject.dz] {
            *matrix = matrix.clone().converted(precision);
        }
        let [all, positive] = [Through::All, Through::Positive].map(|through| subject.run_through(2, through));
        assert!(all.1 == positive.1, "the same gradients of weights");
        let (dx, closed) = (values(&all.2), values(&positive.2));
        for ((x, dx), closed) in values(&subject.x).iter().zip(dx).zip(closed) {
            assert_eq!(closed.to_bits(), if *x > 0.0 { dx.to_bits() } else { 0 });
        }
    }
}

#[test]
fn sums_of_neighbours_have_the_same_bits_on_any_number_of_threads() {
    let subject = Subject::new(2100, (37, 11), true);
    let bits = |threads| {
        let (z, gradient, dx) = subject.run(threads);
        [values(&z), gradient, values(&dx)].concat().iter().map(|value| value.to_bits()).collect::<Vec<_>>()
    };
    let one = bits(1);
    assert!(bits(2) == one && bits(3) == one);
}

/// Whoever has how many edges: no piece has more than its share and one row's.
#[test]
fn pieces_of_the_way_back_share_edges_and_rows() {
    for n in [0, 1, 2100, 40_000] {
        let block = edges(n, false);
        let offsets = block.reverse().offsets;
        let work = |row: usize| offsets[row] + EDGES_OF_PRODUCTS * row;
        let (bounds, pieces) = bounds(&block);
        assert_eq!((bounds[0], bounds[pieces]), (0, n));
        let largest = (0..n).map(|row| work(row + 1) - work(row)).max().unwrap_or(0);
        for piece in bounds[..=pieces].windows(2) {
            assert!(piece[0] <= piece[1]);
            assert!(work(piece[1]) - work(piece[0]) <= work(n) / pieces + largest + 1);
        }
    }
}
