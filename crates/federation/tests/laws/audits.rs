//! Logs, being checked.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use laconic_federation::{AuditLog, Contract, Digest, Entry, Passed, Report, Terms, Way, audit};

use crate::logs::{OPEN, models};
use crate::{NAMES, VOCABULARY, contract, key, other_byte, policy, terms};

/// What a site sends.
type Sent = Passed<'static>;

/// Three sites that send each other models for some rounds, and what their logs are.
struct Run {
    contract: Contract,
    folder: tempfile::TempDir,
    logs: Vec<AuditLog>,
}

impl Run {
    fn new(text: &str) -> Run {
        Run::of(contract(), text)
    }

    fn of(contract: Contract, text: &str) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let create = |(name, number): (&&str, u8)| {
            AuditLog::create(path(folder.path(), name), &key(number), &contract, &policy(text)).unwrap()
        };
        let logs = NAMES.iter().zip(0..).map(create).collect();
        Run { contract, folder, logs }
    }

    fn paths(&self) -> Vec<PathBuf> {
        NAMES.iter().map(|name| path(self.folder.path(), name)).collect()
    }

    /// One site tells another something, and both say so in their logs, the latter as `got` has it.
    fn tell(&mut self, (from, to): (usize, usize), sent: Sent, got: fn(Sent) -> Option<Sent>) {
        let mut out = sent;
        (out.crossing.way, out.crossing.peer) = (Way::Out, NAMES[to]);
        self.logs[from].write(&Entry::Crossing(out)).unwrap();
        let mut taken_in = sent;
        (taken_in.crossing.way, taken_in.crossing.peer) = (Way::In, NAMES[from]);
        if let Some(taken_in) = got(taken_in) {
            self.logs[to].write(&Entry::Crossing(taken_in)).unwrap();
        }
    }

    /// A round in which all tell all.
    fn round(&mut self, round: u32) {
        for from in 0..3 {
            for to in (0..3).filter(|to| *to != from) {
                self.tell((from, to), models(Way::Out, "", round, 100 + u64::from(round)), Some);
            }
        }
    }

    /// Every site signs, and all others write that down.
    fn exchange_notes(&mut self) {
        let notes: Vec<String> = self.logs.iter_mut().map(|log| log.checkpoint().unwrap()).collect();
        for (at, log) in self.logs.iter_mut().enumerate() {
            let others = notes.iter().enumerate().filter(|(of, _)| *of != at);
            others.for_each(|(_, note)| log.witness(note).unwrap());
        }
    }

    fn close(&mut self, exit_code: u8) {
        self.exchange_notes();
        for log in self.logs.drain(..) {
            log.close(exit_code, Some(Digest::of(b"parameters"))).unwrap();
        }
    }

    fn audit(&self) -> Report {
        audit(&self.paths(), &self.contract, &VOCABULARY).unwrap()
    }
}

fn path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.jsonl"))
}

/// A run of some rounds that ended well.
fn ended() -> Run {
    let mut run = Run::new(OPEN);
    for round in 0..3 {
        run.round(round);
        run.exchange_notes();
    }
    run.close(0);
    run
}

/// That there is one fault, in a file at a line, which says something.
fn one_fault(report: &Report, file: &str, line: u64, words: &[&str]) {
    assert_eq!(report.faults.len(), 1, "{report}");
    let fault = &report.faults[0];
    assert!(fault.file.ends_with(format!("{file}.jsonl")) && fault.line == line, "{fault}");
    words.iter().for_each(|word| assert!(fault.what.contains(word), "{word:?} in {fault}"));
}

