//! `top`: of each row its few largest values, and one value for all others. For class scores, of which few are more
//! than nothing: what is left of them says little, and all of it takes most of the bytes.

use super::values::not_finite;
use super::{Bits, Codec, CodecId, CodecKind, Half, Level, Message, Reads, RowsMut, RowsRef, Store};
use crate::error::expect_payload;
use crate::{Result, WireError};

/// Sends of each row where its `keep` largest values are, these in `b` bits each between the mean of all others and the
/// largest, and that mean. The first of equally large values counts as the larger.
///
/// A row of `c` columns takes `4 + ⌈keep · (⌈log₂ c⌉ + b) / 8⌉` bytes: the mean of the others and the distance of the
/// largest from it as bfloat16 numbers, then place and code of each kept value, the lowest bits first; `b` is 2 at
/// least. Rows for which this is no less than `4 · c` bytes travel as they are, and with 16 or 32 bits codes have 16.
/// Rounding is to the nearest: biased; an error is at most half a step of the kept values and a 128th of the largest
/// magnitude, and for the others what they differ by from their mean. It costs one pass that keeps the `keep` largest.
/// Not linear; the backward pass treats it as the identity.
///
/// Under error feedback ([`Codec::expect_feedback`]) those of the largest magnitude are kept, with their signs and
/// rounded towards 0, and the others are 0: what is lost is then always less than what was there. A distance below 0
/// says so.
#[derive(Debug, Clone, Copy)]
pub struct Top {
    keep: usize,
    /// Whether what is dropped comes back with the next message.
    feedback: bool,
}

/// Values that can be kept.
const KEPT: std::ops::RangeInclusive<usize> = 1..=64;

/// Where none are asked for.
const USUAL: f64 = 3.0;

/// Bytes in front of a row's codes: two bfloat16 numbers.
const HEAD: usize = 4;

/// How values of one row are written.
#[derive(Clone, Copy)]
struct Form {
    keep: usize,
    place_bits: usize,
    code_bits: usize,
}

impl Form {
    fn bytes(&self) -> usize {
        HEAD + (self.keep * (self.place_bits + self.code_bits)).div_ceil(8)
    }

    fn levels(&self) -> f64 {
        ((1u32 << self.code_bits) - 1) as f64
    }
}

impl Top {
    /// The entry in registries. Option: `keep`, 3 if not given.
    pub const KIND: CodecKind = CodecKind {
        name: "top",
        number: 10,
        options: &["keep"],
        reads: Reads { ratio: false, bits: true },
        leaves_out: true,
        build: |options, _| {
            let keep = options.number("keep")?.unwrap_or(USUAL);
            if keep.fract() != 0.0 || !KEPT.contains(&(keep as usize)) {
                return Err(options.refuse("keep", "a whole number from 1 to 64"));
            }
            Ok(Box::new(Top { keep: keep as usize, feedback: false }))
        },
        ..CodecKind::PLAIN
    };

    /// The form of a row; `None` where it travels as it is.
    fn form(&self, bits: u8, columns: usize) -> Option<Form> {
        let place_bits = (usize::BITS - columns.saturating_sub(1).leading_zeros()) as usize;
        let form = Form { keep: self.keep.min(columns), place_bits, code_bits: usize::from(bits.clamp(2, 16)) };
        (form.bytes() < 4 * columns).then_some(form)
    }

    fn row_bytes(&self, bits: u8, columns: usize) -> usize {
        self.form(bits, columns).map_or(4 * columns, |form| form.bytes())
    }
}

fn bits_of(level: &Level<'_>, position: usize) -> u8 {
    match level.bits {
        Bits::Uniform(bits) => bits,
        Bits::Rows(bits) => bits[position],
    }
}

impl Codec for Top {
    fn id(&self) -> CodecId {
        Top::KIND.id()
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        match level.bits {
            Bits::Uniform(bits) => rows * self.row_bytes(bits, columns),
            Bits::Rows(bits) => bits.iter().map(|&bits| self.row_bytes(bits, columns)).sum(),
        }
    }

    fn expect_feedback(&mut self) {
        self.feedback = true;
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let start = into.len();
        let mut largest = Vec::with_capacity(self.keep);
        for position in 0..rows.rows.len() {
            let row = rows.row(position);
            if row.iter().any(|value| !value.is_finite()) {
                into.truncate(start);
                return Err(not_finite(Top::KIND.name, &rows));
            }
            match self.form(bits_of(message.level, position), row.len()) {
                None => into.extend(row.iter().flat_map(|value| value.to_le_bytes())),
                Some(form) if self.feedback => {
                    keep_largest(row.len(), form.keep, |place| row[place].abs(), &mut largest);
                    write_magnitudes(row, form, &largest, into);
                }
                Some(form) => {
                    keep_largest(row.len(), form.keep, |place| row[place], &mut largest);
                    write(row, form, &largest, into);
                }
            }
        }
        Ok(())
    }

