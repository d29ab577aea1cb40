//! Logs, being written.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use laconic_federation::{
    AuditLog, Contract, Crossing, Digest, Direction, Entry, Gate, LINE_MAX, Passed, Policy, Way, audit,
};

use crate::{VOCABULARY, contract, key, policy, says};

/// A policy that lets pass what the tests send.
pub const OPEN: &str = "version = 1\n[[allow]]\ncontent = \"*\"\n[[accept]]\ncontent = \"*\"\n";

/// Models of a round, which leave for a peer or come from it.
pub fn models(way: Way, peer: &str, round: u32, payload: u64) -> Passed<'_> {
    let bytes = payload + 24;
    let direction = Direction::Forward;
    let crossing = Crossing { way, peer, content: "models", purpose: "training", layer: 0, direction, bytes };
    Passed { crossing, round, step: 0, frames: 1, payload, mac: Some(Digest::of(&payload.to_le_bytes())) }
}

fn create(path: &Path, contract: &Contract, policy: &Policy) -> AuditLog {
    AuditLog::create(path, &key(0), contract, policy).unwrap()
}

#[test]
fn a_log_has_a_line_of_sorted_keys_for_each_event_each_with_the_digest_of_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (contract, policy) = (contract(), policy(OPEN));
    let mut log = create(&path, &contract, &policy);
    log.write(&Entry::Link { peer: "south", path: "192.0.2.1:7443", connected: true }).unwrap();
    log.write(&Entry::Crossing(models(Way::Out, "south", 3, 100))).unwrap();
    // What was written is in the file at once.
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
    let (content, purpose, reason) = ("features", "training", "no rule allows it");
    log.write(&Entry::Refused { way: Way::Out, peer: "west", content, purpose, reason }).unwrap();
    let note = log.checkpoint().unwrap();
    log.close(0, Some(Digest::of(b"parameters"))).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let (mut prev, mut time) = (String::new(), String::new());
    let mut types = Vec::new();
    for (line, seq) in text.lines().zip(1..) {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        let object = value.as_object().unwrap();
        let keys: Vec<usize> = object.keys().map(|key| line.find(&format!("\"{key}\":")).unwrap()).collect();
        assert!(object.keys().is_sorted() && keys.is_sorted() && !line.contains(": "), "{line}");
        assert_eq!((object["seq"].as_u64(), object["prev"].as_str()), (Some(seq), Some(prev.as_str())));
        let now = object["time"].as_str().unwrap().to_owned();
        assert!(now >= time);
        types.push(object["type"].as_str().unwrap().to_owned());
        (prev, time) = (format!("blake3:{}", blake3::hash(line.as_bytes()).to_hex()), now);
    }
    assert_eq!(types, ["open", "link", "crossing", "refused", "checkpoint", "close", "checkpoint"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["run"], &lines[0]["site"]), (&contract.id().into(), &"north".into()));
    assert_eq!((&lines[0]["policy_text"], &lines[4]["note"]), (&OPEN.into(), &note.into()));
    assert_eq!((&lines[2]["framed"], &lines[5]["out_framed"]), (&124.into(), &124.into()));
}

#[test]
fn a_log_is_never_replaced_and_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (contract, policy) = (contract(), policy(OPEN));
    let log = create(&path, &contract, &policy);
    says(AuditLog::create(&path, &key(0), &contract, &policy), &["audit.jsonl", "never replaced"]);
    says(AuditLog::reopen(&path, &key(0), &contract, &policy, |_| ()), &["another process"]);
    drop(log);
    AuditLog::reopen(&path, &key(0), &contract, &policy, |_| ()).unwrap();
    let other = folder.path().join("other.jsonl");
    says(AuditLog::create(&other, &key(9), &contract, &policy), &["no site's"]);
    assert!(!other.exists());
}

#[test]
fn a_torn_line_is_cut_off_and_the_log_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (contract, policy) = (contract(), policy(OPEN));
    let path = folder.path().join("audit.jsonl");
    let mut log = create(&path, &contract, &policy);
    log.write(&Entry::Crossing(models(Way::Out, "south", 0, 100))).unwrap();
    log.write(&Entry::Crossing(models(Way::In, "south", 0, 50))).unwrap();
    drop(log);
    let whole = std::fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    // Whatever of the last line had been written when the machine stopped.
    for end in last..whole.len() {
        let path = folder.path().join(format!("{end}.jsonl"));
        std::fs::write(&path, &whole[..end]).unwrap();
        let mut gate = Gate::new(policy.clone());
        let reopened = AuditLog::reopen(&path, &key(0), &contract, &policy, |entry| {
            if let Entry::Crossing(passed) = entry {
                assert!(gate.pass(&passed.crossing).is_allowed());
            }
        });
        let reopened = reopened.unwrap();
        assert_eq!((reopened.torn_bytes, gate.bytes_out()), ((end - last) as u64, 124));
        let mut log = reopened.log;
        log.write(&Entry::Crossing(models(Way::Out, "south", 1, 7))).unwrap();
        log.close(0, None).unwrap();
        let report = audit(&[&path], &contract, &VOCABULARY).unwrap();
        assert!(report.is_clean(), "{report}");
        assert_eq!((report.logs[0].opened, report.table[0].framed), (2, 155));
    }
}

