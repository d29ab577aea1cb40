//! The laws of methods: what holds for every schedule with every layer, codec and selection.
//!
//! Which methods there are follows from the registries ([`every`], [`covering`]), so that a member that joins is tried
//! with all others and nobody keeps a list. A method is a list of settings `key=value`, as `laconic train --set` takes
//! them.

use std::collections::{BTreeMap, BTreeSet};

use laconic_graph::dataset::Dataset;
use laconic_graph::edges::Relations;
use laconic_graph::part::{Part, cut};
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_key::{Key, Purpose};
use laconic_nn::threads::ROWS_PER_PIECE;
use laconic_wire::codec::CodecKind;
use laconic_wire::{Count, Direction, Kind, Ledger, Rank};

use crate::config::Config;
use crate::error::TrainError;
use crate::plan::Members;
use crate::run::source::{Source, assign};
use crate::run::{Options, Outcome, run_threads};

/// The settings of one method.
type Settings = Vec<String>;

/// A method as its choices by number: of schedule, layer, codec and selection.
type Choice = [usize; 4];

/// Workers of each run.
const WORKERS: u32 = 3;

/// What a run is like where its settings say nothing else.
const SMALL: &str = "
    model = { hidden = 16, dropout = 0.5 }
    train = { epochs = 4, lr = 0.05, threads = 1 }
    partition = { seed = 1 }
";

/// Values other than the default of options that members of an axis may read: section, option and value.
const VARIANTS: [(&str, &str, &str); 11] = [
    ("schedule", "cache_inputs", "false"),
    ("schedule", "late", "\"products\""),
    ("schedule", "smooth_features", "0.9"),
    ("schedule", "smooth_gradients", "0.5"),
    ("schedule", "start", "\"mlp\""),
    ("schedule", "hand_on", "{columns=3}"),
    ("model", "aggregator", "\"max\""),
    ("model", "head_merge", "\"mean\""),
    ("model", "learn_epsilon", "false"),
    ("model", "bases", "2"),
    ("model", "self_loops", "true"),
];

/// Every schedule with every layer, codec and selection: each as it is by default, with each option of a schedule or
/// layer that this crate's configuration documents, codecs at a coarse level, masks around every codec that is none,
/// and parameters and evaluations through every codec that suits them. What [`Members::check`] refuses is left out.
///
/// Options that only members from outside read keep their defaults; whoever adds such a member tries its options by
/// [`check`].
pub fn every(members: &Members) -> Vec<Settings> {
    let axes = axes(members);
    choices(members, &axes).into_iter().map(|choice| settings(&axes, choice)).collect()
}

/// Some of [`every`], in which any two choices that go together at all meet: each codec with each schedule, layer and
/// selection, each schedule with each layer, and so on. About as many as the two longest axes have pairs.
pub fn covering(members: &Members) -> Vec<Settings> {
    let axes = axes(members);
    let all = choices(members, &axes);
    let mut missing: BTreeSet<_> = all.iter().flat_map(|choice| pairs(*choice)).collect();
    let mut chosen = Vec::new();
    // Greedily: first the methods with six new pairs, then those with five, and so on.
    for new in (1..=6).rev() {
        for choice in &all {
            if pairs(*choice).filter(|pair| missing.contains(pair)).count() >= new {
                pairs(*choice).for_each(|pair| {
                    missing.remove(&pair);
                });
                chosen.push(settings(&axes, *choice));
            }
        }
    }
    chosen
}

/// Trains a small generated graph on three workers with these settings and checks what every method owes:
///
/// - All workers end with the same parameters.
/// - In each account of its ledger a worker sends what was predicted (no more than that, where
///   [`Messages::are_predictable`](crate::messages::Messages::are_predictable) is false), and a peer receives what was
///   sent.
/// - Two compute threads and no overlap change no bit of the parameters.
/// - A run that crashed half-way and was resumed from its checkpoint ends with the same parameters as one that did not;
///   but for independent trainers, of whom no checkpoint knows what their optimisers remember.
///
/// Settings that no second run reads alike, such as ramps over elapsed time, are none of these methods.
///
/// # Panics
/// If a law is broken, with the settings in the message; if the settings are refused, or a run fails.
pub fn check(members: &Members, settings: &[String]) {
    let case = Case { members, settings, dataset: graph() };
    let straight = case.run(&[]);
    case.assert_accounts(&straight, "");
    let expected = case.digest(&straight);
    // Both at once find what either changes; which of them it is, is looked for where there is something.
    let both = ["train.threads=2", "schedule.overlap=false"];
    if case.digest(&case.run(&both)) != expected {
        let alone = both.map(|variant| case.digest(&case.run(&[variant])) != expected);
        panic!("{settings:?} end with other parameters under {both:?}; under each alone: {alone:?}");
    }
    let rounds = straight[0].trained.rounds;
    let first = straight[0].plan.config.train.sync_every + 1;
    // No checkpoint comes before workers agree for the first time.
    if first <= rounds && straight[0].plan.trainers.is_none() {
        let round = first.midpoint(rounds);
        let resumed = case.crash_and_resume(round);
        case.assert_accounts(&resumed, "resumed: ");
        assert_eq!(
            case.digest(&resumed),
            expected,
            "{settings:?} crashed in round {round}: resumed to other parameters"
        );
    }
}

