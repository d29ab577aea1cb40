//! A trainer that lives in the aggregator's process (`schedule.aggregator`): the same run, of which less crosses.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::Duration;

use laconic_train::TrainError;
use laconic_train::config::Config;
use laconic_train::fit::observe::RoundReport;
use laconic_train::record::observer::Observer;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads};
use laconic_wire::{Kind, Ledger, Rank};

use crate::averaging::{CODED, KINDS, averaging, dataset, dealt, run, run_on, simulated, trainers};
use crate::fixture::{folder, graph, into_folder};
use crate::same_bits::{bits, log};

/// The key that lets the trainer of a part live with the aggregator.
fn hosted(part: u32) -> String {
    format!("schedule.aggregator={part}")
}

/// A run of three trainers, and what it wrote down of each mean that depends neither on what crossed nor on how long
/// it took.
fn means(config: &Config, keys: &[&str]) -> (Vec<Outcome>, Vec<String>) {
    let out = folder();
    let options = Options { keep_accounts: true, ..into_folder(out.path()) };
    let source = Source::of(dealt(&dataset(keys), 3));
    let outcomes = run_threads(config, source, options).unwrap_or_else(|error| panic!("{keys:?}: {error}"));
    let line = |of: &RoundReport| format!("{} {:?} {:?} {:?}", of.round, of.loss.to_bits(), of.scores, of.members);
    let lines = log(out.path()).iter().map(line).collect();
    (outcomes, lines)
}

#[test]
fn who_lives_with_the_aggregator_changes_no_bit_and_no_line_of_the_log() {
    for (index, keys) in KINDS.iter().chain(CODED).enumerate() {
        let own = means(&simulated(keys), keys);
        let hosted = hosted(index as u32 % 3);
        let keys = &[keys, &[hosted.as_str()][..]].concat();
        for config in [simulated(keys), trainers(keys)] {
            let shared = means(&config, keys);
            assert_eq!(bits(&shared.0), bits(&own.0), "{keys:?}");
            assert_eq!(shared.1, own.1, "{keys:?}");
        }
    }
}

#[test]
fn what_crosses_is_what_was_predicted_account_by_account_and_nothing_between_the_two() {
    for (index, keys) in KINDS.iter().chain(CODED).enumerate() {
        let place = index as u32 % 3;
        let hosted = hosted(place);
        let all = [keys, &[hosted.as_str()][..]].concat();
        let own = run(&simulated(keys), &dataset(keys), 3);
        for config in [simulated(&all), trainers(&all)] {
            let outcomes = run(&config, &dataset(keys), 3);
            for (outcome, own) in outcomes.iter().zip(&own) {
                let differences = outcome.predicted.difference(&outcome.sent);
                let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
                assert!(differences.is_empty(), "{all:?}: rank {}: {differences:?}", outcome.rank);
                // The other accounts are those of a run whose aggregator has a process of its own.
                let two = [0, place + 1];
                let crosses = |ledger: &Ledger| -> Vec<_> {
                    let stays = |peer: Rank| two.contains(&outcome.rank) && two.contains(&peer.0);
                    ledger.iter().filter(|(entry, _)| !stays(entry.peer)).collect()
                };
                for (ledger, of_own) in [(&outcome.sent, &own.sent), (&outcome.received, &own.received)] {
                    assert_eq!(ledger.iter().collect::<Vec<_>>(), crosses(of_own), "{all:?}: rank {}", outcome.rank);
                }
            }
            let bytes = &outcomes[0].summary.as_ref().unwrap().bytes;
            assert!(
                !bytes.is_bound && Some(bytes.total) == bytes.predicted && bytes.received == bytes.total,
                "{all:?}"
            );
            assert_eq!(averaging(&outcomes).hosted_part, Some(place), "{all:?}");
            assert!(averaging(&outcomes).trainers.iter().all(|trainer| trainer.means == averaging(&outcomes).means));
        }
    }
}

