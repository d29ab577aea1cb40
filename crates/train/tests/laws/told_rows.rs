//! Independent trainers that tell each other rows (`schedule.halo = "stale"`): what they learn from, against a few
//! lines of double precision, and in the limits in which it is something else.

use std::collections::BTreeMap;

use laconic_graph::dataset::{Dataset, Features, Labels, Split};
use laconic_graph::part::Part;
use laconic_train::run::Outcome;
use laconic_train::run::source::Source;

use crate::averaging::{assert_as_predicted, dealt, last, refusal, run, run_on, simulated, trainers};
use crate::brute_force::difference;
use crate::fixture::{FEATURES, PLAIN, config, graph, losses_on, related};
use crate::methods::ARCHS;

const STALE: &str = "schedule.halo=stale";

/// What the laws are stated over.
const KINDS: &[&[&str]] = &[
    &[],
    &["model.arch=gcn", "schedule.late=products", "schedule.refresh=2"],
    &["model.arch=gat", "model.layers=3", "schedule.mean=rows"],
    &[
        "messages.forward={ codec = \"quantised\", bits = 4 }",
        "messages.parameters={ codec = \"quantised\", bits = 8 }",
    ],
    &["messages.selection={ kind = \"boundary_sample\", rate = 0.5 }", "model.arch=gcn"],
    &["task.kind=link_prediction", "task.negatives=local", "model.arch=gcn"],
    &["data.inductive=true", "model.arch=gin"],
    &["batch.size=9", "batch.fanouts=[3,2]", "model.dropout=0.3"],
    &["batch.size=9", "model.arch=gat", "schedule.late=products", "schedule.refresh=2", "batch.redraw=3"],
    &["batch.size=9", "messages.forward={ codec = \"quantised\", bits = 4 }", "data.inductive=true"],
    &["batch.size=9", "messages.forward={ codec = \"masked\", ratio = 3, reveal = false, whole_last = false }"],
    &["batch.size=40", "task.kind=link_prediction", "task.negatives=local", "model.arch=gcn"],
];

/// One batch of all that there is to learn from, with all neighbours, of two layers and of three.
const ALL: [&str; 2] = ["batch.size=1000000", "batch.fanouts=[-1,-1]"];
const ALL_OF_THREE: [&str; 2] = ["batch.size=1000000", "batch.fanouts=[-1,-1,-1]"];

/// Rows that a node's owner has told, by node; none before it has.
type Told = BTreeMap<usize, Vec<f64>>;

/// Two layers of SAGE by the mean of neighbours, whose first reads features of all, and whose second reads the hidden
/// rows of own nodes as they are and those of others as they were told.
struct Sage<'a> {
    dataset: &'a Dataset,
    owners: Vec<usize>,
    hidden: usize,
}

