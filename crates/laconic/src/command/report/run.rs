//! A run as the page shows it: where it is, what it is called, and what it left behind.

use std::path::PathBuf;

use laconic_train::TrainError;

use super::ledger::Ledger;
use super::timeline::Timeline;
use crate::recorded::{Recorded, read_text};

/// A folder of a run with what it is called and which runs look alike.
pub struct Named {
    /// Its name on the page.
    pub name: String,
    /// What the legend calls it: its name, or that of its method.
    pub group: String,
    /// The number of its colour; the same for all seeds of a method.
    pub style: usize,
    /// The folder of the run.
    pub folder: PathBuf,
}

/// All that the page shows of a run.
pub struct Run {
    /// Its name on the page.
    pub name: String,
    /// What the legend calls it: its name, or that of its method.
    pub group: String,
    /// The number of its colour; the same for all seeds of a method.
    pub style: usize,
    /// Its summary and its curves.
    pub recorded: Recorded,
    /// The bytes of its ledger, added up.
    pub ledger: Ledger,
    /// What its workers did in one round, where the run wrote that down.
    pub timeline: Option<Timeline>,
    /// The text of `config.toml`.
    pub config: String,
}

impl Run {
    /// Reads what the run left in its folder.
    ///
    /// # Errors
    /// If a file cannot be read, or is not what a run writes.
    pub fn read(Named { name, group, style, folder }: Named) -> Result<Run, TrainError> {
        Ok(Run {
            name,
            group,
            style,
            recorded: Recorded::read(&folder)?,
            ledger: Ledger::read(&folder.join("ledger.csv"))?,
            timeline: Timeline::read(&folder.join("timeline.csv"))?,
            config: read_text(&folder.join("config.toml"))?,
        })
    }
}
