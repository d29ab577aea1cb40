//! What frames hold is known before a run and told by every frame, and nothing passes a door that is closed to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use laconic_graph::dataset::Dataset;
use laconic_train::TrainError;
use laconic_train::config::Config;
use laconic_train::error::Result;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads, run_worker};
use laconic_wire::transport::End;
use laconic_wire::{Content, Count, Frame, FramePurpose, Ledger, Rank, Tag, Transport, threads};

use crate::fixture::{config, graph, multi_label, parts};

/// What has crossed: from, to, what it held and what for.
type Crossed = BTreeMap<(Rank, Rank, Content, FramePurpose), Count>;

/// A worker's end of the network that writes down what it is given to send.
struct Written {
    inner: Box<dyn Transport>,
    crossed: Arc<Mutex<Crossed>>,
}

impl Transport for Written {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> laconic_wire::Result<()> {
        let Tag { content, purpose, .. } = frame.tag();
        let count = Count::of(1, frame.payload().len() as u64);
        *self.crossed.lock().unwrap().entry((self.rank(), to, content, purpose)).or_default() += count;
        self.inner.send(to, frame)
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> laconic_wire::Result<Frame> {
        self.inner.recv(from, tag)
    }

    fn poll(&mut self, from: Rank) -> laconic_wire::Result<Option<Frame>> {
        self.inner.poll(from)
    }

