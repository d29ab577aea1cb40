//! `propagated`: the mean of neighbours' features, and `propagated_twice`: the mean of their means, as SIGN has them
//! (Frasca et al., 2020). Owners tell the features of boundary nodes once, or the means that these have come to, so
//! that an `mlp` reads what is two hops away and nothing crosses in any round.
//!
//! A message has where its values are, for a bag of words has few: column by column the distance of each from the one
//! before it, its size by how often each size occurs and the bits below as they are. Up to 16 different values, such as
//! a lone 1, stand in a table and are told by how often each occurs; then nothing is lost. Others are told in 4 bits
//! between the smallest and the largest of their row, which are bfloat16 numbers. Rows that are dense are told in
//! codewords, a byte for each 16 columns: what a word is off by, the mean over neighbours evens out.

use laconic_nn::{Matrix, Operand, SparseRows};
use laconic_wire::codec::{
    Codec, Codewords, Half, Level, Memory, Message, RowSet, RowsMut, RowsRef, Store, decode_symbols, encode_symbols,
    most_symbol_bytes,
};
use laconic_wire::{Content, MessageKey, Rank, Tag};

use super::bits::Bits;
use super::{Heard, InputKind, LinkRows, Telling, Wide};
use crate::error::{Result, TrainError};

pub(super) const ONCE: InputKind = InputKind {
    name: "propagated",
    content: Some(Content::Features),
    from: &[],
    tells_labels: false,
    tells_sums: false,
    loses: true,
    columns: |wide| wide.features,
    most,
    tell: |telling, heard| {
        let rows = Rows::of(telling.features);
        tell(telling, heard, &rows)
    },
};

pub(super) const TWICE: InputKind = InputKind {
    name: "propagated_twice",
    from: &["propagated"],
    tell: |telling, heard| {
        let rows = std::mem::take(&mut heard.propagated);
        tell(telling, heard, &rows)
    },
    ..ONCE
};

/// Values that a table has at most, and values that 4 bits tell apart.
const TABLE: usize = 16;

/// The first byte of a message of values, and of one of codewords.
const AS_VALUES: u8 = 0;
const AS_WORDS: u8 = 1;

/// The largest number that is a bfloat16.
const LARGEST: f32 = f32::from_bits(0x7f7f_0000);

/// Columns that a codeword is of, where rows are dense.
const PIECE: usize = 16;

/// Sizes of distances: powers of two of 64 bits.
const SIZES: usize = 64;

/// Bytes of a number in front of what follows.
const NUMBER: usize = 4;

/// The most bytes about so many rows: three numbers; of each value its size, no more than 6 bits, what is below it,
/// which is most where there are few, and 4 bits of itself; a table; and the ends of rows.
fn most(LinkRows { go: rows, .. }: LinkRows, wide: Wide) -> usize {
    let values = rows * wide.features;
    let in_words = rows.min(256) * 2 * wide.features + rows * wide.features.div_ceil(PIECE);
    let sparse = 4 * NUMBER
        + most_symbol_bytes(values, SIZES)
        + values
        + most_symbol_bytes(values, TABLE)
        + NUMBER * (TABLE + rows);
    1 + sparse.max(in_words)
}

/// Rows without their zeros.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    /// Whether most values are there.
    is_dense: bool,
}

impl Rows {
    fn nothing(columns: usize) -> Rows {
        Rows { columns, offsets: vec![0], ..Rows::default() }
    }

    fn of(features: &Operand) -> Rows {
        let (count, columns) = (features.view().rows(), features.view().columns());
        let mut rows = Rows::nothing(columns);
        match features {
            Operand::Sparse(sparse) => {
                for (&column, &value) in sparse.indices().iter().zip(sparse.values()) {
                    rows.indices.push(column);
                    rows.values.push(value);
                }
                rows.offsets = sparse.offsets().to_vec();
            }
            dense => {
                rows.is_dense = true;
                (0..count).for_each(|row| rows.push(dense.dense_row(row)));
            }
        }
        rows
    }

    fn push(&mut self, row: &[f32]) {
        for (column, &value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            self.indices.push(column as u32);
            self.values.push(value);
        }
        self.offsets.push(self.values.len());
    }

    fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    fn row(&self, row: usize) -> impl Iterator<Item = (u32, f32)> {
        let own = self.offsets[row]..self.offsets[row + 1];
        self.indices[own.clone()].iter().zip(&self.values[own]).map(|(&column, &value)| (column, value))
    }

