//! Batches of sampled neighbourhoods.

use laconic_graph::sample::batch_of;
use laconic_nn::Network;
use laconic_nn::kernels::elementwise::{drop_out_in_place, gather};
use laconic_nn::{Matrix, Operand};

use super::links::EdgeBatches;
use super::{Batches, Round, Training, makes};
use crate::error::Result;
use crate::fit::pairs::{Pairs, weights};
use crate::fit::task::Learning;
use crate::pass::batch::{BatchPass, BatchWalk, input_dropout};
use crate::pass::context::PassContext;
use crate::pass::inputs::{Inputs, Neighbours};
use crate::pass::network::Pass;
use crate::pass::walk::Walk;
use crate::plan::BatchingKind;
use crate::plan::batching::Batching;
use crate::sample::{Drawing, Drawn, Draws, Job, Known, LeftOut, RemoteRows, WINDOW, Window, gather_sparse};
use crate::schedule::Stage;
use crate::worker::Worker;
use crate::worker::local::Subset;

pub(super) const KIND: BatchingKind = BatchingKind {
    name: "neighbours",
    options: &["fanouts", "cache", "redraw", "ahead"],
    draws: true,
    build: || {
        makes(|worker, stage, inputs, batching| Ok(Box::new(SampledBatches::new(worker, stage, inputs, batching)?)))
    },
};

/// The own rows of a batch: training rows whose draw of the epoch is this batch.
pub(super) fn rows_of_batch(worker: &Worker, rows: &[u32], batching: &Batching, round: Round) -> Vec<Vec<u32>> {
    let batches = u64::from(batching.batches);
    let epoch = u64::from(round.first_of_epoch(batching.batches));
    let mut of = vec![Vec::new(); batching.batches as usize];
    for &row in rows {
        let id = worker.local.ids[row as usize];
        of[batch_of(worker.plan.config.train.seed, epoch, id, batches) as usize].push(row);
    }
    of
}

/// Own training rows, in the order of their ids: what is drawn for them, and a batch's own rows with it, then come in
/// an order that does not depend on how rows stand.
pub(super) fn training_rows(worker: &Worker) -> Vec<u32> {
    let (mask, by_id) = (&worker.local.masks[0], &worker.local.by_id);
    (0..mask.len() as u32).map(|place| by_id.row(place)).filter(|&row| mask[row as usize]).collect()
}

/// What batches are of.
enum Of {
    /// Own training rows.
    Rows(Vec<u32>),
    /// Edges to predict.
    Edges(EdgeBatches),
}

/// What is learned from the first rows of a batch.
enum Learned {
    /// Each one, an own row.
    Rows(Subset),
    /// Pairs of them, with what edges weigh and what the loss of a pair is multiplied by.
    Pairs(Pairs, (f32, f32)),
}

/// Batches of sampled neighbourhoods.
struct SampledBatches {
    batching: Batching,
    of: Of,
    rounds: u32,
    window: Window,
    /// The rounds that the window has.
    open: std::ops::Range<u32>,
    remote: Option<RemoteRows>,
    current: Option<(Drawn, Learned)>,
    pass: BatchPass,
    /// The memory of inputs.
    gathered: Matrix,
}

