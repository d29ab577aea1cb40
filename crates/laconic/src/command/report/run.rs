//! A run as the page shows it: where it is, what it is called, and what it left behind.

use std::path::PathBuf;

use laconic_train::record::claim::LANES;
use laconic_train::{Config, TrainError};

use super::lanes::Doings;
use super::ledger::Ledger;
use super::timeline::Timeline;
use crate::recorded::{Recorded, read_text};

/// A folder of a run with what it is called and which runs are of one method.
pub struct Named {
    /// Its name on the page.
    pub name: String,
    /// The name of its method; its own where it is alone.
    pub group: String,
    /// The number of its method, and of colour, shape and dash: the same for all seeds.
    pub style: usize,
    /// The folder of the run.
    pub folder: PathBuf,
}

/// All that the page shows of a run.
pub struct Run {
    /// Its name on the page.
    pub name: String,
    /// The number of its method.
    pub style: usize,
    /// Its summary and its curves.
    pub recorded: Recorded,
    /// The bytes of its ledger, added up.
    pub ledger: Ledger,
    /// What its workers did in one round, where the run wrote that down.
    pub timeline: Option<Timeline>,
    /// What independent trainers did when, where workers were that.
    pub doings: Option<Doings>,
    /// The text of `config.toml`.
    pub text: String,
}

impl Run {
    /// What a worker is called: by its part, where parts have names, or its number.
    pub fn worker(&self, rank: u32) -> String {
        let summary = &self.recorded.summary;
        let name = summary.part_names.get(rank as usize).filter(|_| summary.averaging.is_none());
        name.cloned().unwrap_or_else(|| rank.to_string())
    }

    /// Reads what the run left in its folder.
    ///
    /// # Errors
    /// If a file cannot be read, or is not what a run writes.
    pub fn read(named: &Named) -> Result<Run, TrainError> {
        let Named { name, style, folder, .. } = named;
        Ok(Run {
            name: name.clone(),
            style: *style,
            recorded: Recorded::read(folder)?,
            ledger: Ledger::read(&folder.join("ledger.csv"))?,
            timeline: Timeline::read(&folder.join("timeline.csv"))?,
            doings: Doings::read(&folder.join(LANES))?,
            text: read_text(&folder.join("config.toml"))?,
        })
    }

    /// The configuration that it ran with, where this program can read it.
    pub fn config(&self) -> Option<Config> {
        serde_json::from_value(self.recorded.summary.config.clone()).ok()
    }

    /// The name of its data: that of the file or folder.
    pub fn dataset(&self) -> String {
        let path = self.recorded.summary.config["data"]["path"].as_str().unwrap_or_default();
        let name = std::path::Path::new(path).file_stem().unwrap_or_default();
        if name.is_empty() { "graph in memory".to_owned() } else { name.to_string_lossy().into_owned() }
    }

    /// How its graph was cut: `4 parts by multilevel`.
    pub fn partition(&self) -> String {
        self.recorded.partition()
    }
}
