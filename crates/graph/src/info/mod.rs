//! What a dataset holds, and whether that is what it should.

mod check;
mod summary;

pub use check::{Finding, Severity, check};
pub use summary::{Degrees, FeatureInfo, Info, SplitInfo};
