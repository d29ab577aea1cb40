//! A partitioner of one's own: linear deterministic greedy (Stanton and Kliot, 2012), which sees each node once and
//! puts it where most of its neighbours are, the less so the fuller the part.

use laconic_graph::error::{GraphError, Result};
use laconic_graph::partition::{
    OptionValue, PartitionInput, PartitionOptions, Partitioner, PartitionerKind, Reads, quality,
};
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_train::{Members, Options, train};

/// Lets a part grow to this many times the mean.
struct StreamingGreedy(f64);

/// What a registry needs to know.
pub static STREAMING_GREEDY: PartitionerKind =
    PartitionerKind { name: "streaming_greedy", options: &["slack"], reads: |_| Reads::Graph, build };

fn build(options: &PartitionOptions) -> Result<Box<dyn Partitioner>> {
    match options.own.get("slack") {
        None => Ok(Box::new(StreamingGreedy(1.0))),
        Some(OptionValue::Number(slack)) if *slack >= 0.0 => Ok(Box::new(StreamingGreedy(1.0 + slack))),
        Some(other) => Err(GraphError::invalid(format!("expected slack = 0 or more, found {other:?}"))),
    }
}

impl Partitioner for StreamingGreedy {
    fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
        let (nodes, parts) = (input.graph.nodes(), input.parts as usize);
        if parts == 0 {
            return Err(GraphError::invalid("expected at least one part"));
        }
        let capacity = (self.0 * nodes as f64 / parts as f64).ceil();
        let mut assignment = vec![u32::MAX; nodes];
        let mut sizes = vec![0.0; parts];
        for node in 0..nodes {
            let mut near = vec![0.0; parts];
            for &neighbour in input.graph.in_neighbours(node) {
                // Those that come later have no part yet.
                if let Some(near) = near.get_mut(assignment[neighbour as usize] as usize) {
                    *near += 1.0;
                }
            }
            let room = |part: &usize| 1.0 - sizes[*part] / capacity;
            let score = |part: &usize| near[*part] * room(part);
            let better = |a: &usize, b: &usize| score(a).total_cmp(&score(b)).then(room(a).total_cmp(&room(b)));
            let open = (0..parts).filter(|part| sizes[*part] < capacity);
            let best = open.max_by(better).expect("all parts together have room for all nodes");
            assignment[node] = best as u32;
            sizes[best] += 1.0;
        }
        Ok(assignment)
    }
}

/// Trains the same graph on random parts and on greedy ones.
pub fn main() -> laconic_train::Result<()> {
    let graph = sbm(&SbmSpec {
        nodes: 2000,
        classes: 4,
        features: 32,
        homophily: 0.95,
        degree_exponent: f64::INFINITY,
        feature_signal: 0.5,
        ..SbmSpec::default()
    })?;
    let members = Members::default().with_partitioner(&STREAMING_GREEDY)?;
    for partition in ["method = 'random'", "method = 'streaming_greedy', slack = 0.1"] {
        let text = format!(
            "partition = {{ parts = 4, {partition} }}
             model = {{ arch = 'gcn', hidden = 64 }}
             train = {{ epochs = 40, eval_every = 10 }}"
        );
        let config = members.parse(&text, &[])?;
        let input = PartitionInput { graph: &graph.graph, roles: None, parts: 4, seed: config.partition.seed };
        let assignment = members.partitioner(&config)?.build(&config.partition.options())?.assign(&input)?;
        let halo_rows = quality(&graph.graph, &assignment, 4, None, 32)?.halo_rows;
        let run = train(&config, graph.clone(), Options { members: members.clone(), ..Options::default() })?;
        let (accuracy, bytes) = (100.0 * run.test("accuracy").unwrap_or_default(), run.summary.bytes.total);
        println!("{partition}: {halo_rows} halo rows, accuracy {accuracy:.1} %, {bytes} bytes");
    }
    Ok(())
}
