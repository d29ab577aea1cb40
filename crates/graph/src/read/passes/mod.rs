//! Graphs that are read in passes and never whole: a folder of plain arrays, an interchange npz,
//! and edge lists whose ids are integers or stand in a node table.

mod array;
mod folder;
mod input;
mod node_table;
mod npz;
mod table;

pub use folder::{ABOUT, About, ArrayFolder, FORMAT};
pub(crate) use input::fingerprint;
pub use input::{Id, Input};
pub use node_table::TableOfNodes;
pub use npz::NpzPasses;
pub use table::EdgeTable;
