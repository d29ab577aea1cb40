//! Generated graphs, for tests, demonstrations and benchmarks of a given size.
//!
//! Every edge, class and feature value is a pure function of the seed and of its own number, so a graph does not depend
//! on the machine or on the number of threads (generators run in the caller's rayon pool). No function of the system's
//! mathematics library is used, for the same reason.

mod arrays;
mod nodes;
mod rmat;
mod sbm;
mod weighted;

pub use arrays::rmat_arrays;
pub use rmat::{RmatSpec, rmat};
pub use sbm::{SbmSpec, sbm};
