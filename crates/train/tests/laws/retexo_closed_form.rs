//! The volume model of RETEXO to the byte. S and R are the rows that a worker sends and receives in one
//! exchange, d, h and C the widths of features, hidden rows and class scores, L the number of layers, T the number of
//! rounds. Bytes are payload: framing, metrics, checkpoints and the search for the plan are counted in other accounts.

use laconic_graph::dataset::Dataset;
use laconic_train::config::Config;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::{Members, Plan};
use laconic_train::run::Outcome;
use laconic_wire::{Kind, Ledger};

use crate::fixture::{FEATURES, config, graph, parts, run};

const HIDDEN: u64 = 16;
const WORKERS: u32 = 4;

/// Payload bytes of these kinds.
fn payload(ledger: &Ledger, kinds: &[Kind]) -> u64 {
    kinds.iter().map(|kind| ledger.totals_by_kind()[*kind].payload).sum()
}

/// S + R of each worker.
fn rows(config: &Config, dataset: &Dataset) -> Vec<u64> {
    let forecasts =
        forecast(&Members::default(), config, &parts(config, dataset, WORKERS), Ledger::new).expect("a forecast");
    let of =
        |links: &[laconic_train::exchange::shapes::PeerRows]| links.iter().map(|l| (l.send + l.receive) as u64).sum();
    let rows: Vec<u64> = forecasts.workers.iter().map(|(shapes, ..)| of(&shapes.links)).collect();
    assert!(rows.iter().all(|&rows| rows > 0), "the formula is worth little without traffic: {rows:?}");
    rows
}

/// Checks payload sent plus received of each worker against what the formula says for its rows.
fn assert_messages(config: &Config, dataset: &Dataset, kinds: &[Kind], bytes: impl Fn(u64) -> u64) -> Vec<Outcome> {
    let outcomes = run(config, dataset, WORKERS);
    for (outcome, rows) in outcomes.iter().zip(rows(config, dataset)) {
        let found = payload(&outcome.sent, kinds) + payload(&outcome.received, kinds);
        assert_eq!(
            found,
            bytes(rows),
            "worker {} with S + R = {rows}\n{}",
            outcome.rank,
            config.to_toml().unwrap_or_default()
        );
    }
    outcomes
}

const MESSAGES: [Kind; 3] = [Kind::Features, Kind::Activations, Kind::ActivationGradients];

#[test]
fn lazy_training_moves_each_boundary_row_once_a_layer() {
    let dataset = graph(180, 4);
    for arch in ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat"] {
        for layers in 1..=4 {
            let layers_key = format!("model.layers={layers}");
            let keys = ["schedule.kind=lazy", arch, &layers_key, "train.epochs=3"];
            let outcomes = assert_messages(&config(&keys), &dataset, &MESSAGES, |rows| {
                4 * rows * (FEATURES as u64 + (layers - 1) * HIDDEN)
            });
            assert!(outcomes.iter().all(|o| payload(&o.sent, &[Kind::ActivationGradients]) == 0), "{keys:?}");
        }
    }
}

/// What a stage trains on has crossed, so its evaluations exchange figures, whose size no graph decides.
#[test]
fn evaluations_of_lazy_stages_send_no_row() {
    let graphs = [graph(90, 4), graph(180, 4)];
    for arch in ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat"] {
        for start in ["schedule.start=features", "schedule.start=mlp"] {
            let config = config(&["schedule.kind=lazy", arch, start, "model.layers=3", "train.epochs=2"]);
            let [small, large] = graphs.each_ref().map(|dataset| {
                let outcomes = run(&config, dataset, WORKERS);
                outcomes.iter().map(|o| payload(&o.sent, &[Kind::Evaluation])).collect::<Vec<_>>()
            });
            assert!(small == large && small.iter().all(|&bytes| bytes > 0), "{arch} {start}: {small:?}, {large:?}");
        }
    }
}

