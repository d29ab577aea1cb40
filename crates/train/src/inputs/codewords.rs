//! `codewords`: what the neighbours of boundary nodes are, in a byte each. A node's columns are the shares of classes
//! among its neighbours' neighbours that train; its own label is not among them.
//!
//! For each peer, an owner counts classes among the neighbours of the rows that the peer gets *as if the peer had no
//! labels*, and tells one of at most 256 codewords for each row, and the book: shares of classes and how much they
//! count for. The peer adds the labels of its own nodes to that, which it knows exactly, always without that of the
//! node that it computes for. So nobody's own label comes back to it, whatever the codewords lose, and nothing has to
//! be taken out of what was rounded. A peer knows which of its nodes a boundary node has edges from by the edges back:
//! in a graph whose edges lead one way, it counts nodes that the boundary node leads to.
//!
//! Where owners answer at random ([`super::Response`]), codewords are made of answers as well, own ones among them, so
//! that they say no more of a label than its answer does.

use laconic_nn::{Matrix, Operand};
use laconic_wire::Content;
use laconic_wire::codec::{decode_symbols, encode_symbols, most_symbol_bytes, words_in_book, words_of};

use super::labels::{Counts, EPSILON, as_column_values, clip};
use super::{Heard, InputKind, LinkRows, Telling, Wide};
use crate::error::Result;

pub(super) const KIND: InputKind = InputKind {
    name: "codewords",
    content: Some(Content::LabelCodewords),
    from: &["labels"],
    tells_labels: true,
    tells_sums: false,
    loses: true,
    columns: |wide| wide.classes,
    most,
    tell,
};

/// Codewords of a book: as many as a byte can name.
const WORDS: usize = 256;

/// Values of a share in the book: its root in 255ths.
const ROOTS: usize = 256;

/// Bytes of what a word counts for, and of the length of what follows.
const NUMBER: usize = 4;

/// How many words the book has that so many rows are told by.
fn words_for(rows: usize, classes: usize) -> usize {
    words_in_book(rows, [1, classes + NUMBER], WORDS)
}

/// A message: what each word counts for, the length of the shares, all shares, and the word of each row; these two by
/// how often each number occurs.
fn most(LinkRows { go: rows, .. }: LinkRows, Wide { classes, .. }: Wide) -> usize {
    let words = words_for(rows, classes);
    (words + 1) * NUMBER + most_symbol_bytes(words * classes, ROOTS) + most_symbol_bytes(rows, words)
}

/// Shares of classes, and the sum of weights that they are shares of.
struct Shares {
    classes: usize,
    /// Rows × classes.
    shares: Vec<f32>,
    masses: Vec<f32>,
}

impl Shares {
    fn row(&self, row: usize) -> &[f32] {
        &self.shares[row * self.classes..][..self.classes]
    }
}

fn tell(telling: &mut Telling<'_>, heard: &mut Heard) -> Result<Operand> {
    let classes = telling.classes;
    let (neighbours, links, scale) = (telling.neighbours, telling.links, (classes, telling.unbiased()));
    let came = telling.exchange(most, |peer, rows| {
        let theirs = &links.links[peer].receive;
        let is_theirs = |source| neighbours.halo(source).is_some_and(|row| theirs.contains(&(row as u32)));
        let counts = Counts::of_answers(neighbours, heard, scale, |source| !is_theirs(source));
        Ok(coded(&counts, rows, classes))
    })?;
    let mut of_halo = Shares { classes, shares: vec![0.0; links.halo_rows() * classes], masses: Vec::new() };
    of_halo.masses.resize(links.halo_rows(), EPSILON);
    let rank = telling.transport.rank();
    for peer in rank.others(came.len()) {
        let start = links.links[peer.index()].receive.start as usize;
        if let Err(what) = decode(&came[peer.index()], start, &mut of_halo, links.links[peer.index()].receive.len()) {
            return Err(telling.malformed(peer, &what));
        }
    }
    let counts = Counts::of(neighbours, heard, scale);
    Ok(Operand::Dense(second_hop(telling, heard, &counts, &of_halo)))
}

