//! Workers that do not run the same thing say so before anything else, and a run goes on from nothing but its own
//! checkpoint: in both cases with the first key that differs.

use std::path::Path;

use laconic_graph::about::{About, Reading, Scale, TableColumn};
use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::part::Part;
use laconic_train::TrainError;
use laconic_train::config::{Config, Reach};
use laconic_train::error::Result;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads, run_worker};
use laconic_wire::{Kind, threads};

use crate::fixture::{FEATURES, config, folder, graph, parts};
use crate::same_bits::{bits, stop_after};

/// What members read that are not the default ones, and for each key another value than the default.
const OTHERS: &[(&[&str], &[&str])] = &[
    (&["policy.allow=[\"labels\"]"], &["model.inputs=[\"features\", \"labels\"]"]),
    (
        &[
            "policy.allow=[\"labels\"]",
            "model.inputs=[\"features\", \"labels\"]",
            concat!("policy.label_secret=", env!("CARGO_TARGET_TMPDIR"), "/labels.secret"),
        ],
        &["policy.label_epsilon=2.5"],
    ),
    (
        &[],
        &[
            "data.part=1",
            "data.source=payer",
            "data.target=payee",
            "data.weight=amount",
            "data.relation=kind",
            "data.bipartite=true",
            "data.unknown=drop",
            "data.id=row",
            "data.label=status",
            "data.label_separator=|",
            "data.split_column=role",
            "data.features_columns=[\"age\"]",
            "data.ignore=[\"note\"]",
            "data.missing=mean",
            "data.dates=days",
            "data.categories=8",
            "data.header=no",
            "data.symmetrise=true",
            "data.duplicates=max",
            "data.keep_self_loops=true",
            "data.typed=true",
            "data.features=standardised",
            "data.split={ train = 0.5, val = 0.2 }",
            "data.split_index=1",
            "data.inductive=true",
            "partition.method=multilevel",
            "partition.seed=9",
            "partition.order=locality",
            "model.arch=gcn",
            "model.layers=3",
            "model.hidden=8",
            "model.input_width=5",
            "model.aggregator=max",
            "model.dropout=0.25",
            "model.norm=none",
            "model.activation=prelu",
            "model.jumping_knowledge=cat",
            "model.residual=true",
            "model.self_loops=true",
            "task.kind=link_prediction",
            "train.optimiser=adamw",
            "train.sync_every=2",
            "train.power_sgd={ rank = 2 }",
            "train.class_weights=balanced",
            "train.seed=1",
            "train.precision=bf16",
            "train.select_by=loss",
            "train.metrics=[\"macro_f1\"]",
            "batch.size=7",
            "schedule.kind=pipelined",
            "schedule.cache_inputs=false",
            "messages.forward=half",
            "messages.backward={ codec = \"quantised\", bits = 8 }",
            "messages.evaluation=half",
            "messages.evaluation_inputs=training",
            "messages.parameters=half",
            "messages.error_feedback=false",
            "messages.selection=boundary_sample",
            "messages.skip={ change = 0.1 }",
            "messages.costs=measured",
            "messages.budget=\"1 GB\"",
            "messages.layers.1.forward=half",
            "train.epochs=5",
            "train.lr=0.5",
            "train.weight_decay=0.1",
            "train.lr_schedule=cosine",
            "train.warmup=2",
            "train.clip=0.5",
            "train.eval_every=2",
            "train.part_figures=false",
            "train.patience=3",
            "transport.shape=wan-100mbit-40ms",
            "transport.shape_sleeps=true",
            "out.checkpoint_every=1",
        ],
    ),
    (
        &["partition.method=multilevel"],
        &["partition.objective=volume", "partition.balance_train=true", "partition.imbalance=0.1"],
    ),
    (
        &["batch.size=5"],
        &["batch.fanouts=[3, 2]", "batch.cache=\"1 MB\"", "batch.redraw=2", "batch.ahead=3", "batch.kind=clusters"],
    ),
    (&["batch.size=5", "batch.kind=clusters"], &["batch.clusters=3"]),
    (&["partition.method=super_node"], &["partition.clusters=20", "partition.clusterer=streaming"]),
    (&["partition.method=streaming"], &["partition.rule=ldg", "partition.passes=4", "partition.balance_edges=true"]),
    (&["model.arch=gat"], &["model.heads=2", "model.head_merge=mean"]),
    (&["model.arch=gin"], &["model.learn_epsilon=false"]),
    (&["model.arch=rgcn"], &["model.bases=2"]),
    (
        &["task.kind=link_prediction"],
        &[
            "task.decoder=distmult",
            "task.split={ val = 0.2, test = 0.1, seed = 1 }",
            "task.negatives=local",
            "task.negatives_per_edge=2",
            "task.filter_negatives=true",
            "task.eval_negatives=7",
        ],
    ),
    (&["task.kind=link_prediction", "batch.size=50"], &["task.exclude_targets=false"]),
    (&["task.kind=link_prediction", "task.decoder=mlp"], &["task.decoder_layers=2"]),
    (&["train.sync_every=4"], &["train.sync_drift=0.2", "train.outer={}", "train.correction=scaffold"]),
    (&["train.sync_every=4", "train.sync_drift=0.1"], &["train.sync_least=2"]),
    (&["train.optimiser=sgd"], &["train.momentum=0.5"]),
    (&["train.optimiser=adamw"], &["train.epsilon=1e-6"]),
    (&["train.lr_schedule=step"], &["train.lr_step=2", "train.lr_factor=0.5", "train.horizon=[\"4 epochs\"]"]),
    (
        &["schedule.kind=pipelined"],
        &["schedule.smooth_features=0.5", "schedule.smooth_gradients=0.5", "schedule.late=products"],
    ),
    (
        &["schedule.kind=lazy"],
        &["schedule.start=mlp", "schedule.hand_on=scores", "schedule.rounds=[2, 3]", "schedule.lr=[0.1, 0.2]"],
    ),
    (
        &["schedule.kind=label_propagation", "policy.allow=[\"labels\"]"],
        &["schedule.steps=2", "schedule.alpha=0.5", "schedule.normalise=divided"],
    ),
    (&["schedule.kind=ridge", "model.arch=mlp"], &["schedule.ridge=2"]),
];

