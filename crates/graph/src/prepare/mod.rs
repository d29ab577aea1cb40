//! What happens to a dataset between reading and training: features on one scale, nodes in splits.

mod clusters;
mod features;
mod missing;
mod rows;
mod split;

pub use clusters::feature_clusters;
pub use features::{rescale, row_normalise, standardise, unscaled};
pub use missing::fill_missing;
pub use split::{Amount, SplitSpec, random_split};
