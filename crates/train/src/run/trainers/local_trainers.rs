//! Everybody's worker: what trainers and the judge start with, and what they exchange before a stage.

use std::sync::Arc;
use std::time::Duration;

use laconic_graph::part::Part;
use laconic_wire::transport::by_hand::ByHand;
use laconic_wire::{FramePurpose, Ledger, Metered, Rank, Transport, threads};

use super::columns::Columns;
use super::{Setup, Whole};
use crate::config::ClassWeights;
use crate::error::{Result, TrainError};
use crate::exchange::shapes::Shapes;
use crate::exchange::stale::{Mesh, Stale};
use crate::fit::StageInputs;
use crate::fit::trainer::StageRun;
use crate::forecast::trained::own_counts;
use crate::plan::Plan;
use crate::schedule::Stage;
use crate::worker::{Worker, WorkerOptions};

/// A worker that meets nobody once it has its rows.
pub(super) struct LoneWorker {
    pub worker: Worker,
    /// Its end of the network on which trainers meet: before every stage, or once.
    pub meeting: Option<Metered>,
    /// The shapes by which it met them, where that was once.
    met: Option<Shapes>,
    /// What models read of own nodes, where some of it was told, for who evaluates them beside it.
    pub columns: Option<Columns>,
}

impl LoneWorker {
    /// The trainer of a part, as it stands in the graph or, if it meets the others to `exchange` inputs, in the whole.
    ///
    /// # Errors
    /// If the part cannot be read as one, or another trainer does not answer.
    pub fn trainer(setup: &Setup, part: Part, exchange: Option<Box<dyn Transport>>) -> Result<LoneWorker> {
        let index = part.index;
        let place = setup.parts.iter().position(|of| *of == index).unwrap_or_default();
        let (told, exchange, part) = match exchange {
            Some(end) if !setup.trainers.exchange() => {
                (Some(LoneWorker::telling(setup, part.clone(), end)?), None, part.induced())
            }
            exchange => (None, exchange, part),
        };
        let mut plan = Plan::with(&setup.plan.members, &setup.config, &own_counts(&part))?.alone();
        plan.run_towards(&setup.of_epoch, place);
        if let (false, Some(weights)) = (setup.trainers.exchange(), &setup.class_weights) {
            // Whoever meets nobody for it cannot add counts up with the others.
            (plan.class_weights, plan.class_counts) = (Some(ClassWeights::Given(weights.clone())), 0);
        }
        let mut lone = match told {
            None => LoneWorker::of(setup, plan, part, exchange)?,
            Some(told) => {
                let part = Columns::given(told.columns.as_ref(), part, plan.inputs.columns())?;
                let LoneWorker { meeting, met, columns, .. } = told;
                LoneWorker { meeting, met, columns, ..LoneWorker::of(setup, plan.reading_given_rows(), part, None)? }
            }
        };
        if setup.trainers.tell && lone.columns.is_none() {
            lone.columns = Columns::of(&lone.worker);
        }
        // Nobody else asks for them.
        lone.columns = lone.columns.filter(|_| setup.trainers.by_workers.is_some());
        lone.worker.part = index;
        Ok(lone)
    }

    /// Who tells other trainers once what models read of a part's nodes, and hears them.
    fn telling(setup: &Setup, part: Part, end: Box<dyn Transport>) -> Result<LoneWorker> {
        let plan = Plan::with(&setup.plan.members, &setup.config, &own_counts(&part))?.alone().telling_once();
        let lone = LoneWorker::of(setup, plan, part, Some(end))?;
        Ok(LoneWorker { met: Some(lone.worker.shapes.clone()), columns: Columns::of(&lone.worker), ..lone })
    }

    /// The shapes by which it has met other trainers, where it has.
    pub fn shapes(&self) -> &Shapes {
        self.met.as_ref().unwrap_or(&self.worker.shapes)
    }

