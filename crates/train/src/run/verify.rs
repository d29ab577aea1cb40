//! One = many: the same run on one worker and on K, compared parameter by parameter.

use laconic_graph::dataset::Dataset;
use laconic_graph::part::{Part, cut};
use serde::Serialize;

use crate::config::{Config, TransportKind};
use crate::error::{Result, TrainError};
use crate::plan::{Members, Plan, ROUNDS_MAX};
use crate::run::source::{PARTS_DEFAULT, Prepared, Source, assign, prepared};
use crate::run::{Options, run_threads};

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verification {
    /// Workers compared with one.
    pub workers: u32,
    /// Rounds of each stage.
    pub rounds: u32,
    /// Per parameter the largest difference, relative to its largest value.
    pub differences: Vec<Difference>,
    /// The largest of them.
    pub worst: f64,
    /// The largest difference that passes.
    pub tolerance: f64,
    /// Whether the ledgers of the run on many workers were as predicted (exactly, or within the bound where the
    /// prediction is one), and senders and receivers agree.
    pub ledger_is_exact: bool,
    /// Whether workers do without something that one worker has, which is then expected to differ.
    pub is_lossy: bool,
}

/// One parameter's difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The stage's number, from 0.
    pub stage: usize,
    /// The parameter's name in the weights.
    pub name: String,
    /// Euclidean norm of the difference relative to that of the values.
    pub relative: f64,
    /// Largest difference of one value relative to the largest value.
    pub largest: f64,
}

impl Verification {
    /// Whether everything agrees.
    pub fn passes(&self) -> bool {
        self.worst <= self.tolerance && self.ledger_is_exact
    }
}

/// Runs `config` for `rounds` rounds a stage, in batches to the end of that epoch, on one worker and on its own number.
/// Rounds are not selected by validation: a tie decided by a rounding error would compare different rounds. With
/// `force` they start although they may need more memory than there is.
///
/// # Errors
/// If the data are parts, or one of the runs fails.
pub fn verify(members: &Members, config: &Config, rounds: u32, tolerance: f64, force: bool) -> Result<Verification> {
    if rounds as usize > ROUNDS_MAX {
        return Err(TrainError::config(format!("{rounds} rounds to verify: expected at most {ROUNDS_MAX}")));
    }
    let mut config = config.clone();
    config.train.epochs = rounds;
    config.schedule.rounds = Vec::new();
    config.train.eval_every = 0;
    config.train.patience = 0;
    config.transport.kind = TransportKind::Threads;
    if crate::run::source::is_part_folder(&config.data.path) {
        let hint = "verification needs the whole graph: give the dataset that the parts were cut from";
        return Err(TrainError::config(format!("{}: {hint}", config.data.path.display())));
    }
    let Prepared { dataset, split, .. } = prepared(&config.data)?;
    let workers = if config.partition.parts == 0 { PARTS_DEFAULT } else { config.partition.parts };
    let options = || Options { members: members.clone(), force, ..Options::default() };
    let many_parts = parts((members, &config), (&dataset, split), workers)?;
    let mut plan = Plan::with(members, &config, &many_parts[0].global)?;
    let mut rounds = rounds;
    if let Some(batching) = &plan.batching {
        // A round is a batch, and ends come with epochs.
        config.train.epochs = rounds.div_ceil(batching.batches);
        rounds = config.train.epochs * batching.batches;
        plan = Plan::with(members, &config, &many_parts[0].global)?;
    }
    let one = run_threads(&config, Source::of(parts((members, &config), (&dataset, split), 1)?), options())?;
    let many = run_threads(&config, Source::of(many_parts), options())?;
    let mut differences = Vec::new();
    for (stage, (a, b)) in many[0].trained.chosen.iter().zip(&one[0].trained.chosen).enumerate() {
        let network = &plan.stages[stage].network;
        for ((spec, a), (_, b)) in network.named(a).zip(network.named(b)) {
            differences.push(Difference {
                stage,
                name: spec.name.clone(),
                relative: relative_difference(a, b),
                largest: largest_difference(a, b),
            });
        }
    }
    let worst = differences.iter().map(|d| d.relative).fold(0.0, f64::max);
    let ledger_is_exact = many.iter().all(|outcome| {
        let as_predicted = match plan.is_predictable() {
            true => outcome.sent == outcome.predicted,
            false => outcome.sent.total().framed <= outcome.predicted.total().framed,
        };
        as_predicted
            && many.iter().all(|peer| {
                let sent = outcome.sent.totals_by_peer().get(&laconic_wire::Rank(peer.rank)).copied();
                let received = peer.received.totals_by_peer().get(&laconic_wire::Rank(outcome.rank)).copied();
                sent == received
            })
    });
    let is_lossy = plan.is_lossy();
    Ok(Verification { workers, rounds, differences, worst, tolerance, ledger_is_exact, is_lossy })
}

/// Below this root mean square a parameter is measured against it, not against itself: of an ε near 0 a relative error
/// says nothing.
const SCALE: f64 = 0.01;

/// ‖found − expected‖₂ / ‖expected‖₂, with a floor of 0.01 a value under the denominator; infinite where a number is
/// none.
pub fn relative_difference(found: &[f32], expected: &[f32]) -> f64 {
    let square = |sum: f64, value: f64| if value.is_nan() { f64::INFINITY } else { sum + value * value };
    let difference = found.iter().zip(expected).map(|(a, b)| f64::from(*a) - f64::from(*b)).fold(0.0, square).sqrt();
    let size = expected.iter().map(|v| f64::from(*v)).fold(0.0, square).sqrt();
    difference / size.max(SCALE * (expected.len() as f64).sqrt()).max(f64::MIN_POSITIVE)
}

/// The largest difference relative to the largest value of `expected`; infinite where a number is none.
pub fn largest_difference(found: &[f32], expected: &[f32]) -> f64 {
    let largest = expected.iter().map(|v| f64::from(v.abs())).fold(1e-12, f64::max);
    let differences = found.iter().zip(expected).map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs());
    differences.fold(0.0, |m: f64, d| if d.is_nan() { f64::INFINITY } else { m.max(d) }) / largest
}

fn parts(
    (members, config): (&Members, &Config),
    (dataset, split): (&Dataset, Option<usize>),
    count: u32,
) -> Result<Vec<Part>> {
    let assignment = match count {
        1 => vec![0; dataset.graph.nodes()],
        _ => assign(members, config, (dataset, split), count)?,
    };
    Ok(cut(dataset, split, &assignment, count)?)
}
