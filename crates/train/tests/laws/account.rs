//! The account that is made before a run is what the run does: who gets what is read off the frames that cross, and how
//! often somebody waits off which frame could not be sent before which.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use laconic_graph::part::Part;
use laconic_train::config::Config;
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::record::account::{Account, Party, RoundTrips, Subject};
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads, run_worker};
use laconic_wire::transport::End;
use laconic_wire::{Content, Frame, Kind, Ledger, Rank, Tag, Transport, threads};

use crate::averaging::{dealt, trainers};
use crate::fixture::{config, graph, multi_label, parts};

/// How many frames came one after the other, each of which its sender could not send before it had the one before: of
/// training, of evaluations, and of all else.
type Chain = [u64; 3];

/// What crosses.
#[derive(Default)]
struct Crossed {
    contents: BTreeSet<(Rank, Rank, Content)>,
    /// The longest chain that each worker has the end of.
    chains: BTreeMap<Rank, Chain>,
    /// The chains of frames under way, in the order in which they were sent.
    under_way: BTreeMap<(Rank, Rank, Tag), VecDeque<Chain>>,
}

impl Crossed {
    fn send(&mut self, from: Rank, to: Rank, tag: Tag) {
        self.contents.insert((from, to, tag.content));
        let mut chain = self.chains.get(&from).copied().unwrap_or_default();
        let place = match tag.kind() {
            Kind::Evaluation => 1,
            Kind::Control => 2,
            _ => 0,
        };
        chain[place] += 1;
        self.under_way.entry((from, to, tag)).or_default().push_back(chain);
    }

    fn receive(&mut self, from: Rank, to: Rank, tag: Tag) {
        let chain = self.under_way.get_mut(&(from, to, tag)).and_then(VecDeque::pop_front).expect("it was sent");
        let own = self.chains.entry(to).or_default();
        own.iter_mut().zip(chain).for_each(|(own, came)| *own = came.max(*own));
    }

    /// The longest of each kind.
    fn round_trips(&self) -> RoundTrips {
        let longest = |place: usize| self.chains.values().map(|chain| chain[place]).max().unwrap_or(0);
        RoundTrips { training: longest(0), evaluation: longest(1), start_up: longest(2) }
    }
}

/// An end of the network that writes down what crosses it.
struct Watched {
    inner: Box<dyn Transport>,
    crossed: Arc<Mutex<Crossed>>,
}

impl Transport for Watched {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> laconic_wire::Result<()> {
        self.crossed.lock().unwrap().send(self.rank(), to, frame.tag());
        self.inner.send(to, frame)
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> laconic_wire::Result<Frame> {
        let frame = self.inner.recv(from, tag)?;
        self.crossed.lock().unwrap().receive(from, self.rank(), frame.tag());
        Ok(frame)
    }

    fn poll(&mut self, from: Rank) -> laconic_wire::Result<Option<Frame>> {
        let frame = self.inner.poll(from)?;
        if let Some(frame) = &frame {
            self.crossed.lock().unwrap().receive(from, self.rank(), frame.tag());
        }
        Ok(frame)
    }