/// What independent trainers read: they do not compare it, since whoever starts them gives all of them the same.
const OF_TRAINERS: [&str; 12] = [
    "schedule.interval",
    "schedule.mean",
    "schedule.halo",
    "schedule.refresh",
    "schedule.corrections",
    "schedule.evaluator",
    "schedule.evaluate",
    "averaging.drop",
    "schedule.limit",
    "schedule.quorum",
    "schedule.grace",
    "schedule.aggregator",
];

/// What each process may have for itself.
const OWN: [&str; 13] = [
    "data.features_in=memory",
    "data.path=elsewhere",
    "train.threads=2",
    "train.recompute=true",
    "schedule.overlap=false",
    "transport.deadline_s=30",
    "transport.start_deadline_s=300",
    "transport.fault={ rank = 0, round = 90, kind = \"crash\" }",
    "policy.deny=[\"labels\", \"ids:evaluation\"]",
    "policy.allow=[\"labels\"]",
    "policy.label_group=3",
    "policy.label_secret=elsewhere",
    "out.dir=elsewhere",
];

/// The key of `section.key=value`, as configurations list it.
fn key(set: &str) -> String {
    let key = set.split('=').next().expect("a key");
    key.splitn(3, '.').take(2).collect::<Vec<_>>().join(".")
}

/// Each worker with a configuration and parts of its own.
fn run_each(each: Vec<(Config, Vec<Part>)>) -> Vec<Result<Outcome>> {
    let ends = threads(each.len(), each[0].0.deadline());
    std::thread::scope(|scope| {
        let one = |(end, (config, parts)): (_, (Config, Vec<Part>))| {
            scope.spawn(move || run_worker(&config, Box::new(end), Source::of(parts), Options::default()))
        };
        let all: Vec<_> = ends.into_iter().zip(each).map(one).collect();
        all.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    })
}

fn is_refused(error: &TrainError, words: &[&str]) {
    assert!(matches!(error, TrainError::Config(_)) && error.exit_code() == 2, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "expected '{word}' in: {error}");
    }
}

#[test]
fn every_key_on_which_workers_have_to_agree_is_among_those_that_are_tried() {
    let mut tried: Vec<String> = OTHERS.iter().flat_map(|(_, others)| others.iter().map(|set| key(set))).collect();
    // The number of workers, whatever was typed.
    tried.push("partition.parts".to_owned());
    tried.extend(OF_TRAINERS.map(str::to_owned));
    let mut keys: Vec<&str> = Reach::Run.keys().chain(Reach::Course.keys()).collect();
    keys.sort_unstable();
    tried.sort_unstable();
    assert_eq!(tried, keys);
}

#[test]
fn nobody_is_handed_a_transport_who_trains_on_its_own() {
    let config = config(&["schedule.kind=averaging"]);
    let own = parts(&config, &graph(60, 3), 2);
    for result in run_each(vec![(config.clone(), own.clone()), (config, own)]) {
        is_refused(&result.err().expect("it is refused"), &["schedule.kind", "averaging"]);
    }
}

