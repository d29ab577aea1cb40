//! What sites hand each other and leave behind: cards, contracts, signatures, policies and logs. The first byte chooses
//! which; what is accepted has one text.
#![no_main]

use laconic_federation::{
    Agreement, AuditLog, Card, Contract, Crossing, Date, Direction, Entry, Policy, SiteKey, Terms, Vocabulary, Way,
    audit,
};
use laconic_fuzz::apply;

const NAMES: Vocabulary = Vocabulary {
    contents: &[("models", "Parameters."), ("labels", "Classes."), ("refusal", "No.")],
    purposes: &["training", "evaluation"],
    groups: &[("all", &["models", "labels"])],
    always: &["refusal"],
    first: &["models"],
};

fn key(seed: u8) -> SiteKey {
    SiteKey::from_seed([seed; 32])
}

fn contract() -> Contract {
    let site = |name: &str, seed| Card::make(name, Vec::new(), &key(seed)).expect("a card").site().clone();
    let terms = Terms {
        run: "run".to_owned(),
        expires: Date::new(2100, 1, 1).expect("a day"),
        program: "1".to_owned(),
        wire: 1,
        config: "a = 1\n".to_owned(),
        sites: vec![site("north", 1), site("south", 2)],
        relays: vec!["https://relay.example.org".to_owned()],
    };
    Contract::make(terms).expect("a contract")
}

/// The bytes of a log of a contract's first site.
fn log(contract: &Contract, policy: &Policy, path: &std::path::Path) -> Vec<u8> {
    let mut log = AuditLog::create(path, &key(1), contract, policy).expect("a log");
    log.write(&Entry::Link { peer: "south", path: "ip:192.0.2.7:7443", connected: true }).expect("a line");
    log.close(0, None).expect("an end");
    std::fs::read(path).expect("its bytes")
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let (which, input) = input.split_first().map_or((0, input), |(first, rest)| (first % 5, rest));
    let (contract, template) = (contract(), Policy::template(&NAMES));
    let mut bytes = match which {
        0 => Card::make("north", Vec::new(), &key(1)).expect("a card").text().into_bytes(),
        1 => contract.text().as_bytes().to_vec(),
        2 => {
            let mut agreement = Agreement::new(&contract);
            agreement.sign(&key(1)).expect("a site of it");
            agreement.text().into_bytes()
        }
        3 => template.clone().into_bytes(),
        _ => {
            let folder = tempfile::tempdir().expect("a folder");
            let policy = Policy::parse(&template, &NAMES).expect("a policy");
            let path = folder.path().join("audit.jsonl");
            let mut bytes = log(&contract, &policy, &path);
            apply(input, &mut bytes);
            std::fs::write(&path, &bytes).expect("written");
            if let Ok(report) = audit(&[&path], &contract, &NAMES) {
                assert!(!input.is_empty() || report.is_clean(), "{report}");
            }
            return;
        }
    };
    apply(input, &mut bytes);
    let Ok(text) = String::from_utf8(bytes) else { return };
    let is_read = match which {
        0 => Card::parse(&text).map(|card| assert_eq!(Card::parse(&card.text()).expect("its own text"), card)).is_ok(),
        1 => Contract::parse(&text).map(|read| assert_eq!(read.text(), text)).is_ok(),
        2 => Agreement::new(&contract).add(&text).is_ok(),
        _ => Policy::parse(&text, &NAMES).map(|policy| drop(policy.decide(&CROSSING))).is_ok(),
    };
    assert!(is_read || !input.is_empty(), "what was not changed is refused");
});

const CROSSING: Crossing = Crossing {
    way: Way::Out,
    peer: "south",
    content: "models",
    purpose: "training",
    layer: 0,
    direction: Direction::Forward,
    bytes: 100,
};
