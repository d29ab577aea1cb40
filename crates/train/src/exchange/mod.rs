//! Rows out, rows in: the halo exchange and what is remembered of it from round to round.

pub mod halo;
pub mod late;
pub mod skip;
pub mod timeline;
pub mod widths;
