//! Payloads of every codec at every level: a payload of the right size is decoded, any other is an error.

#![no_main]

use laconic_wire::codec::{Bits, CodecRegistry, Level, Memory, Message, MessageKey, Options, RowSet, RowsMut, Store};
use laconic_wire::{Content, FramePurpose, Rank, Tag};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, u8, u8, Vec<u8>)| {
    let (which, rows, columns, bits, payload) = input;
    let registry = CodecRegistry::default();
    let kinds: Vec<_> = registry.iter().collect();
    let name = kinds[usize::from(which) % kinds.len()].name;
    let columns_from = if bits & 1 == 0 { "prefix" } else { "random" };
    let options = Options::default().with("inner", "quantised").with("columns", columns_from);
    let options = options.with("rescale", bits & 2 == 0);
    let about = registry.describe(name, &options).expect("registered");
    let mut codec = registry.build(name, &options).expect("registered");
    let (rows, columns) = (usize::from(rows % 16), usize::from(columns));
    let level =
        Level { ratio: 1.0 + f64::from(bits), bits: Bits::Uniform([1, 2, 4, 8, 16, 32][usize::from(bits) % 6]) };
    let tag = Tag { round: 1, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
    let key = MessageKey { seed: 1, tag, from: Rank(0), to: Rank(1), drawn: tag.round };
    let mut data = vec![0.0; rows * columns];
    let into = RowsMut { data: &mut data, columns, rows: RowSet::Range(0..rows) };
    let message = Message { key: &key, level: &level, memory: &mut Memory::default() };
    let decoded = codec.decode(message, &payload, into, Store::Set);
    // Positions of what was not left out may lead nowhere.
    assert!(
        about.varies || about.leaves_out || decoded.is_ok() == (payload.len() == codec.bytes(&level, rows, columns))
    );
});
