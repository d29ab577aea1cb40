//! Frames: what travels between two ranks.
//!
//! A frame is one vector: a header of [`HEADER_BYTES`] bytes and the payload behind it. The header's place is reserved
//! when the frame is made, so encoders append to the payload, the transport sends the vector as it is, and no byte is
//! copied. All numbers are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0..3 | `LCN` |
//! | 3 | version of this layout, now 2 |
//! | 4 | content |
//! | 5 | direction in the lowest bit, purpose in the two above |
//! | 6 | codec |
//! | 7 | length of a trailer that a link model adds behind the payload; never counted, normally 0 |
//! | 8..10, 10..12 | layer, step |
//! | 12..16 | round |
//! | 16..24 | payload bytes |

use crate::content::{Content, Direction, FramePurpose};
use crate::tag::Tag;
use crate::{Result, WireError};

/// The size of a frame's header.
pub const HEADER_BYTES: usize = 24;

/// The codec id of frames that hold plain bytes, such as those of collectives.
pub const NO_CODEC: u8 = 0;

const MAGIC: [u8; 3] = *b"LCN";
const VERSION: u8 = 2;

/// A header as read from the wire, for transports that read it before they read the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the frame is.
    pub tag: Tag,
    /// The codec of the payload.
    pub codec: u8,
    /// The length of the payload.
    pub payload_bytes: usize,
    trailer_bytes: u8,
}

impl Header {
    /// Reads the header at the start of `bytes` and refuses payloads above `limit`.
    ///
    /// # Errors
    ///
    /// [`WireError::Header`] with the field that is wrong, [`WireError::TooLarge`] above the limit.
    pub fn parse(bytes: &[u8], limit: usize) -> Result<Header> {
        let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(wrong("length", HEADER_BYTES as u64, bytes.len() as u64));
        };
        let [m0, m1, m2, version, content, way, codec, trailer_bytes, l0, l1, s0, s1, r0, r1, r2, r3, length @ ..] =
            *header;
        if [m0, m1, m2] != MAGIC {
            let number = |[a, b, c]: [u8; 3]| u64::from(u32::from_le_bytes([a, b, c, 0]));
            return Err(wrong("the magic number", number(MAGIC), number([m0, m1, m2])));
        }
        if version != VERSION {
            return Err(wrong("the version", VERSION.into(), version.into()));
        }
        let Some(&content) = Content::ALL.get(usize::from(content)) else {
            return Err(wrong("the content", Content::ALL.len() as u64 - 1, content.into()));
        };
        let direction = if way & 1 == 0 { Direction::Forward } else { Direction::Reverse };
        let Some(&purpose) = FramePurpose::ALL.get(usize::from(way >> 1)) else {
            return Err(wrong("the purpose", FramePurpose::ALL.len() as u64 - 1, (way >> 1).into()));
        };
        let announced = u64::from_le_bytes(length);
        let payload_bytes = usize::try_from(announced).ok().filter(|&bytes| bytes <= limit);
        let Some(payload_bytes) = payload_bytes else {
            return Err(WireError::TooLarge { announced, limit: limit as u64 });
        };
        let (layer, step) = (u16::from_le_bytes([l0, l1]), u16::from_le_bytes([s0, s1]));
        let tag = Tag { content, purpose, direction, layer, round: u32::from_le_bytes([r0, r1, r2, r3]), step };
        Ok(Header { tag, codec, payload_bytes, trailer_bytes })
    }

    /// The length of the whole frame as it travels, header and trailer included.
    pub fn travelling_bytes(&self) -> usize {
        self.payload_bytes.saturating_add(HEADER_BYTES + usize::from(self.trailer_bytes))
    }
}

fn wrong(what: &'static str, expected: u64, found: u64) -> WireError {
    WireError::Header { what, expected, found }
}

/// One message: header and payload in one vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    tag: Tag,
    codec: u8,
    trailer_bytes: u8,
    bytes: Vec<u8>,
}

