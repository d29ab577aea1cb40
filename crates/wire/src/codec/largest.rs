//! `largest`: the values of a message that are largest in size, and nothing of the others. For parameters with error
//! feedback, under which what was left out comes later.
//!
//! SparseLoCo (Sarfi et al., 2025, arXiv 2508.15706) sends 1 to 3 % of what a model has moved so, in two bits each.
//! Where
//! these values stand takes an Elias-Fano code (Elias, 1974; Fano, 1971), whose size follows from how many there are.

use super::values::not_finite;
use super::{Codec, CodecId, CodecKind, Level, Message, RowsMut, RowsRef, Store};
use crate::error::expect_payload;
use crate::{Result, WireError};

/// Sends `share` of a message's values, those of largest size; what is lost is always less than what was there. Each
/// takes a bit for its sign and as many as tell `sizes` sizes apart, which are means of the sizes next to them (Lloyd,
/// 1982), so that one of them takes the sign alone.
///
/// Of `n` values `k = ⌈share · n⌉` take `4 · sizes` bytes and, for the `w` with which it is least, `k · (w + 1) +
/// ⌊(n − 1) / 2ʷ⌋` bits of positions and `k · (1 + ⌈log₂ sizes⌉)` bits of values: at a share of 0.02 in two sizes some
/// 9.6
/// bits for each value that travels. A message that takes no fewer bytes so travels as it is. Costs some 20 · k · sizes
/// comparisons and a look at each value. Not linear; the backward pass treats it as the identity.
#[derive(Debug, Clone, Copy)]
pub struct Largest {
    share: f64,
    sizes: usize,
}

/// The share and the number of sizes where none is named.
const SHARE: f64 = 0.02;
const SIZES: f64 = 2.0;

/// How many sizes can be told apart.
const SIZES_MOST: f64 = 128.0;

/// How often each size moves to the mean of those next to it.
const STEPS: usize = 8;

/// Bytes of a size, and of a value that travels as it is.
const NUMBER: usize = 4;

/// How a message of so many values travels, where that takes fewer bytes than the values themselves.
struct Form {
    /// Values that travel.
    kept: usize,
    /// Bits of a position that stand as they are; those above are told by counting.
    low: usize,
    /// Bits that the counts take.
    counts: usize,
}

impl Largest {
    /// The entry in registries. Options: `share` of the values, 0.02 if not given, and `sizes` that are told apart, 2
    /// if not given.
    pub const KIND: CodecKind = CodecKind {
        name: "largest",
        number: 6,
        options: &["share", "sizes"],
        mixes: true,
        leaves_out: true,
        build: |options, _| {
            let share = options.number("share")?.unwrap_or(SHARE);
            if !(share > 0.0 && share <= 1.0) {
                return Err(options.refuse("share", "a number above 0, at most 1"));
            }
            let sizes = options.number("sizes")?.unwrap_or(SIZES);
            if sizes.fract() != 0.0 || !(1.0..=SIZES_MOST).contains(&sizes) {
                return Err(options.refuse("sizes", "a whole number from 1 to 128"));
            }
            Ok(Box::new(Largest { share, sizes: sizes as usize }))
        },
        ..CodecKind::PLAIN
    };

    /// Bits of a value.
    fn width(&self) -> usize {
        1 + (usize::BITS - (self.sizes - 1).leading_zeros()) as usize
    }

    fn form(&self, values: usize) -> Option<Form> {
        if values == 0 {
            return None;
        }
        let kept = ((self.share * values as f64).ceil() as usize).clamp(1, values);
        let of = |low: usize| Form { kept, low, counts: kept + ((values - 1) >> low) };
        let form = (0..32).map(of).min_by_key(|form| form.kept * form.low + form.counts)?;
        (self.coded(&form) < NUMBER * values).then_some(form)
    }

    fn coded(&self, Form { kept, low, counts }: &Form) -> usize {
        NUMBER * self.sizes + (kept * (low + self.width()) + counts).div_ceil(8)
    }
}

impl Codec for Largest {
    fn id(&self) -> CodecId {
        Largest::KIND.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        self.form(rows * columns).map_or(NUMBER * rows * columns, |form| self.coded(&form))
    }

