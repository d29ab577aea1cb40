//! What stands around and between layers: residual connections, BatchNorm, PReLU, JumpingKnowledge.

use std::collections::BTreeMap;

use laconic_graph::dataset::{Features, Split};
use laconic_train::Config;
use laconic_train::laws::methods;
use laconic_train::plan::{Members, Plan};
use laconic_train::record::weights;

use crate::defects_of_retexo::{accuracy, logits};
use crate::fixture::{config, folder, graph, into_folder, parts, related, run, try_run};
use crate::one_is_many::{SCHEDULES, compare};

/// Steps as long as the gradient. Adam's are of one length, whatever is left of a gradient that nearly vanishes.
const SGD: &str = "train.optimiser=sgd";

/// Every schedule on 2, 3 and 5 workers against one.
fn one_is_many(arch: &str, options: &[&str]) {
    let dataset = if arch == "model.arch=rgcn" { related(180, 4) } else { graph(180, 4) };
    for schedule in SCHEDULES {
        let worst = compare(&dataset, &[&[arch], options, schedule].concat(), &[2, 3, 5]);
        println!("{arch} {options:?} {schedule:?}: {worst:.1e}");
    }
}

/// Ledger against prediction, the same bits over threads and overlap, and after a crash.
fn owes_what_every_method_owes(settings: &[&str]) {
    methods::check(&Members::default(), &settings.iter().map(|key| key.to_string()).collect::<Vec<_>>());
}

#[test]
fn residual_connections_on_many_workers_are_those_on_one() {
    for arch in ["gcn", "sage", "gin", "gat", "rgcn", "mlp"] {
        one_is_many(&format!("model.arch={arch}"), &["model.residual=true", "model.layers=3"]);
    }
}

#[test]
fn residual_connections_keep_what_every_method_owes() {
    for settings in [
        &["schedule.kind=synchronous", "model.arch=gat"][..],
        &["schedule.kind=pipelined", "model.arch=sage", "model.layers=3"],
        &["schedule.kind=lazy", "model.arch=gcn", "schedule.hand_on=scores"],
    ] {
        owes_what_every_method_owes(&[settings, &["model.residual=true"]].concat());
    }
}

#[test]
fn batch_norm_and_prelu_on_many_workers_are_those_on_one() {
    for arch in ["gcn", "sage", "gin", "gat", "rgcn", "mlp"] {
        one_is_many(&format!("model.arch={arch}"), &["model.norm=batch", "model.layers=3", SGD]);
        one_is_many(&format!("model.arch={arch}"), &["model.activation=prelu", "model.layers=3"]);
    }
    one_is_many("model.arch=gcn", &["model.norm=batch", "model.activation=prelu", "model.residual=true"]);
}

#[test]
fn batch_norm_and_prelu_keep_what_every_method_owes() {
    for settings in [
        &["schedule.kind=synchronous", "model.arch=gat", "model.norm=batch"][..],
        &["schedule.kind=pipelined", "model.arch=sage", "model.layers=3", "model.norm=batch", "model.activation=prelu"],
        &["schedule.kind=lazy", "model.arch=gcn", "model.norm=batch", "model.activation=prelu"],
        &["schedule.kind=lazy", "schedule.start=mlp", "model.arch=sage", "model.norm=batch"],
        &["train.sync_every=2", "model.arch=gcn", "model.norm=batch"],
        &["messages.selection=none", "model.arch=sage", "model.norm=batch", "model.residual=true"],
    ] {
        owes_what_every_method_owes(settings);
    }
}

/// What the norm sends is in the accounts of activations and of their gradients: eight bytes and two numbers a column
/// to each other worker forward, and a reduction of two numbers a column back.
#[test]
fn batch_norm_sends_two_numbers_a_column_forward_and_back() {
    let bytes = |norm: &str| {
        let keys = ["model.arch=mlp", "model.layers=3", "model.hidden=10", norm];
        let summary = run(&config(&keys), &graph(90, 4), 3).swap_remove(0).summary.expect("worker 0 sums up");
        ["activations", "activation_gradients"].map(|kind| summary.bytes.by_kind[kind])
    };
    let (rounds, norms, workers, header) = (4, 2, 3, 24);
    let forward = workers * (workers - 1) * (8 + 2 * 10 * 4 + header);
    // A third of the twenty numbers is 7, 7 and 6; each is sent to two, and its sum to two.
    let back = (workers - 1) * 2 * (20 * 4 + workers * header);
    assert_eq!(bytes("model.norm=layer"), [0, 0]);
    assert_eq!(bytes("model.norm=batch"), [forward, back].map(|bytes| rounds * norms * bytes));
}