    /// As a first layer reads them.
    fn operand(&self) -> Operand {
        if !self.is_dense {
            let Rows { columns, offsets, indices, values, .. } = self;
            return Operand::Sparse(SparseRows::new(*columns, offsets.clone(), indices.clone(), values.clone()));
        }
        let mut matrix = Matrix::zeros(self.len(), self.columns);
        for row in 0..self.len() {
            let into = matrix.row_mut(row);
            self.row(row).for_each(|(column, value)| into[column as usize] = value);
        }
        Operand::Dense(matrix)
    }
}

/// Tells peers these rows of own nodes, hears theirs, and takes the mean over each own node's neighbours.
fn tell(telling: &mut Telling<'_>, heard: &mut Heard, rows: &Rows) -> Result<Operand> {
    let key = key_of(telling.known_tag()?);
    let came = telling.exchange(most, |_, own| encode(rows, own, &key))?;
    let mut halo: Vec<Rows> = came.iter().map(|_| Rows::nothing(rows.columns)).collect();
    for peer in telling.transport.rank().others(came.len()) {
        let count = telling.links.links[peer.index()].receive.len();
        let heard = decode(&came[peer.index()], count, rows.columns, &key);
        let what = "expected features of nodes, found something else";
        halo[peer.index()] = heard.ok_or_else(|| telling.malformed(peer, what))?;
    }
    let means = means(telling, rows, &halo);
    if means.values.iter().any(|value| !value.is_finite()) {
        let what = "model.inputs: the mean of neighbours' features is larger than a number can be; data.features \
                    scales them";
        return Err(TrainError::config(what));
    }
    let operand = means.operand();
    heard.propagated = means;
    Ok(operand)
}

/// The mean over each own node's neighbours, own rows and what peers have told.
fn means(telling: &Telling<'_>, rows: &Rows, halo: &[Rows]) -> Rows {
    let (links, neighbours) = (telling.links, telling.neighbours);
    let mut places = vec![(0, 0); links.halo_rows()];
    for (peer, link) in links.links.iter().enumerate() {
        link.receive.clone().enumerate().for_each(|(place, at)| places[at as usize] = (peer, place));
    }
    let mut means = Rows { is_dense: rows.is_dense, ..Rows::nothing(rows.columns) };
    let (mut sums, mut touched) = (vec![0.0f32; rows.columns], vec![false; rows.columns]);
    let mut columns = Vec::new();
    for row in 0..neighbours.rows() {
        let near = neighbours.of_row(row);
        for &source in near {
            let mut add = |(column, value): (u32, f32)| {
                if !std::mem::replace(&mut touched[column as usize], true) {
                    columns.push(column);
                }
                sums[column as usize] += value;
            };
            match neighbours.halo(source).map(|at| places[at]) {
                None => rows.row(source as usize).for_each(&mut add),
                Some((peer, place)) => halo[peer].row(place).for_each(&mut add),
            }
        }
        columns.sort_unstable();
        for column in columns.drain(..) {
            touched[column as usize] = false;
            means.indices.push(column);
            means.values.push(std::mem::take(&mut sums[column as usize]) / near.len() as f32);
        }
        means.offsets.push(means.values.len());
    }
    means
}

/// What names a message that codewords are of, which draw nothing.
fn key_of(tag: Tag) -> MessageKey {
    MessageKey { seed: 0, tag, from: Rank(0), to: Rank(0), drawn: 0 }
}

fn codewords(columns: usize) -> Codewords {
    Codewords::in_pieces(columns.div_ceil(PIECE))
}

/// What a peer is told of these rows, which are dense.
fn in_words(rows: &Rows, own: &[u32], key: &MessageKey) -> Result<Vec<u8>> {
    let mut data = vec![0.0f32; own.len() * rows.columns];
    for (into, &row) in data.chunks_exact_mut(rows.columns.max(1)).zip(own) {
        rows.row(row as usize).for_each(|(column, value)| into[column as usize] = value);
    }
    let mut bytes = vec![AS_WORDS];
    let rows = RowsRef { data: &data, columns: rows.columns, rows: RowSet::Range(0..own.len()) };
    let message = Message { key, level: &Level::WHOLE, memory: &mut Memory::default() };
    codewords(rows.columns).encode(message, rows, &mut bytes)?;
    Ok(bytes)
}

