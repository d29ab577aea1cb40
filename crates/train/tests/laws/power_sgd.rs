//! What holds of gradients that are added up as two factors (PowerSGD).

use laconic_graph::dataset::Dataset;
use laconic_train::config::Config;
use laconic_train::record::state;
use laconic_train::run::Outcome;
use laconic_train::saved::Name;
use laconic_wire::{Count, Kind};

use crate::fixture::{FEATURES, config, folder, graph, into_folder, run, try_run};
use crate::same_bits::{assert_goes_on, bits};

/// Of two layers of 16 hidden columns, without norms: two matrices and a bias each.
const SAGE: [&str; 4] = ["model.arch=sage", "model.norm=none", "model.dropout=0", "train.eval_every=0"];
const CLASSES: usize = 4;

fn trained(dataset: &Dataset, keys: &[&str], workers: u32) -> Vec<Outcome> {
    run(&config(&[&SAGE[..], keys].concat()), dataset, workers)
}

/// The gradients that all workers have sent together.
fn sent(outcomes: &[Outcome]) -> Count {
    outcomes.iter().map(|outcome| outcome.sent.totals_by_kind()[Kind::ParameterGradients]).sum()
}

#[test]
fn a_round_sends_factors_of_matrices_and_all_else_as_it_is_in_two_sums() {
    let dataset = graph(150, CLASSES);
    for (rank, workers) in [(1, 2), (2, 3), (3, 4)] {
        let key = format!("train.power_sgd={{rank={rank}}}");
        let outcomes = trained(&dataset, &[&key, "train.epochs=3"], workers);
        let first = rank * (2 * 16 + 2 * CLASSES) + 16 + CLASSES;
        let second = rank * (2 * FEATURES + 2 * 16);
        let peers = workers as usize - 1;
        // Every value goes to who adds it up from all others, and its sum to all others; a loss and a count ride along.
        let of_round = 4 * 2 * peers * (first + second) + 8 * 2 * peers * workers as usize;
        assert_eq!(sent(&outcomes).payload, 3 * of_round as u64, "rank {rank}, {workers} workers");
        assert_eq!(sent(&outcomes).frames as usize, 3 * 4 * peers * workers as usize);
        for outcome in &outcomes {
            assert_eq!(outcome.sent, outcome.predicted);
            assert_eq!(outcome.trained.last, outcomes[0].trained.last, "workers end with one model");
        }
    }
}

#[test]
fn where_factors_would_be_no_smaller_gradients_are_added_up_as_they_are() {
    let dataset = graph(150, CLASSES);
    // Of 4 × 16 values, 4 · (4 + 16) are more; of 16 × 12 the same holds from 7 on.
    let [plain, factored] = [&[][..], &["train.power_sgd={rank=7}"]].map(|keys| trained(&dataset, keys, 3));
    assert_eq!(bits(&plain).rounds, bits(&factored).rounds);
    assert!(plain.iter().zip(&factored).all(|(plain, factored)| plain.trained.last == factored.trained.last));
    assert_eq!(sent(&plain), sent(&factored));
    let said = |outcomes: &[Outcome]| outcomes[0].plan.notes().iter().any(|note| note.contains("train.power_sgd"));
    assert!(said(&factored) && !said(&plain));
}

#[test]
fn one_worker_has_its_gradients_as_they_are() {
    let dataset = graph(150, CLASSES);
    let [plain, factored] = [&[][..], &["train.power_sgd={rank=1}"]].map(|keys| trained(&dataset, keys, 1));
    assert_eq!(plain[0].trained.last, factored[0].trained.last);
    let several = [&[][..], &["train.power_sgd={rank=1}"]].map(|keys| trained(&dataset, keys, 2));
    assert_ne!(several[0][0].trained.last, several[1][0].trained.last);
}

/// After one step by the gradients themselves, what the model lacks is what all workers' errors come to.
#[test]
fn what_the_factors_lack_is_what_workers_keep() {
    let dataset = graph(150, CLASSES);
    let step = ["train.epochs=1", "train.optimiser=sgd", "train.momentum=0", "train.lr=1", "train.weight_decay=0"];
    let [start, exact] = ["train.lr=1e-30", "train.lr=1"]
        .map(|lr| trained(&dataset, &[&step[..], &[lr]].concat(), 3)[0].trained.last.clone());
    let folder = folder();
    let out = folder.path().join("run");
    let keys = [&SAGE[..], &step, &["train.power_sgd={rank=1}"]].concat();
    let outcomes = try_run(&config(&keys), &dataset, 3, into_folder(&out)).expect("a run");
    let mut errors = vec![0.0f64; start.len()];
    for worker in 0..3 {
        let bytes = std::fs::read(state::path(&out, worker, 1)).expect("a state");
        let (mut saved, _) = state::from_bytes(&bytes).expect("a state");
        let own: Vec<f32> = saved.take(&Name::one("power_sgd.errors")).expect("of its kind").expect("errors");
        errors.iter_mut().zip(own).for_each(|(sum, own)| *sum += f64::from(own));
    }
    let lacks = |at: usize| f64::from(outcomes[0].trained.last[at]) - f64::from(exact[at]);
    let size = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let [far, left, whole] = [
        size(&mut (0..errors.len()).map(|at| lacks(at) - errors[at])),
        size(&mut errors.iter().copied()),
        size(&mut start.iter().zip(&exact).map(|(start, exact)| f64::from(start - exact))),
    ];
    assert!(far < 1e-5 * whole, "{far} of a gradient of {whole}");
    assert!(left > 0.01 * whole && left < whole, "{left} is left of {whole}");
}

