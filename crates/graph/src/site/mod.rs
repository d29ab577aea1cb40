//! A site's part, built from the site's own tables: nobody ever holds the whole graph.
//!
//! All sites share a [`Schema`]: the order of sites, how ids name their site, columns, classes and constants. Each
//! reads its own node table and the edges that it knows, and knows of other sites' nodes their ids alone. What edges
//! end at other sites' nodes is these sites' to know, who have them in tables of their own.

mod build;
mod edges;
mod id;
mod nodes;
mod schema;

pub use build::{Built, FromSite, build};
pub use id::{SiteId, id_on_the_wire};
pub use schema::{
    DrawnSplit, EdgeSchema, FeatureSchema, IdSchema, LabelSchema, NodeSchema, NumberSchema, Schema, SplitSchema,
};
