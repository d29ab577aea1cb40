//! Which class each boundary node has that is learned from, told peers once as the first step of label propagation,
//! with the root by which its owner divides what it counts for.
//!
//! A peer gets ⌈log₂(classes + 1)⌉ bits for each node that it needs, and four bytes.

use laconic_graph::plan::Link;
use laconic_nn::Matrix;
use laconic_wire::{Ledger, Rank, Tag, Transport, WireError, collectives};

use crate::error::Result;

/// Bytes of a node's root.
const ROOT: usize = size_of::<f32>();

/// Bits of one of so many classes, or of none.
fn bits(classes: usize) -> usize {
    (usize::BITS - classes.leading_zeros()) as usize
}

/// Bytes about so many nodes.
fn payload(rows: usize, classes: usize) -> usize {
    (rows * bits(classes)).div_ceil(8) + rows * ROOT
}

/// Tells each peer the classes of the own rows that it needs, with their roots, and returns a row for each halo row:
/// its root in the column of its class, nothing where it has none.
///
/// # Errors
/// If a peer does not answer, or tells what cannot be.
pub fn tell(
    transport: &mut dyn Transport,
    tag: Tag,
    links: &[Link],
    (labels, roots): (&[Option<u32>], &[f32]),
    classes: usize,
) -> Result<Matrix> {
    let rank = transport.rank();
    let coded = |&row: &u32| labels[row as usize].map_or(classes, |class| class as usize);
    let outgoing = links.iter().enumerate().map(|(peer, link)| match peer == rank.index() {
        true => Vec::new(),
        false => {
            let mut bytes = pack(link.send.iter().map(coded), bits(classes));
            bytes.extend(link.send.iter().flat_map(|&row| roots[row as usize].to_le_bytes()));
            bytes
        }
    });
    let outgoing = outgoing.collect();
    let came = collectives::all_to_all(transport, tag, outgoing)?;
    let mut halo = Matrix::zeros(links.iter().map(|link| link.receive.len()).sum(), classes);
    for peer in rank.others(came.len()) {
        let rows = links[peer.index()].receive.clone();
        let wrong = |what: String| WireError::malformed(&what).from_peer(rank, peer, tag);
        let (bytes, expected) = (&came[peer.index()], payload(rows.len(), classes));
        if bytes.len() != expected {
            let (count, found) = (rows.len(), bytes.len());
            return Err(wrong(format!("expected {expected} bytes about {count} nodes, found {found}")).into());
        }
        let (codes, roots) = bytes.split_at(expected - rows.len() * ROOT);
        let codes = unpack(codes, bits(classes), rows.len());
        let Some(codes) = codes.filter(|codes| codes.iter().all(|&code| code <= classes)) else {
            return Err(wrong("expected classes of nodes, found a number beyond them".to_owned()).into());
        };
        for ((row, code), root) in rows.zip(codes).zip(roots.as_chunks::<ROOT>().0) {
            let root = f32::from_le_bytes(*root);
            if !(0.0..=f32::MAX).contains(&root) {
                return Err(wrong(format!("expected the root of a degree, found {root}")).into());
            }
            if code < classes {
                halo.row_mut(row as usize)[code] = root;
            }
        }
    }
    Ok(halo)
}

/// Enters what a worker tells which sends each peer so many rows.
pub fn forecast(rank: Rank, tag: Tag, sent: &[usize], classes: usize, ledger: &mut Ledger) {
    let lens: Vec<usize> = sent.iter().map(|&rows| payload(rows, classes)).collect();
    collectives::forecast_all_to_all(ledger, tag, rank, &lens);
}

/// Numbers of so many bits each, the first in the lowest bits of the first byte.
fn pack(codes: impl ExactSizeIterator<Item = usize>, width: usize) -> Vec<u8> {
    let mut bytes = vec![0; (codes.len() * width).div_ceil(8)];
    for (place, code) in codes.enumerate() {
        for bit in (0..width).filter(|bit| code >> bit & 1 == 1) {
            bytes[(place * width + bit) / 8] |= 1 << ((place * width + bit) % 8);
        }
    }
    bytes
}

/// The same back; `None` where bits behind the last number are not 0. There are enough bytes.
fn unpack(bytes: &[u8], width: usize, count: usize) -> Option<Vec<usize>> {
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
            let codes: Vec<usize> = seeds.iter().map(|seed| seed % (classes + 1)).collect();
            let width = bits(classes);
            prop_assert!(classes < 1 << width && classes + 1 > 1 << (width - 1));
            let mut bytes = pack(codes.iter().copied(), width);
            prop_assert_eq!(bytes.len(), (codes.len() * width).div_ceil(8));
            prop_assert_eq!(unpack(&bytes, width, codes.len()), Some(codes.clone()));
            let spare = bytes.len() * 8 - codes.len() * width;
            if let (Some(last), true) = (bytes.last_mut(), spare > 0) {
                *last |= 0x80;
                prop_assert_eq!(unpack(&bytes, width, codes.len()), None);
            }
        }
    }
}
