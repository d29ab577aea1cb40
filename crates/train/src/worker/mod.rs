//! A worker: one part, its end of the network, its threads. The same code runs under every transport.

pub mod agree;
mod areas;
pub mod by_id;
pub mod class_weights;
pub mod discover;
pub mod edges;
pub mod ends;
pub mod evaluate;
mod halos;
mod handed;
mod inputs;
pub mod judged;
pub mod judgements;
pub mod left;
pub mod local;
pub mod parts;
mod stop;

use std::sync::Arc;
use std::time::{Duration, Instant};

use laconic_graph::links::Links;
use laconic_graph::order::Order;
use laconic_graph::part::Part;
use laconic_graph::plan::{HaloPlan, Topology};
use laconic_nn::kernels::Store;
use laconic_nn::kernels::fold::sum_fold_adjoint;
use laconic_nn::loss::Targets;
use laconic_nn::{Compute, Matrix, Operand};
use laconic_wire::{Clock, Metered, Rank, Transport, WallClock, collectives};

use crate::config::FaultKind;
use crate::config::ramp::Reading;
use crate::error::{Result, TrainError};
use crate::exchange::halo::Halo;
use crate::exchange::late::Late;
use crate::exchange::peers::Peers;
use crate::exchange::shapes::{Shapes, TrainingShapes};
use crate::exchange::stale::Stale;
use crate::exchange::steps::Step;
use crate::exchange::timeline::Timeline;
use crate::exchange::widths;
use crate::messages::coding::WidthCounts;
use crate::pass::inputs::LocalGraph;
use crate::plan::{LinkSets, Plan, Within};
use crate::schedule::Stage;
use class_weights::class_weights;
use discover::{discover, discover_training};
use evaluate::{Evaluated, Evaluator};
use local::{Local, Subset};
use parts::PartCounts;

pub use handed::Handed;
pub use stop::StopSignal;

/// Everything that training on one worker needs.
pub struct Worker {
    /// The run, resolved.
    pub plan: Arc<Plan>,
    /// This worker's metered end of the network.
    pub transport: Metered,
    /// The number of the part that batches of clusters are drawn for: its rank, but for a trainer that meets nobody.
    pub part: u32,
    /// Compute threads with their scratch memory.
    pub compute: Compute,
    /// Own rows with their edges and targets.
    pub local: Local,
    /// What the next stage begins with, until it does.
    handed: Option<Handed>,
    /// How many own rows are read over how many edges.
    pub within: Within,
    /// The halo exchange.
    pub halo: Halo,
    /// What evaluations see, where training sees a part of the graph: own rows with all their edges, and the exchange
    /// along these.
    whole: Option<Box<(Local, Halo)>>,
    /// Rows that are used a round after they were sent, in a stage where they are.
    pub late: Option<Late>,
    /// Rows that nobody waits for, in a stage of trainers that tell each other theirs.
    pub stale: Option<Stale>,
    /// Shapes, for predictions.
    pub shapes: Shapes,
    /// What each class counts for in the loss of training; empty where all count alike.
    pub class_weights: Arc<[f32]>,
    /// What the rows of each split here count for ([`Local::split_weights`]).
    pub own_rows: [f64; 3],
    /// Rows of each split over all workers; a row counts for the share of its labels that are known.
    pub global_rows: [f64; 3],
    /// Edges to learn from and to be judged by, where links are learned.
    pub links: Option<LinkSets>,
    /// What is measured, and how.
    pub evaluator: Evaluator,
    /// What each part came to in the best round of a run that has ended; on worker 0, and nothing where that was not
    /// told.
    pub told: Vec<PartCounts>,
    /// Where the time goes.
    pub times: Times,
    /// What batches have read of other workers' rows.
    pub fetched: Fetched,
    /// Set when the run is to stop; looked at once a round.
    pub stop: StopSignal,
    /// The link model's clock, where there is one.
    pub simulated: Option<Arc<dyn Clock>>,
}

/// What a worker is given besides its part and its end of the network.
#[derive(Clone, Default)]
pub struct WorkerOptions {
    /// Compute threads; 0 counts as 1.
    pub threads: usize,
    /// Set when the run is to stop.
    pub stop: StopSignal,
    /// The link model's clock, where there is one.
    pub clock: Option<Arc<dyn Clock>>,
}

