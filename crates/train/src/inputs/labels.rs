//! `labels`: the training labels of boundary nodes. A node's columns are the shares of classes among its neighbours
//! that train, wherever these are; its own label is not among them.
//!
//! A neighbour counts for one over the root of its degree, as in label propagation with a symmetric normalisation. Its
//! owner tells the power of two that its degree lies above, so that all workers count it alike, and counts are whole
//! numbers: below 2^24 sums do not depend on who adds them up, and one worker has the columns of many, bit for bit.
//!
//! A layer that reads neighbours reads their columns, and in these is the node's own label: such a model sees its
//! training labels, a little, and has to learn not to trust them. An `mlp` does not.
//!
//! What crosses for each boundary node is one number: its class, or that it does not train, and how much it counts for;
//! packed, ⌈log₂(6 · (classes + 1))⌉ bits.

use laconic_nn::Matrix;
use laconic_wire::Content;

use super::neighbours::Neighbours;
use super::{Heard, InputKind, Telling};
use crate::error::Result;

pub(super) const KIND: InputKind = InputKind {
    name: "labels",
    content: Content::TrainingLabels,
    from: &[],
    loses: false,
    columns: |classes| classes,
    payload: |rows, classes| (rows * bits(classes)).div_ceil(8),
    tell,
};

/// What a neighbour of a degree from 2^k on counts for, about 64 over the root of 1.5 · 2^k. Degrees from 32 on count
/// alike.
pub(super) const WEIGHTS: [u32; 6] = [64, 37, 26, 18, 13, 7];

/// What is added to a sum of weights before it is divided by: a twentieth of a neighbour of degree 1, so that what is
/// known of few neighbours counts for a little less.
pub(super) const EPSILON: f32 = 3.2;

/// Turns what each class counts for into the values of columns: shares times the root of the number of classes, so that
/// columns of many classes are not drowned by features, whose values are about 1.
pub(super) fn as_column_values(counts: &mut [f32]) {
    let (mass, root) = (counts.iter().sum::<f32>() + EPSILON, (counts.len() as f32).sqrt());
    counts.iter_mut().for_each(|count| *count *= root / mass);
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Said {
    /// Its class, where it trains.
    pub class: Option<u32>,
    /// What it counts for at its neighbours.
    pub weight: u32,
}

/// Bits of what is told of a node.
fn bits(classes: usize) -> usize {
    let values = (classes + 1) * WEIGHTS.len();
    (usize::BITS - (values - 1).leading_zeros()) as usize
}

fn tell(telling: &mut Telling<'_>, heard: &mut Heard) -> Result<Matrix> {
    let (classes, ways) = (telling.classes, WEIGHTS.len());
    let width = bits(classes);
    let neighbours = telling.neighbours;
    let powers = powers(neighbours);
    let code = |row: usize| telling.labels[row].map_or(classes, |class| class as usize) * ways + powers[row];
    let coded: Vec<usize> = (0..powers.len()).map(code).collect();
    let came = telling.exchange(KIND.payload, |_, rows| pack(rows.iter().map(|&row| coded[row as usize]), width))?;
    let said = |code: usize| {
        let class = code / ways;
        Said { class: (class < classes).then_some(class as u32), weight: WEIGHTS[code % ways] }
    };
    heard.said = coded.into_iter().map(said).collect();
    heard.said.resize(neighbours.rows() + telling.links.halo_rows(), Said::default());
    let rank = telling.transport.rank();
    for peer in rank.others(came.len()) {
        let range = telling.links.links[peer.index()].receive.clone();
        let codes = unpack(&came[peer.index()], width, range.len());
        let Some(codes) = codes.filter(|codes| codes.iter().all(|&code| code < (classes + 1) * ways)) else {
            return Err(telling.malformed(peer, "expected classes of nodes, found a number beyond them"));
        };
        let heard = &mut heard.said[neighbours.rows() + range.start as usize..][..range.len()];
        heard.iter_mut().zip(codes).for_each(|(heard, code)| *heard = said(code));
    }
    let mut counts = Counts::of(neighbours, heard, classes, |_| true);
    for row in 0..neighbours.rows() {
        as_column_values(counts.row_mut(row));
    }
    Ok(Matrix::from_vec(neighbours.rows(), classes, counts.values))
}

/// Of each own row the power of two that its degree lies above, up to the last that is told apart.
fn powers(neighbours: &Neighbours) -> Vec<usize> {
    let degree = |row: usize| neighbours.of_row(row).len().max(1);
    (0..neighbours.rows()).map(|row| (degree(row).ilog2() as usize).min(WEIGHTS.len() - 1)).collect()
}

/// How much each class counts for among the neighbours of each own row.
pub(super) struct Counts {
    classes: usize,
    /// Rows × classes, whole numbers.
    pub values: Vec<f32>,
}

impl Counts {
    /// Nothing among the neighbours of so many rows.
    pub fn nothing(rows: usize, classes: usize) -> Counts {
        Counts { classes, values: vec![0.0; rows * classes] }
    }

    /// Those over neighbours that `counts`.
    pub fn of(neighbours: &Neighbours, heard: &Heard, classes: usize, counts: impl Fn(u32) -> bool) -> Counts {
        let mut found = Counts::nothing(neighbours.rows(), classes);
        for row in 0..neighbours.rows() {
            for &source in neighbours.of_row(row).iter().filter(|&&source| counts(source)) {
                let said = heard.said[source as usize];
                if let Some(class) = said.class {
                    found.values[row * classes + class as usize] += said.weight as f32;
                }
            }
        }
        found
    }

    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.classes..][..self.classes]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.classes..][..self.classes]
    }

    /// What all classes count for together. Sums of whole numbers are exact in any order.
    pub fn mass(&self, row: usize) -> f32 {
        self.row(row).iter().sum()
    }
}