    /// Who judges means on the whole graph.
    ///
    /// # Errors
    /// As [`LoneWorker::trainer`].
    pub fn judge(setup: &Setup, whole: Whole) -> Result<LoneWorker> {
        let mut lone = LoneWorker::of(setup, Plan::clone(&setup.plan), whole.part, None)?;
        lone.worker.local.set_owners(&whole.owners);
        Ok(lone)
    }

    /// One of those who judge means together, at this end of their network, on the columns that the trainer beside it
    /// has, where it was told some. Whatever it sends is for evaluations.
    ///
    /// # Errors
    /// If the part cannot be read as one, or another of them does not answer.
    pub fn evaluator(
        setup: &Setup,
        part: Part,
        end: Box<dyn Transport>,
        columns: Option<&Columns>,
    ) -> Result<LoneWorker> {
        let door = setup.config.policy.door()?;
        let transport = Metered::new(end).counted_as(FramePurpose::Evaluation).behind(door);
        let plan = setup.plan.of_evaluators();
        let part = if plan.inputs.given { Columns::given(columns, part, plan.inputs.columns())? } else { part };
        let worker = Worker::start(Arc::new(plan), transport, part, worker_options(setup))?;
        Ok(LoneWorker { worker, meeting: None, met: None, columns: None })
    }

    fn of(setup: &Setup, plan: Plan, part: Part, exchange: Option<Box<dyn Transport>>) -> Result<LoneWorker> {
        let meets = exchange.is_some();
        let alone = || -> Box<dyn Transport> { Box::new(threads(1, setup.config.deadline()).remove(0)) };
        let transport = Metered::new(exchange.unwrap_or_else(alone)).behind(setup.config.policy.door()?);
        let part = part.numbered(transport.rank().0, transport.size() as u32);
        let mut worker = Worker::start(Arc::new(plan), transport, part, worker_options(setup))?;
        let meeting = meets.then(|| std::mem::replace(&mut worker.transport, Metered::new(alone())));
        Ok(LoneWorker { worker, meeting, met: None, columns: None })
    }

    /// Lets its waits for others last so long from now on.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.worker.transport.end_mut().set_deadline(deadline);
        self.meeting.iter_mut().for_each(|meeting| meeting.end_mut().set_deadline(deadline));
    }

    /// A stage's inputs.
    ///
    /// # Errors
    /// If another trainer does not answer.
    pub fn inputs(&mut self, at: StageRun<'_>) -> Result<StageInputs> {
        self.worker.begin(at.stage);
        let meets_again = self.met.is_none();
        if let Some(meeting) = self.meeting.as_mut().filter(|_| meets_again) {
            std::mem::swap(meeting, &mut self.worker.transport);
        }
        let inputs = StageInputs::fetch(&mut self.worker, at.stage, at.rounds_before);
        if let Some(meeting) = self.meeting.as_mut().filter(|_| meets_again) {
            std::mem::swap(meeting, &mut self.worker.transport);
        }
        inputs
    }

    /// Lets a trainer of a stage in which rows are told go on telling the others, over the network on which it met them
    /// or by hand.
    pub fn stays_in_touch(&mut self, by_hand: bool) {
        let Some(stale) = &mut self.worker.stale else { return };
        match &self.meeting {
            Some(meeting) if by_hand => {
                stale.link(Mesh::ByHand(ByHand::new(meeting.rank(), meeting.size())));
            }
            _ => {
                if let Some(meeting) = self.meeting.take() {
                    stale.link(Mesh::Network(Box::new(meeting)));
                }
            }
        }
    }

    /// Waits until what it has sent to other trainers has left.
    ///
    /// # Errors
    /// If one of them takes nothing more that it waits for.
    pub fn finish(&mut self) -> Result<()> {
        if let Some(meeting) = &mut self.meeting {
            meeting.finish()?;
        }
        self.worker.stale.as_mut().map_or(Ok(()), Stale::finish)
    }

    /// What it has sent to other trainers, by their ranks in the run.
    pub fn exchanged(&self) -> Ledger {
        match (&self.meeting, &self.worker.stale) {
            (Some(meeting), _) => among_all(meeting.sent()),
            (None, Some(stale)) => among_all(&stale.sent()),
            (None, None) => Ledger::new(),
        }
    }
}