/// Rows of other workers that batches read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fetched {
    /// How many each batch read, added up: what would have crossed if none were kept.
    pub read: u64,
    /// How many crossed.
    pub crossed: u64,
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

/// Compute threads.
fn compute(threads: usize) -> Result<Compute> {
    Compute::start(threads).map_err(|error| {
        let what = format!("train.threads = {threads}: the system starts not so many for this worker: {error}");
        TrainError::config(what)
    })
}

/// The graph that training sees, where that is not the whole one, whose exchange and blocks are given.
fn seen_by_training(
    plan: &Plan,
    transport: &mut Metered,
    part: &Part,
    whole: (&HaloPlan, &Topology),
    shapes: &mut Shapes,
) -> Result<Option<(HaloPlan, Topology)>> {
    let mut seen = None;
    if plan.inductive {
        let (links, topology, training) = discover_training(transport, part, whole, plan.self_loops)?;
        shapes.training = Some(training);
        seen = Some((links, topology));
    }
    if plan.deletes_edges {
        let (links, topology) = seen.as_ref().map_or(whole, |(links, topology)| (links, topology));
        seen = Some((links.own_alone(), topology.own_alone()));
        shapes.training = Some(TrainingShapes::own_alone(shapes));
    }
    Ok(seen)
}

/// Links and blocks, of the whole graph and of the one that training sees.
type Graphs = ((HaloPlan, Topology), Option<(HaloPlan, Topology)>);

/// What [`in_places`] makes of a part.
struct InPlaces {
    graphs: Graphs,
    within: Within,
    /// Which row of features that are lent each own row has, where that is another one.
    lent: Option<Vec<u32>>,
}

/// Puts own rows into the places that they stay in, once everything is known that peers ask for by id. Says as well how
/// many of them are read over how many edges.
fn in_places(
    plan: &Plan,
    part: &mut Part,
    whole: (HaloPlan, Topology),
    seen: Option<(HaloPlan, Topology)>,
) -> InPlaces {
    // Rows of a file are read in its order.
    if part.features_are_in_file() {
        return InPlaces { graphs: (whole, seen), within: Within::default(), lent: None };
    }
    let (links, topology) = seen.as_ref().unwrap_or(&whole);
    let (steps, within) = Within::of(plan, part, (&whole.0, &whole.1), (links, topology));
    let order = plan.order.of(&whole.1);
    let order = match &steps {
        Some(steps) => Order::by_steps(order, steps),
        None => order,
    };
    let Some(order) = order else { return InPlaces { graphs: (whole, seen), within, lent: None } };
    order.move_nodes(part);
    let lent = part.features_are_lent().then(|| order.rows().to_vec());
    let moved = |(links, topology): (HaloPlan, Topology)| (order.links(links), order.blocks(topology));
    InPlaces { graphs: (moved(whole), seen.map(moved)), within, lent }
}

/// What the rows of each split count for on all workers together.
fn added_up(transport: &mut Metered, mut rows: [f64; 3]) -> Result<[f64; 3]> {
    collectives::all_reduce_f64(transport, Step::SplitRows.tag(0), &mut rows)?;
    Ok(rows)
}

/// The same without edges to learn from that come from other workers' nodes.
fn own_alone(sets: LinkSets, own: &[u64]) -> LinkSets {
    let mut train = Links::default();
    // Ids ascend.
    let edges = sets.train.pairs().filter(|edge| own.binary_search(&edge.source).is_ok());
    edges.for_each(|edge| train.push(edge));
    LinkSets { train, ..sets }
}

/// What is learned from and judged by here counts for: edges, or else rows.
fn count_rows(sets: Option<&LinkSets>, local: &Local, class_weights: &[f32], shapes: &mut Shapes) -> [f64; 3] {
    let Some(sets) = sets else { return local.split_weights(class_weights) };
    shapes.count_links(sets);
    sets.counts().map(|count| count as f64)
}

