//! The laws that every codec keeps, at every level.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{
    self, Bits, CodecKind, CodecRegistry, Exact, Half, Level, Memory, Message, Options, Quantised, RowSet, RowsMut,
    RowsRef, Skipping, Store,
};
use laconic_wire::{Codec, Content, Direction, Frame, FramePurpose, MessageKey, Rank, Tag, WireError, laws};
use proptest::prelude::*;

const TAG: Tag = Tag { layer: 3, round: 2, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
const KEY: MessageKey = MessageKey { seed: 1, tag: TAG, from: Rank(0), to: Rank(1), drawn: TAG.round };

/// A codec and how much of its rows it sends.
struct Case {
    codec: Box<dyn Codec>,
    ratio: f64,
    /// Bits of the rows in turn, uniform if there is one.
    widths: &'static [u8],
}

fn cases() -> Vec<Case> {
    let named = |name: &str, inner: Option<&str>| {
        let options = inner.iter().fold(Options::default(), |options, inner| options.with("inner", *inner));
        CodecRegistry::default().build(name, &options).unwrap()
    };
    let mut cases = vec![
        Case { codec: named("exact", None), ratio: 1.0, widths: &[32] },
        Case { codec: named("half", None), ratio: 1.0, widths: &[32] },
    ];
    const WIDTHS: [&[u8]; 8] = [&[1], &[2], &[4], &[8], &[16], &[32], &[8, 8, 1, 32, 4, 4, 4, 2, 16, 1], &[2, 2, 8]];
    cases.extend(WIDTHS.map(|widths| Case { codec: named("quantised", None), ratio: 1.0, widths }));
    for ratio in [1.0, 1.5, 3.0, 128.0] {
        cases.push(Case { codec: named("masked", None), ratio, widths: &[32] });
        cases.push(Case { codec: named("masked", Some("half")), ratio, widths: &[32] });
        cases.push(Case { codec: named("masked", Some("quantised")), ratio, widths: &[4] });
    }
    cases.push(Case { codec: named("masked", Some("quantised")), ratio: 2.0, widths: &[2, 2, 8] });
    cases
}

impl Case {
    fn widths(&self, rows: usize) -> Vec<u8> {
        self.widths.iter().copied().cycle().take(rows).collect()
    }

    fn level<'a>(&self, widths: &'a [u8]) -> Level<'a> {
        let bits = if self.widths.len() == 1 { Bits::Uniform(self.widths[0]) } else { Bits::Rows(widths) };
        Level { ratio: self.ratio, bits }
    }

    fn bytes(&self, rows: usize, columns: usize) -> usize {
        self.codec.bytes(&self.level(&self.widths(rows)), rows, columns)
    }

    /// Encodes behind bytes that must stay, and checks the size.
    fn encode(&mut self, rows: RowsRef<'_>) -> Vec<u8> {
        let (count, columns) = (rows.rows.len(), rows.columns);
        let widths = self.widths(count);
        let level = self.level(&widths);
        let mut bytes = b"before".to_vec();
        self.codec
            .encode(Message { key: &KEY, level: &level, memory: &mut Memory::default() }, rows, &mut bytes)
            .unwrap();
        let payload = bytes.strip_prefix(b"before").expect("encoders append").to_vec();
        assert_eq!(payload.len(), self.codec.bytes(&level, count, columns), "{} of {count} by {columns}", self);
        payload
    }

    fn decode(&mut self, payload: &[u8], into: RowsMut<'_>, store: Store) -> laconic_wire::Result<()> {
        let widths = self.widths(into.rows.len());
        let level = self.level(&widths);
        self.codec.decode(Message { key: &KEY, level: &level, memory: &mut Memory::default() }, payload, into, store)
    }

    /// The largest error of one value of a row.
    fn bound(&self, position: usize, row: &[f32], value: f32) -> f64 {
        let width = self.widths[position % self.widths.len()];
        let (min, max) = row.iter().fold((f32::MAX, f32::MIN), |(min, max), &v| (min.min(v), max.max(v)));
        let largest = f64::from(max.abs().max(min.abs()));
        // The zero point loses at most 1/128 of itself and the step grows by at most as much.
        let range = f64::from(max) - f64::from(min) + largest / 128.0;
        let step = range / ((1u64 << width) - 1) as f64 * (1.0 + 1.0 / 128.0) + largest * 2.4e-7;
        let inner = match self.codec.id().number & 0xf {
            1 => 0.0,
            2 => f64::from(value.abs()) / 256.0,
            3 if width == 32 || min == max => 0.0,
            3 => step,
            other => panic!("say which bound codec {other} keeps"),
        };
        if self.ratio > 1.0 { inner.max(value.abs().into()) } else { inner }
    }

    fn is_lossless(&self) -> bool {
        self.codec.id().number & 0xf != 2 && self.widths == [32] && self.ratio == 1.0
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} ({:#x}) at ratio {} with {:?} bits",
            self.codec.id().name,
            self.codec.id().number,
            self.ratio,
            self.widths
        )
    }
}

