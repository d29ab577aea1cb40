//! `compare --plan`: what every method will send, before anything runs.

use std::fmt::Write;

use anyhow::{Context, Result};
use laconic_train::Members;
use laconic_train::auto::what_leaves;
use laconic_train::config::TransportConfig;
use laconic_train::forecast::costs::forecast_knowing;
use laconic_train::forecast::load::load;
use laconic_train::record::account::{Account, LETTERS, TRIPS};
use laconic_train::record::purposes::Purposes;
use laconic_wire::{Ledger, PerKind};
use schemars::JsonSchema;
use serde::Serialize;

use super::account;
use super::matrix::{Matrix, Method};
use super::seeds::Seeds;
use super::world::World;
use crate::bytes::human_bytes;
use crate::command::plan::{LinkTime, times};

/// The links that the table shows where the comparison names none.
const SHOWN: [&str; 3] = ["lan-1gbit-1ms", "wan-100mbit-40ms", "wan-20mbit-80ms"];

/// What every method of a comparison will cost.
#[derive(Serialize, JsonSchema)]
pub struct Plan {
    /// Runs of all methods over all seeds.
    runs: usize,
    /// Bytes of all runs together, as if every seed were the first.
    bytes: u64,
    /// The link that the comparison names, or null.
    link: Option<String>,
    /// Every method, with the first seeds.
    methods: Vec<Planned>,
}

/// What one run of a method will cost.
#[derive(Serialize, JsonSchema)]
pub struct Planned {
    /// The name that the file of methods gives it.
    name: String,
    /// What it changes.
    set: Vec<String>,
    /// The share of edges whose ends are of two parts.
    edge_cut: f64,
    /// Bytes of one run, as all that follow.
    bytes: u64,
    #[serde(flatten)]
    purposes: Purposes,
    /// Bytes of all but evaluations.
    training: u64,
    /// How many times fewer bytes of training than the baseline's.
    fewer: f64,
    /// Whether it may send less, because sizes depend on what happens during it.
    is_bound: bool,
    /// How many frames.
    frames: u64,
    /// Bytes that all workers take together, the program apart.
    memory: u64,
    /// Seconds on each link.
    seconds_on_links: Vec<LinkTime>,
    /// What leaves workers, in the words of `policy.deny`, but for reports and digests.
    leaves: Vec<String>,
    /// Who has to hold the whole graph, who sees what of others' nodes, and how often somebody waits.
    account: Account,
    /// What is to be noted of it.
    notes: Vec<String>,
}

impl Plan {
    /// The plan of every method; `open` cuts the graph in one of the ways that they ask for.
    pub fn of(matrix: &Matrix, seeds: &Seeds, mut open: impl FnMut(usize) -> Result<World>) -> Result<Plan> {
        let link = matrix.link.as_deref().unwrap_or_default();
        let mut methods: Vec<(usize, Planned)> = Vec::with_capacity(matrix.methods.len());
        for cut in 0..matrix.cuts.len() {
            let world = open(cut)?;
            for (index, method) in matrix.methods.iter().enumerate().filter(|(_, method)| method.cut == cut) {
                let planned = Planned::of(method, seeds, &world, link);
                methods.push((index, planned.with_context(|| format!("method {:?}", method.name))?));
            }
        }
        methods.sort_by_key(|(index, _)| *index);
        let mut methods: Vec<Planned> = methods.into_iter().map(|(_, planned)| planned).collect();
        let baseline = methods[matrix.baseline].training as f64;
        methods.iter_mut().for_each(|method| method.fewer = baseline / method.training.max(1) as f64);
        let runs = matrix.seeds.len();
        Ok(Plan {
            runs: runs * methods.len(),
            bytes: methods.iter().map(|method| method.bytes).sum::<u64>() * runs as u64,
            link: matrix.link.clone(),
            methods,
        })
    }

    /// The plan as people read it.
    pub fn table(&self) -> String {
        let width = self.methods.iter().map(|method| method.name.chars().count()).max().unwrap_or(0).clamp(6, 40);
        let mut text = format!("{:<width$}", "method");
        for column in ["boundary", "parameters", "evaluation", "start-up"] {
            let _ = write!(text, " {column:>10}");
        }
        let _ = write!(text, " {:>7} {:>5} {:>7} {:>10}", "fewer", "saw", "trips", "memory");
        let links: Vec<&str> = self.link.as_deref().map_or(SHOWN.to_vec(), |link| vec![link]);
        links.iter().for_each(|link| {
            let _ = write!(text, " {link:>16}");
        });
        for method in &self.methods {
            let name: String = method.name.chars().take(width).collect();
            let Purposes { boundary, parameters, evaluation, start_up } = method.purposes;
            let _ = write!(text, "\n{name:<width$}");
            for bytes in [boundary, parameters, evaluation, start_up] {
                let _ = write!(text, " {:>10}", human_bytes(bytes));
            }
            let least = if method.is_bound { "≥" } else { "" };
            let fewer = format!("{least}{:.1}x", method.fewer);
            let (saw, trips) = (method.account.letters(), account::trips(&method.account));
            let _ = write!(text, " {fewer:>7} {saw:>5} {trips:>7} {:>10}", human_bytes(method.memory));
            for link in &links {
                let seconds = method.seconds_on_links.iter().find(|time| time.link == *link).map_or(0.0, |t| t.seconds);
                let _ = write!(text, " {:>14.1} s", seconds);
            }
        }
        for method in &self.methods {
            let _ = write!(text, "\nleaves: {}: {}", method.name, method.leaves.join(", "));
        }
        for method in &self.methods {
            method.notes.iter().for_each(|note| {
                let _ = write!(text, "\nnote: {}: {note}", method.name);
            });
        }
        let _ = write!(text, "\nfewer: all but evaluation; ≥: sizes depend on the run, which may send less");
        let _ = write!(text, "\nsaw: {LETTERS}\n{TRIPS}");
        let _ = write!(text, "\nseconds on the wire if nothing overlaps");
        let _ = write!(text, "\n{} runs will send about {} in all", self.runs, human_bytes(self.bytes));
        text
    }
}

impl Planned {
    fn of(method: &Method, seeds: &Seeds, world: &World, link: &str) -> Result<Planned> {
        let config = seeds.applied(&method.config);
        let costs = forecast_knowing(&Members::default(), &config, (&world.parts, &world.found), Ledger::of_totals)?;
        let (mut kinds, mut frames) = (PerKind::<u64>::default(), 0u64);
        for (_, ledger, _) in &costs.workers {
            for (kind, count) in ledger.totals_by_kind().iter() {
                kinds[kind] += count.framed;
                frames += count.frames;
            }
        }
        let purposes = Purposes::of(&kinds);
        let leaves = what_leaves(&costs);
        let transport = TransportConfig { shape: link.to_owned(), ..config.transport.clone() };
        Ok(Planned {
            name: method.name.clone(),
            set: method.set.clone(),
            edge_cut: world.edge_cut,
            bytes: purposes.training() + purposes.evaluation,
            purposes,
            training: purposes.training(),
            fewer: 1.0,
            is_bound: costs.is_bound,
            frames,
            memory: costs.workers.iter().map(|(_, _, memory)| memory).sum(),
            seconds_on_links: times(&transport, &load(costs.workers.iter().map(|(_, ledger, _)| ledger)))?,
            leaves,
            account: costs.account(),
            notes: [costs.notes, costs.plan.with_messages(&config.messages)?.notes()].concat(),
        })
    }
}
