//! What an audit has found.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::policy::Way;

/// What an audit has found. Its text is a table, then what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// The logs, in the order in which they were given.
    pub logs: Vec<Log>,
    /// What is wrong, by log and line; the first 1,000.
    pub faults: Vec<Fault>,
    /// How many faults there are beyond those.
    pub more_faults: u64,
    /// What is no fault, but should be known: what was on its way when a run ended, lines that no note covers, peers
    /// whose logs are not here.
    pub remarks: Vec<String>,
    /// What has crossed, by site, way, peer and content, in the order of ranks.
    pub table: Vec<Row>,
}

/// One of the logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Log {
    /// Its file, as it was given.
    pub file: PathBuf,
    /// The site that keeps it; `None` if it does not say, or is another log of the same site.
    pub site: Option<String>,
    /// How many whole lines it has.
    pub lines: u64,
    /// How many of its lines, from the first on, the site has signed.
    pub signed_lines: u64,
    /// How often it was opened: more than once if the site has come again after a crash.
    pub opened: u32,
    /// The program's exit code; `None` if the log was not closed.
    pub exit_code: Option<u8>,
    /// How many bytes a torn last line has; 0 if the last line is whole.
    pub torn_bytes: u64,
}

/// Something wrong with a line of a log, or between it and another log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Fault {
    /// The file of the log.
    pub file: PathBuf,
    /// Its line, from 1; the one behind the last if something is missing there.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// What has crossed between a site and a peer of one content, as the site's log has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The site whose log it is.
    pub site: String,
    /// Whether it left the site or came in.
    pub way: Way,
    /// The other site.
    pub peer: String,
    /// What it is.
    pub content: String,
    /// How many frames.
    pub frames: u64,
    /// How many bytes without headers.
    pub payload: u64,
    /// How many bytes with headers.
    pub framed: u64,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.faults.is_empty()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Log { file, site, lines, signed_lines, opened, exit_code, torn_bytes } = self;
        let site = site.as_deref().unwrap_or("no site");
        let end = exit_code.map_or("not closed".to_owned(), |code| format!("exit code {code}"));
        write!(f, "{} of {site}: {lines} lines, {signed_lines} of them signed, ", file.display())?;
        write!(f, "opened {opened} times, {end}")?;
        if *torn_bytes > 0 { write!(f, ", a torn last line of {torn_bytes} bytes") } else { Ok(()) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.logs.iter().try_for_each(|log| writeln!(f, "{log}"))?;
        let head = ["site", "", "peer", "content", "frames", "bytes"].map(str::to_owned);
        let rows = self.table.iter().map(|row| {
            let Row { site, way, peer, content, frames, framed, .. } = row;
            [site.clone(), way.preposition().to_owned(), peer.clone(), content.clone()]
                .into_iter()
                .chain([frames.to_string(), framed.to_string()])
                .collect::<Vec<String>>()
        });
        let rows: Vec<Vec<String>> = std::iter::once(head.to_vec()).chain(rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| match column {
                0..4 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            });
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("  "))?;
        }
        self.remarks.iter().try_for_each(|remark| writeln!(f, "{remark}"))?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "{fault}"))?;
        match self.faults.len() as u64 + self.more_faults {
            0 => writeln!(f, "nothing is wrong"),
            count => writeln!(f, "{count} faults"),
        }
    }
}
