//! A task, a kind of batches and an agreement from outside: each joins by a line, is found, and trains.

use laconic_graph::dataset::Dataset;
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_nn::Matrix;
use laconic_nn::loss::Targets;
use laconic_train::fit::agreement::{self, Agreement, Turn};
use laconic_train::fit::batch::{self, BATCHINGS, Batches, Round, Training};
use laconic_train::fit::progress::Progress;
use laconic_train::fit::task::{self, Learning, Task};
use laconic_train::pass::inputs::Inputs;
use laconic_train::plan::{AgreementKind, BatchingKind, TaskKind};
use laconic_train::saved::{Name, OwnMemory, Saved};
use laconic_train::worker::Worker;
use laconic_train::worker::evaluate::Evaluated;
use laconic_train::{Config, Members, Options, Result, Run, plan, train};

/// Classes by least squares: scores of a node come near 1 for its class and 0 for the others.
struct Squares;

static SQUARES: TaskKind =
    TaskKind { name: "least_squares", build: || task::makes(|_, _| Box::new(Squares)), ..TaskKind::USUAL };

impl Task for Squares {
    fn loss(
        &mut self,
        worker: &mut Worker,
        learning: Learning<'_>,
        outputs: &Matrix,
        gradient: &mut Matrix,
        _g: &mut [f32],
    ) -> Result<f64> {
        let (targets, counts) = match learning.rows {
            Some(subset) => (subset.targets(), &subset.all[..]),
            None => worker.training_targets(),
        };
        let Targets::Classes(classes) = targets else { panic!("a node has one class") };
        let columns = outputs.columns();
        gradient.reshape(outputs.rows(), columns);
        gradient.data_mut().fill(0.0);
        let mut loss = 0.0;
        for row in (0..outputs.rows()).filter(|&row| counts[row]) {
            for column in 0..columns {
                let truth = if classes[row] == column as i32 { 1.0 } else { 0.0 };
                let off = outputs.row(row)[column] - truth;
                loss += f64::from(off * off * learning.scale);
                gradient.data_mut()[row * columns + column] = 2.0 * off * learning.scale;
            }
        }
        Ok(loss)
    }

    fn evaluate(&mut self, worker: &mut Worker, _p: &[f32], outputs: &Matrix, round: u32) -> Result<Evaluated> {
        worker.evaluate(outputs, round)
    }
}

/// Clusters by another name.
struct Others(Box<dyn Batches>);

static OTHERS: BatchingKind = BatchingKind {
    name: "others_clusters",
    build: || {
        batch::makes(|worker, stage, inputs, batching| {
            Ok(Box::new(Others(batch::made_by(&BATCHINGS[1], worker, stage, inputs, batching)?)))
        })
    },
    ..BATCHINGS[1]
};

impl Batches for Others {
    fn turn(&mut self, worker: &mut Worker, round: Round, inputs: &Inputs) -> Result<f64> {
        self.0.turn(worker, round, inputs)
    }

    fn gradient(&mut self, worker: &mut Worker, training: Training<'_>, g: &mut [f32]) -> Result<f64> {
        self.0.gradient(worker, training, g)
    }
}

/// Steps by the signs of summed gradients (signSGD, Bernstein et al., 2018).
struct Signs;

static SIGNS: AgreementKind = AgreementKind {
    name: "signs",
    suits: |cadence| !cadence.is_local(),
    sums: |_, network| vec![network.trained()],
    keeps: |_, _| 0,
    remembers: None,
    build: || agreement::makes(|_, _| Box::new(Signs)),
};

impl Agreement for Signs {
    fn rows(&self, worker: &Worker, _own: f64) -> f64 {
        worker.global_rows[0]
    }

    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        turn.reduction.sum(turn.worker, turn.round, turn.gradient, turn.extras)?;
        turn.gradient.iter_mut().filter(|value| **value != 0.0).for_each(|value| *value = value.signum());
        Ok(())
    }
}

/// Gradients of rank 1: of each matrix two products are added up, and nothing of its own size; what they leave over is
/// added to the next gradient (PowerSGD, Vogels, Karimireddy and Jaggi, 2019). What is no matrix goes with the first.
#[derive(Default)]
struct LowRank {
    left: Vec<f32>,
    /// What the next product begins with, matrix after matrix: the same on all workers.
    across: Vec<f32>,
}

