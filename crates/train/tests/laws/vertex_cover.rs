//! Sums in the place of rows: the same training with fewer rows, on graphs whose edges lead both ways.

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::Dataset;
use laconic_graph::edges::EdgeData;
use laconic_train::config::Config;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::run::Options;
use laconic_wire::{Direction, Kind, Ledger};

use crate::fixture::{config, graph, losses, parts, run, try_run, weighted};
use crate::ledger_is_prediction::assert_predicted;
use crate::one_is_many::compare;
use crate::same_bits::{STATE, assert_goes_on, assert_same};

const COVER: &str = "messages.selection=vertex_cover";

const SCHEDULES: [&[&str]; 7] = [
    &["schedule.kind=synchronous"],
    &["schedule.kind=synchronous", "schedule.cache_inputs=false"],
    &["schedule.kind=synchronous", "messages.evaluation=none"],
    &["schedule.kind=lazy", "schedule.start=features"],
    &["schedule.kind=lazy", "schedule.start=mlp", "schedule.hand_on=scores"],
    &["schedule.kind=pipelined"],
    &["schedule.kind=pipelined", "schedule.smooth_features=0.9", "schedule.smooth_gradients=0.5"],
];

const ARCHS: [&[&str]; 4] = [
    &["model.arch=gcn"],
    &["model.arch=gcn", "model.layers=3", "model.residual=true", "model.norm=batch"],
    &["model.arch=sage", "model.layers=3"],
    &["model.arch=gin"],
];

