//! How fast codecs are, against memcpy.
//!
//! `cargo run --release -p laconic-wire --example codec_speed [rows columns]`. Encodes and decodes all rows of a matrix
//! of ogbn-arxiv's size in order, half of them in ascending order (as a halo plan lists them) and all in random order,
//! on one thread. GB/s count the f32 side of each pass; the best of ten passes counts. memcpy copies as many bytes from
//! one buffer to another, and its figure counts them once; gathered, it copies the same rows one by one. Behind each
//! figure stand its shares of memcpy's figure for the same rows and of that for all rows in order.
//!
//! A codec is to reach half of memcpy, encoding and decoding. Where rows are scattered, their way from memory and then
//! the rounding cost one after the other: only a prefetch instruction could overlap them, and that is not to be had
//! without `unsafe`.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{Bits, CodecRegistry, Level, Memory, Message, Options, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Codec, Content, FramePurpose, MessageKey, Rank, Tag};
use std::hint::black_box;
use std::time::Instant;

const PASSES: u32 = 10;

/// What is timed: a name, the codec and the level.
fn cases() -> Vec<(String, Box<dyn Codec>, Level<'static>)> {
    let named = |text: &str, codec: &str, options: Options, level| {
        (text.to_owned(), CodecRegistry::default().build(codec, &options).expect("a registered codec"), level)
    };
    let level = |ratio, bits| Level { ratio, bits: Bits::Uniform(bits) };
    let around = |inner: &str| Options::default().with("inner", inner);
    let mut cases = vec![
        named("exact", "exact", Options::default(), Level::WHOLE),
        named("half", "half", Options::default(), Level::WHOLE),
    ];
    for bits in [32, 16, 8, 4, 2, 1] {
        cases.push(named(&format!("quantised {bits}"), "quantised", Options::default(), level(1.0, bits)));
    }
    for ratio in [2, 8, 32] {
        cases.push(named(&format!("masked {ratio}"), "masked", Options::default(), level(ratio.into(), 32)));
    }
    cases.push(named("masked 4, quantised 8", "masked", around("quantised"), level(4.0, 8)));
    for bits in [8, 4, 2] {
        cases.push(named(&format!("grouped, quantised {bits}"), "grouped", around("quantised"), level(1.0, bits)));
        let inner = around("grouped/quantised");
        cases.push(named(&format!("entropy, grouped, quantised {bits}"), "entropy", inner, level(1.0, bits)));
    }
    for name in ["top", "codewords", "largest", "low_rank"] {
        cases.push(named(name, name, Options::default(), Level::WHOLE));
    }
    cases
}

/// Prints one line per measurement.
struct Clock {
    columns: usize,
    /// memcpy's figures in GB/s by order of the rows; the first is that of all rows in order.
    memcpy: Vec<f64>,
}

impl Clock {
    /// GB/s of the best pass over this many rows.
    fn figure(&self, rows: usize, run: &mut dyn FnMut()) -> f64 {
        let seconds = |run: &mut dyn FnMut()| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        };
        run(); // grows the buffers
        let best = (0..PASSES).map(|_| seconds(run)).fold(f64::INFINITY, f64::min);
        (rows * self.columns) as f64 * 4e-9 / best
    }

    fn measure(&self, what: &str, order: usize, rows: usize, run: &mut dyn FnMut()) {
        let figure = self.figure(rows, run);
        let share = |of: f64| 100.0 * figure / of;
        println!("{what:48} {figure:6.1} GB/s {:5.0} % {:5.0} %", share(self.memcpy[order]), share(self.memcpy[0]));
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |or| arguments.next().map_or(or, |text| text.parse().expect("rows and columns are numbers"));
    let (rows, columns) = (number(169_343), number(256));
    let stream = Key::new(1, Purpose::Test);
    let source: Vec<f32> = (0..rows * columns).map(|i| stream.with(i as u64).unit() as f32 - 0.5).collect();
    let mut target = vec![1.0f32; source.len()];
    let mut shuffled: Vec<u32> = (0..rows as u32).collect();
    stream.shuffle(&mut shuffled);
    let mut sample: Vec<u32> = shuffled[..rows / 2].to_vec();
    sample.sort_unstable();
    let tag = Tag::new(Content::HiddenRows, FramePurpose::Training);
    let key = MessageKey { seed: 1, tag, from: Rank(0), to: Rank(1), drawn: tag.round };
    let orders = [
        ("in order", RowSet::Range(0..rows)),
        ("every other row", RowSet::Indices(&sample)),
        ("in random order", RowSet::Indices(&shuffled)),
    ];
    let mut clock = Clock { columns, memcpy: Vec::new() };

    println!("{rows} rows of {columns}, one thread");
    for (order, set) in &orders {
        let figure = clock.figure(set.len(), &mut || match set {
            RowSet::Range(_) => black_box(&mut target).copy_from_slice(black_box(&source)),
            RowSet::Indices(indices) => {
                for (row, target) in indices.iter().zip(target.chunks_exact_mut(columns)) {
                    target.copy_from_slice(&source[*row as usize * columns..][..columns]);
                }
            }
        });
        clock.memcpy.push(figure);
        println!("{:48} {figure:6.1} GB/s", format!("memcpy {order}"));
    }
    for (name, mut codec, level) in cases() {
        let mut payload = Vec::new();
        for (at, (order, set)) in orders.iter().enumerate() {
            clock.measure(&format!("{name}, encode {order}"), at, set.len(), &mut || {
                payload.clear();
                let from = RowsRef { data: black_box(&source), columns, rows: set.clone() };
                codec
                    .encode(Message { key: &key, level: &level, memory: &mut Memory::default() }, from, &mut payload)
                    .expect("finite numbers");
            });
            for (words, store) in [("decode", Store::Set), ("decode-add", Store::Add)] {
                clock.measure(&format!("{name}, {words} {order}"), at, set.len(), &mut || {
                    let into = RowsMut { data: &mut target, columns, rows: set.clone() };
                    codec
                        .decode(
                            Message { key: &key, level: &level, memory: &mut Memory::default() },
                            black_box(&payload),
                            into,
                            store,
                        )
                        .expect("a payload of the right size");
                });
            }
        }
    }
}
