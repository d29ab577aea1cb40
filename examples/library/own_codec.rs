//! A codec of one's own: of each message only the largest values travel, and what was left out is added to the next
//! message (top-k with error feedback: Stich, Cordonnier and Jaggi, 2018). `cargo run --release --example own_codec`

use laconic_graph::synth::{SbmSpec, sbm};
use laconic_train::{Members, Options as RunOptions, train};
use laconic_wire::codec::{Codec, CodecId, CodecKind, CodecRegistry, Level, Message, Options, RowsMut, RowsRef, Store};
use laconic_wire::{Result, WireError};

/// Sends the share `keep` of the values of a message, rounded up, as position and value: 8 bytes each.
struct TopK {
    keep: f64,
    /// Whether the caller adds what was left out to the next message.
    fed_back: bool,
}

/// What a registry needs to know. The numbers of codecs from outside start at 32.
pub static TOP_K: CodecKind = CodecKind {
    name: "top_k",
    number: 32,
    options: &["keep"],
    remembers: true,
    leaves_out: true,
    build,
    ..CodecKind::PLAIN
};

fn build(options: &Options, _: &CodecRegistry) -> Result<Box<dyn Codec>> {
    let keep = options.number("keep")?.unwrap_or(0.1);
    let refuse = || options.refuse("keep", "a share above 0, at most 1");
    if keep > 0.0 && keep <= 1.0 { Ok(Box::new(TopK { keep, fed_back: false })) } else { Err(refuse()) }
}

impl Codec for TopK {
    fn id(&self) -> CodecId {
        TOP_K.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        8 * (self.keep * (rows * columns) as f64).ceil() as usize
    }

    fn expect_feedback(&mut self) {
        self.fed_back = true;
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let mut values: Vec<f32> = (0..rows.rows.len()).flat_map(|position| rows.row(position)).copied().collect();
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (row, column) = (rows.rows.at(at / rows.columns), at % rows.columns);
            return Err(WireError::NotFinite { codec: TOP_K.name, row, column, value: values[at] });
        }
        // What earlier messages of this stream have left out.
        values.iter_mut().zip(&message.memory.values).for_each(|(value, left)| *value += left);
        let mut largest: Vec<u32> = (0..values.len() as u32).collect();
        largest.sort_by(|a, b| values[*b as usize].abs().total_cmp(&values[*a as usize].abs()));
        for &position in &largest[..self.bytes(message.level, rows.rows.len(), rows.columns) / 8] {
            let value = std::mem::take(&mut values[position as usize]);
            into.extend((u64::from(position) << 32 | u64::from(value.to_bits())).to_le_bytes());
        }
        message.memory.values = if self.fed_back { Vec::new() } else { values };
        Ok(())
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (rows, columns) = (into.rows.len(), into.columns);
        let (expected, found) = (self.bytes(message.level, rows, columns) as u64, payload.len() as u64);
        if found != expected {
            return Err(WireError::PayloadSize { what: TOP_K.name, expected, found });
        }
        let entries = || payload.as_chunks().0.iter().map(|entry| u64::from_le_bytes(*entry));
        if entries().any(|entry| (entry >> 32) as usize >= rows * columns) {
            return Err(WireError::malformed("a position behind the end of the message"));
        }
        (0..rows).filter(|_| store == Store::Set).for_each(|position| into.row(position).fill(0.0));
        for entry in entries() {
            let at = (entry >> 32) as usize;
            into.row(at / columns)[at % columns] += f32::from_bits(entry as u32);
        }
        Ok(())
    }
}

/// Trains the same graph with all values and with a tenth of them.
pub fn main() -> laconic_train::Result<()> {
    let graph = sbm(&SbmSpec { nodes: 2000, classes: 5, features: 32, feature_signal: 0.5, ..SbmSpec::default() })?;
    let members = Members::default().with_codec(&TOP_K)?;
    let text = "model = { arch='gcn', hidden=64 }\nschedule.cache_inputs=false\ntrain = { epochs=60, eval_every=10 }";
    for codec in ["'exact'", "{ codec = 'top_k', keep = 0.1 }"] {
        let config = members.parse(text, &[format!("messages={{ forward = {codec}, backward = {codec} }}")])?;
        let run = train(&config, graph.clone(), RunOptions { members: members.clone(), ..RunOptions::default() })?;
        println!("{codec}: accuracy {:.3}, {} bytes", run.test("accuracy").unwrap_or(0.0), run.summary.bytes.total);
    }
    Ok(())
}
