//! Halo plans agree with each other and with the graph.

mod sample;

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels};
use laconic_graph::edges::{EdgeData, Edges};
use laconic_graph::graph::Graph;
use laconic_graph::owners::Owners;
use laconic_graph::part::{Part, cut};
use laconic_graph::plan::{
    Counting, Covered, Cuts, HaloPlan, Told, Topology, count_needed, encode_ids, needed, owned_of, plan_all,
    resolve_owners,
};
use laconic_key::{Key, Purpose};
use proptest::prelude::*;

fn cut_up(nodes: usize, parts: u32, seed: u64) -> (Dataset, Vec<Part>) {
    let dataset = sample::rich(nodes, seed);
    let parts = cut(&dataset, Some(0), &sample::assignment(nodes, parts, seed), parts).unwrap();
    (dataset, parts)
}

/// The in-edges of own row `row` by global id, from both blocks.
fn edges_of(part: &Part, topology: &Topology, row: usize) -> Vec<(u64, f32)> {
    let block = |csr: &Graph, ids: &[u64]| {
        let at = csr.in_edges(row);
        assert!(csr.sources[at.clone()].is_sorted());
        let weights = csr.data.weights.as_ref().unwrap();
        at.map(|edge| (ids[csr.sources[edge] as usize], weights[edge])).collect::<Vec<_>>()
    };
    let mut edges = block(&topology.own, &part.nodes);
    edges.extend(block(&topology.halo, &topology.halo_ids));
    edges.sort_by(|a, b| a.partial_cmp(b).unwrap());
    edges
}

/// Compares what is counted of parts with their plans.
fn assert_counted(parts: &[Part]) {
    let mut counting = Counting::default();
    parts.iter().for_each(|part| counting.see(part));
    let counts = counting.finish();
    let told: Vec<Told> = parts.iter().map(|part| Told::of(part).unwrap().expect("a cut tells owners")).collect();
    let (plain, looped) = (plan_all(parts, false).unwrap(), plan_all(parts, true).unwrap());
    for (part, ((plan, topology), (_, looped))) in parts.iter().zip(plain.iter().zip(&looped)) {
        let (found, asked) = (&counts[&part.index], needed(part));
        assert_eq!(found.asked_bytes, encode_ids(&asked).len() as u64);
        assert_eq!(count_needed(part), (plan.halo_rows(), topology.halo.edges()));
        let edges = [topology.own.edges(), topology.halo.edges()].map(|edges| edges as u64);
        assert_eq!([found.own_edges, found.halo_edges], edges);
        assert_eq!(found.own_edges - found.loops + part.rows() as u64, looped.own.edges() as u64);
        for (peer, link) in plan.links.iter().enumerate() {
            let needs = found.needs.get(&(peer as u32)).copied().unwrap_or_default();
            assert_eq!(needs.rows, link.receive.len() as u64);
            assert_eq!(needs.list, Told::list_bytes(&told, part.index as usize, peer));
            let rows = &plain[peer].0.links[part.index as usize].send;
            let places = rows.iter().map(|&row| asked.binary_search(&parts[peer].nodes[row as usize]).unwrap() as u64);
            assert_eq!(needs.bytes, encode_ids(&places.collect::<Vec<u64>>()).len() as u64);
        }
    }
}

/// With ids of rows, and with ids far apart.
#[test]
fn counts_of_parts_are_those_of_their_plans() {
    for (nodes, count, seed) in [(1, 1, 0), (20, 3, 1), (80, 5, 2), (80, 8, 3)] {
        let (_, mut parts) = cut_up(nodes, count, seed);
        assert_counted(&parts);
        for part in &mut parts {
            let told = part.owners.iter_mut().flat_map(|owners| &mut owners.ids);
            part.nodes.iter_mut().chain(&mut part.edges.sources).chain(told).for_each(|id| *id *= 1_000_000_007);
            part.ids = Ids::Integers((0..part.rows() as i64).collect());
        }
        assert_counted(&parts);
    }
}