    fn encode(&mut self, _: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let values: Vec<f32> = (0..rows.rows.len()).flat_map(|position| rows.row(position)).copied().collect();
        if values.iter().any(|value| !value.is_finite()) {
            return Err(not_finite(Largest::KIND.name, &rows));
        }
        let Some(form) = self.form(values.len()) else {
            into.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            return Ok(());
        };
        let positions = largest(&values, form.kept);
        let mut magnitudes: Vec<f32> = positions.iter().map(|&at| values[at].abs()).collect();
        magnitudes.sort_unstable_by(f32::total_cmp);
        let sizes = sizes_of(&magnitudes, self.sizes);
        into.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        let mut bits = BitWriter { into, held: 0, count: 0 };
        let mut told = 0;
        for &at in &positions {
            // As many zeros as the upper part grows by, and a one.
            (told..at >> form.low).for_each(|_| bits.put(0, 1));
            bits.put(1, 1);
            told = at >> form.low;
        }
        (told..(values.len() - 1) >> form.low).for_each(|_| bits.put(0, 1));
        for &at in &positions {
            bits.put(at as u64, form.low);
            let code = nearest(&sizes, values[at].abs()) << 1 | usize::from(values[at].is_sign_negative());
            bits.put(code as u64, self.width());
        }
        bits.end();
        Ok(())
    }

    fn decode(&mut self, _: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        let total = count * columns;
        let form = self.form(total);
        let bytes = form.as_ref().map_or(NUMBER * total, |form| self.coded(form));
        expect_payload(Largest::KIND.name, bytes, payload.len())?;
        let arrived = match form {
            Some(form) => self.read(&form, payload, total)?,
            None => payload.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
        };
        for (position, row) in arrived.chunks(columns.max(1)).enumerate() {
            let target = into.row(position);
            match store {
                Store::Set => target.copy_from_slice(row),
                Store::Add => target.iter_mut().zip(row).for_each(|(target, value)| *target += value),
            }
        }
        Ok(())
    }
}

impl Largest {
    /// What arrives of so many values.
    fn read(&self, form: &Form, payload: &[u8], total: usize) -> Result<Vec<f32>> {
        let (sizes, bits) = payload.split_at(NUMBER * self.sizes);
        let sizes: Vec<f32> = sizes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        if sizes.iter().any(|size| !size.is_finite()) {
            return Err(WireError::malformed("largest: expected sizes that are finite numbers"));
        }
        let mut bits = BitReader { bytes: bits, at: 0 };
        let (mut upper, mut uppers) = (0, Vec::with_capacity(form.kept));
        for _ in 0..form.counts {
            match bits.take(1) {
                0 => upper += 1,
                _ => uppers.push(upper),
            }
        }
        if uppers.len() != form.kept {
            let what = format!("largest: expected {} positions, found {}", form.kept, uppers.len());
            return Err(WireError::malformed(what));
        }
        let mut values = vec![0.0; total];
        for upper in uppers {
            let at = upper << form.low | bits.take(form.low) as usize;
            let code = bits.take(self.width()) as usize;
            let (place, size) = (values.get_mut(at), sizes.get(code >> 1));
            let (Some(place), Some(&size)) = (place, size) else {
                return Err(WireError::malformed("largest: expected a position and a size of the message's"));
            };
            *place = if code & 1 == 1 { -size } else { size };
        }
        Ok(values)
    }
}

/// The positions of the values of largest size, of equal ones the first, in order.
fn largest(values: &[f32], count: usize) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..values.len()).collect();
    let order =
        |one: &usize, other: &usize| values[*other].abs().total_cmp(&values[*one].abs()).then_with(|| one.cmp(other));
    if count < positions.len() {
        positions.select_nth_unstable_by(count, order);
        positions.truncate(count);
    }
    positions.sort_unstable();
    positions
}

/// So many sizes that stand for these ascending ones: in the middle of equal shares of them to begin with, then means
/// of those that each is nearest to.
fn sizes_of(magnitudes: &[f32], count: usize) -> Vec<f32> {
    let mut sizes: Vec<f32> =
        (0..count).map(|size| magnitudes[(2 * size + 1) * magnitudes.len() / (2 * count)]).collect();
    for _ in 0..STEPS {
        let mut sums = vec![(0.0f64, 0.0f64); count];
        for &magnitude in magnitudes {
            let (sum, number) = &mut sums[nearest(&sizes, magnitude)];
            (*sum, *number) = (*sum + f64::from(magnitude), *number + 1.0);
        }
        let means = sizes.iter_mut().zip(sums).filter(|(_, (_, number))| *number > 0.0);
        means.for_each(|(size, (sum, number))| *size = (sum / number) as f32);
    }
    sizes
}

/// The number of the size that is nearest, the first of several.
fn nearest(sizes: &[f32], magnitude: f32) -> usize {
    let far = |size: &f32| (f64::from(*size) - f64::from(magnitude)).abs();
    let least = sizes.iter().enumerate().min_by(|(_, one), (_, other)| far(one).total_cmp(&far(other)));
    least.map_or(0, |(size, _)| size)
}

/// Bits behind one another, the first in the lowest place of a byte.
struct BitWriter<'a> {
    into: &'a mut Vec<u8>,
    held: u64,
    count: usize,
}

