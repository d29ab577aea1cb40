//! One = many: the same run on one worker and on K, compared parameter by parameter.

use laconic_graph::order::OrderKind;
use laconic_graph::part::{Part, cut};
use laconic_key::{Key, Purpose};
use schemars::JsonSchema;
use serde::Serialize;

use crate::config::{Config, Stored, TransportKind};
use crate::error::{Result, TrainError};
use crate::plan::{Members, Plan, ROUNDS_MAX};
use crate::run::source::{Prepared, Source, assigned, prepared_to_cut};
use crate::run::{Options, Outcome, run_threads};

/// One worker against several: what the comparison found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verification {
    /// Workers compared with one.
    pub workers: u32,
    /// Rounds of each stage that were compared: those asked for, or fewer where rounding alone makes one worker differ
    /// from itself.
    pub rounds: u32,
    /// `train.epsilon` that both trained with: that of the run, or 0.001 where that is less; null where the optimiser
    /// has none.
    pub epsilon: Option<f32>,
    /// One entry a parameter.
    pub differences: Vec<Difference>,
    /// The largest of all differences.
    pub worst: f64,
    /// The largest difference that passes: `--tolerance`; without, 0.0001 where rows are stored as `f32` and 0.03125
    /// as `bf16`.
    pub tolerance: f64,
    /// `f32` or `bf16`: `train.precision`, which the tolerance is by where none was given.
    pub precision: Stored,
    /// How far one worker ends from itself with its rows in another order and features that differ in the last bits,
    /// in the fewest rounds for which that was looked at; with rows as `bf16` and no `--tolerance`, the largest
    /// `differences[].rounding`; null where nothing differed, or workers do without something.
    pub rounding: Option<f64>,
    /// Whether the ledgers of the run on many workers were as predicted (exactly, or within the bound where the
    /// prediction is one), and senders and receivers agree.
    pub ledger_is_exact: bool,
    /// Whether workers do without something that one worker has, which is then expected to differ.
    pub is_lossy: bool,
    /// Whether all parameters agree.
    pub agrees: bool,
}

/// One parameter's difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Difference {
    /// The stage's number, from 0.
    pub stage: usize,
    /// The parameter's name in the weights.
    pub name: String,
    /// Euclidean norm of the difference relative to that of the values.
    pub relative: f64,
    /// Largest difference of one value relative to the largest value.
    pub largest: f64,
    /// How far one worker ends from itself in this parameter, by norm, on features whose last bit differs: within 4
    /// times that, and at most 0.5, it agrees; null unless rows are `bf16`, something differed and no tolerance was
    /// given.
    pub rounding: Option<f64>,
}

impl Difference {
    /// How far apart the parameter may be: what rounding of sums of neighbours makes, where that is more than the
    /// tolerance.
    pub fn bound(&self, tolerance: f64) -> f64 {
        self.of_rounding().min(ROUNDING_MOST).max(tolerance)
    }

    fn of_rounding(&self) -> f64 {
        TIMES_ROUNDING * self.rounding.unwrap_or(0.0)
    }
}

impl Verification {
    /// Whether everything agrees, the ledgers too.
    pub fn passes(&self) -> bool {
        self.agrees && self.ledger_is_exact
    }

    fn judge(&mut self) {
        self.agrees = self.differences.iter().all(|found| found.relative <= found.bound(self.tolerance));
    }
}

/// The largest difference that passes where nothing is said: of rows as `f32`, whose sums over neighbours in another
/// order differ by some of 24 bits.
const TOLERANCE: f64 = 1e-4;

/// The same of rows as `bf16`, which have 8 bits: neighbouring values are 2^-7 of one apart. A fold is rounded once
/// where all neighbours are here, and once more for those of others; so are its gradients; and each of these four may
/// end on the neighbouring value.
const TOLERANCE_BF16: f64 = 4.0 / 128.0;

/// How many times as far as one worker ends from itself several may end from one, with rows as `bf16`: they round each
/// fold once more, forwards and backwards, in each layer, and features are rounded in the first alone.
pub const TIMES_ROUNDING: f64 = 4.0;

/// Where rounding makes more of a parameter than this, nothing can be said of it: fewer rounds are compared.
const ROUNDING_MOST: f64 = 0.5;

/// What training may make of a rounding error before nothing can be said any more, as a share of the tolerance.
const ROUNDING: f64 = 0.1;

/// How many times what the last bit of 1 is worth features differ at most: sums over neighbours and over columns
/// average it away again, while their own rounding, which one worker repeats and several do not, stays.
const LAST_BITS: u64 = 8;

