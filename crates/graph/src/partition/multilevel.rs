//! Multilevel k-way partitioning by METIS (Karypis and Kumar, 1998).

use std::sync::Mutex;

use laconic_key::{Key, Purpose};
use metis::Idx;
use metis::option::{ObjType, Seed};

use super::quiet::without_prints;
use crate::dataset::Split;
use crate::error::{GraphError, Result};
use crate::graph::Graph;
use crate::partition::{Objective, PartitionInput, PartitionOptions, Partitioner, PartitionerKind, Reads};

pub(super) static KIND: PartitionerKind = PartitionerKind {
    name: "multilevel",
    options: &["seed", "objective", "balance_train", "balance_edges", "imbalance"],
    reads: |_| Reads::Graph,
    build: |options| {
        let &PartitionOptions { objective, balance_train, balance_edges, imbalance, .. } = options;
        if !(0.0..=1000.0).contains(&imbalance) {
            return Err(GraphError::invalid(format!("expected an imbalance from 0 to 1000, found {imbalance}")));
        }
        Ok(Box::new(Multilevel { objective, balance_train, balance_edges, imbalance }))
    },
};

/// METIS on the graph with directions forgotten and loops taken out, the edge weights ignored: a halo row costs the
/// same however much its edges weigh. METIS leaves parts empty where there are hardly more nodes, or training nodes to
/// be balanced, than parts; these are filled as [`PartitionerKind::build`] says.
///
/// The same input gives the same parts on the same system; METIS draws from the C library's `rand`, which differs
/// between systems. Write a part folder where that matters. METIS also catches SIGTERM while it runs, and fails then.
struct Multilevel {
    objective: Objective,
    balance_train: bool,
    balance_edges: bool,
    /// From 0 to 1000.
    imbalance: f64,
}

/// METIS draws from one generator per process.
static METIS: Mutex<()> = Mutex::new(());

impl Partitioner for Multilevel {
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
        let nodes = input.graph.nodes();
        if input.roles.is_some_and(|roles| roles.len() != nodes) {
            return Err(GraphError::invalid(format!("expected one role for each of {nodes} nodes")));
        }
        if input.parts == 1 {
            return Ok(vec![0; nodes]);
        }
        let (offsets, neighbours) = undirected(input.graph)?;
        let job = Job {
            edges: (&offsets, &neighbours),
            node_weights: &self.node_weights(input),
            edge_weights: None,
            parts: input.parts,
            imbalance: self.imbalance,
            objective: self.objective,
            seed: input.seed,
        };
        job.run()
    }
}

/// What METIS is asked for: at least two parts, and no more than nodes.
pub(super) struct Job<'a> {
    /// Compressed rows of both directions of every edge, each once, without loops: boundaries and neighbours.
    pub(super) edges: (&'a [Idx], &'a [Idx]),
    /// As many for each node as there are things to balance.
    pub(super) node_weights: &'a [Idx],
    /// One for each neighbour; none where all weigh the same.
    pub(super) edge_weights: Option<&'a [Idx]>,
    /// How many parts.
    pub(super) parts: u32,
    /// How much larger than the mean a part may be.
    pub(super) imbalance: f64,
    /// What is made small.
    pub(super) objective: Objective,
    /// The run's seed.
    pub(super) seed: u64,
}

impl Job<'_> {
    /// The part of each node.
    pub(super) fn run(&self) -> Result<Vec<u32>> {
        let (offsets, neighbours) = self.edges;
        let nodes = offsets.len() - 1;
        let constraints = self.node_weights.len() / nodes;
        // METIS cannot promise perfect balance and refuses to try.
        let bounds = vec![1.0 + self.imbalance.max(0.001) as f32; constraints];
        let seed = (Key::new(self.seed, Purpose::Partition).bits() >> 33) as Idx;
        let objective = match self.objective {
            Objective::Cut => ObjType::Cut,
            Objective::Volume => ObjType::Vol,
        };
        let mut parts = vec![0; nodes];
        let _alone = METIS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut graph = metis::Graph::new(constraints as Idx, self.parts as Idx, offsets, neighbours)
            .map_err(|error| GraphError::invalid(format!("METIS: {error}")))?
            .set_vwgt(self.node_weights)
            .set_ubvec(&bounds)
            .set_option(Seed(seed))
            .set_option(objective);
        if let Some(weights) = self.edge_weights {
            graph = graph.set_adjwgt(weights);
        }
        without_prints(|| graph.part_kway(&mut parts))
            .map_err(|error| GraphError::invalid(format!("METIS: {error}")))?;
        Ok(parts.into_iter().map(|part| part as u32).collect())
    }
}

impl Multilevel {
    /// One weight of 1 a node, others that count it where training nodes are to be balanced and it is one, and its
    /// in-edges where these are.
    fn node_weights(&self, input: &PartitionInput) -> Vec<Idx> {
        let nodes = input.graph.nodes();
        let trains = |role: &u8| role & Split::TRAIN != 0;
        let roles = input.roles.filter(|roles| self.balance_train && roles.iter().any(trains));
        let counts_edges = self.balance_edges && input.graph.edges() > 0;
        let mut weights = Vec::with_capacity(nodes * (1 + usize::from(roles.is_some()) + usize::from(counts_edges)));
        for node in 0..nodes {
            weights.push(1);
            weights.extend(roles.map(|roles| Idx::from(trains(&roles[node]))));
            weights.extend(counts_edges.then(|| input.graph.in_edges(node).len() as Idx));
        }
        weights
    }
}

