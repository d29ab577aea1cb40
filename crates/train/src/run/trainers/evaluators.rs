//! Workers that evaluate means together: the aggregator, which owns no node, and each trainer's process for the nodes
//! of its part. They have a network of their own, so that trainers go on while a mean is evaluated.

use std::thread::{Scope, ScopedJoinHandle};

use laconic_graph::part::Part;
use laconic_wire::{Ledger, Rank, Transport, threads};

use super::columns::Columns;
use super::local_trainers::LoneWorker;
use super::server::AGGREGATOR;
use super::{Evaluated, Setup};
use crate::error::{Result, TrainError};
use crate::fit::local::MeansJudge;
use crate::fit::trainer::StageRun;

/// What one of them has: its part, and its end of their network.
pub(super) struct Evaluator {
    pub part: Part,
    pub end: Box<dyn Transport>,
}

impl Evaluator {
    /// Meets the others, with the columns of the trainer beside it, where it was told some.
    ///
    /// # Errors
    /// If the part cannot be read as one, or another evaluator does not answer.
    pub fn start(self, setup: &Setup, columns: Option<&Columns>) -> Result<LoneWorker> {
        LoneWorker::evaluator(setup, self.part, self.end, columns)
    }
}

/// Who evaluates means in the aggregator's process.
pub(super) enum AtAggregator {
    /// The aggregator alone.
    Alone(Box<super::Whole>),
    /// It says what is to be evaluated, and the others do it with it.
    Asks(Box<Evaluator>),
    /// The same, which has met the others already.
    Started(Box<LoneWorker>),
}

impl AtAggregator {
    /// Starts it.
    ///
    /// # Errors
    /// If a part cannot be read as one, or another evaluator does not answer.
    pub fn start(self, setup: &Setup) -> Result<LoneWorker> {
        match self {
            AtAggregator::Alone(whole) => LoneWorker::judge(setup, *whole),
            AtAggregator::Asks(own) => own.start(setup, None),
            AtAggregator::Started(lone) => Ok(*lone),
        }
    }
}

/// All evaluators of a run in one process: the aggregator's, and by place the trainers', where they have one.
pub(super) fn all_here(setup: &Setup, evaluated: Evaluated) -> (AtAggregator, Vec<Option<Evaluator>>) {
    let parts = match evaluated {
        Evaluated::Whole(whole) => {
            return (AtAggregator::Alone(whole), setup.parts.iter().map(|_| None).collect());
        }
        Evaluated::Parts(parts) => parts,
    };
    let mut ends = threads(parts.len(), setup.config.deadline());
    ends.iter_mut().for_each(|end| setup.give_up.flags().into_iter().for_each(|flag| end.add_interrupt(flag)));
    if let Some(hosted) = setup.hosted {
        ends[0].end_mut().set_same_process(Rank(hosted as u32 + 1));
        ends[hosted + 1].end_mut().set_same_process(AGGREGATOR);
    }
    let of = |(part, end)| Evaluator { part, end: Box::new(end) as Box<dyn Transport> };
    let mut all = parts.into_iter().zip(ends).map(of);
    let first = all.next().expect("the aggregator has a part, if an empty one");
    (AtAggregator::Asks(Box::new(first)), all.map(Some).collect())
}

/// Evaluates what the aggregator says, stage by stage; returns what was sent for it.
///
/// # Errors
/// If another evaluator is gone.
fn evaluate(setup: &Setup, mut lone: LoneWorker) -> Result<Ledger> {
    // Its process trains on, so nobody would see that it is gone.
    all_stages(setup, &mut lone).inspect_err(|_| lone.worker.transport.take_leave())?;
    let _ = lone.worker.transport.finish();
    Ok(lone.worker.transport.sent().clone())
}

fn all_stages(setup: &Setup, lone: &mut LoneWorker) -> Result<()> {
    let (stages, mut rounds_before) = (setup.plan.stages.clone(), 0);
    for (index, stage) in stages.iter().enumerate() {
        let at = StageRun { stage, index, rounds_before };
        let inputs = lone.inputs(at)?;
        let mut judge = MeansJudge::new(&mut lone.worker, at, inputs)?;
        let is_over = || setup.over.is_set() || setup.give_up.is_set();
        let Some((chosen, rounds)) = judge.serve(&is_over)? else { break };
        judge.hand_on(&chosen, rounds)?;
        rounds_before = rounds;
    }
    Ok(())
}

/// Lets an evaluator do its work on a thread of its own, once `start` has made it.
///
/// # Errors
/// If the system starts no thread.
pub(super) fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    setup: &'env Setup,
    place: usize,
    start: impl FnOnce() -> Result<LoneWorker> + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<Ledger>>> {
    let thread = std::thread::Builder::new().name(format!("evaluator-{}", setup.parts[place]));
    let thread = thread.spawn_scoped(scope, move || {
        let evaluated = start().and_then(|lone| evaluate(setup, lone));
        evaluated.inspect_err(|error| end_at_changed_file(setup, error))
    });
    thread.map_err(|source| TrainError::io("thread of an evaluator", source))
}

/// Ends the run of this process where one of its threads has seen that a file changes which they read.
pub(super) fn end_at_changed_file(setup: &Setup, error: &TrainError) {
    if error.is_wrong_file() {
        setup.give_up.set();
    }
}
