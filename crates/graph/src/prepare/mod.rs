//! What happens to a dataset between reading and training: features on one scale, nodes in splits.

mod features;
mod split;

pub use features::{row_normalise, standardise};
pub use split::{Amount, SplitSpec, random_split};