#[test]
fn a_log_that_was_changed_or_is_anothers_does_not_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (contract, policy) = (contract(), policy(OPEN));
    let mut log = create(&path, &contract, &policy);
    log.write(&Entry::Crossing(models(Way::Out, "south", 0, 100))).unwrap();
    log.write(&Entry::Crossing(models(Way::Out, "south", 1, 100))).unwrap();
    drop(log);
    let reopen = |contract: &Contract, policy: &Policy, number: u8| {
        AuditLog::reopen(&path, &key(number), contract, policy, |_| ())
    };
    let whole = std::fs::read_to_string(&path).unwrap();
    let stricter = crate::policy(&OPEN.replace("[[accept]]", "[[deny]]"));
    says(reopen(&contract, &stricter, 0), &["line 1", "policy", "a new log"]);
    says(reopen(&contract, &policy, 1), &["line 1", "key"]);
    says(reopen(&crate::contract(), &policy, 0), &["line 1", "contract"]);
    std::fs::write(&path, whole.replacen("\"payload\":100", "\"payload\":101", 1)).unwrap();
    says(reopen(&contract, &policy, 0), &["line 3", "was changed"]);
    std::fs::write(&path, format!("{whole}{}\n", "x".repeat(LINE_MAX))).unwrap();
    says(reopen(&contract, &policy, 0), &["line 4", "65536"]);
    std::fs::write(&path, &whole).unwrap();
    reopen(&contract, &policy, 0).unwrap().log.close(5, None).unwrap();
    says(reopen(&contract, &policy, 0), &["closed"]);
}

#[test]
fn lines_that_no_log_may_have_are_refused_and_leave_it_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (contract, policy) = (contract(), policy(OPEN));
    let mut log = create(&path, &contract, &policy);
    let before = std::fs::read(&path).unwrap();
    says(log.write(&Entry::Crossing(models(Way::Out, "east", 0, 1))), &["east"]);
    says(log.write(&Entry::Crossing(models(Way::Out, "north", 0, 1))), &["north"]);
    let long = "\u{1}é".repeat(LINE_MAX / 2);
    let mut passed = models(Way::Out, "south", 0, 1);
    passed.crossing.content = &long;
    says(log.write(&Entry::Crossing(passed)), &["shorten"]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // What a peer has a say in is cut off: nobody outside makes a line too long.
    log.write(&Entry::Link { peer: "south", path: &long, connected: true }).unwrap();
    let (content, purpose, reason) = (&long[..], &long[1..], &long[..999]);
    log.write(&Entry::Refused { way: Way::In, peer: "south", content, purpose, reason }).unwrap();
    log.close(0, None).unwrap();
    assert!(audit(&[&path], &contract, &VOCABULARY).unwrap().is_clean());
}

#[test]
fn a_note_is_witnessed_if_a_peer_has_signed_it_and_its_log_has_not_gone_back() {
    let folder = tempfile::tempdir().unwrap();
    let (contract, policy) = (contract(), policy(OPEN));
    let mut north = create(&folder.path().join("north.jsonl"), &contract, &policy);
    let south = folder.path().join("south.jsonl");
    let mut log = AuditLog::create(&south, &key(1), &contract, &policy).unwrap();
    let first = log.checkpoint().unwrap();
    let second = log.checkpoint().unwrap();
    north.witness(&second).unwrap();
    north.witness(&second).unwrap();
    says(north.witness(&first), &["south", "cut back"]);
    let own = north.checkpoint().unwrap();
    says(north.witness(&own), &["own"]);
    says(north.witness(&second.replace("south", "west")), &["west", "not signed"]);
    says(north.witness(&second[..second.len() - 1]), &["no note"]);
    says(north.witness("note"), &["no note"]);
    // A note of another run.
    let other = crate::contract();
    let mut log = AuditLog::create(folder.path().join("other.jsonl"), &key(1), &other, &policy).unwrap();
    says(north.witness(&log.checkpoint().unwrap()), &[other.id(), contract.id()]);
    // What a site has witnessed, it knows after it was started again.
    drop(north);
    let path = folder.path().join("north.jsonl");
    let mut north = AuditLog::reopen(&path, &key(0), &contract, &policy, |_| ()).unwrap().log;
    says(north.witness(&first), &["cut back"]);
}

#[test]
fn what_is_behind_a_torn_line_is_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let (contract, policy) = (contract(), policy(OPEN));
    drop(create(&path, &contract, &policy));
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"content\":\n{}").unwrap();
    says(AuditLog::reopen(&path, &key(0), &contract, &policy, |_| ()), &["line 2"]);
}
