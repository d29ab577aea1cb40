//! `codewords`: a byte for each piece of a row, which names one of 255 words that are learned from the message itself
//! (product quantisation, Jégou, Douze and Schmid, 2011). For rows that cross once: a book stands in front of each
//! message, and learning it takes longer than any other codec.

use super::values::not_finite;
use super::words::{words_in_book, words_of};
use super::{Codec, CodecId, CodecKind, Half, Level, Message, RowsMut, RowsRef, Store};
use crate::error::expect_payload;
use crate::{Result, WireError};

/// Cuts a row into pieces of neighbouring columns and sends for each piece a byte: the nearest of the words that
/// k-means finds among the message's rows, or none where 0 is nearer, so that what is lost is never more than what was
/// there.
///
/// A message of `n` rows of `c` columns in `p` pieces takes `n · p` bytes and a book of `w · c` bfloat16 numbers: `w`
/// is 255, less where the book would take more than `n · p` bytes, but not below 64, and at most `n`. It costs about
/// (8 · min(n, 8192) + n) · w · c multiplications. Not linear; the backward pass treats it as the identity.
#[derive(Debug, Clone, Copy)]
pub struct Codewords {
    pieces: usize,
}

/// Words of a piece: a byte names one of them, or none.
const WORDS: usize = 255;

/// Bytes of a number in the book.
const NUMBER: usize = 2;

/// Pieces of a row at most.
const PIECES: std::ops::RangeInclusive<usize> = 1..=256;

impl Codewords {
    /// The entry in registries.
    pub const KIND: CodecKind = CodecKind {
        name: "codewords",
        number: 4,
        options: &["pieces"],
        build: |options, _| {
            let pieces = options.number("pieces")?.unwrap_or(1.0);
            if pieces.fract() != 0.0 || !PIECES.contains(&(pieces as usize)) {
                return Err(options.refuse("pieces", "a whole number from 1 to 256"));
            }
            Ok(Box::new(Codewords { pieces: pieces as usize }))
        },
        mixes: true,
        ..CodecKind::PLAIN
    };

    /// Of rows in so many pieces, at least 1 and at most 256.
    #[must_use]
    pub fn in_pieces(pieces: usize) -> Codewords {
        Codewords { pieces: pieces.clamp(*PIECES.start(), *PIECES.end()) }
    }

    /// How many words each piece has, for so many rows.
    fn words(&self, rows: usize, columns: usize) -> usize {
        words_in_book(rows, [self.pieces.min(columns), columns * NUMBER], WORDS)
    }

    /// Where the pieces of a row begin, and where the last ends.
    fn cuts(&self, columns: usize) -> Vec<usize> {
        let pieces = self.pieces.min(columns);
        (0..=pieces).map(|piece| piece * columns / pieces.max(1)).collect()
    }
}

impl Codec for Codewords {
    fn id(&self) -> CodecId {
        Codewords::KIND.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        self.words(rows, columns) * columns * NUMBER + rows * self.pieces.min(columns)
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let (count, columns) = (rows.rows.len(), rows.columns);
        if (0..count).any(|position| rows.row(position).iter().any(|value| !value.is_finite())) {
            return Err(not_finite(Codewords::KIND.name, &rows));
        }
        let (start, cuts, words) = (into.len(), self.cuts(columns), self.words(count, columns));
        into.resize(start + self.bytes(message.level, count, columns), 0);
        let (mut books, codes) = into[start..].split_at_mut(words * columns * NUMBER);
        let pieces = cuts.len() - 1;
        for (piece, ends) in cuts.windows(2).enumerate() {
            let width = ends[1] - ends[0];
            let mut points = Vec::with_capacity(count * width);
            (0..count).for_each(|position| points.extend_from_slice(&rows.row(position)[ends[0]..ends[1]]));
            let nearest = words_of(&points, width, words);
            let (book, rest) = books.split_at_mut(words * width * NUMBER);
            books = rest;
            let book = written(&means(&points, &nearest, width, words), book);
            for (position, (point, &word)) in points.chunks(width).zip(&nearest).enumerate() {
                let far = |word: &[f32]| {
                    point.iter().zip(word).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum::<f64>()
                };
                let own = point.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>();
                let is_near = far(&book[word * width..][..width]) < own;
                codes[position * pieces + piece] = if is_near { word as u8 + 1 } else { 0 };
            }
        }
        Ok(())
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        expect_payload(Codewords::KIND.name, self.bytes(message.level, count, columns), payload.len())?;
        let (cuts, words) = (self.cuts(columns), self.words(count, columns));
        let (mut books, codes) = payload.split_at(words * columns * NUMBER);
        if codes.iter().any(|&code| usize::from(code) > words) {
            return Err(WireError::malformed("codewords: expected a word of the book, found one beyond it"));
        }
        let pieces = cuts.len() - 1;
        for (piece, ends) in cuts.windows(2).enumerate() {
            let width = ends[1] - ends[0];
            let (book, rest) = books.split_at(words * width * NUMBER);
            books = rest;
            let (book, _) = book.as_chunks::<NUMBER>();
            for position in 0..count {
                let target = &mut into.row(position)[ends[0]..ends[1]];
                let word = usize::from(codes[position * pieces + piece]);
                let value = |column: usize| match word {
                    0 => 0.0,
                    word => Half::widened(book[(word - 1) * width + column]),
                };
                for (column, target) in target.iter_mut().enumerate() {
                    match store {
                        Store::Set => *target = value(column),
                        Store::Add => *target += value(column),
                    }
                }
            }
        }
        Ok(())
    }
}

