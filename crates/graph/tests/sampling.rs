//! Laws of sampled batches: what they hold is what the key draws, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use laconic_graph::dataset::{Dataset, Features, Labels};
use laconic_graph::edges::{EdgeData, Edges, Relations};
use laconic_graph::graph::Graph;
use laconic_graph::part::{Part, cut};
use laconic_graph::partition::{PartitionOptions, PartitionerRegistry};
use laconic_graph::plan::plan_all;
use laconic_graph::sample::{Clusters, CsrLists, Drawn, Hop, Lists, Neighbourhoods, Sampled, Sampler, Skip};
use laconic_graph::synth::{RmatSpec, SbmSpec, rmat, sbm};
use laconic_key::{Key, Purpose};
use rayon::ThreadPoolBuilder;

const FANOUTS: [Option<usize>; 3] = [Some(15), None, Some(5)];

/// Hubs, rows without edges, loops and parallel edges; every edge weighs something else, and there are five relations.
fn graph() -> Graph {
    let drawn =
        rmat(&RmatSpec { scale: 12, edge_factor: 8, features: 0, classes: 0, ..RmatSpec::default() }).unwrap().graph;
    let (mut offsets, mut sources) = (vec![0], Vec::new());
    for node in 0..drawn.nodes() {
        sources.extend(drawn.in_neighbours(node));
        if node % 7 == 0 {
            sources.extend(vec![node as u32; 1 + node % 2]);
            sources.extend(drawn.in_neighbours(node));
        }
        sources[*offsets.last().unwrap() as usize..].sort_unstable();
        offsets.push(sources.len() as u64);
    }
    let weights: Vec<f32> = (0..sources.len()).map(|edge| 1.0 + edge as f32).collect();
    let relations = Relations { count: 5, of: (0..sources.len()).map(|edge| (edge % 5) as u16).collect() };
    let data = EdgeData { weights: Some(weights), relations: Some(relations), held: None };
    let graph = Graph { offsets, sources, data };
    graph.check().unwrap();
    graph
}

fn sample(lists: &CsrLists, nodes: usize, seeds: &[u32], layers: usize) -> Sampled {
    let mut into = Sampled::default();
    Sampler::new(nodes).sample(lists, seeds, layers, &mut into);
    into
}

fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

fn seeds() -> Vec<u32> {
    (0..1500).map(|seed| seed * 2 + 1).collect()
}

/// A source, with the edge's weight and relation.
type Edge = (u32, f32, u16);

/// What a row of a hop holds, in order.
fn row(batch: &Sampled, hop: &Hop, row: usize) -> Vec<Edge> {
    let (weights, relations) = (hop.weights.as_ref().unwrap(), hop.relations.as_ref().unwrap());
    let edge = |edge: usize| (batch.nodes[hop.columns[edge] as usize], weights[edge], relations[edge]);
    (hop.offsets[row]..hop.offsets[row + 1]).map(edge).collect()
}

/// The edges of the graph into `node`.
fn in_edges(graph: &Graph, node: usize) -> Vec<Edge> {
    let weights = graph.data.weights.as_ref().unwrap();
    graph.in_edges(node).map(|edge| (graph.sources[edge], weights[edge], graph.data.relation(edge))).collect()
}

fn drawn(into: Drawn) -> Vec<Edge> {
    let data = into.weights.unwrap().into_iter().zip(into.relations.unwrap());
    into.sources.into_iter().zip(data).map(|(source, (weight, relation))| (source, weight, relation)).collect()
}

/// The hops as sets of rows are right by definition: each destination's edges are those drawn for it alone, new sources
/// come in order of first appearance, and destinations are the first sources.
fn assert_is_what_is_drawn(batch: &Sampled, lists: &CsrLists, seeds: &[u32]) {
    let mut nodes: Vec<u32> = Vec::new();
    let mut known = BTreeSet::new();
    let mut meet = |node: u32, nodes: &mut Vec<u32>| {
        if known.insert(node) {
            nodes.push(node);
        }
    };
    seeds.iter().for_each(|&seed| meet(seed, &mut nodes));
    assert!(batch.seeds.iter().map(|&row| batch.nodes[row as usize]).eq(seeds.iter().copied()));
    for (layer, hop) in batch.hops.iter().enumerate().rev() {
        assert_eq!(
            (hop.destinations, hop.offsets.len(), hop.degrees.len()),
            (nodes.len(), nodes.len() + 1, nodes.len())
        );
        for (at, node) in nodes.clone().into_iter().enumerate() {
            let mut into = Drawn::new(true, true);
            if lists.loops() {
                into.push(node, lists.loop_data(node));
            }
            assert_eq!(hop.degrees[at], lists.append(layer, node, &mut into));
            let expected = drawn(into);
            assert_eq!(row(batch, hop, at), expected, "layer {layer}, node {node}");
            assert_eq!(hop.drawn(at), expected.len() - usize::from(lists.loops()));
            expected.iter().for_each(|edge| meet(edge.0, &mut nodes));
        }
        assert_eq!(hop.sources, nodes.len());
    }
    assert_eq!(batch.nodes, nodes);
}