#[test]
fn rows_that_trainers_tell_each_other_cross_also_from_and_to_who_lives_with_the_aggregator() {
    let dataset = graph(150, 3);
    let keys = ["schedule.halo=stale", "schedule.refresh=2"];
    let own = run(&simulated(&keys), &dataset, 3);
    let all = [&keys[..], &["schedule.aggregator=1"]].concat();
    let [played, really] = [simulated(&all), trainers(&all)].map(|config| run(&config, &dataset, 3));
    assert_eq!(bits(&played), bits(&own));
    for outcomes in [&played, &really] {
        for (outcome, own) in outcomes.iter().zip(&own) {
            let differences = outcome.predicted.difference(&outcome.sent);
            let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
            assert!(differences.is_empty(), "rank {}: {differences:?}", outcome.rank);
            let rows = |ledger: &Ledger| ledger.totals_by_kind()[Kind::Activations].payload;
            assert_eq!((rows(&outcome.sent), rows(&outcome.sent) > 0), (rows(&own.sent), outcome.rank > 0));
        }
        let [to_aggregator, of_aggregator] =
            [(2, 0), (0, 2)].map(|(from, to)| outcomes[from].sent.totals_by_peer().get(&Rank(to)).copied());
        assert_eq!([to_aggregator, of_aggregator], [None, None]);
    }
}

/// What models take, up and down, counted by hand: 4 bytes a value, each mean of every trainer that is elsewhere, and
/// each but the last back to it.
#[test]
fn a_mean_takes_the_models_of_the_others() {
    for (count, keys) in [(1u32, &[][..]), (2, &["schedule.kind=psgd_pa"]), (4, &["schedule.kind=llcg"])] {
        for kind in ["transport.kind=simulated", "transport.kind=threads"] {
            let keys = [keys, &[kind, "schedule.aggregator=0"]].concat();
            let outcomes = run(&trainers(&keys), &graph(150, 3), count);
            let model = 4 * outcomes[0].trained.last.len() as u64;
            let payload = |outcome: &Outcome| outcome.sent.totals_by_kind()[Kind::Parameters].payload;
            let elsewhere = u64::from(count) - 1;
            // Twelve steps, a mean every three. One frame more says of a model how many steps it is from, 16 bytes.
            let up: u64 = outcomes[1..].iter().map(payload).sum();
            assert_eq!((up, payload(&outcomes[0])), (4 * elsewhere * model, 3 * elsewhere * model), "{keys:?}");
            assert_eq!(payload(&outcomes[1]), 0, "{keys:?}: it lives with the aggregator");
        }
    }
}

#[test]
fn a_slow_link_keeps_everybody_waiting_but_who_lives_with_the_aggregator() {
    let dataset = graph(60, 3);
    let seconds = |keys: &[&str]| {
        let slow = ["transport.shape=1gbit,2000ms", "transport.speeds=[1.0]"];
        let outcomes = run(&simulated(&[&slow[..], keys].concat()), &dataset, 1);
        outcomes[0].summary.as_ref().unwrap().seconds.simulated.unwrap()
    };
    // A step a second, twelve of them.
    assert_eq!(seconds(&["schedule.aggregator=0"]), 12.0);
    // Once it has come, it is let go, gives four models and gets a mean for three of them, is told the end and takes
    // its leave: two seconds each.
    let own = seconds(&[]);
    assert!((32.0..32.1).contains(&own), "{own}");
}

#[test]
fn a_dropped_part_shifts_the_place_of_who_lives_with_the_aggregator() {
    for kind in ["transport.kind=simulated", "transport.kind=threads"] {
        let all = [kind, "averaging.drop=[0]", "schedule.aggregator=2", "schedule.halo=frozen"];
        let outcomes = run(&trainers(&all), &graph(150, 3), 3);
        assert_eq!(averaging(&outcomes).hosted_part, Some(2));
        let to = |rank: usize| outcomes[rank].sent.totals_by_peer().keys().map(|peer| peer.0).collect::<Vec<u32>>();
        assert_eq!([to(0), to(1), to(2)], [vec![1], vec![0, 2], vec![1]], "{kind}: rows still cross");
    }
}

