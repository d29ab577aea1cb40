//! Who starts workers: threads of this process, processes of this machine or of an MPI job, or whoever has a transport.

mod assigned;
pub mod cores;
pub mod discrepancy;
mod front;
pub mod launcher;
#[cfg(feature = "mpi")]
mod mpi;
mod options;
pub mod other;
mod panic;
pub mod predict;
mod prepared;
mod process;
mod processes;
mod session;
pub mod source;
mod start;
mod threads;
mod trainers;
pub mod verify;

pub use front::{Data, Loaded, Run, load, plan, predict, resume, train};
#[cfg(feature = "mpi")]
pub use mpi::{abort_mpi, prepare_mpi, run_mpi};
pub use options::{Options, Outcome};
pub use process::run_worker;
pub use processes::run_process;
pub use threads::{Failed, root_cause, run_threads};
