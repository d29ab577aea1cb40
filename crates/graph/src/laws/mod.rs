//! Laws that every member of an axis keeps, for the tests of this crate's members and of anybody's own.

pub mod partitioners;
