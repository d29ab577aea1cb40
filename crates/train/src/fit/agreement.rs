//! How workers come to the same parameters: gradients are added up in every round, or models averaged every so many.

mod averaged;
mod power_sgd;
mod scaffold;

use laconic_nn::registry::Kind;
use laconic_wire::collectives::{self, Reducer};
use laconic_wire::{Tag, WireError};

use super::progress::Progress;
use crate::error::{Result, TrainError};
use crate::exchange::timeline::Phase;
use crate::plan::{AgreementKind, Cadence, Made, Plan, makes_another};
use crate::saved::{Name, OwnMemory, Saved, odd};
use crate::schedule::Stage;
use crate::worker::Worker;

/// What rides along with a reduction, uncompressed; sums over workers afterwards.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    /// The training loss.
    pub loss: f64,
    /// How many workers were asked to stop.
    pub stop: f64,
    /// Seconds since the stage began, where a controller reads them.
    pub seconds: f64,
    /// What the rows of a batch count for, where rounds are batches.
    pub rows: f64,
}

impl Extras {
    fn values(&self, plan: &Plan) -> Vec<f64> {
        let mut values = vec![self.loss, self.stop];
        values.extend(plan.messages.read_clocks().then_some(self.seconds));
        values.extend(plan.counts_rows_of_rounds().then_some(self.rows));
        values
    }

    fn take(&mut self, plan: &Plan, values: &[f64]) {
        let mut rest = values[2..].iter().copied();
        (self.loss, self.stop) = (values[0], values[1]);
        let mut next = |rides: bool| if rides { rest.next().unwrap_or(0.0) } else { 0.0 };
        self.seconds = next(plan.messages.read_clocks());
        self.rows = next(plan.counts_rows_of_rounds());
    }
}

/// How many values ride along with a round's reduction: seconds only if a controller of messages reads clocks, rows
/// only where each round has others.
pub fn extras_count(plan: &Plan) -> usize {
    Extras::default().values(plan).len()
}

/// One round on its way to an agreement.
pub struct Turn<'a> {
    /// Who has it.
    pub worker: &'a mut Worker,
    /// Parameters, the optimiser, and clocks of controllers.
    pub progress: &'a mut Progress,
    /// This worker's gradient; used up.
    pub gradient: &'a mut Vec<f32>,
    /// What rides along; after a sum, that of all workers.
    pub extras: &'a mut Extras,
    /// What adds up over workers.
    pub reduction: &'a mut Reduction,
    /// The round, counted over stages.
    pub round: u32,
}

impl Turn<'_> {
    /// Makes a loss over as many rows as were expected, and its gradient, one over those that the round had.
    pub fn level(&mut self, expected: f64) {
        let factor = if self.extras.rows > 0.0 { expected / self.extras.rows } else { 0.0 };
        self.extras.loss *= factor;
        self.gradient.iter_mut().for_each(|gradient| *gradient *= factor as f32);
    }
}

/// Sums over workers, through the codec of parameters.
pub struct Reduction {
    reducer: Reducer,
    first_layer: u16,
}

impl Reduction {
    /// Sums of a stage, which have the number of its first layer.
    ///
    /// # Errors
    /// If the codec of parameters cannot be made.
    pub fn new(plan: &Plan, stage: &Stage) -> Result<Reduction> {
        let reducer = plan.messages.reducer(plan.config.train.seed, stage.network.parameters())?;
        Ok(Reduction { reducer, first_layer: stage.first_layer })
    }

    /// Adds up over workers the values and what rides along.
    ///
    /// # Errors
    /// If another worker does not answer, or the sum is no number.
    pub fn sum(&mut self, worker: &mut Worker, round: u32, values: &mut [f32], extras: &mut Extras) -> Result<()> {
        let tag = worker.plan.cadence.reduction_tag(self.first_layer, round);
        add_up(worker, tag, values, extras, &mut self.reducer)?;
        if !extras.loss.is_finite() {
            return Err(TrainError::Diverged { round, what: format!("the loss is {}", extras.loss) });
        }
        Ok(())
    }