    fn decode(&mut self, message: Message<'_>, mut payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        expect_payload(Top::KIND.name, self.bytes(message.level, count, columns), payload.len())?;
        let mut values = vec![0.0; columns];
        for position in 0..count {
            let form = self.form(bits_of(message.level, position), columns);
            let (bytes, rest) = payload.split_at(form.map_or(4 * columns, |form| form.bytes()));
            payload = rest;
            match form {
                None => values.iter_mut().zip(bytes.as_chunks().0).for_each(|(to, &of)| *to = f32::from_le_bytes(of)),
                Some(form) => read(bytes, form, &mut values)?,
            }
            let row = into.row(position).iter_mut().zip(&values);
            match store {
                Store::Set => row.for_each(|(to, value)| *to = *value),
                Store::Add => row.for_each(|(to, value)| *to += *value),
            }
        }
        Ok(())
    }
}

/// Puts the places of the `keep` largest of so many values into `largest`, the largest first.
fn keep_largest(count: usize, keep: usize, value: impl Fn(usize) -> f32, largest: &mut Vec<usize>) {
    largest.clear();
    for place in 0..count {
        if largest.len() == keep && value(place) <= value(largest[keep - 1]) {
            continue;
        }
        largest.truncate(keep - 1);
        let at = largest.partition_point(|&other| value(other) >= value(place));
        largest.insert(at, place);
    }
}

/// Appends a row whose largest values are at these places.
fn write(row: &[f32], form: Form, largest: &[usize], into: &mut Vec<u8>) {
    let kept: f64 = largest.iter().map(|&place| f64::from(row[place])).sum();
    let all: f64 = row.iter().map(|&value| f64::from(value)).sum();
    // What is left of values far apart may be rounding alone.
    let least = row.iter().copied().fold(f32::MAX, f32::min);
    let others = (row.len() - form.keep) as f64;
    let mean = if others > 0.0 { (all - kept) / others } else { least.into() };
    let mean = mean.clamp(least.into(), row[largest[form.keep - 1]].into());
    let mean = Half::rounded((mean as f32).clamp(-LARGEST, LARGEST)).to_le_bytes();
    let above = f64::from(row[largest[0]]) - f64::from(Half::widened(mean));
    let above = Half::rounded((above as f32).clamp(0.0, LARGEST)).to_le_bytes();
    into.extend([mean, above].concat());
    let (mean, above) = (f64::from(Half::widened(mean)), f64::from(Half::widened(above)));
    let share = |place: usize| if above > 0.0 { (f64::from(row[place]) - mean) / above } else { 0.0 };
    let code = |place: usize| (share(place).clamp(0.0, 1.0) * form.levels()).round() as u64;
    pack(largest, form, code, into);
}

/// Appends a row whose values of the largest magnitude are at these places: all others are 0.
fn write_magnitudes(row: &[f32], form: Form, largest: &[usize], into: &mut Vec<u8>) {
    // Rounded towards 0, as all that hangs on it.
    let above = ((row[largest[0]].abs().to_bits() >> 16) as u16).to_le_bytes();
    let below = [above[0], above[1] | 0x80];
    into.extend([[0, 0], below].concat());
    let (above, levels) = (f64::from(Half::widened(above)), ((1u32 << (form.code_bits - 1)) - 1) as f64);
    let share = |place: usize| if above > 0.0 { f64::from(row[place].abs()) / above } else { 0.0 };
    let sign = |place: usize| u64::from(row[place] < 0.0) << (form.code_bits - 1);
    pack(largest, form, |place| (share(place).min(1.0) * levels) as u64 | sign(place), into);
}

/// Appends places and codes of the values that are kept.
fn pack(largest: &[usize], form: Form, code: impl Fn(usize) -> u64, into: &mut Vec<u8>) {
    let (mut held, mut count) = (0u64, 0);
    for &place in largest {
        held |= (place as u64 | code(place) << form.place_bits) << count;
        count += form.place_bits + form.code_bits;
        while count >= 8 {
            into.push(held as u8);
            (held, count) = (held >> 8, count - 8);
        }
    }
    if count > 0 {
        into.push(held as u8);
    }
}

/// The largest number that is a bfloat16.
const LARGEST: f32 = f32::from_bits(0x7f7f_0000);

