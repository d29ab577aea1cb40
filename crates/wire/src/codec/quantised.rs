//! `quantised`: every value as a code of a few bits on its row's own grid, rounded at random and unbiased.
//!
//! A row of `D` columns with `b` bits is `4 + ⌈D·b/8⌉` bytes: its [grid], then the codes. Where that is not less than
//! its `4·D` bytes as they are, with 32 bits and in rows of one column, these are sent instead. Rows follow one another
//! without padding.
//!
//! Codes lie in `n = ⌊D/p⌋` little-endian words of 16 bits, `p = 16/b` codes in each: word `j` holds column `k·n + j`
//! in its bits `k·b..k·b+b`. The remaining `D − p·n` columns, fewer than `p`, follow in as many bytes as they need,
//! lowest bits first; unused bits are 0. So the codes of a whole vector register of neighbours are shifted into place
//! at once; with neighbours in one word each register would have to be taken apart. The layout belongs to the codec's
//! id: another layout takes another id.

mod fitted;
mod grid;
mod noise;

use super::values::{FETCHED, LINE, append_values, not_finite, read_values};
use super::{Bits, Codec, CodecId, CodecKind, Level, Message, Reads, RowSet, RowsMut, RowsRef, Store};
use crate::Result;
use crate::error::expect_payload;
use grid::Grid;
use laconic_key::{Key, Purpose};
use noise::Noise;
use std::ops::Range;
use std::{hint, iter};

/// Sends each value as one of 2^b points between its row's smallest and largest value; b is 1, 2, 4, 8, 16 or 32.
///
/// The zero point is the smallest value rounded down and the step is rounded up, so that the points that are decoded
/// cover the row, and a value becomes one of the two points around it with the odds that make its mean the value. So:
/// the error is less than one step; its mean is 0 and its variance at most step²/4; a zero in a row without negative
/// values stays 0; a row of one value is exact. (All up to f32's own rounding, 2⁻²⁴ of the row's largest magnitude and
/// width; -0.0 may become 0.0; points beyond f32's largest number, which rows that reach within 1 % of it may have,
/// become that number.) Not linear; the backward pass treats it as the identity.
///
/// Under error feedback ([`Codec::expect_feedback`]) 1 and 2 bits are not drawn but fitted: biased, and never further
/// from a row than 0 is.
///
/// Encoding reads a row twice, first for its ends and then, from the nearest cache, for its codes, and draws 16 random
/// bits a value. The loops are plain and compiled once for each instruction set; which one runs is decided once per
/// run of rows of one width, and all give the same bits.
#[derive(Debug, Clone, Default)]
pub struct Quantised {
    arch: pulp::Arch,
    /// Whether what is dropped comes back with the next message.
    feedback: bool,
}

