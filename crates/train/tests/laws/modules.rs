//! What stands around and between layers: residual connections.

use laconic_train::laws::methods;
use laconic_train::plan::Members;

use crate::fixture::{graph, related};
use crate::one_is_many::{SCHEDULES, compare};

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
        &["batch.size=60", "model.arch=gin"],
    ] {
        owes_what_every_method_owes(&[settings, &["model.residual=true"]].concat());
    }
}
