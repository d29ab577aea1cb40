//! The laws of stochastic rounding: unbiased, within one step, exact where it promises to be, and the same everywhere.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{Bits, Level, Memory, Message, Quantised, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Codec, Content, FramePurpose, MessageKey, Rank, Tag};

const WIDTHS: [u8; 5] = [1, 2, 4, 8, 16];

fn key(round: u32) -> MessageKey {
    let tag = Tag { layer: 1, round, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
    MessageKey { seed: 5, tag, from: Rank(0), to: Rank(1), drawn: tag.round }
}

fn level(bits: u8) -> Level<'static> {
    Level { ratio: 1.0, bits: Bits::Uniform(bits) }
}

fn encode(round: u32, bits: u8, data: &[f32], columns: usize) -> Vec<u8> {
    let rows = RowSet::Range(0..data.len() / columns);
    let mut payload = Vec::new();
    Quantised::default()
        .encode(
            Message { key: &key(round), level: &level(bits), memory: &mut Memory::default() },
            RowsRef { data, columns, rows },
            &mut payload,
        )
        .unwrap();
    payload
}

/// What arrives of rows that are sent in a round.
fn send(round: u32, bits: u8, data: &[f32], columns: usize) -> Vec<f32> {
    let payload = encode(round, bits, data, columns);
    let rows = RowSet::Range(0..data.len() / columns);
    let mut back = vec![f32::NAN; data.len()];
    let into = RowsMut { data: &mut back, columns, rows };
    Quantised::default()
        .decode(
            Message { key: &key(round), level: &level(bits), memory: &mut Memory::default() },
            &payload,
            into,
            Store::Set,
        )
        .unwrap();
    back
}

/// The zero point and the step that a row travels with.
fn grid(bits: u8, row: &[f32]) -> (f64, f64) {
    let payload = encode(0, bits, row, row.len());
    let field = |at: usize| f32::from_bits(u32::from(u16::from_le_bytes([payload[at], payload[at + 1]])) << 16);
    (field(0).into(), field(2).into())
}

fn normal(seed: u64, len: usize, mean: f64, spread: f64) -> Vec<f32> {
    let key = Key::new(seed, Purpose::Test);
    (0..len).map(|i| (mean + spread * key.with(i as u64).normal()) as f32).collect()
}

/// Rows of every character; all of 24 columns.
fn characters() -> Vec<(&'static str, Vec<f32>)> {
    vec![
        ("normal", normal(1, 24, 0.0, 1.0)),
        ("rectified", normal(2, 24, 0.0, 1.0).into_iter().map(|v| v.max(0.0)).collect()),
        ("gradients", normal(3, 24, 0.0, 1e-8)),
        ("a mean of 1000 spreads", normal(4, 24, 1000.0, 1.0)),
        ("a mean of -1000 spreads", normal(4, 24, -1000.0, 1.0)),
        ("near f32's largest", normal(5, 24, 0.0, 1e38)),
        ("denormal", normal(6, 24, 0.0, 1e-41)),
        ("of huge range", (0..24).map(|i| 0.98 * f32::MAX * (i as f32 / 11.5 - 1.0)).collect()),
    ]
}

#[test]
fn the_mean_over_many_keys_is_the_value_for_every_width_and_character() {
    let keys = 20_000;
    for (name, row) in characters() {
        for bits in WIDTHS {
            let mut means = vec![0.0; row.len()];
            for round in 0..keys {
                let back = send(round, bits, &row, row.len());
                means.iter_mut().zip(&back).for_each(|(mean, &value)| *mean += f64::from(value) / f64::from(keys));
            }
            let width = row.iter().fold(0.0, |width: f64, &v| width.max((f64::from(v) - f64::from(row[0])).abs()));
            let largest = row.iter().fold(0.0, |largest: f64, &v| largest.max(f64::from(v).abs()));
            // The step, without reading the wire's extremes: the range with the zero point's loss, by levels, but no
            // less than bfloat16's smallest number.
            let step = ((2.0 * width + largest / 128.0) / f64::from((1u32 << bits) - 1) * 1.01).max(9.2e-41);
            for (column, (&value, mean)) in row.iter().zip(means).enumerate() {
                // Four standard errors of a coin between two points, f32's rounding, and the denormals' grid.
                let slack = 4.0 * 0.5 * step / f64::from(keys).sqrt() + largest * 2.4e-7 + 1e-45;
                let error = (mean - f64::from(value)).abs();
                assert!(error <= slack, "{name}, {bits} bits, column {column}: {value:e} has mean {mean:e}, {slack:e}");
            }
        }
    }
}

