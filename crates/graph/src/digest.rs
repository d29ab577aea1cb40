//! The fingerprint of a dataset: two datasets with the same digest train the same models.

use bytemuck::NoUninit;

use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::edges::Relations;
use crate::given::{GivenNegatives, NAMES};

/// A BLAKE3 digest of everything in `dataset` but its name, as `blake3:` and 64 hexadecimal digits.
///
/// Reads every byte once: about a second for 3 GB.
pub fn digest(dataset: &Dataset) -> String {
    let mut hash = blake3::Hasher::new();
    array(&mut hash, "offsets", &dataset.graph.offsets);
    array(&mut hash, "sources", &dataset.graph.sources);
    if let Some(weights) = &dataset.graph.data.weights {
        array(&mut hash, "weights", weights);
    }
    relations(&mut hash, dataset.graph.data.relations.as_ref());
    held(&mut hash, dataset.graph.data.held.as_ref());
    negatives(&mut hash, dataset.negatives.as_ref());
    rows(&mut hash, &dataset.features, &dataset.labels);
    for split in &dataset.splits {
        array(&mut hash, "split", &split.roles);
    }
    match &dataset.ids {
        Ids::Row => {}
        Ids::Integers(ids) => array(&mut hash, "integer ids", ids),
        Ids::Strings(ids) => ids.iter().for_each(|id| array(&mut hash, "id", id.as_bytes())),
    }
    format!("blake3:{}", hash.finalize().to_hex())
}

/// A digest of an assignment of nodes to so many parts, in the same words.
pub(crate) fn digest_of_assignment(assignment: &[u32], parts: u32) -> String {
    let mut hash = blake3::Hasher::new();
    array(&mut hash, "parts", &[parts]);
    array(&mut hash, "assignment", assignment);
    format!("blake3:{}", hash.finalize().to_hex())
}

/// Which relation each edge is of, where there are several.
pub(crate) fn relations(hash: &mut blake3::Hasher, relations: Option<&Relations>) {
    if let Some(Relations { count, of }) = relations {
        array(hash, "relation count", &[*count as u64]);
        array(hash, "relations", of);
    }
}

/// Which edges are held out, where that is given.
pub(crate) fn held(hash: &mut blake3::Hasher, held: Option<&Vec<u8>>) {
    if let Some(held) = held {
        array(hash, "held", held);
    }
}

/// Pairs that stand for no edges, where they are given.
pub(crate) fn negatives<Id: NoUninit>(hash: &mut blake3::Hasher, given: Option<&GivenNegatives<Id>>) {
    for (pairs, [sources, targets, others, relations]) in given.into_iter().flatten().zip(NAMES) {
        array(hash, sources, &pairs.sources);
        array(hash, targets, &pairs.targets);
        array(hash, others, &pairs.others);
        array(hash, "negatives of each", &[pairs.each as u64]);
        if !pairs.relations.is_empty() {
            array(hash, relations, &pairs.relations);
        }
    }
}

/// What a row has besides its edges.
pub(crate) fn rows(hash: &mut blake3::Hasher, features: &Features, labels: &Labels) {
    match features {
        Features::None => {}
        Features::Dense { columns, values } => {
            array(hash, "dense columns", &[*columns as u64]);
            head(hash, "features", values.len() as u64);
            // Of numbers of 32 bits, however they are stored.
            values.pieces(LARGE, |piece| update(hash, piece));
        }
        Features::Sparse { columns, offsets, indices, values } => {
            array(hash, "sparse columns", &[*columns as u64]);
            array(hash, "feature offsets", offsets);
            array(hash, "feature indices", indices);
            array(hash, "feature values", values);
        }
    }
    match labels {
        Labels::None => {}
        Labels::Single { classes, values } => {
            array(hash, "single classes", &[*classes as u64]);
            array(hash, "labels", values);
        }
        Labels::Multi { classes, values } => {
            array(hash, "multi classes", &[*classes as u64]);
            array(hash, "labels", values);
        }
    }
}

/// From so many bytes on, all threads of the pool take part.
const LARGE: usize = 1 << 20;

/// Name and length go in front, so that no two lists of arrays read the same. Bytes are those of a little-endian
/// machine.
pub(crate) fn array<T: NoUninit>(hash: &mut blake3::Hasher, name: &str, values: &[T]) {
    head(hash, name, values.len() as u64);
    update(hash, values);
}

fn update<T: NoUninit>(hash: &mut blake3::Hasher, values: &[T]) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    if bytes.len() < LARGE {
        hash.update(bytes);
    } else {
        hash.update_rayon(bytes);
    }
}

/// What goes in front of so many values.
pub(crate) fn head(hash: &mut blake3::Hasher, name: &str, values: u64) {
    hash.update(name.as_bytes()).update(&values.to_le_bytes());
}
