//! What a codec owes to everybody who calls it, as far as it follows from its [`CodecKind`].
//!
//! How near what arrives is to what was sent, and whether its mean is, is the codec's own promise and stays in its own
//! tests; here nothing is known of a codec but what its kind says.

use crate::codec::{self, Bits, CodecKind, CodecRegistry, Half, Level, Memory, Message, Options};
use crate::codec::{RowSet, RowsMut, RowsRef, Store};
use crate::{Codec, Content, FramePurpose, MessageKey, NO_CODEC, Rank, Result, Tag, WireError};
use laconic_key::{Key, Purpose};

const TAG: Tag = Tag { layer: 3, round: 2, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
const KEY: MessageKey = MessageKey { seed: 1, tag: TAG, from: Rank(0), to: Rank(1), drawn: TAG.round };

/// Ratios, and bits of the rows in turn, uniform if there is one.
const LEVELS: [(f64, &[u8]); 13] = [
    (1.0, &[32]),
    (1.0, &[1]),
    (1.0, &[2]),
    (1.0, &[4]),
    (1.0, &[8]),
    (1.0, &[16]),
    (1.0, &[8, 8, 1, 32, 4, 4, 4, 2, 16, 1]),
    (1.5, &[32]),
    (3.0, &[32]),
    (3.0, &[4]),
    (128.0, &[32]),
    (128.0, &[1]),
    (2.0, &[2, 2, 8]),
];

/// Holds a codec to its laws, once for each of these options; `registry` holds the codecs that may be inside.
///
/// - What it writes has the bytes that it says, behind what was there, and names itself in frames.
/// - More bits, more columns or a smaller ratio never take fewer bytes.
/// - The same message has the same bytes, whatever the codec wrote before and however its rows lie in memory.
/// - A state stands before the first message of a stream alone, and is remembered.
/// - A value that is not finite is refused by its row and column, and the payload is as before.
/// - A payload of another size is an error, and no payload makes it panic.
/// - Decoding sets or adds, only in the rows named, and one is the other's sum.
/// - What its kind says is true: what it reads of a level, whether it draws, mixes, remembers, varies, prepares or
///   loses anything.
/// - One that says that it is `half` has the payloads of rows that are stored as bfloat16.
///
/// # Panics
///
/// Where a law is broken, with the codec, the options and the level in the message.
pub fn check(kind: &'static CodecKind, registry: &CodecRegistry, options: &[Options]) {
    assert!(registry.iter().any(|known| known.name == kind.name), "{} is not in the registry", kind.name);
    for options in options {
        let described = registry.describe(kind.name, options).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let build = || (kind.build)(options, registry).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let id = build().id();
        assert_ne!(id.number, NO_CODEC, "{} with {options:?}: frames must say who wrote them", kind.name);
        assert!(kind.wraps || id == kind.id(), "{} calls itself {id:?}", kind.name);
        let prepares = (0..300).any(|columns| build().state_bytes(columns) > 0);
        assert_eq!(described.prepares, prepares, "{}: whether it prepares a state", kind.name);
        assert!(described.remembers || !prepares, "{}: a state is remembered", kind.name);
        finer_levels_never_take_fewer_bytes(build().as_ref(), kind.name);
        for (ratio, widths) in LEVELS {
            let case = Case { kind: described, options, build: &build, ratio, widths };
            case.payloads_have_their_size_and_do_not_depend_on_what_was_before();
            case.rows_are_set_or_added_where_they_are_named();
            case.wrong_sizes_are_errors_and_nothing_panics();
            if ratio == 1.0 {
                case.what_is_not_finite_is_refused_by_its_place();
            }
            if described.lossless {
                case.every_bit_arrives();
            }
            if !described.draws && !described.mixes && !described.remembers {
                case.rows_arrive_as_if_each_were_alone();
            }
            case.what_the_kind_does_not_read_changes_nothing();
            if described.prepares {
                case.a_state_stands_before_the_first_message_alone();
            }
            if build().is_half() {
                case.stored_halves_travel_as_they_are();
            }
        }
    }
}

fn finer_levels_never_take_fewer_bytes(codec: &dyn Codec, name: &str) {
    let bytes = |ratio, bits, columns| codec.bytes(&Level { ratio, bits: Bits::Uniform(bits) }, 3, columns);
    for columns in 0..70 {
        let ratios = [128.0, 16.0, 5.0, 3.0, 2.0, 1.5, 1.0];
        for (ratio, finer) in ratios.into_iter().zip(ratios.into_iter().skip(1).chain([1.0])) {
            let widths = [1, 2, 4, 8, 16, 32];
            for (bits, wider) in widths.into_iter().zip(widths.into_iter().skip(1).chain([32])) {
                let of = bytes(ratio, bits, columns);
                let least = bytes(finer, bits, columns).min(bytes(ratio, wider, columns));
                let least = least.min(bytes(ratio, bits, columns + 1));
                assert!(of <= least, "{name}: {columns} columns at ratio {ratio} in {bits} bits: {of} above {least}");
            }
        }
    }
}

/// The values of rows by round and column.
type Values<'a> = dyn Fn(usize, usize) -> f64 + 'a;

/// Rounds that error feedback is tried for.
const FED_BACK: usize = 1000;

/// Holds a codec to what error feedback needs of it, at this many bits: what is left over of the rows of many rounds,
/// with what was left over before, stays bounded, whether rows are even, mostly zeros or far from zero. At ratio 1.
///
/// # Panics
///
/// Where it grows, with the codec, the bits and the rows in the message.
pub fn check_feedback(kind: &'static CodecKind, registry: &CodecRegistry, options: &Options, bits: u8) {
    let key = Key::new(4, Purpose::Test);
    let normal = |round: usize, i: usize| key.with(round as u64).with(i as u64).normal();
    // A slope that lasts and noise; a large value of either sign somewhere among small ones; one huge value; an offset.
    let slope = |round: usize, i: usize| 0.01 * (i % 7) as f64 + 0.1 * normal(round, i);
    let outliers = |round: usize, i: usize| match (i + 255 - round % 256) % 256 {
        0 => 1.0,
        1 => -1.0,
        _ => 1e-3 * normal(round, i),
    };
    let huge = |round: usize, i: usize| normal(round, i) + if i == 7 { 1e3 } else { 0.0 };
    let offset = |round: usize, i: usize| 50.0 + normal(round, i);
    let rows: [(&str, &Values<'_>); 4] =
        [("a slope", &slope), ("outliers", &outliers), ("one huge value", &huge), ("an offset", &offset)];
    for (name, value) in rows {
        for columns in [1, 5, 256] {
            let mut codec = (kind.build)(options, registry).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
            codec.expect_feedback();
            let norms = left_over(codec.as_mut(), bits, columns, value);
            let largest = |norms: &[f64]| norms.iter().copied().fold(0.0, f64::max);
            let (early, late) = (largest(&norms[..FED_BACK / 4]), largest(&norms[3 * FED_BACK / 4..]));
            let what = format!("{}, {bits} bits, {columns} columns of {name}", kind.name);
            assert!(late <= 2.0 * early, "{what}: {early:e} is left over at first, {late:e} later");
        }
    }
}

/// The norm of what is left over after each round.
fn left_over(codec: &mut dyn Codec, bits: u8, columns: usize, value: &Values<'_>) -> Vec<f64> {
    let (level, mut residual) = (Level { ratio: 1.0, bits: Bits::Uniform(bits) }, vec![0.0; columns]);
    let [mut sender, mut receiver] = [Memory::default(), Memory::default()];
    let mut round_of = |round: usize| {
        let key = MessageKey { tag: Tag { round: round as u32, ..TAG }, ..KEY };
        let row: Vec<f32> = residual.iter().enumerate().map(|(i, left)| value(round, i) as f32 + left).collect();
        let mut payload = Vec::new();
        let source = RowsRef { data: &row, columns, rows: RowSet::Range(0..1) };
        let message = Message { key: &key, level: &level, memory: &mut sender };
        let coded = codec::append(codec, message, source, &mut payload);
        coded.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let into = RowsMut { data: &mut residual, columns, rows: RowSet::Range(0..1) };
        let message = Message { key: &key, level: &level, memory: &mut receiver };
        let read = codec::take(codec, message, &payload, into, Store::Set);
        read.unwrap_or_else(|error| panic!("round {round}: {error}"));
        residual.iter_mut().zip(&row).for_each(|(left, value)| *left = value - *left);
        residual.iter().map(|left| f64::from(*left).powi(2)).sum::<f64>().sqrt()
    };
    (0..FED_BACK).map(&mut round_of).collect()
}

/// A codec, its options and the level at which it is tried.
struct Case<'a> {
    /// With what is inside.
    kind: CodecKind,
    options: &'a Options,
    build: &'a dyn Fn() -> Box<dyn Codec>,
    ratio: f64,
    widths: &'static [u8],
}

impl std::fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { kind, options, ratio, widths, .. } = self;
        write!(f, "{} with {options:?} at ratio {ratio} with {widths:?} bits", kind.name)
    }
}

