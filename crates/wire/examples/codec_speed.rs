//! How fast codecs are, against memcpy.
//!
//! `cargo run --release -p laconic-wire --example codec_speed [rows columns]`. Encodes and decodes all rows of a matrix
//! of ogbn-arxiv's size in order, half of them in ascending order (as a halo plan lists them) and all in random order,
//! on one thread. GB/s count the f32 side of each pass; the best of ten passes counts. memcpy copies as many bytes from
//! one buffer to another, and its figure counts them once.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{REGISTRY, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Direction, MessageKey, Rank};
use std::hint::black_box;
use std::time::Instant;

const PASSES: u32 = 10;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().expect("rows and columns are numbers"));
    let (rows, columns) = (numbers.next().unwrap_or(169_343), numbers.next().unwrap_or(256));
    let stream = Key::new(1, Purpose::Test);
    let source: Vec<f32> = (0..rows * columns).map(|i| stream.with(i as u64).unit() as f32 - 0.5).collect();
    let mut target = vec![1.0f32; source.len()];
    let mut shuffled: Vec<u32> = (0..rows as u32).collect();
    stream.shuffle(&mut shuffled);
    let mut sample: Vec<u32> = shuffled[..rows / 2].to_vec();
    sample.sort_unstable();
    let key = MessageKey { seed: 1, round: 0, layer: 0, direction: Direction::Forward, from: Rank(0), to: Rank(1) };

    let measure = |what: &str, rows: usize, run: &mut dyn FnMut()| {
        let seconds = |run: &mut dyn FnMut()| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64()
        };
        run(); // grows the buffers
        let best = (0..PASSES).map(|_| seconds(run)).fold(f64::INFINITY, f64::min);
        println!("{what:32} {:6.1} GB/s", (rows * columns) as f64 * 4e-9 / best);
    };

    println!("{rows} rows of {columns}, one thread");
    measure("memcpy", rows, &mut || black_box(&mut target).copy_from_slice(black_box(&source)));
    measure("memcpy, rows in random order", rows, &mut || {
        for (row, target) in shuffled.iter().zip(target.chunks_exact_mut(columns)) {
            target.copy_from_slice(&source[*row as usize * columns..][..columns]);
        }
    });
    for &(name, make) in REGISTRY {
        let codec = make();
        let mut payload = Vec::new();
        for (order, set) in [
            ("in order", RowSet::Range(0..rows)),
            ("every other row", RowSet::Indices(&sample)),
            ("in random order", RowSet::Indices(&shuffled)),
        ] {
            measure(&format!("{name}, encode {order}"), set.len(), &mut || {
                payload.clear();
                let from = RowsRef { data: black_box(&source), columns, rows: set.clone() };
                codec.encode(&key, from, &mut payload).expect("finite numbers");
            });
            for (words, store) in [("decode", Store::Set), ("decode-add", Store::Add)] {
                measure(&format!("{name}, {words} {order}"), set.len(), &mut || {
                    let into = RowsMut { data: &mut target, columns, rows: set.clone() };
                    codec.decode(&key, black_box(&payload), into, store).expect("a payload of the right size");
                });
            }
        }
    }
}