/// What the last bit of a number of `bf16` is worth, as a share of it: between this and half of it.
const LAST_OF_BF16: f32 = 1.0 / 128.0;

/// How often is looked for a run that makes more of rounding than that, before nothing but a mistake is left.
const SAMPLES: u64 = 12;

/// `train.epsilon` of both runs at least. Adam steps as far for a gradient of 1e-9 as for one of 1, so that where
/// gradients cancel each other out the order of their sum decides where a parameter goes; with this it does not.
const EPSILON: f32 = 1e-3;

/// Runs `config` for `rounds` rounds a stage, in batches to the end of that epoch, on one worker and on its own number.
/// Rounds are not selected by validation: a tie decided by a rounding error would compare different rounds. With
/// `force` they start although they may need more memory than there is.
///
/// Both train with a `train.epsilon` of 1e-3 at least, where the optimiser reads it. Sums of several workers are
/// rounded otherwise than those of one, and where units change sides training makes more of that in each round. So
/// where the two differ, one worker is compared with itself with its rows in another order, so that sums over rows are
/// rounded otherwise in each round, and on features that differ in the last bits; while that ends further from itself
/// than a tenth of the tolerance, if only once in a dozen times, half as many rounds are compared instead.
///
/// Without a tolerance it is by what rows are stored as: 1e-4 for `f32`, 2^-5 for `bf16`. Rows of 8 bits make what
/// training makes of rounding visible in any number of rounds. So a parameter that differs by more than that is held
/// against what one worker makes of features whose last bit differs: within four times that it agrees.
///
/// # Errors
/// If the data are parts, or one of the runs fails.
pub fn verify(
    members: &Members,
    config: &Config,
    rounds: u32,
    tolerance: Option<f64>,
    force: bool,
) -> Result<Verification> {
    let is_held_against_rounding = tolerance.is_none() && config.train.precision == Stored::Bf16;
    let tolerance = tolerance.unwrap_or(match config.train.precision {
        Stored::F32 => TOLERANCE,
        Stored::Bf16 => TOLERANCE_BF16,
    });
    if rounds as usize > ROUNDS_MAX {
        return Err(TrainError::config(format!("{rounds} rounds to verify: expected at most {ROUNDS_MAX}")));
    }
    let mut config = config.clone();
    config.schedule.rounds = Vec::new();
    config.train.eval_every = 0;
    config.train.patience = 0;
    config.transport.kind = TransportKind::Threads;
    if reads_epsilon(members, &config)? {
        config.train.epsilon = config.train.epsilon.max(EPSILON);
    }
    if crate::run::source::is_part_folder(&config.data.path) {
        let hint = "verification needs the whole graph: give the dataset that the parts were cut from";
        return Err(TrainError::config(format!("{}: {hint}", config.data.path.display())));
    }
    let Prepared { dataset, split, .. } = prepared_to_cut(&config)?;
    let whole = cut(&dataset, split, &vec![0; dataset.graph.nodes()], 1)?;
    let parts = [whole, assigned(members, &config, &dataset, split, None)?.cut(&dataset, split)?];
    let mut pair = Pair { members, config, parts, force, tolerance };
    let mut epochs = pair.set_rounds(rounds)?;
    let (mut found, mut one) = pair.compare()?;
    while found.worst > tolerance && !found.is_lossy {
        if is_held_against_rounding {
            let each = pair.rounding_of_each(&one)?;
            found.rounding = Some(each.iter().fold(0.0, |most, each| f64::max(most, *each)));
            found.differences.iter_mut().zip(each).for_each(|(found, each)| found.rounding = Some(each));
            found.judge();
            let is_drowned = found.differences.iter().any(|found| found.of_rounding() > ROUNDING_MOST);
            if found.agrees || !is_drowned || epochs <= 1 {
                break;
            }
        } else {
            let rounding = pair.rounding(&one)?;
            found.rounding = Some(rounding);
            if rounding <= ROUNDING * tolerance || epochs <= 1 {
                break;
            }
        }
        epochs /= 2;
        pair.config.train.epochs = epochs;
        let (fewer, of_fewer) = pair.compare()?;
        let as_predicted = found.ledger_is_exact && fewer.ledger_is_exact;
        found = Verification { rounding: found.rounding, ledger_is_exact: as_predicted, ..fewer };
        one = of_fewer;
    }
    Ok(found)
}

fn reads_epsilon(members: &Members, config: &Config) -> Result<bool> {
    Ok(members.optimiser(config)?.options.contains(&"epsilon"))
}

/// One worker and several, on the same data.
struct Pair<'a> {
    members: &'a Members,
    config: Config,
    parts: [Vec<Part>; 2],
    force: bool,
    tolerance: f64,
}