    /// Adds up over workers the sums that a stage is solved from, as they are, and what rides along.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn solve(&self, worker: &mut Worker, round: u32, sums: &mut [f32], extras: &mut Extras) -> Result<()> {
        let tag = worker.plan.cadence.sums_tag(self.first_layer, round);
        add_up(worker, tag, sums, extras, &mut Reducer::exact())
    }

    /// Adds up further values in the same round, as they are: sum `number` of it, from 1.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn further(&self, worker: &mut Worker, round: u32, number: u16, values: &mut [f32]) -> Result<()> {
        let tag = worker.plan.cadence.reduction_tag(self.first_layer, round).later(2 * number);
        let from = worker.halo.timeline.now();
        collectives::all_reduce(&mut worker.transport, tag, values, &mut [], &mut Reducer::exact())?;
        worker.halo.timeline.note(Phase::Reduce, tag, from);
        Ok(())
    }

    /// Puts what rounding has left over, and what the codec remembers, into `saved`.
    pub fn save(&self, saved: &mut Saved) {
        for (name, residual) in RESIDUALS.into_iter().zip(self.reducer.residuals()) {
            if !residual.is_empty() {
                saved.put(Name::one(name), residual);
            }
        }
        let (streams, values) = self.reducer.memories();
        if !streams.is_empty() {
            saved.put(Name::one(STREAMS), &streams);
            saved.put(Name::one(MEMORIES), &values);
        }
    }

    /// Takes it back.
    ///
    /// # Errors
    /// If what was saved is of another kind.
    pub fn restore(&mut self, saved: &mut Saved) -> Result<()> {
        let [mut own, mut sum] = [Vec::new(), Vec::new()];
        for (name, residual) in RESIDUALS.into_iter().zip([&mut own, &mut sum]) {
            *residual = saved.take(&Name::one(name))?.unwrap_or_default();
        }
        self.reducer.restore([own, sum]);
        if let Some(streams) = saved.take(&Name::one(STREAMS))? {
            let memories = (streams, saved.take(&Name::one(MEMORIES))?.unwrap_or_default());
            let what = "something that is no memory of sums";
            self.reducer.remember(&memories).ok_or_else(|| odd(&Name::one(STREAMS), what))?;
        }
        Ok(())
    }
}

/// Adds up over workers the values and what rides along.
fn add_up(worker: &mut Worker, tag: Tag, values: &mut [f32], extras: &mut Extras, reducer: &mut Reducer) -> Result<()> {
    let mut riders = extras.values(&worker.plan);
    let from = worker.halo.timeline.now();
    collectives::all_reduce(&mut worker.transport, tag, values, &mut riders, reducer).map_err(|error| match error {
        WireError::NotFinite { .. } => TrainError::Diverged { round: tag.round, what: format!("{tag}: {error}") },
        error => error.into(),
    })?;
    worker.halo.timeline.note(Phase::Reduce, tag, from);
    extras.take(&worker.plan, &riders);
    Ok(())
}

const RESIDUALS: [&str; 2] = ["reducer.own", "reducer.sum"];
const STREAMS: &str = "reducer.streams";
const MEMORIES: &str = "reducer.memories";

/// How workers agree: a member decides what a gradient is a mean over, and what is reduced before and after a step.
pub trait Agreement {
    /// The number of rows that this worker's loss is a mean over, in a round in which its own count for `own`.
    fn rows(&self, worker: &Worker, own: f64) -> f64;

    /// Between a round's gradient and its step.
    ///
    /// # Errors
    /// If another worker does not answer, or training has left the numbers.
    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()>;

    /// Whether workers agree after the step of a round in which they ask each other ([`Cadence::asks`]); the same
    /// answer on all of them.
    ///
    /// # Errors
    /// If another worker does not answer.
    fn is_due(&mut self, _: &mut Turn<'_>) -> Result<bool> {
        Ok(false)
    }

