//! Defects of AdaQP's published code, each with a test that ours does not have it (specs/adaqp.md, section 10). Those
//! of its quantiser (other parameters at both ends, codes beyond the top, constant rows) are tested with the codec,
//! that of its assigner's sorting in `assigner.rs`.

use laconic_graph::build::{BuildOptions, build_graph};
use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::part::cut;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads};
use laconic_wire::{Direction, Kind};

use crate::fixture::{config, graph, run};
use crate::methods::{ARCHS, BOUNDED, CODECS, OTHERS, SCHEDULES, go_together};
use crate::same_bits::bits;

const ADAPTIVE: [&str; 2] = [
    r#"messages.forward={codec="quantised",bits="adaptive",period=1}"#,
    r#"messages.backward={codec="quantised",bits="adaptive",period=1}"#,
];

/// Defect 5: scores were kept by partition, so that one model's were used for another. Here a run knows nothing of
/// earlier ones.
#[test]
fn what_one_model_has_assigned_is_forgotten_by_the_next() {
    let dataset = graph(150, 4);
    let of = |arch: &str| bits(&run(&config(&[&ADAPTIVE[..], &[arch]].concat()), &dataset, 3));
    let first = of("model.arch=gcn");
    of("model.arch=sage");
    assert!(of("model.arch=gcn") == first, "another run in between changes nothing");
}

/// A graph in two pieces that share no edge, and a partition of it whose third part lies in the first piece alone.
fn pieces() -> (Dataset, Vec<u32>) {
    let mut dataset = graph(120, 3);
    let piece = |node: u32| u32::from(node >= 60);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    for target in 0..120u32 {
        for &source in dataset.graph.in_neighbours(target as usize) {
            if piece(source) == piece(target) {
                sources.push(source);
                targets.push(target);
            }
        }
    }
    (dataset.graph, _) = build_graph(120, sources, targets, None, BuildOptions::default()).expect("sound edges");
    let assignment = (0..120).map(|node| if node < 60 && node % 2 == 0 { 2 } else { piece(node) }).collect();
    (dataset, assignment)
}

fn run_on(dataset: &Dataset, assignment: &[u32], keys: &[&str]) -> Vec<Outcome> {
    let parts = cut(dataset, Some(0), assignment, 3).expect("parts");
    run_threads(&config(keys), Source::of(parts), Options::default())
        .unwrap_or_else(|error| panic!("{keys:?}: {error}"))
}

/// Defect 6: workers without a row for each other, and one worker alone, crashed.
#[test]
fn workers_that_share_no_edge_train_together() {
    let (dataset, assignment) = pieces();
    for (m, method) in [&CODECS[..], &OTHERS, &BOUNDED].concat().into_iter().enumerate() {
        let keys = [SCHEDULES[m % SCHEDULES.len()], ARCHS[m % ARCHS.len()], method].concat();
        if !go_together(&keys) {
            continue;
        }
        let outcomes = run_on(&dataset, &assignment, &keys);
        for outcome in &outcomes {
            let rows = |kind: Kind| matches!(kind, Kind::Features | Kind::Activations | Kind::ActivationGradients);
            let to_stranger =
                |(entry, _): &(laconic_wire::Entry, _)| rows(entry.kind) && (outcome.rank == 1 || entry.peer.0 == 1);
            assert_eq!(outcome.sent.iter().filter(to_stranger).count(), 0, "{keys:?}: rows between strangers");
            let (sent, predicted) = (outcome.sent.total().framed, outcome.predicted.total().framed);
            assert!(sent <= predicted, "{keys:?}: {sent} of {predicted} bytes");
        }
        let alone = run(&config(&keys), &dataset, 1);
        assert_eq!(alone[0].sent.total().frames, 0, "{keys:?}: one worker sends nothing");
    }
}

