//! The chain: each line has its number, the digest of the line before, and a time that never goes back.

use std::io::{BufRead, Read, Result};

use super::line::Line;
use crate::digest::Digest;
use crate::time::Time;

/// The most bytes that a line of a log may have, with its end.
pub const LINE_MAX: usize = 64 * 1024;

/// How far a log has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Chain {
    /// How many lines there are.
    pub(super) lines: u64,
    /// How many bytes they have, with their ends.
    pub(super) bytes: u64,
    /// The digest of the last line, without its end; empty if there is none.
    pub(super) last: String,
    /// The time of the last line.
    pub(super) time: Option<Time>,
}

/// What was read next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A line, which lies in the buffer without its end.
    Line,
    /// So many bytes that no end of a line follows.
    Torn(u64),
    /// More bytes than a line may have.
    TooLong,
    /// Nothing more.
    End,
}

/// Reads the next line.
pub(super) fn next(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> Result<Next> {
    buffer.clear();
    input.by_ref().take(LINE_MAX as u64).read_until(b'\n', buffer)?;
    Ok(match buffer.pop() {
        None => Next::End,
        Some(b'\n') => Next::Line,
        Some(_) if buffer.len() + 1 == LINE_MAX && !input.fill_buf()?.is_empty() => Next::TooLong,
        Some(_) => Next::Torn(buffer.len() as u64 + 1),
    })
}

impl Chain {
    /// Counts the bytes of a line, without its end, as the last line.
    pub(super) fn append(&mut self, bytes: &[u8], time: Time) {
        self.lines += 1;
        self.bytes += bytes.len() as u64 + 1;
        self.last = Digest::of(bytes).to_string();
        self.time = Some(time);
    }

    /// Takes a line that was read. What is wrong with it goes to `faults`; a line that says nothing is `None`. Either
    /// way the next one is expected to follow this.
    pub(super) fn take(&mut self, bytes: &[u8], mut faults: impl FnMut(String)) -> Option<Line> {
        let before = self.time.unwrap_or(Time::from_millis(0));
        let mut now = before;
        let line = Line::parse(bytes);
        match line.as_ref().map(Line::place) {
            Ok(Some((seq, prev, time))) => {
                if seq != self.lines + 1 {
                    faults(format!("its number is {seq}, and it is line {}", self.lines + 1));
                }
                if prev != self.last {
                    faults("the line before is not the one that this was written after".to_owned());
                }
                match time.parse() {
                    Ok(time) if time < before => faults(format!("written at {time}, and the line before at {before}")),
                    Ok(time) => now = time,
                    Err(what) => faults(what),
                }
            }
            Ok(None) => faults("no number, no time or no digest of the line before".to_owned()),
            Err(what) => faults(what.clone()),
        }
        self.append(bytes, now);
        line.ok()
    }
}
