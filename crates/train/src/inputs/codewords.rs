//! `codewords`: what the neighbours of boundary nodes are, in a byte each. A node's columns are the shares of classes
//! among its neighbours' neighbours that train; its own label is not among them.
//!
//! For each peer, an owner counts classes among the neighbours of the rows that the peer gets *as if the peer had no
//! labels*, and tells one of 256 codewords for each row, and the book: shares of classes and how much they count for.
//! The peer adds the labels of its own nodes to that, which it knows exactly, always without that of the node that it
//! computes for. So nobody's own label comes back to it, whatever the codewords lose, and nothing has to be taken out
//! of what was rounded. A peer knows which of its nodes a boundary node has edges from by the edges back: in a graph
//! whose edges lead one way, it counts nodes that the boundary node leads to.

use laconic_nn::Matrix;
use laconic_wire::Content;
use laconic_wire::codec::words_of;

use super::labels::{Counts, EPSILON, as_column_values};
use super::neighbours::{Neighbour, each_row};
use super::{Heard, InputKind, Telling};
use crate::error::Result;

pub(super) const KIND: InputKind = InputKind {
    name: "codewords",
    content: Content::Codewords,
    from: &["labels"],
    columns: |classes| classes,
    payload,
    tell,
};

/// Codewords of a book: as many as a byte can name.
const WORDS: usize = 256;

/// Bytes of a word in the book: the root of each share in 255ths, and what they count for together.
fn word_bytes(classes: usize) -> usize {
    classes + size_of::<f32>()
}

fn payload(rows: usize, classes: usize) -> usize {
    rows.min(WORDS) * word_bytes(classes) + rows
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

fn tell(telling: &mut Telling<'_>, heard: &mut Heard) -> Result<Matrix> {
    let classes = telling.classes;
    let (own, halo, links) = (telling.own, telling.halo, telling.links);
    let came = telling.exchange(payload, |peer, rows| {
        let theirs = &links.links[peer].receive;
        let is_theirs = |row: usize| theirs.contains(&(row as u32));
        let others = |neighbour| !matches!(neighbour, Neighbour::Halo(row) if is_theirs(row));
        let counts = Counts::of(own, halo, heard, classes, others);
        coded(&counts, rows, classes)
    })?;
    let mut of_halo = Shares { classes, shares: vec![0.0; links.halo_rows() * classes], masses: Vec::new() };
    of_halo.masses.resize(links.halo_rows(), EPSILON);
    let rank = telling.transport.rank();
    for peer in rank.others(came.len()) {
        let start = links.links[peer.index()].receive.start as usize;
        if let Err(what) = decode(&came[peer.index()], start, &mut of_halo, links.links[peer.index()].receive.len()) {
            return Err(telling.malformed(peer, what));
        }
    }
    let counts = Counts::of(own, halo, heard, classes, |_| true);
    Ok(second_hop(telling, heard, &counts, &of_halo))
}

/// What a peer is told of these rows.
fn coded(counts: &Counts, rows: &[u32], classes: usize) -> Vec<u8> {
    let mass = |row: usize| counts.mass(row) + EPSILON;
    let point = |&row: &u32| {
        let (row, mass) = (row as usize, mass(row as usize));
        counts.row(row).iter().map(move |count| (count / mass).sqrt())
    };
    let points: Vec<f32> = rows.iter().flat_map(point).collect();
    let words = words_of(&points, classes, WORDS);
    let count = rows.len().min(WORDS);
    let (mut sums, mut masses, mut sizes) = (vec![0.0f32; count * classes], vec![0.0f32; count], vec![0.0f32; count]);
    for (&row, &word) in rows.iter().zip(&words) {
        let mass = mass(row as usize);
        let counted = counts.row(row as usize).iter();
        sums[word * classes..][..classes].iter_mut().zip(counted).for_each(|(sum, count)| *sum += count / mass);
        masses[word] += mass;
        sizes[word] += 1.0;
    }
    let mut bytes = Vec::with_capacity(payload(rows.len(), classes));
    for word in 0..count {
        let size = sizes[word].max(1.0);
        let shares = sums[word * classes..][..classes].iter();
        bytes.extend(shares.map(|sum| ((sum / size).sqrt() * 255.0).round() as u8));
        // Nobody reads a word that no row has.
        bytes.extend((masses[word] / size).max(EPSILON).to_le_bytes());
    }
    bytes.extend(words.iter().map(|&word| word as u8));
    bytes
}

/// Enters what came of so many halo rows from `start` on; the length has been looked at.
fn decode(bytes: &[u8], start: usize, into: &mut Shares, rows: usize) -> std::result::Result<(), &'static str> {
    let (classes, count) = (into.classes, rows.min(WORDS));
    let (book, words) = bytes.split_at(count * word_bytes(classes));
    let mut masses = Vec::with_capacity(count);
    for word in book.chunks(word_bytes(classes)) {
        let mass = word[classes..].try_into().map(f32::from_le_bytes).unwrap_or(f32::NAN);
        if !(mass > 0.0 && mass.is_finite()) {
            return Err("expected what a codeword counts for, found no number above 0");
        }
        masses.push(mass);
    }
    for (row, &word) in words.iter().enumerate() {
        let word = usize::from(word);
        let Some(&mass) = masses.get(word) else { return Err("expected a codeword of the book, found one beyond it") };
        let shares = &book[word * word_bytes(classes)..][..classes];
        let row = start + row;
        into.masses[row] = mass;
        let entry = into.shares[row * classes..][..classes].iter_mut();
        entry.zip(shares).for_each(|(share, &root)| *share = (f32::from(root) / 255.0).powi(2));
    }
    Ok(())
}

/// Each own row's mean over its neighbours of what their other neighbours are.
fn second_hop(telling: &Telling<'_>, heard: &Heard, counts: &Counts, of_halo: &Shares) -> Matrix {
    let (own, halo, classes) = (telling.own, telling.halo, telling.classes);
    // What halo rows have of own nodes: the edges back.
    let mut known = Counts::nothing(of_halo.masses.len(), classes);
    each_row(own, halo, |row, neighbours| {
        let said = heard.own[row];
        let Some(class) = said.class else { return };
        for &neighbour in neighbours {
            if let Neighbour::Halo(source) = neighbour {
                known.values[source * classes + class as usize] += said.weight as f32;
            }
        }
    });
    let mut out = Matrix::zeros(own.destinations(), classes);
    let mut rest = vec![0.0; classes];
    each_row(own, halo, |row, neighbours| {
        let mine = heard.own[row];
        let sums = &mut out.data_mut()[row * classes..][..classes];
        for &neighbour in neighbours {
            let mut mass = match neighbour {
                Neighbour::Own(source) => {
                    rest.copy_from_slice(counts.row(source));
                    counts.mass(source) + EPSILON
                }
                Neighbour::Halo(source) => {
                    let (mass, shares) = (of_halo.masses[source], of_halo.row(source));
                    let both = shares.iter().zip(known.row(source)).map(|(share, count)| share * mass + count);
                    rest.iter_mut().zip(both).for_each(|(rest, both)| *rest = both);
                    mass + known.mass(source)
                }
            };
            if let Some(class) = mine.class {
                // Less, where its own edge leads one way.
                let own = rest[class as usize].min(mine.weight as f32);
                rest[class as usize] -= own;
                mass -= own;
            }
            let weight = heard.of(neighbour).weight as f32 / mass;
            sums.iter_mut().zip(&rest).for_each(|(sum, rest)| *sum += weight * rest);
        }
        as_column_values(sums);
    });
    out
}
