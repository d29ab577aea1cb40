//! A window of batches: drawn, asked for and planned together.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use laconic_graph::sample::{Sampled, Sampler};
use laconic_nn::Operand;
use laconic_wire::Rank;

use super::ahead::Ahead;
use super::draws::{Draws, Elsewhere, RoundLists};
use super::job::{Drawn, Job};
use super::keep::Turn;
use super::known::Known;
use super::questions::{ask_degrees, ask_draws, ask_rows};
use super::rows::{RemoteRows, Trip};
use crate::error::{Result, TrainError};
use crate::worker::Worker;
use crate::worker::ends;

/// Batches of a window at most, so that what is asked for at once stays small beside a graph.
pub const WINDOW: u32 = 64;

/// Draws and their batches, window after window.
pub struct Window {
    draws: Arc<Draws>,
    known: Arc<Known>,
    ahead: Ahead,
    most_ahead: usize,
    batches: Option<Receiver<Drawn>>,
    trips: Vec<Trip>,
    /// How many of the trips have come.
    come: usize,
}

impl Window {
    /// An empty window over what is known; batches are made at most so many ahead.
    ///
    /// # Errors
    /// If the system starts no thread.
    pub fn new(draws: Draws, known: Known, most_ahead: usize) -> Result<Window> {
        let (draws, known) = (Arc::new(draws), Arc::new(known));
        let ahead = Ahead::new()?;
        Ok(Window { draws, known, ahead, most_ahead, batches: None, trips: Vec::new(), come: 0 })
    }

    /// What is known of nodes.
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Gives numbers to nodes, of which the owners are asked where nobody has said them yet; called on every worker at
    /// once.
    ///
    /// # Errors
    /// If another worker does not answer, or a node is owned by nobody.
    pub fn number(&mut self, worker: &mut Worker, mut wanted: Vec<u64>, round: u32) -> Result<()> {
        wanted.retain(|&id| self.known.number(id).is_none());
        wanted.sort_unstable();
        wanted.dedup();
        let known = Arc::make_mut(&mut self.known);
        for (peer, ids) in ends::owners(worker, &wanted, round)?.into_iter().enumerate() {
            for id in ids {
                known.number_of(id, Rank(peer as u32));
            }
        }
        Ok(())
    }

    /// Goes on to these rounds. With `remote`, together with the other workers: what they draw and
    /// own is asked for.
    ///
    /// # Errors
    /// If another worker does not answer.
    pub fn open(
        &mut self,
        worker: &mut Worker,
        mut jobs: Vec<Job>,
        remote: Option<(&mut RemoteRows, &Operand)>,
    ) -> Result<()> {
        // What is left of the window before is nobody's any more.
        self.batches = None;
        let left = self.come < self.trips.len();
        (self.trips, self.come) = (Vec::new(), 0);
        if let Some((rows, x)) = remote.filter(|_| worker.size() > 1 && !jobs.is_empty()) {
            if left {
                rows.forget();
            }
            let sampled = self.ask(worker, &mut jobs)?;
            self.trips = self.trips(worker, &jobs, &sampled, rows)?;
            jobs.iter_mut().zip(sampled).for_each(|(job, sampled)| job.sampled = Some(sampled));
            self.trips.iter().take(self.most_ahead).try_for_each(|trip| rows.send(worker, x, trip))?;
        }
        self.batches = Some(self.ahead.start(self.draws.clone(), self.known.clone(), jobs, self.most_ahead));
        Ok(())
    }

