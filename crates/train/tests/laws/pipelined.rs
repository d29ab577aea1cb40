//! What lateness of one round means: nothing in the first, and the exact run once nothing moves any more.

use crate::fixture::{PLAIN, config, first_gradient, graph, losses, run, waiting};
use crate::methods::ARCHS;

/// Models of three layers, without norm.
fn deep(arch: &[&'static str]) -> Vec<&'static str> {
    [arch, &["model.layers=3", "model.norm=none"]].concat()
}

#[test]
fn the_first_round_knows_no_neighbours_of_other_workers() {
    let dataset = graph(150, 4);
    for arch in ARCHS {
        let keys = [&deep(arch)[..], &["schedule.cache_inputs=false"]].concat();
        let gradient = |more: &str| first_gradient(&[&keys[..], &[more]].concat(), &dataset, 3);
        let alone = gradient(r#"messages.selection={kind="none",degrees="global"}"#);
        // But for the order of sums: rows that others need are computed, though nobody has them yet.
        let pipelined = distance(&gradient("schedule.kind=pipelined"), &alone);
        assert!(pipelined < 1e-5, "{arch:?}: {pipelined:.1e}");
        let synchronous = distance(&gradient("schedule.kind=synchronous"), &alone);
        assert!(synchronous > 1e-2, "{arch:?}: {synchronous:.1e}");
    }
}

/// The gradient of round `round` of a run that has stood still until then.
fn still_gradient(keys: &[&str], round: u32) -> Vec<f64> {
    let (waiting, epochs) =
        (waiting(round - 1), [format!("train.epochs={}", round - 1), format!("train.epochs={round}")]);
    let waiting: Vec<&str> = waiting.iter().map(String::as_str).collect();
    let [before, after] = epochs.map(|epochs| {
        let keys = [&PLAIN, keys, &waiting, &[epochs.as_str()]].concat();
        run(&config(&keys), &graph(150, 4), 3).swap_remove(0).trained.last
    });
    before.iter().zip(&after).map(|(before, after)| f64::from(*before) - f64::from(*after)).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / norm(&mut b.iter().copied())
}

/// Rows settle layer by layer, one round each, then gradients on their way back: after 2·L rounds in which nothing
/// moves all is as in a synchronous run. Losses are the same to the last bit where products cross; where rows do,
/// `gcn` multiplies by the sender's degree before and not after. Of gradients the order of sums differs, f32's 6e-8 of
/// some hundred terms.
#[test]
fn a_run_that_stands_still_is_the_synchronous_one_from_round_2l_on() {
    let dataset = graph(150, 4);
    for arch in ARCHS {
        for (cached, carries) in [("true", "products"), ("true", "rows"), ("false", "products"), ("false", "rows")] {
            let (cached, carries) = (format!("schedule.cache_inputs={cached}"), format!("schedule.late={carries}"));
            let keys = [&deep(arch)[..], &[cached.as_str()]].concat();
            let still = [&PLAIN[..], &keys, &["train.lr=1e-30", "train.epochs=6"]].concat();
            let exact = losses(&still, &dataset, 3);
            let late = losses(&[&still[..], &["schedule.kind=pipelined", &carries]].concat(), &dataset, 3);
            assert_ne!(late[0], exact[0], "{keys:?}");
            let tolerance = if carries.ends_with("rows") { 1e-7 } else { 0.0 };
            let settled = late[3..].iter().zip(&exact[3..]).all(|(late, exact)| (late - exact).abs() <= tolerance);
            assert!(settled, "{keys:?}, {carries}: rows settle in as many rounds as layers: {late:?}, {exact:?}");
            let expected = still_gradient(&keys, 7);
            let pipelined = [&keys[..], &["schedule.kind=pipelined", &carries]].concat();
            let (early, settled) = (still_gradient(&pipelined, 2), still_gradient(&pipelined, 7));
            let (early, settled) = (distance(&early, &expected), distance(&settled, &expected));
            assert!(early > 1e-3 && settled < 1e-5, "{keys:?}: {early:.1e} early, {settled:.1e} settled");
        }
    }
}

/// A moving average of rows that stand still comes as near to them as its memory is short: what is missing falls by m a
/// round.
#[test]
fn smoothed_rows_that_stand_still_settle_as_fast_as_their_memory_fades() {
    let dataset = graph(150, 4);
    let keys = ["model.arch=gin", "model.norm=none", "train.lr=1e-30"];
    let keys = [&PLAIN[..], &keys, &["train.epochs=40"]].concat();
    let exact = losses(&keys, &dataset, 3)[0];
    let smooth = ["schedule.kind=pipelined", "schedule.smooth_features=0.5"];
    let errors: Vec<f64> =
        losses(&[&keys[..], &smooth].concat(), &dataset, 3).iter().map(|l| (l - exact).abs()).collect();
    // Ten rounds of memory one half are a factor of 1024; the loss is not linear, so half of the powers of two are
    // asked for.
    assert!(errors[1] > 1e-3 && errors[11] < errors[1] / 32.0 && errors[39] < 1e-5, "{errors:?}");
}

/// On one worker nothing is late.
#[test]
fn pipelining_on_one_worker_changes_nothing() {
    for arch in ARCHS {
        let last =
            |more: &str| run(&config(&[arch, &[more][..]].concat()), &graph(80, 3), 1).swap_remove(0).trained.last;
        assert!(last("schedule.kind=pipelined") == last("schedule.kind=synchronous"), "{arch:?}");
    }
}
