//! Orders of own rows: permutations of any graph's rows that keep every edge and everything that is known of nodes, and
//! that bring together what belongs together.

use laconic_graph::about::About;
use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::edges::{EdgeData, Relations};
use laconic_graph::graph::Graph;
use laconic_graph::order::{ORDERS, Order, OrderKind};
use laconic_graph::part::{Part, cut};
use laconic_graph::plan::{HaloPlan, Topology, plan_all};
use laconic_graph::synth::{RmatSpec, rmat};
use proptest::prelude::*;

fn locality() -> &'static OrderKind {
    OrderKind::from_name("locality").expect("an order")
}

/// A dataset of which every row says whose it is.
fn dataset(nodes: usize, edges: &[(u32, u32)], sparse: bool) -> Dataset {
    let weights = (0..edges.len()).map(|edge| edge as f32).collect();
    let of = (0..edges.len()).map(|edge| (edge % 3) as u16).collect();
    let data = EdgeData { weights: Some(weights), relations: Some(Relations { count: 3, of }), held: None };
    let (sources, targets) = edges.iter().copied().unzip();
    let options = BuildOptions { keep_self_loops: true, ..BuildOptions::default() };
    let (graph, _) = build_graph(nodes, sources, targets, data, options).expect("a graph");
    let features = if sparse {
        // As many stored values as the last digit of the node.
        let offsets = (0..=nodes).map(|node| (0..node).map(|node| node as u64 % 10).sum()).collect();
        let indices = (0..nodes).flat_map(|node| 0..node as u32 % 10).collect();
        let values = (0..nodes).flat_map(|node| vec![node as f32; node % 10]).collect();
        Features::Sparse { columns: 10, offsets, indices, values }
    } else {
        Features::Dense { columns: 2, values: (0..2 * nodes).map(|value| value as f32).collect() }
    };
    let labels = match sparse {
        true => Labels::Multi { classes: 2, values: (0..2 * nodes).map(|value| (value / 3 % 2) as u8).collect() },
        false => Labels::Single { classes: 5, values: (0..nodes).map(|node| (node % 5) as i32).collect() },
    };
    let roles = (0..nodes).map(|node| [Split::TRAIN, Split::VAL, Split::TEST][node % 3]).collect();
    Dataset {
        name: "odd".to_owned(),
        graph,
        features,
        labels,
        splits: vec![Split { roles }],
        ids: Ids::Row,
        about: About::default(),
        exact: Default::default(),
        negatives: None,
    }
    .checked()
    .expect("a dataset")
}

/// Every edge by the ids of its ends, with what is known of it: own ones, then those from the halo, in the order of
/// their targets.
fn edges(nodes: &[u64], topology: &Topology) -> Vec<(u64, u64, u32, u16)> {
    let mut all = Vec::new();
    for (block, sources) in [(&topology.own, nodes), (&topology.halo, &topology.halo_ids[..])] {
        assert_eq!(block.rows(), nodes.len());
        for (row, &target) in nodes.iter().enumerate() {
            for edge in block.in_edges(row) {
                let weight = block.data.weights.as_ref().map_or(1.0, |weights| weights[edge]);
                all.push((target, sources[block.sources[edge] as usize], weight.to_bits(), block.data.relation(edge)));
            }
        }
    }
    // Stable: of one target they keep their order.
    all.sort_by_key(|edge| edge.0);
    all
}

/// What is known of each node, by id.
fn known(part: &Part) -> Vec<(u64, Vec<f32>, Vec<i32>, u8)> {
    let features = |row: usize| match &part.features {
        Features::Dense { columns, values } => values[row * columns..][..*columns].to_vec(),
        Features::Sparse { offsets, indices, values, .. } => {
            let of = offsets[row] as usize..offsets[row + 1] as usize;
            indices[of.clone()].iter().map(|&column| column as f32).chain(values[of].iter().copied()).collect()
        }
        Features::None => Vec::new(),
    };
    let labels = |row: usize| match &part.labels {
        Labels::Single { values, .. } => vec![values[row]],
        Labels::Multi { classes, values } => values[row * classes..][..*classes].iter().map(|&v| v.into()).collect(),
        Labels::None => Vec::new(),
    };
    let of = |row: usize| (part.nodes[row], features(row), labels(row), part.roles[row]);
    let mut all: Vec<_> = (0..part.rows()).map(of).collect();
    all.sort_by_key(|node| node.0);
    all
}

