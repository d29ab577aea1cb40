//! Clusters assigned at random (SuperTMA, Zhu et al., 2023): between one multilevel part each and random nodes.

use laconic_key::{Key, Purpose};

use crate::error::{GraphError, Result};
use crate::partition::partitioner::fits;
use crate::partition::streaming::{self, Streaming};
use crate::partition::{
    Objective, PartitionInput, PartitionOptions, Partitioner, PartitionerKind, Reads, RowsInput, multilevel,
};

pub(super) static KIND: PartitionerKind = PartitionerKind {
    name: "super_node",
    options: &["seed", "clusters", "clusterer", "imbalance", "balance_edges", "rule", "passes"],
    reads: |options| {
        if Clusterer::from_name(options).is_ok_and(Clusterer::streams) { Reads::Rows } else { Reads::Graph }
    },
    build: |options| {
        let by: Box<dyn Partitioner> = match Clusterer::from_name(options)? {
            Clusterer::Multilevel => {
                let wishes = PartitionOptions { objective: Objective::Cut, balance_train: false, ..options.clone() };
                (multilevel::KIND.build)(&wishes)?
            }
            Clusterer::Streaming => Box::new(Streaming::new(options)?),
        };
        Ok(Box::new(SuperNode { clusters: options.clusters, by }))
    },
};