impl Frame {
    /// An empty frame in a used vector, whose content is dropped and whose memory is kept.
    pub fn new(tag: Tag, mut recycled: Vec<u8>) -> Frame {
        recycled.clear();
        recycled.resize(HEADER_BYTES, 0);
        Frame { tag, codec: NO_CODEC, trailer_bytes: 0, bytes: recycled }
    }

    /// What this frame is.
    pub fn tag(&self) -> Tag {
        self.tag
    }

    /// Says that the frame is for something else than its sender thought.
    pub(crate) fn set_purpose(&mut self, purpose: FramePurpose) {
        self.tag.purpose = purpose;
    }

    /// The id of the codec that wrote the payload, [`NO_CODEC`] for plain bytes.
    pub fn codec(&self) -> u8 {
        self.codec
    }

    /// Says which codec writes the payload.
    pub fn set_codec(&mut self, id: u8) {
        self.codec = id;
    }

    /// The payload, without header and stamp.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..self.bytes.len() - usize::from(self.trailer_bytes)]
    }

    /// The vector to append the payload to. Its first [`HEADER_BYTES`] bytes are the header's place: only ever append.
    ///
    /// # Panics
    ///
    /// If a link model has stamped the frame already.
    pub fn payload_mut(&mut self) -> &mut Vec<u8> {
        assert_eq!(self.trailer_bytes, 0, "the payload is complete once a link model has stamped the frame");
        &mut self.bytes
    }

    /// Header plus payload: what the ledger counts.
    pub fn framed_bytes(&self) -> usize {
        self.bytes.len() - usize::from(self.trailer_bytes)
    }

    /// Writes the header into its place. [`Frame::into_bytes`] does it too, so only those need it who look at the bytes
    /// of a frame they keep.
    ///
    /// # Panics
    ///
    /// If the header's place is gone.
    pub fn seal(&mut self) {
        assert!(self.bytes.len() >= HEADER_BYTES, "an encoder must append to the payload, not clear it");
        let payload_bytes = self.payload().len() as u64;
        let header = &mut self.bytes[..HEADER_BYTES];
        header[0..3].copy_from_slice(&MAGIC);
        header[3] = VERSION;
        header[4] = self.tag.content as u8;
        header[5] = self.tag.direction as u8 | (self.tag.purpose as u8) << 1;
        header[6] = self.codec;
        header[7] = self.trailer_bytes;
        header[8..10].copy_from_slice(&self.tag.layer.to_le_bytes());
        header[10..12].copy_from_slice(&self.tag.step.to_le_bytes());
        header[12..16].copy_from_slice(&self.tag.round.to_le_bytes());
        header[16..24].copy_from_slice(&payload_bytes.to_le_bytes());
    }

    /// The sealed bytes, as a transport sends them.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.seal();
        self.bytes
    }

    /// The vector, to be used again; its content means nothing any more.
    pub fn into_buffer(self) -> Vec<u8> {
        self.bytes
    }

    /// Takes bytes from the wire; they must be one whole frame with at most `limit` bytes of payload. Allocates
    /// nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Header::parse`], and [`WireError::Header`] if the bytes are fewer or more than the frame.
    pub fn parse(bytes: Vec<u8>, limit: usize) -> Result<Frame> {
        let header = Header::parse(&bytes, limit)?;
        if header.travelling_bytes() != bytes.len() {
            return Err(wrong("the frame's length", header.travelling_bytes() as u64, bytes.len() as u64));
        }
        Ok(Frame { tag: header.tag, codec: header.codec, trailer_bytes: header.trailer_bytes, bytes })
    }

    /// Puts eight bytes behind the payload that travel with the frame and count nowhere.
    pub(crate) fn push_stamp(&mut self, stamp: u64) {
        assert_eq!(self.trailer_bytes, 0, "a frame carries one stamp");
        self.bytes.extend_from_slice(&stamp.to_le_bytes());
        self.trailer_bytes = 8;
    }

    /// Takes the eight bytes off again; none if the frame carries no such stamp.
    pub(crate) fn pop_stamp(&mut self) -> Option<u64> {
        if self.trailer_bytes != 8 {
            return None;
        }
        let stamp = u64::from_le_bytes(*self.bytes.last_chunk()?);
        self.bytes.truncate(self.bytes.len() - 8);
        self.trailer_bytes = 0;
        Some(stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TAG: Tag = Tag {
        content: Content::RowGradients,
        purpose: FramePurpose::StartUp,
        direction: Direction::Reverse,
        layer: 0x0102,
        round: 0x0304_0506,
        step: 0x0708,
    };

    fn frame(payload: &[u8]) -> Frame {
        let mut frame = Frame::new(TAG, Vec::new());
        frame.set_codec(9);
        frame.payload_mut().extend_from_slice(payload);
        frame
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let golden = [
            b'L', b'C', b'N', 2, 6, 5, 9, 0, 0x02, 0x01, 0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 2, 0, 0, 0, 0, 0, 0, 0,
            0xaa, 0xbb,
        ];
        assert_eq!(frame(&[0xaa, 0xbb]).into_bytes(), golden);
    }

    #[test]
    fn a_used_vector_keeps_its_memory_and_loses_its_content() {
        let mut used = frame(&[1; 100]).into_buffer();
        used.shrink_to_fit();
        let (place, capacity) = (used.as_ptr(), used.capacity());
        let again = Frame::new(TAG, used);
        assert_eq!(again.payload(), [0u8; 0]);
        let buffer = again.into_buffer();
        assert_eq!((buffer.as_ptr(), buffer.capacity()), (place, capacity));
    }

    #[test]
    fn a_stamp_travels_and_counts_nowhere() {
        let mut stamped = frame(&[1, 2, 3]);
        assert_eq!(stamped.pop_stamp(), None);
        stamped.push_stamp(77);
        assert_eq!((stamped.framed_bytes(), stamped.payload()), (HEADER_BYTES + 3, &[1u8, 2, 3][..]));
        let mut back = Frame::parse(stamped.into_bytes(), 3).unwrap();
        assert_eq!(back.payload(), [1, 2, 3]);
        assert_eq!(back.pop_stamp(), Some(77));
        assert_eq!((back.payload(), back.framed_bytes()), (&[1u8, 2, 3][..], HEADER_BYTES + 3));
    }

    #[test]
    fn a_payload_above_the_limit_is_refused() {
        let error = Frame::parse(frame(&[0; 11]).into_bytes(), 10).unwrap_err();
        assert_eq!(error, WireError::TooLarge { announced: 11, limit: 10 });
    }

    #[test]
    fn every_shortened_frame_is_refused() {
        let whole = frame(&[7; 20]).into_bytes();
        for length in 0..whole.len() {
            assert!(Frame::parse(whole[..length].to_vec(), 1 << 20).is_err(), "{length} of {} bytes", whole.len());
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_parsed(payload in prop::collection::vec(any::<u8>(), 0..200)) {
            let sent = frame(&payload);
            let mut sealed = sent.clone();
            sealed.seal();
            prop_assert_eq!(Frame::parse(sent.into_bytes(), 200).unwrap(), sealed);
        }

        #[test]
        fn parse_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = Frame::parse(bytes, 1 << 20);
        }

        // Random bytes hardly ever begin like a frame, so these do.
        #[test]
        fn parse_never_panics_behind_a_good_start(tail in prop::collection::vec(any::<u8>(), 20..64), limit: usize) {
            let mut bytes = frame(&[]).into_bytes();
            bytes.truncate(4);
            bytes.extend(tail);
            if let Ok(frame) = Frame::parse(bytes, limit) {
                prop_assert!(frame.payload().len() <= 64);
            }
        }
    }
}
