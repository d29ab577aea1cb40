//! The program `laconic`, as the library of this crate runs it.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(laconic_gnn::run(std::env::args_os().skip(1).collect(), None))
}
