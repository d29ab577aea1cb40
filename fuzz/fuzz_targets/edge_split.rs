//! Edge splits over any shares and any part, and such as the data give: what is taken out and what stays are the edges
//! that were there, in order, each with its relation; where it is drawn, both directions and all relations of a pair go
//! one way.
#![no_main]

use laconic_graph::dataset::{Features, Ids, Labels};
use laconic_graph::edges::{Edges, Relations};
use laconic_graph::links::{EdgeSplit, HeldOut, Links, hold_out, hold_out_given};
use laconic_graph::part::{GlobalCounts, Part};

/// What is left and what is held out are all edges.
fn whole(kept: &Part, held: &HeldOut, pairs: &[(u64, u64, u16)]) {
    let edges = &kept.edges;
    let into = |row: usize| edges.in_edges(row).map(move |at| (row as u64, edges.sources[at], edges.data.relation(at)));
    let loops = (0..kept.nodes.len()).flat_map(into).filter(|(target, source, _)| source == target);
    let sets = [Links::of(kept), held.val.clone(), held.test.clone()];
    let links = sets.iter().flat_map(Links::pairs);
    let links = links.map(|edge| (edge.target, edge.source, edge.relation.expect("there are several")));
    let mut all: Vec<(u64, u64, u16)> = links.chain(loops).collect();
    all.sort_unstable();
    assert_eq!(all, pairs);
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (Some((numbers, edges)), most) = (input.split_first_chunk::<24>(), 64u64) else { return };
    let number = |at: usize| u64::from_le_bytes(numbers[at..at + 8].try_into().expect("eight bytes"));
    let split = EdgeSplit { val: f64::from_bits(number(0)), test: f64::from_bits(number(8)), seed: number(16) };
    // What is left of the bytes beside the ends says the relation.
    let edge = |[a, b]: &[u8; 2]| (u64::from(*a) % most, u64::from(*b) % most, u16::from(a >> 6) + u16::from(b >> 6));
    let mut pairs: Vec<(u64, u64, u16)> = edges.as_chunks().0.iter().map(edge).collect();
    pairs.sort_unstable();
    let offsets = (0..=most).map(|target| pairs.partition_point(|pair| pair.0 < target) as u64).collect();
    let mut part = Part {
        index: 0,
        parts: 1,
        nodes: (0..most).collect(),
        edges: Edges::new(offsets, pairs.iter().map(|pair| pair.1).collect()),
        owners: None,
        left_out: Vec::new(),
        negatives: None,
        features: Features::None,
        labels: Labels::None,
        roles: Vec::new(),
        ids: Ids::Row,
        global: GlobalCounts { nodes: most, edges: pairs.len() as u64, relations: 7, ..GlobalCounts::default() },
    };
    part.edges.data.relations = Some(Relations { count: 7, of: pairs.iter().map(|pair| pair.2).collect() });
    let mut given = part.clone();
    given.edges.data.held = Some(edges.iter().step_by(2).map(|byte| byte >> 6).take(pairs.len()).collect());
    if given.check().is_ok() {
        panic!("roles of edges that the figures of the whole know nothing of");
    }
    given.global.held = Some([0, 0]);
    if given.check().is_ok() {
        let (kept, held) = hold_out_given(given);
        kept.check().expect("what is left is a part");
        whole(&kept, &held, &pairs);
    }
    let Ok((kept, held)) = hold_out(part, &split) else {
        return assert!(split.checked().is_err());
    };
    kept.check().expect("what is left is a part");
    whole(&kept, &held, &pairs);
    for (source, target) in held.val.iter() {
        assert_eq!(split.role(source, target), split.role(target, source));
        assert!(held.test.iter().all(|other| other != (target, source)));
    }
});
