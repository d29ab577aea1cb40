//! `laconic train` of `messages = "auto"` and `schedule.hand_on = "auto"`: one run after the other.

use anyhow::Result;
use laconic_train::auto::{CutGraph, Ladder, Rung, climb};
use laconic_train::config::TransportKind;
use laconic_train::record::tries::Stop;
use laconic_train::run::{Data, train};
use laconic_train::{Config, Members, Summary, TrainError};

use super::ended;
use super::ladder;
use super::processes::{self, Task};
use super::signals::{STOPPED, Signals};
use crate::output::Output;
use crate::progress::Progress;
use crate::waiting::reading;

/// Climbs the ladder, and says what came of it.
pub fn run(config: &Config, force: bool, output: &Output) -> Result<u8> {
    if config.transport.kind == TransportKind::Mpi {
        let what = "it starts one run after the other, and under MPI every worker is started once; \
            transport.kind = \"processes\" or \"threads\" does";
        return Err(TrainError::config(format!("{}: {what}", config.several_by())).into());
    }
    let (members, out) = (Members::default(), config.out.dir.as_path());
    let signals = Signals::install(false)?;
    let waiting = output.begins(reading(&config.data));
    let graph = CutGraph::open(&members, config, Data::Configured)?;
    let mut ways = Ladder::of(&members, config, &graph)?;
    waiting.end();
    graph.notes.iter().for_each(|note| output.say(format!("note: {note}")));
    ways.left_out.iter().for_each(|left| output.say(left.said()));
    let one = |rung: &Rung, place| -> Result<Summary> {
        output.say(rung.said(place));
        let task = Task { config: rung.config.clone(), goes_on: None, force };
        if config.transport.kind == TransportKind::Processes {
            return processes::run(&task, &signals, output);
        }
        let options = task.options(&signals, Progress::of_one(output, &rung.name));
        Ok(train(&rung.config, graph.data(), options)?.summary)
    };
    let ended = climb(&mut ways, Some(out), one);
    if ended.is_err() && signals.gave_up() {
        output.say("stopped at once");
        return Ok(STOPPED);
    }
    let summary = ended?;
    output.result(format!("{}\n{}", ended::describe(&summary, out), ladder::describe(&ways)), &summary)?;
    let is_stopped = summary.auto.as_ref().is_some_and(|auto| auto.stopped == Stop::Interrupted);
    Ok(if is_stopped { STOPPED } else { 0 })
}