/// Statistics that follow the rows, and not the steps, are the definition's: after one round a tenth of the round's
/// own and nine of the start.
#[test]
fn running_statistics_take_a_tenth_of_each_round_s() {
    let dataset = graph(120, 4);
    let keys = ["model.arch=mlp", "model.layers=2", "model.hidden=6", "model.norm=batch", "model.dropout=0.0"];
    let after = |epochs: &str| {
        let outcomes = run(&config(&[&keys[..], &[epochs, "train.eval_every=0"]].concat()), &dataset, 3);
        let stage = outcomes[0].plan.stages[0].network.named(&outcomes[0].trained.last);
        stage.map(|(spec, values)| (spec.name.clone(), values.to_vec())).collect::<BTreeMap<_, _>>()
    };
    let (start, end) = (after("train.epochs=0"), after("train.epochs=1"));
    assert!(start["norms.0.running_mean"].iter().all(|mean| *mean == 0.0));
    let Features::Dense { columns, values } = &dataset.features else { panic!("dense features") };
    for (column, weight) in start["lins.0.weight"].chunks_exact(*columns).enumerate() {
        let of = |row: &[f32]| row.iter().zip(weight).map(|(a, b)| f64::from(a * b)).sum::<f64>();
        let bias = f64::from(start["lins.0.bias"][column]);
        let z: Vec<f64> = values.chunks_exact(*columns).map(|row| of(row) + bias).collect();
        let mean = z.iter().sum::<f64>() / z.len() as f64;
        let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (z.len() - 1) as f64;
        let found = ["norms.0.running_mean", "norms.0.running_var"].map(|name| f64::from(end[name][column]));
        let expected = [0.1 * mean, 0.9 + 0.1 * variance];
        assert!(
            found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5 * (1.0 + b.abs())),
            "{found:?} {expected:?}"
        );
    }
}

/// What a model says of a node does not depend on who else is asked about: evaluations take running statistics.
#[test]
fn the_best_round_s_statistics_are_in_the_model_and_give_its_figures_again() {
    let dataset = graph(120, 4);
    for keys in [
        &["model.norm=batch", "model.arch=gcn"][..],
        &["model.norm=batch", "model.activation=prelu", "schedule.kind=lazy"],
        &["model.norm=batch", "model.residual=true", "train.sync_every=2", "model.layers=3"],
    ] {
        let (config, folder) = (config(keys), folder());
        let out = folder.path().join("run");
        let outcomes = try_run(&config, &dataset, 3, into_folder(&out)).expect("a run");
        let weights = weights::read(&out.join(weights::FILE)).expect("a model").weights;
        assert!(weights["norms.0.running_var"].1.iter().all(|value| *value > 0.0 && *value != 1.0), "{keys:?}");
        let logits = logits(&config, parts(&config, &dataset, 3), &weights);
        let found = accuracy(&dataset, &logits, Split::TEST).0;
        assert_eq!(found, outcomes[0].trained.scores.test["accuracy"].expect("a figure"), "{keys:?}");
    }
}

#[test]
fn statistics_of_rows_that_batches_or_training_do_not_see_are_refused() {
    for (key, named) in [("batch.size=10", "batch.size = 10"), ("data.inductive=true", "data.inductive = true")] {
        let error = Config::parse("model.norm = \"batch\"", &[key.to_owned()]).expect_err("a refusal");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("model.norm") && error.to_string().contains(named), "{error}");
    }
}

#[test]
fn variances_that_would_be_rounded_on_their_way_are_refused() {
    let file = "model.norm = \"batch\"\nmessages.parameters = { codec = \"quantised\", bits = 4 }";
    let parsed = |every: &str| Config::parse(file, &[format!("train.sync_every={every}")]);
    assert!(parsed("1").is_ok());
    let error = parsed("2").expect_err("a refusal").to_string();
    assert!(error.contains("messages.parameters") && error.contains("train.sync_every = 2"), "{error}");
}

#[test]
fn jumping_knowledge_on_many_workers_is_that_on_one() {
    for arch in ["gcn", "sage", "gin", "gat", "rgcn", "mlp"] {
        let dataset = if arch == "rgcn" { related(180, 4) } else { graph(180, 4) };
        for jump in ["cat", "max", "last"] {
            for more in [&[][..], &["model.input_width=7"], &["schedule.cache_inputs=false", "model.layers=1"]] {
                let [arch, jump] = [format!("model.arch={arch}"), format!("model.jumping_knowledge={jump}")];
                compare(&dataset, &[&[arch.as_str(), &jump, "model.layers=3", SGD], more].concat(), &[2, 3, 5]);
            }
        }
    }
}

#[test]
fn jumping_knowledge_keeps_what_every_method_owes() {
    for settings in [
        &["model.arch=gat", "model.jumping_knowledge=cat", "model.layers=3"][..],
        &["schedule.kind=pipelined", "model.arch=sage", "model.jumping_knowledge=max", "model.norm=batch"],
    ] {
        owes_what_every_method_owes(settings);
    }
    let lazy = ["schedule.kind=lazy", "model.jumping_knowledge=cat"].map(str::to_owned);
    let config = Config::parse("", &lazy).expect("keys");
    let error = Plan::for_model(&Members::default(), &config, [5, 3]).err().expect("a refusal");
    assert!(error.to_string().contains("model.jumping_knowledge = \"cat\""), "{error}");
}