/// The same with every edge in both directions.
fn both_ways(dataset: &Dataset) -> Dataset {
    let graph = &dataset.graph;
    let edges =
        (0..graph.nodes()).flat_map(|node| graph.in_neighbours(node).iter().map(move |&from| (from, node as u32)));
    let (sources, targets) = edges.unzip();
    let options = BuildOptions { symmetrise: true, ..BuildOptions::default() };
    let built = build_graph(graph.nodes(), sources, targets, EdgeData::default(), options).unwrap();
    Dataset { graph: built.0, ..dataset.clone() }
}

#[test]
fn owners_that_a_cut_tells_are_those_that_asking_finds_and_know_what_is_needed_where_edges_lead_both_ways() {
    for (nodes, count, seed) in [(1, 1, 0), (30, 3, 1), (80, 5, 2)] {
        let (one_way, _) = cut_up(nodes, count, seed);
        let [mut lists, mut lists_both] = [0; 2];
        for (dataset, lists) in [(&both_ways(&one_way), &mut lists_both), (&one_way, &mut lists)] {
            let parts = cut(dataset, Some(0), &sample::assignment(nodes, count, seed), count).unwrap();
            let told: Vec<Told> = parts.iter().map(|part| Told::of(part).unwrap().unwrap()).collect();
            for (part, (plan, topology)) in parts.iter().zip(plan_all(&parts, false).unwrap()) {
                for (peer, (link, between)) in plan.links.iter().zip(&told[part.index as usize].peers).enumerate() {
                    assert_eq!(
                        topology.halo_ids[link.receive.start as usize..link.receive.end as usize],
                        between.needed
                    );
                    let nodes = &parts[peer].nodes;
                    let ids: Vec<u64> = between.rows.iter().map(|&row| nodes[row as usize]).collect();
                    assert_eq!(ids, between.needed);
                    *lists += Told::list_bytes(&told, part.index as usize, peer);
                }
            }
        }
        assert_eq!((lists_both, lists > 0), (0, count > 1), "{nodes} nodes");
    }
}

