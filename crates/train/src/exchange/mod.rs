//! Rows out, rows in: the halo exchange and what is remembered of it from round to round.

mod assigner;
pub mod cover;
pub mod drawn;
mod fetch;
pub mod halo;
pub mod late;
pub mod moments;
pub mod peers;
pub mod shapes;
pub mod staged;
pub mod stale;
pub mod steps;
mod sums;
pub mod timeline;
pub mod widths;