#[test]
fn a_batch_is_what_is_drawn_for_each_node_alone() {
    let graph = graph();
    let nodes = graph.nodes();
    let neighbourhoods = Neighbourhoods::of(graph);
    let skip =
        Skip::new((0..4000).map(|node| (neighbourhoods.in_neighbours(node).first().copied().unwrap_or(0), node)));
    let plain = CsrLists::new(&neighbourhoods, &FANOUTS, CsrLists::key(3, 9));
    let seeds: Vec<u32> = seeds().into_iter().chain([7, 7, 0]).collect();
    for lists in
        [plain.clone(), plain.clone().with_loops(), plain.clone().without(&skip), plain.without(&skip).with_loops()]
    {
        for few in [&seeds[..], &seeds[1499..], &[]] {
            assert_is_what_is_drawn(&sample(&lists, nodes, few, 3), &lists, few);
        }
    }
}

#[test]
fn a_batch_does_not_depend_on_threads_or_on_what_was_sampled_before() {
    let graph = graph();
    let nodes = graph.nodes();
    let neighbourhoods = Neighbourhoods::of(graph);
    for loops in [false, true] {
        let mut lists = CsrLists::new(&neighbourhoods, &FANOUTS, CsrLists::key(3, 9));
        if loops {
            lists = lists.with_loops();
        }
        let alone = on_threads(1, || sample(&lists, nodes, &seeds(), 3));
        let mut sampler = Sampler::new(nodes);
        let mut batch = Sampled::default();
        for threads in [2, 3, 8] {
            on_threads(threads, || sampler.sample(&lists, &seeds(), 3, &mut batch));
            assert!(batch == alone, "{threads} threads");
            on_threads(threads, || sampler.sample(&lists, &[5, 6], 2, &mut batch));
            assert!(batch.nodes[..2] == [5, 6] && batch.hops.len() == 2);
        }
    }
}

#[test]
fn no_fanout_gives_whole_neighbourhoods() {
    let graph = graph();
    let neighbourhoods = Neighbourhoods::of(graph.clone());
    let lists = CsrLists::new(&neighbourhoods, &[None], CsrLists::key(1, 1));
    let all: Vec<u32> = (0..graph.nodes() as u32).collect();
    let batch = sample(&lists, graph.nodes(), &all, 1);
    for node in 0..graph.nodes() {
        assert_eq!(row(&batch, &batch.hops[0], node), in_edges(&graph, node));
        assert_eq!(batch.hops[0].scale(node), 1.0);
    }
}

/// The in-edges of a part's rows, by numbers of rows and then of halo rows.
fn of_part(part: &Part, halo_ids: &[u64]) -> Neighbourhoods {
    let numbers: BTreeMap<u64, u32> = part.nodes.iter().chain(halo_ids).copied().zip(0..).collect();
    let Edges { offsets, sources, data } = part.edges.clone();
    let sources = sources.iter().map(|id| numbers[id]).collect();
    Neighbourhoods::new(Edges { offsets, sources, data }, Some(part.nodes.clone()))
}

