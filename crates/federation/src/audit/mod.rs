//! Logs of what has crossed, and how they are checked.

mod accounts;
mod chain;
mod check;
mod checkpoint;
mod line;
mod log;
mod report;

pub use chain::LINE_MAX;
pub use check::audit;
pub use line::{Entry, Passed};
pub use log::{AuditLog, Reopened};
pub use report::{Fault, Log, Report, Row};