impl Codec for Quantised {
    fn id(&self) -> CodecId {
        Quantised::KIND.id()
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        level.bits.runs(rows).map(|(bits, positions)| positions.len() * row_bytes(bits, columns)).sum()
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let Message { key, level, .. } = message;
        let before = into.len();
        into.reserve(self.bytes(level, rows.rows.len(), rows.columns));
        let key = key.stream(Purpose::Rounding);
        for (bits, positions) in level.bits.runs(rows.rows.len()) {
            let run = RowsRef { rows: rows.rows.part(positions.clone()), ..rows };
            if let Err(error) = self.encode_run(bits, key, positions.start, &run, into) {
                into.truncate(before);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Wider than the row: its ends are bfloat16 numbers. 0 for what arrives exactly.
    fn span(&self, bits: u8, row: &[f32]) -> f64 {
        match ends(row) {
            Some((min, max)) if min < max && !travels_whole(bits, row.len()) => {
                let levels = levels(bits.into());
                f64::from(levels) * Grid::covering(min, max, levels).step()
            }
            _ => 0.0,
        }
    }

    fn expect_feedback(&mut self) {
        self.feedback = true;
    }

    fn decode(&mut self, message: Message<'_>, mut payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()> {
        let level = message.level;
        let (count, columns) = (into.rows.len(), into.columns);
        expect_payload(Quantised::KIND.name, self.bytes(level, count, columns), payload.len())?;
        for (bits, positions) in level.bits.runs(count) {
            let run;
            (run, payload) = payload.split_at(positions.len() * row_bytes(bits, columns));
            let into = RowsMut { data: &mut *into.data, columns, rows: into.rows.part(positions) };
            self.decode_run(bits, run, into, store)?;
        }
        Ok(())
    }
}

impl Quantised {
    /// The entry in registries.
    pub const KIND: CodecKind = CodecKind {
        name: "quantised",
        number: 3,
        reads: Reads { ratio: false, bits: true },
        draws: true,
        build: |_, _| Ok(Box::new(Quantised::default())),
        ..CodecKind::PLAIN
    };

    /// Appends rows of one width, the first of which is at this position of the message.
    fn encode_run(&self, bits: u8, key: Key, first: usize, rows: &RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        if rows.columns == 0 {
            return Ok(());
        }
        let finite = match bits {
            _ if travels_whole(bits, rows.columns) => {
                return append_values(Quantised::KIND.name, rows, into, u32::to_le_bytes);
            }
            1 if self.feedback => fit_rows::<1>(rows, into),
            2 if self.feedback => fit_rows::<2>(rows, into),
            1 => self.arch.dispatch(Encode::<1> { key, first, rows, into }),
            2 => self.arch.dispatch(Encode::<2> { key, first, rows, into }),
            4 => self.arch.dispatch(Encode::<4> { key, first, rows, into }),
            8 => self.arch.dispatch(Encode::<8> { key, first, rows, into }),
            _ => self.arch.dispatch(Encode::<16> { key, first, rows, into }),
        };
        if finite { Ok(()) } else { Err(not_finite(Quantised::KIND.name, rows)) }
    }

    /// Reads rows of one width.
    fn decode_run(&self, bits: u8, payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()> {
        if into.columns == 0 {
            return Ok(());
        }
        match bits {
            _ if travels_whole(bits, into.columns) => {
                return read_values(Quantised::KIND.name, payload, into, store, f32::from_le_bytes);
            }
            1 => self.arch.dispatch(Decode::<1> { payload, into, store }),
            2 => self.arch.dispatch(Decode::<2> { payload, into, store }),
            4 => self.arch.dispatch(Decode::<4> { payload, into, store }),
            8 => self.arch.dispatch(Decode::<8> { payload, into, store }),
            _ => self.arch.dispatch(Decode::<16> { payload, into, store }),
        }
        Ok(())
    }
}

/// Appends rows of at least one column whose grids are fitted, and says whether all values were finite; stops where one
/// is not.
fn fit_rows<const BITS: u32>(rows: &RowsRef<'_>, into: &mut Vec<u8>) -> bool {
    let (row_bytes, mut codes) = (row_bytes(BITS as u8, rows.columns), Vec::with_capacity(rows.columns));
    (0..rows.rows.len()).all(|position| {
        let before = into.len();
        into.resize(before + row_bytes, 0);
        fitted::encode_row::<BITS>(rows.row(position), &mut codes, &mut into[before..])
    })
}

/// The bytes of one row.
fn row_bytes(bits: u8, columns: usize) -> usize {
    assert!(matches!(bits, 1 | 2 | 4 | 8 | 16 | 32), "a value has 1, 2, 4, 8, 16 or 32 bits, not {bits}");
    (4 + (columns * usize::from(bits)).div_ceil(8)).min(columns * 4)
}

/// Whether rows travel as they are, because codes and a grid would not be smaller.
fn travels_whole(bits: u8, columns: usize) -> bool {
    row_bytes(bits, columns) == columns * 4
}

impl Bits<'_> {
    /// Each width with the longest run of positions that share it, in order.
    fn runs(self, rows: usize) -> impl Iterator<Item = (u8, Range<usize>)> {
        if let Bits::Rows(widths) = self {
            assert_eq!(widths.len(), rows, "one width for each row");
        }
        let mut start = 0;
        iter::from_fn(move || {
            let (bits, len) = match self {
                Bits::Uniform(bits) => (bits, rows - start),
                Bits::Rows(widths) => {
                    let bits = *widths.get(start)?;
                    (bits, widths[start..].iter().take_while(|&&width| width == bits).count())
                }
            };
            start += len;
            (len > 0).then_some((bits, start - len..start))
        })
    }
}

/// Appends rows of at least one column, and says whether all values were finite; stops where one is not.
///
/// A type instead of a closure, because nothing makes the compiler inline a closure into the function of each
/// instruction set, and what is not inlined there has no vectors.
struct Encode<'a, const BITS: u32> {
    key: Key,
    first: usize,
    rows: &'a RowsRef<'a>,
    into: &'a mut Vec<u8>,
}

impl<const BITS: u32> pulp::NullaryFnOnce for Encode<'_, BITS> {
    type Output = bool;

    #[inline(always)]
    fn call(self) -> bool {
        let Encode { key, first, rows, into } = self;
        let (count, row_bytes) = (rows.rows.len(), row_bytes(BITS as u8, rows.columns));
        let mut plans = [Plan::NONE; FETCHED];
        for start in (0..count).step_by(FETCHED) {
            // The ends of several rows are found before any is rounded, so that no row waits for another's divisions.
            let group = start..count.min(start + FETCHED);
            if let RowSet::Indices(_) = rows.rows {
                // One value of each line brings it here; to find the ends meanwhile would be too much for the window.
                let touch = |position| rows.row(position).iter().step_by(LINE).fold(0, |all, v| all | v.to_bits());
                hint::black_box(group.clone().fold(0, |all, position| all | touch(position)));
            }
            for (plan, position) in plans.iter_mut().zip(group.clone()) {
                let Some((min, max)) = ends(rows.row(position)) else { return false };
                *plan = Plan::of::<BITS>(min, max, Noise::new(key.with((first + position) as u64)));
            }
            let before = into.len();
            into.resize(before + group.len() * row_bytes, 0);
            for ((plan, position), into) in plans.iter().zip(group).zip(into[before..].chunks_exact_mut(row_bytes)) {
                encode_row::<BITS>(plan, rows.row(position), into);
            }
        }
        true
    }
}

/// The smallest and the largest value of a row, unless one is not finite. -0.0 counts as 0.0.
///
/// Floats are compared as integers in the same order (-0.0 below 0.0, and what is no number beyond the infinities):
/// such loops become vectors, their result does not depend on the order of comparisons, and the ends alone tell whether
/// all values were finite.
#[inline(always)]
fn ends(row: &[f32]) -> Option<(f32, f32)> {
    let (mut min, mut max) = (i32::MAX, i32::MIN);
    for value in row {
        let place = ordered(value.to_bits() as i32);
        (min, max) = (min.min(place), max.max(place));
    }
    let value = |place| f32::from_bits(ordered(place) as u32);
    (value(min).is_finite() && value(max).is_finite()).then(|| (value(min) + 0.0, value(max) + 0.0))
}

/// From a float's bits to its place in the order, and back.
#[inline(always)]
fn ordered(bits: i32) -> i32 {
    bits ^ (bits >> 31 & 0x7fff_ffff)
}

/// How a row is to be rounded. Five words and no enum: it is written and read word by word, which the processor
/// forwards from one to the other, unlike an enum copied as a whole.
#[derive(Clone, Copy)]
struct Plan {
    head: [u8; 4],
    /// The lowest point, or the value if there is only one.
    zero: f32,
    /// Places on the grid are (value - zero) · scale; 0 if there is only one value, infinite if they need f64.
    scale: f32,
    noise: Noise,
}

impl Plan {
    const NONE: Plan = Plan { head: [0; 4], zero: 0.0, scale: 0.0, noise: Noise::NONE };

