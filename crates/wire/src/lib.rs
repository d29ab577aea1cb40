//! Frames, transports, collectives, codecs and the byte ledger: everything between two workers, and nothing else.
//!
//! ```
//! use laconic_wire::codec::{self, CodecRegistry, Level, Memory, Message, MessageKey, Options};
//! use laconic_wire::codec::{RowSet, RowsMut, RowsRef, Store};
//! use laconic_wire::{Content, Direction, Frame, FramePurpose, Kind, Metered, Rank, Tag, Transport, threads};
//! use std::{io, thread, time::Duration};
//!
//! // Row 2 and row 0 of rank 0's matrix are to become rows 0 and 1 of rank 1's, as bfloat16.
//! let (content, purpose) = (Content::HiddenRows, FramePurpose::Training);
//! let tag = Tag { content, purpose, direction: Direction::Forward, layer: 1, round: 17, step: 0 };
//! let key = MessageKey { seed: 7, tag, from: Rank(0), to: Rank(1), drawn: tag.round };
//! let (registry, options) = (CodecRegistry::default(), Options::default());
//! let (mut encoder, mut decoder) = (registry.build("half", &options)?, registry.build("half", &options)?);
//!
//! let [owner, holder] = threads(2, Duration::from_secs(30)).try_into().expect("two ends");
//! let (mut owner, mut holder) = (Metered::new(Box::new(owner)), Metered::new(Box::new(holder)));
//!
//! thread::scope(|scope| -> laconic_wire::Result<()> {
//!     scope.spawn(|| -> laconic_wire::Result<()> {
//!         let rows = RowsRef { data: &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], columns: 2, rows: RowSet::Indices(&[2, 0]) };
//!         let mut frame = Frame::new(tag, owner.buffer_of(encoder.bytes(&Level::WHOLE, 2, 2)));
//!         let message = Message { key: &key, level: &Level::WHOLE, memory: &mut Memory::default() };
//!         codec::write(&mut *encoder, message, rows, &mut frame)?;
//!         owner.send(Rank(1), frame)
//!     });
//!     let mut copies = [0.0; 4];
//!     let frame = holder.recv(Rank(0), tag)?;
//!     let into = RowsMut { data: &mut copies, columns: 2, rows: RowSet::Range(0..2) };
//!     let message = Message { key: &key, level: &Level::WHOLE, memory: &mut Memory::default() };
//!     codec::read(&mut *decoder, message, &frame, into, Store::Set)?;
//!     holder.recycle(frame);
//!     assert_eq!(copies, [5.0, 6.0, 1.0, 2.0]);
//!     Ok(())
//! })?;
//!
//! owner.sent().write_csv(Rank(0), &mut io::stdout())?;
//! // round,from,to,kind,layer,direction,frames,payload_bytes,framed_bytes
//! // 17,0,1,activations,1,forward,1,8,32
//! assert_eq!(owner.sent().total().framed, 32);
//! assert_eq!(holder.received().total(), owner.sent().total());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What may be combined freely: a [`Transport`] carries [`Frame`]s and never looks inside; [`Metered`] counts them in a
//! [`Ledger`]; [`Shaped`] makes the link as slow as a named one; [`collectives`] are functions over any of these; a
//! [`codec`] writes rows of a matrix into a frame. Every wait has a deadline, and its error says who waited for whom.
//! Codecs and transports of others join by a trait and are held to the same [`laws`].

pub mod account;
pub mod clock;
pub mod codec;
pub mod collectives;
pub mod content;
pub mod door;
pub mod error;
pub mod frame;
pub mod laws;
pub mod ledger;
mod per_kind;
pub mod rank;
pub mod tag;
pub mod transport;
mod vector;
mod waits;

pub use account::{Count, Entry, Row};
pub use clock::{Clock, ManualClock, ThreadClock, WallClock};
pub use codec::{Codec, CodecKind, CodecRegistry, MessageKey};
pub use content::{Content, Direction, FramePurpose, Kind};
pub use door::{DenyList, Door};
pub use error::{Result, WireError};
pub use frame::{Frame, HEADER_BYTES, Header, NO_CODEC};
pub use ledger::{Difference, Ledger};
pub use per_kind::PerKind;
pub use rank::Rank;
pub use tag::Tag;
pub use transport::channels::{Channel, Channels};
pub use transport::hosted::Hosted;
pub use transport::link::{Carrier, EAGER, LINKS, LinkShape, Load};
pub use transport::metered::Metered;
pub use transport::shaped::{Mode, Shaped, VirtualClock};
pub use transport::sockets::{Address, SocketsTransport};
pub use transport::star::StarTransport;
pub use transport::threads::{ThreadsTransport, threads};
pub use transport::{End, Transport};
pub use vector::{Hop, VectorCoder};
pub use waits::Waits;
