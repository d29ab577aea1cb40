//! Accounts of the ledger: what is counted, and a line of its file.

use crate::{Direction, HEADER_BYTES, Kind, Rank};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

/// One account of the ledger. Steps share an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The round of training.
    pub round: u32,
    /// The other end of the link.
    pub peer: Rank,
    /// What the bytes are about.
    pub kind: Kind,
    /// The layer, 0 where there is none.
    pub layer: u16,
    /// Which way they run through the model.
    pub direction: Direction,
}

/// What an account holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// How many frames.
    pub frames: u64,
    /// Bytes of payload, without headers.
    pub payload: u64,
    /// Payload and header bytes.
    pub framed: u64,
}

impl Count {
    /// `frames` frames that carry `payload` bytes together.
    pub fn of(frames: u64, payload: u64) -> Count {
        Count { frames, payload, framed: payload + frames * HEADER_BYTES as u64 }
    }

    /// The same so many times.
    #[must_use]
    pub fn times(self, times: u64) -> Count {
        Count { frames: self.frames * times, payload: self.payload * times, framed: self.framed * times }
    }
}

impl Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count {
            frames: self.frames + other.frames,
            payload: self.payload + other.payload,
            framed: self.framed + other.framed,
        }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Count>>(counts: I) -> Count {
        counts.fold(Count::default(), Add::add)
    }
}

/// A line of a ledger's file: what a rank sent, in which start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The rank that sent.
    pub from: Rank,
    /// The account; its peer received.
    pub entry: Entry,
    /// What it holds.
    pub count: Count,
    /// Which start of the run it belongs to: 0 for the first, one more each time that the run was resumed.
    pub start: u32,
}

impl Row {
    /// The names of a line's fields.
    pub const CSV_HEADER: &str = "round,from,to,kind,layer,direction,frames,payload_bytes,framed_bytes,start";

    /// Whether this is the first line of a ledger's file. Files of before runs had starts lack the last field.
    pub fn is_header(line: &str) -> bool {
        line == Row::CSV_HEADER || Row::CSV_HEADER.strip_suffix(",start") == Some(line)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Row { from, entry: Entry { round, peer, kind, layer, direction }, count, start } = self;
        let Count { frames, payload, framed } = count;
        let (kind, direction) = (kind.name(), direction.name());
        write!(f, "{round},{from},{peer},{kind},{layer},{direction},{frames},{payload},{framed},{start}")
    }
}

impl FromStr for Row {
    type Err = String;

    /// Reads a line without its end. A line without a start is of the first.
    fn from_str(line: &str) -> Result<Row, String> {
        let row = || {
            let fields: Vec<&str> = line.splitn(11, ',').collect();
            let (nine, start) = match fields.len() {
                9 => (&fields[..], "0"),
                10 => (&fields[..9], fields[9]),
                _ => return None,
            };
            let &[round, from, to, kind, layer, direction, frames, payload, framed] = nine else { return None };
            let rank = |field: &str| field.parse().ok().map(Rank);
            let direction = [Direction::Forward, Direction::Reverse].into_iter().find(|d| d.name() == direction)?;
            let kind = Kind::ALL.into_iter().find(|known| known.name() == kind)?;
            let (round, layer) = (round.parse().ok()?, layer.parse().ok()?);
            let entry = Entry { round, peer: rank(to)?, kind, layer, direction };
            let (frames, payload, framed) = (frames.parse().ok()?, payload.parse().ok()?, framed.parse().ok()?);
            Some(Row { from: rank(from)?, entry, count: Count { frames, payload, framed }, start: start.parse().ok()? })
        };
        row().ok_or_else(|| format!("expected an account, {}", Row::CSV_HEADER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_back_as_itself_and_what_is_no_account_is_refused() {
        let line = "7,2,1,activation_gradients,3,reverse,2,100,148,1";
        let row: Row = line.parse().unwrap();
        assert_eq!((row.from, row.entry.peer, row.entry.round, row.entry.layer), (Rank(2), Rank(1), 7, 3));
        assert_eq!((row.count, row.start), (Count::of(2, 100), 1));
        assert_eq!(row.to_string(), line);
        let older: Row = "7,2,1,activation_gradients,3,reverse,2,100,148".parse().unwrap();
        assert_eq!(older, Row { start: 0, ..row });
        let fields: Vec<&str> = line.split(',').collect();
        for (at, wrong) in [(0, "x"), (1, "-1"), (3, "gossip"), (4, "70000"), (5, "up"), (8, "-1"), (9, "")] {
            let mut fields = fields.clone();
            fields[at] = wrong;
            assert!(fields.join(",").parse::<Row>().is_err(), "{fields:?}");
        }
        for line in ["", "1,2,3", &format!("{line},1")] {
            assert!(line.parse::<Row>().is_err(), "{line}");
        }
        assert!(Row::is_header(Row::CSV_HEADER) && !Row::is_header(line));
        assert!(Row::is_header("round,from,to,kind,layer,direction,frames,payload_bytes,framed_bytes"));
    }
}
