//! What a peer does wrong is an error of the network that names it, and what was reached before is not lost.

use std::path::Path;

use laconic_graph::dataset::Dataset;
use laconic_graph::part::Part;
use laconic_train::TrainError;
use laconic_train::config::Config;
use laconic_train::error::Result;
use laconic_train::fit::observe::RoundReport;
use laconic_train::run::source::Source;
use laconic_train::run::{Options, Outcome, run_threads, run_worker};
use laconic_wire::transport::End;
use laconic_wire::{Frame, HEADER_BYTES, Kind, Rank, Tag, Transport, WireError, threads};

use crate::fixture::{config, folder, graph, into_folder, parts};
use crate::same_bits::{bits, log, resume};

/// What happens to a frame that is sent.
type Change = fn(&mut Frame) -> laconic_wire::Result<()>;

/// A worker's end of the network through which something happens to what it sends.
struct Changed {
    inner: Box<dyn Transport>,
    change: Change,
}

impl Transport for Changed {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, mut frame: Frame) -> laconic_wire::Result<()> {
        (self.change)(&mut frame)?;
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

/// Three workers, of which what worker 1 sends is changed; worker 0 writes into the folder.
fn run_changed(config: &Config, dataset: &Dataset, out: Option<&Path>, change: Change) -> Vec<Result<Outcome>> {
    run_each([config; 3], dataset, out, change)
}

/// The same, each with a configuration of its own.
fn run_each(configs: [&Config; 3], dataset: &Dataset, out: Option<&Path>, change: Change) -> Vec<Result<Outcome>> {
    run_parts(configs, |rank| parts(configs[rank], dataset, 3), out, change)
}

/// The same, each with parts of its own, of which it takes one.
fn run_parts(
    configs: [&Config; 3],
    parts: impl Fn(usize) -> Vec<Part>,
    out: Option<&Path>,
    change: Change,
) -> Vec<Result<Outcome>> {
    std::thread::scope(|scope| {
        let one = |(rank, end): (usize, _)| {
            let inner: Box<dyn Transport> = Box::new(end);
            let end = if rank == 1 { Box::new(Changed { inner, change }) } else { inner };
            let config = configs[rank];
            let source = Source::of(parts(rank));
            let options = out.map(into_folder).unwrap_or_default();
            scope.spawn(move || run_worker(config, end, source, options))
        };
        let all: Vec<_> = threads(3, configs[0].deadline()).into_iter().enumerate().map(one).collect();
        all.into_iter().map(|worker| worker.join().expect("no worker panics")).collect()
    })
}

/// Whether this is the control frame of a step before the first round.
fn is_step(frame: &Frame, step: u16) -> bool {
    (frame.tag().kind(), frame.tag().round, frame.tag().step) == (Kind::Control, 0, step)
}

#[test]
fn a_malformed_message_is_an_error_of_the_network_and_names_its_peer() {
    let digests: Change = |frame| {
        if is_step(frame, 9) {
            frame.payload_mut().truncate(HEADER_BYTES + 63);
        }
        Ok(())
    };
    let questions: Change = |frame| {
        if is_step(frame, 0) {
            frame.payload_mut().splice(HEADER_BYTES.., [0xff; 40]);
        }
        Ok(())
    };
    let answers: Change = |frame| {
        if is_step(frame, 1) {
            frame.payload_mut().splice(HEADER_BYTES.., [1, 0]);
        }
        Ok(())
    };
    let beyond: Change = |frame| {
        if is_step(frame, 1) {
            frame.payload_mut().splice(HEADER_BYTES.., [0, 60]);
        }
        Ok(())
    };
    let report: Change = |frame| {
        if (frame.tag().kind(), frame.tag().step) == (Kind::Control, 5) {
            frame.payload_mut().pop();
        }
        Ok(())
    };
    assert_refused(&[
        (digests, true, "digests of another size came"),
        (questions, false, "ids of another form"),
        (answers, false, "ids of another form"),
        (beyond, false, "a place beyond the "),
        (report, true, "a report of another shape came"),
    ]);
}

/// Worker 0 refuses what is so changed of worker 1, whose part knows owners or does not, in these words.
fn assert_refused(changes: &[(Change, bool, &str)]) {
    let (config, dataset) = (config(&["train.epochs=1"]), graph(60, 3));
    for &(change, tells, words) in changes {
        let of_worker = |_| if tells { parts(&config, &dataset, 3) } else { untold(&config, &dataset) };
        let error = run_parts([&config; 3], of_worker, None, change).swap_remove(0).err().expect(words);
        let TrainError::Wire(WireError::WithPeer { peer: Rank(1), source, .. }) = &error else { panic!("{error}") };
        assert!(matches!(**source, WireError::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.exit_code(), 4, "{error}");
    }
}

#[test]
fn what_peers_that_know_owners_say_of_their_needs_is_checked() {
    let questions: Change = |frame| {
        if is_step(frame, 0) {
            frame.payload_mut().splice(HEADER_BYTES.., [0xff; 40]);
        }
        Ok(())
    };
    let no_digests: Change = |frame| {
        if is_step(frame, 0) {
            frame.payload_mut().pop();
        }
        Ok(())
    };
    let other_digest: Change = |frame| {
        if is_step(frame, 0) {
            // What worker 1 needs; it sends a list, then, of other nodes.
            frame.payload_mut()[HEADER_BYTES + 1] ^= 1;
        }
        Ok(())
    };
    let beyond_rows: Change = |frame| {
        if is_step(frame, 53) {
            frame.payload_mut().splice(HEADER_BYTES.., [0, 60]);
        }
        Ok(())
    };
    assert_refused(&[
        (questions, true, "some parts know who owns the nodes that they need and others do not"),
        (no_digests, true, "digests of ids of another size"),
        (other_digest, true, "rows of other nodes than it needs"),
        (beyond_rows, true, "a row beyond the "),
    ]);
}

/// Parts that nobody has told who owns what they need.
fn untold(config: &Config, dataset: &Dataset) -> Vec<Part> {
    parts(config, dataset, 3).into_iter().map(|part| Part { owners: None, ..part }).collect()
}

#[test]
fn parts_that_are_told_owners_and_parts_that_ask_train_the_same() {
    let dataset = graph(600, 3);
    for keys in [&["train.epochs=3"][..], &["train.epochs=3", "data.inductive=true"]] {
        let config = config(keys);
        let unchanged: Change = |_| Ok(());
        let told = run_each([&config; 3], &dataset, None, unchanged);
        let asked = run_parts([&config; 3], |_| untold(&config, &dataset), None, unchanged);
        let [told, asked] =
            [told, asked].map(|all| all.into_iter().map(|one| one.expect("it runs")).collect::<Vec<Outcome>>());
        assert_eq!(bits(&told), bits(&asked), "{keys:?}");
        for (told, asked) in told.iter().zip(&asked) {
            assert_eq!((told.sent == told.predicted, asked.sent == asked.predicted), (true, true), "{keys:?}");
            let sent = |outcome: &Outcome| outcome.sent.total().payload;
            assert!(sent(told) < sent(asked), "{keys:?}: {} and {} bytes", sent(told), sent(asked));
        }
    }
}

#[test]
fn parts_of_which_some_are_told_owners_and_some_not_are_refused() {
    let (config, dataset) = (config(&["train.epochs=1"]), graph(60, 3));
    let of_worker = |rank| if rank == 1 { untold(&config, &dataset) } else { parts(&config, &dataset, 3) };
    let errors = run_parts([&config; 3], of_worker, None, |_| Ok(()));
    let said = errors.into_iter().filter_map(|outcome| Some(outcome.err()?.to_string()));
    assert!(said.filter(|error| error.contains("cut all of them again")).count() > 1);
}

/// Where an answer about draws names owners: it has for each node its degree, how many ids, their distances, and then
/// the owner of each.
fn owners(bytes: &[u8]) -> Vec<usize> {
    let number = |at: &mut usize| {
        let start = *at;
        while bytes[*at] & 0x80 != 0 {
            *at += 1;
        }
        *at += 1;
        bytes[start..*at].iter().rev().fold(0usize, |number, byte| number << 7 | usize::from(byte & 0x7f))
    };
    let (mut at, mut owners) = (0, Vec::new());
    while at < bytes.len() {
        number(&mut at);
        let count = number(&mut at);
        for _ in 0..count {
            number(&mut at);
        }
        for _ in 0..count {
            owners.push(at);
            number(&mut at);
        }
    }
    owners
}

#[test]
fn a_node_that_a_peer_says_is_ours_and_is_not_is_refused_by_its_number() {
    let (config, dataset) = (config(&["batch.size=20", "batch.fanouts=[3, 3]", "train.epochs=1"]), graph(200, 4));
    let change: Change = |frame| {
        if (frame.tag().kind(), frame.tag().step) == (Kind::Draws, 29) {
            let answer = &mut frame.payload_mut()[HEADER_BYTES..];
            for place in owners(answer) {
                // Worker 2's nodes are said to be worker 0's.
                answer[place] = if answer[place] == 2 { 0 } else { answer[place] };
            }
        }
        Ok(())
    };
    let error = run_changed(&config, &dataset, None, change).swap_remove(0).err().expect("a refusal");
    let TrainError::Wire(WireError::WithPeer { peer: Rank(1), source, .. }) = &error else { panic!("{error}") };
    assert!(matches!(**source, WireError::Malformed { .. }), "{error}");
    let text = error.to_string();
    let node = text.split("node ").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    let of_2 = &parts(&config, &dataset, 3)[2].nodes;
    assert!(text.contains("is not of this worker") && node.is_some_and(|node| of_2.contains(&node)), "{text}");
}

#[test]
fn what_a_peer_that_differs_says_of_itself_is_checked() {
    let (usual, odd, dataset) = (config(&[]), config(&["train.lr=0.5"]), graph(60, 3));
    let values: Change = |frame| {
        if is_step(frame, 10) {
            frame.payload_mut().pop();
        }
        Ok(())
    };
    let error = run_each([&usual, &odd, &usual], &dataset, None, values).swap_remove(2).err().expect("a refusal");
    assert_eq!(error.exit_code(), 4, "{error}");
    assert!(error.to_string().contains("rank 2, from rank 1") && error.to_string().contains("another form"), "{error}");
}

/// The log without what may differ.
fn curve(out: &Path) -> Vec<RoundReport> {
    log(out).into_iter().map(|report| RoundReport { bytes: None, ..report }).collect()
}

#[test]
fn the_log_has_a_line_of_every_round_after_a_failure_in_an_evaluation() {
    let dataset = graph(90, 4);
    let fails: Change = |frame| {
        let tag = frame.tag();
        if (tag.kind(), tag.round) == (Kind::Evaluation, 3) {
            return Err(WireError::Gone { rank: Rank(1), peer: Rank(0), tag, sending: true });
        }
        Ok(())
    };
    for keys in [&["train.epochs=5"][..], &["schedule.kind=lazy", "train.epochs=3"]] {
        let (config, place) = (config(keys), folder());
        let (straight, out) = (place.path().join("straight"), place.path().join("run"));
        let source = || Source::of(parts(&config, &dataset, 3));
        let expected = run_threads(&config, source(), into_folder(&straight)).expect("a run");
        let failed = run_changed(&config, &dataset, Some(&out), fails);
        assert!(failed.iter().all(std::result::Result::is_err), "{keys:?}");
        assert_eq!(log(&out).len(), 2, "{keys:?}: the third round was not judged");
        for _ in 0..2 {
            // A run that has ended resumes into itself.
            let resumed = run_threads(&config, source(), resume(&out)).expect("a resumed run");
            assert_eq!(bits(&resumed), bits(&expected), "{keys:?}");
            assert_eq!(curve(&out), curve(&straight), "{keys:?}");
        }
    }
}

#[test]
fn files_of_a_run_are_named_with_their_folder() {
    let (config, dataset, place) = (config(&[]), graph(60, 3), folder());
    let out = place.path().join("run");
    let source = || Source::of(parts(&config, &dataset, 2));
    run_threads(&config, source(), into_folder(&out)).expect("a run");
    let path = out.join("checkpoint.safetensors");
    for bytes in [&b"nothing of use"[..], &[]] {
        std::fs::write(&path, bytes).expect("written");
        let options = Options { resume: true, ..into_folder(&out) };
        let error = run_threads(&config, source(), options).err().expect("a refusal");
        assert_eq!(error.exit_code(), 5);
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}
