//! Members from outside: each joins by a line, is named in a configuration, is given its options, and keeps the laws.

#[path = "../../wire/tests/foreign_codecs.rs"]
mod foreign_codecs;
#[path = "../../nn/tests/foreign_layer.rs"]
mod foreign_layer;
#[path = "../../../examples/library/own_codec.rs"]
mod own_codec;
#[path = "../../../examples/library/own_partitioner.rs"]
mod own_partitioner;

use laconic_graph::dataset::Dataset;
use laconic_graph::partition::{OptionValue, PartitionOptions};
use laconic_graph::synth::{SbmSpec, sbm};
use laconic_nn::architecture::Handed;
use laconic_nn::optimiser::{Optimiser, OptimiserKind, RateKind};
use laconic_train::laws::methods;
use laconic_train::schedule::{Blueprint, HandOn, ScheduleKind, Stage};
use laconic_train::selection::{Selection, SelectionKind};
use laconic_train::{Config, Members, Options, Result, Run, TrainError, laws, train};
use laconic_wire::codec::{
    self, Codec, CodecId, CodecKind, CodecRegistry, Level, Memory, Message, RowSet, RowsMut, RowsRef, Store,
};
use laconic_wire::{Content, FramePurpose, MessageKey, Rank, Tag, WireError};

use foreign_codecs::{POWER, SCALE, SPARSE};
use own_codec::TOP_K;
use own_partitioner::STREAMING_GREEDY;

/// The first rows of a link: one of so many.
struct First {
    of: usize,
}

static FIRST: SelectionKind = SelectionKind {
    name: "first",
    options: &["of"],
    redraws: false,
    cuts: false,
    covers: false,
    build: |options| match options.number("of")?.unwrap_or(2.0) {
        of if of >= 1.0 => Ok(Some(Box::new(First { of: of as usize }))),
        _ => Err(options.refuse("of", "1 or more")),
    },
};

impl Selection for First {
    fn count(&self, rows: usize) -> usize {
        rows.div_ceil(self.of)
    }

    fn draw(&self, _key: laconic_key::Key, rows: usize, into: &mut Vec<u32>) {
        into.clear();
        into.extend(0..self.count(rows) as u32);
    }
}

/// Layer after layer, the first at a rate of its own.
static IN_TURN: ScheduleKind =
    ScheduleKind { name: "in_turn", options: &["first_lr"], trainers: false, propagates: None, stages: in_turn };

fn in_turn(blueprint: &Blueprint<'_>) -> Vec<Stage> {
    let Blueprint { config, kind, architecture } = *blueprint;
    let first_lr = config.schedule.own.number("first_lr").ok().flatten();
    let stage = |index: usize| Stage {
        network: architecture.stage(kind, index, Handed::Hidden),
        propagation: None,
        solves: None,
        cache_inputs: true,
        redraws: false,
        sample_inputs: true,
        late: None,
        hand_on: if index + 1 == architecture.layers { HandOn::Nothing } else { HandOn::Hidden },
        inputs: if index == 0 { Content::Features } else { Content::HiddenRows },
        first_layer: index as u16,
        rounds: config.train.epochs,
        span: config.train.epochs,
        lr: first_lr.filter(|_| index == 0).map_or(config.train.lr, |lr| lr as f32),
    };
    (0..architecture.layers).map(stage).collect()
}

/// Steps against the gradient, and nothing else.
struct Descent {
    steps: u64,
}

static DESCENT: OptimiserKind =
    OptimiserKind { name: "descent", options: &[], build: |_, _| Box::new(Descent { steps: 0 }) };

impl Optimiser for Descent {
    fn step(&mut self, parameters: &mut [f32], gradients: &mut [f32], rate: f32) {
        self.steps += 1;
        parameters.iter_mut().zip(gradients).for_each(|(value, gradient)| *value -= rate * *gradient);
    }

