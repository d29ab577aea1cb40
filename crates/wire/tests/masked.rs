//! The laws of the column mask: what it loses, that both ends agree on it, and that it is its own adjoint.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{Bits, CodecRegistry, Level, Masked, Memory, Message, Options, columns, travelling};
use laconic_wire::codec::{RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Codec, Content, Direction, FramePurpose, MessageKey, Rank, Tag, WireError};

const TAG: Tag = Tag { layer: 1, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };

fn key(round: u32) -> MessageKey {
    MessageKey { seed: 5, tag: Tag { round, ..TAG }, from: Rank(0), to: Rank(1), drawn: round }
}

fn ratio(ratio: f64) -> Level<'static> {
    Level { ratio, bits: Bits::Uniform(8) }
}

fn masked(inner: &str, prefix: bool, rescale: bool) -> Box<dyn Codec> {
    let columns = if prefix { "prefix" } else { "random" };
    let options = Options::default().with("inner", inner).with("columns", columns).with("rescale", rescale);
    CodecRegistry::default().build("masked", &options).unwrap()
}

fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let key = Key::new(seed, Purpose::Test);
    (0..len).map(|i| key.with(i as u64).normal() as f32).collect()
}

/// Sends all rows from one instance to another, onto `back`.
fn send_onto(
    back: &mut [f32],
    codec: &mut dyn Codec,
    key: &MessageKey,
    level: &Level<'_>,
    d: usize,
    data: &[f32],
    s: Store,
) {
    let rows = RowSet::Range(0..data.len() / d);
    let mut payload = Vec::new();
    codec
        .encode(
            Message { key, level, memory: &mut Memory::default() },
            RowsRef { data, columns: d, rows: rows.clone() },
            &mut payload,
        )
        .unwrap();
    assert_eq!(payload.len(), codec.bytes(level, data.len() / d, d));
    codec
        .decode(
            Message { key, level, memory: &mut Memory::default() },
            &payload,
            RowsMut { data: back, columns: d, rows },
            s,
        )
        .unwrap();
}

fn send(codec: &mut dyn Codec, round: u32, level: &Level<'_>, d: usize, data: &[f32]) -> Vec<f32> {
    let mut back = vec![f32::NAN; data.len()];
    send_onto(&mut back, codec, &key(round), level, d, data, Store::Set);
    back
}

fn square(values: impl Iterator<Item = f32>) -> f64 {
    values.map(|value| f64::from(value).powi(2)).sum()
}

fn columns_of(key: &MessageKey, d: usize, k: usize) -> Vec<u32> {
    let mut into = vec![99; 3];
    columns(key, false, d, k, &mut into);
    into
}

#[test]
fn at_least_one_column_travels_and_at_most_all() {
    // VARCO's own schedule begins at a ratio of 128, at which its reference code sends none of 100 columns.
    for (d, by, k) in [
        (100, 128.0, 1),
        (128, 128.0, 1),
        (256, 128.0, 2),
        (256, 98.167785, 2),
        (128, 10.802013, 11),
        (128, 1.5, 85),
        (7, 1.0, 7),
        (0, 9.0, 0),
        (1, 1e300, 1),
        (5, f64::INFINITY, 1),
    ] {
        assert_eq!(travelling(d, by), k, "{d} columns at a ratio of {by}");
    }
}

#[test]
fn the_mean_squared_error_is_the_share_of_columns_that_stay() {
    let (d, keys) = (64, 4000);
    let row = numbers(1, d);
    let mut codec = masked("exact", false, false);
    for by in [1.0, 1.5, 2.0, 5.0, 64.0] {
        let errors = (0..keys).map(|round| {
            let back = send(&mut *codec, round, &ratio(by), d, &row);
            square(row.iter().zip(back).map(|(sent, back)| sent - back))
        });
        let share = 1.0 - travelling(d, by) as f64 / d as f64;
        let expected = share * square(row.iter().copied());
        let mean = errors.sum::<f64>() / f64::from(keys);
        // One key's error scatters by less than a third of the row's square.
        let slack = 4.0 * square(row.iter().copied()) / 3.0 / f64::from(keys).sqrt() * f64::from(u8::from(share > 0.0));
        assert!((mean - expected).abs() <= slack, "ratio {by}: {mean}, expected {expected} ± {slack}");
    }
}

