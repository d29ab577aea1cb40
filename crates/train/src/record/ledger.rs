//! The ledger on disk: every worker's rows as they come about, and the one file that they are put together in.
//!
//! After each round a worker appends its accounts to a file of its own, in one write: what has left stays written down
//! however the process ends, and memory does not grow with the rounds. When a run ends, and before one goes on, worker
//! 0 puts the rows of all workers that it sees behind those of earlier starts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use laconic_wire::{Count, Entry, Rank, Row};

use super::aside::write_aside_with;
use crate::error::{Result, TrainError};

/// The rows of all workers and starts.
pub const FILE: &str = "ledger.csv";

/// More than any row takes.
const LINE_MAX: u64 = 512;

/// The files `NAME.K.csv` that workers have written, in the order of their numbers.
pub(super) fn of_workers(out: &Path, name: &str) -> Vec<(u64, PathBuf)> {
    let rank = |file: &str| file.strip_prefix(name)?.strip_prefix('.')?.strip_suffix(".csv")?.parse::<u64>().ok();
    let entries = std::fs::read_dir(out).into_iter().flatten().flatten();
    let mut found: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| Some((rank(entry.file_name().to_str()?)?, entry.path())))
        .filter(|(_, path)| path.is_file())
        .collect();
    found.sort_unstable();
    found
}

/// One worker's rows that are not in [`FILE`] yet.
fn part(out: &Path, rank: Rank) -> PathBuf {
    out.join(format!("ledger.{rank}.csv"))
}

/// One worker's file, to which it appends.
pub struct PartFile {
    path: PathBuf,
    file: File,
    rank: Rank,
    start: u32,
    /// Text that is still to be written: more than nothing only where the last attempt has failed.
    waiting: Vec<u8>,
}

impl PartFile {
    /// Opens a worker's file for a start of the run; the first one starts it anew.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn open(out: &Path, rank: Rank, start: u32) -> Result<PartFile> {
        let path = part(out, rank);
        let open = || {
            std::fs::create_dir_all(out)?;
            let mut file = OpenOptions::new().create(true).read(true).write(true).truncate(start == 0).open(&path)?;
            let whole = whole_lines(&mut file)?;
            file.set_len(whole)?;
            file.seek(SeekFrom::Start(whole))?;
            Ok(file)
        };
        let file = open().map_err(|source| TrainError::io(&path, source))?;
        Ok(PartFile { path, file, rank, start, waiting: Vec::new() })
    }

    /// Appends accounts, in one write where the system takes it. What it refuses is kept for the next time.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn append(&mut self, accounts: impl IntoIterator<Item = (Entry, Count)>) -> Result<()> {
        let (from, start) = (self.rank, self.start);
        let rows = accounts.into_iter().map(|(entry, count)| Row { from, entry, count, start });
        let write = || {
            rows.into_iter().try_for_each(|row| writeln!(self.waiting, "{row}"))?;
            while !self.waiting.is_empty() {
                let written = self.file.write(&self.waiting)?;
                if written == 0 {
                    return Err(std::io::ErrorKind::WriteZero.into());
                }
                self.waiting.drain(..written);
            }
            Ok(())
        };
        write().map_err(|source| TrainError::io(&self.path, source))
    }
}

/// The length of a file up to the end of its last whole line.
fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    let len = file.seek(SeekFrom::End(0))?;
    let from = file.seek(SeekFrom::Start(len.saturating_sub(LINE_MAX)))?;
    let mut tail = Vec::new();
    file.take(LINE_MAX).read_to_end(&mut tail)?;
    match tail.iter().rposition(|byte| *byte == b'\n') {
        None if from > 0 => Err(std::io::Error::new(std::io::ErrorKind::InvalidData, "no row is so long")),
        end => Ok(from + end.map_or(0, |at| at as u64 + 1)),
    }
}