#[test]
fn a_part_draws_for_its_nodes_what_the_whole_draws() {
    let graph = graph();
    let nodes = graph.nodes();
    let dataset = Dataset::new("hubs", graph.clone(), Features::None, Labels::None, vec![]).unwrap();
    let neighbourhoods = Neighbourhoods::of(graph);
    let key = CsrLists::key(3, 9);
    let whole = CsrLists::new(&neighbourhoods, &FANOUTS, key);
    for parts in [1, 2, 5] {
        let assignment: Vec<u32> =
            (0..nodes as u64).map(|node| Key::new(1, Purpose::Test).with(node).below(parts) as u32).collect();
        let parts = cut(&dataset, None, &assignment, parts as u32).unwrap();
        for (part, (_, topology)) in parts.iter().zip(plan_all(&parts, false).unwrap()) {
            let own = of_part(part, &topology.halo_ids);
            let lists = CsrLists::new(&own, &FANOUTS, key);
            let id = |number: u32| match (number as usize).checked_sub(part.rows()) {
                None => part.nodes[number as usize],
                Some(halo) => topology.halo_ids[halo],
            };
            for (layer, number) in (0..3).flat_map(|layer| (0..part.rows() as u32).map(move |number| (layer, number))) {
                let (mut here, mut there) = (Drawn::new(true, true), Drawn::new(true, true));
                let degree = lists.append(layer, number, &mut here);
                assert_eq!(degree, whole.append(layer, id(number) as u32, &mut there));
                here.sources.iter_mut().for_each(|number| *number = id(*number) as u32);
                assert_eq!(drawn(here), drawn(there));
            }
        }
    }
}

#[test]
fn a_scaled_sum_is_on_average_the_sum_over_all_neighbours() {
    let graph = graph();
    let neighbourhoods = Neighbourhoods::of(graph.clone());
    let value = |node: u32| Key::new(4, Purpose::Test).with(u64::from(node)).unit();
    for node in [0u32, 1, 14, 77, 1001] {
        let all: Vec<f64> = neighbourhoods.in_neighbours(node).iter().map(|&source| value(source)).collect();
        let (rounds, mut sum, mut square) = (4000, 0.0, 0.0);
        for round in 0..rounds {
            let lists = CsrLists::new(&neighbourhoods, &[Some(3)], CsrLists::key(2, round));
            let batch = sample(&lists, graph.nodes(), &[node], 1);
            let hop = &batch.hops[0];
            let drawn: f64 = hop.columns.iter().map(|&row| value(batch.nodes[row as usize])).sum();
            let estimate = drawn * f64::from(hop.scale(0));
            sum += estimate;
            square += estimate * estimate;
        }
        let mean = sum / rounds as f64;
        let deviation = ((square / rounds as f64 - mean * mean).max(0.0) / rounds as f64).sqrt();
        let exact: f64 = all.iter().sum();
        assert!((mean - exact).abs() <= 5.0 * deviation + 1e-6, "node {node}: {mean} +- {deviation}, {exact}");
    }
}

#[test]
fn rounds_layers_and_nodes_draw_independently() {
    let degree = 40u32;
    let offsets = (0..=500u64).map(|node| node * u64::from(degree)).collect();
    let sources = (0..500 * degree).map(|edge| edge % degree).collect();
    let neighbourhoods = Neighbourhoods::of(Graph::new(offsets, sources));
    let drawn = |round: u64, layer: usize, node: u32| {
        let lists = CsrLists::new(&neighbourhoods, &[Some(10), Some(10)], CsrLists::key(2, round));
        let mut into = Drawn::default();
        lists.append(layer, node, &mut into);
        into.sources.into_iter().collect::<BTreeSet<u32>>()
    };
    let common = |other: &dyn Fn(u32) -> BTreeSet<u32>| {
        (100..400).map(|node| drawn(0, 0, node).intersection(&other(node)).count()).sum::<usize>() as f64 / 300.0
    };
    // Of ten among forty, 2.5 are common; the variance is 10 * 10/40 * 30/40 * 30/39 = 1.44.
    let bound = 5.0 * (1.4423f64 / 300.0).sqrt();
    assert_eq!(common(&|node| drawn(0, 0, node)), 10.0);
    for (what, found) in [
        ("round", common(&|node| drawn(1, 0, node))),
        ("layer", common(&|node| drawn(0, 1, node))),
        ("node", common(&|node| drawn(0, 0, node + 1))),
    ] {
        assert!((found - 2.5).abs() < bound, "another {what}: {found}");
    }
}

