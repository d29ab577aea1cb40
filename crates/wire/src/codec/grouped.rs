//! `grouped`: several rows as one, for a codec that says something of each row, such as the ends of its values: it is
//! said once for all of them.

use super::values::not_finite;
use super::{Codec, CodecId, CodecKind, CodecRegistry, Level, Message, Options, RowSet, RowsMut, RowsRef, Store};
use crate::Result;

/// Sends groups of at most so many rows, all equally many but for a few copies of the last row at the end, through
/// another codec, each group as one row with the columns of all.
///
/// With `quantised` in 2 bits a row of 40 columns takes 10 bytes and a sixteenth where 64 share a zero point and a
/// step, in place of 14; its error is measured by how far apart the ends of the whole group are. It costs one pass over
/// the values more. What else is true of the codec inside is true of it.
pub struct Grouped {
    inner: Box<dyn Codec>,
    rows: usize,
    /// The values of a message one behind the other, the last row again and again.
    values: Vec<f32>,
}

/// Rows of a group at most.
const ROWS: std::ops::RangeInclusive<usize> = 2..=4096;

/// Where none are asked for.
const USUAL: f64 = 64.0;

impl Grouped {
    /// The entry in registries. Options: `inner`, the codec of groups, `exact` if none is named; `rows`, 64 if not
    /// given.
    pub const KIND: CodecKind = CodecKind {
        name: "grouped",
        number: 9,
        options: &["inner", "rows"],
        wraps: true,
        lossless: true,
        mixes: true,
        build: |options, registry| Ok(Box::new(Grouped::with_options(options, registry)?)),
        ..CodecKind::PLAIN
    };

    /// The codec that the options describe, with an inner one of this registry that prepares nothing.
    fn with_options(options: &Options, registry: &CodecRegistry) -> Result<Grouped> {
        let rows = options.number("rows")?.unwrap_or(USUAL);
        if rows.fract() != 0.0 || !ROWS.contains(&(rows as usize)) {
            return Err(options.refuse("rows", "a whole number from 2 to 4096"));
        }
        let kind = registry.describe_inner(options)?;
        if kind.prepares || kind.of_matrices {
            return Err(options.refuse("inner", "a codec of rows without a state in front"));
        }
        Ok(Grouped { inner: registry.build_inner(options)?, rows: rows as usize, values: Vec::new() })
    }

    /// How many groups, and of how many rows each.
    fn groups(&self, rows: usize) -> [usize; 2] {
        let groups = rows.div_ceil(self.rows);
        [groups, rows.div_ceil(groups.max(1))]
    }
}

impl Codec for Grouped {
    fn id(&self) -> CodecId {
        Grouped::KIND.id()
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        let [groups, each] = self.groups(rows);
        self.inner.bytes(&level.of_all_rows(), groups, each * columns)
    }

    fn expect_feedback(&mut self) {
        self.inner.expect_feedback();
    }

    fn span(&self, bits: u8, row: &[f32]) -> f64 {
        self.inner.span(bits, row)
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> Result<()> {
        let Message { key, level, memory } = message;
        let (count, columns) = (rows.rows.len(), rows.columns);
        let [groups, each] = self.groups(count);
        self.values.clear();
        (0..count).for_each(|position| self.values.extend_from_slice(rows.row(position)));
        if self.values.iter().any(|value| !value.is_finite()) {
            return Err(not_finite(Grouped::KIND.name, &rows));
        }
        (count..groups * each).for_each(|_| self.values.extend_from_slice(rows.row(count - 1)));
        let level = level.of_all_rows();
        let groups = RowsRef { data: &self.values, columns: each * columns, rows: RowSet::Range(0..groups) };
        self.inner.encode(Message { key, level: &level, memory }, groups, into)
    }

    fn decode(&mut self, message: Message<'_>, payload: &[u8], mut into: RowsMut<'_>, store: Store) -> Result<()> {
        let Message { key, level, memory } = message;
        let (count, columns) = (into.rows.len(), into.columns);
        let [groups, each] = self.groups(count);
        // Every value is overwritten by the inner codec, or nothing of this is read.
        self.values.resize(groups * each * columns, 0.0);
        let level = level.of_all_rows();
        let all = RowsMut { data: &mut self.values, columns: each * columns, rows: RowSet::Range(0..groups) };
        self.inner.decode(Message { key, level: &level, memory }, payload, all, Store::Set)?;
        for (position, values) in self.values.chunks_exact(columns.max(1)).take(count).enumerate() {
            let row = into.row(position);
            match store {
                Store::Set => row.copy_from_slice(values),
                Store::Add => row.iter_mut().zip(values).for_each(|(value, more)| *value += more),
            }
        }
        Ok(())
    }
}
