//! What a run has learned, as files say it: by its name.

use std::ops::Deref;

use laconic_train::plan::{TaskKind, TaskRegistry};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A task that is read from files, and written to them, by its name.
#[derive(Debug, Clone, Copy)]
pub struct Learned(&'static TaskKind);

impl Default for Learned {
    /// What was learned where a file does not say it.
    fn default() -> Self {
        Learned(&TaskKind::USUAL)
    }
}

impl Deref for Learned {
    type Target = TaskKind;

    fn deref(&self) -> &TaskKind {
        self.0
    }
}

impl Serialize for Learned {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.name)
    }
}

impl<'de> Deserialize<'de> for Learned {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let tasks = TaskRegistry::default();
        tasks.get(&name).map(Learned).ok_or_else(|| {
            let known: Vec<String> = tasks.names().map(|name| format!("`{name}`")).collect();
            D::Error::custom(format!("unknown variant `{name}`, expected {}", known.join(" or ")))
        })
    }
}
