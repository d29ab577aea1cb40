//! What sites rely on, as laws: each test is named after the one that it checks.

mod agreements;
mod audits;
mod cards;
mod contracts;
mod keys;
mod logs;
mod nonsense;
mod policies;

use laconic_federation::{Contract, Digest, Policy, Site, SiteKey, Terms, Vocabulary};

/// Names as a program may have them.
const VOCABULARY: Vocabulary = Vocabulary {
    contents: &[
        ("agreement", "Digests, times and notes."),
        ("features", "Input features of nodes."),
        ("hidden_rows", "Hidden rows of nodes."),
        ("ids", "Ids of nodes that a site needs rows of."),
        ("figures", "Sums of losses, and counts."),
        ("models", "Parameters."),
        ("training_labels", "Classes of nodes that are learned from."),
    ],
    purposes: &["training", "evaluation", "start_up"],
    groups: &[("rows", &["features", "hidden_rows"]), ("labels", &["training_labels"])],
    always: &["agreement"],
    first: &["ids", "figures", "models"],
};

/// Keys of sites, the same in each run of the tests.
fn key(number: u8) -> SiteKey {
    SiteKey::from_seed([number + 1; 32])
}

const NAMES: [&str; 3] = ["north", "south", "west"];

fn terms() -> Terms {
    let sites = NAMES.iter().zip(0..).map(|(name, number)| Site {
        addresses: vec![format!("192.0.2.{number}:7443").parse().unwrap()],
        key: key(number).public(),
        name: (*name).to_owned(),
    });
    Terms {
        run: "stroke-3".to_owned(),
        expires: "9999-12-31".parse().unwrap(),
        program: "laconic 0.1.0".to_owned(),
        wire: 7,
        config: "[train]\nrate = 1.0e-2 # \"slow\"\nrounds = 180\n".to_owned(),
        sites: sites.collect(),
        relays: vec!["https://relay.example.org".to_owned()],
    }
}

fn contract() -> Contract {
    Contract::make(terms()).unwrap()
}

fn policy(text: &str) -> Policy {
    Policy::parse(text, &VOCABULARY).unwrap_or_else(|e| panic!("{e}"))
}

/// The message of an error, which has to name each of some words.
fn says<T: std::fmt::Debug, E: std::fmt::Display>(result: Result<T, E>, words: &[&str]) {
    let message = result.map_err(|e| e.to_string()).expect_err("an error");
    words.iter().for_each(|word| assert!(message.contains(word), "{word:?} in {message:?}"));
}

/// What mutations are made of: a byte for each place, the same in each run of the tests.
fn other_byte(byte: u8, at: usize) -> u8 {
    let step = Digest::of(&at.to_le_bytes()).as_bytes()[0];
    byte ^ if step == 0 { 1 } else { step }
}