impl SampledBatches {
    /// Prepares the draws of a stage.
    ///
    /// # Errors
    /// If the system starts no thread for them.
    pub fn new(worker: &Worker, stage: &Stage, inputs: &Inputs, batching: &Batching) -> Result<SampledBatches> {
        let (plan, local) = (&worker.plan, &worker.local);
        let fetches = plan.fetches(stage);
        // What evaluations alone keep of the halo, no batch reads.
        let reads_copies = plan.keeps_halo_apart(stage) || stage.reading_layers() == 1;
        let has_copies = matches!(inputs.neighbours, Neighbours::Copies(_)) && reads_copies && !fetches;
        let known = match fetches || has_copies {
            true => Known::with_halo(local, worker.halo.owners()),
            false => Known::own(local),
        };
        let absence =
            stage.network.units().iter().map(|unit| &unit.layer).find(|layer| layer.facts().message_width > 0);
        let absence = absence.map_or(laconic_nn::Absence::Scaled, |layer| layer.facts().absence);
        let drawing = Drawing {
            fanouts: plan.fanouts(stage),
            seed: plan.config.train.seed,
            redraw: batching.redraw,
            loops: plan.self_loops,
            absence,
            relational: plan.layer.is_relational,
            relations: plan.relations,
        };
        let draws = Draws::new(local, fetches || has_copies, drawing);
        // Frozen inputs have no gradient, and need none to be folded where messages have no parameters.
        let first = stage.first().facts();
        let ends = first.message_width > 0 && !first.message_has_parameters;
        let draws = if ends { draws.ending_at_inputs() } else { draws };
        let draws = if has_copies { draws.keeping_halo_apart() } else { draws };
        let columns = inputs.x.view().columns();
        Ok(SampledBatches {
            of: EdgeBatches::of(plan, batching).map_or_else(|| Of::Rows(training_rows(worker)), Of::Edges),
            // An independent trainer goes on until it is told that it is over, and so does whoever corrects means.
            rounds: if plan.trainers.is_some() { u32::MAX } else { stage.rounds },
            window: Window::new(draws, known, batching.ahead)?,
            open: 0..0,
            remote: fetches.then(|| RemoteRows::new(stage, columns, batching.cache)),
            current: None,
            pass: BatchPass::default(),
            gathered: Matrix::default(),
            batching: batching.clone(),
        })
    }

    /// Opens the window that begins with a round.
    fn open(&mut self, worker: &mut Worker, round: Round, x: &Operand) -> Result<()> {
        let batches = self.batching.batches;
        let first = round.done % batches;
        let last = batches.min(first + WINDOW).min(first + (self.rounds - round.done));
        let jobs = match &mut self.of {
            Of::Rows(rows) => {
                let of = rows_of_batch(worker, rows, &self.batching, round);
                let of = of.into_iter().take(last as usize).skip(first as usize).zip(round.number..);
                of.map(|(seeds, round)| Job::new(round, seeds, LeftOut::default())).collect()
            }
            Of::Edges(edges) => edges.open(worker, &mut self.window, round, first..last)?,
        };
        self.open = round.done..round.done + last - first;
        self.window.open(worker, jobs, self.remote.as_mut().map(|remote| (remote, x)))
    }
}

impl SampledBatches {
    /// Sets a batch's inputs, with dropout, from wherever its rows are.
    fn read_inputs(
        &mut self,
        worker: &Worker,
        network: &Network,
        context: PassContext,
        inputs: &Inputs,
        drawn: &mut Drawn,
    ) {
        let (Inputs { x, neighbours, presence }, Drawn { nodes, batch, .. }) = (inputs, drawn);
        let (own, dropout) = (self.window.known().own_rows(), input_dropout(network, context));
        let foreign = |node: u32| self.remote.as_ref().map_or(&[][..], |remote| remote.row(node));
        batch.inputs = Some(match x {
            Operand::Dense(rows) | Operand::Placed(rows, _) => {
                let row = |row: usize| match nodes[row] {
                    node if (node as usize) < own => x.dense_row(node as usize),
                    node => foreign(node),
                };
                let mut out = std::mem::take(&mut self.gathered);
                out.reshape(nodes.len(), rows.columns());
                gather(&worker.compute, &mut out, row, dropout, &batch.ids);
                Operand::Dense(out)
            }
            Operand::Sparse(x) => {
                let mut rows = Operand::Sparse(gather_sparse(x, nodes, foreign, own));
                if let Some(dropout) = dropout {
                    drop_out_in_place(&worker.compute, &mut rows, dropout, &batch.ids);
                }
                rows
            }
        });
        if let (Some(halo), Neighbours::Copies(copies)) = (&mut batch.halo, neighbours) {
            let mut rows = copies.gather(&halo.rows);
            if let Some(dropout) = dropout {
                drop_out_in_place(&worker.compute, &mut rows, dropout, halo.ids());
            }
            halo.inputs = Some(rows);
            halo.presence = halo.presence_of(presence, halo.rows.len());
        }
    }