    #[inline(always)]
    fn of<const BITS: u32>(min: f32, max: f32, noise: Noise) -> Plan {
        if min == max {
            return Plan { zero: min, noise, ..Plan::NONE };
        }
        let grid = Grid::covering(min, max, levels(BITS));
        let scale = (f64::from(1 << fraction(BITS)) / grid.step()) as f32;
        let scale = if grid.is_ordinary(levels(BITS)) { scale } else { f32::INFINITY };
        Plan { head: grid.to_bytes(), zero: grid.zero() as f32, scale, noise }
    }
}

/// Writes a row's grid and codes over zeros.
#[inline(always)]
fn encode_row<const BITS: u32>(plan: &Plan, row: &[f32], into: &mut [u8]) {
    let (head, packed) = into.split_first_chunk_mut::<4>().expect("a row has at least five bytes");
    let Plan { zero, scale, noise, .. } = *plan;
    *head = plan.head;
    if scale == 0.0 {
        (*head, packed[0]) = grid::constant(zero);
    } else if scale == f32::INFINITY {
        round_extreme::<BITS>(row, plan, packed);
    } else {
        round::<BITS>(row, noise, |value| ((value - zero) * scale + INTEGERS).to_bits(), packed);
    }
}

/// As slow as it is rare, and out of the way of the ordinary loop's registers.
#[cold]
#[inline(never)]
fn round_extreme<const BITS: u32>(row: &[f32], plan: &Plan, into: &mut [u8]) {
    let grid = Grid::from_bytes(plan.head, 0).expect("the grid of a row with two values");
    let scale = f64::from(1 << fraction(BITS)) / grid.step();
    let place = |value: f32| ((f64::from(value) - grid.zero()) * scale).round() as u32;
    round::<BITS>(row, plan.noise, |value| INTEGERS.to_bits() + place(value).min(1 << 23), into);
}

/// The highest code, which is also how many steps there are.
const fn levels(bits: u32) -> u32 {
    (1 << bits) - 1
}

/// The bits behind the point of a place on the grid.
const fn fraction(bits: u32) -> u32 {
    if bits < 7 { 16 } else { 23 - bits }
}

/// 2²³: the f32 from here on are the integers.
const INTEGERS: f32 = (1 << 23) as f32;

/// Rounds each value to a point of the grid: `⌊(value − zero) / step + u⌋`, u uniform in [0, 1), and packs the codes.
///
/// In fixed point: `place` gives `(value − zero) / step` behind [`INTEGERS`]. Of the 23 bits that an f32 holds below
/// its leading one, BITS are the code's and up to 16 are the fraction's, and as many random bits are added. So a value
/// on a point stays there whatever the random bits are, and the odds of the others are right up to 2⁻¹⁶ of a step, and
/// with 16 bits up to 2⁻²⁴ of the grid's width.
///
/// Two columns share a hash, of which one takes the upper bits and the other the lower ones.
#[inline(always)]
fn round<const BITS: u32>(row: &[f32], noise: Noise, place: impl Fn(f32) -> u32, into: &mut [u8]) {
    // Only f32's rounding can lead beyond the highest point. The bits above the code are INTEGERS' exponent.
    let top = INTEGERS.to_bits() + (levels(BITS) << fraction(BITS));
    let code = |value, random| (place(value).min(top) + (random >> (16 - fraction(BITS)))) >> fraction(BITS);
    let code = |value, random| code(value, random) & levels(BITS);

    let (planes, width) = shape::<BITS>(row.len());
    let (words, rest) = into.split_at_mut(width * 2);
    let words = words.as_chunks_mut().0;
    let (row, last) = row.split_at(planes * width);
    let plane = |k: usize| &row[k * width..][..width];
    for k in 0..planes / 2 {
        let (low, high) = (k as u32 * BITS, (k + planes / 2) as u32 * BITS);
        let pairs = plane(k).iter().zip(plane(k + planes / 2));
        for (j, (word, (&one, &other))) in words.iter_mut().zip(pairs).enumerate() {
            let random = noise.at((k * width + j) as u32);
            let codes = code(one, random >> 16) << low | code(other, random & 0xffff) << high;
            let before = if k == 0 { 0 } else { u16::from_le_bytes(*word) };
            *word = (before | codes as u16).to_le_bytes();
        }
    }
    if planes == 1 {
        for (j, (word, &value)) in words.iter_mut().zip(row).enumerate() {
            *word = (code(value, noise.at(j as u32) >> 16) as u16).to_le_bytes();
        }
    }
    for (place, &value) in last.iter().enumerate() {
        let (bit, random) = (place * BITS as usize, noise.at((row.len() + place) as u32));
        rest[bit / 8] |= (code(value, random >> 16) << (bit % 8)) as u8;
    }
}

/// How many planes a row of `columns` is cut into, and how wide they are.
#[inline(always)]
fn shape<const BITS: u32>(columns: usize) -> (usize, usize) {
    let planes = (16 / BITS) as usize;
    (planes, columns / planes)
}

/// Reads rows of at least one column from as many bytes as they take.
struct Decode<'a, const BITS: u32> {
    payload: &'a [u8],
    into: RowsMut<'a>,
    store: Store,
}

