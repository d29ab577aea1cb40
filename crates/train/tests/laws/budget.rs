//! A byte budget is kept by what all workers send together, used well, and refused before anything runs where it cannot
//! be kept.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laconic_graph::dataset::Dataset;
use laconic_train::TrainError;
use laconic_train::config::{CodecChoice, Config};
use laconic_train::fit::observe::RoundReport;
use laconic_train::forecast::budget::candidates;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::record::observer::Observer;
use laconic_train::run::{Options, Outcome};
use laconic_wire::Ledger;

use crate::fixture::{config, folder, graph, parts, run, try_run};
use crate::ledger_is_prediction::assert_predicted;
use crate::methods::{ARCHS, SCHEDULES, go_together};
use crate::same_bits::{assert_resumes, bits, resume, stop_after, straight};

fn with_budget(keys: &[&str], bytes: u64) -> Config {
    config(&[keys, &[format!("messages.budget=\"{bytes} B\"").as_str()]].concat())
}

/// What every rung would send, from predictions of single runs; the frames that the budget itself costs are in all of
/// them.
fn rungs(keys: &[&str], dataset: &Dataset) -> Vec<u64> {
    let base = with_budget(keys, 1 << 50);
    let total = |config: Config| {
        let workers = forecast(&Members::default(), &config, &parts(&config, dataset, 3), Ledger::of_totals)
            .expect("a forecast")
            .workers;
        workers.iter().map(|(_, ledger, _)| ledger.total().framed).sum()
    };
    // A candidate has no codec left at exact but on the top rung, so its own budget of 10^15 bytes chooses nothing
    // else.
    let on = |messages| total(exact_where_named(Config { messages, ..base.clone() }));
    candidates(&base).into_iter().map(on).collect()
}

/// Names `exact` in full, so that the ladder leaves it alone.
fn exact_where_named(mut config: Config) -> Config {
    let named = |choice: &mut laconic_train::config::CodecChoice| {
        *choice = laconic_train::config::CodecChoice::Table(Box::new(choice.config()));
    };
    let messages = &mut config.messages;
    [&mut messages.forward, &mut messages.backward, &mut messages.evaluation, &mut messages.parameters]
        .into_iter()
        .for_each(named);
    config
}

fn sent(outcomes: &[Outcome]) -> u64 {
    outcomes.iter().map(|outcome| outcome.sent.total().framed).sum()
}

/// Every budget from the least that is possible to more than is needed is kept, and by the best rung that keeps it.
#[test]
fn a_budget_is_kept_and_the_best_rung_within_it_is_taken() {
    let dataset = graph(150, 4);
    for (s, schedule) in SCHEDULES.iter().enumerate() {
        let keys = [schedule, ARCHS[s % ARCHS.len()], &["train.epochs=10", "train.eval_every=5"]].concat();
        let rungs = rungs(&keys, &dataset);
        let (least, most) = (rungs[0].min(rungs[1]), *rungs.last().expect("rungs"));
        for eighth in 0..=9 {
            let budget = least + (most - least) * eighth / 8;
            let best = rungs.iter().copied().rfind(|bytes| *bytes <= budget).expect("a rung");
            let used = sent(&run(&with_budget(&keys, budget), &dataset, 3));
            assert_eq!(used, best, "{keys:?} with {budget} bytes of {rungs:?}");
        }
    }
}

/// Ramps between two widths leave little over: a fifth at most from 2 to 8 bits in a long synchronous run. Above 8 bits
/// the next steps are 16 and 32, so that up to half may be left over there.
#[test]
fn between_two_widths_most_of_a_budget_is_used() {
    let dataset = graph(400, 4);
    let keys = ["model.hidden=64", "model.layers=3", "train.epochs=64", "train.eval_every=0", "model.arch=gin"];
    let rungs = rungs(&keys, &dataset);
    // Six masks, then 1, 2 and 4 bits with seven ramps behind each, then 8 bits.
    let (two, eight) = (rungs[14], rungs[30]);
    for sixteenth in 1..=16 {
        let budget = two + (eight - two) * sixteenth / 16;
        let used = sent(&run(&with_budget(&keys, budget), &dataset, 3));
        assert!(used <= budget && used as f64 >= 0.8 * budget as f64, "{used} of {budget} bytes; rungs {rungs:?}");
    }
}