#[test]
fn a_hub_of_a_million_edges_is_drawn_from_like_any_node() {
    let degree = 1_000_000u32;
    let offsets = [0, u64::from(degree)].into_iter().chain(vec![u64::from(degree); degree as usize]).collect();
    let hub = Graph::new(offsets, (1..=degree).collect());
    let nodes = hub.nodes();
    let neighbourhoods = Neighbourhoods::of(hub);
    for fanout in [1, 15, 40, 999_990] {
        let lists = CsrLists::new(&neighbourhoods, &[Some(fanout)], CsrLists::key(2, 1));
        let batch = sample(&lists, nodes, &[0, 5], 1);
        let distinct: BTreeSet<u32> = batch.hops[0].columns.iter().copied().collect();
        assert_eq!((distinct.len(), batch.hops[0].degrees[0], batch.hops[0].degrees[1]), (fanout, degree, 0));
        let mean = distinct.iter().map(|&row| f64::from(batch.nodes[row as usize])).sum::<f64>() / fanout as f64;
        let bound = 5.0 * f64::from(degree) / (12.0 * fanout as f64).sqrt();
        assert!((mean - f64::from(degree) / 2.0).abs() < bound, "{mean} of {fanout}");
    }
}

#[test]
fn skipped_edges_are_neither_drawn_nor_counted_and_others_are_drawn_as_without_them() {
    let graph = graph();
    let node = (0..4000).find(|&node| graph.in_neighbours(node).len() == 60).unwrap_or(14);
    let gone: BTreeSet<u32> = graph.in_neighbours(node).iter().copied().filter(|source| source % 3 == 0).collect();
    assert!(!gone.is_empty());
    let left: Vec<u32> = graph.in_neighbours(node).iter().copied().filter(|source| !gone.contains(source)).collect();
    let skip = Skip::new(gone.iter().map(|&source| (source, node as u32)));
    let whole = Neighbourhoods::of(graph.clone());
    let mut offsets = vec![0; node + 1];
    offsets.resize(graph.nodes() + 1, left.len() as u64);
    let without = Neighbourhoods::of(Graph::new(offsets, left));
    for round in 0..200 {
        for fanout in [Some(2), Some(20), None] {
            let (mut here, mut there) = (Drawn::default(), Drawn::default());
            let key = CsrLists::key(1, round);
            let lists = CsrLists::new(&whole, &[fanout], key).without(&skip);
            let degree = lists.append(0, node as u32, &mut here);
            assert_eq!(degree, CsrLists::new(&without, &[fanout], key).append(0, node as u32, &mut there));
            assert_eq!(here.sources, there.sources);
        }
    }
}

#[test]
fn loops_are_one_for_each_destination_and_weigh_what_the_graphs_own_weighs() {
    // Edges into 0 from 0 (twice), 1, 2; into 1 from 0; into 2 none.
    let relations = Some(Relations { count: 9, of: vec![1, 2, 3, 4, 5] });
    let data = EdgeData { weights: Some(vec![5.0, 7.0, 1.0, 2.0, 3.0]), relations, held: None };
    let neighbourhoods = Neighbourhoods::of(Graph { offsets: vec![0, 4, 5, 5], sources: vec![0, 0, 1, 2, 0], data });
    let lists = CsrLists::new(&neighbourhoods, &[Some(1)], CsrLists::key(0, 0)).with_loops();
    let batch = sample(&lists, 3, &[0, 1, 2], 1);
    let hop = &batch.hops[0];
    assert_eq!(row(&batch, hop, 0)[0], (0, 7.0, 2));
    assert!([(1, 1.0, 3), (2, 2.0, 4)].contains(&row(&batch, hop, 0)[1]));
    assert_eq!((row(&batch, hop, 1), row(&batch, hop, 2)), (vec![(1, 1.0, 0), (0, 3.0, 5)], vec![(2, 1.0, 0)]));
    assert_eq!((&hop.degrees[..], hop.scale(0), hop.scale(2)), (&[2, 1, 0][..], 2.0, 1.0));
    // Without them, those of the graph are edges like any other.
    let batch = sample(&CsrLists::new(&neighbourhoods, &[None], CsrLists::key(0, 0)), 3, &[0], 1);
    assert_eq!(row(&batch, &batch.hops[0], 0), [(0, 5.0, 1), (0, 7.0, 2), (1, 1.0, 3), (2, 2.0, 4)]);
}

