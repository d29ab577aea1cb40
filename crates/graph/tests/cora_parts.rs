//! The whole way on a real graph: read, partition, cut, write, open, plan.

#[path = "../../../tests/needs.rs"]
mod needs;

use laconic_graph::part::{Part, Provenance, cut, open_part, write_parts};
use laconic_graph::partition::{Objective, PartitionInput, PartitionOptions, PartitionerRegistry, quality};
use laconic_graph::plan::plan_all;
use laconic_graph::read::{ReadOptions, read};
use needs::shared;

#[test]
fn cora_survives_cutting_writing_and_planning_and_metis_cuts_it_well() {
    let Some(path) = shared("data/cora.npz") else { return };
    let dataset = read(&path, &ReadOptions::default()).unwrap();
    let roles = Some(&dataset.splits[0].roles[..]);
    let partition = |method: &str, objective| {
        let options = PartitionOptions { objective, imbalance: 0.03, ..PartitionOptions::default() };
        let input = PartitionInput { graph: &dataset.graph, roles, parts: 4, seed: 1 };
        let assignment =
            PartitionerRegistry::default().get(method).unwrap().build(&options).unwrap().assign(&input).unwrap();
        let figures = quality(&dataset.graph, &assignment, 4, roles, dataset.features.columns()).unwrap();
        (assignment, figures)
    };
    let (_, random) = partition("random", Objective::Cut);
    let (assignment, found) = partition("multilevel", Objective::Volume);
    assert!(found.cut_share < 0.15 && found.halo_rows * 5 < random.halo_rows, "{found:?}\n{random:?}");
    assert!(found.node_balance < 1.05, "{found:?}");

    let parts = cut(&dataset, Some(0), &assignment, 4).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("cora-4");
    write_parts(&dir, &parts, &Provenance { method: "multilevel".to_owned(), seed: 1 }, false).unwrap();
    let opened: Vec<Part> = (0..4).map(|index| open_part(&dir, index).unwrap()).collect();
    assert_eq!(opened, parts);
    let plans = plan_all(&opened, false).unwrap();
    let halo_rows: usize = plans.iter().map(|(plan, _)| plan.halo_rows()).sum();
    let edges: usize = plans.iter().map(|(_, topology)| topology.own.edges() + topology.halo.edges()).sum();
    let cut_edges: usize = plans.iter().map(|(_, topology)| topology.halo.edges()).sum();
    assert_eq!((halo_rows as u64, cut_edges as u64), (found.halo_rows, found.cut_edges));
    assert_eq!(edges, 10_556);
}
