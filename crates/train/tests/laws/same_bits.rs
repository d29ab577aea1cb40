//! The same workers and seed give the same bits: whatever the number of threads, whether work overlaps messages,
//! however slow the link, and wherever the run was stopped and resumed.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use laconic_graph::dataset::Dataset;
use laconic_nn::kernels::dispatch::Instructions;
use laconic_train::TrainError;
use laconic_train::fit::observe::RoundReport;
use laconic_train::record::claim::METRICS;
use laconic_train::record::observer::Observer;
use laconic_train::record::weights::{self, Weights};
use laconic_train::run::{Options, Outcome};
use laconic_train::worker::evaluate::Scores;
use laconic_wire::Row;

use crate::fixture::{config, folder, graph, into_folder, run, try_run};
use crate::ledger_is_prediction::assert_exact;
use crate::one_is_many::SCHEDULES;

const ARCHS: [&[&str]; 6] = [
    &["model.arch=gcn"],
    &["model.arch=sage"],
    &["model.arch=sage", "model.aggregator=max"],
    &["model.arch=gin"],
    &["model.arch=gat"],
    &["model.arch=mlp"],
];

/// All that a run ends with, bit by bit.
#[derive(Debug, PartialEq)]
pub struct Bits {
    chosen: Vec<Vec<u32>>,
    last: Vec<u32>,
    digest: String,
    best_round: u32,
    scores: Scores,
    pub rounds: u32,
    skipped: u64,
}

/// The bits that a run ends with; every worker must hold the same.
pub fn bits(outcomes: &[Outcome]) -> Bits {
    let of = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<u32>>();
    let first = &outcomes[0];
    for outcome in outcomes {
        assert_eq!(outcome.trained, first.trained, "worker {} ended with other parameters", outcome.rank);
    }
    let summary = first.summary.as_ref().expect("worker 0 sums up");
    Bits {
        chosen: first.trained.chosen.iter().map(|values| of(values)).collect(),
        last: of(&first.trained.last),
        digest: summary.parameters.digest.clone(),
        best_round: first.trained.best_round,
        scores: first.trained.scores.clone(),
        rounds: first.trained.rounds,
        skipped: summary.bytes.skipped,
    }
}

/// Held for writing by whoever changes the instructions of the whole process, and else for reading: with rows in bf16
/// other instructions end with other bits.
static INSTRUCTIONS: RwLock<()> = RwLock::new(());

pub fn assert_same(dataset: &Dataset, workers: u32, keys: &[&str], variants: &[&[&str]]) {
    let _unchanged = INSTRUCTIONS.read().unwrap_or_else(PoisonError::into_inner);
    let expected = bits(&run(&config(keys), dataset, workers));
    for variant in variants {
        let skips = variant.iter().any(|key| key.starts_with("messages.skip"));
        let found = bits(&run(&config(&[keys, variant].concat()), dataset, workers));
        // Rows that have not moved at all may be left out.
        let skipped = if skips { expected.skipped } else { found.skipped };
        assert!(Bits { skipped, ..found } == expected, "{keys:?} ends with other bits under {variant:?}");
    }
}

/// Whatever the processor has, and whatever it is asked not to use.
#[test]
fn instructions_change_no_bit() {
    let _alone = INSTRUCTIONS.write().unwrap_or_else(PoisonError::into_inner);
    let dataset = graph(180, 4);
    for arch in crate::methods::ARCHS {
        for others in
            [&["model.layers=3", "model.norm=batch"][..], &["model.layers=2", "batch.size=40", "batch.fanouts=[3, 2]"]]
        {
            let keys = [arch, others, &["train.epochs=3"]].concat();
            let asked = Instructions::asked_for().expect("a name").unwrap_or(Instructions::Amx);
            let ends: Vec<Bits> = Instructions::ALL
                .into_iter()
                .filter(|of| *of <= asked)
                .map(|instructions| {
                    instructions.limit();
                    bits(&run(&config(&keys), &dataset, 2))
                })
                .collect();
            assert!(ends.iter().all(|end| *end == ends[0]), "{keys:?}");
        }
    }
}

