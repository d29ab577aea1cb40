//! `[policy]`: what may not leave.

use laconic_wire::{DenyList, Door};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// `[policy]`: what may not leave. Each worker's own: others may deny something else.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// Contents that this worker sends nobody, such as ["features", "rows:evaluation"]: the run stops before the first
    /// such frame, with exit code 7 (docs/explanation/privacy.md names them all).
    pub deny: Vec<String>,
}

impl PolicyConfig {
    /// What is denied; `None` where nothing is.
    ///
    /// # Errors
    /// If an entry names no content or no purpose.
    pub fn list(&self) -> Result<Option<DenyList>> {
        if self.deny.is_empty() {
            return Ok(None);
        }
        let list = DenyList::parse(self.deny.iter().map(String::as_str));
        list.map(Some).map_err(|what| TrainError::config(format!("policy.deny: {what}")))
    }

    /// The door that a worker's frames pass; `None` where nothing is denied.
    ///
    /// # Errors
    /// As [`PolicyConfig::list`].
    pub fn door(&self) -> Result<Option<Box<dyn Door>>> {
        Ok(self.list()?.map(|list| Box::new(list) as Box<dyn Door>))
    }
}
