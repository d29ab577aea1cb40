//! Edges that are predicted: which of them are held out, and pairs of nodes that are no edges.
//!
//! Both follow from keys and global ids alone, so that whoever owns either direction of an edge decides the same
//! without talking, and any partition gives the same edges to learn from and to be judged by.
//!
//! ```
//! use laconic_graph::links::{EdgeSplit, hold_out};
//! use laconic_graph::dataset::{Dataset, Features, Labels};
//! use laconic_graph::graph::Graph;
//! use laconic_graph::part::cut;
//!
//! let ring: Vec<(u32, u32)> = (0..100).flat_map(|v| [(v, (v + 1) % 100), ((v + 1) % 100, v)]).collect();
//! let graph = Graph::from_edges(100, &ring)?;
//! let dataset = Dataset::new("ring", graph, Features::None, Labels::None, vec![])?;
//! let part = cut(&dataset, None, &[0; 100], 1)?.remove(0);
//! let (train, held) = hold_out(part, &EdgeSplit { val: 0.1, test: 0.2, seed: 1 })?;
//! // Both directions of an edge are in one set, and what is held out passes no messages.
//! assert_eq!(train.edges.edges() + held.val.len() + held.test.len(), 200);
//! assert!(held.val.iter().all(|(source, target)| held.val.iter().any(|other| other == (target, source))));
//! # Ok::<(), laconic_graph::error::GraphError>(())
//! ```

mod negatives;
mod split;

pub use negatives::{NegativeScope, Negatives, TRIES, Types};
pub use split::{EdgeSplit, HeldOut, LinkRole, Links, Pair, held_in, hold_out, hold_out_given};
