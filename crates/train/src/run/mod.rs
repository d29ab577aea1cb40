//! Who starts workers: threads of this process, processes of an MPI job, or whoever has a transport.

mod front;
#[cfg(feature = "mpi")]
mod mpi;
mod options;
pub mod predict;
mod process;
mod session;
pub mod source;
mod threads;
pub mod verify;

use std::path::Path;

use crate::error::Result;
use crate::plan::Plan;
use crate::record::folder::prepare_folder;
use crate::record::observer::Observer;

pub use front::{Data, Run, plan, predict, resume, train};
#[cfg(feature = "mpi")]
pub use mpi::{abort_mpi, run_mpi};
pub use options::{Options, Outcome};
pub use process::run_worker;
pub use threads::run_threads;

/// Makes the folder of a run that starts anew and says that it starts.
fn start_folder(plan: &Plan, out: Option<&Path>, workers: usize, observer: &mut dyn Observer) -> Result<()> {
    let moved = out.map(|out| prepare_folder(out, plan)).transpose()?.flatten();
    observer.started(&plan.config, workers, moved.as_deref());
    Ok(())
}
