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
//! by how often each of them occurs, at most ⌈log₂(6 · (classes + 1))⌉ bits.
//!
//! Where owners answer at random ([`super::Response`]), counts of answers are turned into unbiased estimates of counts
//! of classes, those below 0 are taken for 0, and the rest is scaled to what all neighbours that train count for, since
//! that is known. Own nodes' labels are known too, and are not estimated.

use laconic_nn::{Matrix, Operand};
use laconic_wire::Content;
use laconic_wire::codec::{decode_symbols, encode_symbols, most_symbol_bytes};

use super::neighbours::Neighbours;
use super::response::Unbiased;
use super::{Heard, InputKind, Telling};
use crate::error::Result;

pub(super) const KIND: InputKind = InputKind {
    name: "labels",
    content: Some(Content::TrainingLabels),
    from: &[],
    tells_labels: true,
    tells_sums: false,
    loses: false,
    columns: |wide| wide.classes,
    most: |rows, wide| most_symbol_bytes(rows.go, codes(wide.classes)),
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

/// Takes estimates below 0 for 0, and scales the rest to the same sum. Counts stay as they are.
pub(super) fn clip(estimates: &mut [f32]) {
    let sum: f32 = estimates.iter().sum();
    estimates.iter_mut().for_each(|estimate| *estimate = estimate.max(0.0));
    let clipped: f32 = estimates.iter().sum();
    if clipped > sum {
        estimates.iter_mut().for_each(|estimate| *estimate *= sum.max(0.0) / clipped);
    }
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Said {
    /// Its class, where it trains.
    pub class: Option<u32>,
    /// What it counts for at its neighbours.
    pub weight: u32,
}

/// How many different things may be told of a node.
fn codes(classes: usize) -> usize {
    (classes + 1) * WEIGHTS.len()
}

fn tell(telling: &mut Telling<'_>, heard: &mut Heard) -> Result<Operand> {
    let (classes, ways) = (telling.classes, WEIGHTS.len());
    let neighbours = telling.neighbours;
    let answers = codes_of_own(telling);
    let came = telling.exchange(KIND.most, |_, rows| {
        let of_peer: Vec<u32> = rows.iter().map(|&row| answers[row as usize] as u32).collect();
        Ok(encode_symbols(&of_peer, codes(classes)))
    })?;
    let said = |code: usize| {
        let class = code / ways;
        Said { class: (class < classes).then_some(class as u32), weight: WEIGHTS[code % ways] }
    };
    heard.said = said_of_own(telling);
    heard.answered = answers.iter().copied().map(said).collect();
    heard.said.resize(neighbours.rows() + telling.links.halo_rows(), Said::default());
    let rank = telling.transport.rank();
    for peer in rank.others(came.len()) {
        let range = telling.links.links[peer.index()].receive.clone();
        let said_of = decode_symbols(&came[peer.index()], range.len(), codes(classes));
        let said_of = said_of.map_err(|error| telling.malformed(peer, &format!("classes of nodes: {error}")))?;
        let heard = &mut heard.said[neighbours.rows() + range.start as usize..][..range.len()];
        heard.iter_mut().zip(said_of).for_each(|(heard, code)| *heard = said(code as usize));
    }
    let mut counts = Counts::of(neighbours, heard, (classes, telling.unbiased()));
    for row in 0..neighbours.rows() {
        clip(counts.row_mut(row));
        as_column_values(counts.row_mut(row));
    }
    Ok(Operand::Dense(Matrix::from_vec(neighbours.rows(), classes, counts.values)))
}

/// What each own row is told as.
fn codes_of_own(telling: &Telling<'_>) -> Vec<usize> {
    let powers = powers(telling.neighbours);
    let class = |row: usize| telling.answers[row].map_or(telling.classes, |class| class as usize);
    (0..powers.len()).map(|row| class(row) * WEIGHTS.len() + powers[row]).collect()
}

/// What is known of each own row.
pub(super) fn said_of_own(telling: &Telling<'_>) -> Vec<Said> {
    let powers = powers(telling.neighbours);
    powers.into_iter().zip(telling.labels).map(|(power, &class)| Said { class, weight: WEIGHTS[power] }).collect()
}

/// Of each own row the power of two that its degree lies above, up to the last that is told apart.
fn powers(neighbours: &Neighbours) -> Vec<usize> {
    let degree = |row: usize| neighbours.of_row(row).len().max(1);
    (0..neighbours.rows()).map(|row| (degree(row).ilog2() as usize).min(WEIGHTS.len() - 1)).collect()
}

/// How much each class counts for among the neighbours of each own row.
pub(super) struct Counts {
    classes: usize,
    /// Rows × classes: whole numbers, or estimates where owners answer at random.
    pub values: Vec<f32>,
}

impl Counts {
    /// Nothing among the neighbours of so many rows.
    pub fn nothing(rows: usize, classes: usize) -> Counts {
        Counts { classes, values: vec![0.0; rows * classes] }
    }

    /// Those over all neighbours, own ones by their labels.
    pub fn of(neighbours: &Neighbours, heard: &Heard, scale: (usize, Unbiased)) -> Counts {
        let own = neighbours.rows();
        Counts::made(neighbours, scale, |source| Some((heard.said[source as usize], source as usize >= own)))
    }

    /// Those over neighbours that `counts`, all of them by what has been told.
    pub fn of_answers(
        neighbours: &Neighbours,
        heard: &Heard,
        scale: (usize, Unbiased),
        counts: impl Fn(u32) -> bool,
    ) -> Counts {
        let answered = |source: u32| heard.answered.get(source as usize).unwrap_or(&heard.said[source as usize]);
        let mut found = Counts::made(neighbours, scale, |source| counts(source).then(|| (*answered(source), true)));
        (0..neighbours.rows()).for_each(|row| clip(found.row_mut(row)));
        found
    }

    /// `of` says what a neighbour counts for, if it does, and whether that is an answer.
    fn made(
        neighbours: &Neighbours,
        (classes, Unbiased { scale, each }): (usize, Unbiased),
        of: impl Fn(u32) -> Option<(Said, bool)>,
    ) -> Counts {
        let mut found = Counts::nothing(neighbours.rows(), classes);
        for row in 0..neighbours.rows() {
            let (counts, mut answered) = (found.row_mut(row), 0.0);
            for (said, is_answer) in neighbours.of_row(row).iter().filter_map(|&source| of(source)) {
                let Some(class) = said.class else { continue };
                let weight = said.weight as f32;
                counts[class as usize] += if is_answer { weight * scale } else { weight };
                answered += if is_answer { weight } else { 0.0 };
            }
            counts.iter_mut().for_each(|count| *count -= answered * each);
        }
        found
    }

    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.classes..][..self.classes]
    }

    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.classes..][..self.classes]
    }

    /// What all classes count for together. Sums of whole numbers are exact in any order, and estimates add up to what
    /// they are estimates for.
    pub fn mass(&self, row: usize) -> f32 {
        self.row(row).iter().sum()
    }
}
