//! `laconic plan` of `messages = "auto"`: the ladder.

use anyhow::Result;
use laconic_train::auto::{CutGraph, Ladder};
use laconic_train::run::Data;
use laconic_train::{Config, Members, TrainError};

use crate::command::ladder::describe;
use crate::output::Output;
use crate::waiting::reading;

/// Prints the ladder; `other` are options that are about one run.
pub(super) fn plan(config: &Config, other: &[&str], output: &Output) -> Result<u8> {
    if let Some(option) = other.first() {
        let what = "it is about one run, and this configuration stands for several";
        return Err(TrainError::config(format!("{option}: {what}; without it they are listed")).into());
    }
    let members = Members::default();
    let waiting = output.begins(reading(&config.data));
    let graph = CutGraph::open(&members, config, Data::Configured)?;
    let ladder = Ladder::of(&members, config, &graph)?;
    waiting.end();
    graph.notes.iter().for_each(|note| output.say(format!("note: {note}")));
    output.result(describe(&ladder), &ladder)?;
    Ok(0)
}