/// The rows of such a message.
fn of_words(bytes: &[u8], count: usize, columns: usize, key: &MessageKey) -> Option<Rows> {
    let mut rows = Rows { is_dense: true, ..Rows::nothing(columns) };
    let mut data = vec![0.0f32; count * columns];
    let message = Message { key, level: &Level::WHOLE, memory: &mut Memory::default() };
    let into = RowsMut { data: &mut data, columns, rows: RowSet::Range(0..count) };
    codewords(columns).decode(message, bytes, into, Store::Set).ok()?;
    data.iter().all(|value| value.is_finite()).then(|| data.chunks_exact(columns).for_each(|row| rows.push(row)))?;
    Some(rows)
}

/// What a peer is told of these rows.
fn encode(rows: &Rows, own: &[u32], key: &MessageKey) -> Result<Vec<u8>> {
    if own.is_empty() {
        return Ok(Vec::new());
    }
    let table = table(own.iter().flat_map(|&row| rows.row(row as usize)).map(|(_, value)| value));
    if table.is_none() && rows.is_dense {
        return in_words(rows, own, key);
    }
    let (entries, mut before) = (by_columns(rows, own), None);
    let distance = |(at, _): &(u64, f32)| at - before.replace(*at).map_or(0, |before| before + 1) + 1;
    let distances: Vec<u64> = entries.iter().map(distance).collect();
    let sizes: Vec<u32> = distances.iter().map(|distance| distance.ilog2()).collect();
    let sizes = encode_symbols(&sizes, SIZES);
    let mut bytes = vec![AS_VALUES];
    bytes.extend((entries.len() as u32).to_le_bytes());
    bytes.extend((sizes.len() as u32).to_le_bytes());
    bytes.extend(sizes);
    let mut below = Bits::default();
    distances.iter().for_each(|distance| below.push(distance - (1 << distance.ilog2()), distance.ilog2()));
    bytes.extend(below.bytes());
    match table {
        Some(table) => bytes.extend(in_table(&table, &entries)),
        None => bytes.extend(between_ends(&entries, own.len())),
    }
    Ok(bytes)
}

/// The values of these rows column by column, since some words are in many rows and most in few: where each is among
/// all places, and itself.
fn by_columns(rows: &Rows, own: &[u32]) -> Vec<(u64, f32)> {
    let mut starts = vec![0; rows.columns + 1];
    for &row in own {
        rows.row(row as usize).for_each(|(column, _)| starts[column as usize + 1] += 1);
    }
    for column in 0..rows.columns {
        starts[column + 1] += starts[column];
    }
    let mut entries = vec![Default::default(); starts[rows.columns]];
    for (place, &row) in own.iter().enumerate() {
        for (column, value) in rows.row(row as usize) {
            let start = &mut starts[column as usize];
            entries[*start] = (u64::from(column) * own.len() as u64 + place as u64, value);
            *start += 1;
        }
    }
    entries
}

/// The different values, as they stand in memory; `None` where there are too many.
fn table(values: impl Iterator<Item = f32>) -> Option<Vec<u32>> {
    let mut table: Vec<u32> = Vec::new();
    for value in values {
        if !table.contains(&value.to_bits()) {
            if table.len() == TABLE {
                return None;
            }
            table.push(value.to_bits());
        }
    }
    Some(table)
}

/// The values as a table and places in it.
fn in_table(table: &[u32], entries: &[(u64, f32)]) -> Vec<u8> {
    let mut bytes = vec![table.len() as u8];
    bytes.extend(table.iter().flat_map(|value| value.to_le_bytes()));
    let of_value = |(_, value): &(u64, f32)| table.iter().position(|known| *known == value.to_bits());
    let codes: Vec<u32> = entries.iter().filter_map(of_value).map(|code| code as u32).collect();
    bytes.extend(encode_symbols(&codes, TABLE));
    bytes
}