/// What it can cluster by, with the options that are read for it alone; first what it does where nobody says otherwise.
pub fn clusterers() -> [(&'static str, &'static [&'static str]); 2] {
    [(multilevel::KIND.name, &[]), (streaming::KIND.name, &["rule", "passes"])]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Clusterer {
    Multilevel,
    Streaming,
}

impl Clusterer {
    fn from_name(options: &PartitionOptions) -> Result<Clusterer> {
        let kinds = clusterers().into_iter().zip([Clusterer::Multilevel, Clusterer::Streaming]);
        let name = &options.clusterer;
        let found = kinds.into_iter().find(|((known, _), _)| name.is_empty() || name == known);
        found.map(|(_, kind)| kind).ok_or_else(|| {
            let names = clusterers().map(|(name, _)| name).join(" or ");
            let what = format!("expected the clusterer {names}, found {name:?}");
            GraphError::invalid(what)
        })
    }

    fn streams(self) -> bool {
        self == Clusterer::Streaming
    }
}

/// Makes clusters and assigns them to parts: each part gets as many, or one more. Parts are as large as what they get,
/// which nobody evens out, since who gets what would then depend on what is in it.
struct SuperNode {
    /// 0 for [`clusters_default`].
    clusters: u32,
    by: Box<dyn Partitioner>,
}

/// How many clusters are made where nobody says: 15,000, or a 64th of the nodes if that is less, but one a part.
pub fn clusters_default(nodes: usize, parts: u32) -> u32 {
    (nodes as u64 / 64).min(15_000).max(u64::from(parts)) as u32
}

impl SuperNode {
    fn clusters(&self, nodes: usize, parts: u32) -> u32 {
        if self.clusters == 0 { clusters_default(nodes, parts) } else { self.clusters }
    }

    /// Has nodes put into clusters, and assigns these.
    fn deal(&self, nodes: usize, parts: u32, seed: u64, gather: impl Fn(u32) -> Result<Vec<u32>>) -> Result<Vec<u32>> {
        let clusters = self.clusters(nodes, parts);
        let of = if clusters as usize == nodes { (0..clusters).collect() } else { gather(clusters)? };
        let part_of = dealt(clusters, parts, seed);
        Ok(of.into_iter().map(|cluster| part_of[cluster as usize]).collect())
    }
}

/// The part of each cluster: the first in shuffled order goes to part 0, the next to part 1, and so on round.
fn dealt(clusters: u32, parts: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..clusters).collect();
    Key::new(seed, Purpose::Partition).with(1).shuffle(&mut order);
    let mut part_of = vec![0; clusters as usize];
    order.into_iter().zip((0..parts).cycle()).for_each(|(cluster, part)| part_of[cluster as usize] = part);
    part_of
}

impl Partitioner for SuperNode {
    fn check(&self, nodes: usize, parts: u32) -> Result<()> {
        fits(nodes, parts)?;
        if self.clusters == 0 || (u64::from(parts)..=nodes as u64).contains(&u64::from(self.clusters)) {
            return Ok(());
        }
        let range = format!("expected from {parts} clusters, one a part, to {nodes}, one a node");
        Err(GraphError::invalid(format!("{range}, found {}", self.clusters)))
    }

    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
        let gather = |clusters| self.by.assign(&PartitionInput { roles: None, parts: clusters, ..*input });
        self.deal(input.graph.nodes(), input.parts, input.seed, gather)
    }

    fn assign_rows(&self, input: &RowsInput) -> Result<Vec<u32>> {
        let gather = |clusters| self.by.assign_rows(&RowsInput { roles: None, parts: clusters, ..*input });
        self.deal(input.rows.nodes(), input.parts, input.seed, gather)
    }

    fn memory(&self, nodes: u64, parts: u32) -> u64 {
        let clusters = self.clusters(nodes as usize, parts);
        self.by.memory(nodes, clusters) + 8 * u64::from(clusters) + 4 * nodes
    }
}

#[cfg(test)]
mod tests {
    use super::{clusters_default, dealt};
    use crate::graph::Graph;
    use crate::partition::{PartitionInput, PartitionOptions, PartitionerRegistry, quality};
    use crate::synth::{SbmSpec, sbm};

    fn assign(method: &str, graph: &Graph, parts: u32, options: &PartitionOptions) -> Vec<u32> {
        let input = PartitionInput { graph, roles: None, parts, seed: 3 };
        let kind = PartitionerRegistry::default().get(method).unwrap();
        kind.build(options).unwrap().assign(&input).unwrap()
    }

    fn communities(nodes: usize) -> Graph {
        let degrees = SbmSpec { nodes, mean_degree: 10.0, degree_exponent: f64::INFINITY, ..SbmSpec::default() };
        sbm(&SbmSpec { classes: 50, homophily: 0.9, features: 0, ..degrees }).unwrap().graph
    }

    #[test]
    fn fifteen_thousand_clusters_are_dealt_out_as_5000_times_3_or_3000_times_5() {
        for (parts, each) in [(3u32, 5000), (5, 3000)] {
            assert_eq!(clusters_default(1 << 20, parts), 15_000);
            let mut counts = vec![0; parts as usize];
            dealt(15_000, parts, 9).iter().for_each(|&part| counts[part as usize] += 1);
            assert_eq!(counts, vec![each; parts as usize]);
        }
        let mut counts = [0; 4];
        dealt(10, 4, 9).iter().for_each(|&part| counts[part as usize] += 1);
        assert_eq!(counts, [3, 3, 2, 2]);
        assert_eq!((clusters_default(6400, 4), clusters_default(64, 4)), (100, 4));
    }

    /// `(1 − g) + g (N/M − 1)/(N − 1)`, where g is the share of edges that the N-way cut cuts.
    #[test]
    fn the_share_of_edges_kept_is_that_of_the_formula() {
        let graph = communities(6000);
        for clusterer in ["multilevel", "streaming"] {
            let clusters = 120u32;
            let method = PartitionOptions::default();
            let of = assign(clusterer, &graph, clusters, &method);
            let cut = quality(&graph, &of, clusters, None, 0).unwrap().cut_share;
            // Whether two clusters meet is one draw for all the edges between them.
            let mut between = std::collections::BTreeMap::<(u32, u32), f64>::new();
            for node in 0..graph.nodes() {
                for &source in graph.in_neighbours(node) {
                    let (one, other) = (of[node], of[source as usize]);
                    if one != other {
                        *between.entry((one.min(other), one.max(other))).or_default() += 1.0;
                    }
                }
            }
            for parts in [2, 3, 8] {
                let options = PartitionOptions { clusters, clusterer: clusterer.to_owned(), ..method.clone() };
                let kept = 1.0
                    - quality(&graph, &assign("super_node", &graph, parts, &options), parts, None, 0)
                        .unwrap()
                        .cut_share;
                let (n, m) = (f64::from(clusters), f64::from(parts));
                let meet = (n / m - 1.0) / (n - 1.0);
                let squares: f64 = between.values().map(|edges| edges * edges).sum();
                let sigma = (squares * meet * (1.0 - meet)).sqrt() / graph.edges() as f64;
                let expected = 1.0 - cut + cut * meet;
                assert!((kept - expected).abs() < 3.0 * sigma, "{clusterer} {parts}: {kept} {expected} {sigma}");
                assert!(sigma < 0.02 && cut > 0.1, "{sigma} {cut}");
            }
        }
    }

    #[test]
    fn as_many_clusters_as_parts_are_the_multilevel_parts_and_as_many_as_nodes_are_random_ones() {
        let graph = communities(3000);
        let with = |clusters| PartitionOptions { clusters, ..PartitionOptions::default() };
        let multilevel = assign("multilevel", &graph, 6, &with(0));
        let of = assign("super_node", &graph, 6, &with(6));
        // The same parts under other numbers.
        let mut renamed = [None; 6];
        for (&was, &is) in multilevel.iter().zip(&of) {
            assert_eq!(*renamed[was as usize].get_or_insert(is), is);
        }
        renamed.sort_unstable();
        assert_eq!(renamed, [0, 1, 2, 3, 4, 5].map(Some));
        let single = assign("super_node", &graph, 6, &with(3000));
        let figures = quality(&graph, &single, 6, None, 0).unwrap();
        assert!(figures.parts.iter().all(|part| part.nodes == 500));
        // Pairs of nodes meet with probability (500 − 1)/(3000 − 1); an edge and its other direction are one draw.
        let meet = 499.0 / 2999.0;
        let sigma = (2.0 * meet * (1.0 - meet) / graph.edges() as f64).sqrt();
        assert!((1.0 - figures.cut_share - meet).abs() < 3.0 * sigma, "{}", figures.cut_share);
    }

    #[test]
    fn fewer_clusters_than_parts_more_than_nodes_and_unknown_clusterers_are_refused() {
        let graph = communities(100);
        let refused = |options: &PartitionOptions| {
            let input = PartitionInput { graph: &graph, roles: None, parts: 6, seed: 3 };
            super::KIND.build(options).and_then(|partitioner| partitioner.assign(&input)).unwrap_err().to_string()
        };
        for clusters in [5, 101] {
            let message = refused(&PartitionOptions { clusters, ..PartitionOptions::default() });
            assert_eq!(message, format!("expected from 6 clusters, one a part, to 100, one a node, found {clusters}"));
        }
        let message = refused(&PartitionOptions { clusterer: "louvain".to_owned(), ..PartitionOptions::default() });
        assert_eq!(message, "expected the clusterer multilevel or streaming, found \"louvain\"");
    }
}
