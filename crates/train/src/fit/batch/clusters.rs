//! Cluster batches (ClusterGCN, Chiang et al., 2019, algorithm 1): some of a worker's clusters together, with the edges
//! among all of their nodes, and degrees of these. Nothing of other workers is read.

use laconic_graph::sample::{Clusters, CsrLists, Neighbourhoods, Sampled, Sampler};
use laconic_nn::kernels::elementwise::drop_out_in_place;
use laconic_nn::{Block, EdgeData};

use super::{Batches, Round, Training, makes};
use crate::error::Result;
use crate::fit::task::Learning;
use crate::pass::batch::{Batch, BatchPass, BatchWalk, input_dropout};
use crate::pass::inputs::Inputs;
use crate::plan::BatchingKind;
use crate::plan::batching::Batching;
use crate::sample::own_edges;
use crate::worker::Worker;
use crate::worker::local::Subset;

pub(super) const KIND: BatchingKind = BatchingKind {
    name: "clusters",
    options: &["clusters"],
    draws: false,
    build: || makes(|worker, _, _, batching| Ok(Box::new(ClusterBatches::new(worker, batching)?))),
};

/// Batches of clusters. Nodes are numbered in the order of their ids, which need not be that of own rows, so that
/// clusters and batches do not depend on how rows stand.
struct ClusterBatches {
    clusters: Clusters,
    neighbourhoods: Neighbourhoods,
    batches: u32,
    loops: bool,
    sampler: Sampler,
    sampled: Sampled,
    /// The epoch that clusters are grouped for, and its groups.
    groups: (Option<u32>, Vec<Vec<u32>>),
    current: Option<(Batch, Subset)>,
    pass: BatchPass,
}

impl ClusterBatches {
    /// Cuts own rows into clusters.
    ///
    /// # Errors
    /// If the partitioner fails.
    pub fn new(worker: &Worker, batching: &Batching) -> Result<ClusterBatches> {
        let (local, loops) = (&worker.local, worker.plan.self_loops);
        let own = own_edges(local, loops);
        let own = local.by_id.order().map(|order| order.both_ends(&own)).unwrap_or(own);
        let clusters = Clusters::of_small_cuts(&own, batching.clusters, worker.plan.config.train.seed)?;
        Ok(ClusterBatches {
            clusters,
            neighbourhoods: Neighbourhoods::new(own, None),
            batches: batching.batches,
            loops,
            sampler: Sampler::new(local.ids.len()),
            sampled: Sampled::default(),
            groups: (None, Vec::new()),
            current: None,
            pass: BatchPass::default(),
        })
    }

    /// The block of these nodes with what is known of them.
    fn batch(&mut self, worker: &Worker, nodes: &[u32]) -> Batch {
        let lists = CsrLists::new(&self.neighbourhoods, &[None], CsrLists::key(0, 0));
        let lists = if self.loops { lists.with_loops() } else { lists };
        self.sampler.induced(&lists, nodes, &mut self.sampled);
        let hop = &mut self.sampled.hops[0];
        let (offsets, columns) = (std::mem::take(&mut hop.offsets), std::mem::take(&mut hop.columns));
        let data = EdgeData { weights: hop.weights.take(), relations: hop.relations.take() };
        // Nodes ascend, and so do their global ids.
        let mut block = Block::new(nodes.len(), offsets, columns, data);
        if worker.plan.layer.is_relational {
            [block] = Block::share_relations([block]);
        }
        let mut degrees = vec![0.0; nodes.len()];
        block.add_in_degrees(&mut degrees);
        let inverse = |power: f32| degrees.iter().map(|&d| if d > 0.0 { d.powf(-power) } else { 0.0 }).collect();
        let ascending = worker.local.ascending_ids();
        let ids = nodes.iter().map(|&node| ascending[node as usize]).collect();
        let (inverse_degree, inverse_root_degree) = (inverse(1.0), inverse(0.5));
        Batch { blocks: vec![block], inputs: None, ids, inverse_degree, inverse_root_degree, halo: None }
    }
}

impl Batches for ClusterBatches {
    fn turn(&mut self, worker: &mut Worker, round: Round, inputs: &Inputs) -> Result<f64> {
        let epoch = round.first_of_epoch(self.batches);
        if self.groups.0 != Some(epoch) {
            let (seed, part) = (worker.plan.config.train.seed, worker.part);
            let groups = self.clusters.group(seed, epoch.into(), part, self.batches as usize);
            self.groups = (Some(epoch), groups);
        }
        let mut rows = Vec::new();
        self.clusters.rows_of(&self.groups.1[(round.done % self.batches) as usize], &mut rows);
        let mut batch = self.batch(worker, &rows);
        rows.iter_mut().for_each(|row| *row = worker.local.by_id.row(*row));
        batch.inputs = Some(inputs.x.gather(&rows));
        let subset = Subset::of(&worker.local, rows).learning_from(&worker.local.masks[0]);
        let weight = subset.weight(&worker.class_weights);
        self.current = Some((batch, subset));
        Ok(weight)
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        let Some((mut batch, subset)) = self.current.take().filter(|(_, subset)| !subset.rows.is_empty()) else {
            return Ok(0.0);
        };
        let Training { network, p, task, context, scale, .. } = training;
        if let (Some(dropout), Some(inputs)) = (input_dropout(network, context), &mut batch.inputs) {
            drop_out_in_place(&worker.compute, inputs, dropout, &batch.ids);
        }
        self.pass.forward(&mut BatchWalk {
            compute: &mut worker.compute,
            network,
            p,
            batch: &batch,
            stale: None,
            context,
        });
        let (gradient, outputs) = self.pass.outputs();
        let learning = Learning { rows: Some(&subset), pairs: None, p, round: context.round, scale };
        let value = task.loss(worker, learning, outputs, gradient, g)?;
        self.pass.backward(
            &mut BatchWalk { compute: &mut worker.compute, network, p, batch: &batch, stale: None, context },
            g,
        );
        Ok(value)
    }

    fn rest(&mut self) {
        self.pass = BatchPass::default();
    }
}
