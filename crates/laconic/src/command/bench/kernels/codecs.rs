//! Codecs on one thread, as messages are coded, against a copy on one thread.

use anyhow::Result;
use laconic_key::{Key, Purpose};
use laconic_nn::Compute;
use laconic_wire::codec::{Bits, CodecRegistry, Level, Memory, Message, Options, RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Content, FramePurpose, MessageKey, Rank, Tag};

use super::Bench;

/// The width of hidden rows.
const WIDTH: usize = 256;

/// Rows at most: more would only take memory.
const ROWS_MAX: usize = 1 << 17;

/// Names of encoding and decoding, the codec, and its bits.
const CASES: [([&str; 2], &str, u8); 4] = [
    (["half encode", "half decode"], "half", 16),
    (["8 bits encode", "8 bits decode"], "quantised", 8),
    (["4 bits encode", "4 bits decode"], "quantised", 4),
    (["2 bits encode", "2 bits decode"], "quantised", 2),
];

/// Measures them: values read or written as f32, and the bytes of the payload.
pub(super) fn measure(bench: &mut Bench<'_>, nodes: usize) -> Result<()> {
    let names: Vec<&str> = CASES.iter().flat_map(|(names, ..)| *names).collect();
    if !bench.wants(&names) {
        return Ok(());
    }
    let all = std::mem::replace(&mut bench.compute, Compute::new(1));
    let rows = nodes.min(ROWS_MAX);
    let key = Key::new(1, Purpose::Test);
    let values: Vec<f32> = (0..rows * WIDTH).map(|value| key.with(value as u64).unit() as f32 - 0.5).collect();
    let mut target = vec![0.0f32; values.len()];
    let copy = bench.streamed(0.0);
    let tag = Tag::new(Content::HiddenRows, FramePurpose::Training);
    let of_message = MessageKey { seed: 1, tag, from: Rank(0), to: Rank(1), drawn: tag.round };
    for ([encode, decode], codec, bits) in CASES {
        let mut codec = CodecRegistry::default().build(codec, &Options::default())?;
        let level = if bits == 16 { Level::WHOLE } else { Level { ratio: 1.0, bits: Bits::Uniform(bits) } };
        let (mut memory, mut payload) = (Memory::default(), Vec::new());
        let from = || RowsRef { data: &values, columns: WIDTH, rows: RowSet::Range(0..rows) };
        codec.encode(Message { key: &of_message, level: &level, memory: &mut memory }, from(), &mut payload)?;
        let amount = (4 * values.len() + payload.len()) as f64;
        let against = super::Against { amount, ..copy };
        let mut failed = None;
        bench.kernel(encode, WIDTH, against, &mut |_| {
            payload.clear();
            let message = Message { key: &of_message, level: &level, memory: &mut memory };
            failed = codec.encode(message, from(), &mut payload).err();
        });
        bench.kernel(decode, WIDTH, against, &mut |_| {
            let message = Message { key: &of_message, level: &level, memory: &mut memory };
            let into = RowsMut { data: &mut target, columns: WIDTH, rows: RowSet::Range(0..rows) };
            failed = codec.decode(message, &payload, into, Store::Set).err();
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
    }
    bench.compute = all;
    Ok(())
}