    /// The neighbourhoods of a window's batches, for which other workers are asked.
    fn ask(&mut self, worker: &mut Worker, jobs: &mut [Job]) -> Result<Vec<Sampled>> {
        let layers = self.draws.layers();
        let mut sampled = vec![Sampled::default(); jobs.len()];
        let mut elsewhere = vec![Elsewhere::new(self.draws.columns()); jobs.len()];
        // Layers below the last read whoever those above have found, so each is asked for when these are known. Seeds
        // are own nodes, but for ends of links.
        let first = usize::from(worker.plan.reads_own_outputs());
        for depth in first..=layers {
            let mut sampler = Sampler::new(self.known.len());
            for ((job, sampled), elsewhere) in jobs.iter().zip(&mut sampled).zip(&elsewhere) {
                let lists = RoundLists {
                    draws: &self.draws,
                    own: self.draws.own(job.round, &job.left_out.skip),
                    elsewhere,
                    own_rows: self.known.own_rows(),
                    first: layers - depth,
                };
                self.ahead.sample(&lists, &mut sampler, &job.seeds, depth, sampled);
            }
            if depth < layers {
                let (draws, known) = (self.draws.clone(), Arc::make_mut(&mut self.known));
                let layer = layers - depth - 1;
                ask_draws(&mut worker.transport, &draws, known, layer, jobs, &sampled, &mut elsewhere)?;
            }
        }
        if worker.plan.leaves_out_targets() {
            ask_degrees(&mut worker.transport, &self.known, jobs, &sampled)?;
        }
        Ok(sampled)
    }

    /// Which rows travel when.
    fn trips(
        &mut self,
        worker: &mut Worker,
        jobs: &[Job],
        sampled: &[Sampled],
        rows: &mut RemoteRows,
    ) -> Result<Vec<Trip>> {
        let known = Arc::make_mut(&mut self.known);
        let foreign = |batch: &Sampled| batch.nodes.iter().copied().filter(|&node| known.is_foreign(node)).collect();
        let batches: Vec<Vec<u32>> = sampled.iter().map(foreign).collect();
        let mut strangers: Vec<u32> = batches.iter().flatten().copied().filter(|&n| known.lacks_degree(n)).collect();
        strangers.sort_unstable();
        strangers.dedup();
        let turns = rows.plan(known, &batches);
        let mut wanted = vec![vec![Vec::new(); jobs.len() + 1]; worker.size()];
        strangers.iter().for_each(|&node| wanted[known.owner(node).index()][jobs.len()].push(node));
        for (at, turn) in turns.iter().enumerate() {
            turn.fetch.iter().for_each(|&node| wanted[known.owner(node).index()][at].push(node));
        }
        let by_id = |nodes: &mut Vec<u32>| nodes.sort_unstable_by_key(|&node| known.ids[node as usize]);
        wanted.iter_mut().flatten().for_each(by_id);
        let mut sends = ask_rows(&mut worker.transport, known, jobs[0].round, jobs.len(), &wanted)?;
        // Nothing is sent to oneself, nor asked for.
        let pick = |of: &mut [Vec<Vec<u32>>], at: usize| {
            of.iter_mut().map(|of_peer| of_peer.get_mut(at).map(std::mem::take).unwrap_or_default()).collect()
        };
        let trip = |(at, (job, turn)): (usize, (&Job, Turn))| Trip {
            round: job.round,
            send: pick(&mut sends, at),
            receive: pick(&mut wanted, at),
            turn,
        };
        Ok(jobs.iter().zip(turns).enumerate().map(trip).collect())
    }

    /// The batch of a round of the window, whose rounds are taken in turn; rows of other workers that it reads are here
    /// afterwards, and those of later ones on their way.
    ///
    /// # Errors
    /// If another worker does not answer, or the thread that makes batches has ended.
    pub fn take(
        &mut self,
        worker: &mut Worker,
        round: u32,
        remote: Option<(&mut RemoteRows, &Operand)>,
    ) -> Result<Drawn> {
        let trip = self.trips.get(self.come).filter(|trip| trip.round == round);
        if let (Some((rows, x)), Some(trip)) = (remote, trip) {
            rows.receive(worker, trip)?;
            self.come += 1;
            if let Some(later) = self.trips.get(self.come + self.most_ahead - 1) {
                rows.send(worker, x, later)?;
            }
        }
        let drawn = self.batches.as_ref().and_then(|batches| batches.recv().ok());
        match drawn.filter(|drawn| drawn.round == round) {
            Some(drawn) => {
                let read = if self.trips.is_empty() { 0 } else { self.known.foreign(&drawn.nodes) };
                worker.fetched.read += read as u64;
                Ok(drawn)
            }
            None => Err(TrainError::config(format!("the batch of round {round} was not made: its thread has ended"))),
        }
    }
}
