//! The laws that every codec keeps.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{self, REGISTRY, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Codec, Direction, Frame, Kind, MessageKey, Rank, Tag, WireError};
use proptest::prelude::*;

const KEY: MessageKey =
    MessageKey { seed: 1, round: 2, layer: 3, direction: Direction::Forward, from: Rank(0), to: Rank(1) };

/// The largest relative error of a codec on normal numbers.
fn bound(name: &str) -> f32 {
    match name {
        "exact" => 0.0,
        "half" => 1.0 / 256.0,
        other => panic!("say which bound {other} keeps"),
    }
}

fn codecs() -> impl Iterator<Item = Box<dyn Codec>> {
    REGISTRY.iter().map(|(_, make)| make())
}

/// Normal numbers of very different size, zeros among them.
fn matrix(rows: usize, columns: usize) -> Vec<f32> {
    let key = Key::new(2, Purpose::Test);
    let value =
        |i: usize| key.with(i as u64).normal() * 10f64.powi(i as i32 % 31 - 15) * f64::from(!i.is_multiple_of(5));
    (0..rows * columns).map(|i| value(i) as f32).collect()
}

fn encode(codec: &dyn Codec, rows: RowsRef<'_>) -> Vec<u8> {
    let (count, columns) = (rows.rows.len(), rows.columns);
    let mut bytes = b"before".to_vec();
    codec.encode(&KEY, rows, &mut bytes).unwrap();
    let payload = bytes.strip_prefix(b"before").expect("encoders append").to_vec();
    assert!(payload.len() <= codec.bytes(count, columns), "{} of {count} by {columns}", codec.name());
    if codec.is_shape_determined() {
        assert_eq!(payload.len(), codec.bytes(count, columns), "{} of {count} by {columns}", codec.name());
    }
    payload
}

#[test]
fn names_and_ids_are_unique_and_lead_to_the_codec() {
    for &(name, make) in REGISTRY {
        assert_eq!((make().name(), codec::named(name).unwrap().id()), (name, make().id()));
        assert_ne!(make().id(), laconic_wire::NO_CODEC);
    }
    let ids: std::collections::BTreeSet<u8> = codecs().map(|codec| codec.id()).collect();
    assert_eq!(ids.len(), REGISTRY.len());
    let error = codec::named("zip").err().unwrap().to_string();
    assert_eq!(error, "no codec is named \"zip\"; there are: exact, half");
}

