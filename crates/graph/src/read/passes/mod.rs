//! Graphs that are read in passes and never whole: a folder of plain arrays, and edge lists whose ids are integers.

mod array;
mod folder;
mod input;
mod table;

pub use folder::{ABOUT, About, ArrayFolder, FORMAT};
pub use input::Input;
pub use table::EdgeTable;