#[test]
fn every_column_is_equally_likely() {
    let (d, k, keys) = (20, 5, 8000);
    let mut counts = vec![0; d];
    for round in 0..keys {
        let travelling = columns_of(&key(round), d, k);
        assert!(travelling.len() == k && travelling.is_sorted_by(|a, b| a < b));
        travelling.into_iter().for_each(|column| counts[column as usize] += 1);
    }
    // A quarter of 8,000 each, with a standard deviation of 39.
    assert!(counts.iter().all(|&count: &i32| (count - 2000).abs() < 5 * 39), "{counts:?}");
}

#[test]
fn links_directions_and_steps_share_the_columns_and_layers_rounds_and_evaluations_do_not() {
    let of = |tag: Tag| columns_of(&MessageKey { tag, drawn: tag.round, ..key(0) }, 256, 32);
    let own = of(TAG);
    assert_eq!(columns_of(&MessageKey { from: Rank(7), to: Rank(3), ..key(0) }, 256, 32), own);
    assert_eq!(of(Tag { direction: Direction::Reverse, content: Content::RowGradients, ..TAG }), own);
    assert_eq!(of(TAG.later(2)), own);
    assert_ne!(of(Tag { purpose: FramePurpose::Evaluation, ..TAG }), own);
    assert_ne!(of(Tag { layer: 2, ..TAG }), own);
    assert_ne!(of(Tag { round: 1, ..TAG }), own);
    assert_ne!(columns_of(&MessageKey { seed: 6, ..key(0) }, 256, 32), own);
    let smaller = columns_of(&key(0), 256, 9);
    assert!(smaller.iter().all(|column| own.contains(column)), "a smaller mask is part of a larger one");
}

#[test]
fn calls_that_were_skipped_put_nothing_out_of_step() {
    let (d, data) = (50, numbers(2, 150));
    let (mut sender, mut receiver) = (masked("exact", false, false), masked("exact", false, false));
    for round in 0..5 {
        let rows = || RowSet::Range(0..3);
        let mut payload = Vec::new();
        sender
            .encode(
                Message { key: &key(round), level: &ratio(4.0), memory: &mut Memory::default() },
                RowsRef { data: &data, columns: d, rows: rows() },
                &mut payload,
            )
            .unwrap();
        if round % 2 == 0 {
            continue; // lost
        }
        let mut back = vec![f32::NAN; 150];
        let into = RowsMut { data: &mut back, columns: d, rows: rows() };
        receiver
            .decode(
                Message { key: &key(round), level: &ratio(4.0), memory: &mut Memory::default() },
                &payload,
                into,
                Store::Set,
            )
            .unwrap();
        let travelling = columns_of(&key(round), d, 12);
        for (i, (sent, back)) in data.iter().zip(&back).enumerate() {
            let expected = if travelling.contains(&((i % d) as u32)) { *sent } else { 0.0 };
            assert_eq!(*back, expected, "round {round}, column {}", i % d);
        }
    }
}

#[test]
fn with_all_columns_the_payload_is_the_inner_codecs() {
    let data = numbers(3, 5 * 33);
    for inner in ["exact", "half", "quantised"] {
        let mut payloads = [Vec::new(), Vec::new()];
        let mut codecs =
            [masked(inner, false, true), CodecRegistry::default().build(inner, &Options::default()).unwrap()];
        assert_eq!(codecs[0].id().number, 0x10 | codecs[1].id().number);
        for (codec, payload) in codecs.iter_mut().zip(&mut payloads) {
            let rows = RowsRef { data: &data, columns: 33, rows: RowSet::Indices(&[4, 0, 2]) };
            codec
                .encode(Message { key: &key(0), level: &ratio(1.0), memory: &mut Memory::default() }, rows, payload)
                .unwrap();
        }
        assert_eq!(payloads[0], payloads[1], "{inner}");
    }
}

#[test]
fn the_first_columns_travel_on_request() {
    let data = numbers(4, 2 * 10);
    let back = send(&mut *masked("exact", true, false), 0, &ratio(3.0), 10, &data);
    for row in 0..2 {
        assert_eq!(back[row * 10..][..3], data[row * 10..][..3]);
        assert_eq!(back[row * 10 + 3..][..7], [0.0; 7]);
    }
}