/// The ids that each peer gets, in the order in which it gets them.
fn sent(part: &Part, plan: &HaloPlan) -> Vec<Vec<u64>> {
    plan.links.iter().map(|link| link.send.iter().map(|&row| part.nodes[row as usize]).collect()).collect()
}

fn assert_nothing_is_lost(dataset: &Dataset, parts: u32, self_loops: bool) {
    let assignment: Vec<u32> = (0..dataset.graph.rows() as u32).map(|node| node * 7 / 3 % parts).collect();
    let parts = cut(dataset, Some(0), &assignment, parts).expect("parts");
    for (part, (plan, topology)) in parts.iter().zip(plan_all(&parts, self_loops).expect("plans")) {
        for order in ORDERS.iter().filter_map(|kind| kind.of(&topology)) {
            assert_keeps(&order, part, (&plan, &topology));
        }
    }
}

fn assert_keeps(order: &Order, part: &Part, (plan, topology): (&HaloPlan, &Topology)) {
    let mut rows = order.rows().to_vec();
    rows.sort_unstable();
    assert!(rows.iter().copied().eq(0..part.rows() as u32), "{:?} are not all rows once", order.rows());
    let mut moved = part.clone();
    order.move_nodes(&mut moved);
    assert!(moved.nodes.iter().zip(order.rows()).all(|(&id, &row)| id == part.nodes[row as usize]));
    assert_eq!(known(&moved), known(part));
    let blocks = order.blocks(topology.clone());
    assert_eq!(edges(&moved.nodes, &blocks), edges(&part.nodes, topology));
    assert_eq!(blocks.halo_ids, topology.halo_ids);
    let links = order.links(plan.clone());
    assert_eq!(sent(&moved, &links), sent(part, plan));
    let received = |plan: &HaloPlan| plan.links.iter().map(|link| link.receive.clone()).collect::<Vec<_>>();
    assert_eq!(received(&links), received(plan));
}

proptest! {
    /// Few nodes and any edges: loops, parallel ones, nodes without any.
    #[test]
    fn every_graph_keeps_its_edges_and_its_nodes(
        nodes in 1usize..40,
        ends in prop::collection::vec((any::<u32>(), any::<u32>()), 0..200),
        parts in 1u32..5,
        (self_loops, sparse) in (any::<bool>(), any::<bool>()),
    ) {
        let edges: Vec<(u32, u32)> = ends.iter().map(|(a, b)| (a % nodes as u32, b % nodes as u32)).collect();
        assert_nothing_is_lost(&dataset(nodes, &edges, sparse), parts, self_loops);
    }

    #[test]
    fn moved_rows_are_the_rows_that_were_there(rows in 0usize..70, width in 0usize..4, seed in any::<u64>()) {
        let mut order: Vec<u32> = (0..rows as u32).collect();
        laconic_key::Key::new(seed, laconic_key::Purpose::Batches).shuffle(&mut order);
        let mut values: Vec<u32> = (0..(rows * width) as u32).collect();
        Order::new(order.clone()).move_rows(&mut values, width);
        let expected: Vec<u32> =
            order.iter().flat_map(|&row| (0..width as u32).map(move |column| row * width as u32 + column)).collect();
        prop_assert_eq!(values, expected);
    }
}

#[test]
fn odd_graphs_keep_their_edges_and_their_nodes() {
    let hub: Vec<(u32, u32)> = (1..5000).flat_map(|node| [(0, node), (node, 0)]).collect();
    let loops: Vec<(u32, u32)> = (0..50).map(|node| (node, node)).collect();
    let path: Vec<(u32, u32)> = (1..6000).map(|node| (node, node - 1)).collect();
    for (nodes, edges) in [(0, &[][..]), (1, &[]), (1, &[(0, 0)]), (90, &[]), (50, &loops), (5000, &hub), (6000, &path)]
    {
        for parts in [1, 3] {
            assert_nothing_is_lost(&dataset(nodes, edges, false), parts, true);
            assert_nothing_is_lost(&dataset(nodes, edges, true), parts, false);
        }
    }
}

