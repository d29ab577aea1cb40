//! A worker: one part, its end of the network, its threads. The same code runs under every transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use laconic_graph::part::Part;
use laconic_nn::loss::Targets;
use laconic_nn::{Compute, Operand};
use laconic_wire::{Metered, Rank, Transport, collectives};

use crate::config::{Config, FaultKind};
use crate::discover::{Shapes, control, discover};
use crate::error::{Result, TrainError};
use crate::evaluate::{Evaluator, Scores};
use crate::halo::{Codecs, Halo};
use crate::inputs::{Ground, Links};
use crate::local::{Local, Subset};

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
}

/// Where a worker's time goes.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// Rounds of training, without evaluation.
    pub rounds: Vec<Duration>,
    /// Evaluation, without waiting and coding.
    pub evaluation: Duration,
}

impl Worker {
    /// Finds the worker's place among the others: plan, blocks, global counts. Returns its own features apart.
    pub fn start(
        config: Arc<Config>,
        transport: Box<dyn Transport>,
        part: Part,
        threads: usize,
        interrupt: Arc<AtomicBool>,
    ) -> Result<(Worker, Operand)> {
        let mut channel = Metered::new(transport);
        let (plan, topology) = discover(&mut channel, &part, config.model.has_self_loops())?;
        let shapes = Shapes::of(&part, &plan, &topology);
        let sets = part.global.multi_label;
        let (local, x) = Local::new(part, topology);
        let mut global_rows: Vec<f64> = shapes.split_rows.iter().map(|&rows| rows as f64).collect();
        collectives::all_reduce_f64(&mut channel, control(0, 2), &mut global_rows)?;
        let global_rows = [global_rows[0], global_rows[1], global_rows[2]];
        let evaluator = Evaluator::new(&config.train.metrics, local.classes, sets)?;
        let halo = Halo::new(plan, Codecs::new(&config.messages)?, config.train.seed);
        let (compute, times) = (Compute::new(threads), Times::default());
        Ok((Worker { config, channel, compute, local, halo, shapes, global_rows, evaluator, times, interrupt }, x))
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
        let links = Links { compute: &mut self.compute, channel: &mut self.channel, halo: &mut self.halo, overlap };
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