/// Defect 7: rows wider than a block of threads were left unquantised without a word.
#[test]
fn rows_of_more_than_1024_columns_are_coded_like_others() {
    let dataset = graph(60, 3);
    let keys = ["model.arch=gin", "model.hidden=1100", "train.epochs=2", "train.eval_every=0"];
    let with = |bits: u8| {
        let both = ["forward", "backward"].map(|way| format!("messages.{way}={{codec=\"quantised\",bits={bits}}}"));
        run(&config(&[&keys[..], &both.each_ref().map(String::as_str)].concat()), &dataset, 2)
    };
    let exact = run(&config(&keys), &dataset, 2);
    assert!(bits(&with(32)) == bits(&exact), "32 bits are exact");
    let loss = |outcomes: &[Outcome]| outcomes[0].trained.scores.train["loss"].expect("a figure");
    let (eight, exact_loss) = (loss(&with(8)), loss(&exact));
    // A step of 1/255 of the range is far below what two rounds of training change.
    assert!((eight - exact_loss).abs() < 0.02 * exact_loss, "{eight} with 8 bits, {exact_loss} exactly");
    let layer_1 = |outcomes: &[Outcome]| {
        let rows = outcomes[0].sent.iter().filter(|(entry, _)| entry.layer == 1 && entry.kind == Kind::Activations);
        rows.map(|(_, count)| count.payload).sum::<u64>()
    };
    assert_eq!(layer_1(&with(8)) * 4 * 1100, layer_1(&exact) * (4 + 1100));
}

/// Defect 8: layers were told apart by the last digit of their names.
#[test]
fn more_than_ten_layers_are_told_apart() {
    let dataset = graph(80, 3);
    let keys = ["model.arch=gin", "model.layers=12", "train.epochs=1", "train.eval_every=0"];
    let special = [
        r#"messages.layers.1.forward={codec="quantised",bits=2}"#,
        r#"messages.layers.11.forward={codec="quantised",bits=1}"#,
        "messages.layers.10.backward=half",
    ];
    let outcomes = run(&config(&[&keys[..], &special].concat()), &dataset, 2);
    let payload = |layer: u16, direction: Direction| {
        let of = |entry: &laconic_wire::Entry| {
            let rows = matches!(entry.kind, Kind::Features | Kind::Activations | Kind::ActivationGradients);
            rows && entry.layer == layer && entry.direction == direction
        };
        outcomes[0].sent.iter().filter(|(entry, _)| of(entry)).map(|(_, count)| count.payload).sum::<u64>()
    };
    let parts = crate::fixture::parts(&config(&keys), &dataset, 2);
    let plans = laconic_graph::plan::plan_all(&parts, false).expect("plans");
    let link = &plans[0].0.links[1];
    let (sent, received) = (link.send.len() as u64, link.receive.len() as u64);
    // Features of 12 columns, hidden rows of 16: whole, in 2 bits and 1 bit with 4 bytes of parameters, in 2 bytes.
    assert_eq!(payload(0, Direction::Forward), sent * 12 * 4);
    assert_eq!(payload(1, Direction::Forward), sent * (4 + 4));
    assert_eq!(payload(10, Direction::Forward), sent * 16 * 4);
    assert_eq!(payload(11, Direction::Forward), sent * (4 + 2));
    assert_eq!(payload(10, Direction::Reverse), received * 16 * 2);
    assert_eq!(payload(11, Direction::Reverse), received * 16 * 4);
}

/// Defect 10: traces of nothing but zeros divided by zero. Nothing is known then, and all rows get 8 bits.
#[test]
fn rows_without_any_range_get_eight_bits() {
    let mut dataset = graph(120, 3);
    let columns = dataset.features.columns();
    dataset.features = Features::Dense { columns, values: vec![0.0; 120 * columns].into() };
    let keys = [&ADAPTIVE[..], &["model.layers=1", "model.arch=gin", "messages.evaluation=none"]].concat();
    let outcomes = run(&config(&keys), &dataset, 3);
    let shares = &outcomes[0].summary.as_ref().expect("worker 0 sums up").bits;
    assert_eq!(shares.keys().collect::<Vec<_>>(), ["8"], "{shares:?}");
    assert!(outcomes[0].trained.last.iter().all(|value| value.is_finite()));
}