/// Normal numbers of very different size, zeros among them.
fn matrix(rows: usize, columns: usize) -> Vec<f32> {
    let key = Key::new(2, Purpose::Test);
    let value =
        |i: usize| key.with(i as u64).normal() * 10f64.powi(i as i32 % 31 - 15) * f64::from(!i.is_multiple_of(5));
    (0..rows * columns).map(|i| value(i) as f32).collect()
}

/// The options with which a codec is tried: none, those of its own one by one, and each other codec inside.
fn options_of(name: &str, registry: &CodecRegistry) -> Vec<Options> {
    let kind = registry.get(name).unwrap();
    let mut tried = vec![Options::default()];
    if kind.options.contains(&"rows") {
        tried.push(Options::default().with("rows", 3.0).with("inner", "quantised"));
    }
    if kind.options.contains(&"keep") {
        tried.push(Options::default().with("keep", 1.0));
    }
    if kind.options.contains(&"columns") {
        tried.push(Options::default().with("columns", "prefix").with("rescale", true));
    }
    if kind.options.contains(&"pieces") {
        tried.push(Options::default().with("pieces", 4.0));
    }
    if kind.options.contains(&"sizes") {
        tried.push(Options::default().with("share", 0.3).with("sizes", 5.0));
    }
    if kind.wraps {
        let sends_all = |inner: &&CodecKind| kind.name != "low_rank" || !inner.leaves_out;
        let plain = registry.iter().filter(|inner| !inner.wraps && !inner.remembers && sends_all(inner));
        tried.extend(plain.map(|inner| Options::default().with("inner", inner.name)));
    }
    tried
}

#[test]
fn every_codec_keeps_the_laws_whatever_is_inside() {
    let registry = CodecRegistry::default().with(&Skipping::KIND).unwrap();
    for kind in registry.iter() {
        laws::codecs::check(kind, &registry, &options_of(kind.name, &registry));
    }
}

#[test]
fn what_is_left_over_for_the_next_message_stays_bounded_at_every_width() {
    let registry = CodecRegistry::default();
    for kind in registry.iter().filter(|kind| !kind.wraps && !kind.remembers && !kind.leaves_out) {
        for bits in [1, 2, 4, 8, 16, 32] {
            laws::codecs::check_feedback(kind, &registry, &Options::default(), bits);
        }
    }
}

#[test]
fn a_name_that_nobody_has_is_refused_with_all_that_there_are() {
    let registry = CodecRegistry::default();
    let error = registry.build("zip", &Options::default()).err().unwrap().to_string();
    let known = registry.names().collect::<Vec<_>>().join(", ");
    assert_eq!(error, format!("no codec is named \"zip\"; there are: {known}"));
}

#[test]
fn what_is_decoded_is_within_the_bound_for_every_shape() {
    for mut case in cases() {
        for columns in [0, 1, 2, 3, 17, 31, 100, 256, 1030] {
            let data = matrix(40, columns);
            let indices = [3, 39, 3, 0, 7, 7]; // repeats are allowed when encoding
            for rows in [
                RowSet::Range(0..40),
                RowSet::Range(5..5),
                RowSet::Range(39..40),
                RowSet::Indices(&indices),
                RowSet::Indices(&[]),
            ] {
                let count = rows.len();
                let sent = RowsRef { data: &data, columns, rows };
                let payload = case.encode(sent.clone());
                let mut back = vec![f32::NAN; count * columns];
                let into = RowsMut { data: &mut back, columns, rows: RowSet::Range(0..count) };
                case.decode(&payload, into, Store::Set).unwrap();
                for position in 0..count {
                    let (row, decoded) = (sent.row(position), &back[position * columns..][..columns]);
                    for (&sent, &decoded) in row.iter().zip(decoded) {
                        let error = (f64::from(sent) - f64::from(decoded)).abs();
                        let bound = case.bound(position, row, sent);
                        assert!(error <= bound, "{case}: {sent:e} became {decoded:e}, bound {bound:e}");
                    }
                }
            }
        }
    }
}

