//! The laws that members of an axis keep, as functions that panic where one is broken: for the tests of whoever brings
//! a codec or a transport of their own, and for this crate's own tests, which run them over every member.
//!
//! ```
//! use laconic_wire::codec::{CodecRegistry, Exact, Options};
//! laconic_wire::laws::codecs::check(&Exact::KIND, &CodecRegistry::default(), &[Options::default()]);
//! ```

pub mod codecs;
pub mod transports;
