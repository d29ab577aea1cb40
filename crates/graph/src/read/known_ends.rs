//! The ends of edges whose nodes are in a table: looked up as they are read, so that their ids are never all in memory,
//! and on all threads where the table can be read in pieces.

use super::column::{Cell, Kind, Table};
use super::id_index::{IdIndex, NOWHERE};
use super::table::{IdColumn, Texts};
use super::text_index::TextIndex;
use crate::edges::in_pieces;
use crate::error::GraphError;
use crate::limits::Limits;
use crate::memory::afford;
use rayon::prelude::*;

/// Texts that are looked up together: as many as an L2 cache holds.
const TEXTS: usize = 4096;

/// So many bytes of texts are looked up whatever their number: one text of a dictionary may stand in all rows.
const TEXT_BYTES: usize = 1 << 20;

/// The numbers of the nodes at both ends of all rows; 8 bytes a row. `None` where something is wrong with an id, which
/// reading all of them says, or one is none of a node's.
pub fn known_ends(
    table: &dyn Table,
    ends: [(usize, Kind); 2],
    ids: &IdColumn,
    limits: &Limits,
) -> Option<[Vec<u32>; 2]> {
    // Numbers that have lost digits look like ids.
    if ends.iter().any(|&(end, _)| table.columns()[end].kind == Kind::Float) {
        return None;
    }
    afford(table.rows() as u64 * 2 * size_of::<u32>() as u64).ok()?;
    let index = IdIndex::new(ids).ok()?;
    let pieces = table.pieces();
    let mut numbers = [(); 2].map(|()| vec![NOWHERE; table.rows()]);
    let [sources, targets] = &mut numbers;
    let into = in_pieces(sources, &pieces).into_par_iter().zip(in_pieces(targets, &pieces)).enumerate();
    let read = into.try_for_each(|(piece, (sources, targets))| {
        let mut ends_of_piece = [sources, targets].map(|numbers| Ends { numbers, done: 0, texts: Texts::default() });
        table.scan_piece(piece, &ends, &mut |row, slot, cell| {
            let ends = &mut ends_of_piece[slot];
            // A file may have grown since its rows were counted.
            if row >= ends.numbers.len() {
                return Err("more rows than were counted".to_owned());
            }
            match (cell, &index) {
                (Cell::Text(id), IdIndex::Texts(index)) if id.len() as u64 <= limits.string_bytes_max => {
                    ends.texts.push(id);
                    if ends.texts.len() == TEXTS || ends.texts.bytes() >= TEXT_BYTES {
                        ends.look_up(index);
                    }
                }
                (Cell::Integer(id), _) => ends.numbers[row] = index.integer(id).unwrap_or(NOWHERE),
                _ => return Err("expected a node id".to_owned()),
            }
            Ok(())
        })?;
        if let IdIndex::Texts(index) = &index {
            ends_of_piece.iter_mut().for_each(|ends| ends.look_up(index));
        }
        Ok::<(), GraphError>(())
    });
    read.ok()?;
    numbers.iter().all(|numbers| numbers.par_iter().all(|&number| number != NOWHERE)).then_some(numbers)
}

/// One end of all rows of a piece.
struct Ends<'a> {
    numbers: &'a mut [u32],
    /// So many rows have their numbers.
    done: usize,
    /// The ids of those behind them.
    texts: Texts,
}

impl Ends<'_> {
    fn look_up(&mut self, index: &TextIndex) {
        let until = self.done + self.texts.len();
        index.rows_of(&self.texts, 0, &mut self.numbers[self.done..until], NOWHERE);
        self.done = until;
        self.texts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::heading::{Header, Heading};
    use crate::read::table::open_table;
    use std::collections::HashMap;
    use std::fmt::Write;

    /// Files of a folder, one of them longer than what is looked up together, against a map.
    #[test]
    fn each_end_of_each_row_is_the_node_that_a_map_finds() {
        let folder = tempfile::tempdir().unwrap();
        // Some are so long that few of them are looked up together.
        let width = |number: usize| if number % 50 == 7 { 9000 } else { 1 + number % 14 };
        let spelt = |number: usize| format!("{number:0>width$}x", width = width(number));
        let mut expected = [Vec::new(), Vec::new()];
        let names: Vec<String> = (0..2101).map(|number| spelt(number * 5 % 2101)).collect();
        let map: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
        for (file, rows) in [10_000, 1, 4096, 0, 17].into_iter().enumerate() {
            let mut text = "source,target\n".to_owned();
            for row in 0..rows {
                let ends = [row * 7 % 2100, row * 13 % 2101].map(spelt);
                writeln!(text, "{},{}", ends[0], ends[1]).unwrap();
                for (numbers, end) in expected.iter_mut().zip(&ends) {
                    numbers.push(map[end.as_str()]);
                }
            }
            std::fs::write(folder.path().join(format!("part-{file}.csv")), text).unwrap();
        }
        let mut ids = Texts::default();
        names.iter().for_each(|name| ids.push(name));
        let mut fewer = Texts::default();
        names[1..].iter().for_each(|name| fewer.push(name));
        let limits = Limits::default();
        let heading = Heading { given: Header::Yes, chosen: &[], usual: &[], ends: true };
        let table = open_table(folder.path(), &limits, &heading).unwrap();
        let ends = [(0, Kind::Text), (1, Kind::Text)];
        assert_eq!(known_ends(&*table, ends, &IdColumn::Texts(ids), &limits), Some(expected));
        assert_eq!(known_ends(&*table, ends, &IdColumn::Texts(fewer), &limits), None);
        assert!(table.pieces().len() > 1);
    }
}
