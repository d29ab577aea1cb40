//! Graphs that are read in passes and never whole: a folder of plain arrays, an interchange npz,
//! and edge lists whose ids are integers.

mod array;
mod folder;
mod input;
mod npz;
mod table;

pub use folder::{ABOUT, About, ArrayFolder, FORMAT};
pub use input::Input;
pub(crate) use input::fingerprint;
pub use npz::NpzPasses;
pub use table::EdgeTable;