/// Puts the rows of workers' files behind those of [`FILE`], if it `continues`, and removes the workers' files; `each`
/// is shown every row, in order.
///
/// # Errors
/// If a line is no row, or the operating system refuses.
pub fn put_together(out: &Path, continues: bool, each: &mut dyn FnMut(&Row)) -> Result<()> {
    let path = out.join(FILE);
    // Of all workers that the run has had.
    let parts: Vec<PathBuf> = of_workers(out, "ledger").into_iter().map(|(_, path)| path).collect();
    let continues = continues && path.is_file();
    if continues && parts.is_empty() {
        return read_rows(&path, &mut |row| {
            each(row);
            Ok(())
        });
    }
    write_aside_with(&path, |file| {
        let io = |source| TrainError::io(&path, source);
        writeln!(file, "{}", Row::CSV_HEADER).map_err(io)?;
        let mut put = |row: &Row| {
            each(row);
            writeln!(file, "{row}").map_err(io)
        };
        let mut known = BTreeSet::new();
        if continues {
            read_rows(&path, &mut |row| {
                known.insert((row.start, row.from));
                put(row)
            })?;
        }
        for part in &parts {
            // A file whose rows are in already was left by somebody who was killed before it could be removed.
            let is_new = |row: &Row| !known.contains(&(row.start, row.from));
            let (mut latest, mut order) = ((0, 0), InOrder::default());
            read_rows(part, &mut |row| {
                if is_new(row) && !is_next(&mut latest, row) {
                    order.enter(row);
                }
                Ok(())
            })?;
            latest = (0, 0);
            read_rows(part, &mut |row| {
                if is_new(row) && is_next(&mut latest, row) {
                    order.put_before(latest, &mut put)?;
                    order.enter(row);
                }
                Ok(())
            })?;
            order.put_before((u32::MAX, u32::MAX), &mut put)?;
        }
        Ok(())
    })?;
    parts.iter().try_for_each(|part| std::fs::remove_file(part).map_err(|source| TrainError::io(part, source)))
}

/// Whether no row of a later round of the same start, or of a later start, came before this one.
fn is_next(latest: &mut (u32, u32), row: &Row) -> bool {
    let at = (row.start, row.entry.round);
    let is_next = at >= *latest;
    *latest = at.max(*latest);
    is_next
}

/// Adds up rows of one account, and puts them in order: frames of a round may have come after the rows of later ones
/// were written, as those with which independent trainers take their leave.
#[derive(Default)]
struct InOrder {
    /// By start, round and sender.
    accounts: BTreeMap<(u32, u32, Rank, Entry), Count>,
}

impl InOrder {
    fn enter(&mut self, row: &Row) {
        *self.accounts.entry((row.start, row.entry.round, row.from, row.entry)).or_default() += row.count;
    }

    /// Shows what is there of earlier rounds than that of this start; none that is still to be entered is of them.
    fn put_before(&mut self, at: (u32, u32), put: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
        while let Some(account) = self.accounts.first_entry() {
            let (start, round, from, entry) = *account.key();
            if (start, round) >= at {
                break;
            }
            put(&Row { from, entry, count: account.remove(), start })?;
        }
        Ok(())
    }
}