impl Worker {
    /// Finds the worker's place among the others, who run the same thing: plan, blocks, global counts. Its first
    /// stage begins with its own features.
    ///
    /// # Errors
    /// If another worker does not answer, or the system starts no compute threads.
    pub fn start(plan: Arc<Plan>, mut transport: Metered, part: Part, options: WorkerOptions) -> Result<Worker> {
        let WorkerOptions { threads, stop, clock } = options;
        let compute = compute(threads)?;
        let (mut part, sets) = plan.take_links(part)?;
        if !plan.counts_left_out() {
            part.left_out.clear();
        }
        let (links, topology, mut shapes) = discover(&mut transport, &part, plan.self_loops)?;
        let seen = seen_by_training(&plan, &mut transport, &part, (&links, &topology), &mut shapes)?;
        let evaluator = Evaluator::of(&plan, &part.global);
        let InPlaces { graphs, within, lent } = in_places(&plan, &mut part, (links, topology), seen);
        let ((links, topology), seen) = graphs;
        shapes.within = Some(within.clone());
        let covered = halos::covered(&plan, &mut transport, (&links, &topology), &part.nodes)?;
        let (local, x) = Local::new(part, topology, plan.layer.is_relational);
        let x = lent.into_iter().fold(x, Operand::placed);
        let class_weights = class_weights(&plan, &mut transport, &local)?;
        let (x, told) = inputs::rows(&plan, &mut transport, (&links, &local), x)?;
        shapes.told = told;
        covered.iter().for_each(|covered| shapes.cover(covered));
        let own_pairs = plan.deletes_edges || plan.cadence.is_alone();
        let sets = sets.map(|sets| if own_pairs { own_alone(sets, local.ascending_ids()) } else { sets });
        let own_rows = count_rows(sets.as_ref(), &local, &class_weights, &mut shapes);
        let global_rows = added_up(&mut transport, own_rows)?;
        let (mut halo, local, whole) = halos::of(&plan, links, local, (seen, covered));
        halo.timeline = Timeline::new(clock.clone().unwrap_or_else(|| Arc::new(WallClock::new())));
        Ok(Worker {
            plan,
            part: transport.rank().0,
            transport,
            compute,
            local,
            handed: Some(Handed::from(x)),
            within,
            halo,
            whole,
            late: None,
            stale: None,
            shapes,
            class_weights,
            own_rows,
            global_rows,
            links: sets,
            evaluator,
            told: Vec::new(),
            times: Times::default(),
            fetched: Fetched::default(),
            stop,
            simulated: clock,
        })
    }