#[test]
fn what_is_decoded_is_within_the_bound_for_every_shape() {
    for codec in codecs() {
        for columns in [0, 1, 2, 3, 17, 256, 3000] {
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
                let payload = encode(&*codec, sent.clone());
                let mut back = vec![f32::NAN; count * columns];
                let into = RowsMut { data: &mut back, columns, rows: RowSet::Range(0..count) };
                codec.decode(&KEY, &payload, into, Store::Set).unwrap();
                for position in 0..count {
                    let decoded = &back[position * columns..][..columns];
                    for (&sent, &decoded) in sent.row(position).iter().zip(decoded) {
                        assert!(
                            (sent - decoded).abs() <= sent.abs() * bound(codec.name()),
                            "{sent:e} became {decoded:e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn zeros_and_small_integers_survive_with_their_signs() {
    let data = [0.0, -0.0, 1.0, -1.0, 128.0, -255.0];
    for codec in codecs() {
        let payload = encode(&*codec, RowsRef { data: &data, columns: 3, rows: RowSet::Range(0..2) });
        let mut back = [f32::NAN; 6];
        let into = RowsMut { data: &mut back, columns: 3, rows: RowSet::Range(0..2) };
        codec.decode(&KEY, &payload, into, Store::Set).unwrap();
        assert_eq!(back.map(f32::to_bits), data.map(f32::to_bits), "{}", codec.name());
    }
}

#[test]
fn set_replaces_and_add_adds_only_in_the_rows_named() {
    let data = [1.0, 2.0, 3.0, 4.0];
    for codec in codecs() {
        let payload = encode(&*codec, RowsRef { data: &data, columns: 2, rows: RowSet::Range(0..2) });
        let decode = |rows, store| {
            let mut back = [10.0; 8];
            codec.decode(&KEY, &payload, RowsMut { data: &mut back, columns: 2, rows }, store).unwrap();
            back
        };
        assert_eq!(decode(RowSet::Indices(&[3, 1]), Store::Set), [10.0, 10.0, 3.0, 4.0, 10.0, 10.0, 1.0, 2.0]);
        assert_eq!(decode(RowSet::Indices(&[3, 1]), Store::Add), [10.0, 10.0, 13.0, 14.0, 10.0, 10.0, 11.0, 12.0]);
        assert_eq!(decode(RowSet::Range(1..3), Store::Set), [10.0, 10.0, 1.0, 2.0, 3.0, 4.0, 10.0, 10.0]);
        assert_eq!(decode(RowSet::Range(1..3), Store::Add), [10.0, 10.0, 11.0, 12.0, 13.0, 14.0, 10.0, 10.0]);
        assert_eq!(decode(RowSet::Indices(&[0, 0]), Store::Add)[..2], [14.0, 16.0]);
    }
}

#[test]
fn values_that_are_not_finite_are_refused_by_row_and_column() {
    for codec in codecs() {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut data = matrix(9, 300);
            data[7 * 300 + 299] = bad;
            let mut bytes = b"before".to_vec();
            for rows in [RowSet::Range(2..9), RowSet::Indices(&[1, 7, 2])] {
                match codec.encode(&KEY, RowsRef { data: &data, columns: 300, rows }, &mut bytes) {
                    Err(WireError::NotFinite { row: 7, column: 299, codec: name, .. }) => {
                        assert_eq!(name, codec.name())
                    }
                    other => panic!("{other:?}"),
                }
                assert_eq!(bytes, b"before");
            }
            // Rows that do not travel are nobody's business.
            codec.encode(&KEY, RowsRef { data: &data, columns: 300, rows: RowSet::Range(0..7) }, &mut bytes).unwrap();
        }
        let extremes = [f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(1)];
        encode(&*codec, RowsRef { data: &extremes, columns: 4, rows: RowSet::Range(0..1) });
    }
}

#[test]
fn a_frame_says_which_codec_wrote_it() {
    let tag = Tag { kind: Kind::Features, direction: Direction::Forward, layer: 0, round: 0, step: 0 };
    let mut frame = Frame::new(tag, Vec::new());
    let rows = RowsRef { data: &[1.0], columns: 1, rows: RowSet::Range(0..1) };
    codec::write(&codec::Half, &KEY, rows, &mut frame).unwrap();
    let mut back = [0.0];
    let into = RowsMut { data: &mut back, columns: 1, rows: RowSet::Range(0..1) };
    let error = codec::read(&codec::Exact, &KEY, &frame, into, Store::Set).unwrap_err();
    assert_eq!(error, WireError::OtherCodec { expected: 1, name: "exact", found: 2 });
    let into = RowsMut { data: &mut back, columns: 1, rows: RowSet::Range(0..1) };
    codec::read(&codec::Half, &KEY, &frame, into, Store::Set).unwrap();
    assert_eq!(back, [1.0]);
}

#[test]
fn streams_of_different_messages_differ() {
    let keys = [
        KEY,
        MessageKey { seed: 2, ..KEY },
        MessageKey { round: 3, ..KEY },
        MessageKey { layer: 4, ..KEY },
        MessageKey { direction: Direction::Reverse, ..KEY },
        MessageKey { from: Rank(1), to: Rank(0), ..KEY },
    ];
    let bits: std::collections::BTreeSet<u64> = keys.iter().map(|key| key.stream(Purpose::Rounding).bits()).collect();
    assert_eq!(bits.len(), keys.len());
}

proptest! {
    #[test]
    fn decode_never_panics_and_accepts_only_the_right_size(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        rows in 0usize..8,
        columns in 0usize..8,
        by_index: bool,
        add: bool,
    ) {
        let indices: Vec<u32> = (0..rows as u32).rev().collect();
        for codec in codecs() {
            let mut data = vec![0.0; rows * columns];
            let rows_set = if by_index { RowSet::Indices(&indices) } else { RowSet::Range(0..rows) };
            let store = if add { Store::Add } else { Store::Set };
            let decoded = codec.decode(&KEY, &payload, RowsMut { data: &mut data, columns, rows: rows_set }, store);
            if codec.is_shape_determined() {
                prop_assert_eq!(decoded.is_ok(), payload.len() == codec.bytes(rows, columns));
            }
        }
    }
}