impl Sage<'_> {
    fn widths(&self) -> [usize; 3] {
        [FEATURES, self.hidden, self.dataset.labels.classes()]
    }

    fn count(&self) -> usize {
        self.widths().windows(2).map(|pair| 2 * pair[0] * pair[1] + pair[1]).sum()
    }

    /// One node's output from its own row and the mean of its neighbours', those that are missing being rows of zeros.
    fn node(&self, (inputs, outputs): (usize, usize), p: &[f64], own: &[f64], mean: &[f64]) -> Vec<f64> {
        let (neighbour, rest) = p.split_at(inputs * outputs);
        let (bias, root) = rest.split_at(outputs);
        let dot = |row: &[f64], x: &[f64]| row.iter().zip(x).map(|(w, x)| w * x).sum::<f64>();
        let rows = neighbour.chunks(inputs).zip(root.chunks(inputs)).zip(bias);
        rows.map(|((neighbour, root), bias)| bias + dot(neighbour, mean) + dot(root, own)).collect()
    }

    fn mean<'r>(&self, node: usize, width: usize, row: &dyn Fn(usize) -> Option<&'r [f64]>) -> Vec<f64> {
        let sources = self.dataset.graph.in_neighbours(node);
        let mut mean = vec![0.0; width];
        for row in sources.iter().filter_map(|&source| row(source as usize)) {
            mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += value / sources.len() as f64);
        }
        mean
    }

    /// The hidden rows of all nodes with these parameters.
    fn hidden(&self, p: &[f64]) -> Vec<Vec<f64>> {
        let [inputs, hidden, _] = self.widths();
        let Features::Dense { values, .. } = &self.dataset.features else { panic!("dense features") };
        let x: Vec<Vec<f64>> = values.chunks(inputs).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect();
        let row = |node: usize| {
            let mean = self.mean(node, inputs, &|source| Some(&x[source]));
            let out = self.node((inputs, hidden), p, &x[node], &mean);
            out.into_iter().map(|value| value.max(0.0)).collect()
        };
        (0..x.len()).map(row).collect()
    }

    fn learns(&self, node: usize) -> Option<usize> {
        let Labels::Single { values, .. } = &self.dataset.labels else { panic!("classes") };
        let is_training = self.dataset.splits[0].roles[node] & Split::TRAIN != 0;
        usize::try_from(values[node]).ok().filter(|_| is_training)
    }

    fn rows(&self, trainer: usize, of: &dyn Fn(usize) -> bool) -> f64 {
        let own = |node: &usize| self.owners[*node] == trainer && self.learns(*node).is_some() && of(*node);
        (0..self.owners.len()).filter(own).count() as f64
    }

    /// A trainer's loss over its own training nodes, of which a step learns from these.
    fn loss(&self, (trainer, of): (usize, &dyn Fn(usize) -> bool), p: &[f64], told: &Told) -> f64 {
        let [inputs, hidden, classes] = self.widths();
        let (first, second) = p.split_at(2 * inputs * hidden + hidden);
        let rows = self.hidden(first);
        let row = |source: usize| match self.owners[source] == trainer {
            true => Some(&rows[source][..]),
            false => told.get(&source).map(Vec::as_slice),
        };
        let own = (0..rows.len()).filter(|&node| self.owners[node] == trainer && of(node));
        let losses = own.filter_map(|node| self.learns(node).map(|label| (node, label))).map(|(node, label)| {
            let logits = self.node((hidden, classes), second, &rows[node], &self.mean(node, hidden, &row));
            logits.iter().map(|z| z.exp()).sum::<f64>().ln() - logits[label]
        });
        losses.sum::<f64>() / self.rows(trainer, of).max(1.0)
    }

    /// A step of plain descent, by central differences.
    fn step(&self, at: (usize, &dyn Fn(usize) -> bool), p: &[f64], told: &Told, rate: f64) -> Vec<f64> {
        const STEP: f64 = 1e-5;
        let mut moved = p.to_vec();
        let mut slope = |i: usize| {
            let mut loss = |value: f64| {
                moved[i] = value;
                self.loss(at, &moved, told)
            };
            let slope = (loss(p[i] + STEP) - loss(p[i] - STEP)) / (2.0 * STEP);
            moved[i] = p[i];
            slope
        };
        (0..p.len()).map(|i| p[i] - rate * slope(i)).collect()
    }
}

fn values(outcomes: &[Outcome]) -> Vec<f64> {
    outcomes[0].trained.last.iter().map(|value| f64::from(*value)).collect()
}