const CODECS: [&[&str]; 4] = [
    &[],
    &["messages.forward=half", "messages.backward=half"],
    &[r#"messages.forward={codec="quantised",bits=4}"#, r#"messages.backward={codec="quantised",bits=8}"#],
    &[r#"messages.backward={codec="masked",ratio=2,whole_last=false}"#, "train.sync_every=2"],
];

/// The same nodes with every edge in both directions.
pub fn both_ways(mut dataset: Dataset) -> Dataset {
    let (mut sources, mut targets, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for target in 0..dataset.graph.rows() {
        for edge in dataset.graph.in_edges(target) {
            let source = dataset.graph.sources[edge];
            // Of two edges that lead either way, one.
            if (source as usize) < target || !dataset.graph.in_neighbours(source as usize).contains(&(target as u32)) {
                for (from, to) in [(source, target as u32), (target as u32, source)] {
                    sources.push(from);
                    targets.push(to);
                    weights.extend(dataset.graph.data.weights.as_ref().map(|weights| weights[edge]));
                }
            }
        }
    }
    let data = EdgeData { weights: (!weights.is_empty()).then_some(weights), ..EdgeData::default() };
    let nodes = dataset.graph.rows();
    (dataset.graph, _) = build_graph(nodes, sources, targets, data, BuildOptions::default()).expect("sound edges");
    dataset
}

#[test]
fn training_with_sums_on_many_workers_is_training_on_one() {
    let datasets = [both_ways(graph(150, 4)), both_ways(weighted(150, 4))];
    for (a, arch) in ARCHS.iter().enumerate() {
        for schedule in SCHEDULES[..5].iter().filter(|keys| !keys.contains(&"messages.evaluation=none")) {
            let worst = compare(&datasets[usize::from(a < 2)], &[*arch, schedule, &[COVER]].concat(), &[2, 4]);
            println!("{arch:?} {schedule:?}: {worst:.1e}");
        }
    }
}

/// Rows that are late on many workers are not on one, so that these compare with rows alone.
#[test]
fn late_sums_are_sums_of_late_rows() {
    let dataset = both_ways(weighted(150, 4));
    for arch in ARCHS {
        for schedule in &SCHEDULES[5..] {
            let keys = [arch, schedule, &["train.epochs=6"]].concat();
            let (rows, sums) = (losses(&keys, &dataset, 3), losses(&[&keys[..], &[COVER]].concat(), &dataset, 3));
            for (rows, sums) in rows.iter().zip(&sums) {
                assert!((rows - sums).abs() < 1e-5 * rows, "{keys:?}: {sums} in place of {rows}");
            }
        }
    }
}

#[test]
fn sums_take_what_was_predicted_and_less_than_rows() {
    let datasets = [both_ways(graph(150, 4)), both_ways(weighted(150, 4))];
    let mut turn = 0;
    for arch in ARCHS {
        for schedule in SCHEDULES {
            turn += 1;
            let codec = CODECS[turn % CODECS.len()];
            let codec = if schedule[0].ends_with("pipelined") && turn % 4 == 3 { CODECS[0] } else { codec };
            let keys = [arch, schedule, codec, &[COVER]].concat();
            assert_predicted(&datasets[turn % 2], &keys, [2, 3, 5][turn % 3]);
        }
    }
    let exact = |keys: &[&str]| {
        let rows_of = |(_, ledger, _): &(_, Ledger, _)| {
            let is_of_rows = |kind| matches!(kind, Kind::Activations | Kind::ActivationGradients | Kind::Features);
            let rows = ledger.iter().filter(|(entry, _)| is_of_rows(entry.kind) && entry.round < 2);
            rows.fold([0; 2], |mut sums, (entry, count)| {
                sums[usize::from(entry.direction == Direction::Reverse)] += count.payload;
                sums
            })
        };
        let (config, dataset) = (config(keys), &datasets[0]);
        let costs = forecast(&Members::default(), &config, &parts(&config, dataset, 4), Ledger::new);
        costs.expect("a forecast").workers.iter().map(rows_of).fold([0; 2], |a, b| [a[0] + b[0], a[1] + b[1]])
    };
    let [rows, sums] = [&["train.eval_every=0"][..], &["train.eval_every=0", COVER]].map(exact);
    assert!(sums[0] < rows[0] && sums[1] < rows[1], "{sums:?} bytes of sums, {rows:?} of rows");
}

#[test]
fn sums_have_the_same_bits_however_the_run_is_played() {
    let dataset = both_ways(weighted(150, 4));
    for schedule in SCHEDULES {
        let keys = [schedule, &["model.arch=sage", COVER]].concat();
        let variants: [&[&str]; 4] = [
            &["schedule.overlap=false"],
            &["train.threads=2"],
            &["train.recompute=true"],
            &["messages.skip={change=0.0,staleness=1}"],
        ];
        assert_same(&dataset, 3, &keys, &variants);
    }
    for schedule in [SCHEDULES[0], SCHEDULES[3], SCHEDULES[6]] {
        assert_goes_on(&dataset, &[schedule, &STATE, &["model.arch=gcn", "train.epochs=3", COVER]].concat(), &[1, 2]);
    }
}

#[test]
fn what_sums_cannot_stand_for_is_refused() {
    let both = both_ways(graph(100, 3));
    let refused: [(&[&str], &str); 8] = [
        (&["model.arch=gat"], "gcn, sage and gin add neighbours up"),
        (&["model.arch=sage", "model.aggregator=max"], "each of a node's neighbours is looked at by itself"),
        (
            &["schedule.kind=label_propagation", "policy.allow=[\"labels\"]"],
            "each of a node's neighbours is looked at by itself",
        ),
        (&["schedule.kind=averaging", "schedule.interval=\"2 steps\""], "independent trainers exchange no rows"),
        (&["data.inductive=true"], "training and evaluations see other edges"),
        (&["batch.size=20"], "rows of batches travel by themselves"),
        (&[r#"messages.forward={codec="quantised",bits="adaptive"}"#], "what a row counts for"),
        (&[r#"messages.forward={codec="masked",ratio={from=4}}"#], "revealed column by column"),
    ];
    for (keys, words) in refused {
        let keys = [keys, &[COVER]].concat();
        let sets: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        let ran = Config::parse("[train]\nepochs = 1", &sets)
            .and_then(|config| try_run(&config, &both, 3, Options::default()).map(drop));
        let error = ran.err().map_or_else(|| "it ran".to_owned(), |error| error.to_string());
        assert!(error.contains(words) && error.contains("vertex_cover"), "{keys:?}: {error}");
    }
    let one_way = graph(100, 3);
    for message in [
        try_run(&config(&[COVER]), &one_way, 3, Options::default()).err().expect("no run").to_string(),
        forecast(&Members::default(), &config(&[COVER]), &parts(&config(&[COVER]), &one_way, 3), Ledger::new)
            .err()
            .expect("no forecast")
            .to_string(),
    ] {
        assert!(
            message.contains("edges that lead both ways") && message.contains("data.symmetrise = true"),
            "{message}"
        );
    }
    // The same edges both ways, with other weights.
    let mut unlike = both_ways(weighted(100, 3));
    unlike.graph.data.weights.iter_mut().for_each(|weights| weights[7] += 1.0);
    let unlike = (0..3).any(|seed| {
        let keys = [COVER, &format!("partition.seed={seed}")];
        let run = try_run(&config(&keys), &unlike, 3, Options::default());
        run.err().is_some_and(|error| error.to_string().contains("see different edges between them"))
    });
    assert!(unlike, "the edge is within a part of each partition");
    assert!(run(&config(&[COVER]), &both, 1)[0].sent.is_empty());
}