#[test]
fn an_induced_block_has_the_edges_among_its_nodes_and_no_other() {
    let graph = graph();
    let neighbourhoods = Neighbourhoods::of(graph.clone());
    let members: Vec<u32> = (0..graph.nodes() as u32).filter(|node| node % 3 == 1).rev().collect();
    let inside: BTreeMap<u32, usize> = members.iter().copied().zip(0..).collect();
    let mut sampler = Sampler::new(graph.nodes());
    let mut batch = Sampled::default();
    for loops in [false, true] {
        let plain = CsrLists::new(&neighbourhoods, &[None], CsrLists::key(0, 0));
        let lists = if loops { plain.with_loops() } else { plain };
        sampler.induced(&lists, &members, &mut batch);
        assert_eq!((&batch.nodes, batch.hops.len(), batch.hops[0].sources), (&members, 1, members.len()));
        for (&node, &at) in &inside {
            let mut expected = in_edges(&graph, node as usize);
            expected.retain(|edge| inside.contains_key(&edge.0) && (!loops || edge.0 != node));
            assert_eq!(batch.hop(2).degrees[at] as usize, expected.len());
            if loops {
                let (weight, relation) = lists.loop_data(node);
                expected.insert(0, (node, weight, relation));
            }
            assert_eq!(row(&batch, batch.hop(2), at), expected);
        }
    }
}

#[test]
fn every_cluster_is_in_one_batch_of_an_epoch_and_meets_others_in_the_next() {
    let of: Vec<u32> = (0..10_000u64).map(|row| Key::new(5, Purpose::Test).with(row).below(100) as u32).collect();
    let clusters = Clusters::new(&of, 101).unwrap();
    for (cluster, rows) in (0..101).map(|cluster| (cluster, clusters.rows(cluster))) {
        let expected = (0..of.len() as u32).filter(|&row| of[row as usize] as usize == cluster);
        assert!(rows.iter().copied().eq(expected));
    }
    let (mut pairs, mut rows) = (0, Vec::new());
    for epoch in 0..200 {
        let groups = clusters.group(7, epoch, 2, 10);
        let mut seen: Vec<u32> = groups.concat();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..101));
        assert!(groups.iter().all(|group| group.len() == 10 || group.len() == 11));
        assert_eq!(groups, clusters.group(7, epoch, 2, 10));
        assert_ne!(groups, clusters.group(7, epoch, 3, 10));
        pairs += usize::from(groups.iter().any(|group| group.contains(&3) && group.contains(&8)));
        clusters.rows_of(&groups[0], &mut rows);
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(rows.len(), groups[0].iter().map(|&cluster| clusters.rows(cluster as usize).len()).sum::<usize>());
    }
    // Two given clusters are together in (9 * C(10, 2) + C(11, 2)) / C(101, 2) = 0.0911 of all epochs.
    let bound = 5.0 * (200.0f64 * 0.0911 * 0.9089).sqrt();
    assert!((pairs as f64 - 18.2).abs() < bound, "{pairs}");
    assert!(Clusters::new(&[0, 3], 3).unwrap_err().to_string().contains("row 1 is in cluster 3"));
}

/// Of the edges of a graph, those that an epoch of cluster batches reads.
fn read_in_an_epoch(graph: &Graph, clusters: &Clusters, batches: usize) -> usize {
    let neighbourhoods = Neighbourhoods::of(graph.clone());
    let lists = CsrLists::new(&neighbourhoods, &[None], CsrLists::key(0, 0));
    let (mut sampler, mut batch, mut rows) = (Sampler::new(graph.nodes()), Sampled::default(), Vec::new());
    let mut read = 0;
    for group in clusters.group(1, 2, 0, batches) {
        clusters.rows_of(&group, &mut rows);
        sampler.induced(&lists, &rows, &mut batch);
        read += batch.hops[0].edges();
    }
    read
}

#[test]
fn cluster_batches_keep_edges_between_their_clusters_and_lose_those_to_other_batches() {
    let spec =
        SbmSpec { nodes: 3000, mean_degree: 12.0, classes: 30, homophily: 0.9, features: 0, ..SbmSpec::default() };
    let graph = sbm(&spec).unwrap().graph;
    let by = |name: &str| {
        let partitioner =
            PartitionerRegistry::default().get(name).unwrap().build(&PartitionOptions::default()).unwrap();
        Clusters::of(&*partitioner, &graph, 60, 3).unwrap()
    };
    let (near, far) = (by("multilevel"), by("random"));
    assert_eq!((near.count(), read_in_an_epoch(&graph, &near, 1)), (60, graph.edges()));
    // Of ten batches made by chance, each edge has one in ten to stay within.
    let kept = |clusters: &Clusters| read_in_an_epoch(&graph, clusters, 10) as f64 / graph.edges() as f64;
    assert!((kept(&far) - 0.1).abs() < 0.02 && kept(&near) > 0.5, "{} and {}", kept(&far), kept(&near));
}