#[test]
fn zeros_and_small_integers_survive_with_their_signs_where_nothing_is_rounded() {
    let data = [0.0, -0.0, 1.0, -1.0, 128.0, -255.0];
    for mut case in cases().into_iter().filter(|case| case.is_lossless() || case.codec.id().name == "half") {
        let payload = case.encode(RowsRef { data: &data, columns: 3, rows: RowSet::Range(0..2) });
        let mut back = [f32::NAN; 6];
        let into = RowsMut { data: &mut back, columns: 3, rows: RowSet::Range(0..2) };
        case.decode(&payload, into, Store::Set).unwrap();
        assert_eq!(back.map(f32::to_bits), data.map(f32::to_bits), "{case}");
    }
}

#[test]
fn a_frame_says_which_codec_wrote_it() {
    let mut frame = Frame::new(TAG, Vec::new());
    let rows = RowsRef { data: &[1.0], columns: 1, rows: RowSet::Range(0..1) };
    codec::write(
        &mut Half,
        Message { key: &KEY, level: &Level::WHOLE, memory: &mut Memory::default() },
        rows,
        &mut frame,
    )
    .unwrap();
    let mut back = [0.0];
    let into = RowsMut { data: &mut back, columns: 1, rows: RowSet::Range(0..1) };
    let error = codec::read(
        &mut Exact,
        Message { key: &KEY, level: &Level::WHOLE, memory: &mut Memory::default() },
        &frame,
        into,
        Store::Set,
    )
    .unwrap_err();
    assert_eq!(error, WireError::OtherCodec { expected: 1, name: "exact", found: 2 });
    let into = RowsMut { data: &mut back, columns: 1, rows: RowSet::Range(0..1) };
    codec::read(
        &mut Half,
        Message { key: &KEY, level: &Level::WHOLE, memory: &mut Memory::default() },
        &frame,
        into,
        Store::Set,
    )
    .unwrap();
    assert_eq!(back, [1.0]);
}

#[test]
fn streams_of_different_messages_differ_and_shared_ones_do_only_by_layer_round_and_evaluation() {
    let with = |tag: Tag| MessageKey { tag, drawn: tag.round, ..KEY };
    let (alone, shared) = (
        [
            with(Tag { direction: Direction::Reverse, ..TAG }),
            with(Tag { content: Content::Features, ..TAG }),
            with(TAG.later(1)),
            MessageKey { from: Rank(1), to: Rank(0), ..KEY },
        ],
        [
            KEY,
            MessageKey { seed: 2, ..KEY },
            with(Tag { round: 3, ..TAG }),
            with(Tag { layer: 4, ..TAG }),
            with(Tag { purpose: FramePurpose::Evaluation, ..TAG }),
        ],
    );
    let streams = alone.iter().chain(&shared).map(|key| key.stream(Purpose::Rounding).bits());
    assert_eq!(streams.collect::<std::collections::BTreeSet<u64>>().len(), alone.len() + shared.len());
    let streams = alone.iter().chain(&shared).map(|key| key.shared_stream(Purpose::Mask).bits());
    assert_eq!(streams.collect::<std::collections::BTreeSet<u64>>().len(), shared.len());
}

#[test]
#[should_panic(expected = "not 3")]
fn widths_that_do_not_fill_words_are_a_defect_of_the_program() {
    Quantised::default().bytes(&Level { ratio: 1.0, bits: Bits::Uniform(3) }, 1, 1);
}

proptest! {
    #[test]
    fn decode_never_panics_and_accepts_only_the_right_size(
        random in prop::collection::vec(any::<u8>(), 0..300),
        sized: bool,
        shape in (0usize..8, 0usize..20),
        by_index: bool,
        add: bool,
    ) {
        let (rows, columns) = shape;
        let indices: Vec<u32> = (0..rows as u32).rev().collect();
        for mut case in cases() {
            let mut payload = random.clone();
            if sized {
                payload.resize(case.bytes(rows, columns), 0xff);
            }
            let mut data = vec![0.0; rows * columns];
            let rows_set = if by_index { RowSet::Indices(&indices) } else { RowSet::Range(0..rows) };
            let store = if add { Store::Add } else { Store::Set };
            let decoded = case.decode(&payload, RowsMut { data: &mut data, columns, rows: rows_set }, store);
            prop_assert_eq!(decoded.is_ok(), payload.len() == case.bytes(rows, columns));
        }
    }
}
