//! What `messages = "auto"` says of the runs that it tried, in the summary of the one that it kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `auto`: the runs that were tried before one was kept, that one among them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AutoSummary {
    /// The name of the one that was kept, which the rest of the summary is about.
    pub chosen: String,
    /// How many were tried, one that was stopped among them.
    pub tries: u32,
    /// Bytes that all of them sent, framing included.
    pub bytes: u64,
    /// Why no further one was tried.
    pub stopped: Stop,
}

/// Why no further run is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The last one has reached `messages.target`.
    Target,
    /// The next one would send more than is left of `messages.budget`.
    Budget,
    /// Two in a row have gained less than half a standard error of the validation figure, or one before a way that
    /// would send more than all so far.
    Gain,
    /// There is none left.
    Ladder,
    /// The user has stopped the last one.
    Interrupted,
}

impl Stop {
    /// The same in words.
    pub fn words(self) -> &'static str {
        match self {
            Stop::Target => "messages.target was reached",
            Stop::Budget => "the next way would have sent more than was left of messages.budget",
            Stop::Gain => "the last ways gained less than half a standard error of the validation figure",
            Stop::Ladder => "all ways had been tried",
            Stop::Interrupted => "it was stopped",
        }
    }
}