#[test]
fn a_hundred_thousand_keys_show_no_bias_beyond_four_standard_errors() {
    let keys = 100_000;
    let row = normal(7, 16, 0.3, 1.0);
    for bits in WIDTHS {
        let (zero, step) = grid(bits, &row);
        let mut sums = [0.0; 16];
        let mut squares = 0.0;
        for round in 0..keys {
            for ((sum, &sent), back) in sums.iter_mut().zip(&row).zip(send(round, bits, &row, 16)) {
                let error = f64::from(back) - f64::from(sent);
                *sum += error;
                squares += error * error;
                assert!(error.abs() < step * 1.0001 + 1e-6);
            }
        }
        let mut variance = 0.0;
        for (sum, &sent) in sums.iter().zip(&row) {
            let fraction = ((f64::from(sent) - zero) / step).rem_euclid(1.0);
            let sigma = (fraction * (1.0 - fraction)).sqrt() * step;
            variance += sigma * sigma;
            let slack = 4.0 * sigma / f64::from(keys).sqrt() + 2.4e-7;
            assert!((sum / f64::from(keys)).abs() < slack, "{bits} bits: {sent}, {fraction} of a step, {}", sum / 1e5);
        }
        let measured = squares / f64::from(keys);
        // The mean of 10⁵ rows' squares; it scatters by less than a percent.
        assert!((measured / variance - 1.0).abs() < 0.02 || bits == 16, "{bits} bits: {measured:e}, {variance:e}");
        assert!(measured <= 16.0 * step * step / 4.0 * 1.01);
    }
}

#[test]
fn rows_of_one_value_are_exact_whatever_the_value_and_the_width() {
    let values =
        [0.0, 1.0, -1.0, 0.1, -3.3, 1e-8, f32::MAX, f32::MIN, f32::MIN_POSITIVE, f32::from_bits(1), 16_777_217.0];
    for bits in WIDTHS.into_iter().chain([32]) {
        for value in values {
            for columns in [1, 2, 3, 16, 33] {
                let back = send(9, bits, &vec![value; columns], columns);
                assert!(back.iter().all(|v| v.to_bits() == value.to_bits()), "{value:e}, {bits} bits: {back:?}");
            }
        }
        assert_eq!(send(9, bits, &[0.0, -0.0, -0.0], 3), [0.0; 3]);
    }
    let any = normal(10, 1000, 0.0, 1e5);
    assert_eq!(send(0, 1, &any, 1), any);
}

/// Nobody pays for rounding what is smaller as it is: one column in any width, two in 16 bits.
#[test]
fn rows_that_codes_would_not_make_smaller_arrive_whole() {
    for (columns, widths) in [(1, &WIDTHS[..]), (2, &[16])] {
        let data = normal(14, 50 * columns, 3.0, 1e3);
        for &bits in widths {
            assert_eq!(encode(2, bits, &data, columns).len(), 4 * data.len(), "{columns} columns in {bits} bits");
            assert_eq!(send(2, bits, &data, columns), data, "{columns} columns in {bits} bits");
        }
    }
    assert_eq!(encode(2, 8, &normal(14, 50 * 2, 3.0, 1e3), 2).len(), 50 * 6);
}

#[test]
fn zeros_of_rectified_rows_stay_zeros() {
    let data: Vec<f32> = normal(11, 200 * 50, -0.5, 2.0).into_iter().map(|v| v.max(0.0)).collect();
    for bits in WIDTHS {
        for round in 0..20 {
            let back = send(round, bits, &data, 50);
            assert!(data.iter().zip(back).all(|(&sent, back)| sent != 0.0 || back.to_bits() == 0), "{bits} bits");
        }
    }
}

