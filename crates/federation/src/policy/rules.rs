//! The text of a policy.

use std::collections::BTreeSet;

use serde::Deserialize;
use toml::{Spanned, Value};

use super::vocabulary::{Chosen, Names, Vocabulary};
use super::{Crossing, Direction, Policy, RULES_MAX, Way};
use crate::digest::Digest;
use crate::error::{FederationError, Result};
use crate::file;
use crate::site::{is_name, no_name};
use crate::time::Date;

/// The most bytes that a policy has as a string of JSON: it stands in one line of the audit log.
const JSON_MAX: usize = 60 * 1024;

/// The longest pattern of runs, in bytes.
const PATTERN_MAX: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    version: i64,
    #[serde(default)]
    allow: Vec<Spanned<RuleForm>>,
    #[serde(default)]
    deny: Vec<Spanned<RuleForm>>,
    #[serde(default)]
    accept: Vec<Spanned<RuleForm>>,
    #[serde(default)]
    limits: LimitsForm,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleForm {
    content: Value,
    to: Option<Value>,
    from: Option<Value>,
    layers: Option<Value>,
    direction: Option<Direction>,
    max_bytes: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct LimitsForm {
    max_bytes: Option<Value>,
    runs: Option<Value>,
    until: Option<Value>,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Allow,
    Deny,
    Accept,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Allow => "allow",
            Kind::Deny => "deny",
            Kind::Accept => "accept",
        }
    }
}

/// One rule: all that is given has to match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) kind: Kind,
    /// The line of the file where it begins, from 1.
    pub(super) line: usize,
    chosen: Chosen,
    /// Which way it is about; `None` for both.
    way: Option<Way>,
    /// Which peers; `None` for all.
    peers: Option<BTreeSet<String>>,
    layers: Option<BTreeSet<u16>>,
    direction: Option<Direction>,
    pub(super) max_bytes: Option<u64>,
}

impl Rule {
    /// Whether it is about such a crossing, which is at `place`; of bytes it says nothing.
    pub(super) fn matches(&self, crossing: &Crossing, place: usize) -> bool {
        self.chosen[place]
            && self.way.is_none_or(|way| way == crossing.way)
            && self.peers.as_ref().is_none_or(|peers| peers.contains(crossing.peer))
            && self.layers.as_ref().is_none_or(|layers| layers.contains(&crossing.layer))
            && self.direction.is_none_or(|direction| direction == crossing.direction)
    }

    /// The sites that it names.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.peers.iter().flatten().map(String::as_str)
    }

    /// The rule of a number, for people.
    pub(super) fn name(&self, number: usize) -> String {
        format!("rule {number} ({}, line {})", self.kind.name(), self.line)
    }
}

/// `[limits]`: bounds of the whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Limits {
    pub(super) max_bytes: Option<u64>,
    pub(super) runs: Option<Vec<String>>,
    pub(super) until: Option<Date>,
}

/// Reads the text of a policy.
pub(super) fn parse(file: &str, text: &str, vocabulary: &Vocabulary) -> Result<Policy> {
    let form: Form = file::toml(file, text)?;
    if form.version != 1 {
        return Err(FederationError::text(file, "version", format!("{}: expected 1", form.version)));
    }
    let length = serde_json::to_string(text).map_or(usize::MAX, |json| json.len());
    if length > JSON_MAX {
        let what = format!(
            "{length} bytes as a string of JSON, as which it stands in the audit log; at most {JSON_MAX} \
            are expected: shorten the comments"
        );
        return Err(FederationError::text(file, "the whole text", what));
    }
    let Form { allow, deny, accept, limits, .. } = form;
    let count = allow.len() + deny.len() + accept.len();
    if count > RULES_MAX {
        return Err(FederationError::text(file, "rules", format!("{count} rules; at most {RULES_MAX} are expected")));
    }
    let names = Names::of(vocabulary);
    let kinds = [(Kind::Allow, allow), (Kind::Deny, deny), (Kind::Accept, accept)];
    let all = kinds.into_iter().flat_map(|(kind, rules)| rules.into_iter().map(move |rule| (kind, rule)));
    let mut all: Vec<(Kind, Spanned<RuleForm>)> = all.collect();
    all.sort_by_key(|(_, rule)| rule.span().start);
    let mut rules = Vec::new();
    for (at, (kind, form)) in all.into_iter().enumerate() {
        let line = file::line_of(text, form.span().start);
        let rule = rule(kind, line, form.into_inner(), &names, vocabulary).map_err(|(key, what)| {
            let place = format!("rule {} ({}, line {line}): {key}", at + 1, kind.name());
            FederationError::text(file, place, what)
        })?;
        rules.push(rule);
    }
    let limits = limits_of(limits).map_err(|(key, what)| FederationError::text(file, format!("limits.{key}"), what))?;
    Ok(Policy {
        file: file.to_owned(),
        text: text.to_owned(),
        digest: Digest::of(text.as_bytes()),
        names,
        rules,
        limits,
    })
}