/// What crosses between two stages is as wide as what is handed on; features cross once before the first, or never.
#[test]
fn each_boundary_row_is_as_wide_as_what_is_handed_on() {
    let (dataset, classes, columns) = (graph(180, 4), 4, 3);
    for arch in ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat"] {
        for (handed, width) in [
            ("schedule.hand_on=hidden", HIDDEN),
            ("schedule.hand_on=scores", classes),
            ("schedule.hand_on={columns=3}", columns),
        ] {
            for layers in 1..=3 {
                let layers_key = format!("model.layers={layers}");
                let keys = ["schedule.kind=lazy", arch, handed, &layers_key, "train.epochs=2"];
                assert_messages(&config(&keys), &dataset, &MESSAGES, |rows| {
                    4 * rows * (FEATURES as u64 + (layers - 1) * width)
                });
                let keys = [&keys[..], &["schedule.start=mlp"]].concat();
                assert_messages(&config(&keys), &dataset, &MESSAGES, |rows| 4 * rows * layers * width);
            }
        }
    }
}

/// What is reduced in stage l are the p_l parameters of its network: a reduction over P workers moves each 2·(P − 1)
/// times, 4 bytes each. Two numbers ride along from every worker to every other, 8 bytes each: the loss, and whether it
/// was asked to stop.
#[test]
fn gradients_cost_what_the_formula_says() {
    let dataset = graph(180, 4);
    for arch in ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat", "model.arch=mlp"] {
        for start in ["schedule.start=features", "schedule.start=mlp"] {
            let keys =
                ["schedule.kind=lazy", start, arch, "schedule.rounds=[5, 3]", "train.epochs=2", "model.layers=3"];
            let config = config(&keys);
            let stages = Plan::for_model(&Members::default(), &config, [FEATURES, 4]).expect("stages").stages;
            let outcomes = run(&config, &dataset, WORKERS);
            let found: u64 = outcomes.iter().map(|o| payload(&o.sent, &[Kind::ParameterGradients])).sum();
            let workers = u64::from(WORKERS);
            let reduced = |stage: &laconic_train::schedule::Stage| {
                (8 * stage.network.len() as u64 + workers * 16) * u64::from(stage.rounds)
            };
            let expected = (workers - 1) * stages.iter().map(reduced).sum::<u64>();
            assert_eq!(found, expected, "{keys:?}");
        }
    }
}

/// Holds where every layer after the first sends rows of width h: gin always, gcn and sage as long as the last layer is
/// not narrower than h (else they send its output, which is less).
#[test]
fn synchronous_training_moves_each_boundary_row_twice_a_layer_and_round() {
    let (narrow, wide) = (graph(180, 4), graph(180, HIDDEN as usize));
    for (dataset, arch, layers) in [
        (&narrow, "model.arch=gin", 2),
        (&narrow, "model.arch=gin", 3),
        (&wide, "model.arch=gcn", 3),
        (&wide, "model.arch=sage", 3),
        (&wide, "model.arch=sage", 1),
    ] {
        for rounds in [1, 5] {
            let (layers_key, rounds_key) = (format!("model.layers={layers}"), format!("train.epochs={rounds}"));
            assert_messages(&config(&[arch, &layers_key, &rounds_key]), dataset, &MESSAGES, |rows| {
                4 * rows * (FEATURES as u64 + 2 * (layers - 1) * HIDDEN * rounds)
            });
        }
    }
}

#[test]
fn raw_features_never_leave_their_owner_where_only_scores_cross() {
    let (dataset, classes) = (graph(180, 4), 4);
    for arch in ["model.arch=gcn", "model.arch=sage", "model.arch=gin", "model.arch=gat"] {
        for layers in 1..=3 {
            let layers_key = format!("model.layers={layers}");
            let keys = ["schedule.kind=lazy", "schedule.start=mlp", arch, &layers_key];
            let outcomes = assert_messages(&config(&keys), &dataset, &MESSAGES, |rows| 4 * rows * layers * classes);
            for outcome in &outcomes {
                let is_features = |ledger: &Ledger| ledger.iter().any(|(entry, _)| entry.kind == Kind::Features);
                assert!(!is_features(&outcome.sent) && !is_features(&outcome.received), "{keys:?}");
                // Each message by itself: C columns of every row on the link, once in the life of its layer.
                let activations = outcome.sent.iter().filter(|(entry, _)| entry.kind == Kind::Activations);
                let each: Vec<_> = activations.collect();
                assert!(
                    each.iter().all(|(_, count)| count.frames == 1 && count.payload % (4 * classes) == 0),
                    "{keys:?}"
                );
            }
        }
    }
}
