//! What a run leaves behind: its folder, checkpoints, weights and summary.

pub mod account;
pub mod aside;
pub mod card;
pub mod checkpoint;
pub mod claim;
pub mod constant;
mod digests;
pub mod earlier;
pub mod folder;
pub mod ledger;
pub mod observer;
pub mod parts;
pub mod purposes;
pub mod recorder;
pub mod report;
pub mod state;
pub mod summary;
pub mod tensors;
pub mod traffic;
pub mod trainers;
pub mod tries;
pub mod verdict;
pub mod weights;
