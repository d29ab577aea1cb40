//! Readers of whatever bytes: an error or a report, never a panic.

use laconic_federation::{
    Agreement, AuditLog, Card, Contract, Digest, FILE_MAX, Policy, PublicKey, SiteKey, Time, audit,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::logs::OPEN;
use crate::{VOCABULARY, contract, key, policy, says};

/// A text that some changes have been made to, and cuts.
fn changed(text: &str, changes: &[(proptest::sample::Index, char, bool)]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for (at, to, remove) in changes {
        let at = at.index(chars.len().max(1));
        match remove {
            true if !chars.is_empty() => drop(chars.remove(at)),
            _ => chars.insert(at, *to),
        }
    }
    chars.into_iter().collect()
}

fn read_all(text: &str) {
    let contract = contract();
    drop(Card::parse(text));
    drop(Contract::parse(text));
    drop(Agreement::new(&contract).add(text));
    drop(Policy::parse(text, &VOCABULARY));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut log = AuditLog::create(&path, &key(0), &contract, &policy(OPEN)).unwrap();
    drop(log.witness(text));
    drop(log);
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{text}")).unwrap();
    let report = audit(&[&path], &contract, &VOCABULARY).unwrap();
    assert!(report.to_string().contains("audit.jsonl"));
    drop(AuditLog::reopen(&path, &key(0), &contract, &policy(OPEN), |_| ()));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, rng_seed: RngSeed::Fixed(2), failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_makes_a_reader_panic(text in "(?s).{0,200}") {
        read_all(&text);
        drop(text.parse::<PublicKey>());
        drop(text.parse::<Digest>());
        drop(text.parse::<Time>());
    }

    #[test]
    fn no_text_that_is_nearly_right_makes_a_reader_panic(
        which in 0_usize..5,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<char>(), any::<bool>()), 1..4),
    ) {
        let contract = contract();
        let mut agreement = Agreement::new(&contract);
        agreement.sign(&key(1)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        AuditLog::create(&path, &key(0), &contract, &policy(OPEN)).unwrap().close(0, None).unwrap();
        let texts = [
            Card::make("north", vec!["[::1]:1".parse().unwrap()], &key(0)).unwrap().text(),
            contract.text().to_owned(),
            agreement.text(),
            Policy::template(&VOCABULARY),
            std::fs::read_to_string(&path).unwrap(),
        ];
        read_all(&changed(&texts[which], &changes));
    }
}

#[test]
fn files_have_a_limit_and_are_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let contract = contract();
    let read = |words: &[&str]| {
        says(Card::read(&path), words);
        says(Contract::read(&path), words);
        says(Agreement::read(&path, &contract), words);
        says(Policy::read(&path, &VOCABULARY), words);
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        says(SiteKey::read(&path), words);
    };
    std::fs::write(&path, vec![b' '; FILE_MAX + 1]).unwrap();
    read(&["file", "65536"]);
    std::fs::write(&path, [b'a', b'\n', 0xff]).unwrap();
    read(&["file", "byte 3", "UTF-8"]);
    std::fs::remove_file(&path).unwrap();
    says(Contract::read(&path), &["file", "cannot read"]);
    // Depth is limited too.
    for deep in ["[", "{\"a\":", "a=[", "[[a", "a.", "{a="] {
        read_all(&deep.repeat(10_000));
    }
}
