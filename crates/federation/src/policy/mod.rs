//! A site's own policy: what may leave it and what it takes in. Nothing, unless a rule allows it.

mod rules;
mod template;
mod vocabulary;

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::contract::Contract;
use crate::digest::Digest;
use crate::error::{FederationError, Result};
use crate::file;
use crate::time::Date;
use rules::{Kind, Limits, Rule};
use vocabulary::Names;

pub use vocabulary::Vocabulary;

/// The most rules that a policy may have.
pub const RULES_MAX: usize = 256;

/// Whether something leaves a site or comes in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From this site to a peer.
    Out,
    /// From a peer to this site.
    In,
}

impl Way {
    /// `to` or `from`, as it stands before a peer's name.
    pub fn preposition(self) -> &'static str {
        match self {
            Way::Out => "to",
            Way::In => "from",
        }
    }
}

/// Which way something runs through the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From owners of rows to those who read them.
    Forward,
    /// From readers of rows to their owners.
    Reverse,
}

impl Direction {
    /// The name in files: `forward` or `reverse`.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Reverse => "reverse",
        }
    }
}

/// Something that is to cross between this site and a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossing<'a> {
    /// Whether it leaves or comes in.
    pub way: Way,
    /// The name of the other site.
    pub peer: &'a str,
    /// What it is: a name of the [`Vocabulary`].
    pub content: &'a str,
    /// What it is for: a name of the [`Vocabulary`].
    pub purpose: &'a str,
    /// The layer of the model, from 0.
    pub layer: u16,
    /// Which way it runs through the model.
    pub direction: Direction,
    /// How many bytes, with headers of frames.
    pub bytes: u64,
}

/// What a policy says of a crossing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may cross.
    Allowed {
        /// The rule that lets it: its place among all rules of the file, from 1; 0 for what always passes.
        rule: usize,
    },
    /// It may not cross.
    Denied {
        /// A sentence that names the rule that keeps it back, or says that none allows it.
        why: String,
    },
}

impl Decision {
    /// Whether it may cross.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allowed { .. })
    }
}

/// A site's own policy: what may leave it and what it takes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What errors call it.
    file: String,
    text: String,
    digest: Digest,
    names: Names,
    /// In the order of the file.
    rules: Vec<Rule>,
    limits: Limits,
}

/// Bytes that have crossed: by rule, and out in all.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Used {
    by_rule: Vec<u64>,
    out: u64,
}

impl Policy {
    /// Reads the text of a policy: TOML with `version = 1`, rules `[[allow]]`, `[[deny]]` and `[[accept]]`, and
    /// `[limits]`, as [`Policy::template`] explains them.
    ///
    /// # Errors
    /// With rule, line and key: if a name is not of the vocabulary, a key is unknown, or a value says nothing.
    pub fn parse(text: &str, vocabulary: &Vocabulary) -> Result<Policy> {
        rules::parse("policy", text, vocabulary)
    }

    /// Reads the file of a policy.
    ///
    /// # Errors
    /// As [`Policy::parse`], and if the file cannot be read or is larger than [`FILE_MAX`](crate::FILE_MAX).
    pub fn read(path: impl AsRef<Path>, vocabulary: &Vocabulary) -> Result<Policy> {
        let path = path.as_ref();
        rules::parse(&path.display().to_string(), &file::read(path)?, vocabulary)
    }

    /// A commented policy, to be changed: it allows the contents that the vocabulary names for a first one, and has a
    /// line that explains each of the others.
    pub fn template(vocabulary: &Vocabulary) -> String {
        template::template(vocabulary)
    }

    /// Its text, as it was read.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The digest of its text.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Sites that it names and the contract does not, in the order of their names. A policy may be for other runs too,
    /// so this is no error; but a mistyped name in `[[deny]]` keeps nothing back.
    pub fn strangers(&self, contract: &Contract) -> Vec<&str> {
        let named: BTreeSet<&str> = self.rules.iter().flat_map(Rule::named).collect();
        named.into_iter().filter(|name| contract.rank_of_name(name).is_none()).collect()
    }

    /// That this site takes part in a run of this name on this day.
    ///
    /// # Errors
    /// If `limits.runs` has no pattern for the name, or `limits.until` has passed.
    pub fn admits(&self, run: &str, today: Date) -> Result<()> {
        let wrong = |place: &str, what: String| Err(FederationError::text(&self.file, place, what));
        match &self.limits.runs {
            Some(patterns) if !patterns.iter().any(|pattern| fits(pattern, run)) => {
                let what =
                    format!("no run {run:?} is admitted, only {}: add its name to admit it", patterns.join(", "));
                return wrong("limits.runs", what);
            }
            _ => {}
        }
        match self.limits.until {
            Some(until) if today > until => {
                wrong("limits.until", format!("the last day was {until}, and today is {today}: set a later day"))
            }
            _ => Ok(()),
        }
    }