/// One direction of each matrix learns what whole gradients learn, since what it leaves over is fed back.
#[test]
fn factors_of_one_column_learn_beside_the_exact_run() {
    let dataset = graph(400, CLASSES);
    let accuracy = |more: &[&str]| {
        let keys = [&["train.epochs=200", "train.eval_every=10", "model.dropout=0.0"], more].concat();
        run(&config(&keys), &dataset, 3)[0].trained.scores.val["accuracy"].expect("a figure")
    };
    let exact = accuracy(&[]);
    for rank in ["1", "2", "\"classes\""] {
        let found = accuracy(&[&format!("train.power_sgd={{rank={rank}}}")]);
        assert!(exact > 0.5 && found > exact - 0.08, "rank {rank}: {found} against {exact}");
    }
}

#[test]
fn a_run_with_factors_goes_on_with_the_same_bits_in_batches_and_stages_too() {
    let dataset = graph(150, CLASSES);
    let factored = "train.power_sgd={rank=1}";
    assert_goes_on(&dataset, &[factored, "train.epochs=5", "model.arch=sage", "train.optimiser=sgd"], &[1, 2, 4]);
    assert_goes_on(&dataset, &[factored, "train.epochs=3", "schedule.kind=lazy", "model.arch=gcn"], &[1, 2, 4]);
    assert_goes_on(&dataset, &[factored, "train.epochs=3", "model.norm=batch", "model.arch=gat"], &[2]);
    assert_goes_on(&dataset, &[factored, "train.epochs=2", "batch.size=9", "model.arch=sage"], &[3]);
}

#[test]
fn a_budget_leaves_factors_as_they_are() {
    let dataset = graph(150, CLASSES);
    let keys = ["train.power_sgd={rank=1}", "messages.budget=200 kB", "train.epochs=6", "model.arch=sage"];
    let outcomes = run(&config(&keys), &dataset, 3);
    let total: u64 = outcomes.iter().map(|outcome| outcome.sent.total().framed).sum();
    assert!(total <= 200_000, "{total} bytes");
    assert!(!outcomes[0].plan.messages.round_parameters());
}

#[test]
fn factors_are_refused_where_no_gradients_are_added_up_and_where_they_make_no_sense() {
    let power = "train.power_sgd={rank=2}";
    for (keys, words) in [
        (&[power, "train.sync_every=4"][..], "train.power_sgd with train.sync_every = 4: models are averaged there"),
        (&[power, "schedule.kind=averaging"], "independent trainers add up no gradients"),
        (&[power, "schedule.kind=llcg"], "independent trainers add up no gradients"),
        (&[power, "schedule.kind=ridge", "model.arch=mlp"], "nothing there is learned by gradients"),
        (
            &[power, "schedule.kind=label_propagation", "policy.allow=[\"labels\"]"],
            "nothing there is learned by gradients",
        ),
        (&[power, "messages.parameters=half"], "train.power_sgd with messages.parameters"),
        (&[power, "messages.error_feedback=false"], "is always added to the next gradient"),
        (&["train.power_sgd={rank=0}"], "rank = 0: expected a whole number from 1 to 1024, or \"classes\""),
        (&["train.power_sgd={rank=1.5}"], "rank = 1.5: expected a whole number"),
        (&["train.power_sgd={rank=\"all\"}"], "expected a whole number from 1 to 1024, or \"classes\""),
        (&["train.power_sgd={ranks=2}"], "ranks"),
    ] {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let error = Config::parse("", &keys).map(drop).expect_err("a refusal").to_string();
        assert!(error.contains(words), "{keys:?}: {error}");
    }
    let learned = ["train.power_sgd={}", "schedule.kind=correct_and_smooth", "policy.allow=[\"labels\"]"];
    assert!(Config::parse("", &learned.map(str::to_owned)).is_ok(), "its first stages are");
}
