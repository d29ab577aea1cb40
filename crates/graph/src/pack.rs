//! Zip archives whose members all threads pack.

use flate2::{Compress, Compression, Crc, FlushCompress};
use rawzip::{CompressionMethod, DataDescriptorOutput, ErrorKind, ZipArchiveWriter};
use rayon::prelude::*;
use std::io::{self, Write};

/// Bytes that are packed at once. Members are cut here whatever the number of threads is, so that archives are the same
/// on any machine.
pub(crate) const PIECE: usize = 1 << 20;

/// An archive that is written from its beginning to its end.
pub(crate) struct Archive<W>(ZipArchiveWriter<W>);

impl<W: Write> Archive<W> {
    /// An archive without members.
    pub fn new(into: W) -> Archive<W> {
        Archive(ZipArchiveWriter::new(into))
    }

    /// Writes a member of what `fill` puts into an empty vector, at best [`PIECE`] bytes a call, until it puts nothing.
    /// A piece that is packed knows nothing of those before, which costs a few bytes in each.
    pub fn member(&mut self, name: &str, is_packed: bool, mut fill: impl FnMut(&mut Vec<u8>) + Send) -> io::Result<()> {
        let method = if is_packed { CompressionMethod::DEFLATE } else { CompressionMethod::STORE };
        let file = self.0.new_file(name).compression_method(method).unix_permissions(0o644);
        let (mut entry, _) = file.start().map_err(given)?;
        let (mut crc, mut size) = (Crc::new(), 0);
        let at_once = (2 * rayon::current_num_threads()).min(32);
        let mut more = || {
            let mut pieces = Vec::new();
            while pieces.len() < at_once {
                let mut piece = Vec::with_capacity(PIECE);
                fill(&mut piece);
                if piece.is_empty() {
                    break;
                }
                pieces.push(piece);
            }
            pieces
        };
        let mut pieces = more();
        while !pieces.is_empty() {
            let (written, next) = rayon::join(|| packed_pieces(pieces, is_packed), &mut more);
            for Piece { of, length, bytes } in written? {
                crc.combine(&of);
                size += length as u64;
                entry.write_all(&bytes)?;
            }
            pieces = next;
        }
        if is_packed {
            entry.write_all(&LAST)?;
        }
        entry.finish(DataDescriptorOutput::new(crc.sum(), size)).map_err(given)?;
        Ok(())
    }

    /// Writes the list of members.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish().map_err(given)
    }
}

/// The end of a deflated stream: a last block, of fixed codes, with nothing in it (RFC 1951, 3.2.3 and 3.2.6).
const LAST: [u8; 2] = [3, 0];

/// A piece as it stands in the archive.
struct Piece {
    /// Checksum and length of what it was.
    of: Crc,
    length: usize,
    bytes: Vec<u8>,
}

fn packed_pieces(pieces: Vec<Vec<u8>>, is_packed: bool) -> io::Result<Vec<Piece>> {
    let piece = |bytes: Vec<u8>| {
        let mut of = Crc::new();
        of.update(&bytes);
        let length = bytes.len();
        let bytes = if is_packed { packed(&bytes)? } else { bytes };
        Ok(Piece { of, length, bytes })
    };
    pieces.into_par_iter().map(piece).collect()
}

/// These bytes, packed, up to the end of a byte. At the fastest level: sorted edges get no smaller by slower ones.
pub(crate) fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = Compress::new(Compression::fast(), false);
    // No literal takes more than nine bits. `flate2::write::DeflateEncoder` 1.1.10 keeps bytes back after a flush, so
    // this asks the stream itself, which is through once there is room left.
    let mut packed = Vec::with_capacity(bytes.len() + bytes.len() / 8 + 1024);
    loop {
        let taken = stream.total_in() as usize;
        stream.compress_vec(&bytes[taken..], &mut packed, FlushCompress::Sync)?;
        if packed.len() < packed.capacity() {
            return Ok(packed);
        }
        packed.reserve(PIECE / 8);
    }
}

/// The system's own error, where there is one.
fn given(error: rawzip::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::IO(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Read};

    fn bytes(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 27) as u8).collect()
    }

    fn archive(threads: usize, lengths: &[usize]) -> Vec<u8> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut archive = Archive::new(Vec::new());
            for (number, &length) in lengths.iter().enumerate() {
                for is_packed in [false, true] {
                    let given = bytes(length);
                    let mut left = &given[..];
                    let fill = |piece: &mut Vec<u8>| {
                        let (first, rest) = left.split_at(left.len().min(PIECE));
                        piece.extend_from_slice(first);
                        left = rest;
                    };
                    archive.member(&format!("{number}-{is_packed}"), is_packed, fill).unwrap();
                }
            }
            archive.finish().unwrap()
        })
    }

    /// Read by another crate than wrote it, which holds contents against their checksums.
    #[test]
    fn members_are_read_as_they_were_given_and_archives_do_not_depend_on_threads() {
        let lengths = [0, 1, PIECE - 1, PIECE, PIECE + 1, 9 * PIECE + 12_345];
        let one = archive(1, &lengths);
        assert!(one == archive(2, &lengths) && one == archive(3, &lengths));
        let mut read = zip::ZipArchive::new(Cursor::new(&one)).unwrap();
        assert_eq!(read.len(), 2 * lengths.len());
        for at in 0..read.len() {
            let mut member = read.by_index(at).unwrap();
            let given = bytes(lengths[at / 2]);
            assert_eq!(member.compression() == zip::CompressionMethod::Deflated, at % 2 == 1);
            assert_eq!(member.compressed_size() < member.size(), at % 2 == 1 && given.len() > 1);
            let mut found = Vec::new();
            member.read_to_end(&mut found).unwrap();
            assert!(found == given, "member {at}");
        }
    }
}