/// 2,500 rows a worker: kernels cut them into several pieces, which threads share.
#[test]
fn threads_change_no_bit() {
    let dataset = graph(5000, 4);
    for arch in ARCHS {
        for schedule in [SCHEDULES[0], SCHEDULES[1], SCHEDULES[2]] {
            let keys = [arch, schedule, &["train.epochs=2"]].concat();
            assert_same(&dataset, 2, &keys, &[&["train.threads=2"], &["train.threads=3"]]);
        }
    }
}

/// What is not kept is made again as it was: rows between layers, folds, and what dropout left of inputs.
#[test]
fn making_rows_again_changes_no_bit() {
    let dataset = graph(300, 4);
    let others: [&[&str]; 4] = [
        &["model.norm=none", "model.activation=prelu"],
        &["model.norm=batch", "model.residual=true"],
        &["schedule.cache_inputs=false", "messages.selection={kind=\"boundary_sample\",rate=0.5}"],
        &["model.jumping_knowledge=cat", "schedule.kind=pipelined"],
    ];
    for arch in ARCHS {
        for schedule in SCHEDULES {
            let keys = [arch, schedule, &["train.epochs=3", "model.layers=4"]].concat();
            assert_same(&dataset, 2, &keys, &[&["train.recompute=true"]]);
        }
        for other in others {
            let keys = [arch, other, &["train.epochs=3", "model.layers=4"]].concat();
            assert_same(&dataset, 3, &keys, &[&["train.recompute=true"]]);
        }
    }
}

#[test]
fn overlap_and_slow_links_change_no_bit() {
    let dataset = graph(180, 4);
    for arch in ARCHS {
        for schedule in SCHEDULES {
            let variants: [&[&str]; 4] = [
                &["schedule.overlap=false"],
                &["transport.shape=wan-20mbit-80ms"],
                &["schedule.overlap=false", "transport.shape=1mbit,1ms"],
                &["transport.shape=10gbit,1us", "transport.shape_sleeps=true"],
            ];
            assert_same(&dataset, 3, &[arch, schedule].concat(), &variants);
        }
    }
}

/// Asks the run to stop at the end of a round.
struct StopAfter {
    round: u32,
    flag: Arc<AtomicBool>,
}

