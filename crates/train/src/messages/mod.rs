//! How much of each message travels: codecs that choose a codec, and the assigner of bit-widths.

pub mod assign;
pub mod codecs;
