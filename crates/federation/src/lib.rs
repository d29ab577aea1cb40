//! What sites that train together have to hold against each other: keys, a contract that all sign, each site's own
//! policy of what may leave it, and logs that can be checked.
//!
//! There is no network here, no graph, and none of this project's other crates, so that an auditor can read and build
//! this crate alone. Names of what crosses between sites come from the caller ([`Vocabulary`]).
//!
//! - [`SiteKey`], [`PublicKey`]: an Ed25519 key is a site's identity. Whatever is signed begins with a [`Domain`] line.
//! - [`Card`]: what a site hands out about itself.
//! - [`Contract`], [`Agreement`]: what all sites run, in one form of bytes only, and the signatures of all.
//! - [`Policy`], [`Gate`]: what may leave a site and what it takes in; nothing, unless a rule allows it.
//! - [`AuditLog`], [`audit()`]: what has crossed, line by line, chained and signed; logs of several sites against each
//!   other.
//!
//! Three sites, from nothing to a log that is checked:
//!
//! ```
//! use laconic_federation::*;
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let file = |name: &str| folder.path().join(name);
//! // Each site makes a key and hands out its card.
//! let names = ["north", "south", "west"];
//! let keys = [SiteKey::new()?, SiteKey::new()?, SiteKey::new()?];
//! keys[0].write(file("north.key"))?;
//! let cards: Vec<Card> =
//!     names.iter().zip(&keys).map(|(name, key)| Card::make(name, Vec::new(), key)).collect::<Result<_>>()?;
//! // Somebody writes down what is to be run, and all sign it.
//! let contract = Contract::make(Terms {
//!     run: "stroke-3".into(),
//!     expires: "2999-12-31".parse()?,
//!     program: "laconic 0.1.0".into(),
//!     wire: 1,
//!     config: "train.rounds = 180".into(),
//!     sites: cards.iter().map(|card| card.site().clone()).collect(),
//!     relays: vec!["https://relay.example.org".into()],
//! })?;
//! let mut agreement = Agreement::new(&contract);
//! assert_eq!(agreement.missing(), names);
//! keys.iter().try_for_each(|key| agreement.sign(key))?;
//! agreement.verify()?;
//! contract.check(Time::now(), "laconic 0.1.0", 1)?;
//! // Each site has a policy of its own, a gate that holds to it, and a log.
//! let vocabulary = Vocabulary {
//!     contents: &[("models", "Parameters."), ("features", "Input features of nodes.")],
//!     purposes: &["training"],
//!     groups: &[],
//!     always: &[],
//!     first: &["models"],
//! };
//! let policy = Policy::parse(&Policy::template(&vocabulary), &vocabulary)?;
//! policy.admits(&contract.terms().run, Time::now().date())?;
//! let mut log = AuditLog::create(file("north.jsonl"), &keys[0], &contract, &policy)?;
//! let mut gate = Gate::new(policy);
//! let (way, peer, content, purpose) = (Way::Out, "south", "models", "training");
//! let crossing = Crossing { way, peer, content, purpose, layer: 0, direction: Direction::Forward, bytes: 1024 };
//! assert!(gate.pass(&crossing).is_allowed());
//! log.write(&Entry::Crossing(Passed { crossing, round: 0, step: 0, frames: 1, payload: 1000, mac: None }))?;
//! // Now the frame may be sent. At the end sites exchange notes of how far their logs have come, and close them.
//! let note = log.checkpoint()?;
//! log.close(0, None)?;
//! let report = audit(&[file("north.jsonl")], &contract, &vocabulary)?;
//! assert!(report.is_clean(), "{report}");
//! # Ok(())
//! # }
//! ```
//!
//! Every reader has a limit ([`FILE_MAX`], [`LINE_MAX`]) and refuses keys that it does not know.

mod agreement;
mod audit;
mod card;
mod contract;
mod digest;
mod error;
mod file;
mod key;
mod note;
mod policy;
mod site;
mod time;

pub use agreement::Agreement;
pub use audit::{AuditLog, Entry, Fault, LINE_MAX, Log, Passed, Reopened, Report, Row, audit};
pub use card::Card;
pub use contract::{Contract, Terms};
pub use digest::Digest;
pub use error::{FederationError, Result};
pub use file::FILE_MAX;
pub use key::{Domain, PublicKey, Signature, SiteKey};
pub use policy::{Crossing, Decision, Direction, Gate, Policy, RULES_MAX, Vocabulary, Way};
pub use site::{ADDRESSES_MAX, SITES_MAX, Site, is_name};
pub use time::{Date, Time};