    /// Tells others own rows of each layer if it is time, in a pass over all of them, and hears what they have told.
    fn meet(&mut self, worker: &mut Worker, training: &mut Training<'_>) -> Result<()> {
        let Some(stale) = &worker.stale else { return Ok(()) };
        if stale.is_due() {
            self.rest();
            let Training { network, p, inputs, context, .. } = *training;
            let (mut peers, graph) = worker.split();
            let context = context.telling();
            training.pass.infer(&mut Walk {
                peers: &mut peers,
                graph,
                required_rows: None,
                network,
                p,
                inputs,
                context,
            })?;
            *training.pass = Pass::default();
        }
        let Worker { stale, halo, .. } = worker;
        stale.as_mut().map_or(Ok(()), |stale| stale.listen(halo))
    }
}

impl Batches for SampledBatches {
    fn turn(&mut self, worker: &mut Worker, round: Round, inputs: &Inputs) -> Result<f64> {
        // Who begins anew may go on elsewhere than behind what was drawn.
        if self.open.is_empty() || self.open.start != round.done {
            self.open(worker, round, &inputs.x)?;
        }
        let remote = self.remote.as_mut().map(|remote| (remote, &inputs.x));
        let drawn = self.window.take(worker, round.number, remote)?;
        self.open.start = round.done + 1;
        if let Of::Edges(edges) = &mut self.of {
            let pairs = edges.next();
            let count = pairs.counts[0] as f64;
            let how = weights(worker, pairs.counts, round.number)?;
            self.current = Some((drawn, Learned::Pairs(pairs, how)));
            return Ok(count);
        }
        // Seeds come first, in the order in which they were given.
        let seeds = drawn.batch.blocks.last().map_or(drawn.nodes.len(), laconic_nn::Block::destinations);
        let subset = Subset::of(&worker.local, drawn.nodes[..seeds].to_vec());
        let weight = subset.weight(&worker.class_weights);
        self.current = Some((drawn, Learned::Rows(subset)));
        Ok(weight)
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        let mut training = training;
        self.meet(worker, &mut training)?;
        let Some((mut drawn, learned)) = self.current.take() else { return Ok(0.0) };
        if drawn.nodes.is_empty() {
            return Ok(0.0);
        }
        let Training { network, p, inputs, task, context, scale, .. } = training;
        self.read_inputs(worker, network, context, inputs, &mut drawn);
        let batch = &drawn.batch;
        let Worker { compute, stale, .. } = &mut *worker;
        self.pass.forward(&mut BatchWalk { compute, network, p, batch, stale: stale.as_ref(), context });
        let (gradient, outputs) = self.pass.outputs();
        let (rows, pairs) = match &learned {
            Learned::Rows(subset) => (Some(subset), None),
            Learned::Pairs(pairs, how) => (None, Some((pairs, *how))),
        };
        let learning = Learning { rows, pairs, p, round: context.round, scale };
        let value = task.loss(worker, learning, outputs, gradient, g)?;
        let Worker { compute, stale, .. } = worker;
        self.pass.backward(&mut BatchWalk { compute, network, p, batch, stale: stale.as_ref(), context }, g);
        if let Some(Operand::Dense(gathered)) = drawn.batch.inputs.take() {
            self.gathered = gathered;
        }
        Ok(value)
    }

    fn rest(&mut self) {
        (self.pass, self.gathered) = Default::default();
        // Batches leave many pieces, none of which has room for the rows of all nodes.
        laconic_graph::memory::give_back();
    }
}