impl BitWriter<'_> {
    /// Appends the lowest bits of a value, at most 32.
    fn put(&mut self, value: u64, width: usize) {
        self.held |= (value & ((1 << width) - 1)) << self.count;
        self.count += width;
        while self.count >= 8 {
            self.into.push(self.held as u8);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    fn end(self) {
        if self.count > 0 {
            self.into.push(self.held as u8);
        }
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// The next bits, at most 32; 0 behind the end.
    fn take(&mut self, width: usize) -> u64 {
        let bit = |at: usize| u64::from(self.bytes.get(at / 8).copied().unwrap_or(0) >> (at % 8) & 1);
        let value = (0..width).fold(0, |value, place| value | bit(self.at + place) << place);
        self.at += width;
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::{Bits, CodecRegistry, Memory, Options, RowSet};
    use crate::{Content, FramePurpose, MessageKey, Rank, Tag};

    const TAG: Tag = Tag::new(Content::Models, FramePurpose::Training);
    const KEY: MessageKey = MessageKey { seed: 1, tag: TAG, from: Rank(0), to: Rank(1), drawn: 0 };

    /// What arrives of a row, and in how many bytes.
    fn sent(values: &[f32], share: f64, sizes: usize) -> (Vec<f32>, usize) {
        let options = Options::default().with("share", share).with("sizes", sizes as f64);
        let mut codec = CodecRegistry::default().build("largest", &options).expect("a codec");
        let (level, mut payload, mut found) =
            (Level { bits: Bits::Uniform(32), ratio: 1.0 }, Vec::new(), vec![0.0; values.len()]);
        let (rows, columns, mut none) = (RowSet::Range(0..1), values.len(), Memory::default());
        let row = RowsRef { data: values, columns, rows: rows.clone() };
        let message = Message { key: &KEY, level: &level, memory: &mut none };
        codec.encode(message, row, &mut payload).expect("finite values");
        let into = RowsMut { data: &mut found, columns, rows };
        let message = Message { key: &KEY, level: &level, memory: &mut none };
        codec.decode(message, &payload, into, Store::Set).expect("its own payload");
        (found, payload.len())
    }

    fn squares(values: impl Iterator<Item = f64>) -> f64 {
        values.map(|value| value * value).sum()
    }

    proptest! {
        /// What error feedback asks of a codec (Stich et al., 2018): what is lost is less than what was there by at
        /// least what the best of the kept values are worth.
        #[test]
        fn what_is_lost_is_less_than_what_was_there(
            values in proptest::collection::vec(-1000f32..1000.0, 1..400), share in 0.001f64..1.0, sizes in 1usize..9,
        ) {
            let (found, _) = sent(&values, share, sizes);
            let was = squares(values.iter().map(|value| f64::from(*value)));
            let lost = squares(values.iter().zip(&found).map(|(value, found)| f64::from(*value) - f64::from(*found)));
            let mut sizes: Vec<f64> = values.iter().map(|value| f64::from(value.abs())).collect();
            sizes.sort_by(|one, other| other.total_cmp(one));
            let kept = (share * values.len() as f64).ceil() as usize;
            // One size for all that are kept would be their mean; several are nearer.
            let least = sizes[..kept].iter().sum::<f64>().powi(2) / kept as f64;
            prop_assert!(lost <= was - least + 1e-6 * was, "{lost} of {was}");
        }

        #[test]
        fn the_values_that_arrive_are_the_largest_with_their_signs(
            values in proptest::collection::vec(-10f32..10.0, 50..400), share in 0.01f64..0.2,
        ) {
            let (found, _) = sent(&values, share, 2);
            let kept = (share * values.len() as f64).ceil() as usize;
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by(|one, other| values[*other].abs().total_cmp(&values[*one].abs()));
            for (place, at) in order.into_iter().enumerate() {
                let (value, found) = (values[at], found[at]);
                let fits = if place < kept { found * value >= 0.0 } else { found == 0.0 };
                prop_assert!(fits, "{value} arrives as {found}");
            }
        }
    }

    #[test]
    fn as_many_sizes_as_there_are_arrive_exactly() {
        let mut values = vec![0.0; 1000];
        for (place, value) in [(3, 5.0), (4, -5.0), (999, 0.25), (500, -0.25), (0, 5.0)] {
            values[place] = value;
        }
        assert_eq!(sent(&values, 0.005, 2).0, values);
        assert_eq!(sent(&[0.0; 1000], 0.005, 2).0, [0.0; 1000]);
    }

    #[test]
    fn two_in_a_hundred_take_less_than_ten_bits_each() {
        let values: Vec<f32> = (0..100_000).map(|at| ((at * 7919) % 100_003) as f32 - 50_000.0).collect();
        let (_, bytes) = sent(&values, 0.02, 2);
        assert!(8 * bytes < 10 * 2000, "{bytes}");
        // Everything, in one size: a bit for each sign, and some for where they are.
        assert!(8 * sent(&values, 1.0, 1).1 <= 3 * 100_000 + 64);
    }
}
