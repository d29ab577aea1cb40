//! Codecs from outside that ask for what none of this crate's does: a matrix as it is, a state in front of a stream,
//! sizes that depend on values.

use laconic_wire::codec::{
    Codec, CodecId, CodecKind, CodecRegistry, Level, Memory, Message, Options, RowsMut, RowsRef, Store,
};
use laconic_wire::{MessageKey, Result, WireError, laws};

fn values(rows: &RowsRef<'_>) -> Vec<f32> {
    (0..rows.rows.len()).flat_map(|position| rows.row(position)).copied().collect()
}

fn refuse_not_finite(name: &'static str, rows: &RowsRef<'_>) -> Result<()> {
    for position in 0..rows.rows.len() {
        if let Some(column) = rows.row(position).iter().position(|value| !value.is_finite()) {
            let value = rows.row(position)[column];
            return Err(WireError::NotFinite { codec: name, row: rows.rows.at(position), column, value });
        }
    }
    Ok(())
}

fn store_value(into: &mut RowsMut<'_>, store: Store, (row, column): (usize, usize), value: f32) {
    let there = &mut into.row(row)[column];
    *there = if store == Store::Set { value } else { *there + value };
}

fn expect(name: &'static str, expected: usize, payload: &[u8]) -> Result<()> {
    let (expected, found) = (expected as u64, payload.len() as u64);
    if expected == found { Ok(()) } else { Err(WireError::PayloadSize { what: name, expected, found }) }
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

/// The best that one column times one row can say of a matrix, by one step of the power method, which begins where the
/// last one ended (Vogels, Karimireddy and Jaggi, 2019).
pub struct Power;

/// What a registry needs to know.
pub static POWER: CodecKind = CodecKind {
    name: "power",
    number: 34,
    remembers: true,
    of_matrices: true,
    build: |_, _| Ok(Box::new(Power)),
    ..CodecKind::PLAIN
};

fn unit(mut values: Vec<f64>) -> Vec<f64> {
    let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    values.iter_mut().for_each(|value| *value = if norm > 0.0 { *value / norm } else { 0.0 });
    values
}

impl Codec for Power {
    fn id(&self) -> CodecId {
        POWER.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        if rows * columns == 0 { 0 } else { 4 * (rows + columns) }
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        refuse_not_finite(POWER.name, &rows)?;
        let (count, columns) = (rows.rows.len(), rows.columns);
        if count * columns == 0 {
            return Ok(());
        }
        let start = &mut message.memory.values;
        if start.len() != columns {
            *start = vec![1.0; columns];
        }
        // Scaled down, so that no product is more than a number can be.
        let largest = values(&rows).iter().fold(0f64, |most, value| most.max(f64::from(value.abs()))).max(1e-30);
        let row = |position| rows.row(position).iter().map(move |value| f64::from(*value) / largest);
        let dot = |position| row(position).zip(start.iter()).map(|(value, start)| value * f64::from(*start)).sum();
        let column = unit((0..count).map(dot).collect());
        let mut across = vec![0.0; columns];
        for (position, factor) in column.iter().enumerate() {
            across.iter_mut().zip(row(position)).for_each(|(sum, value)| *sum += factor * value);
        }
        column.iter().for_each(|value| into.extend((*value as f32).to_le_bytes()));
        across.iter().for_each(|value| into.extend(((value * largest) as f32).clamp(f32::MIN, f32::MAX).to_le_bytes()));
        *start = unit(across).into_iter().map(|value| value as f32 + 1e-6).collect();
        Ok(())
    }

    fn decode(&mut self, _: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        expect(POWER.name, self.bytes(&Level::WHOLE, count, columns), payload)?;
        let factors = floats(payload);
        for row in 0..if columns == 0 { 0 } else { count } {
            for column in 0..columns {
                store_value(&mut into, store, (row, column), factors[row] * factors[count + column]);
            }
        }
        Ok(())
    }
}

/// Zeros stay away: a position and a value for each other number. Loses nothing but the sign of zero.
pub struct Sparse;

/// What a registry needs to know.
pub static SPARSE: CodecKind =
    CodecKind { name: "sparse", number: 35, varies: true, build: |_, _| Ok(Box::new(Sparse)), ..CodecKind::PLAIN };

impl Codec for Sparse {
    fn id(&self) -> CodecId {
        SPARSE.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        8 * rows * columns
    }

    fn encode(&mut self, _: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        refuse_not_finite(SPARSE.name, &rows)?;
        for (at, value) in values(&rows).into_iter().enumerate().filter(|(_, value)| *value != 0.0) {
            into.extend((at as u32).to_le_bytes());
            into.extend(value.to_le_bytes());
        }
        Ok(())
    }

    fn decode(&mut self, _: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        let entries: Vec<u64> = payload.as_chunks().0.iter().map(|&entry| u64::from_le_bytes(entry)).collect();
        expect(SPARSE.name, 8 * entries.len(), payload)?;
        if entries.iter().any(|entry| *entry as u32 as usize >= count * columns) {
            return Err(WireError::malformed("a position behind the end of the message"));
        }
        (0..count).filter(|_| store == Store::Set).for_each(|row| into.row(row).fill(0.0));
        for entry in entries {
            let at = entry as u32 as usize;
            store_value(&mut into, Store::Add, (at / columns, at % columns), f32::from_bits((entry >> 32) as u32));
        }
        Ok(())
    }
}

/// A byte a value, which names one of 256 steps between the ends that a stream's first rows have, told in front of
/// them: what lies outside is moved to the end.
pub struct Scale;

/// What a registry needs to know.
pub static SCALE: CodecKind = CodecKind {
    name: "scale",
    number: 36,
    remembers: true,
    prepares: true,
    build: |_, _| Ok(Box::new(Scale)),
    ..CodecKind::PLAIN
};

fn ends_of(memory: &Memory) -> Result<[f32; 2]> {
    // Of rows without columns there is no state.
    if memory.is_empty() {
        return Ok([0.0; 2]);
    }
    memory.values[..].try_into().map_err(|_| WireError::malformed("a scale without ends"))
}

impl Codec for Scale {
    fn id(&self) -> CodecId {
        SCALE.id()
    }

    fn bytes(&self, _: &Level<'_>, rows: usize, columns: usize) -> usize {
        rows * columns
    }

    fn state_bytes(&self, columns: usize) -> usize {
        if columns > 0 { 8 } else { 0 }
    }

    fn prepare(&mut self, _: &MessageKey, rows: &RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        refuse_not_finite(SCALE.name, rows)?;
        let ends = values(rows).into_iter().fold([0f32; 2], |[low, high], value| [low.min(value), high.max(value)]);
        ends.iter().for_each(|end| into.extend((end / 2.0).to_le_bytes()));
        Ok(())
    }

    fn take_state(&mut self, state: &[u8], _: usize, memory: &mut Memory) -> Result<()> {
        expect(SCALE.name, 8, state)?;
        memory.values = floats(state);
        match memory.values[..] {
            [low, high] if low.is_finite() && high.is_finite() && low.abs().max(high.abs()) <= f32::MAX / 2.0 => Ok(()),
            _ => {
                memory.values.clear();
                Err(WireError::malformed("a scale without ends"))
            }
        }
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        refuse_not_finite(SCALE.name, &rows)?;
        let ends = ends_of(message.memory)?;
        let step = |value: f32| ((value / 2.0 - ends[0]) / (ends[1] - ends[0]) * 255.0).round() as u8;
        into.extend(values(&rows).into_iter().map(step));
        Ok(())
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let (count, columns) = (into.rows.len(), into.columns);
        expect(SCALE.name, count * columns, payload)?;
        let ends = ends_of(message.memory)?;
        for (at, step) in payload.iter().enumerate() {
            let value = 2.0 * (ends[0] + (ends[1] - ends[0]) * f32::from(*step) / 255.0);
            store_value(&mut into, store, (at / columns, at % columns), value);
        }
        Ok(())
    }
}

#[test]
fn the_laws_of_codecs_hold_for_codecs_from_outside() {
    for kind in [&POWER, &SPARSE, &SCALE] {
        let registry = CodecRegistry::default().with(kind).unwrap();
        laws::codecs::check(kind, &registry, &[Options::default()]);
    }
}