#[test]
fn honest_logs_have_no_faults_and_their_table_has_what_crossed() {
    let run = ended();
    let report = run.audit();
    assert!(report.is_clean() && report.remarks.is_empty(), "{report}");
    assert_eq!(report.table.len(), 12);
    let row = &report.table[0];
    assert_eq!(
        (row.site.as_str(), row.way, row.peer.as_str(), row.content.as_str()),
        ("north", Way::Out, "south", "models")
    );
    assert_eq!((row.frames, row.payload, row.framed), (3, 303, 375));
    assert!(report.logs.iter().all(|log| log.lines == log.signed_lines && log.exit_code == Some(0)), "{report}");
    let text = report.to_string();
    assert!(text.contains("nothing is wrong") && text.contains("north  to    south  models"), "{text}");
    // A log by itself is checked as far as it goes.
    let alone = audit(&run.paths()[1..2], &run.contract, &VOCABULARY).unwrap();
    assert!(alone.is_clean() && alone.remarks.len() == 2, "{alone}");
}

#[test]
fn every_change_of_one_byte_of_a_closed_log_is_found() {
    let mut run = Run::new(OPEN);
    run.round(0);
    run.logs[0].write(&Entry::Link { peer: "west", path: "192.0.2.2:7443", connected: false }).unwrap();
    run.close(0);
    let whole = std::fs::read(&run.paths()[0]).unwrap();
    let path = &run.paths()[0];
    let mut file = OpenOptions::new().write(true).open(path).unwrap();
    let mut put = |at: usize, byte: u8| {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(&[byte]).unwrap();
    };
    for (at, &was) in whole.iter().enumerate() {
        let bytes = [other_byte(was, at), was ^ 1, b'\n'];
        for byte in bytes.into_iter().filter(|byte| *byte != was) {
            put(at, byte);
            // By the log alone: nobody else's is needed.
            let report = audit(&[path], &run.contract, &VOCABULARY).unwrap();
            assert!(!report.is_clean(), "byte {at} as {byte}: {report}");
        }
        put(at, was);
    }
    assert!(run.audit().is_clean());
}

#[test]
fn numbers_go_up_by_one_and_times_never_go_back() {
    let mut run = Run::new(OPEN);
    run.tell((0, 1), models(Way::Out, "", 0, 500), Some);
    run.logs.clear();
    // The last line of a log that was not closed, which no note and no other line covers.
    let text = std::fs::read_to_string(&run.paths()[0]).unwrap();
    let (first, last) = text.trim_end().split_once('\n').unwrap();
    let value: serde_json::Value = serde_json::from_str(last).unwrap();
    let was = |key: &str| value[key].to_string();
    let early = "\"1999-12-31T23:59:59.999Z\"".to_owned();
    let digest = format!("\"{}\"", Digest::of(b"other"));
    let changes =
        [("time", early, "1999"), ("prev", digest, "the line before"), ("seq", "3".to_owned(), "its number is 3")];
    assert!(run.audit().is_clean());
    for (key, value, word) in changes {
        let changed = last.replace(&format!("\"{key}\":{}", was(key)), &format!("\"{key}\":{value}"));
        assert_ne!(changed, last);
        std::fs::write(&run.paths()[0], format!("{first}\n{changed}\n")).unwrap();
        one_fault(&run.audit(), "north", 2, &[word]);
    }
}

#[test]
fn every_line_that_is_dropped_doubled_or_moved_is_found() {
    let run = ended();
    let text = std::fs::read_to_string(&run.paths()[0]).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let changed = run.folder.path().join("changed.jsonl");
    for at in 0..lines.len() {
        let dropped = [&lines[..at], &lines[at + 1..]].concat();
        let doubled = [&lines[..=at], &lines[at..]].concat();
        let mut moved = lines.clone();
        moved.swap(at, (at + 1) % lines.len());
        for lines in [dropped, doubled, moved] {
            std::fs::write(&changed, lines.join("\n") + "\n").unwrap();
            let paths = [&changed, &run.paths()[1], &run.paths()[2]].map(PathBuf::from);
            assert!(!audit(&paths, &run.contract, &VOCABULARY).unwrap().is_clean(), "line {}", at + 1);
        }
    }
}

