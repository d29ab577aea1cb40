//! Checkpoints, from a file and, when a run is resumed, from another worker.
#![no_main]

use std::sync::LazyLock;

use laconic_fuzz::apply;
use laconic_graph::part::GlobalCounts;
use laconic_train::fit::progress::{Progress, Snapshot};
use laconic_train::plan::identity::Identity;
use laconic_train::record::checkpoint::Checkpoint;
use laconic_train::record::tensors::seal;
use laconic_train::{Config, Members, Plan};

/// A checkpoint of a small model in its second stage.
static VALID: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let small = ["schedule.kind=lazy", "model.hidden=2"].map(str::to_owned);
    let config = Config::parse("", &small).expect("two known keys");
    let plan = Plan::for_model(&Members::default(), &config, [3, 2]).expect("known members");
    let progress = Progress::new(&plan, &plan.stages[1].network, 1);
    let finished = vec![(vec![0.5; plan.stages[0].network.len()], 7)];
    let snapshot = Snapshot::take(1, &progress, finished, Default::default());
    let identity = Identity::of(&plan, &GlobalCounts::default()).expect("plain values");
    let (run, starts) = (identity.run(None), Vec::new());
    Checkpoint { run, identity, starts, messages: None, snapshot }.to_bytes().expect("plain values")
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut bytes = VALID.clone();
    apply(input, &mut bytes);
    seal(&mut bytes);
    match Checkpoint::from_bytes(&bytes) {
        Ok(checkpoint) => {
            let written = checkpoint.to_bytes().expect("what was read can be written");
            let again = Checkpoint::from_bytes(&written).expect("what was written can be read");
            let place = |checkpoint: &Checkpoint| (checkpoint.snapshot.position(), checkpoint.snapshot.rounds());
            assert_eq!(place(&again), place(&checkpoint));
        }
        Err(error) => assert!(!input.is_empty(), "the valid checkpoint is refused: {error}"),
    }
});