    fn state(&self) -> (u64, Vec<(&'static str, &[f32])>) {
        (self.steps, Vec::new())
    }

    fn restore(&mut self, steps: u64, _: Vec<Vec<f32>>) {
        self.steps = steps;
    }
}

static HALVED: RateKind = RateKind { name: "halved", options: &[], factor: |_, _| 0.5 };

/// As many columns as classes, so that the foreign layer, whose rows keep their width, makes a whole model.
const WIDTH: usize = 4;

fn graph() -> Dataset {
    let spec = SbmSpec { nodes: 300, classes: WIDTH, features: WIDTH, seed: 1, ..SbmSpec::default() };
    sbm(&spec).expect("a sound specification")
}

fn members() -> Members {
    let members = Members::default().with_codec(&TOP_K).expect("name and number are free");
    let members = members.with_partitioner(&STREAMING_GREEDY).expect("the name is free");
    members.with_selection(&FIRST).with_schedule(&IN_TURN).with_optimiser(&DESCENT).with_rate(&HALVED)
}

fn config(settings: &[&str]) -> Result<Config> {
    let text = "partition.parts = 3\nmodel.hidden = 4\ntrain.epochs = 6\ntrain.threads = 1";
    let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
    members().with_layer(&foreign_layer::RIGHT).parse(text, &settings)
}

fn try_run(settings: &[&str], options: Options) -> Result<Run> {
    let members = members().with_layer(&foreign_layer::RIGHT);
    train(&config(settings)?, graph(), Options { members, ..options })
}

fn run(settings: &[&str]) -> Run {
    try_run(settings, Options::default()).unwrap_or_else(|error| panic!("{settings:?}: {error}"))
}

/// What tells two runs apart: a digest of their parameters.
fn digest(settings: &[&str]) -> String {
    run(settings).summary.parameters.digest
}

fn refusal(settings: &[&str]) -> String {
    try_run(settings, Options::default()).err().unwrap_or_else(|| panic!("{settings:?} were not refused")).to_string()
}

#[test]
fn the_examples_run() {
    own_codec::main().expect("a codec of one's own trains");
    own_partitioner::main().expect("a partitioner of one's own trains");
}

#[test]
fn each_keeps_the_laws_of_its_axis() {
    let registry = CodecRegistry::default().with(&TOP_K).expect("name and number are free");
    let keep = |share: f64| codec::Options::default().with("keep", share);
    laconic_wire::laws::codecs::check(
        &TOP_K,
        &registry,
        &[codec::Options::default(), keep(0.001), keep(0.7), keep(1.0)],
    );
    let slack = |_, _| {
        let own = [("slack".to_owned(), OptionValue::Number(0.2))].into();
        PartitionOptions { own, ..PartitionOptions::default() }
    };
    laconic_graph::laws::partitioners::check(&STREAMING_GREEDY, &slack).expect("a sound partitioner");
    let of = |rows: f64| codec::Options::default().with("of", rows);
    laws::selections::check(&FIRST, &[codec::Options::default(), of(1.0), of(7.0)]);
}

/// All that can be named is drawn from the registries, and ours are among it.
#[test]
fn each_keeps_the_laws_of_methods_with_every_member_of_the_other_axes() {
    let ours = ["top_k", "first", "in_turn"];
    let methods = methods::covering(&members());
    for name in ours {
        let named = methods.iter().filter(|settings| settings.iter().any(|setting| setting.contains(name)));
        assert!(named.count() >= 5, "{name} is tried with few others");
    }
    let two_of_ours =
        |settings: &&Vec<String>| ours.iter().filter(|name| settings.concat().contains(*name)).count() > 1;
    let top_k = methods.iter().filter(|settings| settings.concat().contains("top_k"));
    let all: std::collections::BTreeSet<_> = top_k.chain(methods.iter().filter(two_of_ours)).collect();
    all.into_iter().for_each(|settings| methods::check(&members(), settings));
}

/// Every message a little larger than the one before, by what it remembers itself instead of in its [`Memory`].
struct Forgetful {
    sent: u32,
    inner: Box<dyn Codec>,
}

static FORGETFUL: CodecKind = CodecKind {
    name: "forgetful",
    number: 33,
    remembers: true,
    build: |_, registry| {
        let inner = registry.build("exact", &codec::Options::default())?;
        Ok(Box::new(Forgetful { sent: 0, inner }))
    },
    ..CodecKind::PLAIN
};

impl Codec for Forgetful {
    fn id(&self) -> CodecId {
        FORGETFUL.id()
    }

    fn bytes(&self, level: &Level<'_>, rows: usize, columns: usize) -> usize {
        self.inner.bytes(level, rows, columns)
    }

    fn encode(&mut self, message: Message<'_>, rows: RowsRef<'_>, into: &mut Vec<u8>) -> laconic_wire::Result<()> {
        self.sent += 1;
        let data: Vec<f32> = rows.data.iter().map(|value| value * (1.0 + 0.01 * self.sent as f32)).collect();
        self.inner.encode(message, RowsRef { data: &data, ..rows }, into)
    }