    /// After the step of a round after which workers agree.
    ///
    /// # Errors
    /// As [`Agreement::before_step`].
    fn after_step(&mut self, _: &mut Turn<'_>) -> Result<()> {
        Ok(())
    }

    /// Puts what this worker alone remembers into `saved`.
    fn save(&self, _: &Progress, _: &mut Saved) {}

    /// Takes it back.
    ///
    /// # Errors
    /// If what was saved is of another kind.
    fn restore(&mut self, _: &mut Progress, _: &mut Saved) -> Result<()> {
        Ok(())
    }
}

/// Every agreement that this crate has: one of them suits each cadence.
pub const AGREEMENTS: &[AgreementKind] = &[SUMMED_GRADIENTS, power_sgd::KIND, averaged::KIND, scaffold::KIND, NOBODY];

impl Kind for AgreementKind {
    fn name(&self) -> &'static str {
        self.name
    }

    fn ours() -> &'static [Self] {
        AGREEMENTS
    }
}

/// What makes the agreement of a stage of a plan.
pub type MakesAgreement = fn(&Plan, &Stage) -> Box<dyn Agreement>;

/// What an entry has as [`AgreementKind::build`].
pub fn makes(make: MakesAgreement) -> Made {
    Box::new(make)
}

/// The agreement of a plan's workers in a stage.
///
/// # Errors
/// If its entry makes something else.
pub(super) fn of(plan: &Plan, stage: &Stage) -> Result<Box<dyn Agreement>> {
    let kind = plan.members.agreement(&plan.cadence);
    let make = (kind.build)().downcast::<MakesAgreement>();
    Ok(make.map_err(|_| makes_another(kind.name, "fit::agreement::makes"))?(plan, stage))
}

const OWN_OPTIMISER: Option<OwnMemory> =
    Some(OwnMemory { key: "train.sync_every", what: "an optimiser of its own between two averages" });

const SUMMED_GRADIENTS: AgreementKind = AgreementKind {
    name: "summed_gradients",
    suits: |cadence| !cadence.is_local() && !cadence.factors(),
    sums: |_, network| vec![network.trained()],
    keeps: |_, _| 0,
    remembers: None,
    build: || makes(|_, _| Box::new(SummedGradients)),
};

const NOBODY: AgreementKind = AgreementKind {
    name: "nobody",
    suits: Cadence::is_alone,
    sums: |_, _| Vec::new(),
    keeps: |_, _| 0,
    remembers: OWN_OPTIMISER,
    build: || makes(|_, _| Box::new(Nobody)),
};

/// Gradients of all workers are added up in every round; all take the same step.
struct SummedGradients;

impl Agreement for SummedGradients {
    fn rows(&self, worker: &Worker, _own: f64) -> f64 {
        // What all workers' rows of a batch count for is known once it is added up; what they should count for is now.
        worker.global_rows[0] / f64::from(worker.plan.batches_of_epoch())
    }

    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        turn.reduction.sum(turn.worker, turn.round, turn.gradient, turn.extras)?;
        self.settle(turn);
        Ok(())
    }
}

impl SummedGradients {
    /// What follows once a round's gradient is that of all workers.
    fn settle(&self, turn: &mut Turn<'_>) {
        if turn.worker.plan.counts_rows_of_rounds() {
            turn.level(self.rows(turn.worker, 0.0));
        }
        turn.progress.clocks.note_gradient(turn.gradient);
    }
}

/// An independent trainer agrees with nobody: its gradient is that of its own rows, as if it were the only worker.
struct Nobody;

impl Agreement for Nobody {
    fn rows(&self, worker: &Worker, _own: f64) -> f64 {
        worker.own_rows[0] / f64::from(worker.plan.batches_of_epoch())
    }

    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        if turn.worker.plan.counts_rows_of_rounds() {
            turn.level(self.rows(turn.worker, 0.0));
        }
        if !turn.extras.loss.is_finite() {
            let what = format!("the loss is {}", turn.extras.loss);
            return Err(TrainError::Diverged { round: turn.round, what });
        }
        turn.progress.clocks.note_gradient(turn.gradient);
        Ok(())
    }
}
