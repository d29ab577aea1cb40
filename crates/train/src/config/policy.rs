//! `[policy]`: what may not leave.

use laconic_wire::{Content, DenyList, Door, FramePurpose};
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
    /// Contents that are sent only if this worker allows them, such as ["labels"]: what `model.inputs` tells of nodes'
    /// labels (docs/explanation/privacy.md).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
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

    /// Which contents that are sent only with leave may be sent in training.
    ///
    /// # Errors
    /// If an entry names no content or no purpose.
    pub fn allowed(&self) -> Result<impl Fn(Content) -> bool + use<>> {
        // The same names; here they open what they close there.
        let list = DenyList::parse(self.allow.iter().map(String::as_str));
        let list = list.map_err(|what| TrainError::config(format!("policy.allow: {what}")))?;
        Ok(move |content| list.denies(content, FramePurpose::Training))
    }

    /// The door that a worker's frames pass; `None` where nothing is denied.
    ///
    /// # Errors
    /// As [`PolicyConfig::list`].
    pub fn door(&self) -> Result<Option<Box<dyn Door>>> {
        Ok(self.list()?.map(|list| Box::new(list) as Box<dyn Door>))
    }
}
