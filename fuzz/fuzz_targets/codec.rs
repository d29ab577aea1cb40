//! Payloads of every codec at every level: a payload of the right size is decoded, any other is an error.

#![no_main]

use laconic_wire::codec::{Bits, Level, MessageKey, Options, REGISTRY, RowSet, RowsMut, Store, named};
use laconic_wire::{Direction, Kind, Rank, Tag};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, u8, u8, Vec<u8>)| {
    let (which, rows, columns, bits, payload) = input;
    let (name, _) = REGISTRY[usize::from(which) % REGISTRY.len()];
    let options = Options { inner: Some("quantised".to_owned()), prefix: bits & 1 == 0, rescale: bits & 2 == 0 };
    let mut codec = named(name, &options).expect("registered");
    let (rows, columns) = (usize::from(rows % 16), usize::from(columns));
    let level =
        Level { ratio: 1.0 + f64::from(bits), bits: Bits::Uniform([1, 2, 4, 8, 16, 32][usize::from(bits) % 6]) };
    let tag = Tag { kind: Kind::Activations, direction: Direction::Forward, layer: 0, round: 1, step: 0 };
    let key = MessageKey { seed: 1, tag, from: Rank(0), to: Rank(1) };
    let mut data = vec![0.0; rows * columns];
    let into = RowsMut { data: &mut data, columns, rows: RowSet::Range(0..rows) };
    let decoded = codec.decode(&key, &level, &payload, into, Store::Set);
    assert_eq!(decoded.is_ok(), payload.len() == codec.bytes(&level, rows, columns));
});