/// Numbers of so many bits each, the first in the lowest bits of the first byte.
pub(super) fn pack(codes: impl ExactSizeIterator<Item = usize>, width: usize) -> Vec<u8> {
    let mut bytes = vec![0; (codes.len() * width).div_ceil(8)];
    for (place, code) in codes.enumerate() {
        for bit in (0..width).filter(|bit| code >> bit & 1 == 1) {
            bytes[(place * width + bit) / 8] |= 1 << ((place * width + bit) % 8);
        }
    }
    bytes
}

/// The same back; `None` where bits behind the last number are not 0. There are enough bytes.
pub(super) fn unpack(bytes: &[u8], width: usize, count: usize) -> Option<Vec<usize>> {
    let bit = |at: usize| usize::from(bytes[at / 8] >> (at % 8) & 1);
    let code = |place: usize| (0..width).map(|of| bit(place * width + of) << of).sum();
    (count * width..bytes.len() * 8).all(|at| bit(at) == 0).then(|| (0..count).map(code).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back_from_as_few_bytes_as_they_fill(
            classes in 1usize..200, seeds in proptest::collection::vec(any::<usize>(), 0..50),
        ) {
            let codes: Vec<usize> = seeds.iter().map(|seed| seed % ((classes + 1) * WEIGHTS.len())).collect();
            let width = bits(classes);
            let values = (classes + 1) * WEIGHTS.len();
            prop_assert!(values <= 1 << width && values > 1 << (width - 1));
            let mut bytes = pack(codes.iter().copied(), width);
            prop_assert_eq!(bytes.len(), (KIND.payload)(codes.len(), classes));
            prop_assert_eq!(unpack(&bytes, width, codes.len()), Some(codes.clone()));
            let spare = bytes.len() * 8 - codes.len() * width;
            if let (Some(last), true) = (bytes.last_mut(), spare > 0) {
                *last |= 0x80;
                prop_assert_eq!(unpack(&bytes, width, codes.len()), None);
            }
        }
    }
}