#[test]
fn values_on_points_of_the_grid_stay_there() {
    for bits in WIDTHS {
        let top = (1u32 << bits) - 1;
        // A step that is a bfloat16, so that the grid is this one.
        let data: Vec<f32> = (0..=top.min(999)).map(|i| (i * top / top.min(999)) as f32 * 0.375 + 2.0).collect();
        for round in 0..50 {
            assert_eq!(send(round, bits, &data, data.len()), data, "{bits} bits");
        }
    }
}

#[test]
fn the_extremes_of_f32_come_back_finite_and_within_one_step() {
    let data = [f32::MAX, f32::MIN, 0.0, 1.0, 3.395e38, -3.395e38, f32::MIN_POSITIVE, 1e38];
    for bits in WIDTHS {
        let step = 2.0 * f64::from(f32::MAX) / f64::from((1u32 << bits) - 1) * 1.02;
        for round in 0..200 {
            for (&sent, back) in data.iter().zip(send(round, bits, &data, data.len())) {
                assert!(back.is_finite(), "{sent:e} became {back:e} with {bits} bits");
                assert!((f64::from(sent) - f64::from(back)).abs() < step, "{sent:e} became {back:e} with {bits} bits");
            }
        }
    }
}

/// The mean product of two lists of errors over the product of their sizes.
fn correlation(pairs: impl Iterator<Item = (f32, f32)>) -> f64 {
    let (mut both, mut one, mut other) = (0.0, 0.0, 0.0);
    for (a, b) in pairs {
        let (a, b) = (f64::from(a), f64::from(b));
        (both, one, other) = (both + a * b, one + a * a, other + b * b);
    }
    both / (one * other).sqrt()
}

#[test]
fn errors_of_columns_rows_rounds_and_links_are_uncorrelated() {
    // Every value halfway between two points of [0, 255], with both ends present.
    const COLUMNS: usize = 258;
    const ROWS: usize = 300;
    let row: Vec<f32> = (0..256).map(|i| (i % 255) as f32 + 0.5).chain([0.0, 255.0]).collect();
    let data = row.repeat(ROWS);
    let errors = |round| {
        let back = send(round, 8, &data, COLUMNS);
        back.iter().zip(&data).map(|(back, sent)| back - sent).collect::<Vec<f32>>()
    };
    let (now, later) = (errors(0), errors(1));
    let n = (ROWS * COLUMNS) as f64;
    let offset = |by: usize| correlation(now.iter().copied().zip(now[by..].iter().copied()));
    for by in [1, 2, 8, 16, COLUMNS / 2, COLUMNS / 2 + 1, COLUMNS, 2 * COLUMNS] {
        assert!(offset(by).abs() < 4.5 / n.sqrt(), "{by} further: {}", offset(by));
    }
    assert!(correlation(now.iter().copied().zip(later)).abs() < 4.5 / n.sqrt());

    let send_to = |to| {
        let mut payload = Vec::new();
        let rows = RowsRef { data: &row, columns: COLUMNS, rows: RowSet::Range(0..1) };
        let key = MessageKey { to, ..key(0) };
        Quantised::default()
            .encode(Message { key: &key, level: &level(8), memory: &mut Memory::default() }, rows, &mut payload)
            .unwrap();
        payload
    };
    assert_ne!(send_to(Rank(1)), send_to(Rank(2)));
}

#[test]
fn a_row_does_not_depend_on_how_the_others_travel() {
    let data = normal(12, 20 * 37, 0.0, 1.0);
    let rows = RowsRef { data: &data, columns: 37, rows: RowSet::Range(0..20) };
    let widths: Vec<u8> = (0..20).map(|row| [8, 8, 2, 32, 1, 16, 4][row % 7]).collect();
    let (mut mixed, mut codec) = (Vec::new(), Quantised::default());
    codec
        .encode(
            Message {
                key: &key(3),
                level: &Level { ratio: 1.0, bits: Bits::Rows(&widths) },
                memory: &mut Memory::default(),
            },
            rows,
            &mut mixed,
        )
        .unwrap();
    let mut start = 0;
    for (position, &bits) in widths.iter().enumerate() {
        let one = codec.bytes(&level(bits), 1, 37);
        let uniform = encode(3, bits, &data, 37);
        assert_eq!(mixed[start..start + one], uniform[position * one..][..one], "row {position}, {bits} bits");
        start += one;
    }
    assert_eq!(start, mixed.len());
}

