//! Edge lists as text or Parquet, read in passes: ids are integers, and nodes are those of the edges.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::input::{Id, Input, fingerprint};
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::read::ReadOptions;
use crate::read::edge_list::{files, open_plain};
use crate::read::edge_tables::refuse_idle;
use crate::read::table::{Cell, Kind, Table};
use crate::roles::Roles;
use crate::source::{EachEdges, EdgeSource};

/// A table of edges whose ids are integers.
pub struct EdgeTable {
    path: PathBuf,
    table: Box<dyn Table>,
    ends: [usize; 2],
    ids: Ids,
}

/// Ids are below this: a bit is kept for each number.
const IDS_MAX: i64 = 1 << 36;

/// Bytes for 64 numbers: which of them are ids, and how many ids come before.
const WORD: u64 = 12;

/// Edges that are handed over at a time.
const CHUNK: usize = 1 << 14;

impl EdgeTable {
    /// Goes through the table to learn which nodes there are, in at most so many bytes of `memory`.
    ///
    /// # Errors
    ///
    /// If it cannot be read, has weights, or ids that are no numbers from 0 to 2^36, or larger than there is memory
    /// for.
    pub fn open(path: &Path, options: &ReadOptions, memory: u64) -> Result<EdgeTable> {
        let (edges, _) = files(path, options)?;
        let (table, columns) = open_plain(&edges, options, &mut Roles::default())?;
        refuse_idle(options, false, &Roles::default())?;
        let ends = [columns.source, columns.target];
        let texts = ends.iter().find(|&&end| table.rows() > 0 && table.columns()[end].kind != Kind::Integer);
        if let Some(&end) = texts {
            let what = "expected integers: ids that are texts are read beside a node table that has them (--nodes)";
            return Err(GraphError::format(path, format!("column '{}'", table.columns()[end].name), what));
        }
        let mut seen = Vec::new();
        table.scan(&ends.map(|end| (end, Kind::Integer)), &mut |_, _, cell| {
            let id = integer(cell)?;
            let word = (id / 64) as usize;
            if word >= seen.len() {
                let words = (word + 1).next_power_of_two();
                if words as u64 * WORD > memory {
                    let (needed, allowed) = ((words as u64 * WORD).div_ceil(1_000_000), memory / 1_000_000);
                    return Err(format!("the id {id} needs {needed} MB of memory, and {allowed} MB are allowed"));
                }
                seen.resize(words, 0u64);
            }
            seen[word] |= 1 << (id % 64);
            Ok(())
        })?;
        let ids = Ids::new(seen);
        if ids.count > options.limits.nodes_max.min(u64::from(u32::MAX)) {
            return Err(GraphError::too_large(path, "ids", options.limits.nodes_max));
        }
        Ok(EdgeTable { path: path.to_owned(), table, ends, ids })
    }
}

fn integer(cell: Cell) -> std::result::Result<i64, String> {
    match cell {
        Cell::Integer(id) if (0..IDS_MAX).contains(&id) => Ok(id),
        Cell::Integer(id) => Err(format!("expected an id from 0 to 2^36, found {id}")),
        _ => Err("expected a node id".to_owned()),
    }
}

impl EdgeSource for EdgeTable {
    fn nodes(&self) -> u64 {
        self.ids.count
    }

    fn pass(&self, each: &mut EachEdges) -> Result<()> {
        // A file may have one column before the other.
        let mut waiting = [VecDeque::new(), VecDeque::new()];
        let mut pairs: Vec<(u64, u64)> = Vec::with_capacity(CHUNK);
        let mut failed = None;
        let scanned = self.table.scan(&self.ends.map(|end| (end, Kind::Integer)), &mut |_, slot, cell| {
            let node = self.ids.node(integer(cell)?).ok_or("the file changed while it was read")?;
            waiting[slot].push_back(node);
            while let [Some(&source), Some(&target)] = [waiting[0].front(), waiting[1].front()] {
                for column in &mut waiting {
                    column.pop_front();
                }
                pairs.push((source, target));
                if pairs.len() == CHUNK {
                    let done = each(&pairs);
                    pairs.clear();
                    if let Err(error) = done {
                        failed = Some(error);
                        return Err("ended".to_owned());
                    }
                }
            }
            Ok(())
        });
        match failed {
            Some(error) => Err(error),
            None => scanned.and_then(|()| each(&pairs)),
        }
    }
}

impl Input for EdgeTable {
    fn name(&self) -> String {
        crate::read::dataset_name(&self.path)
    }

    fn listed(&self) -> Option<u64> {
        Some(self.table.rows() as u64)
    }

    fn is_directed(&self) -> bool {
        true
    }

    fn id(&self, node: u64) -> Option<Id<'_>> {
        self.ids.id(node).map(Id::Integer)
    }

    fn memory(&self) -> u64 {
        // A column may wait for the other.
        self.ids.seen.len() as u64 * WORD + 8 * self.table.rows_at_once() as u64
    }

    fn fingerprint(&self) -> Result<String> {
        let files = crate::read::parts::files(self.table.path(), &Limits::default())?;
        files.iter().map(|file| fingerprint(file)).collect()
    }
}

/// Which numbers are ids, and how many come before each.
struct Ids {
    seen: Vec<u64>,
    /// Ids below those of each word.
    before: Vec<u32>,
    count: u64,
    /// Whether all numbers below `count` are ids.
    are_rows: bool,
}

impl Ids {
    fn new(mut seen: Vec<u64>) -> Ids {
        seen.truncate(seen.iter().rposition(|&word| word != 0).map_or(0, |last| last + 1));
        let mut count = 0u64;
        let before = seen.iter().map(|word| {
            count += u64::from(word.count_ones());
            (count - u64::from(word.count_ones())) as u32
        });
        let before = before.collect();
        let largest = seen.last().map_or(0, |word| seen.len() as u64 * 64 - u64::from(word.leading_zeros()));
        Ids { seen, before, count, are_rows: largest == count }
    }

    fn node(&self, id: i64) -> Option<u64> {
        let (word, bit) = ((id / 64) as usize, id % 64);
        let bits = *self.seen.get(word)?;
        let below = (bits & ((1u64 << bit) - 1)).count_ones();
        (bits >> bit & 1 == 1).then(|| u64::from(self.before[word]) + u64::from(below))
    }

    /// What a node is called, where that is not its number.
    fn id(&self, node: u64) -> Option<i64> {
        if self.are_rows {
            return None;
        }
        let word = self.before.partition_point(|&before| u64::from(before) <= node) - 1;
        let mut bits = self.seen[word];
        (u64::from(self.before[word])..node).for_each(|_| bits &= bits - 1);
        Some(word as i64 * 64 + i64::from(bits.trailing_zeros()))
    }
}
