//! A worker: one part, its end of the network, its threads. The same code runs under every transport.

pub mod discover;
pub mod evaluate;
pub mod local;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use laconic_graph::part::Part;
use laconic_nn::kernels::Store;
use laconic_nn::kernels::fold::sum_fold_adjoint;
use laconic_nn::loss::Targets;
use laconic_nn::{Compute, Matrix, Operand};
use laconic_wire::{Clock, Metered, Rank, Transport, WallClock, collectives};

use crate::config::{Config, FaultKind};
use crate::error::{Result, TrainError};
use crate::exchange::halo::Halo;
use crate::exchange::timeline::Timeline;
use crate::exchange::widths;
use crate::messages::codecs::Codecs;
use crate::pass::inputs::{Ground, Links};
use crate::schedule::Stage;
use crate::worker::discover::{Shapes, control, discover};
use crate::worker::evaluate::{Evaluator, Scores};
use crate::worker::local::{Local, Subset};

/// Everything that training on one worker needs.
pub struct Worker {
    /// The configuration.
    pub config: Arc<Config>,
    /// The metered network.
    pub channel: Metered<Box<dyn Transport>>,
    /// Threads.
    pub compute: Compute,
    /// Rows.
    pub local: Local,
    /// Exchange.
    pub halo: Halo,
    /// Shapes, for predictions.
    pub shapes: Shapes,
    /// Rows of each split over all workers.
    pub global_rows: [f64; 3],
    /// Metrics.
    pub evaluator: Evaluator,
    /// Where the time goes.
    pub times: Times,
    /// Set when the user asks to stop; looked at once a round.
    pub interrupt: Arc<AtomicBool>,
    /// The link model's clock, where there is one.
    pub simulated: Option<Arc<dyn Clock>>,
}

/// What a worker is given besides its part and its end of the network.
pub struct Workplace {
    /// Compute threads.
    pub threads: usize,
    /// Set when the user asks to stop.
    pub interrupt: Arc<AtomicBool>,
    /// The link model's clock, where there is one.
    pub clock: Option<Arc<dyn Clock>>,
}

/// Where a worker's time goes.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Rounds of training, without evaluation.
    pub rounds: Vec<Duration>,
    /// Evaluation, without waiting and coding.
    pub evaluation: Duration,
}

impl Times {
    /// The median round in seconds; 0 of none.
    pub fn median_round(&self) -> f64 {
        let mut sorted = self.rounds.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).map_or(0.0, Duration::as_secs_f64)
    }
}

impl Worker {
    /// Finds the worker's place among the others: plan, blocks, global counts. Returns its own features apart.
    pub fn start(
        config: Arc<Config>,
        transport: Box<dyn Transport>,
        part: Part,
        stages: &[Stage],
        place: Workplace,
    ) -> Result<(Worker, Operand)> {
        let Workplace { threads, interrupt, clock } = place;
        let mut channel = Metered::new(transport);
        let (plan, topology) = discover(&mut channel, &part, config.model.has_self_loops())?;
        let shapes = Shapes::of(&part, &plan, &topology);
        let sets = part.global.multi_label;
        let (local, x) = Local::new(part, topology);
        let mut global_rows: Vec<f64> = shapes.split_rows.iter().map(|&rows| rows as f64).collect();
        collectives::all_reduce_f64(&mut channel, control(0, 2), &mut global_rows)?;
        let global_rows = [global_rows[0], global_rows[1], global_rows[2]];
        let evaluator = Evaluator::new(&config.train.metrics, local.classes, sets)?;
        let seed = config.train.seed;
        let codecs = Codecs::new(&config.messages, seed, stages);
        let mut halo = Halo::new((plan, local.ids.len()), codecs, seed, config.selection());
        let simulated = clock.clone();
        halo.timeline = Timeline::new(clock.unwrap_or_else(|| Arc::new(WallClock::new())));
        let (compute, times) = (Compute::new(threads), Times::default());
        let worker = Worker {
            config,
            channel,
            compute,
            local,
            halo,
            shapes,
            global_rows,
            evaluator,
            times,
            interrupt,
            simulated,
        };
        Ok((worker, x))
    }

    /// Goes on with the messages of this configuration, before any row has crossed.
    pub fn use_messages(&mut self, config: Arc<Config>, stages: &[Stage]) {
        self.halo.codecs = Codecs::new(&config.messages, config.train.seed, stages);
        self.config = config;
    }

