//! What parts would have a model do, apart from each other.

use laconic_graph::part::cut;
use laconic_graph::partition::{PartitionInput, PartitionOptions, PartitionerRegistry};
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_train::Config;
use laconic_train::run::discrepancy::gradient_discrepancy;

/// Parts of few cut edges are of few classes where neighbours are alike, and so are their gradients; the more finely
/// what is assigned is divided, the more alike the parts are.
#[test]
fn gradients_differ_most_between_multilevel_parts_less_between_super_nodes_and_least_at_random() {
    let spec = SbmSpec { nodes: 3000, classes: 6, homophily: 0.95, features: 16, ..SbmSpec::default() };
    let graph = sbm(&SbmSpec { degree_exponent: f64::INFINITY, seed: 4, ..spec }).unwrap();
    let of = |method: &str| {
        let options = PartitionOptions { clusters: 60, ..PartitionOptions::default() };
        let partitioner = PartitionerRegistry::default().get(method).unwrap().build(&options).unwrap();
        let input = PartitionInput { graph: &graph.graph, roles: None, parts: 3, seed: 1 };
        let parts = cut(&graph, Some(0), &partitioner.assign(&input).unwrap(), 3).unwrap();
        gradient_discrepancy(&Config::default(), &parts).unwrap().unwrap()
    };
    let (multilevel, super_node, random) = (of("multilevel"), of("super_node"), of("random"));
    assert!(multilevel > 1.2 * super_node && super_node > 1.2 * random, "{multilevel} {super_node} {random}");
}

#[test]
fn parts_that_are_alike_have_one_gradient_and_a_single_part_has_none_to_compare() {
    let graph = sbm(&SbmSpec { nodes: 200, classes: 3, features: 8, ..SbmSpec::default() }).unwrap();
    let whole = cut(&graph, Some(0), &[0; 200], 1).unwrap();
    assert_eq!(gradient_discrepancy(&Config::default(), &whole).unwrap(), None);
    let twins = [whole[0].clone(), whole[0].clone()];
    assert_eq!(gradient_discrepancy(&Config::default(), &twins).unwrap(), Some(0.0));
}
