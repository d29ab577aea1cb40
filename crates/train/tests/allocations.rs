//! What a round allocates once the first rounds are over: memory that grows with rows, edges or parameters is used
//! again.

use std::alloc::System;

use laconic_graph::part::cut;
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_train::run::run_threads;
use laconic_train::run::source::{Source, assign};
use laconic_train::{Config, Members, Options};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const NODES: usize = 3000;
const HIDDEN: usize = 64;

/// Allocations, and bytes allocated, of a whole run of so many rounds.
fn of_run(keys: &[&str], workers: u32, rounds: u32) -> [f64; 2] {
    let spec = SbmSpec { nodes: NODES, classes: 5, features: 32, seed: 3, ..SbmSpec::default() };
    let dataset = sbm(&spec).expect("a sound specification");
    let train = format!("[train]\nepochs = {rounds}\nthreads = 1\neval_every = 0\n");
    let plain = format!("{train}[model]\nhidden = {HIDDEN}\n[partition]\nmethod = \"random\"\n");
    let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    let config = Config::parse(&plain, &keys).expect("a sound configuration");
    let assignment = assign(&Members::default(), &config, &dataset, Some(0), workers).expect("a partition");
    let parts = cut(&dataset, Some(0), &assignment, workers).expect("parts");
    let region = Region::new(GLOBAL);
    run_threads(&config, Source::of(parts), Options::default()).expect("a run");
    let change = region.change();
    [(change.allocations + change.reallocations) as f64, change.bytes_allocated as f64]
}

/// What one more round takes.
fn of_round(keys: &[&str], workers: u32) -> [f64; 2] {
    let (few, many) = (of_run(keys, workers, 15), of_run(keys, workers, 45));
    [0, 1].map(|at| (many[at] - few[at]) / 30.0)
}

/// What runs are made of.
const KINDS: &[&[&str]] = &[
    &["model.arch=gcn"],
    &["model.arch=sage", "model.norm=none"],
    &["model.arch=sage", "model.aggregator=max"],
    &["model.arch=gin"],
    &["model.arch=gat"],
    &["model.arch=gat", "model.head_merge=mean", "model.residual=true"],
    &["model.arch=rgcn"],
    &["model.arch=mlp"],
    &["model.arch=sage", "train.threads=2"],
    &["model.arch=gin", "train.recompute=true"],
    &["model.arch=gat", "train.recompute=true"],
    &["model.arch=sage", "train.precision=bf16"],
    &["model.arch=gin", "train.precision=bf16", "train.recompute=true"],
    &["model.arch=gat", "train.precision=bf16"],
    &["model.arch=gcn", "model.norm=batch", "model.activation=prelu"],
    &["model.arch=sage", "model.jumping_knowledge=max"],
    &["model.arch=gcn", "model.jumping_knowledge=cat"],
    &["model.arch=sage", "schedule.kind=lazy"],
    &["model.arch=gat", "schedule.kind=lazy"],
    &["model.arch=gcn", "schedule.kind=pipelined"],
    &["model.arch=sage", "schedule.cache_inputs=false"],
    &["model.arch=sage", "messages.forward={ codec = \"quantised\", bits = 4 }"],
    &["model.arch=gcn", "messages.selection={ kind = \"boundary_sample\", rate = 0.5 }"],
    &["model.arch=gcn", "messages.parameters={ codec = \"quantised\", bits = 8 }"],
];

/// One worker allocates what is small and always the same: what rides along with a sum, a name in a map. Several
/// also have messages under way and accounts of them. A matrix of a worker's rows would be four times the limit.
#[test]
fn a_round_allocates_nothing_that_grows_with_rows_edges_or_parameters() {
    for keys in KINDS {
        for workers in [1, 3] {
            let [count, bytes] = of_round(keys, workers);
            let rows = (NODES / workers as usize * HIDDEN * size_of::<f32>()) as f64;
            let limit = if workers == 1 { [40.0, 12_000.0] } else { [400.0, f64::from(workers) * rows / 4.0] };
            let what = format!("{keys:?}, {workers} workers: {count} allocations of {bytes} bytes a round");
            assert!(count < limit[0] && bytes < limit[1], "{what}, expected less than {limit:?}");
        }
    }
}