    /// What it says of a crossing, if nothing has crossed before. A rule with `max_bytes` lets no crossing of more
    /// bytes pass.
    pub fn decide(&self, crossing: &Crossing) -> Decision {
        self.decide_after(crossing, &Used { by_rule: vec![0; self.rules.len()], out: 0 })
    }

    /// What it says of a crossing after others: the first rule that allows it and has so many bytes left lets it pass.
    fn decide_after(&self, crossing: &Crossing, used: &Used) -> Decision {
        let what = || vocabulary::words(crossing);
        let Some(place) = self.names.place(crossing.content, crossing.purpose) else {
            return Decision::Denied { why: format!("{}: this policy knows no such content or purpose", what()) };
        };
        if self.names.always(place) {
            return Decision::Allowed { rule: 0 };
        }
        let matching = || (1..).zip(&self.rules).filter(|(_, rule)| rule.matches(crossing, place));
        if let Some((number, rule)) = matching().find(|(_, rule)| rule.kind == Kind::Deny) {
            return Decision::Denied { why: format!("{}: {} keeps it back", what(), rule.name(number)) };
        }
        let left = |number: usize, rule: &Rule| rule.max_bytes.map(|max| max.saturating_sub(used.by_rule[number - 1]));
        let opening = || matching().filter(|(_, rule)| rule.kind != Kind::Deny);
        let fits = |&(number, rule): &(usize, &Rule)| left(number, rule).is_none_or(|left| left >= crossing.bytes);
        let Some((number, _)) = opening().find(fits) else {
            let why = match opening().next() {
                Some((number, rule)) => {
                    let left = left(number, rule).unwrap_or(0);
                    format!("{} would let it pass, but of its max_bytes only {left} are left", rule.name(number))
                }
                None => "no rule allows it, and what no rule allows is denied".to_owned(),
            };
            return Decision::Denied { why: format!("{}: {why}", what()) };
        };
        match self.limits.max_bytes {
            Some(max) if crossing.way == Way::Out && used.out.saturating_add(crossing.bytes) > max => {
                let left = max.saturating_sub(used.out);
                Decision::Denied { why: format!("{}: of limits.max_bytes only {left} are left", what()) }
            }
            _ => Decision::Allowed { rule: number },
        }
    }
}

/// A policy, and what has crossed so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    policy: Policy,
    used: Used,
}

impl Gate {
    /// A gate that nothing has passed yet.
    pub fn new(policy: Policy) -> Gate {
        let used = Used { by_rule: vec![0; policy.rules.len()], out: 0 };
        Gate { policy, used }
    }

    /// What the policy says of a crossing after all those that have passed; where it is allowed, it counts from now on.
    /// What always passes counts against `limits.max_bytes` too, but is not kept back by it.
    pub fn pass(&mut self, crossing: &Crossing) -> Decision {
        let decision = self.policy.decide_after(crossing, &self.used);
        if let Decision::Allowed { rule } = decision {
            if let Some(used) = rule.checked_sub(1).and_then(|at| self.used.by_rule.get_mut(at)) {
                *used = used.saturating_add(crossing.bytes);
            }
            if crossing.way == Way::Out {
                self.used.out = self.used.out.saturating_add(crossing.bytes);
            }
        }
        decision
    }

    /// The policy that it holds to.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// How many bytes have left so far.
    pub fn bytes_out(&self) -> u64 {
        self.used.out
    }

    /// How many bytes the rule of a number, from 1, has let pass so far.
    pub fn bytes_by_rule(&self, rule: usize) -> u64 {
        rule.checked_sub(1).and_then(|at| self.used.by_rule.get(at)).copied().unwrap_or(0)
    }
}

/// Whether a name fits a pattern in which `*` stands for any characters.
fn fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else { return rest.is_empty() };
    for piece in pieces {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_characters() {
        let fitting =
            [("a", "a"), ("*", ""), ("*", "abc"), ("a*", "a"), ("a*c", "abc"), ("*b*", "abc"), ("a**a", "aa")];
        fitting.iter().for_each(|(pattern, name)| assert!(fits(pattern, name), "{pattern} {name}"));
        let others = [("", "a"), ("a", "ab"), ("a", ""), ("a*a", "a"), ("*b", "abc"), ("a*b*c", "acb"), ("a*", "ba")];
        others.iter().for_each(|(pattern, name)| assert!(!fits(pattern, name), "{pattern} {name}"));
    }
}