/// The values of so many rows in 4 bits between the ends of each row.
fn between_ends(entries: &[(u64, f32)], count: usize) -> Vec<u8> {
    let mut bytes = vec![0];
    let mut ends = vec![[f32::MAX, f32::MIN]; count];
    let place = |at: u64| (at % count as u64) as usize;
    for &(at, value) in entries {
        let [low, high] = &mut ends[place(at)];
        (*low, *high) = (low.min(value), high.max(value));
    }
    for [low, high] in &mut ends {
        for end in [low, high] {
            let written = Half::rounded(end.clamp(-LARGEST, LARGEST)).to_le_bytes();
            bytes.extend(written);
            *end = Half::widened(written);
        }
    }
    let code = |&(at, value): &(u64, f32)| {
        let ends = ends[place(at)];
        let (above, step) = (f64::from(value) - f64::from(ends[0]), step_of(ends));
        if step > 0.0 { ((above / step).round() as u32).min(TABLE as u32 - 1) } else { 0 }
    };
    bytes.extend(encode_symbols(&entries.iter().map(code).collect::<Vec<_>>(), TABLE));
    bytes
}

/// How far values of 4 bits between such ends are from each other; an f32 may not hold it.
fn step_of([low, high]: [f32; 2]) -> f64 {
    (f64::from(high) - f64::from(low)) / (TABLE - 1) as f64
}