#[test]
fn who_lives_with_the_aggregator_may_be_stalled_and_is_lost_with_it() {
    let dataset = graph(150, 3);
    let all = ["schedule.aggregator=1", "schedule.interval=2 steps", "schedule.quorum=2", "schedule.grace=3 s"];
    let faults = |list: &str| format!("transport.faults=[{{ at = \"3.5 s\", {list} }}]");
    let stalled = faults("who = 1, kind = \"stalled\", back = \"60 s\"");
    let outcomes = run(&simulated(&[&all[..], &[&stalled]].concat()), &dataset, 3);
    let notes = &averaging(&outcomes).notes;
    assert!(notes.iter().any(|note| note.contains("trainer 1 had not answered")), "{notes:?}");
    for kind in ["killed", "switched_off"] {
        let alone = faults(&format!("who = 1, kind = \"{kind}\", back = \"1 s\""));
        let error = refusal(&[&all[..], &["schedule.kind=averaging", "transport.kind=simulated", &alone]].concat());
        assert!(error.contains("transport.faults") && error.contains("schedule.aggregator"), "{error}");
        let back = faults(&format!("who = \"aggregator\", kind = \"{kind}\", back = \"1 s\""));
        let error = refusal(&[&all[..], &["schedule.kind=averaging", "transport.kind=simulated", &back]].concat());
        assert!(error.contains("transport.faults") && error.contains("back"), "{error}");
        let out = folder();
        let both = faults(&format!("who = \"aggregator\", kind = \"{kind}\""));
        let lost = simulated(&[&all[..], &[&both]].concat());
        let error = run_threads(&lost, Source::of(dealt(&dataset, 3)), into_folder(out.path()));
        let Err(TrainError::AggregatorLost { means: 1 }) = error.map(|_| ()) else { panic!("its aggregator was lost") };
        let options = Options { resume: true, ..into_folder(out.path()) };
        let outcomes = run_threads(&simulated(&all), Source::of(dealt(&dataset, 3)), options).unwrap();
        assert_eq!((averaging(&outcomes).ending.as_str(), averaging(&outcomes).means), ("limit", 6));
        assert!(averaging(&outcomes).trainers.iter().all(|trainer| trainer.means == 6));
    }
}

#[test]
fn a_run_goes_on_with_its_aggregator_elsewhere_only_where_that_is_asked_for() {
    let dataset = graph(90, 3);
    let out = folder();
    let short = simulated(&["schedule.aggregator=0", "schedule.limit=6 steps"]);
    let first = run_threads(&short, Source::of(dealt(&dataset, 3)), into_folder(out.path())).unwrap();
    let longer = simulated(&["schedule.aggregator=own"]);
    let resumed = |changes: &[&str]| {
        let changes = changes.iter().map(|key| key.to_string()).collect();
        let options = Options { resume: true, changes, ..into_folder(out.path()) };
        run_threads(&longer, Source::of(dealt(&dataset, 3)), options)
    };
    let error = resumed(&["schedule.limit"]).map(|_| ()).expect_err("it is another run").to_string();
    assert!(error.contains("schedule.aggregator"), "{error}");
    let second = resumed(&["schedule.limit", "schedule.aggregator"]).unwrap();
    assert_eq!((averaging(&second).means, averaging(&second).hosted_part), (4, None));
    let models = |outcomes: &[Outcome]| outcomes[1].sent.totals_by_kind()[Kind::Parameters].payload;
    let model = 4 * first[0].trained.last.len() as u64;
    assert_eq!([models(&first), models(&second)], [0, 2 * model], "nothing of the first two means, all of the others");
}