#[test]
fn workers_of_which_one_runs_something_else_all_name_the_first_key_that_differs() {
    let dataset = graph(60, 3);
    for (base, others) in OTHERS {
        for other in *others {
            let (usual, odd) = (config(base), config(&[*base, &[*other]].concat()));
            let of = |config: &Config| (config.clone(), parts(&usual, &dataset, 3));
            for result in run_each(vec![of(&usual), of(&usual), of(&odd)]) {
                let error = result.err().unwrap_or_else(|| panic!("{other}: not noticed"));
                is_refused(&error, &["workers 0 and 2", &format!("{} is ", key(other)), "on worker 2"]);
            }
        }
    }
    let lr = |rate: &str| (config(&[&format!("train.lr={rate}")]), parts(&config(&[]), &dataset, 2));
    let error = run_each(vec![lr("0.003"), lr("0.5")]).swap_remove(1).err().expect("a refusal");
    is_refused(&error, &["train.lr is 0.003 on worker 0, 0.5 on worker 1"]);
}

#[test]
fn workers_with_other_data_or_another_partition_are_refused_with_what_differs() {
    let (config, dataset) = (config(&[]), graph(60, 3));
    let cut = |dataset: &Dataset, seed: &str| parts(&crate::fixture::config(&[seed]), dataset, 2);
    let mut features = dataset.clone();
    if let Features::Dense { values, .. } = &mut features.features {
        values[7] += 1.0;
    }
    for (other, words) in [
        (cut(&graph(61, 3), "partition.seed=0"), "the data's nodes is 60 on worker 0, 61 on worker 1"),
        (cut(&features, "partition.seed=0"), "the data's digest"),
        (cut(&dataset, "partition.seed=1"), "the partition's digest"),
    ] {
        let each = vec![(config.clone(), cut(&dataset, "partition.seed=0")), (config.clone(), other)];
        for result in run_each(each) {
            is_refused(&result.err().expect(words), &[words]);
        }
    }
}

/// Bits do not depend on names and scales, so digests of data leave them out; the model has them from worker 0 alone.
#[test]
fn workers_whose_classes_or_features_mean_something_else_are_refused_with_what_differs() {
    let (config, dataset) = (config(&[]), graph(60, 3));
    let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
    let features = (0..FEATURES).map(|column| format!("f{column}")).collect::<Vec<_>>();
    let standardised = |mean: f64| Scale::Standardised {
        means: vec![mean; FEATURES],
        deviations: vec![1.0; FEATURES],
        rests: Vec::new(),
        by_type: false,
    };
    let about = About { classes: words(&["a", "b", "c"]), features, scale: standardised(0.1), ..About::default() };
    let column = |name: &str| {
        let reading = Reading::List { width: FEATURES };
        vec![TableColumn { name: name.to_owned(), reading, fill: None, indicator: false }]
    };
    let others: [(About, &str); 5] = [
        (About { classes: words(&["a", "c", "b"]), ..about.clone() }, "the data's class names"),
        (About { classes: Vec::new(), ..about.clone() }, "[\"a\", \"b\", \"c\"] on worker 0, not set on worker 1"),
        (About { features: Vec::new(), ..about.clone() }, "the data's feature names"),
        (About { columns: column("x"), ..about.clone() }, "the data's table columns"),
        (About { scale: standardised(0.2), ..about.clone() }, "the data's scale"),
    ];
    let cut = |about: &About| parts(&config, &Dataset { about: about.clone(), ..dataset.clone() }, 2);
    for (other, words) in others {
        let each = vec![(config.clone(), cut(&about)), (config.clone(), cut(&other))];
        for result in run_each(each) {
            is_refused(&result.err().expect(words), &[words]);
        }
    }
}

#[test]
fn what_concerns_one_process_may_differ_and_changes_no_bit() {
    let dataset = graph(60, 3);
    let mut keys: Vec<&str> = Reach::Process.keys().collect();
    let (usual, odd) = (config(&[]), config(&OWN));
    let each = |second: &Config| {
        let of = |config: &Config| (config.clone(), parts(&usual, &dataset, 2));
        let outcomes = run_each(vec![of(&usual), of(second)]);
        outcomes.into_iter().collect::<Result<Vec<Outcome>>>().expect("a run")
    };
    let (alike, different) = (each(&usual), each(&odd));
    assert_eq!(bits(&alike), bits(&different));
    keys.retain(|key| !OWN.iter().any(|set| self::key(set) == *key));
    // Files that lie elsewhere, what carries the frames, which is the same for all, and what stands for several runs.
    let same = ["transport.kind", "transport.speeds", "transport.faults", "messages.auto", "messages.target"];
    let elsewhere = ["data.features_path", "data.nodes_path", "partition.file", "partition.column"];
    assert_eq!(keys, [&elsewhere[..], &same].concat());
}

