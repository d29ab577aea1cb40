//! What a run leaves behind: its folder, checkpoints, weights and summary.

pub mod checkpoint;
pub mod earlier;
pub mod folder;
pub mod state;
pub mod summary;
pub mod weights;
