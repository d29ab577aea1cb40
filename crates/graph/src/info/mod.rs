//! What a dataset holds, and whether that is what it should.

mod check;
mod defects;
mod foreseen;
mod scales;
mod summary;

pub use check::{Finding, Severity, check};
pub use defects::unusable;
pub(crate) use defects::{broken_features, overlapping_roles};
pub use foreseen::{class_counts, empty_splits, foreseen, never_learned, of_one_class};
pub use scales::unlike_scales;
pub use summary::{Degrees, FeatureInfo, Info, SplitInfo, empty_classes, one_hot};
