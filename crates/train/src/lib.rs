//! Training over a partitioned graph: the crate that knows graphs, layers and the network, and the only one that knows
//! all three.
//!
//! A run is a [`Config`], some [`Data`] and [`train`]:
//!
//! ```
//! use laconic_graph::synth::{SbmSpec, sbm};
//! use laconic_train::{Config, Members, Options, plan, predict, train};
//!
//! // A graph in memory: 300 nodes in 3 classes, with features that tell a little of the class.
//! let graph = sbm(&SbmSpec { nodes: 300, classes: 3, features: 16, seed: 1, ..SbmSpec::default() })?;
//!
//! // The keys are those of a file `run.toml`; `laconic keys` lists them.
//! let text = "
//!     partition = { parts = 3 }
//!     model = { arch = 'gcn', hidden = 16 }
//!     train = { epochs = 20, lr = 0.01 }
//!     schedule = { kind = 'lazy' }
//!     messages = { forward = { codec = 'quantised', bits = 8 } }
//! ";
//! let config = Config::parse(text, &[])?;
//!
//! // What it will send, to the byte, before anything runs; then what it did send.
//! let predicted: u64 = plan(&Members::default(), &config, graph.clone())?
//!     .workers.iter().map(|(_, ledger, _)| ledger.total().framed).sum();
//! let run = train(&config, graph.clone(), Options::default())?;
//! assert_eq!(run.summary.bytes.total, predicted);
//! assert_eq!(run.ledgers.iter().map(|ledger| ledger.total().framed).sum::<u64>(), predicted);
//! println!("accuracy {:?} for {predicted} bytes", run.test("accuracy"));
//!
//! // The model on a graph: scores of every node, part by part.
//! let predictions = predict(&run, graph)?;
//! assert_eq!(predictions.iter().map(|part| part.inferred.logits.rows()).sum::<usize>(), 300);
//! # Ok::<(), laconic_train::TrainError>(())
//! ```
//!
//! [`load`] reads a model from the folder of a run ([`Options::out`]). An [`Observer`] sees every round, and stops the
//! run by returning `Break`; of workers that are processes each has its own ([`run_worker`]).
//!
//! A codec, selection, partitioner, layer, schedule, task or kind of batches of your own joins by [`Members`] and is
//! then named in the configuration like any other, and so does an agreement, which no key names; [`laws`] are what it
//! has to keep. How the engine works stands in the repository's
//! ARCHITECTURE.md; its modules are hidden here and may change.

#[doc(hidden)]
pub mod auto;
#[doc(hidden)]
pub mod averaging;
pub mod config;
pub mod error;
#[doc(hidden)]
pub mod exchange;
#[doc(hidden)]
pub mod fit;
#[doc(hidden)]
pub mod forecast;
#[doc(hidden)]
pub mod inputs;
pub mod laws;
#[doc(hidden)]
pub mod messages;
#[doc(hidden)]
pub mod pass;
pub mod plan;
pub mod record;
pub mod run;
pub mod sample;
#[doc(hidden)]
pub mod saved;
pub mod schedule;
pub mod selection;
#[doc(hidden)]
pub mod worker;

pub use auto::train;
pub use config::Config;
pub use error::{Result, TrainError};
pub use fit::observe::RoundReport;
pub use forecast::costs::Costs;
pub use laconic_graph::dataset::Dataset;
pub use plan::{Members, Plan};
pub use record::observer::Observer;
pub use record::summary::Summary;
pub use record::weights::Weights;
pub use run::verify::verify;
pub use run::{Data, Loaded, Options, Run, load, plan, predict, resume, run_worker};
