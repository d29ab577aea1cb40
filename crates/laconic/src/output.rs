//! What goes where: results for machines on standard output, words for people on standard error.

use std::io::{IsTerminal, Write};

use crate::visible::visible;

/// The two streams.
pub struct Output {
    json: bool,
    quiet: bool,
}

impl Output {
    /// `json`: the result as JSON on standard output; `quiet`: nothing but errors on standard error.
    pub fn new(json: bool, quiet: bool) -> Output {
        Output { json, quiet }
    }

    /// Whether progress bars make sense.
    pub fn is_lively(&self) -> bool {
        !self.quiet && std::io::stderr().is_terminal()
    }

    /// Whether people want to read along.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Says something to people.
    pub fn say(&self, text: impl std::fmt::Display) {
        if !self.quiet {
            // A closed standard error is no reason to stop working.
            let _ = writeln!(std::io::stderr().lock(), "{}", visible(&text.to_string()));
        }
    }

    /// The result: as text, or as JSON where that was asked for.
    pub fn result(&self, text: impl std::fmt::Display, json: &impl serde::Serialize) -> anyhow::Result<()> {
        let mut out = std::io::stdout().lock();
        if self.json {
            serde_json::to_writer_pretty(&mut out, json)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{}", visible(&text.to_string()))?;
        }
        out.flush()?;
        Ok(())
    }
}