/// A ramp over bytes that leaves its limit to the budget opens as far as the budget allows, never beyond, and what it
/// leaves alone stays exact.
#[test]
fn a_ramp_over_bytes_uses_its_budget_and_keeps_it() {
    let dataset = graph(300, 4);
    let mask = |direction| format!(r#"messages.{direction}={{codec="masked",ratio={{clock="bytes",from=8}}}}"#);
    let (forward, backward) = (mask("forward"), mask("backward"));
    let base = ["model.layers=3", "model.hidden=64", "train.epochs=40", "train.eval_every=10"];
    let exact = sent(&run(&config(&base), &dataset, 3));
    let keys = [&base[..], &[&forward, &backward]].concat();
    for share in [0.67, 0.75, 0.85] {
        let budget = (exact as f64 * share) as u64;
        let outcomes = run(&with_budget(&keys, budget), &dataset, 3);
        let used = sent(&outcomes);
        assert!(used <= budget && used as f64 > 0.8 * budget as f64, "{used} of {budget} bytes, {exact} exact");
        let chosen = &outcomes[0].plan.config.messages;
        assert_eq!((&chosen.evaluation, &chosen.parameters), (&CodecChoice::exact(), &CodecChoice::exact()));
        let rows = |round: u32| {
            let of_round = |(entry, _): &(laconic_wire::Entry, laconic_wire::Count)| {
                entry.round == round && entry.kind == laconic_wire::Kind::ActivationGradients
            };
            outcomes[0].sent.iter().filter(of_round).map(|(_, count)| count.payload).sum::<u64>()
        };
        assert!(rows(40) > 3 * rows(1), "the ramp opens: {} and {} bytes", rows(1), rows(40));
    }
    for tenths in [3, 4, 5] {
        let budget = exact * tenths / 10;
        let used = sent(&run(&with_budget(&keys, budget), &dataset, 3));
        assert!(used <= budget && used > 2 * budget / 3, "{used} of {budget} bytes, {exact} exact");
    }
    let tight = format!("messages.budget=\"{} B\"", exact * 3 / 4);
    assert_predicted(&dataset, &[&keys[..], &[tight.as_str()]].concat(), 3);
}

/// Before every round the clock of bytes shows what all workers have sent by then, from the first frame of start-up on:
/// parameters, evaluations and control frames as well.
#[test]
fn the_clock_of_bytes_shows_what_the_ledger_says_by_then() {
    let dataset = graph(150, 4);
    let ramp = r#"messages.forward={codec="quantised",reveal=false,bits={clock="bytes",from=1,to=16,limit=400000}}"#;
    let often = ["train.epochs=6", "train.eval_every=2", "out.checkpoint_every=0", "model.layers=3"];
    for schedule in SCHEDULES {
        for more in ["train.sync_every=1", "train.sync_every=2", "messages.budget=1 GB"] {
            let keys = [schedule, &often, &[ramp, more]].concat();
            if !go_together(&keys) {
                continue;
            }
            let outcomes = run(&config(&keys), &dataset, 3);
            let plan = &outcomes[0].plan;
            let mut rounds_before = 0;
            for (number, stage) in plan.stages.iter().enumerate() {
                for done in 0..stage.rounds {
                    let by_then = |outcome: &Outcome| {
                        let entries = outcome.sent.iter().filter(|(entry, _)| entry.round <= rounds_before + done);
                        entries.map(|(_, count)| count.framed).sum::<u64>()
                    };
                    let sent: u64 = outcomes.iter().map(by_then).sum();
                    let shown = plan.bytes_before(number)[done as usize];
                    assert_eq!(shown, sent as f64, "{keys:?}: stage {number}, after {done} rounds");
                }
                rounds_before += stage.rounds;
            }
        }
    }
}

/// Says whether anything was trained.
struct Trained(Arc<AtomicBool>);

impl Observer for Trained {
    fn predicted(&mut self, _: &laconic_wire::PerKind<u64>, _: u64, _: u32) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn round(&mut self, _: &RoundReport) -> ControlFlow<()> {
        self.0.store(true, Ordering::Relaxed);
        ControlFlow::Continue(())
    }
}

#[test]
fn an_impossible_budget_is_refused_before_anything_runs_and_says_what_is_needed() {
    let dataset = graph(150, 4);
    for schedule in SCHEDULES {
        let began = Arc::new(AtomicBool::new(false));
        let options = Options { observer: Box::new(Trained(began.clone())), ..Options::default() };
        let error = try_run(&with_budget(schedule, 1000), &dataset, 3, options).err().expect("too little").to_string();
        assert!(!began.load(Ordering::Relaxed), "{schedule:?} began");
        let needed = error.split("need ").nth(1).and_then(|rest| rest.split(':').next()).expect("a number of bytes");
        let needed: u64 = needed.parse().unwrap_or_else(|_| panic!("a number of bytes in {error:?}"));
        assert!(sent(&run(&with_budget(schedule, needed), &dataset, 3)) <= needed, "{schedule:?}: as much is enough");
        let refused = try_run(&with_budget(schedule, needed - 1), &dataset, 3, Options::default());
        assert!(refused.is_err(), "{schedule:?}: a byte less is not");
    }
}

/// One worker sends nothing and so keeps any budget with everything exact.
#[test]
fn one_worker_needs_no_budget() {
    let dataset = graph(80, 3);
    let last = |config: &Config| run(config, &dataset, 1).swap_remove(0).trained.last;
    assert!(last(&with_budget(&["model.arch=gcn"], 1)) == last(&config(&["model.arch=gcn"])));
}

#[test]
fn a_run_within_a_budget_sends_what_was_predicted() {
    let dataset = graph(150, 4);
    for schedule in SCHEDULES {
        let rungs = rungs(schedule, &dataset);
        for share in [0.3, 0.7] {
            let (least, most) = (rungs[1] as f64, *rungs.last().expect("rungs") as f64);
            let budget = format!("messages.budget=\"{} B\"", (least + share * (most - least)) as u64);
            assert_predicted(&dataset, &[schedule, &[budget.as_str()][..]].concat(), 3);
        }
    }
}

/// Coders that the user names are not the ladder's to change.
#[test]
fn codecs_that_are_named_stay() {
    let dataset = graph(150, 4);
    let keys = ["messages.forward=half", "schedule.cache_inputs=false"];
    let budget = format!("messages.budget=\"{} B\"", rungs(&keys, &dataset)[20]);
    let keys = [&keys[..], &[budget.as_str()]].concat();
    let summary = run(&config(&keys), &dataset, 3)[0].summary.clone().expect("worker 0 sums up");
    let chosen = summary.messages.expect("the ladder was climbed");
    assert_eq!(chosen.forward, config(&keys).messages.forward);
    assert!(chosen.backward != config(&keys).messages.backward, "{chosen:?}");
}

/// With room for starting again a resumed run ends as the straight one would have, within the budget; without, it is
/// refused.
#[test]
fn a_resumed_run_stays_within_its_budget_or_is_refused() {
    let dataset = graph(150, 4);
    let keys = ["model.arch=gin", "train.epochs=8", "train.eval_every=1"];
    let rungs = rungs(&keys, &dataset);
    let exact = *rungs.last().expect("rungs");
    let tight = *rungs.iter().rfind(|bytes| **bytes < exact).expect("a rung below the exact one");
    for (budget, fits) in [(exact - 1, true), (tight, false)] {
        let budget_key = format!("messages.budget=\"{budget} B\"");
        let keys = [&keys[..], &[budget_key.as_str()]].concat();
        let straight = straight(&dataset, &keys);
        for round in [1, 4, 7] {
            let folder = folder();
            let out = folder.path().join("run");
            try_run(&config(&keys), &dataset, 3, stop_after(round, &out)).expect("a run");
            if fits {
                assert_resumes(&straight, &dataset, &keys, &out, &format!("{budget} bytes, stopped after {round}"));
                let text = std::fs::read_to_string(out.join("summary.json")).expect("a summary");
                let summary: laconic_train::record::summary::Summary = serde_json::from_str(&text).expect("a summary");
                assert!(summary.bytes.total <= budget, "{} of {budget} bytes", summary.bytes.total);
            } else {
                let error = try_run(&config(&keys), &dataset, 3, resume(&out)).err().expect("too little is left");
                let says = matches!(&error, TrainError::Config(what) if what.contains("messages.budget"));
                assert!(says, "{error}");
                // The error says what would do, and that is enough to the byte.
                let text = error.to_string();
                let needed = text.split("--set messages.budget=\"").nth(1).and_then(|rest| rest.split(" B\"").next());
                let needed: u64 = needed.and_then(|number| number.parse().ok()).expect("a number of bytes");
                let with = |bytes: u64| {
                    let changes = vec!["messages.budget".to_owned()];
                    let options = Options { changes, ..resume(&out) };
                    let budget_key = format!("messages.budget=\"{bytes} B\"");
                    try_run(&config(&[&keys[..], &[budget_key.as_str()]].concat()), &dataset, 3, options)
                };
                assert!(with(needed - 1).is_err(), "{text}");
                let outcomes = with(needed).unwrap_or_else(|error| panic!("{text}: {error}"));
                // The messages stay those of before, and so do all bits.
                assert!(bits(&outcomes) == straight.bits, "{needed} bytes after {round}");
                assert_eq!(outcomes[0].summary.as_ref().expect("a summary").bytes.total, needed);
            }
        }
    }
}
