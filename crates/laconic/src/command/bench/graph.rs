//! The generated graphs that are measured on.

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use laconic_graph::dataset::Dataset;
use laconic_graph::error::GraphError;
use laconic_graph::synth::{RmatSpec, SbmSpec, rmat, sbm};
use laconic_train::TrainError;

/// A generator of graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Communities with heavy-tailed degrees
    Sbm,
    /// Hubs without communities; the number of nodes is the next power of two
    Rmat,
}

impl Kind {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sbm => "sbm",
            Kind::Rmat => "rmat",
        }
    }
}

/// A graph of a given size: by default that of benchmarks/peers/graph.py, ogbn-arxiv's.
#[derive(Args, Clone, Copy)]
pub struct Size {
    /// Generator of the graph
    #[arg(long, value_enum, default_value_t = Kind::Sbm)]
    pub graph: Kind,
    /// Number of nodes
    #[arg(long, value_name = "COUNT", default_value_t = 169_343)]
    pub nodes: usize,
    /// Directed edges, both directions of each edge counted; those drawn twice are one
    #[arg(long, value_name = "COUNT", default_value_t = 2_315_598)]
    pub edges: usize,
    /// Seed of the graph
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// Shares of training and validation nodes of the peers' graph.
const SHARES: [f64; 2] = [0.54, 0.16];

impl Size {
    /// Generates it with dense features and classes.
    ///
    /// # Errors
    /// If there cannot be such a graph, or there is no memory for it.
    pub fn generate(&self, features: usize, classes: usize) -> Result<Dataset> {
        let Size { graph, nodes, edges, seed } = *self;
        if nodes == 0 || edges == 0 {
            bail!("--nodes {nodes} --edges {edges}: expected at least one of each");
        }
        let refused = |error: GraphError| TrainError::config(error.to_string());
        if graph == Kind::Sbm {
            let mean_degree = edges as f64 / nodes as f64;
            let [train, val] = SHARES;
            // No node may have a larger degree than the others together, nor be held below the mean.
            let degree_max = SbmSpec::default().degree_max.max(mean_degree);
            let spec =
                SbmSpec { nodes, mean_degree, classes, features, train, val, seed, degree_max, ..SbmSpec::default() };
            return Ok(sbm(&spec).map_err(refused)?);
        }
        let scale = nodes.checked_next_power_of_two().map_or(u32::MAX, usize::ilog2);
        let edge_factor = (edges as f64 / 2.0 / (scale.min(62) as f64).exp2()).round().max(1.0) as usize;
        Ok(rmat(&RmatSpec { scale, edge_factor, features, classes, seed, ..RmatSpec::default() }).map_err(refused)?)
    }
}