    fn finish(&mut self) -> laconic_wire::Result<()> {
        self.inner.finish()
    }
}

/// Three workers, each with its own configuration: what each ends with, and what has crossed.
fn run(configs: [&Config; 3], dataset: &Dataset) -> (Vec<Result<Outcome>>, Crossed) {
    let crossed = Arc::new(Mutex::new(Crossed::new()));
    let ended = std::thread::scope(|scope| {
        let one = |(rank, end): (usize, _)| {
            let end = Box::new(Written { inner: Box::new(end), crossed: crossed.clone() });
            let config = configs[rank];
            let source = Source::of(parts(config, dataset, 3));
            scope.spawn(move || run_worker(config, end, source, Options::default()))
        };
        let all: Vec<_> = threads(3, configs[0].deadline()).into_iter().enumerate().map(one).collect();
        all.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    });
    let crossed = crossed.lock().unwrap().clone();
    (ended, crossed)
}

/// What agreements are for nobody denies, and the forecast does not say.
fn deniable(crossed: Crossed) -> Crossed {
    let mut sums = Crossed::new();
    for ((from, to, content, purpose), count) in crossed {
        let purpose = if content == Content::Agreement { FramePurpose::Training } else { purpose };
        *sums.entry((from, to, content, purpose)).or_default() += count;
    }
    sums
}

const CLASSES: [&[&str]; 14] = [
    &["model.layers=3", "train.class_weights=balanced", "out.checkpoint_every=1"],
    &["model.arch=gat", "train.sync_every=2"],
    &["schedule.kind=pipelined", "model.norm=batch"],
    &["schedule.kind=lazy"],
    &["schedule.kind=lazy", "schedule.start=mlp"],
    &["schedule.kind=lazy", "schedule.hand_on={ columns = 3 }", "model.hidden=8"],
    &["schedule.cache_inputs=false", "messages.forward=half"],
    &["messages.forward={ codec = \"quantised\", bits = \"adaptive\", period = 2 }"],
    &["schedule.kind=lazy", "messages.forward={ codec = \"masked\", ratio = 2 }"],
    &["batch.size=20"],
    &["data.inductive=true"],
    &["schedule.kind=label_propagation", "policy.allow=[\"labels\"]"],
    &["schedule.kind=correct_and_smooth", "policy.allow=[\"labels\"]"],
    &["schedule.kind=ridge", "model.arch=mlp"],
];

const LINKS: [&[&str]; 4] = [
    &[],
    &["task.filter_negatives=true", "train.metrics=[\"hits@10\"]"],
    &["train.metrics=[\"roc_auc\", \"hits@10\", \"mrr\"]"],
    &["train.metrics=[\"roc_auc_exact\"]"],
];

#[test]
fn every_frame_says_what_it_holds_as_the_forecast_does() {
    let sets = |dataset: &Dataset, keys: &[&str]| {
        let config = config(&[&["train.epochs=3"][..], keys].concat());
        let (ended, crossed) = run([&config; 3], dataset);
        ended.into_iter().for_each(|outcome| drop(outcome.expect("a run")));
        let foreseen = forecast(&Members::default(), &config, &parts(&config, dataset, 3), Ledger::new).unwrap();
        let mut predicted = Crossed::new();
        for ((shapes, ..), leaves) in foreseen.workers.iter().zip(&foreseen.leaves) {
            for leaving in leaves {
                let what = leaving.item.what;
                let place = (Rank(shapes.rank), leaving.to, what.content(), what.purpose());
                *predicted.entry(place).or_default() += leaving.count;
            }
        }
        let (measured, predicted) = (deniable(crossed), deniable(predicted));
        if foreseen.is_bound {
            // Whom rows go to follows from what is drawn: the bound is on all that a worker sends.
            let to_all = |of: &Crossed| {
                let mut sums = BTreeMap::<(Rank, Content, FramePurpose), Count>::new();
                of.iter()
                    .for_each(|(&(from, _, what, of), &count)| *sums.entry((from, what, of)).or_default() += count);
                sums
            };
            let predicted = to_all(&predicted);
            for (place, count) in to_all(&measured) {
                let most = predicted.get(&place).copied().unwrap_or_default();
                assert!(count.framed <= most.framed, "{keys:?}: {place:?}: {count:?} of at most {most:?}");
            }
        } else {
            assert_eq!(measured, predicted, "{keys:?}");
        }
    };
    CLASSES.iter().for_each(|keys| sets(&graph(60, 3), keys));
    sets(&multi_label(60, 3), &["train.metrics=[\"roc_auc\"]"]);
    sets(&multi_label(60, 3), &["train.metrics=[\"roc_auc_exact\"]"]);
    LINKS.iter().for_each(|keys| sets(&graph(60, 3), &[&["task.kind=link_prediction"][..], keys].concat()));
}

/// Every worker's error is that something was kept back; that of the content and purpose that is returned.
fn refused(ended: Vec<Result<Outcome>>) -> (Rank, Content, FramePurpose) {
    let all: Vec<_> = ended
        .into_iter()
        .map(|result| match result {
            Err(error @ TrainError::Denied(laconic_wire::WireError::Denied { from, tag, .. })) => {
                assert_eq!(error.exit_code(), 7);
                (from, tag.content, tag.purpose)
            }
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("nothing was refused"),
        })
        .collect();
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    all[0]
}

#[test]
fn whatever_one_worker_denies_never_leaves_it_and_all_workers_name_it() {
    let dataset = graph(60, 3);
    for keys in [&["schedule.kind=lazy"][..], &["model.layers=3"], &["batch.size=20"], &["task.kind=link_prediction"]] {
        let keys = [&["train.epochs=3"][..], keys].concat();
        let open = config(&keys);
        let (_, crossed) = run([&open; 3], &dataset);
        let all: std::collections::BTreeSet<_> =
            crossed.keys().map(|&(_, _, content, purpose)| (content, purpose)).collect();
        let deniable = all.into_iter().filter(|(content, _)| *content != Content::Agreement);
        for (content, purpose) in deniable {
            let deny = format!("policy.deny=[\"{}:{}\"]", content.name(), purpose.name());
            let closed = config(&[&keys[..], &[&deny]].concat());
            let (ended, crossed) = run([&open, &closed, &open], &dataset);
            assert_eq!(refused(ended), (Rank(1), content, purpose), "{keys:?}, {deny}");
            let left =
                crossed.keys().filter(|&&(from, _, of, what_for)| (from, of, what_for) == (Rank(1), content, purpose));
            assert_eq!(left.count(), 0, "{keys:?}, {deny}");
        }
    }
}

#[test]
fn a_run_that_sends_nothing_of_what_is_denied_is_not_disturbed() {
    let dataset = graph(60, 3);
    for (keys, denied) in [
        (&["schedule.kind=lazy", "schedule.start=mlp"][..], "\"features\", \"labels\""),
        (&["model.layers=2"], "\"labels\", \"edges\", \"models\""),
        (&["messages.evaluation=none", "messages.evaluation_inputs=training"], "\"rows:evaluation\""),
    ] {
        let keys = [&["train.epochs=3"][..], keys].concat();
        let (open, deny) = (config(&keys), format!("policy.deny=[{denied}]"));
        let closed = config(&[&keys[..], &[&deny]].concat());
        let bytes = |config: &Config| {
            let (ended, crossed) = run([config; 3], &dataset);
            ended.into_iter().for_each(|outcome| drop(outcome.expect(&deny)));
            crossed
        };
        assert_eq!(bytes(&open), bytes(&closed), "{deny}");
    }
}

#[test]
fn independent_trainers_pass_the_door_too() {
    let dataset = graph(60, 3);
    for (keys, denied) in [
        (&["transport.kind=threads"][..], "models"),
        (&["transport.kind=simulated"], "models"),
        (&["transport.kind=threads", "schedule.halo=frozen"], "features"),
        (&["transport.kind=simulated", "schedule.halo=frozen"], "ids"),
    ] {
        let deny = format!("policy.deny=[\"{denied}\"]");
        let trainers = ["schedule.kind=averaging", "schedule.interval=2 steps", "schedule.limit=6 steps", &deny];
        let config = config(&[&trainers[..], keys].concat());
        let error =
            run_threads(&config, Source::of(parts(&config, &dataset, 3)), Options::default()).err().expect(&deny);
        assert_eq!(error.exit_code(), 7, "{keys:?}: {error}");
    }
}

#[test]
fn what_cannot_be_denied_is_refused_with_what_can() {
    for wrong in ["lables", "features:sometimes", "agreement"] {
        let set = format!("policy.deny=[\"{wrong}\"]");
        let error = Config::parse("", &[set]).expect_err(wrong);
        assert!(error.exit_code() == 2 && error.to_string().contains(wrong), "{error}");
    }
}