/// What a peer is told of these rows.
fn coded(counts: &Counts, rows: &[u32], classes: usize) -> Vec<u8> {
    let mass = |row: usize| counts.mass(row) + EPSILON;
    let point = |&row: &u32| {
        let (row, mass) = (row as usize, mass(row as usize));
        counts.row(row).iter().map(move |count| (count / mass).sqrt())
    };
    let points: Vec<f32> = rows.iter().flat_map(point).collect();
    let count = words_for(rows.len(), classes);
    let words = words_of(&points, classes, count);
    let (mut sums, mut masses, mut sizes) = (vec![0.0f32; count * classes], vec![0.0f32; count], vec![0.0f32; count]);
    for (&row, &word) in rows.iter().zip(&words) {
        let mass = mass(row as usize);
        let counted = counts.row(row as usize).iter();
        sums[word * classes..][..classes].iter_mut().zip(counted).for_each(|(sum, count)| *sum += count / mass);
        masses[word] += mass;
        sizes[word] += 1.0;
    }
    // Nobody reads a word that no row has.
    let size = |word: usize| sizes[word].max(1.0);
    let counts_for = |word: usize| (masses[word] / size(word)).max(EPSILON).to_le_bytes();
    let root = |(at, sum): (usize, &f32)| ((sum / size(at / classes)).sqrt() * 255.0).round() as u8;
    let shares: Vec<u32> = sums.iter().enumerate().map(|sum| root(sum).into()).collect();
    let shares = encode_symbols(&shares, ROOTS);
    let words: Vec<u32> = words.iter().map(|&word| word as u32).collect();
    let mut bytes: Vec<u8> = (0..count).flat_map(counts_for).collect();
    bytes.extend((shares.len() as u32).to_le_bytes());
    bytes.extend(shares);
    bytes.extend(encode_symbols(&words, count));
    bytes
}

/// Enters what came of so many halo rows from `start` on.
fn decode(bytes: &[u8], start: usize, into: &mut Shares, rows: usize) -> std::result::Result<(), String> {
    let (classes, count) = (into.classes, words_for(rows, into.classes));
    let cut = || "expected a book of codewords, found less".to_owned();
    let (masses, rest) = bytes.split_at_checked(count * NUMBER).ok_or_else(cut)?;
    let (len, rest) = rest.split_first_chunk::<NUMBER>().ok_or_else(cut)?;
    let (shares, words) = rest.split_at_checked(u32::from_le_bytes(*len) as usize).ok_or_else(cut)?;
    let masses: Vec<f32> = masses.as_chunks().0.iter().map(|&mass| f32::from_le_bytes(mass)).collect();
    if masses.iter().any(|mass| !(EPSILON..=f32::MAX).contains(mass)) {
        return Err("expected what a codeword counts for, found less than nothing does".to_owned());
    }
    let shares = decode_symbols(shares, count * classes, ROOTS).map_err(|error| format!("a book: {error}"))?;
    let words = decode_symbols(words, rows, count).map_err(|error| format!("codewords of the book: {error}"))?;
    for (row, word) in words.into_iter().enumerate() {
        let (row, word) = (start + row, word as usize);
        into.masses[row] = masses[word];
        let entry = into.shares[row * classes..][..classes].iter_mut();
        let shares = &shares[word * classes..][..classes];
        entry.zip(shares).for_each(|(share, &root)| *share = (root as f32 / 255.0).powi(2));
    }
    Ok(())
}

/// Each own row's mean over its neighbours of what their other neighbours are.
fn second_hop(telling: &Telling<'_>, heard: &Heard, counts: &Counts, of_halo: &Shares) -> Matrix {
    let (neighbours, classes) = (telling.neighbours, telling.classes);
    let known = among_own(telling, heard, of_halo.masses.len());
    let mut out = Matrix::zeros(neighbours.rows(), classes);
    let mut rest = vec![0.0; classes];
    for (row, sums) in out.data_mut().chunks_mut(classes.max(1)).enumerate() {
        let mine = heard.said[row];
        for &source in neighbours.of_row(row) {
            let (mut mass, counts_mine) = match neighbours.halo(source) {
                None => {
                    let source = source as usize;
                    rest.copy_from_slice(counts.row(source));
                    (counts.mass(source) + EPSILON, neighbours.has(source, row))
                }
                Some(source) => {
                    let (mass, shares) = (of_halo.masses[source], of_halo.row(source));
                    let both = shares.iter().zip(known.row(source)).map(|(share, count)| share * mass + count);
                    rest.iter_mut().zip(both).for_each(|(rest, both)| *rest = both);
                    // What is known of it is known by edges such as this one.
                    (mass + known.mass(source), true)
                }
            };
            if let (Some(class), true) = (mine.class, counts_mine) {
                rest[class as usize] -= mine.weight as f32;
                mass -= mine.weight as f32;
            }
            clip(&mut rest);
            let weight = heard.said[source as usize].weight as f32 / mass;
            sums.iter_mut().zip(&rest).for_each(|(sum, rest)| *sum += weight * rest);
        }
        as_column_values(sums);
    }
    out
}

/// How much each class counts for among the own nodes that each halo row has edges to, which stand for those that it
/// has edges from.
fn among_own(telling: &Telling<'_>, heard: &Heard, halo_rows: usize) -> Counts {
    let (neighbours, classes) = (telling.neighbours, telling.classes);
    let mut known = Counts::nothing(halo_rows, classes);
    for row in 0..neighbours.rows() {
        let said = heard.said[row];
        let Some(class) = said.class else { continue };
        for source in neighbours.of_row(row).iter().filter_map(|&source| neighbours.halo(source)) {
            known.values[source * classes + class as usize] += said.weight as f32;
        }
    }
    known
}