/// The rows of a message; `None` where they are none of so many rows and columns.
fn decode(bytes: &[u8], count: usize, columns: usize, key: &MessageKey) -> Option<Rows> {
    let mut rows = Rows::nothing(columns);
    rows.offsets.resize(count + 1, 0);
    if count == 0 {
        return bytes.is_empty().then_some(rows);
    }
    let bytes = match bytes.split_first()? {
        (&AS_WORDS, words) if columns > 0 => return of_words(words, count, columns, key),
        (&AS_VALUES, values) => values,
        _ => return None,
    };
    let (entries, rest) = bytes.split_first_chunk::<NUMBER>()?;
    let entries = u32::from_le_bytes(*entries) as usize;
    let (len, rest) = rest.split_first_chunk::<NUMBER>()?;
    if entries > count.checked_mul(columns)? {
        return None;
    }
    let (sizes, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    let sizes = decode_symbols(sizes, entries, SIZES).ok()?;
    let bits: usize = sizes.iter().map(|&size| size as usize).sum();
    let (below, rest) = rest.split_at_checked(bits.div_ceil(8))?;
    let mut below = Bits::of(below);
    let (mut places, mut next) = (Vec::with_capacity(entries), 0u64);
    for &size in &sizes {
        let distance = (1u64 << size) + below.take(size)?;
        let at = next.checked_add(distance - 1)?;
        if at >= (count * columns) as u64 {
            return None;
        }
        places.push(at);
        next = at + 1;
    }
    let values = decode_values(rest, &places, count)?;
    for &at in &places {
        rows.offsets[(at % count as u64) as usize + 1] += 1;
    }
    for row in 0..count {
        rows.offsets[row + 1] += rows.offsets[row];
    }
    let mut at_of = rows.offsets.clone();
    (rows.indices, rows.values) = (vec![0; entries], vec![0.0; entries]);
    for (at, value) in places.into_iter().zip(values) {
        let place = &mut at_of[(at % count as u64) as usize];
        (rows.indices[*place], rows.values[*place]) = ((at / count as u64) as u32, value);
        *place += 1;
    }
    Some(rows)
}

/// The values at these places of so many rows.
fn decode_values(bytes: &[u8], places: &[u64], count: usize) -> Option<Vec<f32>> {
    let (&known, rest) = bytes.split_first()?;
    let known = usize::from(known);
    if known > 0 || places.is_empty() {
        let (table, codes) = rest.split_at_checked(known * NUMBER)?;
        let table: Vec<f32> = table.as_chunks().0.iter().map(|&value| f32::from_le_bytes(value)).collect();
        let codes = decode_symbols(codes, places.len(), TABLE).ok()?;
        let values = codes.iter().map(|&code| table.get(code as usize).copied().filter(|value| value.is_finite()));
        return values.collect();
    }
    let (ends, codes) = rest.split_at_checked(count * NUMBER)?;
    let ends: Vec<[f32; 2]> =
        ends.as_chunks().0.iter().map(|&[a, b, c, d]| [Half::widened([a, b]), Half::widened([c, d])]).collect();
    let codes = decode_symbols(codes, places.len(), TABLE).ok()?;
    let value = |(&at, code): (&u64, u32)| {
        let ends = ends[(at % count as u64) as usize];
        let value = (f64::from(ends[0]) + f64::from(code) * step_of(ends)) as f32;
        value.is_finite().then_some(value)
    };
    places.iter().zip(codes).map(value).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows_of(rows: &[Vec<f32>], columns: usize) -> Rows {
        let mut found = Rows::nothing(columns);
        rows.iter().for_each(|row| found.push(row));
        found
    }

    fn key() -> MessageKey {
        key_of(Tag::new(Content::Features, laconic_wire::FramePurpose::Training))
    }

    fn wide(features: usize) -> Wide {
        Wide { classes: 0, features }
    }

    fn there_and_back(rows: &[Vec<f32>], columns: usize) -> (Vec<Vec<f32>>, usize) {
        let own: Vec<u32> = (0..rows.len() as u32).collect();
        let bytes = encode(&rows_of(rows, columns), &own, &key()).expect("finite values");
        let most = most(LinkRows { go: rows.len(), come: 0 }, wide(columns));
        assert!(bytes.len() <= most, "{} bytes for {rows:?}", bytes.len());
        let came = decode(&bytes, rows.len(), columns, &key()).expect("its own message");
        let row = |row| {
            let mut values = vec![0.0; columns];
            came.row(row).for_each(|(column, value)| values[column as usize] = value);
            values
        };
        ((0..rows.len()).map(row).collect(), bytes.len())
    }

    proptest! {
        #[test]
        fn values_of_a_table_come_back_bit_for_bit_and_others_within_half_a_step_of_their_row(
            rows in proptest::collection::vec(proptest::collection::vec(-4i8..5, 7), 0..40), few in any::<bool>(),
        ) {
            let value = |at: usize, value: i8| f32::from(value) * if few { 0.5 } else { 1.0 + at as f32 / 64.0 };
            let of_row = |row: &Vec<i8>| row.iter().enumerate().map(|(at, v)| value(at, *v)).collect();
            let rows: Vec<Vec<f32>> = rows.iter().map(of_row).collect();
            let (found, _) = there_and_back(&rows, 7);
            if few {
                prop_assert_eq!(&found, &rows);
            }
            for (row, found) in rows.iter().zip(&found) {
                let there = row.iter().copied().filter(|value| *value != 0.0);
                let [low, high] = there.fold([f32::MAX, f32::MIN], |[l, h], value| [l.min(value), h.max(value)]);
                for (value, found) in row.iter().zip(found) {
                    prop_assert!((*value == 0.0) == (*found == 0.0) || (value - found).abs() < 0.3);
                    // The ends are rounded by 2^-8 of themselves.
                    let step = (high - low) / 15.0 / 2.0 + (low.abs().max(high.abs())) / 128.0;
                    prop_assert!(*value == 0.0 || (value - found).abs() <= step, "{} became {}", value, found);
                }
            }
        }

        #[test]
        fn any_bytes_are_rows_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200), count in 0usize..9) {
            if let Some(rows) = decode(&bytes, count, 5, &key()) {
                prop_assert!(rows.len() == count && rows.indices.iter().all(|&column| column < 5));
                prop_assert!(rows.values.iter().all(|value| value.is_finite()));
            }
        }
    }

    #[test]
    fn a_bag_of_words_takes_about_a_byte_a_word() {
        let key = laconic_key::Key::new(1, laconic_key::Purpose::Test);
        let row = |row: u64| (0..1000).map(|at| f32::from(u8::from(key.with(row).with(at).unit() < 0.015))).collect();
        let rows: Vec<Vec<f32>> = (0..400).map(row).collect();
        let words = rows.iter().flatten().filter(|value| **value > 0.0).count();
        let (found, bytes) = there_and_back(&rows, 1000);
        assert_eq!(found, rows);
        assert!(bytes < words * 21 / 20, "{bytes} bytes for {words} words");
    }

    #[test]
    fn rows_from_one_end_of_numbers_to_the_other_come_back_as_numbers() {
        let row =
            |row: usize| (0..20).map(|at| (at as f32 - 9.5) / 10.0 * f32::MAX * (1.05 - row as f32 / 9.0)).collect();
        let rows: Vec<Vec<f32>> = (0..4).map(row).collect();
        let (found, _) = there_and_back(&rows, 20);
        for (value, found) in rows.iter().flatten().zip(found.iter().flatten()) {
            assert!(found.is_finite() && (f64::from(*value) - f64::from(*found)).abs() < f64::from(f32::MAX) * 0.15);
        }
    }
}