/// The choices of each axis: schedules, layers, codecs, selections.
fn axes(members: &Members) -> [Vec<Settings>; 4] {
    let schedules = members.schedules.iter().flat_map(|kind| {
        // What is made of labels leaves with leave alone.
        let leave = kind.propagates.map(|_| "policy.allow=[\"labels\"]".to_owned());
        let variants = variants("schedule", "kind", (kind.name, kind.options)).into_iter();
        variants.map(move |settings| settings.into_iter().chain(leave.clone()).collect())
    });
    let layers = members.layers.iter().map(|kind| (kind.name, kind.options));
    let selections = members.selections.names().map(|name| vec![format!("messages.selection={name}")]);
    [
        schedules.collect(),
        layers.flat_map(|member| variants("model", "arch", member)).collect(),
        codings(members),
        selections.collect(),
    ]
}

/// A member of a section as it is by default, and with each option that it reads.
fn variants(section: &str, key: &str, (name, options): (&str, &[&str])) -> Vec<Settings> {
    let plain = vec![format!("{section}.{key}={name}")];
    let read = VARIANTS.iter().filter(|(of, option, _)| *of == section && options.contains(option));
    let with = read.map(|(_, option, value)| [&plain[..], &[format!("{section}.{option}={value}")]].concat());
    std::iter::once(plain.clone()).chain(with).collect()
}

/// Every codec, and every codec around each that is around none, for rows that travel in training; and again for all
/// else.
fn codings(members: &Members) -> Vec<Settings> {
    let plain = || members.codecs.iter().filter(|kind| !kind.wraps);
    let (mut rows, mut sums) = (Vec::new(), Vec::new());
    for kind in members.codecs.iter() {
        for inner in plain().filter(|_| kind.wraps).map(Some).chain((!kind.wraps).then_some(None)) {
            let table = coding(kind, inner);
            rows.push(vec![format!("messages.forward={table}"), format!("messages.backward={table}")]);
            let parameters = format!("messages.parameters={}", table.replace(",whole_last=false", ""));
            let for_figures = !kind.wraps && !kind.reads.ratio && !kind.remembers && !kind.leaves_out;
            let figures = for_figures.then(|| format!("messages.evaluation={table}"));
            sums.push([parameters].into_iter().chain(figures).collect());
        }
        if kind.options.contains(&"columns") {
            rows.push(vec![format!("messages.forward={{codec=\"{}\",columns=\"prefix\",rescale=true}}", kind.name)]);
        }
    }
    rows.append(&mut sums);
    rows
}

/// A codec at a coarse level in the words of a configuration, around another if there is one.
fn coding(kind: &CodecKind, inner: Option<&CodecKind>) -> String {
    let mut keys = vec![format!("codec=\"{}\"", kind.name)];
    keys.extend(inner.map(|inner| format!("inner=\"{}\",whole_last=false", inner.name)));
    let reads = |what: fn(&CodecKind) -> bool| what(kind) || inner.is_some_and(what);
    if reads(|kind| kind.reads.ratio) {
        keys.push("ratio=2".to_owned());
    }
    if reads(|kind| kind.reads.bits) {
        keys.push("bits=2".to_owned());
    }
    format!("{{{}}}", keys.join(","))
}

/// All choices that may be made together.
fn choices(members: &Members, axes: &[Vec<Settings>; 4]) -> Vec<Choice> {
    let [schedules, layers, codecs, selections] = axes.each_ref().map(Vec::len);
    // Codecs in the outermost place, so that a set that is chosen from the front is not all of one schedule and layer.
    let of_codec = |c| (0..selections).flat_map(move |s| (0..layers).map(move |l| (l, c, s)));
    let places = (0..codecs).flat_map(of_codec);
    let all = places.flat_map(|(l, c, s)| (0..schedules).map(move |w| [(w + l + c) % schedules, l, c, s]));
    all.filter(|choice| members.parse(SMALL, &settings(axes, *choice)).is_ok()).collect()
}

fn settings(axes: &[Vec<Settings>; 4], choice: Choice) -> Settings {
    axes.iter().zip(choice).flat_map(|(axis, at)| axis[at].clone()).collect()
}

