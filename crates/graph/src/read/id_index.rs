//! From the user's ids to node numbers.

use super::distinct_ids::{dense_range, said_of_repeated};
use super::table::IdColumn;
use super::text_index::TextIndex;
use crate::dataset::Ids;
use rayon::prelude::*;
use std::collections::HashMap;

/// Finds the number of a node by its id.
pub enum IdIndex<'a> {
    /// The id is the number, below this bound.
    Row(usize),
    /// Integers close together: a table from the least id on; [`NOWHERE`] for ids that are not there.
    Dense(i64, Vec<u32>),
    /// Integers far apart.
    Integers(HashMap<i64, u32>),
    /// Texts.
    Texts(TextIndex<'a>),
}

/// Stands for an id that is none of a node's.
pub const NOWHERE: u32 = u32::MAX;

impl<'a> IdIndex<'a> {
    /// The index of ids in node order; an error if two are the same.
    pub fn new(ids: &'a IdColumn) -> Result<Self, String> {
        IdIndex::of(ids).map_err(|rows| said_of_repeated(ids, rows, &|row| row))
    }

    /// The same, or the first two rows that have one id.
    pub fn of(ids: &'a IdColumn) -> Result<Self, (u32, usize)> {
        match ids {
            IdColumn::Texts(ids) => TextIndex::new(ids).map(IdIndex::Texts),
            IdColumn::Integers(ids) => match dense_range(ids) {
                Some((least, span)) => {
                    let mut places = vec![NOWHERE; span];
                    for (row, &id) in ids.iter().enumerate() {
                        let place = &mut places[(id - least) as usize];
                        if *place != NOWHERE {
                            return Err((*place, row));
                        }
                        *place = row as u32;
                    }
                    Ok(IdIndex::Dense(least, places))
                }
                None => {
                    let mut places = HashMap::with_capacity(ids.len());
                    for (row, &id) in ids.iter().enumerate() {
                        if let Some(first) = places.insert(id, row as u32) {
                            return Err((first, row));
                        }
                    }
                    Ok(IdIndex::Integers(places))
                }
            },
        }
    }

    /// The number of the node with this integer id.
    pub fn integer(&self, id: i64) -> Option<u32> {
        match self {
            IdIndex::Row(nodes) => u32::try_from(id).ok().filter(|&row| (row as usize) < *nodes),
            IdIndex::Dense(least, places) => {
                let place = usize::try_from(id.checked_sub(*least)?).ok()?;
                places.get(place).copied().filter(|&place| place != NOWHERE)
            }
            IdIndex::Integers(places) => places.get(&id).copied(),
            IdIndex::Texts(_) => None,
        }
    }

    /// The number of the node with this text id.
    pub fn text(&self, id: &str) -> Option<u32> {
        match self {
            IdIndex::Texts(places) => places.row(id),
            _ => None,
        }
    }
}

/// Rows that a thread looks up before it takes others.
const ROWS: usize = 1 << 16;

impl IdIndex<'_> {
    /// The numbers of all these ids, and [`NOWHERE`] for those that are none of a node's.
    pub fn numbers(&self, ids: &IdColumn) -> Vec<u32> {
        let mut numbers = vec![NOWHERE; ids.len()];
        let find = |(chunk, numbers): (usize, &mut [u32])| {
            let start = chunk * ROWS;
            match (ids, self) {
                (IdColumn::Texts(ids), IdIndex::Texts(index)) => index.rows_of(ids, start, numbers, NOWHERE),
                (IdColumn::Texts(_), _) => {}
                (IdColumn::Integers(ids), _) => {
                    for (number, id) in numbers.iter_mut().zip(&ids[start..]) {
                        *number = self.integer(*id).unwrap_or(NOWHERE);
                    }
                }
            }
        };
        numbers.par_chunks_mut(ROWS).enumerate().for_each(find);
        numbers
    }
}

/// The ids as a dataset keeps them.
pub fn into_ids(ids: IdColumn) -> Ids {
    match ids {
        IdColumn::Integers(ids) if ids.iter().enumerate().all(|(row, &id)| row as i64 == id) => Ids::Row,
        IdColumn::Integers(ids) => Ids::Integers(ids),
        IdColumn::Texts(ids) => Ids::Strings(ids.iter().map(str::to_owned).collect()),
    }
}
