//! `[policy]`: what may not leave.

use std::path::PathBuf;

use laconic_wire::{Content, DenyList, Door, FramePurpose};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::inputs::Response;

/// `[policy]`: what may not leave. Each worker's own, but for `label_epsilon`: others may deny something else.
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
    /// Owners tell a random class in place of some labels, so that no answer is more than e to this times as likely
    /// from one class as from another (randomised response); of `model.inputs`, the same on all workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_epsilon: Option<f64>,
    /// Training nodes that a sum of labels is of, at least (5 where it is not set); of fewer nothing is told, and
    /// labels by themselves are refused (`model.inputs`, label_sums).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_group: Option<u32>,
    /// File with this worker's secret, from which its answers are drawn: made where there is none, sent to nobody, to
    /// be kept for later runs and predictions on the same data, or these cost epsilon again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_secret: Option<PathBuf>,
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

    /// How labels are answered for; `None` where they are told as they are.
    ///
    /// # Errors
    /// If epsilon is not above 0, or there is no place for the secret.
    pub fn response(&self) -> Result<Option<Response>> {
        let Some(epsilon) = self.label_epsilon else { return Ok(None) };
        if !(epsilon > 0.0 && epsilon.is_finite()) {
            return Err(TrainError::config(format!("policy.label_epsilon = {epsilon}: expected a number above 0")));
        }
        let what = "policy.label_epsilon: expected policy.label_secret, a file from which each owner's answers are \
            drawn; it is made where there is none";
        let secret = self.label_secret.clone().ok_or_else(|| TrainError::config(what))?;
        Ok(Some(Response { epsilon, secret }))
    }

    /// The door that a worker's frames pass; `None` where nothing is denied.
    ///
    /// # Errors
    /// As [`PolicyConfig::list`].
    pub fn door(&self) -> Result<Option<Box<dyn Door>>> {
        Ok(self.list()?.map(|list| Box::new(list) as Box<dyn Door>))
    }
}
