//! Graphs on disk and in memory: readers, generators, partitioners, parts and halo plans.
//!
//! The whole way, from edges to what each worker has to know of the others:
//!
//! ```
//! use laconic_graph::dataset::{Dataset, Features, Labels, Split};
//! use laconic_graph::graph::Graph;
//! use laconic_graph::part::{Part, Provenance, cut, open_part, write_parts};
//! use laconic_graph::partition::{PartitionInput, PartitionOptions, PartitionerRegistry, quality};
//! use laconic_graph::plan::plan_all;
//!
//! // A ring of twelve nodes, both directions of each edge, and what is known of the nodes. Files of the usual formats
//! // are read by `read::read`, and `synth` draws graphs.
//! let edges: Vec<(u32, u32)> = (0..12).flat_map(|v| [(v, (v + 1) % 12), ((v + 1) % 12, v)]).collect();
//! let graph = Graph::from_edges(12, &edges)?;
//! let features = Features::Dense { columns: 2, values: (0..24).map(|i| i as f32).collect() };
//! let labels = Labels::Single { classes: 2, values: (0..12).map(|v| i32::from(v >= 6)).collect() };
//! let split = Split { roles: (0..12).map(|v| if v % 3 == 0 { Split::TEST } else { Split::TRAIN }).collect() };
//! let dataset = Dataset::new("ring", graph, features, labels, vec![split])?;
//!
//! // Who owns which node, and what that costs: METIS finds three arcs of four nodes.
//! let partitioner = PartitionerRegistry::default().get("multilevel")?.build(&PartitionOptions::default())?;
//! let roles = Some(&dataset.splits[0].roles[..]);
//! let assignment = partitioner.assign(&PartitionInput { graph: &dataset.graph, roles, parts: 3, seed: 1 })?;
//! let figures = quality(&dataset.graph, &assignment, 3, roles, dataset.features.columns())?;
//! assert_eq!((figures.cut_edges, figures.halo_rows), (6, 6));
//!
//! // Cut it, write a folder of parts, and open one as its owner would.
//! let parts = cut(&dataset, Some(0), &assignment, 3)?;
//! # let place = tempfile::tempdir()?;
//! # let dir = place.path().join("ring-3");
//! write_parts(&dir, &parts, &Provenance { method: "multilevel".to_owned(), seed: 1 }, false)?;
//! let part: Part = open_part(&dir, 2)?;
//! assert_eq!((part.rows(), part.edges.edges()), (4, 8));
//!
//! // Which rows travel: each arc needs the two nodes beside it. Workers find this out over the network; here all parts
//! // are in one place.
//! for (plan, topology) in plan_all(&parts, false)? {
//!     assert_eq!((plan.halo_rows(), topology.own.edges(), topology.halo.edges()), (2, 6, 2));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod about;
pub mod aside;
pub mod build;
pub mod dataset;
pub mod digest;
mod disk;
pub mod edges;
pub mod error;
pub mod exact;
pub mod external;
mod files;
pub mod given;
pub mod graph;
pub mod info;
pub mod laws;
pub mod leaks;
pub mod limits;
pub mod links;
pub mod memory;
pub mod narrow;
pub mod node_types;
pub mod npy;
pub mod order;
pub mod owners;
mod pack;
pub mod part;
pub mod partition;
pub mod plan;
pub mod prepare;
pub mod read;
pub mod roles;
mod rules;
pub mod sample;
pub mod sides;
pub mod site;
pub mod skew;
pub mod source;
pub mod synth;
pub mod type_runs;
pub mod write;
pub mod write_tables;