    fn finish(&mut self) -> laconic_wire::Result<()> {
        self.inner.finish()
    }
}

/// A run of so many processes, each with its end.
fn watched(config: &Config, parts: &[Part], processes: usize) -> (Vec<Outcome>, Crossed) {
    let crossed = Arc::new(Mutex::new(Crossed::default()));
    let outcomes = std::thread::scope(|scope| {
        let one = |end| {
            let end = Box::new(Watched { inner: Box::new(end), crossed: crossed.clone() });
            scope.spawn(move || run_worker(config, end, Source::of(parts.to_vec()), Options::default()))
        };
        let all: Vec<_> = threads(processes, config.deadline()).into_iter().map(one).collect();
        all.into_iter().map(|process| process.join().expect("no panic").expect("a run")).collect()
    });
    (outcomes, std::mem::take(&mut *crossed.lock().unwrap()))
}

const LABELS: [Content; 4] =
    [Content::TrainingLabels, Content::LabelCodewords, Content::PropagatedLabels, Content::LabelledScores];
const SCORES: [Content; 6] = [
    Content::HiddenRows,
    Content::Scores,
    Content::LearnedColumns,
    Content::Embeddings,
    Content::RowGradients,
    Content::LabelledScores,
];
const MODELS: [Content; 3] = [Content::ParameterGradients, Content::GramMatrices, Content::Models];

/// Who has got labels, features, scores and models of single others, by what has crossed.
fn saw(crossed: &Crossed, has_aggregator: bool) -> [Party; 4] {
    let is_aggregator = |rank: Rank| has_aggregator && rank == Rank(0);
    let by = |contents: &[Content]| {
        let got = |is: bool| {
            // What an aggregator says of models are means.
            let single = |from: Rank, content| !(is_aggregator(from) && content == Content::Models);
            let mut got = crossed.contents.iter().filter(|(from, _, content)| single(*from, *content));
            got.any(|(_, to, content)| contents.contains(content) && is_aggregator(*to) == is)
        };
        match (got(false), got(true)) {
            (false, false) => Party::Nobody,
            (true, false) => Party::Peers,
            (false, true) => Party::Aggregator,
            (true, true) => Party::Everybody,
        }
    };
    [by(&LABELS), by(&[Content::Features]), by(&SCORES), by(&MODELS)]
}

fn account(config: &Config, parts: &[Part]) -> Account {
    forecast(&Members::default(), config, parts, Ledger::of_totals).expect("a forecast").account()
}

const WITH_LABELS: &str = "policy.allow=[\"labels\"]";
const CODEWORDS: &[&str] = &[
    WITH_LABELS,
    "model.inputs=[\"features\", \"labels\", \"codewords\"]",
    "model.arch=mlp",
    "train.sync_every=4",
    "train.eval_every=4",
];

/// Methods of workers in step, with what each lets others see.
const IN_STEP: [(&[&str], &str); 14] = [
    (&[], "..FSM"),
    (&["model.layers=3", "model.norm=batch", "out.checkpoint_every=1"], "..FSM"),
    (&["schedule.kind=pipelined", "train.eval_every=3"], "..FSM"),
    (&["schedule.kind=lazy", "train.sync_every=2"], "..FSM"),
    (&["schedule.kind=lazy", "schedule.start=mlp"], "...SM"),
    (&["model.arch=mlp"], "....M"),
    (&["schedule.kind=label_propagation", WITH_LABELS], ".L..."),
    (&["schedule.kind=correct_and_smooth", "model.arch=mlp", WITH_LABELS], ".L..M"),
    (CODEWORDS, ".L..M"),
    (&["schedule.kind=ridge", "model.arch=mlp"], "....M"),
    (&["model.inputs=[\"features\", \"own_labels\"]", "model.arch=mlp"], "....M"),
    (&["model.inputs=[\"features\", \"labels\"]", WITH_LABELS], ".LFSM"),
    (&["schedule.cache_inputs=false", "train.class_weights=balanced"], "..FSM"),
    (&["messages.forward={ codec = \"quantised\", bits = \"adaptive\", period = 2 }"], "..FSM"),
];

#[test]
fn whoever_gets_something_in_a_run_is_in_its_account_and_nobody_else() {
    let dataset = graph(90, 3);
    for (keys, letters) in IN_STEP {
        let config = config(keys);
        let parts = parts(&config, &dataset, 3);
        let (_, crossed) = watched(&config, &parts, 3);
        let account = account(&config, &parts);
        let mut found = saw(&crossed, false);
        if keys.contains(&"schedule.kind=label_propagation") {
            // What sums gradients brings losses, too, and where there is no model nothing but these.
            found[3] = Party::Nobody;
        }
        assert_eq!(account.saw(), found, "{keys:?}");
        assert_eq!((account.holds_graph, account.letters().as_str()), (Party::Nobody, letters), "{keys:?}");
    }
    // Areas that are exact need the truth of every score.
    let (config, dataset) = (config(&["train.metrics=[\"roc_auc_exact\"]"]), multi_label(60, 3));
    let parts = parts(&config, &dataset, 3);
    let (account, (_, crossed)) = (account(&config, &parts), watched(&config, &parts, 3));
    assert_eq!((account.saw(), account.letters().as_str()), (saw(&crossed, false), ".LFSM"));
    let mut labels = account.seen.iter().filter(|sight| sight.of == Subject::Labels);
    assert!(labels.all(|sight| sight.for_evaluations), "{:?}", account.seen);
}

#[test]
fn waits_are_as_many_as_frames_that_had_to_come_one_after_the_other() {
    let dataset = graph(90, 3);
    for (keys, _) in IN_STEP {
        let config = config(keys);
        let parts = parts(&config, &dataset, 3);
        let (outcomes, crossed) = watched(&config, &parts, 3);
        let account = account(&config, &parts);
        assert_eq!(account.rounds, Some(u64::from(outcomes[0].trained.rounds)), "{keys:?}");
        let (found, said) = (crossed.round_trips(), account.round_trips.expect("it is known"));
        assert_eq!((said.training, said.evaluation), (found.training, found.evaluation), "{keys:?}");
        // At the end figures of parts and a report go to worker 0, and nobody waits between them.
        assert!((found.start_up..=found.start_up + 1).contains(&said.start_up), "{keys:?}: {said:?} of {found:?}");
    }
    // By hand: of two layers the first one's rows cross once, then in each of four rounds rows, their gradients, and
    // sums of gradients in two steps.
    let config = config(&["train.eval_every=0"]);
    let trips = account(&config, &parts(&config, &dataset, 3)).round_trips.expect("it is known");
    assert_eq!(trips.training, 1 + 4 * (1 + 1 + 2));
}

#[test]
fn an_aggregator_sees_single_models_and_holds_the_graph_unless_workers_evaluate() {
    let (dataset, count) = (graph(150, 3), 3);
    for keys in [&[][..], &["schedule.kind=llcg"], &["schedule.halo=frozen"]] {
        let config = trainers(keys);
        let parts = dealt(&dataset, count);
        let outcomes =
            run_threads(&config, Source::of(parts.clone()), Options { keep_accounts: true, ..Options::default() });
        let outcomes = outcomes.unwrap_or_else(|error| panic!("{keys:?}: {error}"));
        let account = account(&config, &parts);
        let crossed = |kind: Kind, to: bool| {
            let mut all = outcomes.iter().flat_map(|outcome| outcome.sent.iter());
            all.any(|(entry, _)| entry.kind == kind && (entry.peer == Rank(0)) == to)
        };
        assert!(crossed(Kind::Parameters, true) && !crossed(Kind::Features, true), "{keys:?}");
        // Who goes on layer by layer gets features of others first, and hidden rows then.
        let peers = [Kind::Features, Kind::Activations].map(|kind| crossed(kind, false));
        assert_eq!(peers, [keys.contains(&"schedule.halo=frozen"); 2], "{keys:?}");
        assert_eq!(account.holds_graph, Party::Aggregator, "{keys:?}");
        assert_eq!(account.letters(), if peers[0] { "glFSm" } else { "glfsm" }, "{keys:?}");
        let means = outcomes[0].summary.as_ref().and_then(|summary| summary.averaging.as_ref()).map(|of| of.means);
        assert_eq!(account.rounds, means.map(u64::from), "{keys:?}");
    }
    for (keys, letters) in [(&[][..], "..FSm"), (&["schedule.evaluate=local"], "....m")] {
        let config = trainers(&[&["schedule.evaluator=workers", "transport.kind=processes"], keys].concat());
        let parts = dealt(&dataset, count);
        let (_, crossed) = watched(&config, &parts, count as usize + 1);
        let account = account(&config, &parts);
        let found = saw(&crossed, true);
        assert_eq!((account.saw(), account.holds_graph), (found, Party::Nobody), "{keys:?}");
        assert_eq!(account.letters(), letters, "{keys:?}");
        let trips = account.round_trips.expect("it is known");
        // Trainers answer when they can: what one says may come to stand behind what another said.
        let found = crossed.round_trips().training;
        assert!((trips.training..=trips.training + 1).contains(&found), "{keys:?}: {trips:?}, found {found}");
        // There and back; the last mean goes to those alone who evaluate it.
        assert_eq!(account.rounds.map(|means| 2 * means - 1), Some(trips.training), "{keys:?}: {account:?}");
    }
}