#[test]
fn owners_that_cannot_be_are_refused() {
    type Change = (fn(&mut Owners), &'static str);
    let changes: [Change; 6] = [
        (|owners| owners.parts[0] = 0, "expected another part"),
        (|owners| owners.parts[0] = 2, "expected another part"),
        (|owners| owners.rows.swap(0, 1), "expected ascending rows"),
        (|owners| owners.ids.swap(0, 1), "expected ascending ids"),
        (|owners| owners.rows.truncate(1), "expected an owner and a row"),
        (|owners| *owners = Owners::default(), "the source of the edge 1 -> 0 of part 0, is none of the nodes whose"),
    ];
    for (change, words) in changes {
        let mut part = four_nodes().swap_remove(0);
        change(part.owners.as_mut().unwrap());
        let error = Told::of(&part).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn both_blocks_together_are_the_graph(
        nodes in 0usize..80, parts in 1u32..9, seed in 0u64..1000, self_loops in any::<bool>(),
    ) {
        let (dataset, parts) = cut_up(nodes, parts, seed);
        let graph = &dataset.graph;
        for (part, (plan, topology)) in parts.iter().zip(plan_all(&parts, self_loops).unwrap()) {
            prop_assert_eq!(plan.links.len(), parts.len());
            prop_assert_eq!((topology.own.rows(), topology.halo.rows()), (part.rows(), part.rows()));
            prop_assert_eq!(topology.halo_ids.len(), plan.halo_rows());
            for (row, &id) in part.nodes.iter().enumerate() {
                let weights = graph.data.weights.as_ref().unwrap();
                let at = graph.in_edges(id as usize);
                let mut expected: Vec<(u64, f32)> = at.map(|e| (u64::from(graph.sources[e]), weights[e])).collect();
                if self_loops && expected.iter().all(|edge| edge.0 != id) {
                    expected.push((id, 1.0));
                }
                expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
                prop_assert_eq!(edges_of(part, &topology, row), expected);
            }
        }
    }

    #[test]
    fn what_one_sends_is_what_the_other_receives(nodes in 0usize..80, parts in 1u32..9, seed in 0u64..1000) {
        let (_, parts) = cut_up(nodes, parts, seed);
        let plans = plan_all(&parts, false).unwrap();
        for (receiver, (plan, topology)) in plans.iter().enumerate() {
            let mut start = 0;
            for (sender, link) in plan.links.iter().enumerate() {
                prop_assert_eq!(link.receive.start, start);
                start = link.receive.end;
                let send = &plans[sender].0.links[receiver].send;
                prop_assert!(send.windows(2).all(|pair| pair[0] < pair[1]));
                let sent: Vec<u64> = send.iter().map(|&row| parts[sender].nodes[row as usize]).collect();
                let received = &topology.halo_ids[link.receive.start as usize..link.receive.end as usize];
                prop_assert_eq!(&sent[..], received);
                if sender == receiver {
                    prop_assert!(sent.is_empty());
                }
            }
            prop_assert_eq!(start as usize, topology.halo_ids.len());
            let mut ids = topology.halo_ids.clone();
            ids.sort_unstable();
            prop_assert_eq!(ids, needed(&parts[receiver]));
        }
    }

    #[test]
    fn reverse_exchange_is_adjoint_of_forward(nodes in 1usize..80, parts in 1u32..9, seed in 0u64..1000) {
        let (_, parts) = cut_up(nodes, parts, seed);
        let plans = plan_all(&parts, false).unwrap();
        let key = Key::new(seed, Purpose::Test).with(77);
        // Small integers, so that sums are exact in any order.
        let number = |rank: usize, row: usize, which| {
            key.with(which).with(rank as u64).with(row as u64).below(100) as i64 - 50
        };
        let (mut forward, mut reverse) = (0, 0);
        for (rank, (plan, _)) in plans.iter().enumerate() {
            for (peer, link) in plan.links.iter().enumerate() {
                let send = &plans[peer].0.links[rank].send;
                for (row, &from) in link.receive.clone().zip(send) {
                    forward += number(peer, from as usize, 0) * number(rank, row as usize, 1);
                }
                let back = plans[peer].0.links[rank].receive.clone();
                for (&row, from) in link.send.iter().zip(back) {
                    reverse += number(rank, row as usize, 0) * number(peer, from as usize, 1);
                }
            }
        }
        prop_assert_eq!(forward, reverse);
    }
}

/// Arcs 1→0, 3→0, 0→2, 2→2; node `v` in part `v % 2`.
fn four_nodes() -> Vec<Part> {
    let dataset = Dataset {
        name: "four".to_owned(),
        graph: Graph::new(vec![0, 2, 2, 4, 4], vec![1, 3, 0, 2]),
        features: Features::None,
        labels: Labels::None,
        splits: Vec::new(),
        ids: Ids::Row,
        about: laconic_graph::about::About::default(),
        exact: Default::default(),
        negatives: None,
    };
    cut(&dataset, None, &[0, 1, 0, 1], 2).unwrap()
}

#[test]
fn a_small_plan_is_the_one_worked_out_by_hand() {
    let plans = plan_all(&four_nodes(), true).unwrap();
    let (plan, topology) = &plans[0];
    assert_eq!((&topology.halo_ids[..], plan.links[1].receive.clone(), plan.halo_rows()), (&[1, 3][..], 0..2, 2));
    assert_eq!((&topology.own.offsets[..], &topology.own.sources[..]), (&[0, 1, 3][..], &[0, 0, 1][..]));
    assert_eq!((&topology.halo.offsets[..], &topology.halo.sources[..]), (&[0, 2, 2][..], &[0, 1][..]));
    assert_eq!(topology.own.data.weights, None);
    assert_eq!((&plans[1].0.links[0].send[..], plans[1].0.sent_rows()), (&[0, 1][..], 2));
    assert_eq!(plans[1].1.own.sources, [0, 1]);
    let unlooped = plan_all(&four_nodes(), false).unwrap();
    assert_eq!(unlooped[0].1.own.sources, [0, 1]);
}

#[test]
fn an_id_that_nobody_or_two_own_is_named_with_an_edge_that_needs_it() {
    let message = |parts: &[Part]| plan_all(parts, false).unwrap_err().to_string();
    let mut parts = four_nodes();
    let part = &mut parts[1];
    part.nodes.pop();
    part.edges.offsets.pop();
    assert!(message(&parts).contains("node 3, the source of the edge 3 -> 0 of part 0, is owned by no part"));
    let mut parts = four_nodes();
    parts[1].nodes[0] = 0;
    assert!(message(&parts).contains("node 0 is owned by both part 0 and part 1"), "{}", message(&parts));
    let parts = four_nodes();
    assert_eq!(needed(&parts[0]), [1, 3]);
    let both = resolve_owners(&parts[0], &[1, 3], &[vec![], vec![1, 3], vec![3]]).unwrap_err().to_string();
    assert!(both.contains("edge 3 -> 0") && both.contains("part 1 and part 2"), "{both}");
    assert!(resolve_owners(&parts[0], &[1, 3], &[vec![], vec![1, 2]]).is_err());
    assert_eq!(resolve_owners(&parts[0], &[1, 3], &[vec![], vec![1, 3]]).unwrap(), [1, 1]);
    assert_eq!(owned_of(&parts[0], &[2, 1, 0]), [Some(1), None, Some(0)]);
}

#[test]
fn answers_that_cannot_be_are_refused() {
    let parts = four_nodes();
    let build = |owners: &[u32], asked_by: &[Vec<u64>]| HaloPlan::build(&parts[0], owners, asked_by, false);
    assert!(build(&[1, 1], &[vec![], vec![0]]).is_ok());
    for (owners, asked_by) in [
        (&[1, 1][..], vec![vec![]]),
        (&[1][..], vec![vec![], vec![]]),
        (&[1, 0][..], vec![vec![], vec![]]),
        (&[1, 2][..], vec![vec![], vec![]]),
        (&[1, 1][..], vec![vec![0], vec![]]),
        (&[1, 1][..], vec![vec![], vec![1]]),
        (&[1, 1][..], vec![vec![], vec![2, 0]]),
    ] {
        assert!(build(owners, &asked_by).is_err(), "{owners:?} {asked_by:?}");
    }
    let mut broken = four_nodes();
    broken[0].edges.offsets[1] = 9;
    assert!(plan_all(&broken, false).is_err());
    broken.swap(0, 1);
    assert!(plan_all(&broken, false).is_err());
}

/// The least number of nodes that some edges all have an end among, by trying: the ends of the first edge in turn.
fn least_cover(edges: &[(usize, usize)]) -> usize {
    let Some(&(left, right)) = edges.first() else { return 0 };
    let without = |is_in: &dyn Fn(&(usize, usize)) -> bool| {
        let rest: Vec<(usize, usize)> = edges.iter().filter(|edge| !is_in(edge)).copied().collect();
        1 + least_cover(&rest)
    };
    without(&|edge| edge.0 == left).min(without(&|edge| edge.1 == right))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Sums of what is sent are sums of neighbours, on small integers, in as few rows as can be.
    #[test]
    fn what_crosses_under_a_cover_comes_to_what_rows_come_to(
        nodes in 1usize..60, count in 1u32..6, seed in 0u64..1000, weighted in any::<bool>(),
    ) {
        let (dataset, _) = cut_up(nodes, count, seed);
        let mut dataset = both_ways(&dataset);
        if weighted {
            let graph = &mut dataset.graph;
            let weight = |target: usize, source: u32| 1.0 + ((target * source as usize) % 7) as f32;
            let of = (0..nodes).flat_map(|node| graph.in_neighbours(node).iter().map(move |&from| weight(node, from)));
            graph.data.weights = Some(of.collect());
        }
        let parts = cut(&dataset, Some(0), &sample::assignment(nodes, count, seed), count).unwrap();
        let plans = plan_all(&parts, true).unwrap();
        let cuts: Vec<Cuts> = plans.iter().map(|(plan, topology)| Cuts::of(plan, topology).unwrap()).collect();
        let all = cuts.iter().zip(&plans).zip(&parts);
        let covered: Vec<Covered> =
            all.map(|((cuts, (plan, topology)), part)| cuts.cover(plan, topology, &part.nodes)).collect();
        let value = |id: u64| (id * id % 101) as f32;
        let weight_of = |edges: &Edges<u32>, edge: usize| edges.data.weights.as_ref().map_or(1.0, |w| w[edge]);
        let sums = |edges: &Edges<u32>, values: &[f32]| -> Vec<f32> {
            let of_edge = |edge: usize| weight_of(edges, edge) * values[edges.sources[edge] as usize];
            (0..edges.rows()).map(|row| edges.in_edges(row).map(of_edge).sum()).collect()
        };
        let outgoing: Vec<Vec<f32>> = covered.iter().zip(&parts).map(|(covered, part)| {
            sums(&covered.outgoing, &part.nodes.iter().map(|&id| value(id)).collect::<Vec<f32>>())
        }).collect();
        if !weighted {
            let largest = (0..nodes as u64).map(value).fold(0.0, f32::max);
            prop_assert!(outgoing.iter().flatten().all(|sent| *sent < 2.0 * largest.max(1.0)), "as large as rows are");
        }
        for (rank, (covered_here, (plan, topology))) in covered.iter().zip(&plans).enumerate() {
            let mut halo = vec![f32::NAN; covered_here.halo_ids.len()];
            for (peer, link) in covered_here.links.iter().enumerate() {
                let sent = &covered[peer].links[rank].send;
                prop_assert_eq!(sent.len(), link.receive.len());
                prop_assert_eq!(sent.len(), link.send.len(), "as many cross either way");
                for (row, &from) in link.receive.clone().zip(sent) {
                    halo[row as usize] = outgoing[peer][from as usize];
                }
                prop_assert_eq!(cuts[rank].digests()[peer], cuts[peer].digests()[rank]);
                let old = &plan.links[peer];
                prop_assert!(sent.len() <= old.receive.len().min(old.send.len()));
                let crossing: Vec<(usize, usize)> = (0..topology.halo.rows())
                    .flat_map(|row| topology.halo.in_neighbours(row).iter().map(move |&from| (row, from as usize)))
                    .filter(|&(_, from)| old.receive.contains(&(from as u32)))
                    .collect();
                if crossing.len() < 20 {
                    prop_assert_eq!(sent.len(), least_cover(&crossing));
                }
            }
            let rows: Vec<f32> = topology.halo_ids.iter().map(|&id| value(id)).collect();
            prop_assert_eq!(sums(&covered_here.halo, &halo), sums(&topology.halo, &rows));
            prop_assert!((0..covered_here.halo.rows()).all(|row| covered_here.halo.in_neighbours(row).is_sorted()));
        }
    }
}

/// A long chain and a crown, which a greedy choice gets wrong.
#[test]
fn a_cover_of_a_chain_across_two_parts_takes_every_other_node() {
    let nodes = 4001;
    let edges = (1..nodes as u32).flat_map(|node| [(node - 1, node), (node, node - 1)]);
    let (sources, targets) = edges.unzip();
    let built = build_graph(nodes, sources, targets, EdgeData::default(), BuildOptions::default()).unwrap().0;
    let dataset = Dataset { graph: built, ..sample::rich(nodes, 1) };
    let assignment: Vec<u32> = (0..nodes as u32).map(|node| node % 2).collect();
    let parts = cut(&dataset, Some(0), &assignment, 2).unwrap();
    for (part, (plan, topology)) in parts.iter().zip(plan_all(&parts, false).unwrap()) {
        let covered = Cuts::of(&plan, &topology).unwrap().cover(&plan, &topology, &part.nodes);
        assert_eq!(covered.sent_rows(), nodes / 2);
        assert_eq!(plan.sent_rows(), nodes / 2 + usize::from(part.index == 0));
    }
}

#[test]
fn a_cover_of_edges_that_lead_one_way_is_refused() {
    let dataset = sample::rich(30, 3);
    let parts = cut(&dataset, Some(0), &sample::assignment(30, 3, 3), 3).unwrap();
    let plans = plan_all(&parts, false).unwrap();
    let errors = plans.iter().filter_map(|(plan, topology)| Cuts::of(plan, topology).err());
    let words: Vec<String> = errors.map(|error| error.to_string()).collect();
    assert!(!words.is_empty() && words.iter().all(|words| words.contains("none leads back")), "{words:?}");
}
