//! How long it takes to generate, cut and plan graphs of a given number of directed edges:
//! `cargo run --release -p laconic-graph --example synth_speed -- 20000000`.

use std::time::Instant;

use laconic_graph::part::cut;
use laconic_graph::partition::{PartitionInput, PartitionOptions, PartitionerRegistry, quality};
use laconic_graph::plan::plan_all;
use laconic_graph::synth::{RmatSpec, SbmSpec, rmat, sbm};

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{:8.2} s  {what}", start.elapsed().as_secs_f64());
    result
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let edges: usize = std::env::args().nth(1).map_or(Ok(2_000_000), |text| text.parse())?;
    let spec = SbmSpec { nodes: edges / 14, mean_degree: 14.0, classes: 40, features: 0, ..SbmSpec::default() };
    let dataset = timed("sbm without features", || sbm(&spec))?;
    println!("            {} nodes, {} directed edges", dataset.graph.nodes(), dataset.graph.edges());
    timed("sbm with 64 features", || sbm(&SbmSpec { features: 64, ..spec }))?;
    let scale = (edges as f64 / 32.0).log2().round() as u32;
    let graph = timed("rmat without features", || rmat(&RmatSpec { scale, features: 0, ..RmatSpec::default() }))?.graph;
    println!("            {} nodes, {} directed edges", graph.nodes(), graph.edges());
    drop(graph);
    let options = PartitionOptions::default();
    let roles = Some(&dataset.splits[0].roles[..]);
    for method in ["random", "multilevel"] {
        let input = PartitionInput { graph: &dataset.graph, roles, parts: 4, seed: 0 };
        let partitioner = PartitionerRegistry::default().get(method)?.build(&options)?;
        let assignment = timed(method, || partitioner.assign(&input))?;
        println!("{:?}", timed("quality", || quality(&dataset.graph, &assignment, 4, roles, 64))?);
        let parts = timed("cut into 4", || cut(&dataset, Some(0), &assignment, 4))?;
        timed("plan all 4", || plan_all(&parts, true))?;
    }
    Ok(())
}