/// The choices of any two axes.
fn pairs(choice: Choice) -> impl Iterator<Item = [(usize, usize); 2]> {
    (0..4).flat_map(move |a| (a + 1..4).map(move |b| [(a, choice[a]), (b, choice[b])]))
}

/// A generated graph of three classes and three relations, of which each worker gets more rows than kernels give to one
/// thread at a time.
fn graph() -> Dataset {
    let spec = SbmSpec {
        nodes: 3 * (ROWS_PER_PIECE + 50),
        mean_degree: 5.0,
        classes: 3,
        features: 8,
        seed: 3,
        ..SbmSpec::default()
    };
    let mut dataset = sbm(&spec).expect("a sound specification");
    let key = Key::new(spec.seed, Purpose::Test);
    let of = (0..dataset.graph.edges() as u64).map(|edge| key.with(edge).below(3) as u16).collect();
    dataset.graph.data.relations = Some(Relations { count: 3, of });
    dataset
}

type Account = (u32, Kind, u16, Direction);

/// What a ledger says of one peer.
fn with_peer(ledger: &Ledger, peer: u32) -> BTreeMap<Account, Count> {
    let of_peer = ledger.iter().filter(|(entry, _)| entry.peer == Rank(peer));
    of_peer.map(|(entry, count)| ((entry.round, entry.kind, entry.layer, entry.direction), count)).collect()
}

/// A method with those whom its names stand for, and what it is tried on.
struct Case<'a> {
    members: &'a Members,
    settings: &'a [String],
    dataset: Dataset,
}

impl Case<'_> {
    fn config(&self, further: &[&str]) -> Config {
        let further = further.iter().map(|setting| setting.to_string());
        let overrides: Settings = self.settings.iter().cloned().chain(further).collect();
        self.members.parse(SMALL, &overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"))
    }

    fn try_run(&self, further: &[&str], options: Options) -> Result<Vec<Outcome>, TrainError> {
        let config = self.config(further);
        let assignment = assign(self.members, &config, &self.dataset, Some(0), WORKERS)?;
        let parts: Vec<Part> = cut(&self.dataset, Some(0), &assignment, WORKERS)?;
        run_threads(&config, Source::of(parts), Options { members: self.members.clone(), ..options })
    }

    fn run(&self, further: &[&str]) -> Vec<Outcome> {
        let run = self.try_run(further, Options::default());
        run.unwrap_or_else(|error| panic!("{:?} with {further:?}: {error}", self.settings))
    }

    /// Runs until worker 1 fails in this round, and goes on from the last checkpoint.
    fn crash_and_resume(&self, round: u32) -> Vec<Outcome> {
        let folder = tempfile::tempdir().expect("a folder for a while");
        let out = || Options { out: Some(folder.path().join("run")), keep_accounts: true, ..Options::default() };
        let fault = format!("transport.fault={{rank=1,round={round},kind=\"crash\"}}");
        let every = "out.checkpoint_every=1";
        match self.try_run(&[every, &fault], out()) {
            Err(TrainError::Fault { .. }) => {}
            other => panic!("{:?}: expected a crash in round {round}, found {:?}", self.settings, other.err()),
        }
        let resumed = self.try_run(&[every], Options { resume: true, ..out() });
        resumed.unwrap_or_else(|error| panic!("{:?} crashed in round {round}: {error}", self.settings))
    }

    /// The digest of the parameters, which every worker must hold.
    fn digest(&self, outcomes: &[Outcome]) -> String {
        let first = &outcomes[0];
        for Outcome { rank, trained, .. } in outcomes {
            assert!(*trained == first.trained, "{:?}: worker {rank} ends with another model", self.settings);
        }
        first.summary.as_ref().expect("worker 0 sums up").parameters.digest.clone()
    }

    /// Sent against predicted, and received against sent, account by account.
    fn assert_accounts(&self, outcomes: &[Outcome], what: &str) {
        let settings = self.settings;
        let exact = outcomes[0].plan.is_predictable();
        for (outcome, peer) in outcomes.iter().flat_map(|outcome| outcomes.iter().map(move |peer| (outcome, peer))) {
            let (from, to) = (outcome.rank, peer.rank);
            if from == to {
                continue;
            }
            let (sent, predicted) = (with_peer(&outcome.sent, to), with_peer(&outcome.predicted, to));
            let received = with_peer(&peer.received, from);
            assert_eq!(sent, received, "{what}{settings:?}: sent by {from}, against received by {to}");
            if exact {
                assert_eq!(sent, predicted, "{what}{settings:?}: sent by {from} to {to}, against predicted");
            }
            for (account, count) in sent {
                let most = predicted.get(&account).copied().unwrap_or_default();
                let kept = count.framed <= most.framed;
                assert!(kept, "{what}{settings:?}: {account:?} from {from} to {to}: {count:?} of at most {most:?}");
            }
        }
    }
}