static LOW_RANK: AgreementKind = AgreementKind {
    name: "low_rank",
    suits: |cadence| !cadence.is_local(),
    sums: |_, network| {
        let shapes = || network.parameters().iter().map(|spec| spec.matrix());
        let rows = |[rows, columns]: [usize; 2]| if rows == 1 { columns } else { rows };
        let columns = |[rows, columns]: [usize; 2]| if rows == 1 { 0 } else { columns };
        vec![shapes().map(rows).sum(), shapes().map(columns).sum()]
    },
    keeps: |_, network| 2 * network.trained(),
    remembers: Some(OwnMemory { key: "low_rank", what: "what its products have left over" }),
    build: || agreement::makes(|_, _| Box::new(LowRank::default())),
};

impl LowRank {
    /// Calls `with` for each matrix: where its values begin, its shape, and where its rows and columns stand in sums.
    fn each(shapes: &[[usize; 2]], mut with: impl FnMut(usize, [usize; 2], usize, usize)) {
        let (mut at, mut down, mut across) = (0, 0, 0);
        for &[rows, columns] in shapes {
            with(at, [rows, columns], down, across);
            at += rows * columns;
            down += if rows == 1 { columns } else { rows };
            across += if rows == 1 { 0 } else { columns };
        }
    }
}

impl Agreement for LowRank {
    fn rows(&self, worker: &Worker, _own: f64) -> f64 {
        worker.global_rows[0]
    }

    fn before_step(&mut self, turn: &mut Turn<'_>) -> Result<()> {
        let shapes: Vec<_> = turn.worker.plan.stages[0].network.parameters().iter().map(|spec| spec.matrix()).collect();
        let gradient = &mut *turn.gradient;
        self.left.resize(gradient.len(), 0.0);
        gradient.iter_mut().zip(&self.left).for_each(|(value, left)| *value += left);
        let (mut down, mut across) = (Vec::new(), Vec::new());
        Self::each(&shapes, |at, [rows, columns], _, start| {
            let matrix = &gradient[at..at + rows * columns];
            let begin = |column: usize| self.across.get(start + column).copied().unwrap_or(1.0);
            let product =
                |row: &[f32]| row.iter().enumerate().map(|(column, value)| value * begin(column)).sum::<f32>();
            match rows {
                1 => down.extend_from_slice(matrix),
                _ => down.extend(matrix.chunks_exact(columns).map(product)),
            }
        });
        turn.reduction.sum(turn.worker, turn.round, &mut down, turn.extras)?;
        Self::each(&shapes, |at, [rows, columns], start, _| {
            if rows > 1 {
                let unit = &mut down[start..start + rows];
                let norm = unit.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
                unit.iter_mut().for_each(|value| *value /= norm);
                let matrix = &gradient[at..at + rows * columns];
                let of = |column: usize| (0..rows).map(|row| unit[row] * matrix[row * columns + column]).sum::<f32>();
                across.extend((0..columns).map(of));
            }
        });
        let mine = across.clone();
        turn.reduction.further(turn.worker, turn.round, 1, &mut across)?;
        Self::each(&shapes, |at, [rows, columns], start, behind| {
            for place in 0..rows * columns {
                let (row, column) = (place / columns, place % columns);
                let (value, left) = (&mut gradient[at + place], &mut self.left[at + place]);
                let factors = |across: &[f32]| down[start + row] * across[behind + column];
                (*value, *left) = match rows {
                    1 => (down[start + column], 0.0),
                    _ => (factors(&across), *value - factors(&mine)),
                };
            }
        });
        self.across = across;
        Ok(())
    }

    fn save(&self, _: &Progress, saved: &mut Saved) {
        saved.put(Name::one("low_rank.left"), &self.left);
        saved.put(Name::one("low_rank.across"), &self.across);
    }

    fn restore(&mut self, _: &mut Progress, saved: &mut Saved) -> Result<()> {
        self.left = saved.take(&Name::one("low_rank.left"))?.unwrap_or_default();
        self.across = saved.take(&Name::one("low_rank.across"))?.unwrap_or_default();
        Ok(())
    }
}

fn graph() -> Dataset {
    sbm(&SbmSpec { nodes: 300, classes: 3, features: 16, seed: 1, ..SbmSpec::default() })
        .expect("a sound specification")
}

const SHORT: &str = "partition.parts = 2\nmodel.hidden = 16\ntrain.epochs = 30\ntrain.threads = 1\n";