/// A mean after every step, trainers of the same speed and links that take no time: each step folds the rows that
/// others have told in the step before, or two steps before where every second mean is told of, and their gradients go
/// nowhere. A batch learns from its own nodes, and reads the rows that others have told of all of theirs.
#[test]
fn steps_are_those_of_a_plain_program_that_folds_what_was_told_before() {
    const RATE: f64 = 0.5;
    const SEED: u64 = 0;
    let dataset = graph(48, 3);
    let none: &[&str] = &[];
    let [whole, three] = [&ALL[..], &["batch.size=8", "batch.fanouts=[-1,-1]"]];
    let cases = [(2, 1, none), (3, 1, none), (3, 2, none), (3, 1, whole), (2, 1, three), (3, 2, three)];
    for (trainers, refresh, batches) in cases {
        let parts = dealt(&dataset, trainers);
        let mut owners = vec![0; dataset.graph.nodes()];
        parts
            .iter()
            .for_each(|part: &Part| part.nodes.iter().for_each(|&id| owners[id as usize] = part.index as usize));
        let network = Sage { dataset: &dataset, owners, hidden: 5 };
        let refreshes = format!("schedule.refresh={refresh}");
        let after = |steps: u32| {
            let (rate, limit) = (format!("train.lr={RATE}"), format!("schedule.limit={steps} steps"));
            let keys = ["model.arch=sage", "model.norm=none", "model.hidden=5", STALE, "schedule.mean=rows"];
            let keys = [&keys[..], &["schedule.interval=1 step", &refreshes, &limit, &rate], batches].concat();
            values(&run_on(&simulated(&[&PLAIN[..], &keys].concat()), parts.clone()))
        };
        let before = ["model.arch=sage", "model.norm=none", "model.hidden=5", "train.epochs=0"];
        let before = config(&[&PLAIN[..], &before].concat());
        let mut p = values(&run_on(&before, parts.clone()));
        assert_eq!(p.len(), network.count());
        let mut told = Told::new();
        for step in 1..=4 {
            let learned = (0..trainers as usize).map(|trainer| network.rows(trainer, &|_| true));
            let all: f64 = learned.sum();
            let mut mean = vec![0.0; p.len()];
            for trainer in 0..trainers as usize {
                let rows = network.rows(trainer, &|_| true);
                let share = rows / all;
                let count = if batches == three { laconic_graph::sample::batches(rows as u64, 8) } else { 1 };
                // An epoch goes by the number of its first round, and the first of a run is 1.
                let (epoch, batch) = (1 + (step - 1) / count * count, (step - 1) % count);
                let of = |node: usize| laconic_graph::sample::batch_of(SEED, epoch, node as u64, count) == batch;
                let own = network.step((trainer, &of), &p, &told, RATE);
                mean.iter_mut().zip(own).for_each(|(sum, value)| *sum += share * value);
            }
            if (step - 1) % refresh == 0 {
                let first = &p[..2 * FEATURES * network.hidden + network.hidden];
                told = network.hidden(first).into_iter().enumerate().collect();
            }
            p = mean;
            let apart = difference(&after(step as u32), &p);
            let what = format!("{trainers} trainers, told after {refresh} means, {batches:?}, step {step}");
            assert!(apart < 2e-5, "{what}: {apart:.1e}");
        }
    }
}

/// Once all rows have come and nothing moves, a trainer's loss is what it would be if others answered.
#[test]
fn rows_of_a_model_that_stands_still_are_the_exact_ones() {
    let dataset = graph(150, 4);
    for arch in ARCHS {
        for late in ["rows", "products"] {
            let late = format!("schedule.late={late}");
            let keys = [&PLAIN[..], arch, &["train.lr=1e-30", "model.layers=3", "model.norm=none"]].concat();
            let exact =
                losses_on(&config(&[&keys[..], &["train.epochs=1"]].concat()), Source::of(dealt(&dataset, 3)))[0];
            let told = [&keys[..], &[STALE, &late, "schedule.interval=1 step", "schedule.limit=6 steps"]].concat();
            let told = [&told[..], &["schedule.mean=rows", "train.eval_every=1"]].concat();
            for batches in [&[][..], &ALL_OF_THREE] {
                let told = [&told[..], batches].concat();
                let losses = losses_on(&simulated(&told), Source::of(dealt(&dataset, 3)));
                let what = format!("{arch:?}, {late}, {batches:?}: {losses:?}, {exact}");
                assert!((losses[0] - exact).abs() > 1e-4, "the first step knows no rows: {what}");
                assert!((losses[5] - exact).abs() < 1e-5 * exact, "{what}");
            }
        }
    }
}

/// Rows that have not come are absent, and gradients end at those that have, as on the full local graph.
#[test]
fn one_batch_of_everything_is_the_full_local_graph() {
    let (plain, relations) = (graph(150, 4), related(150, 4));
    let relational: [&[&str]; 2] = [&["model.arch=rgcn"], &["model.arch=rgcn", "model.bases=2"]];
    let kinds = ARCHS.iter().map(|arch| (*arch, &plain)).chain(relational.map(|arch| (arch, &relations)));
    for (arch, dataset) in kinds {
        for late in ["rows", "products"] {
            let late = format!("schedule.late={late}");
            let keys = [&PLAIN[..], arch, &["train.lr=0.1", STALE, &late, "schedule.refresh=2"]].concat();
            let keys = [&keys[..], &["schedule.interval=1 step", "schedule.limit=5 steps", "model.layers=3"]].concat();
            let values_of = |batches: &[&str]| {
                let keys = [&keys[..], batches].concat();
                values(&run_on(&simulated(&keys), dealt(dataset, 3)))
            };
            let apart = difference(&values_of(&ALL_OF_THREE), &values_of(&[]));
            assert!(apart < 1e-4, "{arch:?}, {late}: {apart:.1e}");
        }
    }
}