/// Numbers of very different size, zeros among them.
fn matrix(rows: usize, columns: usize) -> Vec<f32> {
    let key = Key::new(2, Purpose::Test);
    let size = |i: usize| 10f64.powi(i as i32 % 31 - 15) * f64::from(!i.is_multiple_of(5));
    (0..rows * columns).map(|i| (key.with(i as u64).normal() * size(i)) as f32).collect()
}

fn rows(data: &[f32], columns: usize, rows: RowSet<'_>) -> (usize, Vec<f32>) {
    let all = RowsRef { data, columns, rows };
    (all.rows.len(), (0..all.rows.len()).flat_map(|position| all.row(position)).copied().collect())
}

impl Case<'_> {
    fn bits(&self, rows: usize) -> Vec<u8> {
        self.widths.iter().copied().cycle().take(rows).collect()
    }

    fn level<'a>(&self, bits: &'a [u8]) -> Level<'a> {
        let bits = if self.widths.len() == 1 { Bits::Uniform(self.widths[0]) } else { Bits::Rows(bits) };
        Level { ratio: self.ratio, bits }
    }

    fn bytes(&self, codec: &dyn Codec, rows: usize, columns: usize) -> usize {
        codec.state_bytes(columns) + codec.bytes(&self.level(&self.bits(rows)), rows, columns)
    }

    /// Appends a message that has none before it.
    fn try_encode(&self, codec: &mut dyn Codec, key: &MessageKey, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let (bits, mut memory) = (self.bits(rows.rows.len()), Memory::default());
        let message = Message { key, level: &self.level(&bits), memory: &mut memory };
        let encoded = codec::append(codec, message, rows, into);
        assert!(self.kind.remembers || memory.is_empty(), "{self}: remembers something");
        encoded
    }

    /// The payload of a message that has none before it.
    fn encode(&self, codec: &mut dyn Codec, key: &MessageKey, rows: RowsRef<'_>) -> Vec<u8> {
        let mut bytes = b"before".to_vec();
        self.try_encode(codec, key, rows, &mut bytes).unwrap_or_else(|error| panic!("{self}: {error}"));
        bytes.strip_prefix(b"before").unwrap_or_else(|| panic!("{self}: encoders append")).to_vec()
    }

    fn decode(&self, codec: &mut dyn Codec, payload: &[u8], into: RowsMut<'_>, store: Store) -> Result<()> {
        let (bits, mut memory) = (self.bits(into.rows.len()), Memory::default());
        let message = Message { key: &KEY, level: &self.level(&bits), memory: &mut memory };
        let decoded = codec::take(codec, message, payload, into, store);
        assert!(self.kind.remembers || memory.is_empty(), "{self}: remembers something");
        decoded
    }

    /// What arrives of a message, into a matrix of its own.
    fn arrived(&self, codec: &mut dyn Codec, payload: &[u8], count: usize, columns: usize) -> Vec<f32> {
        let mut back = vec![f32::NAN; count * columns];
        let into = RowsMut { data: &mut back, columns, rows: RowSet::Range(0..count) };
        self.decode(codec, payload, into, Store::Set).unwrap_or_else(|error| panic!("{self}: {error}"));
        back
    }

    fn payloads_have_their_size_and_do_not_depend_on_what_was_before(&self) {
        let (mut codec, mut other) = ((self.build)(), (self.build)());
        for columns in [0, 1, 2, 3, 17, 31, 100, 256, 1030] {
            let data = matrix(40, columns);
            let indices = [3, 39, 3, 0, 7, 7]; // repeats are allowed when encoding
            for set in [
                RowSet::Range(0..7),
                RowSet::Range(5..5),
                RowSet::Range(39..40),
                RowSet::Indices(&indices),
                RowSet::Indices(&[]),
            ] {
                let (count, gathered) = rows(&data, columns, set.clone());
                let payload = self.encode(&mut *codec, &KEY, RowsRef { data: &data, columns, rows: set });
                let (bytes, found) = (self.bytes(&*codec, count, columns), payload.len());
                let fits = if self.kind.varies { found <= bytes } else { found == bytes };
                assert!(fits, "{self}: {found} bytes of {count} rows by {columns} columns, which take {bytes}");
                let again = RowsRef { data: &gathered, columns, rows: RowSet::Range(0..count) };
                assert_eq!(self.encode(&mut *other, &KEY, again.clone()), payload, "{self}: the same message");
                if !self.kind.draws {
                    let another = MessageKey { seed: 8, tag: Tag { round: 9, ..TAG }, drawn: 9, from: Rank(4), ..KEY };
                    assert_eq!(self.encode(&mut *other, &another, again), payload, "{self}: depends on chance");
                }
                let one = self.arrived(&mut *codec, &payload, count, columns);
                let two = self.arrived(&mut *other, &payload, count, columns);
                assert!(one.iter().all(|value| value.is_finite()), "{self}: {count} rows by {columns} columns");
                assert!(one.iter().map(|v| v.to_bits()).eq(two.iter().map(|v| v.to_bits())), "{self}: the same bytes");
            }
        }
    }

    fn rows_are_set_or_added_where_they_are_named(&self) {
        let (mut codec, columns) = ((self.build)(), 5);
        let data: Vec<f32> = (0..2 * columns).map(|i| i as f32 * 0.75 - 2.0).collect();
        let source = RowsRef { data: &data, columns, rows: RowSet::Range(0..2) };
        let payload = self.encode(&mut *codec, &KEY, source);
        let arrived = self.arrived(&mut *codec, &payload, 2, columns);
        for set in [RowSet::Indices(&[3, 1]), RowSet::Range(1..3), RowSet::Indices(&[0, 0])] {
            for store in [Store::Set, Store::Add] {
                let mut back = vec![10.0; 4 * columns];
                let mut expected = back.clone();
                for (position, values) in arrived.chunks_exact(columns).enumerate() {
                    let row = &mut expected[set.at(position) * columns..][..columns];
                    for (there, &value) in row.iter_mut().zip(values) {
                        *there = if store == Store::Set { value } else { *there + value };
                    }
                }
                let into = RowsMut { data: &mut back, columns, rows: set.clone() };
                self.decode(&mut *codec, &payload, into, store).unwrap_or_else(|error| panic!("{self}: {error}"));
                // What it means to set a row twice is nobody's business.
                if store == Store::Add || set != RowSet::Indices(&[0, 0]) {
                    assert_eq!(back, expected, "{self}: {store:?} in {set:?}");
                }
            }
        }
    }

    fn wrong_sizes_are_errors_and_nothing_panics(&self) {
        let mut codec = (self.build)();
        let noise = Key::new(3, Purpose::Test);
        for (count, columns) in [(0, 3), (1, 1), (2, 7), (5, 20)] {
            let bytes = self.bytes(&*codec, count, columns);
            for len in (0..=bytes + 9).filter(|len| *len < 9 || len.abs_diff(bytes) < 9) {
                for fill in 0..3u64 {
                    let byte = |i: usize| if fill < 2 { fill as u8 * 0xff } else { noise.with(i as u64).bits() as u8 };
                    let payload: Vec<u8> = (0..len).map(byte).collect();
                    let mut data = vec![0.0; count * columns];
                    let into = RowsMut { data: &mut data, columns, rows: RowSet::Range(0..count) };
                    let decoded = self.decode(&mut *codec, &payload, into, Store::Add);
                    // Content of the right size may make sense or not.
                    let refused = len == bytes || decoded.is_err();
                    assert!(self.kind.varies || refused, "{self}: {len} bytes instead of {bytes} are read");
                }
            }
        }
    }

    fn a_state_stands_before_the_first_message_alone(&self) {
        let (mut sender, mut receiver) = ((self.build)(), (self.build)());
        let [mut sent, mut received] = [Memory::default(), Memory::default()];
        let (data, columns) = (matrix(7, 31), 31);
        for first in [true, false] {
            let (bits, mut payload, mut back) = (self.bits(7), b"before".to_vec(), vec![f32::NAN; 7 * columns]);
            let level = self.level(&bits);
            let rows = RowsRef { data: &data, columns, rows: RowSet::Range(0..7) };
            let message = Message { key: &KEY, level: &level, memory: &mut sent };
            codec::append(&mut *sender, message, rows, &mut payload).unwrap_or_else(|e| panic!("{self}: {e}"));
            let state = if first { sender.state_bytes(columns) } else { 0 };
            let (found, most) = (payload.len() - b"before".len(), state + sender.bytes(&level, 7, columns));
            assert!(found == most || (self.kind.varies && found < most), "{self}: {found} bytes for {most}, {first}");
            let into = RowsMut { data: &mut back, columns, rows: RowSet::Range(0..7) };
            let message = Message { key: &KEY, level: &level, memory: &mut received };
            let payload = &payload[b"before".len()..];
            codec::take(&mut *receiver, message, payload, into, Store::Set).unwrap_or_else(|e| panic!("{self}: {e}"));
            assert!(back.iter().all(|value| value.is_finite()), "{self}");
            assert!(!sent.is_empty() && !received.is_empty(), "{self}: a state leaves something in memory");
        }
    }

    fn what_is_not_finite_is_refused_by_its_place(&self) {
        let mut codec = (self.build)();
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut data = matrix(9, 300);
            data[7 * 300 + 299] = bad;
            for set in [RowSet::Range(2..9), RowSet::Indices(&[1, 7, 2])] {
                let mut bytes = b"before".to_vec();
                let source = RowsRef { data: &data, columns: 300, rows: set };
                match self.try_encode(&mut *codec, &KEY, source, &mut bytes) {
                    Err(WireError::NotFinite { row: 7, column: 299, codec: name, .. }) => {
                        assert_eq!(name, codec.id().name)
                    }
                    other => panic!("{self}: row 7, column 299 is {bad}: {other:?}"),
                }
                assert_eq!(bytes, b"before", "{self}");
            }
            // Rows that do not travel are nobody's business.
            self.encode(&mut *codec, &KEY, RowsRef { data: &data, columns: 300, rows: RowSet::Range(0..7) });
        }
        let extremes = [f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(1)];
        self.encode(&mut *codec, &KEY, RowsRef { data: &extremes, columns: 4, rows: RowSet::Range(0..1) });
    }

    fn every_bit_arrives(&self) {
        let mut codec = (self.build)();
        let mut data = matrix(6, 8);
        data.extend([0.0, -0.0, 1.0, -1.0, f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(0x8000_0001)]);
        let payload = self.encode(&mut *codec, &KEY, RowsRef { data: &data, columns: 8, rows: RowSet::Range(0..7) });
        let back = self.arrived(&mut *codec, &payload, 7, 8);
        assert!(back.iter().map(|v| v.to_bits()).eq(data.iter().map(|v| v.to_bits())), "{self}: loses something");
    }

    fn rows_arrive_as_if_each_were_alone(&self) {
        if self.widths.len() > 1 {
            // Then a row's place says its bits.
            return;
        }
        let (mut codec, data) = ((self.build)(), matrix(40, 9));
        let rows = |rows| RowsRef { data: &data, columns: 9, rows: RowSet::Range(rows) };
        let payload = self.encode(&mut *codec, &KEY, rows(0..40));
        let together = self.arrived(&mut *codec, &payload, 40, 9);
        for (row, together) in together.chunks(9).enumerate() {
            let payload = self.encode(&mut *codec, &KEY, rows(row..row + 1));
            let alone = self.arrived(&mut *codec, &payload, 1, 9);
            let same = alone.iter().map(|v| v.to_bits()).eq(together.iter().map(|v| v.to_bits()));
            assert!(same, "{self}: row {row} depends on those beside it, and its kind mixes nothing");
        }
    }

    fn stored_halves_travel_as_they_are(&self) {
        let mut codec = (self.build)();
        let stored: Vec<u16> = matrix(7, 9).iter().map(|value| (value.to_bits() >> 16) as u16).collect();
        let widened: Vec<f32> = stored.iter().map(|&bits| f32::from_bits(u32::from(bits) << 16)).collect();
        for rows in [RowSet::Range(2..6), RowSet::Indices(&[6, 0, 3, 0])] {
            let plain = self.encode(&mut *codec, &KEY, RowsRef { data: &widened, columns: 9, rows: rows.clone() });
            let mut payload = b"before".to_vec();
            let source = RowsRef { data: &stored, columns: 9, rows: rows.clone() };
            Half::append_stored(&source, &mut payload, |bits| bits).unwrap_or_else(|error| panic!("{self}: {error}"));
            assert_eq!(payload.strip_prefix(b"before"), Some(&plain[..]), "{self}");
            let mut arrived = vec![0; 36];
            let into = RowsMut { data: &mut arrived, columns: 9, rows: RowSet::Range(0..4) };
            Half::read_stored(&plain, into, |target, came| *target = came).unwrap_or_else(|e| panic!("{self}: {e}"));
            assert!((0..4).all(|position| arrived[9 * position..][..9] == *source.row(position)), "{self}");
            let into = RowsMut { data: &mut arrived, columns: 9, rows: RowSet::Range(0..4) };
            let short = Half::read_stored(&plain[..35], into, |target, came| *target = came);
            assert!(matches!(short, Err(WireError::PayloadSize { .. })), "{self}: {short:?}");
        }
        for bits in [0x7f80, 0xff80, 0x7fc1] {
            let (data, mut payload) = ([0, 0x3f80, 0, bits], vec![7]);
            let refused = Half::append_stored(
                &RowsRef { data: &data, columns: 2, rows: RowSet::Range(0..2) },
                &mut payload,
                |bits| bits,
            );
            assert!(matches!(refused, Err(WireError::NotFinite { row: 1, column: 1, .. })), "{self}: {refused:?}");
            assert_eq!(payload, [7], "{self}");
        }
    }

    fn what_the_kind_does_not_read_changes_nothing(&self) {
        let (mut codec, data) = ((self.build)(), matrix(5, 33));
        let source = || RowsRef { data: &data, columns: 33, rows: RowSet::Range(0..5) };
        let reads = self.kind.reads;
        let other = Case {
            ratio: if reads.ratio { self.ratio } else { self.ratio + 1.0 },
            widths: if reads.bits { self.widths } else { &[2] },
            ..*self
        };
        let (payload, changed) = (self.encode(&mut *codec, &KEY, source()), other.encode(&mut *codec, &KEY, source()));
        assert_eq!(payload, changed, "{self}: reads more of a level than {reads:?}");
    }
}