#[test]
fn multiplied_on_arrival_the_mask_is_unbiased() {
    let (d, keys) = (12, 30_000);
    let row = numbers(5, d);
    for inner in ["exact", "quantised"] {
        let mut codec = masked(inner, false, true);
        let mut means = vec![0.0; d];
        for round in 0..keys {
            let back = send(&mut *codec, round, &ratio(4.0), d, &row);
            means.iter_mut().zip(back).for_each(|(mean, back)| *mean += f64::from(back) / f64::from(keys));
        }
        for (mean, &sent) in means.into_iter().zip(&row) {
            // d/k times the value with odds k/d: the standard deviation is √(d/k − 1) = 1.74 times the value.
            let slack = 4.5 * 1.75 * f64::from(sent.abs()) / f64::from(keys).sqrt() + 1e-3;
            assert!((mean - f64::from(sent)).abs() < slack, "{inner}: {sent} has mean {mean}");
        }
    }
}

#[test]
fn the_way_back_is_the_adjoint_of_the_way_there() {
    let (d, len) = (40, 3 * 40);
    let (x, y) = (numbers(6, len), numbers(7, len));
    for (prefix, rescale) in [(false, false), (false, true), (true, false)] {
        let mut codec = masked("exact", prefix, rescale);
        let back_key = MessageKey {
            tag: Tag { content: Content::RowGradients, direction: Direction::Reverse, ..key(3).tag },
            from: Rank(1),
            to: Rank(0),
            ..key(3)
        };
        let (mut there, mut back) = (vec![f32::NAN; len], vec![0.0; len]);
        send_onto(&mut there, &mut *codec, &key(3), &ratio(2.7), d, &x, Store::Set);
        send_onto(&mut back, &mut *codec, &back_key, &ratio(2.7), d, &y, Store::Add);
        let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
        let (left, right) = (product(&there, &y), product(&x, &back));
        // Both sum the same products up to f32's rounding of each.
        assert!((left - right).abs() < 1e-5, "{left} and {right}");
    }
}

#[test]
fn adding_leaves_the_columns_that_stayed_alone() {
    let data = numbers(8, 2 * 9);
    let mut back = vec![5.0; 18];
    send_onto(&mut back, &mut *masked("exact", false, false), &key(0), &ratio(3.0), 9, &data, Store::Add);
    let travelling = columns_of(&key(0), 9, 3);
    for (i, (&sent, &back)) in data.iter().zip(&back).enumerate() {
        assert_eq!(back, if travelling.contains(&((i % 9) as u32)) { 5.0 + sent } else { 5.0 });
    }
}

#[test]
fn only_values_that_travel_need_to_be_finite_and_the_others_are_named_by_their_own_place() {
    let travelling = columns_of(&key(0), 9, 3);
    for inner in ["exact", "half", "quantised"] {
        let mut codec = masked(inner, false, false);
        for column in 0..9 {
            let mut data = vec![1.0; 5 * 9];
            data[4 * 9 + column as usize] = f32::INFINITY;
            let rows = RowsRef { data: &data, columns: 9, rows: RowSet::Indices(&[1, 4]) };
            let mut payload = b"before".to_vec();
            let encoded = codec.encode(
                Message { key: &key(0), level: &ratio(3.0), memory: &mut Memory::default() },
                rows,
                &mut payload,
            );
            if travelling.contains(&column) {
                let place =
                    WireError::NotFinite { codec: "masked", row: 4, column: column as usize, value: f32::INFINITY };
                assert_eq!((encoded, &payload[..]), (Err(place), &b"before"[..]));
            } else {
                assert_eq!(encoded, Ok(()));
            }
        }
    }
}

#[test]
fn a_mask_does_not_hold_another() {
    let options = Options::default().with("inner", "masked");
    assert_eq!(CodecRegistry::default().build("masked", &options).err(), Some(WireError::NestedMask));
    assert_eq!(Masked::new(masked("half", false, false), false, false).err(), Some(WireError::NestedMask));
    let unknown = Options::default().with("inner", "zip");
    assert!(matches!(CodecRegistry::default().build("masked", &unknown), Err(WireError::UnknownCodec { .. })));
}

#[test]
fn options_that_say_nothing_sensible_are_refused_by_name() {
    for (options, words) in [
        (Options::default().with("columns", "last"), r#"option columns is "last", expected "random" or "prefix""#),
        (Options::default().with("columns", true), "option columns is true, expected a text"),
        (Options::default().with("rescale", "yes"), r#"option rescale is "yes", expected true or false"#),
        (Options::default().with("inner", 2.0), "option inner is 2, expected a text"),
    ] {
        let error = CodecRegistry::default().build("masked", &options).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(words));
    }
}