impl Observer for StopAfter {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        // The flag is looked at once a round, before its end.
        if report.round + 1 == self.round {
            self.flag.store(true, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    }
}

pub fn stop_after(round: u32, out: &Path) -> Options {
    let flag = Arc::new(AtomicBool::new(round == 1));
    let observer = Box::new(StopAfter { round, flag: flag.clone() });
    Options { interrupt: flag, observer, ..into_folder(out) }
}

pub fn resume(out: &Path) -> Options {
    Options { resume: true, ..into_folder(out) }
}

/// The log of rounds without what may differ: seconds. Bytes are compared apart.
pub fn log(out: &Path) -> Vec<RoundReport> {
    let text = std::fs::read_to_string(out.join(METRICS)).expect("a log of rounds");
    let report = |line| serde_json::from_str::<RoundReport>(line).expect("a line a round");
    text.lines().map(report).map(|report| RoundReport { seconds: 0.0, ..report }).collect()
}

fn without_bytes(log: Vec<RoundReport>) -> Vec<RoundReport> {
    log.into_iter().map(|report| RoundReport { bytes: None, ..report }).collect()
}

/// Everything that a run leaves behind for other programs, as it should be after an uninterrupted run.
#[derive(PartialEq)]
pub struct Straight {
    pub bits: Bits,
    log: Vec<RoundReport>,
    model: Weights,
}

pub fn straight(dataset: &Dataset, keys: &[&str]) -> Straight {
    let folder = folder();
    let out = folder.path().join("run");
    let outcomes = try_run(&config(keys), dataset, 3, into_folder(&out)).expect("a run");
    let model = weights::read(&out.join(weights::FILE)).expect("a model").weights;
    Straight { bits: bits(&outcomes), log: without_bytes(log(&out)), model }
}

pub fn assert_resumes(straight: &Straight, dataset: &Dataset, keys: &[&str], out: &Path, what: &str) {
    let resumed = try_run(&config(keys), dataset, 3, resume(out)).expect("a resumed run");
    assert!(bits(&resumed) == straight.bits, "{keys:?}, {what}: other bits after resuming");
    assert_eq!(without_bytes(log(out)), straight.log, "{keys:?}, {what}");
    assert!(
        weights::read(&out.join(weights::FILE)).expect("a model").weights == straight.model,
        "{keys:?}, {what}: other weights"
    );
    if resumed[0].plan.is_predictable() && !keys.iter().any(|key| key.starts_with("train.patience")) {
        assert_exact(&resumed, &format!("{keys:?}, {what}"));
    }
}

/// A run of three workers that is stopped after any of these rounds goes on to what it would have come to.
pub fn assert_goes_on(dataset: &Dataset, keys: &[&str], rounds: &[u32]) {
    let straight = straight(dataset, keys);
    for &round in rounds {
        let folder = folder();
        let out = folder.path().join("run");
        try_run(&config(keys), dataset, 3, stop_after(round, &out)).expect("a run");
        assert_resumes(&straight, dataset, keys, &out, &format!("stopped after {round}"));
    }
}

/// All state there is: momentum of the optimiser, a rate that moves, a clipped gradient, a best round before the last.
pub const STATE: [&str; 5] =
    ["train.clip=0.5", "train.lr_schedule=cosine", "train.warmup=2", "train.lr=0.05", "train.eval_every=1"];

const STAGED: [(&[&str], u32); 5] = [
    (&["schedule.kind=synchronous", "train.epochs=5", "model.arch=sage"], 5),
    (&["schedule.kind=synchronous", "train.epochs=5", "model.arch=gat", "schedule.cache_inputs=false"], 5),
    (&["schedule.kind=lazy", "train.epochs=3", "model.arch=gcn"], 6),
    (&["schedule.kind=lazy", "schedule.start=mlp", "train.epochs=2", "model.arch=sage", "train.optimiser=sgd"], 6),
    (&["schedule.kind=lazy", "train.epochs=3", "model.arch=gat", "train.optimiser=adamw", "model.norm=none"], 6),
];

#[test]
fn a_run_stopped_after_any_round_and_resumed_ends_with_the_same_bits() {
    let dataset = graph(150, 4);
    for (keys, rounds) in STAGED {
        let keys = [keys, &STATE].concat();
        let straight = straight(&dataset, &keys);
        assert_eq!(straight.bits.rounds, rounds);
        for round in 1..rounds {
            let folder = folder();
            let out = folder.path().join("run");
            let stopped = try_run(&config(&keys), &dataset, 3, stop_after(round, &out)).expect("a run");
            let trained = &stopped[0].trained;
            // A stage's last round ends the stage first, so that the run stops in the next one.
            let ends_a_stage = keys.contains(&"schedule.kind=lazy") && trained.rounds == round + 1;
            assert!(trained.interrupted && (trained.rounds == round || ends_a_stage), "{keys:?}, {round}");
            assert_resumes(&straight, &dataset, &keys, &out, &format!("stopped after {round}"));
        }
    }
}

#[test]
fn a_run_that_crashed_in_any_round_and_was_resumed_ends_with_the_same_bits() {
    let dataset = graph(150, 4);
    for (keys, rounds) in STAGED {
        for every in [1, 2] {
            let every_key = format!("out.checkpoint_every={every}");
            let keys = [keys, &STATE, &[every_key.as_str()]].concat();
            let straight = straight(&dataset, &keys);
            for round in every + 1..=rounds {
                let folder = folder();
                let out = folder.path().join("run");
                let fault = format!("transport.fault={{ rank = {}, round = {round}, kind = \"crash\" }}", round % 3);
                let crashing = config(&[&keys[..], &[fault.as_str()]].concat());
                let error = try_run(&crashing, &dataset, 3, into_folder(&out)).err().expect("a crash");
                assert!(matches!(error, TrainError::Fault { .. }), "{error}");
                assert_resumes(&straight, &dataset, &keys, &out, &format!("crashed in {round}"));
            }
        }
    }
}

#[test]
fn patience_that_runs_out_is_remembered() {
    let dataset = graph(150, 4);
    for (schedule, by) in [
        ("schedule.kind=synchronous", "train.select_by=metric"),
        ("schedule.kind=lazy", "train.select_by=metric"),
        ("schedule.kind=synchronous", "train.select_by=loss"),
        ("schedule.kind=lazy", "train.select_by=loss"),
    ] {
        let keys = [&STATE[..], &[schedule, by, "model.arch=sage", "train.epochs=40", "train.patience=3"]].concat();
        let keys = [&keys[..], &["out.checkpoint_every=1"]].concat();
        let straight = straight(&dataset, &keys);
        let rounds = straight.bits.rounds;
        let most = if schedule.ends_with("lazy") { 80 } else { 40 };
        assert!(rounds < most, "{schedule}, {by}: patience ran out after {rounds} rounds");
        for round in [2, rounds / 2, rounds - 1, rounds] {
            let folder = folder();
            let out = folder.path().join("run");
            let fault = format!("transport.fault={{ rank = 1, round = {round}, kind = \"crash\" }}");
            let crashing = config(&[&keys[..], &[fault.as_str()]].concat());
            try_run(&crashing, &dataset, 3, into_folder(&out)).err().expect("a crash");
            assert_resumes(&straight, &dataset, &keys, &out, &format!("crashed in {round}"));
        }
        // A finished run resumes into itself.
        let folder = folder();
        let out = folder.path().join("run");
        try_run(&config(&keys), &dataset, 3, into_folder(&out)).expect("a run");
        assert_resumes(&straight, &dataset, &keys, &out, "finished");
    }
}

/// The learning curve is drawn over bytes: a resumed run counts on from where it was stopped.
#[test]
fn the_bytes_of_the_log_never_fall_when_a_run_is_resumed() {
    let dataset = graph(150, 4);
    for (keys, rounds) in STAGED {
        let folder = folder();
        let out = folder.path().join("run");
        let keys = [keys, &STATE].concat();
        try_run(&config(&keys), &dataset, 3, stop_after(rounds - 1, &out)).expect("a run");
        try_run(&config(&keys), &dataset, 3, resume(&out)).expect("a resumed run");
        let bytes: Vec<u64> = log(&out).iter().filter_map(|report| report.bytes).collect();
        assert!(bytes.len() == rounds as usize && bytes.is_sorted(), "{keys:?}: {bytes:?}");
    }
}

/// What a summary says of links and kinds is the same bytes cut in two ways, before and after resuming.
#[test]
fn the_links_of_a_resumed_run_add_up_to_its_total() {
    let dataset = graph(150, 4);
    let folder = folder();
    let out = folder.path().join("run");
    let keys = ["train.epochs=5"];
    try_run(&config(&keys), &dataset, 3, stop_after(3, &out)).expect("a run");
    let resumed = try_run(&config(&keys), &dataset, 3, resume(&out)).expect("a resumed run");
    let bytes = &resumed[0].summary.as_ref().expect("worker 0 sums up").bytes;
    assert_eq!(bytes.by_kind.values().sum::<u64>(), bytes.total);
    assert_eq!(bytes.by_link.iter().map(|link| link.bytes).sum::<u64>(), bytes.total);
    let ledger = std::fs::read_to_string(out.join("ledger.csv")).expect("a ledger");
    let framed = ledger.lines().skip(1).map(|line| line.parse::<Row>().expect("a row").count.framed);
    assert_eq!(framed.sum::<u64>(), bytes.total, "ledger.csv");
}