/// Reads a row from its bytes.
fn read(bytes: &[u8], form: Form, row: &mut [f32]) -> Result<()> {
    let (head, codes) = bytes.split_at(HEAD);
    let mean = Half::widened([head[0], head[1]]);
    let above = Half::widened([head[2], head[3]]);
    let (is_signed, above) = (above.is_sign_negative(), f64::from(above.abs()));
    let magnitudes = (1u64 << (form.code_bits - 1)) - 1;
    let share = |code: u64| match is_signed {
        true if code > magnitudes => -((code & magnitudes) as f64) / magnitudes as f64,
        true => code as f64 / magnitudes as f64,
        false => code as f64 / form.levels(),
    };
    row.fill(mean);
    let (mut held, mut count, mut next) = (0u64, 0, codes.iter());
    for _ in 0..form.keep {
        while count < form.place_bits + form.code_bits {
            held |= u64::from(next.next().copied().unwrap_or(0)) << count;
            count += 8;
        }
        let place = (held & ((1 << form.place_bits) - 1)) as usize;
        let code = held >> form.place_bits & ((1 << form.code_bits) - 1);
        held >>= form.place_bits + form.code_bits;
        count -= form.place_bits + form.code_bits;
        let value = row.get_mut(place).ok_or_else(|| {
            WireError::malformed(format!("{}: expected a column of the row, found one beyond it", Top::KIND.name))
        })?;
        *value = (f64::from(mean) + above * share(code)).clamp(f32::MIN.into(), f32::MAX.into()) as f32;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};
    use proptest::prelude::*;

    use super::*;
    use crate::codec::{Memory, RowSet};
    use crate::{Content, FramePurpose, MessageKey, Rank, Tag};

    fn sent(rows: &[f32], columns: usize, keep: usize, bits: u8) -> Vec<f32> {
        let tag = Tag::new(Content::Scores, FramePurpose::Training);
        let key = MessageKey { seed: 1, tag, from: Rank(0), to: Rank(1), drawn: 0 };
        let level = Level { ratio: 1.0, bits: Bits::Uniform(bits) };
        let (count, mut payload, mut found) = (rows.len() / columns, Vec::new(), vec![0.0; rows.len()]);
        let all = || RowSet::Range(0..count);
        let mut memory = Memory::default();
        let message = Message { key: &key, level: &level, memory: &mut memory };
        let mut codec = Top { keep, feedback: false };
        codec.encode(message, RowsRef { data: rows, columns, rows: all() }, &mut payload).expect("finite");
        assert_eq!(payload.len(), codec.bytes(&level, count, columns));
        let message = Message { key: &key, level: &level, memory: &mut memory };
        let into = RowsMut { data: &mut found, columns, rows: all() };
        codec.decode(message, &payload, into, Store::Set).expect("its own payload");
        found
    }

    proptest! {
        #[test]
        fn kept_values_are_off_by_half_a_step_and_others_are_their_mean(
            columns in 9usize..70, keep in 1usize..5, bits in prop_oneof![Just(2u8), Just(4), Just(8)],
            seed in any::<u64>(),
        ) {
            let key = Key::new(seed, Purpose::Test);
            let row: Vec<f32> = (0..columns).map(|i| key.with(i as u64).normal() as f32 * 3.0).collect();
            let found = sent(&row, columns, keep, bits);
            let mut order: Vec<usize> = (0..columns).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            let (kept, rest) = order.split_at(keep);
            let mean = rest.iter().map(|&at| f64::from(row[at])).sum::<f64>() / rest.len() as f64;
            let magnitude = row.iter().fold(0.0f64, |largest, value| largest.max(value.abs().into()));
            let step = (f64::from(row[kept[0]]) - mean) / (2f64.powi(bits.into()) - 1.0);
            for &at in kept {
                let off = (f64::from(row[at]) - f64::from(found[at])).abs();
                prop_assert!(off <= step / 2.0 + magnitude / 64.0, "{off} of {step}");
            }
            for &at in rest {
                prop_assert!((f64::from(found[at]) - mean).abs() <= magnitude / 128.0);
            }
        }
    }

    #[test]
    fn scores_of_forty_classes_take_eight_bytes_in_four_bits() {
        let level = Level { ratio: 1.0, bits: Bits::Uniform(4) };
        assert_eq!(Top { keep: 3, feedback: false }.bytes(&level, 1, 40), 8);
        // A row that would not be smaller travels as it is.
        assert_eq!(sent(&[-7.1], 1, 3, 4), [-7.1]);
    }
}
