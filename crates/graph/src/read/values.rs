//! The values of an array in an archive, some after the others: for who does not hold all of them.

use std::io::{self, Read};
use std::path::PathBuf;

use super::arrays::{Element, Items, Member, Npz, member_error};
use super::decoded::decode_chunk;
use crate::error::{GraphError, Result};
use crate::npy::Header;

/// An array that is being read.
pub(super) struct Values<'a> {
    member: Member<'a>,
    header: Header,
    left: u64,
    read: u64,
    bytes: Vec<u8>,
    path: PathBuf,
    name: String,
}

impl Npz {
    /// The values of the array `name`, of which there are at most `values_max`, from the first one on.
    ///
    /// # Errors
    ///
    /// If it is not there, holds no numbers, or is larger than it may be.
    pub(super) fn values(&mut self, name: &str, values_max: u64) -> Result<Values<'_>> {
        let path = self.path().to_owned();
        let (header, member) = self.open_array(name, (Items::Numbers, values_max))?;
        let left = header.values().unwrap_or(u64::MAX);
        Ok(Values { member, header, left, read: 0, bytes: Vec::new(), path, name: name.to_owned() })
    }
}

impl Values<'_> {
    /// What its header says.
    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// How many there are still.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Puts the next ones, as many as asked for or as are left, into `into` in place of what is there.
    pub(super) fn next<T: Element>(&mut self, count: u64, into: &mut Vec<T>) -> Result<()> {
        into.clear();
        let count = count.min(self.left);
        self.bytes.resize(count as usize * self.header.item_bytes, 0);
        self.member.read_exact(&mut self.bytes).map_err(|error| member_error(&self.path, &self.name, &error))?;
        decode_chunk(into, &self.bytes, &self.header).map_err(|error| {
            let place = format!("array '{}', values {} to {}", self.name, self.read, self.read + count - 1);
            GraphError::format(&self.path, place, error.to_string())
        })?;
        self.advance(count)
    }

    /// Passes over the next ones.
    pub(super) fn skip(&mut self, count: u64) -> Result<()> {
        let count = count.min(self.left);
        let bytes = count * self.header.item_bytes as u64;
        let passed = io::copy(&mut self.member.by_ref().take(bytes), &mut io::sink());
        match passed {
            Ok(passed) if passed == bytes => self.advance(count),
            Ok(_) => Err(member_error(&self.path, &self.name, &io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(member_error(&self.path, &self.name, &error)),
        }
    }

    /// At the end there must be nothing more; looking for it makes the archive compare the checksum.
    fn advance(&mut self, count: u64) -> Result<()> {
        (self.left, self.read) = (self.left - count, self.read + count);
        if self.left > 0 {
            return Ok(());
        }
        match self.member.read(&mut [0u8]) {
            Ok(0) => Ok(()),
            Ok(_) => {
                let place = format!("array '{}'", self.name);
                Err(GraphError::format(&self.path, place, "data goes on after the last value"))
            }
            Err(error) => Err(member_error(&self.path, &self.name, &error)),
        }
    }
}