#[test]
fn a_part_that_has_no_trainer_is_refused_with_the_key() {
    for (keys, why) in [
        (&["schedule.aggregator=7"][..], "there are parts 0 to 2"),
        (&["schedule.aggregator=1", "averaging.drop=[1]"], "averaging.drop"),
        (&["schedule.aggregator=-1"], "the number of a part"),
        (&["schedule.aggregator=part"], "the number of a part"),
    ] {
        for kind in ["transport.kind=simulated", "transport.kind=threads"] {
            let error = refusal(&[keys, &["schedule.kind=averaging", kind]].concat());
            assert!(error.contains("schedule.aggregator") && error.contains(why), "{keys:?}: {error}");
        }
    }
    let mut parts = dealt(&graph(60, 3), 3);
    parts[1].roles.fill(0);
    let error = run_threads(&simulated(&["schedule.aggregator=1"]), Source::of(parts.clone()), Options::default());
    let error = error.map(|_| ()).expect_err("it has no trainer").to_string();
    assert!(error.contains("schedule.aggregator = 1") && error.contains("to learn from"), "{error}");
    let outcomes = run_on(&simulated(&["schedule.aggregator=2"]), parts);
    assert_eq!(outcomes[2].sent.totals_by_peer().len(), 0, "part 2 has the second trainer");
    let error = refusal(&["schedule.kind=lazy", "schedule.aggregator=0"]);
    assert!(error.contains("schedule.aggregator") && error.contains("averaging"), "{error}");
}

/// What a run of these keys on three parts is refused with.
fn refusal(keys: &[&str]) -> String {
    let set: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
    let source = || Source::of(dealt(&graph(60, 3), 3));
    let run = |config: Config| run_threads(&config, source(), Options::default()).map(|_| ());
    let refused = Config::parse("model = { hidden = 16 }", &set).and_then(run);
    refused.err().unwrap_or_else(|| panic!("{keys:?} is not refused")).to_string()
}

/// Stops the run once so many means have been taken.
pub struct Until(pub u32);

impl Observer for Until {
    fn round(&mut self, report: &RoundReport) -> ControlFlow<()> {
        if report.round >= self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// In either of two stages, wherever the aggregator lives: nobody waits for a stage that does not come.
#[test]
fn a_run_that_the_user_ends_has_dismissed_its_trainers_and_goes_on_when_asked_to() {
    let endless = ["schedule.interval=2 steps", "schedule.limit=100000 steps", "schedule.halo=frozen"];
    for (means, kind) in [(0, "threads"), (2, "threads"), (0, "simulated"), (2, "simulated")] {
        for hosted in [&[][..], &["schedule.aggregator=1"]] {
            let kind = format!("transport.kind={kind}");
            let keys = [&endless[..], hosted, &[kind.as_str()]].concat();
            let (config, out) = (trainers(&keys), folder());
            // By the caller's flag before the first mean, and else by the observer.
            let interrupt = Arc::new(AtomicBool::new(means == 0));
            let options = Options { interrupt, observer: Box::new(Until(means)), ..into_folder(out.path()) };
            let (tell, told) = channel();
            std::thread::spawn(move || {
                let outcomes = run_threads(&config, Source::of(dealt(&graph(150, 3), 3)), options);
                let _ = tell.send(outcomes);
            });
            let outcomes = told.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{keys:?}: it hangs"));
            let outcomes = outcomes.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
            assert!(outcomes[0].trained.interrupted && averaging(&outcomes).ending == "stopped", "{keys:?}");
            let short = [&keys[..], &["schedule.limit=60 steps"]].concat();
            let changes = vec!["schedule.limit".to_owned()];
            let options = Options { resume: true, changes, ..into_folder(out.path()) };
            let outcomes = run_threads(&trainers(&short), Source::of(dealt(&graph(150, 3), 3)), options);
            let outcomes = outcomes.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
            assert_eq!(averaging(&outcomes).ending, "limit", "{keys:?}");
            assert_eq!(outcomes[0].trained.chosen.len(), 2, "{keys:?}");
            let bytes = &outcomes[0].summary.as_ref().unwrap().bytes;
            assert_eq!((bytes.predicted, bytes.is_bound), (Some(bytes.total), false), "{keys:?}");
        }
    }
}
