//! The configuration that a run goes on with.

use std::path::Path;

use super::members::Members;
use crate::config::{Config, Pace};
use crate::error::{Result, TrainError};

/// The key of the end that rates and ramps run towards.
const HORIZON: &str = "train.horizon";

/// A run that goes on: what it was, and what is set anew.
#[derive(Debug)]
pub struct Resumed {
    /// The configuration to go on with.
    pub config: Config,
    /// The keys that may differ from those of the checkpoint.
    pub changes: Vec<String>,
    /// The ends that rates and ramps keep, where the run has got another end.
    pub kept_horizon: Option<Vec<Pace>>,
}

impl Members {
    /// What the run in a folder goes on with where these KEY=VALUE are set: in its folder, wherever that is now,
    /// without the faults that it rehearsed, and with rates and ramps towards the end that they had, since they would
    /// jump if they were spread anew; who sets `train.lr_schedule` or `train.horizon` wants them so.
    ///
    /// # Errors
    /// If the folder's config.toml cannot be read, a key or value makes no sense, or `out.dir` is set.
    pub fn resumed(&self, folder: &Path, settings: &[String]) -> Result<Resumed> {
        let load = |settings: &[String]| self.load(&folder.join("config.toml"), settings);
        let (before, mut config) = (load(&[])?, load(settings)?);
        if config.out.dir != before.out.dir {
            let what = "out.dir: a resumed run goes on in its folder; copy the folder to go on elsewhere";
            return Err(TrainError::config(what));
        }
        config.out.dir = folder.to_owned();
        if config.transport.fault == before.transport.fault {
            config.transport.fault = None;
        }
        if config.transport.faults == before.transport.faults {
            config.transport.faults.clear();
        }
        let key = |setting: &String| setting.split('=').next().unwrap_or_default().trim().to_owned();
        let mut changes: Vec<String> = settings.iter().map(key).collect();
        let mut kept_horizon = None;
        if !["train.lr_schedule", HORIZON].iter().any(|asked| changes.iter().any(|key| key == asked)) {
            let asked = config.train.horizon.clone();
            config = self.keeping_horizon(config, &before)?;
            if config.train.horizon != asked {
                changes.push(HORIZON.to_owned());
                kept_horizon = Some(config.train.horizon.clone());
            }
        }
        Ok(Resumed { config, changes, kept_horizon })
    }
}