/// The mean of the points of each word; words × width.
fn means(points: &[f32], nearest: &[usize], width: usize, words: usize) -> Vec<f64> {
    let (mut sums, mut sizes) = (vec![0.0; words * width], vec![0.0; words]);
    for (point, &word) in points.chunks(width).zip(nearest) {
        sizes[word] += 1.0;
        sums[word * width..][..width].iter_mut().zip(point).for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let size = |at: usize| f64::max(sizes[at / width], 1.0);
    sums.iter().enumerate().map(|(at, sum)| sum / size(at)).collect()
}

/// Writes words as bfloat16; what is read of them.
fn written(words: &[f64], into: &mut [u8]) -> Vec<f32> {
    let (into, _) = into.as_chunks_mut::<NUMBER>();
    let written = words.iter().zip(into).map(|(word, bytes)| {
        *bytes = Half::rounded(*word as f32).to_le_bytes();
        Half::widened(*bytes)
    });
    written.collect()
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};

    use super::*;
    use crate::codec::{Bits, CodecRegistry, Memory, Options, RowSet};
    use crate::{Content, FramePurpose, MessageKey, Rank, Tag};

    /// What arrives of rows in so many pieces.
    fn sent(rows: &[f32], columns: usize, pieces: usize) -> Vec<f32> {
        let registry = CodecRegistry::default();
        let mut codec =
            registry.build("codewords", &Options::default().with("pieces", pieces as f64)).expect("a codec");
        let tag = Tag::new(Content::Scores, FramePurpose::Training);
        let key = MessageKey { seed: 1, tag, from: Rank(0), to: Rank(1), drawn: 0 };
        let level = Level { ratio: 1.0, bits: Bits::Uniform(32) };
        let (count, mut payload, mut found) = (rows.len() / columns, Vec::new(), vec![0.0; rows.len()]);
        let all = || RowSet::Range(0..count);
        let [mut sender, mut receiver] = [Memory::default(), Memory::default()];
        let source = RowsRef { data: rows, columns, rows: all() };
        let message = Message { key: &key, level: &level, memory: &mut sender };
        codec.encode(message, source, &mut payload).expect("finite");
        let into = RowsMut { data: &mut found, columns, rows: all() };
        let message = Message { key: &key, level: &level, memory: &mut receiver };
        codec.decode(message, &payload, into, Store::Set).expect("its own payload");
        found
    }

    fn squares(values: impl Iterator<Item = f32>) -> f64 {
        values.map(|value| f64::from(value).powi(2)).sum()
    }

    #[test]
    fn what_is_lost_is_never_more_than_what_was_there_and_less_in_more_pieces() {
        let key = Key::new(3, Purpose::Test);
        let rows: Vec<f32> = (0..1000 * 12).map(|i| key.with(i).normal() as f32).collect();
        let mut before = f64::MAX;
        for pieces in [1, 2, 4, 12] {
            let found = sent(&rows, 12, pieces);
            for (row, found) in rows.chunks(12).zip(found.chunks(12)) {
                let lost = squares(row.iter().zip(found).map(|(a, b)| a - b));
                assert!(lost <= squares(row.iter().copied()), "{row:?} became {found:?}");
            }
            let lost = squares(rows.iter().zip(&found).map(|(a, b)| a - b));
            assert!(lost < before, "{pieces} pieces lose {lost}, fewer {before}");
            before = lost;
        }
        assert!(before < 1e-3 * squares(rows.iter().copied()), "a byte a value loses {before}");
    }

    #[test]
    fn rows_of_a_few_kinds_arrive_but_for_the_rounding_of_the_book() {
        let kinds = [[1.0, -2.0, 0.5], [0.0, 0.0, 0.0], [8.0, 0.25, -1.0]];
        let rows: Vec<f32> = (0..500).flat_map(|row| kinds[row * 5 % 3]).collect();
        assert_eq!(sent(&rows, 3, 1), rows);
    }
}