impl<const BITS: u32> pulp::NullaryFnOnce for Decode<'_, BITS> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Decode { payload, mut into, store } = self;
        let rows = payload.chunks_exact(row_bytes(BITS as u8, into.columns)).enumerate();
        match store {
            Store::Set => rows.for_each(|(position, row)| decode_row::<BITS>(row, into.row(position), |_, new| new)),
            Store::Add => {
                rows.for_each(|(position, row)| decode_row::<BITS>(row, into.row(position), |old, new| old + new))
            }
        }
    }
}

#[inline(always)]
fn decode_row<const BITS: u32>(row: &[u8], target: &mut [f32], store: impl Fn(f32, f32) -> f32 + Copy) {
    let (head, packed) = row.split_first_chunk::<4>().expect("a row has at least five bytes");
    match Grid::from_bytes(*head, packed[0]) {
        Err(value) => target.iter_mut().for_each(|target| *target = store(*target, value)),
        Ok(grid) if grid.is_finite(levels(BITS)) => {
            let (zero, step) = (grid.zero() as f32, grid.step() as f32);
            unpack::<BITS>(packed, target, |there, code| store(there, zero + code as f32 * step));
        }
        Ok(grid) => {
            let point = |code| grid.zero() + f64::from(code) * grid.step();
            let limit = f64::from(f32::MAX);
            unpack::<BITS>(packed, target, |there, code| store(there, point(code).clamp(-limit, limit) as f32));
        }
    }
}

