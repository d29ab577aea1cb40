//! Halo plans: which rows of which owner a part needs, found by exchanging ids.
//!
//! A part names the sources of its edges by global id. Whoever cuts a graph tells each part who owns them
//! ([`Owners`](crate::owners::Owners)): then owners know what is needed of them by the edges back, or get a list
//! ([`Told`]). Where nobody has seen the whole graph, four steps find out, with any transport between them (or none:
//! [`plan_all`] does them in memory):
//!
//! 1. each part computes the ids it [`needed`] and sends them to every peer ([`encode_ids`]: one byte an id, or a bit
//!    a node of the graph where that is less);
//! 2. each peer answers which of them it owns ([`owned_of`]), by their places in the question ([`places_in`]), and
//!    remembers its answer;
//! 3. each part finds one owner for each id in the answers ([`resolve_owners`]), or fails and names an edge;
//! 4. [`HaloPlan::build`] turns owners and remembered answers into the plan and the two blocks of the graph.
//!
//! Nothing is sent after that: what a peer answered is what it will send, in the order in which it answered. A part may
//! put sums in the place of rows where that takes fewer ([`Cuts`]).

mod alone;
mod counts;
mod cover;
mod halo;
mod ids;
pub(crate) mod index;
mod induced;
mod matching;
mod memory;
mod sides;
mod told;
mod topology;

pub(crate) use counts::needs;
pub use counts::{Counting, check_counts};
pub use cover::{Covered, Cuts};
pub use halo::{HaloPlan, Link, count_needed, needed, owned_of, resolve_owners};
pub use ids::{Listed, decode_ids, encode_ids, places_in};
pub use index::IdIndex;
pub use induced::{among_training, into_training, plan_training, trained_of};
pub use memory::plan_all;
pub use told::{Between, DIGEST, IdDigest, Told};
pub(crate) use told::{Sums, count_lists, sums};
pub use topology::Topology;