#[test]
fn a_log_that_was_cut_back_is_found_by_the_notes_that_others_have() {
    let run = ended();
    let path = &run.paths()[1];
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // The last note that others have of it is followed by two witnesses, the closing and the note of the end, and a
    // closing without that note is no end.
    let (noted, closing) = (lines.len() - 4, lines.len() - 1);
    for left in 1..lines.len() {
        std::fs::write(path, lines[..left].join("\n") + "\n").unwrap();
        assert_eq!(run.audit().is_clean(), left >= noted && left != closing, "{left} of {} lines", lines.len());
    }
    for bytes in (1..text.len()).step_by(101) {
        std::fs::write(path, &text[..bytes]).unwrap();
        let left = text[..bytes].matches('\n').count();
        assert_eq!(run.audit().is_clean(), left >= noted && left != closing, "{bytes} of {} bytes", text.len());
    }
    // Cut back, and gone on with as if nothing had been.
    std::fs::write(path, lines[..8].join("\n") + "\n").unwrap();
    let policy = policy(OPEN);
    let log = AuditLog::reopen(path, &key(1), &run.contract, &policy, |_| ()).unwrap().log;
    log.close(0, None).unwrap();
    let report = run.audit();
    assert!(report.faults.iter().any(|fault| fault.what.contains("north.jsonl:") && fault.what.contains("cut back")));
}

#[test]
fn what_one_site_says_it_sent_is_what_the_other_says_it_got() {
    let tell = |got: fn(Sent) -> Option<Sent>, exit_code: u8| {
        let mut run = Run::new(OPEN);
        run.round(0);
        run.tell((0, 1), models(Way::Out, "", 1, 500), got);
        run.round(2);
        run.close(exit_code);
        run.audit()
    };
    assert!(tell(Some, 0).is_clean());
    let words = ["round 1", "models:training", "from north to south"];
    one_fault(&tell(|_| None, 0), "north", 6, &[words.as_slice(), &["sent 1 frames, 500 and 524"]].concat());
    let fewer = |passed: Sent| Some(Passed { payload: passed.payload - 1, ..passed });
    one_fault(&tell(fewer, 0), "south", 6, &[words.as_slice(), &["got 1 frames, 499 and 524"]].concat());
    let other = |passed: Sent| Some(Passed { mac: Some(Digest::of(b"other")), ..passed });
    one_fault(&tell(other, 0), "south", 6, &["digests differ"]);
    assert!(tell(|passed| Some(Passed { mac: None, ..passed }), 0).is_clean());
    let report = tell(|passed| Some(Passed { round: 7, ..passed }), 0);
    assert_eq!(report.faults.len(), 2, "{report}");
    // Where a run did not end well, something may have been on its way; nothing comes that nobody has sent.
    let report = tell(|_| None, 5);
    assert!(report.is_clean() && report.remarks[0].contains("1 frames of 524 bytes that north sent"), "{report}");
    assert!(!tell(|passed| Some(Passed { frames: 2, ..passed }), 5).is_clean());
    assert!(!tell(|passed| Some(Passed { round: 7, ..passed }), 5).is_clean());
}

#[test]
fn what_a_sites_own_policy_forbids_is_found() {
    let text = "version = 1\n[[allow]]\ncontent = \"models\"\nmax_bytes = 300\n[[accept]]\ncontent = \"models\"\n";
    let mut run = Run::new(text);
    run.round(0);
    let mut features = models(Way::Out, "", 0, 1);
    features.crossing.content = "features";
    run.tell((1, 2), features, Some);
    run.round(1);
    run.close(0);
    let report = run.audit();
    // Features at both ends, and the third and the fourth model of each site: 124 twice, then 125 twice.
    let found: Vec<String> = report.faults.iter().map(|fault| fault.to_string()).collect();
    assert_eq!(found.iter().filter(|what| what.contains("features")).count(), 2, "{report}");
    assert_eq!(found.iter().filter(|what| what.contains("max_bytes only 52")).count(), 6, "{report}");
    assert_eq!(found.len(), 8, "{report}");
}