/// Hands each column's code to `store`. Codes are i32 because vectors of those become f32 in one instruction.
#[inline(always)]
fn unpack<const BITS: u32>(packed: &[u8], target: &mut [f32], store: impl Fn(f32, i32) -> f32) {
    let (planes, width) = shape::<BITS>(target.len());
    let (words, rest) = packed.split_at(width * 2);
    let words = words.as_chunks().0;
    let (target, last) = target.split_at_mut(planes * width);
    for k in 0..planes {
        for (target, &word) in target[k * width..][..width].iter_mut().zip(words) {
            let word = i32::from(u16::from_le_bytes(word));
            *target = store(*target, word >> (k as u32 * BITS) & levels(BITS) as i32);
        }
    }
    for (place, target) in last.iter_mut().enumerate() {
        let bit = place * BITS as usize;
        *target = store(*target, i32::from(rest[bit / 8]) >> (bit % 8) & levels(BITS) as i32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::RowSet;
    use laconic_key::Purpose;
    use pulp::NullaryFnOnce;

    fn compare<const BITS: u32>(rows: &RowsRef<'_>) {
        let (key, mut plain, mut fast) = (Key::new(1, Purpose::Test), Vec::new(), Vec::new());
        assert!(Encode::<BITS> { key, first: 3, rows, into: &mut plain }.call());
        assert!(pulp::Arch::new().dispatch(Encode::<BITS> { key, first: 3, rows, into: &mut fast }));
        assert_eq!(plain, fast, "{BITS} bits, {} columns", rows.columns);

        let mut back = [vec![1.0; rows.data.len()], vec![1.0; rows.data.len()]];
        let [one, other] = &mut back;
        let into = |data| RowsMut { data, columns: rows.columns, rows: rows.rows.clone() };
        Decode::<BITS> { payload: &plain, into: into(one), store: Store::Add }.call();
        pulp::Arch::new().dispatch(Decode::<BITS> { payload: &plain, into: into(other), store: Store::Add });
        assert_eq!(back[0], back[1], "{BITS} bits, {} columns", rows.columns);
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        for columns in [2, 3, 7, 16, 37, 100, 256, 1030] {
            let key = Key::new(2, Purpose::Test);
            let data: Vec<f32> = (0..columns * 20).map(|i| key.with(i as u64).normal() as f32).collect();
            let rows = RowsRef { data: &data, columns, rows: RowSet::Range(0..20) };
            compare::<1>(&rows);
            compare::<2>(&rows);
            compare::<4>(&rows);
            compare::<8>(&rows);
            compare::<16>(&rows);
        }
    }
}