#[test]
fn what_workers_compare_is_in_the_ledger_and_in_its_prediction() {
    let (config, dataset) = (config(&["train.epochs=0"]), graph(60, 3));
    for outcome in crate::fixture::run(&config, &dataset, 3) {
        let start = |ledger: &laconic_wire::Ledger| {
            let start = ledger.iter().filter(|(entry, _)| (entry.round, entry.kind) == (0, Kind::Control));
            start.map(|(_, count)| count.framed).sum::<u64>()
        };
        assert_eq!(start(&outcome.sent), start(&outcome.predicted));
        // Two digests of 32 bytes and a header of 24 to each of two peers, besides everything else.
        assert!(start(&outcome.sent) > 2 * (2 * 32 + 24));
    }
}

/// Goes on in this folder with keys that the caller says may differ.
fn go_on(out: &Path, config: &Config, parts: Vec<Part>, changes: &[&str]) -> Result<Vec<Outcome>> {
    let changes = changes.iter().map(|key| key.to_string()).collect();
    let options = Options { out: Some(out.to_owned()), resume: true, changes, ..Options::default() };
    run_threads(config, Source::of(parts), options)
}

#[test]
fn a_run_goes_on_with_other_values_only_where_they_decide_rounds_to_come_and_the_caller_says_so() {
    let dataset = graph(60, 3);
    for (base, others) in OTHERS {
        let usual = config(base);
        let place = folder();
        let out = place.path().join("run");
        run_threads(&usual, Source::of(parts(&usual, &dataset, 2)), stop_after(2, &out)).expect("a run");
        let checkpoint = std::fs::read(out.join("checkpoint.safetensors")).expect("a checkpoint");
        for other in *others {
            let (odd, key) = (config(&[*base, &[*other]].concat()), key(other));
            let go_on = |changes: &[&str]| go_on(&out, &odd, parts(&usual, &dataset, 2), changes);
            // How the parts were made decides nothing where they are the same; how their rows are kept does.
            if key.starts_with("partition.") && key != "partition.order" {
                assert!(go_on(&[]).is_ok(), "{other}");
                std::fs::write(out.join("checkpoint.safetensors"), &checkpoint).expect("the checkpoint");
                continue;
            }
            is_refused(&go_on(&[]).err().expect(other), &["run: ", &format!("{key} is ")]);
            let kept = std::fs::read(out.join("checkpoint.safetensors")).expect("a checkpoint");
            assert!(kept == checkpoint, "{other}: a refusal changes nothing");
            match Reach::of(&key) {
                Reach::Course => drop(go_on(&[&key]).unwrap_or_else(|error| panic!("{other}: {error}"))),
                _ => is_refused(&go_on(&[&key]).err().expect(other), &[&format!("{key} is "), "train.epochs"]),
            }
            std::fs::write(out.join("checkpoint.safetensors"), &checkpoint).expect("written");
        }
    }
}

#[test]
fn a_run_goes_on_with_no_other_data_and_no_other_parts() {
    let (config, dataset) = (config(&[]), graph(60, 3));
    let usual = parts(&config, &dataset, 2);
    // Owners of sites know the sizes of the whole, and nobody its digest.
    let foreign = |mut parts: Vec<Part>| {
        for part in &mut parts {
            (part.global.data_digest, part.global.partition_digest) = (String::new(), String::new());
        }
        parts
    };
    let mut labels = dataset.clone();
    if let laconic_graph::dataset::Labels::Single { values, .. } = &mut labels.labels {
        values.rotate_right(1);
    }
    let mut wider = dataset.clone();
    wider.features = Features::Dense { columns: 13, values: vec![0.5; 13 * dataset.graph.nodes()].into() };
    let cut = |dataset: &Dataset| parts(&config, dataset, 2);
    let another = parts(&crate::fixture::config(&["partition.seed=1"]), &dataset, 2);
    for (before, now, words) in [
        (usual.clone(), cut(&labels), "the data's digest"),
        (usual.clone(), cut(&wider), "the data's feature columns is 13, and was 12"),
        (usual.clone(), another.clone(), "the partition's digest"),
        (foreign(usual.clone()), foreign(cut(&labels)), "what the parts hold"),
        (foreign(usual.clone()), foreign(another), "what the parts hold"),
    ] {
        let place = folder();
        let out = place.path().join("run");
        run_threads(&config, Source::of(before.clone()), stop_after(2, &out)).expect("a run");
        let error = go_on(&out, &config, now, &["data.path", "train.epochs"]).err().expect(words);
        is_refused(&error, &[words, "not the data that the run began with"]);
        go_on(&out, &config, before, &[]).expect("nothing was lost");
    }
}