    /// Goes on with the messages of this plan, before any row has crossed; and tells the assigner of bit-widths, where
    /// there is one, what rows count for and what links cost.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn use_plan(&mut self, plan: Arc<Plan>) -> Result<()> {
        self.halos().for_each(|halo| halo.use_messages(&plan));
        self.plan = plan;
        if !self.plan.messages.are_adaptive() {
            return Ok(());
        }
        let weights = self.halo_weights();
        // Per own row what its gradients are multiplied by once they are here.
        let own = self.plan.messaging_layer().and_then(|layer| layer.facts().sender_weight.of(&self.local.nodes()));
        widths::exchange_scores(&mut self.halo, &mut self.transport, &weights, own)?;
        if self.plan.messages.measures_costs {
            return widths::measure_costs(&mut self.halo, &mut self.transport);
        }
        widths::costs_of_shape(&mut self.halo, self.transport.size(), &self.plan.config.transport.shape)
    }

    /// Forgets what the messages of another stage have left behind.
    pub fn begin(&mut self, stage: &Stage) {
        let late = stage.late.filter(|late| late.refresh.is_none());
        self.late = late.map(|late| Late::new(late, self.local.by_id.order().cloned()));
        self.stale = Stale::of(stage);
        self.halos().for_each(|halo| halo.coders.forget());
    }

    /// Sets the controllers of all messages for a round.
    pub fn turn(&mut self, reading: Reading) {
        self.halos().for_each(|halo| halo.coders.turn(reading));
    }

    fn halos(&mut self) -> impl Iterator<Item = &mut Halo> {
        std::iter::once(&mut self.halo).chain(self.whole.iter_mut().map(|whole| &mut whole.1))
    }

    /// Waits for rows that are under way, so that a checkpoint or the end of a stage leaves no frame behind.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn settle_late(&mut self) -> Result<()> {
        match &mut self.late {
            Some(late) => late.settle(&self.compute, &mut self.halo, &mut self.transport),
            None => Ok(()),
        }
    }

    /// Per halo row the sum of what it counts for in the rows here that it is folded into.
    fn halo_weights(&self) -> Vec<f32> {
        let nodes = self.local.nodes();
        let of_destination = self.plan.messaging_layer().and_then(|layer| layer.facts().destination_weight.of(&nodes));
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

    /// The share of all training rows, as they count in the loss, that this worker has.
    pub fn weight(&self) -> f32 {
        let all = self.global_rows[0];
        if all > 0.0 { (self.own_rows[0] / all) as f32 } else { 0.0 }
    }

    /// This worker's number.
    pub fn rank(&self) -> Rank {
        self.transport.rank()
    }

    /// How many workers there are.
    pub fn size(&self) -> usize {
        self.transport.size()
    }

    /// The parts that a pass over all own rows needs, on the graph that training sees.
    pub fn split(&mut self) -> (Peers<'_>, LocalGraph<'_>) {
        self.split_at(false)
    }

    /// The same on the whole graph.
    pub fn split_whole(&mut self) -> (Peers<'_>, LocalGraph<'_>) {
        self.split_at(true)
    }

    /// The whole graph alone.
    pub fn whole_graph(&self) -> LocalGraph<'_> {
        self.whole.as_deref().map_or(&self.local, |(local, _)| local).graph()
    }

    fn split_at(&mut self, whole: bool) -> (Peers<'_>, LocalGraph<'_>) {
        let (local, halo) = match self.whole.as_deref_mut().filter(|_| whole) {
            Some((local, halo)) => (&*local, halo),
            None => (&self.local, &mut self.halo),
        };
        let graph = local.graph();
        let peers = Peers {
            compute: &mut self.compute,
            transport: &mut self.transport,
            halo,
            late: self.late.as_mut(),
            stale: self.stale.as_mut(),
            overlap: self.plan.config.schedule.overlap,
            evaluation: self.plan.evaluation,
            is_alone: self.plan.cadence.is_local(),
        };
        (peers, graph)
    }

    /// The parts that a pass over some rows needs.
    pub fn split_subset<'a>(&'a mut self, subset: &'a Subset) -> (Peers<'a>, LocalGraph<'a>) {
        let (peers, graph) = self.split();
        (peers, LocalGraph { nodes: subset.nodes(), ..graph })
    }

    /// What own rows should say, and which of them are in the training split.
    pub fn training_targets(&self) -> (Targets<'_>, &[bool]) {
        (self.local.targets(), &self.local.masks[0])
    }

    /// Evaluates logits of all own rows.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn evaluate(&mut self, logits: &laconic_nn::Matrix, round: u32) -> Result<Evaluated> {
        let sent = self.transport.sent().total().framed;
        self.evaluator.evaluate(&mut self.transport, &self.compute, &self.local, logits, round, sent)
    }

    /// Time spent waiting and coding so far.
    pub fn aside(&self) -> Duration {
        self.transport.waited() + self.coding()
    }

    /// Time spent encoding and decoding so far.
    pub fn coding(&self) -> Duration {
        self.halo.coding() + self.whole.as_ref().map_or(Duration::ZERO, |whole| whole.1.coding())
    }

    /// Values sent by their width, in the order of [`crate::config::WIDTHS`].
    pub fn values(&self) -> WidthCounts {
        let mut values = self.halo.values;
        if let Some(whole) = &self.whole {
            values.iter_mut().zip(whole.1.values).for_each(|(sum, count)| *sum += count);
        }
        values
    }

    /// Whether the user has asked this process to stop.
    pub fn is_interrupted(&self) -> bool {
        self.stop.is_set()
    }

    /// Rehearses the failure that the configuration asks for, if its time has come.
    ///
    /// # Errors
    /// The failure, if it is this worker's turn.
    pub fn rehearse_fault(&mut self, round: u32) -> Result<()> {
        let rank = self.rank().0;
        let Some(fault) = self.plan.config.transport.fault.clone().filter(|f| (f.rank, f.round) == (rank, round))
        else {
            return Ok(());
        };
        if fault.kind == FaultKind::Stall {
            let until = Instant::now() + 3 * self.plan.config.deadline();
            while Instant::now() < until && !self.is_interrupted() {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Err(TrainError::Fault { rank, round, stalled: fault.kind == FaultKind::Stall })
    }
}