/// A short run in memory by two workers; checked to send what is predicted.
fn run(members: &Members, keys: &str) -> Run {
    let config: Config =
        members.parse(&format!("{SHORT}{keys}"), &[]).unwrap_or_else(|error| panic!("{keys}: {error}"));
    let predicted = plan(members, &config, graph()).expect("a plan");
    let options = Options { members: members.clone(), ..Options::default() };
    let run = train(&config, graph(), options).unwrap_or_else(|error| panic!("{keys}: {error}"));
    let bytes: u64 = predicted.workers.iter().map(|(_, ledger, _)| ledger.total().framed).sum();
    assert_eq!(run.summary.bytes.total, bytes, "{keys}");
    run
}

#[test]
fn a_task_of_ones_own_learns() {
    let members = Members::default().with_task(&SQUARES);
    for keys in ["task.kind = 'least_squares'", "task.kind = 'least_squares'\nbatch = { size = 50, kind = 'clusters' }"]
    {
        let accuracy = run(&members, keys).test("accuracy").expect("nodes are tested");
        assert!(accuracy > 0.6, "{keys}: {accuracy}");
    }
    let unknown = members.parse("task.kind = 'squares'", &[]).expect_err("there is none of this name").to_string();
    assert!(unknown.contains("least_squares"), "{unknown}");
    let unread = members.parse("task = { kind = 'least_squares', decoder = 'dot' }", &[]);
    let unread = unread.expect_err("it reads no decoder").to_string();
    assert!(unread.contains("task.kind = \"least_squares\" does not read it"), "{unread}");
}

/// What an entry makes is opaque to plans, so a wrong one is found when it is to run.
#[test]
fn a_task_whose_entry_makes_an_agreement_is_refused() {
    static ODD: TaskKind =
        TaskKind { name: "odd", build: || agreement::makes(|_, _| Box::new(Signs)), ..TaskKind::USUAL };
    let members = Members::default().with_task(&ODD);
    let config = members.parse("partition.parts = 2\ntask.kind = 'odd'", &[]).expect("a task that is there");
    let options = Options { members, ..Options::default() };
    let error = train(&config, graph(), options).err().expect("no task is made").to_string();
    assert!(error.contains("wrap what makes it by fit::task::makes"), "{error}");
}

#[test]
fn batches_of_ones_own_are_trained_on() {
    let members = Members::default().with_batching(&OTHERS);
    let digest = |kind: &str| {
        let keys = format!("batch = {{ size = 50, kind = '{kind}', clusters = 12 }}");
        run(&members, &keys).summary.parameters.digest
    };
    assert_eq!(digest("others_clusters"), digest("clusters"));
}

#[test]
fn an_agreement_of_ones_own_takes_the_place_of_ours_where_it_suits() {
    let members = Members::default().with_agreement(&SIGNS);
    let digest = |members: &Members, keys: &str| run(members, keys).summary.parameters.digest;
    let sgd = "train.optimiser = 'sgd'\ntrain.momentum = 0.0\n";
    assert_ne!(digest(&members, sgd), digest(&Members::default(), sgd));
    let local = format!("{sgd}train.sync_every = 3");
    assert_eq!(digest(&members, &local), digest(&Members::default(), &local));
    assert!(run(&members, sgd).test("accuracy").is_some_and(|accuracy| accuracy > 0.6));
}

/// Two sums a round, predicted, of rows and columns of matrices in place of what lies between.
#[test]
fn an_agreement_of_low_rank_sends_rows_and_columns_and_learns() {
    let members = Members::default().with_agreement(&LOW_RANK);
    let keys = "train.lr = 0.01";
    let (low, full) = (run(&members, keys), run(&Members::default(), keys));
    let sent = |run: &Run| run.summary.bytes.by_kind["parameter_gradients"];
    assert!(2 * sent(&low) < sent(&full), "{} bytes against {}", sent(&low), sent(&full));
    let half =
        format!("{keys}\nout.checkpoint_every = 10\ntransport.fault = {{ rank = 1, round = 15, kind = 'crash' }}");
    let folder = tempfile::tempdir().expect("a folder for a while");
    let go = |keys: &str, resume: bool| {
        let config = members.parse(&format!("{SHORT}{keys}"), &[]).expect("a configuration");
        let out = Some(folder.path().join("run"));
        train(&config, graph(), Options { members: members.clone(), out, resume, ..Options::default() })
    };
    assert!(go(&half, false).is_err(), "a worker was to crash");
    let resumed = go(&format!("{keys}\nout.checkpoint_every = 10"), true).expect("a resumed run");
    assert_eq!(resumed.summary.parameters.digest, low.summary.parameters.digest);
    let accuracy = |run: &Run| run.test("accuracy").expect("nodes are tested");
    assert!(accuracy(&low) > accuracy(&full) - 0.05, "{} against {}", accuracy(&low), accuracy(&full));
}