/// What is wrong: the key, and what is expected.
type Wrong = (&'static str, String);

fn rule(
    kind: Kind,
    line: usize,
    form: RuleForm,
    names: &Names,
    vocabulary: &Vocabulary,
) -> std::result::Result<Rule, Wrong> {
    let RuleForm { content, to, from, layers, direction, max_bytes } = form;
    let mut chosen = Chosen::new();
    for entry in texts(&content).map_err(|what| ("content", what))? {
        names.choose(vocabulary, entry, &mut chosen).map_err(|what| ("content", what))?;
    }
    let (way, peers) = match (kind, to, from) {
        (Kind::Allow, _, Some(_)) => return Err(("from", "[[allow]] is about what leaves: expected `to`".to_owned())),
        (Kind::Accept, Some(_), _) => {
            return Err(("to", "[[accept]] is about what comes in: expected `from`".to_owned()));
        }
        (Kind::Deny, Some(_), Some(_)) => {
            let what = "`to` is about what leaves and `from` about what comes in: write a rule for each";
            return Err(("from", what.to_owned()));
        }
        (Kind::Allow, to, None) => (Some(Way::Out), peers(to).map_err(|what| ("to", what))?),
        (Kind::Accept, None, from) => (Some(Way::In), peers(from).map_err(|what| ("from", what))?),
        (Kind::Deny, Some(to), None) => (Some(Way::Out), peers(Some(to)).map_err(|what| ("to", what))?),
        (Kind::Deny, None, Some(from)) => (Some(Way::In), peers(Some(from)).map_err(|what| ("from", what))?),
        (Kind::Deny, None, None) => (None, None),
    };
    if kind == Kind::Deny && max_bytes.is_some() {
        let what = "[[deny]] keeps all of it back: expected max_bytes in [[allow]], [[accept]] or [limits]";
        return Err(("max_bytes", what.to_owned()));
    }
    let layers = layers.as_ref().map(numbers).transpose().map_err(|what| ("layers", what))?;
    let max_bytes = max_bytes.as_ref().map(byte_count).transpose().map_err(|what| ("max_bytes", what))?;
    Ok(Rule { kind, line, chosen, way, peers, layers, direction, max_bytes })
}

fn limits_of(form: LimitsForm) -> std::result::Result<Limits, Wrong> {
    let max_bytes = form.max_bytes.as_ref().map(byte_count).transpose().map_err(|what| ("max_bytes", what))?;
    let until = form.until.as_ref().map(date).transpose().map_err(|what| ("until", what))?;
    let Some(runs) = form.runs else { return Ok(Limits { max_bytes, runs: None, until }) };
    let mut patterns = Vec::new();
    for pattern in texts(&runs).map_err(|what| ("runs", what))? {
        let plain: String = pattern.chars().filter(|c| *c != '*').collect();
        if pattern.len() > PATTERN_MAX || !(plain.is_empty() || is_name(&plain)) {
            let what = format!("{pattern:?}: expected the name of a run, in which * stands for any characters");
            return Err(("runs", what));
        }
        patterns.push(pattern.to_owned());
    }
    Ok(Limits { max_bytes, runs: Some(patterns), until })
}

/// A text, or a list of one or more.
fn texts(value: &Value) -> std::result::Result<Vec<&str>, String> {
    let list = match value {
        Value::String(text) => Some(vec![text.as_str()]),
        Value::Array(values) => values.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let list = list.filter(|list| !list.is_empty());
    list.ok_or_else(|| format!("{value}: expected a name, or a list of one or more such as [\"one\", \"two\"]"))
}

/// Names of sites; `None` for all.
fn peers(value: Option<Value>) -> std::result::Result<Option<BTreeSet<String>>, String> {
    let Some(value) = value else { return Ok(None) };
    let names = texts(&value)?;
    if names == ["*"] {
        return Ok(None);
    }
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("{}; or \"*\" alone for all sites", no_name(name))),
        None => Ok(Some(names.into_iter().map(str::to_owned).collect())),
    }
}

fn numbers(value: &Value) -> std::result::Result<BTreeSet<u16>, String> {
    let number = |value: &Value| value.as_integer().and_then(|number| u16::try_from(number).ok());
    let numbers: Option<BTreeSet<u16>> = match value {
        Value::Array(values) => values.iter().map(number).collect(),
        one => number(one).map(|one| BTreeSet::from([one])),
    };
    let numbers = numbers.filter(|numbers| !numbers.is_empty());
    numbers.ok_or_else(|| format!("{value}: expected numbers of layers from 0 to {}, such as [0, 1]", u16::MAX))
}

fn date(value: &Value) -> std::result::Result<Date, String> {
    let date = match value {
        Value::Datetime(toml::value::Datetime { date: Some(date), time: None, offset: None }) => {
            Date::new(date.year, date.month, date.day)
        }
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    date.ok_or_else(|| format!("{value}: expected a day such as 2027-03-31"))
}

/// A number of bytes: a number, or text such as `50 MB`, `1.5 GB` or `64 KiB`.
fn byte_count(value: &Value) -> std::result::Result<u64, String> {
    let count = match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        Value::String(text) => scaled(text),
        _ => None,
    };
    count.ok_or_else(|| format!("{value}: expected a number of bytes, or text such as \"50 MB\" or \"64 KiB\""))
}

fn scaled(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let scale: u128 = match unit.strip_prefix(' ').unwrap_or(unit) {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || whole.len() > 20 || part.is_empty() || part.len() > 12 || part.contains('.') {
        return None;
    }
    let tenths: u128 = 10_u128.pow(u32::try_from(part.len()).ok()?);
    // Rounded down: a limit is never more than what was written.
    u64::try_from((whole.parse::<u128>().ok()? * tenths + part.parse::<u128>().ok()?) * scale / tenths).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_bytes_are_read_as_written_and_nothing_else_is() {
        let fine = [("0", 0), ("50 MB", 50_000_000), ("64KiB", 65_536), ("1.5 GB", 1_500_000_000), ("0.0001 kB", 0)];
        fine.iter().for_each(|(text, bytes)| assert_eq!(scaled(text), Some(*bytes), "{text}"));
        let wrong =
            ["", "MB", " 5", "5  MB", "5 mb", "-5", "1.2.3", "1.", ".5", "1e9", "99999999999999999999 TB", "5 M"];
        wrong.iter().for_each(|text| assert_eq!(scaled(text), None, "{text}"));
    }
}