/// 40 groups of 25 nodes that all know each other, ids assigned in turn, and a ring of single edges from group to
/// group: each group's nodes stand together, but for the few where the ring joins two.
#[test]
fn rows_that_read_the_same_rows_stand_together() {
    const GROUPS: u32 = 40;
    const SIZE: u32 = 25;
    let node = |group: u32, member: u32| member * GROUPS + group % GROUPS;
    let mut edges = Vec::new();
    for group in 0..GROUPS {
        let pairs = (0..SIZE).flat_map(|a| (0..SIZE).filter(move |b| *b != a).map(move |b| (a, b)));
        edges.extend(pairs.map(|(a, b)| (node(group, a), node(group, b))));
        edges.extend([(node(group, 0), node(group + 1, 1)), (node(group + 1, 1), node(group, 0))]);
    }
    let graph = Graph::from_edges((GROUPS * SIZE) as usize, &edges).expect("a graph");
    let topology = Topology { own: graph, halo: empty_halo((GROUPS * SIZE) as usize), halo_ids: Vec::new() };
    let order = locality().of(&topology).expect("an order");
    let groups: Vec<u32> = order.rows().iter().map(|row| row % GROUPS).collect();
    let changes = groups.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes as u32, GROUPS - 1, "{groups:?}");
}

/// Rows without an edge between them that read the same rows of others stand together as well.
#[test]
fn rows_that_read_the_same_rows_of_others_stand_together() {
    let (rows, groups) = (600u32, 30u32);
    let offsets = (0..=u64::from(rows)).map(|row| 4 * row).collect();
    let sources = (0..rows).flat_map(|row| (0..4).map(move |at| row % groups * 4 + at)).collect();
    let halo = laconic_graph::edges::Edges::new(offsets, sources);
    let halo_ids = (0..u64::from(4 * groups)).map(|row| 10_000 + row).collect();
    let own = empty_halo(rows as usize);
    let order = locality().of(&Topology { own, halo, halo_ids }).expect("an order");
    let of: Vec<u32> = order.rows().iter().map(|row| row % groups).collect();
    assert_eq!(of.windows(2).filter(|pair| pair[0] != pair[1]).count() as u32, groups - 1, "{of:?}");
}

fn empty_halo(rows: usize) -> laconic_graph::edges::Edges<u32> {
    laconic_graph::edges::Edges::new(vec![0; rows + 1], Vec::new())
}

/// Hubs and what hangs on them: the same order however many threads there are.
#[test]
fn the_order_does_not_depend_on_threads() {
    let spec = RmatSpec { seed: 3, ..RmatSpec::default() };
    let dataset = rmat(&spec).expect("a graph");
    let assignment: Vec<u32> = (0..dataset.graph.rows() as u32).map(|node| node % 2).collect();
    let parts = cut(&dataset, None, &assignment, 2).expect("parts");
    let (_, topology) = plan_all(&parts, true).expect("plans").swap_remove(0);
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| locality().of(&topology))
    };
    let expected = on(1);
    assert!(expected.is_some());
    for threads in [2, 5] {
        assert_eq!(on(threads), expected, "{threads} threads");
    }
}

#[test]
fn orders_are_found_by_their_names_and_the_first_changes_nothing() {
    for kind in &ORDERS {
        assert_eq!(OrderKind::from_name(kind.name).map(|found| found.name), Some(kind.name));
    }
    assert!(OrderKind::from_name("nowhere").is_none());
    assert!(ORDERS.iter().all(|kind| OrderKind::other_than(kind.name).name != kind.name));
    assert!(ORDERS[0].of(&Topology { own: empty_halo(3), halo: empty_halo(3), halo_ids: Vec::new() }).is_none());
}