    /// Tells the assigner of bit-widths what rows count for and what links cost, where there is one.
    pub fn prepare_assigner(&mut self, stages: &[Stage]) -> Result<()> {
        if !self.config.messages.is_adaptive() {
            return Ok(());
        }
        let weights = self.halo_weights(stages);
        widths::exchange_scores(&mut self.halo, &mut self.channel, &weights)?;
        if self.config.messages.costs == "measured" {
            return widths::measure_costs(&mut self.halo, &mut self.channel);
        }
        widths::costs_of_shape(&mut self.halo, self.channel.size(), &self.config.transport.shape)
    }

    /// Per halo row the sum of what it counts for in the rows here that it is folded into.
    fn halo_weights(&self, stages: &[Stage]) -> Vec<f32> {
        let units = stages.iter().flat_map(|stage| stage.network.units());
        let nodes = self.local.nodes();
        let layer = units.map(|unit| unit.layer.as_ref()).find(|layer| layer.message_width() > 0);
        let of_destination = layer.and_then(|layer| layer.destination_weight(&nodes));
        let ones = vec![1.0; self.local.ids.len()];
        let mut gradient = Matrix::from_vec(ones.len(), 1, of_destination.map_or(ones, <[f32]>::to_vec));
        gradient.reshape(self.local.halo.destinations(), 1);
        let mut weights = Matrix::zeros(self.local.halo.sources(), 1);
        sum_fold_adjoint(&self.compute, &mut weights, Store::Set, &self.local.halo, &gradient);
        weights.into_vec()
    }

    /// The time on the clock that rounds are measured by: the link model's, where there is one.
    pub fn now(&self) -> Duration {
        self.halo.timeline.clock().now()
    }

    /// Seconds on the link model's clock, where there is one.
    pub fn simulated(&self) -> Option<f64> {
        self.simulated.as_ref().map(|clock| clock.now().as_secs_f64())
    }

    /// The share of all training rows that this worker has.
    pub fn weight(&self) -> f32 {
        (self.shapes.split_rows[0] as f64 / self.global_rows[0].max(1.0)) as f32
    }

    /// This worker's number.
    pub fn rank(&self) -> Rank {
        self.channel.rank()
    }

    /// The parts that a pass over all own rows needs.
    pub fn split(&mut self) -> (Links<'_>, Ground<'_>) {
        let overlap = self.config.schedule.overlap;
        let local = &self.local;
        let ground = Ground { nodes: local.nodes(), own: &local.own, halo: &local.halo, halo_ids: &local.halo_ids };
        let evaluation = self.config.evaluation_scope();
        let links =
            Links { compute: &mut self.compute, channel: &mut self.channel, halo: &mut self.halo, overlap, evaluation };
        (links, ground)
    }

    /// The parts that a pass over some rows needs.
    pub fn split_subset<'a>(&'a mut self, subset: &'a Subset) -> (Links<'a>, Ground<'a>) {
        let (links, ground) = self.split();
        (links, Ground { nodes: subset.nodes(), ..ground })
    }

    /// What own rows should say, and which of them are in the training split.
    pub fn training_targets(&self) -> (Targets<'_>, &[bool]) {
        (self.local.targets(), &self.local.masks[0])
    }

    /// Evaluates logits of all own rows.
    pub fn evaluate(&mut self, logits: &laconic_nn::Matrix, round: u32) -> Result<(Scores, u64)> {
        let sent = self.channel.sent().total().framed;
        self.evaluator.evaluate((&mut self.channel, &self.compute), &self.local, logits, round, sent)
    }

    /// Time spent waiting and coding so far.
    pub fn aside(&self) -> Duration {
        self.channel.waited() + self.halo.coding()
    }

    /// Whether the user has asked this process to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }

    /// Rehearses the failure that the configuration asks for, if its time has come.
    pub fn rehearse_fault(&mut self, round: u32) -> Result<()> {
        let rank = self.rank().0;
        let Some(fault) = self.config.transport.fault.clone().filter(|f| (f.rank, f.round) == (rank, round)) else {
            return Ok(());
        };
        if fault.kind == FaultKind::Stall {
            let until = Instant::now() + 3 * self.config.deadline();
            while Instant::now() < until && !self.is_interrupted() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Err(TrainError::Fault { rank, round, stalled: fault.kind == FaultKind::Stall })
    }
}