impl Pair<'_> {
    fn plan(&self) -> Result<Plan> {
        Plan::with(self.members, &self.config, &self.parts[1][0].global)
    }

    fn run(&self, config: &Config, parts: &[Part]) -> Result<Vec<Outcome>> {
        let options = Options { members: self.members.clone(), force: self.force, ..Options::default() };
        run_threads(config, Source::of(parts.to_vec()), options)
    }

    /// Sets so many rounds, or those of the epochs that have them, and returns how many epochs these are.
    fn set_rounds(&mut self, rounds: u32) -> Result<u32> {
        self.config.train.epochs = rounds;
        if let Some(batching) = &self.plan()?.batching {
            // A round is a batch, and ends come with epochs.
            self.config.train.epochs = rounds.div_ceil(batching.batches);
        }
        Ok(self.config.train.epochs)
    }

    /// The comparison, and what one worker has trained.
    fn compare(&self) -> Result<(Verification, Vec<Vec<f32>>)> {
        let plan = self.plan()?;
        let [one, many] = &self.parts;
        let one = self.run(&self.config, one)?.swap_remove(0).trained.chosen;
        let many = self.run(&self.config, many)?;
        let differences = differences(&plan, &many[0].trained.chosen, &one);
        let mut found = Verification {
            workers: many.len() as u32,
            rounds: self.config.train.epochs * plan.batches_of_epoch(),
            epsilon: reads_epsilon(self.members, &self.config)?.then_some(self.config.train.epsilon),
            worst: worst(&differences),
            differences,
            tolerance: self.tolerance,
            precision: self.config.train.precision,
            rounding: None,
            ledger_is_exact: ledger_is_exact(&plan, &many),
            is_lossy: plan.is_lossy(),
            agrees: false,
        };
        found.judge();
        Ok((found, one))
    }

    /// How far one worker ends from itself with its rows in another order and features that differ by as much as sums
    /// over them are rounded. Which units change sides is chance, so it tries again and again until training makes too
    /// much of it, or never has.
    fn rounding(&self, one: &[Vec<f32>]) -> Result<f64> {
        let mut most = 0.0f64;
        for sample in 0..SAMPLES {
            most = most.max(worst(&self.rounded(one, sample, LAST_BITS, f32::EPSILON)?));
            if most > ROUNDING * self.tolerance {
                break;
            }
        }
        Ok(most)
    }

    /// The furthest of a dozen times, of each parameter, with features that are rounded to `bf16` another way.
    fn rounding_of_each(&self, one: &[Vec<f32>]) -> Result<Vec<f64>> {
        let mut most = Vec::new();
        for sample in 0..SAMPLES {
            let found = self.rounded(one, sample, 1, LAST_OF_BF16)?;
            most.resize(found.len(), 0.0f64);
            most.iter_mut().zip(found).for_each(|(most, found)| *most = most.max(found.relative));
        }
        Ok(most)
    }

    /// One worker against itself with its rows in another order and features that differ by up to so many last bits.
    fn rounded(&self, one: &[Vec<f32>], sample: u64, bits: u64, last: f32) -> Result<Vec<Difference>> {
        let mut config = self.config.clone();
        config.partition.order = OrderKind::other_than(&config.partition.order).name.to_owned();
        let mut parts = self.parts[0].clone();
        for part in &mut parts {
            let key = Key::new(config.train.seed, Purpose::LastBits).with(sample);
            let factor = |at| 1.0 + ((key.number(at) % (2 * bits + 1)) as f32 - bits as f32) * last;
            part.features.stored_mut().iter_mut().zip(0..).for_each(|(value, at)| *value *= factor(at));
        }
        let other = self.run(&config, &parts)?.swap_remove(0).trained.chosen;
        Ok(differences(&self.plan()?, &other, one))
    }
}

fn worst(differences: &[Difference]) -> f64 {
    differences.iter().map(|difference| difference.relative).fold(0.0, f64::max)
}

/// How all parameters of all stages differ.
fn differences(plan: &Plan, found: &[Vec<f32>], expected: &[Vec<f32>]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (stage, (a, b)) in found.iter().zip(expected).enumerate() {
        let network = &plan.stages[stage].network;
        for ((spec, a), (_, b)) in network.named(a).zip(network.named(b)) {
            differences.push(Difference {
                stage,
                name: spec.name.clone(),
                relative: relative_difference(a, b),
                largest: largest_difference(a, b),
                rounding: None,
            });
        }
    }
    differences
}

fn ledger_is_exact(plan: &Plan, many: &[Outcome]) -> bool {
    many.iter().all(|outcome| {
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
    })
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