#[test]
fn a_message_has_the_bytes_of_the_closed_form_and_its_padding_is_zero_and_ignored() {
    for columns in [1, 3, 7, 16, 100, 256, 1030] {
        for bits in WIDTHS {
            let data = normal(13, 3 * columns, 0.0, 1.0);
            let mut payload = encode(0, bits, &data, columns);
            let rounded = 4 + (columns * usize::from(bits)).div_ceil(8);
            let row = rounded.min(4 * columns);
            assert_eq!(payload.len(), 3 * row);
            let used = columns * usize::from(bits) % 8;
            if used > 0 && columns > 1 {
                let before = send(0, bits, &data, columns);
                assert_eq!(payload[row - 1] >> used, 0, "{columns} columns, {bits} bits");
                payload[row - 1] |= 0xff << used;
                let mut back = vec![0.0; data.len()];
                let into = RowsMut { data: &mut back, columns, rows: RowSet::Range(0..3) };
                Quantised::default()
                    .decode(
                        Message { key: &key(0), level: &level(bits), memory: &mut Memory::default() },
                        &payload,
                        into,
                        Store::Set,
                    )
                    .unwrap();
                assert_eq!(back, before);
            }
        }
    }
}

#[test]
fn the_layout_is_version_one() {
    // Four bits, five columns: the zero point 0 and the step 1, then one word with a column in each hexadecimal digit,
    // then the fifth column.
    assert_eq!(encode(0, 4, &[0.0, 15.0, 3.0, 9.0, 7.0], 5), [0x00, 0x00, 0x80, 0x3f, 0xf0, 0x93, 0x07]);
    assert_eq!(encode(0, 8, &[0.0, 255.0, 7.0], 3), [0x00, 0x00, 0x80, 0x3f, 0x00, 0xff, 0x07]);
    // One value: its upper half, the sign of the step and the next fifteen bits, and the last bit.
    let value = f32::from_bits(0x3fc0_0003);
    assert_eq!(encode(0, 2, &[value; 4], 4), [0xc0, 0x3f, 0x01, 0x80, 0x01]);
}

/// D/6 · (span / (2^b − 1))² is what the errors of rows add up to, wherever rows lie; their own ranges would say a
/// hundredth of it where they are far from zero and narrow.
#[test]
fn the_span_of_a_row_tells_the_variance_of_what_arrives() {
    const COLUMNS: usize = 64;
    for (offset, bits) in [(0.0, 2), (0.0, 4), (0.0, 8), (1000.0, 2), (1000.0, 4), (1000.0, 8), (-50.0, 4)] {
        let (mut measured, mut expected, mut of_ranges) = (0.0, 0.0, 0.0);
        for row in 0..40 {
            let data = normal(30 + row, COLUMNS, offset * (1.0 + 0.01 * row as f64), 1.0);
            let unit = COLUMNS as f64 / 6.0 / f64::from((1u32 << bits) - 1).powi(2);
            expected += unit * Quantised::default().span(bits, &data).powi(2);
            let (low, high) = data.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
            of_ranges += unit * f64::from(high - low).powi(2);
            for round in 0..50 {
                let came = send(round, bits, &data, COLUMNS);
                measured += came.iter().zip(&data).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / 50.0;
            }
        }
        assert!((measured / expected - 1.0).abs() < 0.15, "{offset}, {bits} bits: {measured:e}, {expected:e}");
        assert!(offset < 1000.0 || measured > 3.0 * of_ranges, "{bits} bits: {measured:e}, {of_ranges:e}");
    }
}
