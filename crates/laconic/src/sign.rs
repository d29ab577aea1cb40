//! Signs of life, which a process that this program has started gives on its standard output.

use std::io::Write;
use std::time::Duration;

/// What a line begins with that is a sign of life, and no answer.
pub const SIGN: &str = "sign ";

/// How often a child gives one.
pub const EVERY: Duration = Duration::from_millis(50);

/// Gives a sign that says this. A parent that is gone reads nothing.
pub fn give(what: &str) {
    let _ = writeln!(std::io::stdout(), "{SIGN}{what}");
}
