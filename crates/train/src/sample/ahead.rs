//! Batches that are made ahead of the one at work, on a thread of their own.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use laconic_graph::sample::{Sampled, Sampler};

use super::draws::{Draws, Elsewhere, RoundLists};
use super::job::{Drawn, Job};
use super::known::Known;
use crate::error::{Result, TrainError};

/// The thread that makes them.
pub(super) struct Ahead {
    pool: rayon::ThreadPool,
}

impl Ahead {
    /// # Errors
    /// If the system starts no thread.
    pub fn new() -> Result<Ahead> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).thread_name(|_| "batches".to_owned());
        // A panic there ends the channel, which whoever waits for a batch finds out.
        let pool = pool.panic_handler(|_| ()).build();
        let refused = |error| TrainError::config(format!("the system starts no thread for batches: {error}"));
        pool.map(|pool| Ahead { pool }).map_err(refused)
    }

    /// Samples now, and waits for it.
    pub fn sample(
        &self,
        lists: &RoundLists<'_>,
        sampler: &mut Sampler,
        seeds: &[u32],
        layers: usize,
        into: &mut Sampled,
    ) {
        self.pool.install(|| sampler.sample(lists, seeds, layers, into));
    }

    /// Makes these batches one after the other, at most so many more than are taken.
    pub fn start(&self, draws: Arc<Draws>, known: Arc<Known>, jobs: Vec<Job>, ahead: usize) -> Receiver<Drawn> {
        let (out, batches) = sync_channel(ahead);
        self.pool.spawn(move || {
            let (mut sampler, nobody) = (Sampler::new(known.len()), Elsewhere::default());
            for Job { round, seeds, left_out, sampled } in jobs {
                let sampled = sampled.unwrap_or_else(|| {
                    let (own, own_rows) = (draws.own(round, &left_out.skip), known.len());
                    let lists = RoundLists { draws: &draws, own, elsewhere: &nobody, own_rows, first: 0 };
                    let mut sampled = Sampled::default();
                    sampler.sample(&lists, &seeds, draws.layers(), &mut sampled);
                    sampled
                });
                let (nodes, batch) = draws.batch(sampled, &known, &left_out);
                // Nobody takes it any more where a stage ends early.
                if out.send(Drawn { round, nodes, batch }).is_err() {
                    return;
                }
            }
        });
        batches
    }
}