    fn decode(
        &mut self,
        message: Message<'_>,
        payload: &[u8],
        into: RowsMut<'_>,
        store: Store,
    ) -> laconic_wire::Result<()> {
        self.inner.decode(message, payload, into, store)
    }
}

#[test]
#[should_panic(expected = "resumed to other parameters")]
fn the_laws_notice_a_codec_that_forgets_what_decided_its_messages() {
    let members = Members::default().with_codec(&FORGETFUL).expect("name and number are free");
    methods::check(&members, &["messages.forward=forgetful".to_owned()]);
}

#[test]
fn options_reach_whoever_reads_them() {
    let both = |share: &str| {
        let table = format!("{{codec=\"top_k\",keep={share}}}");
        [format!("messages.forward={table}"), format!("messages.backward={table}")]
    };
    let kept = ["0.1", "0.5"].map(|share| {
        let [forward, backward] = both(share);
        run(&[&forward, &backward]).summary.bytes.total
    });
    assert!(kept[0] < kept[1], "{kept:?} bytes");
    let greedy = "partition.method=streaming_greedy";
    assert_ne!(digest(&[greedy, "partition.slack=0"]), digest(&[greedy, "partition.slack=0.5"]));
    let turn = "schedule.kind=in_turn";
    assert_ne!(digest(&[turn, "schedule.first_lr=0.1"]), digest(&[turn]));
    assert_eq!(digest(&[turn, "schedule.first_lr=0.1"]), digest(&["schedule.kind=lazy", "schedule.lr=[0.1]"]));
    let few = [1, 4].map(|of| run(&[&format!("messages.selection={{kind=\"first\",of={of}}}")]).summary.bytes.total);
    assert!(few[1] < few[0], "{few:?} bytes");
    // The first steps of Adam are of one length, whatever the size of a gradient.
    let scaled = ["model.arch=scaled", "model.norm=none", "train.optimiser=sgd", "train.lr=0.00001"];
    let twice = digest(&[&scaled[..], &["model.option=2"]].concat());
    assert_ne!(twice, digest(&scaled));
    assert_eq!(digest(&scaled), digest(&[&scaled[..], &["model.option=3"]].concat()));
}

#[test]
fn an_optimiser_and_a_rate_of_ones_own_take_the_steps_that_they_say() {
    let sgd = ["train.optimiser=sgd", "train.momentum=0", "train.weight_decay=0"];
    let descent = ["train.optimiser=descent", "train.weight_decay=0"];
    for further in [&["train.sync_every=1"], &["train.sync_every=3"]] {
        let of = |settings: &[&str]| digest(&[settings, &further[..]].concat());
        assert_eq!(of(&descent), of(&sgd), "{further:?}");
        let halved = of(&[&descent[..], &["train.lr=0.02", "train.lr_schedule=halved"]].concat());
        assert_eq!(halved, of(&[&sgd[..], &["train.lr=0.01"]].concat()), "{further:?}");
        assert_ne!(halved, of(&[&sgd[..], &["train.lr=0.02"]].concat()), "{further:?}");
    }
    let found = refusal(&["train.optimiser=descent", "train.momentum=0.5"]);
    assert!(found.contains("train.optimiser = \"descent\" does not read it; \"sgd\" does"), "{found}");
}

#[test]
fn options_that_make_no_sense_or_that_nobody_reads_are_refused() {
    for (setting, said) in [
        (
            "messages.forward={codec=\"top_k\",keep=2}",
            "messages.forward: option keep is 2, expected a share above 0, at most 1",
        ),
        (
            "messages.forward={codec=\"half\",keep=0.5}",
            // The first that reads it, of the crate's own.
            "messages.forward.keep: \"half\" does not read it; \"top\" does",
        ),
        ("messages.selection={kind=\"first\",of=0}", "messages.selection: option of is 0, expected 1 or more"),
        ("partition.slack=0.1", "partition.method = \"random\" does not read it; \"streaming_greedy\" does"),
        ("schedule.first_lr=0.1", "schedule.kind = \"synchronous\" does not read it; \"in_turn\" does"),
        ("model.option=2", "model.arch = \"sage\" does not read it; \"scaled\" does"),
        ("messages.evaluation=top_k", "messages.evaluation: expected exact, half, or quantised"),
        (
            "messages.forward={codec=\"masked\",inner=\"top_k\"}",
            "option inner is \"top_k\", expected a codec that remembers nothing",
        ),
    ] {
        let found = refusal(&[setting]);
        assert!(found.contains(said), "{setting}: {found}");
    }
    let found = refusal(&["partition.method=streaming_greedy", "partition.slack=-1"]);
    assert!(found.contains("expected slack = 0 or more"), "{found}");
}

#[test]
fn rows_that_are_drawn_anew_are_refused_with_a_codec_that_remembers() {
    let found = refusal(&["messages.forward=top_k", "messages.selection=boundary_sample"]);
    let said =
        "a codec that remembers with messages.selection = boundary_sample: rows that are drawn anew in every round";
    assert!(found.contains(said), "{found}");
}

#[test]
fn rows_that_travel_with_batches_are_refused_with_a_codec_that_remembers() {
    let found = refusal(&["messages.forward=top_k", "batch.size=50"]);
    assert!(found.contains("a codec that remembers"), "{found}");
    assert!(found.contains("each message must make sense alone"), "{found}");
}

#[test]
fn what_a_codec_remembers_survives_a_crash() {
    let settings =
        ["messages.forward=top_k", "messages.backward=top_k", "train.lr=0.05", "schedule.cache_inputs=false"];
    for further in [&["schedule.kind=synchronous"][..], &["schedule.kind=pipelined"]] {
        let settings = [&settings[..], further, &["out.checkpoint_every=2"]].concat();
        let expected = digest(&settings);
        for round in 3..=6 {
            let folder = tempfile::tempdir().expect("a folder for a while");
            let out = || Options { out: Some(folder.path().join("run")), ..Options::default() };
            let fault = format!("transport.fault={{rank=2,round={round},kind=\"crash\"}}");
            let crash = try_run(&[&settings[..], &[fault.as_str()]].concat(), out()).err().expect("a crash");
            assert!(matches!(crash, TrainError::Fault { .. }), "{crash}");
            let resumed = try_run(&settings, Options { resume: true, ..out() }).expect("a resumed run");
            assert_eq!(resumed.summary.parameters.digest, expected, "{settings:?} crashed in round {round}");
        }
    }
}

#[test]
fn a_position_behind_the_end_is_an_error() {
    let registry = CodecRegistry::default().with(&TOP_K).expect("name and number are free");
    let mut top_k = registry.build("top_k", &codec::Options::default()).expect("a codec");
    let tag = Tag::new(Content::HiddenRows, FramePurpose::Training);
    let key = MessageKey { seed: 0, tag, from: Rank(0), to: Rank(1), drawn: tag.round };
    for (position, valid) in [(5u64, true), (6, false), (u64::from(u32::MAX), false)] {
        let (mut data, payload) = ([0.0; 6], (position << 32 | u64::from(1f32.to_bits())).to_le_bytes());
        let into = RowsMut { data: &mut data, columns: 3, rows: RowSet::Range(0..2) };
        let message = Message { key: &key, level: &Level::WHOLE, memory: &mut Memory::default() };
        match top_k.decode(message, &payload, into, Store::Add) {
            Ok(()) => assert!(valid && data == [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], "{position}: {data:?}"),
            Err(error) => assert!(!valid && matches!(error, WireError::Malformed { .. }), "{position}: {error}"),
        }
    }
}

/// It remembers nothing, and yet what it drops is gone.
static GAPS: CodecKind = CodecKind { name: "gaps", number: 33, remembers: false, leaves_out: true, ..TOP_K };

#[test]
fn a_codec_that_leaves_values_out_carries_no_figures_and_sums_with_feedback_alone() {
    let members = Members::default().with_codec(&GAPS).expect("name and number are free");
    let refused = |settings: &[&str]| {
        let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
        members.parse("partition.parts = 3", &settings).err().map(|error| error.to_string())
    };
    let figures = refused(&["messages.evaluation=gaps"]);
    assert!(figures.is_some_and(|error| error.contains("messages.evaluation: expected exact, half")));
    for codec in ["gaps", "masked"] {
        let parameters = format!("messages.parameters={codec}");
        let lost = refused(&[&parameters, "messages.error_feedback=false"]);
        assert!(lost.is_some_and(|error| error.contains("messages.parameters: it leaves values out")), "{codec}");
        assert_eq!(refused(&[&parameters]), None);
    }
    let grows = refused(&["messages.parameters={codec=\"masked\",rescale=true}"]);
    assert!(grows.is_some_and(|error| error.contains("rescale = true")));
    let turned = refused(&["messages.parameters={codec=\"masked\",ratio={from=8,to=1}}"]);
    assert!(turned.is_some_and(|error| error.contains("messages.parameters: expected a ratio that stays")));
    let same = refused(&["messages.parameters={codec=\"masked\",columns=\"prefix\"}"]);
    assert!(same.is_some_and(|error| error.contains("the same values each time")));
    let idle = refused(&["messages.parameters={codec=\"masked\",whole_last=false}"]);
    assert!(idle.is_some_and(|error| error.contains("messages.parameters.whole_last")));
    assert_eq!(refused(&["messages.forward=gaps"]), None);
}

/// Members with codecs that take matrices, vary, remember and prepare.
fn with_foreign_codecs() -> Members {
    [&POWER, &SPARSE, &SCALE]
        .into_iter()
        .fold(members(), |members, kind| members.with_codec(kind).expect("name and number are free"))
}

const PARAMETERS: [&str; 5] = ["top_k", "power", "sparse", "scale", "{codec=\"masked\",ratio=3}"];

#[test]
fn parameters_keep_the_laws_of_methods_through_codecs_that_remember_vary_and_take_matrices() {
    for codec in PARAMETERS {
        for further in [&[][..], &["train.sync_every=2", "train.epochs=8"], &["schedule.kind=lazy"]] {
            let settings = [format!("messages.parameters={codec}")].into_iter();
            let settings: Vec<String> = settings.chain(further.iter().map(|setting| setting.to_string())).collect();
            methods::check(&with_foreign_codecs(), &settings);
        }
    }
    for codec in ["sparse", "{codec=\"masked\",ratio=3}"] {
        let settings = [format!("messages.parameters={codec}"), "schedule.kind=averaging".to_owned()];
        methods::check(&with_foreign_codecs(), &settings);
    }
}

/// Exactly so: a state is predicted with the first message of each stream.
#[test]
fn rows_keep_the_laws_of_methods_behind_a_state_that_their_codec_prepares() {
    for further in [&[][..], &["schedule.kind=lazy"], &["schedule.kind=pipelined"], &["messages.skip={change=0.5}"]] {
        let both = ["messages.forward=scale", "messages.backward=scale"].into_iter().map(str::to_owned);
        let settings: Vec<String> = both.chain(further.iter().map(|setting| setting.to_string())).collect();
        methods::check(&with_foreign_codecs(), &settings);
    }
    let reveal = with_foreign_codecs().parse("", &["messages.forward={codec=\"scale\",reveal=true}".to_owned()]);
    let reveal = reveal.expect_err("rows cannot be revealed").to_string();
    assert!(reveal.contains("takes whole rows"), "{reveal}");
}

#[test]
fn what_loses_nothing_changes_no_parameter_and_what_loses_some_still_learns() {
    let of = |settings: &[&str]| {
        let text = "partition.parts = 3\nmodel.hidden = 16\ntrain.epochs = 40\ntrain.threads = 1";
        let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
        let members = with_foreign_codecs();
        let config = members.parse(text, &settings).unwrap_or_else(|error| panic!("{settings:?}: {error}"));
        let run = train(&config, graph(), Options { members, ..Options::default() });
        run.unwrap_or_else(|error| panic!("{settings:?}: {error}"))
    };
    for further in ["schedule.kind=synchronous", "train.sync_every=4", "schedule.kind=averaging"] {
        let exact = of(&[further]);
        let sparse = of(&[further, "messages.parameters=sparse"]);
        if further != "schedule.kind=averaging" {
            assert_eq!(sparse.summary.parameters.digest, exact.summary.parameters.digest, "{further}");
        }
        let accuracy = |run: &Run| run.test("accuracy").expect("nodes are tested");
        for codec in PARAMETERS {
            let setting = format!("messages.parameters={codec}");
            let remembers = ["top_k", "power", "scale"].contains(&codec);
            if remembers && further == "schedule.kind=averaging" {
                continue;
            }
            let lossy = of(&[further, &setting]);
            let bytes = &lossy.summary.bytes;
            let predicted = bytes.predicted.expect("all means are counted by steps");
            assert_eq!(bytes.is_bound, ["sparse", "scale"].contains(&codec), "{further}, {codec}");
            let fits = if bytes.is_bound { bytes.total <= predicted } else { bytes.total == predicted };
            assert!(fits, "{further}, {codec}: {} bytes for {predicted}", bytes.total);
            assert!(accuracy(&lossy) > accuracy(&exact) - 0.1, "{further}, {codec}: {}", accuracy(&lossy));
        }
    }
}

#[test]
fn independent_trainers_refuse_parameters_whose_codec_remembers() {
    let settings = ["schedule.kind=averaging".to_owned(), "messages.parameters=power".to_owned()];
    let found = with_foreign_codecs().parse("partition.parts = 3", &settings);
    let found = found.expect_err("a trainer that rejoins has not had what came before").to_string();
    assert!(found.contains("makes no sense of a change without those before it"), "{found}");
}