#[test]
fn one_trainer_has_nobody_to_tell_anything() {
    for keys in KINDS {
        let of = |halo: &str| last(&run(&simulated(&[keys, &[halo][..]].concat()), &graph(150, 3), 1));
        let plain: Vec<&str> =
            keys.iter().copied().filter(|key| !key.starts_with("messages.") && !key.contains("late")).collect();
        if plain.len() == keys.len() {
            assert_eq!(of(STALE), of("schedule.halo=none"), "{keys:?}");
        }
    }
}

/// Whatever the clock: how many rows are told follows from means alone.
#[test]
fn what_is_told_is_what_was_predicted_account_by_account() {
    for keys in KINDS {
        for count in [2, 3] {
            let keys = [keys, &[STALE][..]].concat();
            for config in [simulated(&keys), trainers(&keys)] {
                let outcomes = run(&config, &graph(150, 3), count);
                assert_as_predicted(&outcomes, &keys);
                let summary = outcomes[0].summary.as_ref().unwrap();
                assert!(summary.bytes.by_kind["activations"] > 0, "{keys:?}");
            }
        }
    }
}

/// Slow links and trainers of other speeds, one of which stalls and one of which is killed and comes back.
#[test]
fn the_same_seed_replays_what_was_told_when() {
    let faults = "transport.faults=[{ who = 1, at = \"4s\", kind = \"stalled\", back = \"7s\" }, \
        { who = 2, at = \"5s\", kind = \"killed\", back = \"6s\" }]";
    let clock =
        ["transport.speeds=[2, 1, 3]", "transport.shape=wan-100mbit-40ms", "schedule.grace=1s", "schedule.quorum=1"];
    let clock = [&clock[..], &["schedule.interval=2s", "schedule.limit=20s", faults, STALE]].concat();
    for keys in KINDS {
        let keys = [keys, &clock[..]].concat();
        let play = || run(&simulated(&keys), &graph(150, 3), 3);
        let (one, two) = (play(), play());
        assert_eq!(last(&one), last(&two), "{keys:?}");
        for (one, two) in one.iter().zip(&two) {
            assert!(one.sent.iter().eq(two.sent.iter()), "{keys:?}");
            assert!(one.sent.total().framed <= one.predicted.total().framed || one.rank > 0, "{keys:?}");
        }
    }
}

/// On a slow link rows come later, and who has not heard of them goes on all the same.
#[test]
fn nobody_waits_for_rows() {
    let steps = |halo: &str, shape: &str| {
        let shape = format!("transport.shape={shape}");
        let keys = ["transport.speeds=[5]", "schedule.interval=2s", "schedule.limit=10s", "schedule.refresh=2"];
        let halo = format!("schedule.halo={halo}");
        let keys = [&keys[..], &[&shape, &halo, "messages.parameters={ codec = \"quantised\", bits = 2 }"]].concat();
        let keys: Vec<&str> =
            keys.into_iter().filter(|key| !(halo.ends_with("none") && key.contains("refresh"))).collect();
        let outcomes = run(&simulated(&keys), &graph(150, 3), 3);
        let summary = outcomes[0].summary.as_ref().unwrap();
        summary.averaging.as_ref().unwrap().trainers.iter().map(|of| of.steps).sum::<u64>()
    };
    let (alone, told) = (steps("none", "wan-100mbit-40ms"), steps("stale", "wan-100mbit-40ms"));
    assert!(told as f64 > 0.95 * alone as f64, "{told} steps beside {alone}");
}

#[test]
fn what_rows_that_nobody_waits_for_cannot_be_is_refused_with_its_key() {
    let dataset = graph(60, 3);
    for (keys, what) in [
        (&["batch.size=9", "batch.kind=clusters"][..], "batch.kind"),
        (&["schedule.refresh=0"], "schedule.refresh"),
        (&["schedule.rounds=[3]"], "schedule.rounds"),
        (&["messages.skip={ change = 0.1 }"], "messages.skip"),
    ] {
        let keys = [keys, &["schedule.kind=averaging", "transport.kind=simulated", STALE]].concat();
        let error = refusal(&keys, &dataset);
        assert!(error.contains(what), "{keys:?}: {error}");
    }
    let error = refusal(&["schedule.kind=averaging", "schedule.refresh=3"], &dataset);
    assert!(error.contains("schedule.refresh"), "{error}");
}