#[test]
fn a_run_that_contract_or_policy_were_not_for_is_found() {
    let expired = Contract::make(Terms { expires: "2020-01-01".parse().unwrap(), ..terms() }).unwrap();
    let policies = ["[limits]\nruns = \"heart-*\"", "[limits]\nuntil = 2020-01-01"];
    let policies = policies.map(|limits| (contract(), format!("{OPEN}{limits}"), "limits."));
    for (contract, text, word) in policies.into_iter().chain([(expired, OPEN.to_owned(), "expired")]) {
        let mut run = Run::of(contract, &text);
        run.round(0);
        run.close(0);
        let report = run.audit();
        let found = report.faults.iter().filter(|fault| fault.line == 1 && fault.what.contains(word));
        assert_eq!((found.count(), report.faults.len()), (3, 3), "{report}");
    }
}

#[test]
fn logs_of_other_contracts_and_second_logs_of_a_site_are_found() {
    let run = ended();
    let other = ended();
    let paths = [&run.paths()[0], &other.paths()[1]].map(PathBuf::from);
    let report = audit(&paths, &run.contract, &VOCABULARY).unwrap();
    assert!(report.faults.iter().any(|fault| fault.line == 1 && fault.what.contains("contract")), "{report}");
    let twice = [&run.paths()[0], &run.paths()[0]].map(PathBuf::from);
    let report = audit(&twice, &run.contract, &VOCABULARY).unwrap();
    assert!(report.faults.iter().any(|fault| fault.what.contains("another log of north")), "{report}");
    let empty = run.folder.path().join("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    assert_eq!(audit(&[&empty], &run.contract, &VOCABULARY).unwrap().faults.len(), 1);
    let none = run.folder.path().join("none.jsonl");
    crate::says(audit(&[&none], &run.contract, &VOCABULARY), &["none.jsonl", "read"]);
}

#[test]
fn a_site_that_came_again_and_one_that_never_closed_are_told_of() {
    let mut run = Run::new(OPEN);
    run.round(0);
    run.exchange_notes();
    run.tell((0, 1), models(Way::Out, "", 1, 500), |_| None);
    drop(run.logs.remove(1));
    let path = &run.paths()[1];
    let log = AuditLog::reopen(path, &key(1), &run.contract, &policy(OPEN), |_| ()).unwrap().log;
    run.logs.insert(1, log);
    run.round(1);
    drop(run.logs.remove(2));
    run.logs.drain(..).for_each(|log| drop(log.close(0, None).unwrap()));
    let report = run.audit();
    assert!(report.is_clean(), "{report}");
    assert_eq!((report.logs[1].opened, report.logs[2].exit_code), (2, None));
    assert!(report.remarks.iter().any(|remark| remark.contains("west.jsonl: not closed")), "{report}");
    assert!(report.remarks.iter().any(|remark| remark.contains("1 frames of 524 bytes")), "{report}");
}

#[test]
fn a_long_log_is_checked_line_by_line() {
    let (contract, folder) = (contract(), tempfile::tempdir().unwrap());
    let rounds: u32 = std::env::var("LACONIC_LONG_LOG").map_or(5_000, |rounds| rounds.parse().unwrap());
    let policy = policy(OPEN);
    let create = |number: u8| {
        let path = path(folder.path(), NAMES[usize::from(number)]);
        AuditLog::create(path, &key(number), &contract, &policy).unwrap()
    };
    let (mut north, mut south) = (create(0), create(1));
    for round in 0..rounds {
        north.write(&Entry::Crossing(models(Way::Out, "south", round, 1000))).unwrap();
        south.write(&Entry::Crossing(models(Way::In, "north", round, 1000))).unwrap();
    }
    north.close(0, None).unwrap();
    south.close(0, None).unwrap();
    let report = audit(&[0, 1].map(|at| path(folder.path(), NAMES[at])), &contract, &VOCABULARY).unwrap();
    assert!(report.is_clean(), "{report}");
    assert_eq!(report.table[0].frames, u64::from(rounds));
}