/// Shows every row of a file. A last line without an end was not finished and does not count.
fn read_rows(path: &Path, each: &mut dyn FnMut(&Row) -> Result<()>) -> Result<()> {
    let io = |source| TrainError::io(path, source);
    let mut file = BufReader::new(File::open(path).map_err(io)?);
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        file.by_ref().take(LINE_MAX).read_line(&mut line).map_err(io)?;
        let Some(text) = line.strip_suffix('\n') else {
            let is_end = (line.len() as u64) < LINE_MAX;
            return if is_end {
                Ok(())
            } else {
                Err(TrainError::file(path, format!("line {number}: no row is so long")))
            };
        };
        if number > 1 || !Row::is_header(text) {
            each(&text.parse().map_err(|error| TrainError::file(path, format!("line {number}: {error}")))?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use laconic_wire::{Direction, Kind};

    fn entry(round: u32, peer: u32) -> Entry {
        Entry { round, peer: Rank(peer), kind: Kind::Activations, layer: 1, direction: Direction::Forward }
    }

    fn rows(out: &Path, continues: bool) -> Vec<String> {
        let mut shown = Vec::new();
        put_together(out, continues, &mut |row| shown.push(row.to_string())).expect("rows");
        let text = std::fs::read_to_string(out.join(FILE)).expect("a ledger");
        let (header, written) = text.split_once('\n').expect("a header");
        assert_eq!(header, Row::CSV_HEADER);
        assert_eq!(written.lines().collect::<Vec<_>>(), shown, "what is shown is what is written");
        shown
    }

    #[test]
    fn rows_are_ordered_by_start_rank_and_account_and_none_is_lost_or_counted_twice() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path();
        for rank in [1, 0] {
            let mut file = PartFile::open(out, Rank(rank), 0).expect("a file");
            file.append([(entry(1, 1 - rank), Count::of(1, 10)), (entry(1, 2), Count::of(1, 1))]).expect("appended");
            file.append([(entry(1, 1 - rank), Count::of(2, 5)), (entry(2, 2), Count::of(1, 1))]).expect("appended");
        }
        let first = rows(out, false);
        let expected = [
            "1,0,1,activations,1,forward,3,15,87,0",
            "1,0,2,activations,1,forward,1,1,25,0",
            "2,0,2,activations,1,forward,1,1,25,0",
        ];
        assert_eq!(first[..3], expected);
        assert_eq!(first.len(), 6);
        assert!(!part(out, Rank(0)).exists() && !part(out, Rank(1)).exists());
        let mut file = PartFile::open(out, Rank(1), 1).expect("a file");
        file.append([(entry(2, 0), Count::of(1, 0))]).expect("appended");
        let again = std::fs::read(part(out, Rank(1))).expect("a part");
        let second = rows(out, true);
        assert_eq!(second[..6], first);
        assert_eq!(second[6..], ["2,1,0,activations,1,forward,1,0,24,1"]);
        // Killed between writing the ledger and removing the part.
        std::fs::write(part(out, Rank(1)), again).expect("written");
        assert_eq!(rows(out, true), second);
    }

    #[test]
    fn rows_that_come_late_stand_where_they_belong() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = PartFile::open(folder.path(), Rank(1), 0).expect("a file");
        for round in [0, 1, 2, 3] {
            file.append([(entry(round, 0), Count::of(1, 4))]).expect("appended");
        }
        file.append([(entry(0, 0), Count::of(1, 6)), (entry(1, 2), Count::of(1, 1))]).expect("appended");
        let expected = [
            "0,1,0,activations,1,forward,2,10,58,0",
            "1,1,0,activations,1,forward,1,4,28,0",
            "1,1,2,activations,1,forward,1,1,25,0",
            "2,1,0,activations,1,forward,1,4,28,0",
            "3,1,0,activations,1,forward,1,4,28,0",
        ];
        assert_eq!(rows(folder.path(), false), expected);
    }

    #[test]
    fn a_line_that_was_not_finished_is_left_out_and_overwritten_and_other_text_is_an_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path();
        let row = "1,0,1,activations,1,forward,1,10,34,0";
        std::fs::write(part(out, Rank(0)), format!("{row}\n1,0,2,activations,1,for")).expect("written");
        let mut file = PartFile::open(out, Rank(0), 1).expect("a file");
        file.append([(entry(2, 1), Count::of(1, 0))]).expect("appended");
        assert_eq!(rows(out, true), [row, "2,0,1,activations,1,forward,1,0,24,1"]);
        for wrong in ["1,0,1,gossip,1,forward,1,10,34,0\n", &format!("{}\n", "1".repeat(600))] {
            std::fs::write(part(out, Rank(0)), wrong).expect("written");
            let error = put_together(out, true, &mut |_| {}).expect_err("no row").to_string();
            assert!(error.contains("ledger.0.csv") && error.contains("line 1"), "{error}");
        }
    }

    #[test]
    fn rows_of_runs_without_starts_are_of_the_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let header = "round,from,to,kind,layer,direction,frames,payload_bytes,framed_bytes";
        let text = format!("{header}\n1,0,1,activations,1,forward,1,10,34\n");
        std::fs::write(folder.path().join(FILE), text).expect("written");
        let mut file = PartFile::open(folder.path(), Rank(0), 1).expect("a file");
        file.append([(entry(2, 1), Count::of(1, 0))]).expect("appended");
        let rows = rows(folder.path(), true);
        assert_eq!(rows, ["1,0,1,activations,1,forward,1,10,34,0", "2,0,1,activations,1,forward,1,0,24,1"]);
    }
}