/// Both directions of every edge, each once, without loops.
fn undirected(graph: &Graph) -> Result<(Vec<Idx>, Vec<Idx>)> {
    let nodes = graph.nodes();
    let edges = || {
        let into = |target: usize| graph.in_neighbours(target).iter().map(move |&source| (source as usize, target));
        (0..nodes).flat_map(into).filter(|(source, target)| source != target)
    };
    let mut next = vec![0usize; nodes + 1];
    for (source, target) in edges() {
        next[source] += 1;
        next[target] += 1;
    }
    let mut total = 0;
    for slot in &mut next {
        total += std::mem::replace(slot, total);
    }
    let too_large = || GraphError::invalid(format!("METIS takes fewer than 2^31 nodes and edge ends, not {total}"));
    if nodes >= Idx::MAX as usize {
        return Err(too_large());
    }
    let mut neighbours = vec![0 as Idx; total];
    for (source, target) in edges() {
        neighbours[next[source]] = target as Idx;
        neighbours[next[target]] = source as Idx;
        next[source] += 1;
        next[target] += 1;
    }
    // Each `next[v]` is now the end of `v`'s neighbours. Repeated ones go, and the rest moves up.
    let mut offsets = Vec::with_capacity(nodes + 1);
    offsets.push(0);
    let (mut start, mut kept) = (0, 0);
    for &end in &next[..nodes] {
        neighbours[start..end].sort_unstable();
        let row = kept;
        for at in start..end {
            if kept == row || neighbours[kept - 1] != neighbours[at] {
                neighbours[kept] = neighbours[at];
                kept += 1;
            }
        }
        offsets.push(Idx::try_from(kept).map_err(|_| too_large())?);
        start = end;
    }
    neighbours.truncate(kept);
    Ok((offsets, neighbours))
}

#[cfg(test)]
mod tests {
    use super::undirected;
    use crate::dataset::Split;
    use crate::graph::Graph;
    use crate::partition::{Objective, PartitionInput, PartitionOptions, PartitionerRegistry, Quality, quality};
    use crate::synth::{SbmSpec, sbm};

    fn clustered() -> crate::dataset::Dataset {
        sbm(&SbmSpec { nodes: 4000, mean_degree: 12.0, classes: 4, homophily: 0.9, ..SbmSpec::default() }).unwrap()
    }

    fn cut_by(method: &str, options: &PartitionOptions) -> (Vec<u32>, Quality) {
        let dataset = clustered();
        let roles = Some(&dataset.splits[0].roles[..]);
        let input = PartitionInput { graph: &dataset.graph, roles, parts: 4, seed: 5 };
        let assignment =
            PartitionerRegistry::default().get(method).unwrap().build(options).unwrap().assign(&input).unwrap();
        let figures = quality(&dataset.graph, &assignment, 4, roles, 0).unwrap();
        (assignment, figures)
    }

    #[test]
    fn the_cut_is_far_below_that_of_chance_and_balanced() {
        let random = cut_by("random", &PartitionOptions::default()).1;
        for objective in [Objective::Cut, Objective::Volume] {
            let options = PartitionOptions { objective, imbalance: 0.03, ..PartitionOptions::default() };
            let found = cut_by("multilevel", &options).1;
            assert!(found.cut_share < 0.4 * random.cut_share, "{found:?}\n{random:?}");
            assert!(found.halo_rows * 3 < random.halo_rows * 2, "{found:?}\n{random:?}");
            assert!(found.node_balance < 1.04, "{found:?}");
        }
    }

    #[test]
    fn training_nodes_are_balanced_when_asked() {
        let options = PartitionOptions { balance_train: true, imbalance: 0.03, ..PartitionOptions::default() };
        let found = cut_by("multilevel", &options).1;
        assert!(found.node_balance < 1.04 && found.train_balance < 1.04, "{found:?}");
    }

    #[test]
    fn the_same_input_gives_the_same_parts() {
        let options = PartitionOptions::default();
        let first = cut_by("multilevel", &options).0;
        assert_eq!(first, cut_by("multilevel", &options).0);
        assert_eq!(first.len(), 4000);
        assert!(first.iter().all(|&part| part < 4));
    }

    #[test]
    fn isolated_nodes_single_parts_and_too_many_parts() {
        let options = PartitionOptions::default();
        let roles = [Split::TEST; 8];
        let graph = Graph::new(vec![0, 1, 1, 1, 1, 1, 1, 1, 1], vec![0]);
        let assign = |graph: &Graph, parts| {
            let roles = (graph.nodes() == 8).then_some(&roles[..]);
            let input = PartitionInput { graph, roles, parts, seed: 1 };
            super::KIND.build(&options).unwrap().assign(&input)
        };
        assert!(assign(&graph, 4).unwrap().iter().all(|&part| part < 4));
        assert_eq!(assign(&graph, 1).unwrap(), [0; 8]);
        assert!(assign(&graph, 9).is_err() && assign(&graph, 0).is_err());
        let empty = Graph::new(vec![0], Vec::new());
        assert!(assign(&empty, 1).unwrap().is_empty());
    }

    #[test]
    fn directions_repetitions_and_loops_are_forgotten() {
        // Arcs 1→0 twice, 0→1, 2→2, 1→2.
        let graph = Graph::new(vec![0, 2, 3, 5], vec![1, 1, 0, 1, 2]);
        assert_eq!(undirected(&graph).unwrap(), (vec![0, 1, 3, 4], vec![1, 0, 2, 1]));
    }
}
