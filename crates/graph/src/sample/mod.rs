//! Mini-batches: which in-edges a batch of nodes reads, layer by layer, and which nodes make a batch.
//!
//! Everything is drawn by key, so the same seed, round and node give the same neighbours, whoever holds the node,
//! whatever else is in the batch, and with however many threads. A batch is a chain of [`Hop`]s: bipartite blocks in
//! which the destinations are the first rows of the sources.
//!
//! ```
//! use laconic_graph::graph::Graph;
//! use laconic_graph::sample::{CsrLists, Neighbourhoods, Sampled, Sampler};
//!
//! // A ring of twelve nodes. Two layers; each node reads one of its two neighbours, whichever the key draws.
//! let edges: Vec<(u32, u32)> = (0..12).flat_map(|v| [(v, (v + 1) % 12), ((v + 1) % 12, v)]).collect();
//! let neighbourhoods = Neighbourhoods::of(Graph::from_edges(12, &edges)?);
//! let fanouts = [Some(1), Some(1)];
//! let lists = CsrLists::new(&neighbourhoods, &fanouts, CsrLists::key(7, 0));
//! let mut batch = Sampled::default();
//! Sampler::new(12).sample(&lists, &[3, 9], fanouts.len(), &mut batch);
//!
//! assert_eq!((batch.hops[1].destinations, batch.hops[1].edges()), (2, 2));
//! assert_eq!(batch.nodes[..2], [3, 9]);
//! // What the last layer reads is what the first one outputs, and each edge stands for the two that there are.
//! assert_eq!(batch.hops[0].destinations, batch.hops[1].sources);
//! assert_eq!(batch.hops[1].scale(0), 2.0);
//! # Ok::<(), laconic_graph::error::GraphError>(())
//! ```

mod batches;
mod clusters;
mod draw;
mod hop;
mod lists;
mod sampler;
mod skip;

pub use batches::{batch_of, batch_of_edge, batches};
pub use clusters::Clusters;
pub use draw::draw;
pub use hop::{Drawn, Hop, Sampled};
pub use lists::{CsrLists, Lists, Neighbourhoods};
pub use sampler::Sampler;
pub use skip::Skip;