fn worker_options(setup: &Setup) -> WorkerOptions {
    WorkerOptions { threads: setup.process.threads, stop: setup.process.stop.clone(), clock: None }
}

/// A stage as trainers meet for it, who do not know how many means the stages before it had.
pub(super) fn meeting(stage: &Stage, index: usize) -> StageRun<'_> {
    StageRun { stage, index, rounds_before: index as u32 }
}

/// A stage as a trainer goes through it that has taken so many steps before.
pub(super) fn after(stage: &Stage, index: usize, steps: u64) -> StageRun<'_> {
    StageRun { stage, index, rounds_before: u32::try_from(steps).unwrap_or(u32::MAX / 2) }
}

/// The trainers' ends of a network of their own, over which they exchange inputs or tell them; none where they meet
/// nobody.
pub(super) fn exchanges(setup: &Setup) -> Vec<Option<Box<dyn Transport>>> {
    let trainers = setup.parts.len();
    if !setup.trainers.meet() {
        return (0..trainers).map(|_| None).collect();
    }
    let mut ends = threads(trainers, setup.config.deadline());
    ends.iter_mut().for_each(|end| setup.give_up.flags().into_iter().for_each(|flag| end.add_interrupt(flag)));
    ends.into_iter().map(|end| Some(Box::new(end) as Box<dyn Transport>)).collect()
}

/// All trainers and the judge, on one thread after they have met.
pub(super) struct LocalTrainers {
    pub trainers: Vec<LoneWorker>,
    pub judge: LoneWorker,
}

impl LocalTrainers {
    /// Starts trainers; those that meet do so on a thread each.
    ///
    /// # Errors
    /// If a part cannot be trained on.
    pub fn start(setup: &Setup, parts: Vec<Part>) -> Result<Vec<LoneWorker>> {
        let start = |(part, exchange)| LoneWorker::trainer(setup, part, exchange);
        at_once(parts.into_iter().zip(exchanges(setup)).collect(), start)
    }

    /// Everybody's inputs of a stage.
    ///
    /// # Errors
    /// If a codec refuses the rows.
    pub fn inputs(&mut self, meeting: StageRun<'_>, at: StageRun<'_>) -> Result<(Vec<StageInputs>, StageInputs)> {
        let judge = self.judge.inputs(at)?;
        let trainers = at_once(self.trainers.iter_mut().collect(), |lone: &mut LoneWorker| lone.inputs(meeting))?;
        Ok((trainers, judge))
    }

    /// What trainers have sent each other, by their ranks in the run.
    pub fn exchanged(&self) -> Vec<Ledger> {
        self.trainers.iter().map(LoneWorker::exchanged).collect()
    }
}

/// A ledger of trainers among themselves with their ranks in the run, where the aggregator comes first.
fn among_all(ledger: &Ledger) -> Ledger {
    let mut all = Ledger::new();
    for (entry, count) in ledger.iter() {
        all.enter(laconic_wire::Entry { peer: Rank(entry.peer.0 + 1), ..entry }, count);
    }
    all
}

/// Does something with each on a thread of its own, since they may wait for one another.
fn at_once<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let work = &work;
    std::thread::scope(|scope| {
        let spawn = |item: T| std::thread::Builder::new().spawn_scoped(scope, move || work(item));
        let working = items.into_iter().map(spawn).collect::<std::io::Result<Vec<_>>>();
        let working = working.map_err(|source| TrainError::io("thread of a trainer", source))?;
        let join = |(index, thread): (usize, std::thread::ScopedJoinHandle<'_, Result<R>>)| {
            thread.join().unwrap_or_else(|panic| Err(crate::run::panic::panicked(index as u32 + 1, panic.as_ref())))
        };
        working.into_iter().enumerate().map(join).collect()
    })
}
