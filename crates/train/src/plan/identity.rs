//! What a run is: every value that decides its numbers, by name and in a fixed order.
//!
//! Workers compare theirs before they do anything else, and a checkpoint holds that of its run, so that whoever differs
//! is told in what.

use std::collections::BTreeMap;

use laconic_graph::about::{About, Scale};
use laconic_graph::part::GlobalCounts;
use serde::{Deserialize, Serialize};

use super::Plan;
use crate::config::{KEYS, Reach};
use crate::error::{Result, TrainError};
use crate::saved::OwnMemory;

/// The named values that decide a run's numbers: configuration, data, partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Identity {
    values: Vec<(String, String)>,
}

/// A name under which two identities have different values; `None` where one has no such name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference<'a> {
    /// The key of the configuration, or what it is about the data.
    pub name: &'a str,
    /// The value of each.
    pub values: [Option<&'a str>; 2],
}

/// The version of the program: workers have the same, a resumed run may have a later one.
const VERSION: &str = "the program's version";

/// The digest of who owns which node.
const PARTITION: &str = "the partition's digest";

/// The digest of the whole data.
const DATA: &str = "the data's digest";

/// How many parts there are, and workers.
const NUMBER: &str = "partition.parts";

/// How workers order their own rows.
const ORDER: &str = "partition.order";

/// What all parts hold together, where all workers know it.
const PARTS: &str = "what the parts hold";

impl Identity {
    /// The identity of a run of this plan on data of these counts.
    ///
    /// # Errors
    /// If the configuration cannot be written as TOML.
    pub fn of(plan: &Plan, counts: &GlobalCounts) -> Result<Identity> {
        let mut values = vec![(VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
        let mut keys = keys(plan)?;
        let ours = KEYS.iter().filter_map(|key| keys.remove_entry(key.key)).collect::<Vec<_>>();
        values.extend(ours.into_iter().chain(keys).filter(|(key, _)| Reach::of(key) != Reach::Process));
        let shape = [counts.columns as u64, counts.classes as u64, counts.nodes, counts.edges];
        let roles = [counts.train, counts.val, counts.test];
        let numbers =
            ["feature columns", "classes", "nodes", "edges", "training nodes", "validation nodes", "test nodes"];
        let numbers = numbers.iter().zip(shape.iter().chain(&roles));
        values.extend(numbers.map(|(name, number)| (format!("the data's {name}"), number.to_string())));
        for (name, value) in [
            ("several labels a node", counts.multi_label.to_string()),
            (DATA, counts.data_digest.clone()),
            (PARTITION, counts.partition_digest.clone()),
        ] {
            values.push((name.to_owned(), value));
        }
        if !counts.schema.is_empty() {
            values.push(("the schema's digest".to_owned(), counts.schema.clone()));
        }
        if plan.task.of_pairs && !counts.types.is_empty() {
            values.push(("which node is of which type".to_owned(), format!("blake3:{}", counts.types.digest())));
        }
        values.extend(meanings(counts).into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(Identity { values })
    }

    /// The same with what all parts hold, by the digest of each.
    #[must_use]
    pub fn with_parts(mut self, digests: impl IntoIterator<Item = [u8; 32]>) -> Identity {
        let mut hasher = blake3::Hasher::new();
        for digest in digests {
            hasher.update(&digest);
        }
        self.values.push((PARTS.to_owned(), format!("blake3:{}", hasher.finalize().to_hex())));
        self
    }

    /// A digest: equal ones mean equal runs.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        for text in self.values.iter().flat_map(|(name, value)| [name, value]) {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// The name of what is written from now on: of a run that begins, or that goes on from what was written under
    /// `before` after so many rounds. No two differ by chance: the same run again has the same name.
    pub fn run(&self, before: Option<(&str, u32)>) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.digest());
        if let Some((run, rounds)) = before {
            hasher.update(run.as_bytes()).update(&rounds.to_le_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Checks that a run may go on over other parts of the same data.
    fn check_moves(&self, before: &Identity, own: Option<OwnMemory>) -> std::result::Result<(), String> {
        let [now, then] = [self, before].map(|of| of.get(NUMBER).unwrap_or("0"));
        let differs = format!("{NUMBER} is {now}, and was {then} when the checkpoint was written");
        if let Some(OwnMemory { key, what }) = own {
            let value = self.get(key).map(|value| format!(" = {value}")).unwrap_or_default();
            let own = format!("with {key}{value} each worker remembers {what}, and no other does");
            return Err(format!("{differs}: {own}; go on over the parts that it had, or begin anew"));
        }
        if self.get(DATA).is_none_or(str::is_empty) {
            let what = "nobody knows the digest of the whole data, so other parts might be of other data";
            return Err(format!("{differs}: {what}"));
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// All differences from another, in the order of names.
    pub fn differences<'a>(&'a self, other: &'a Identity) -> impl Iterator<Item = Difference<'a>> {
        let names = |of: &'a Identity| of.values.iter().map(|(name, _)| name.as_str());
        let all = names(self).chain(names(other).filter(|name| self.get(name).is_none()));
        let both = all.map(|name| Difference { name, values: [self.get(name), other.get(name)] });
        both.filter(|Difference { values: [a, b], .. }| a != b)
    }

    /// Checks that a run of this identity may go on from a checkpoint of `before`; `given` are the keys that the user
    /// has set for it, and `own` what each worker alone remembers. Who sets the number of parts asks for other parts.
    ///
    /// # Errors
    /// If it is another run, or one of another course than the user has asked for; the text says what differs.
    pub fn check_goes_on(
        &self,
        before: &Identity,
        given: &[String],
        own: Option<OwnMemory>,
    ) -> std::result::Result<(), String> {
        // How parts were made is the same where they are; earlier programs did not know it of parts cut before.
        let is_same_partition = self.get(PARTITION).is_some() && self.get(PARTITION) == before.get(PARTITION);
        // The order of own rows is none of that: what workers remember of them is in it.
        let made_parts = |name: &str| name.starts_with("partition.") && name != ORDER;
        let is_other = !is_same_partition || self.get(NUMBER) != before.get(NUMBER);
        let moves = is_other && given.iter().any(|key| is_about(key, NUMBER));
        if moves {
            self.check_moves(before, own)?;
        }
        let of_parts = |name: &str| made_parts(name) || (moves && [PARTITION, PARTS].contains(&name));
        let counts = |name: &str| name != VERSION && !((is_same_partition || moves) && of_parts(name));
        for difference in self.differences(before).filter(|difference| counts(difference.name)) {
            let name = difference.name;
            let is_key = name.contains('.');
            let [now, then] = difference.values.map(|value| value.unwrap_or("not set"));
            let differs = format!("{name} is {now}, and was {then} when the checkpoint was written");
            let is_given = given.iter().any(|key| is_about(key, name));
            if is_key && is_given && Reach::of(name) == Reach::Course {
                continue;
            }
            let free = || Reach::Course.keys().chain(Reach::Process.keys()).collect::<Vec<_>>().join(", ");
            return Err(match (is_key, Reach::of(name)) {
                (false, _) if name == PARTITION => {
                    let what = "these are not the data that the run began with, or they are cut otherwise";
                    format!("{differs}: {what}; `laconic resume --workers N` goes on with another number of parts")
                }
                (false, _) => format!("{differs}: these are not the data that the run began with"),
                (true, Reach::Course) => format!("{differs}: to go on with it, say --set {name}={now}"),
                (true, _) => format!("{differs}; a resumed run may change {}", free()),
            });
        }
        Ok(())
    }
}

/// What the numbers of the data mean, as far as somebody has said it.
fn meanings(counts: &GlobalCounts) -> Vec<(&'static str, String)> {
    let About { classes, relations, node_types, features, columns, scale, of_typed_tables: _ } = &counts.about;
    let mut values = Vec::new();
    let mut enter = |name, value: String| values.push((name, shown(value)));
    if counts.weighted {
        enter("the data's edges", "weighted".to_owned());
    }
    if !classes.is_empty() {
        enter("the data's class names", format!("{classes:?}"));
    }
    if counts.relations > 0 {
        enter("the data's relations", counts.relations.to_string());
    }
    if !relations.is_empty() {
        enter("the data's relation names", format!("{relations:?}"));
    }
    if !node_types.is_empty() {
        enter("the data's types of nodes", format!("{node_types:?}"));
    }
    if !features.is_empty() {
        enter("the data's feature names", format!("{features:?}"));
    }
    if !columns.is_empty() {
        enter("the data's table columns", format!("{columns:?}"));
    }
    match scale {
        Scale::Given => {}
        Scale::RowNormalised => enter("the data's scale", "row-normalised".to_owned()),
        Scale::Standardised { means, deviations, rests, by_type } => {
            let by = format!("means {means:?} and deviations {deviations:?}");
            let rests = if rests.is_empty() { String::new() } else { format!(" and rests {rests:?}") };
            let types = if *by_type { ", for the nodes of each type" } else { "" };
            enter("the data's scale", format!("standardised by {by}{rests}{types}"));
        }
    }
    values
}

/// A value that is not too long to be read; of a longer one its beginning, and a digest of all of it.
fn shown(value: String) -> String {
    const CHARACTERS: usize = 160;
    match value.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}… (blake3:{})", &value[..end], blake3::hash(value.as_bytes()).to_hex()),
        None => value,
    }
}

/// Whether `--set given=…` sets a key: itself, its section, or something in it.
fn is_about(given: &str, key: &str) -> bool {
    let within = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    given == key || within(given, key) || within(key, given)
}

/// Every key that is read, with its value in one form.
fn keys(plan: &Plan) -> Result<BTreeMap<String, String>> {
    let text = plan.members.to_toml(&plan.config)?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| TrainError::config(error.to_string()))?;
    let mut keys = BTreeMap::new();
    for (section, values) in table {
        for (key, value) in values.as_table().into_iter().flatten() {
            keys.insert(format!("{section}.{key}"), value.to_string());
        }
    }
    let metrics: Vec<&str> = plan.metrics.iter().map(|metric| metric.name()).collect();
    keys.insert("train.metrics".to_owned(), metrics.join(", "));
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(values: &[(&str, &str)]) -> Identity {
        Identity { values: values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect() }
    }

    #[test]
    fn differences_come_in_order_and_a_name_that_only_one_has_is_one() {
        let one = identity(&[("model.arch", "gat"), ("model.heads", "8"), ("train.lr", "0.1")]);
        let other = identity(&[("model.arch", "gat"), ("train.lr", "0.2"), ("schedule.own", "1")]);
        let found: Vec<_> = one.differences(&other).map(|difference| (difference.name, difference.values)).collect();
        let expected = [
            ("model.heads", [Some("8"), None]),
            ("train.lr", [Some("0.1"), Some("0.2")]),
            ("schedule.own", [None, Some("1")]),
        ];
        assert_eq!(found, expected);
        assert_eq!(one.differences(&one).count(), 0);
    }

    #[test]
    fn other_values_have_another_digest_wherever_a_name_ends() {
        let digests = [&[("ab", "c")][..], &[("a", "bc")], &[("a", "b"), ("c", "")], &[]].map(|v| identity(v).digest());
        for (at, digest) in digests.iter().enumerate() {
            assert!(!digests[..at].contains(digest));
        }
    }

    #[test]
    fn a_later_version_of_the_program_goes_on_but_workers_have_the_same() {
        let (old, new) = (identity(&[(VERSION, "0.1.0")]), identity(&[(VERSION, "0.2.0")]));
        assert_eq!(old.differences(&new).next().map(|difference| difference.name), Some(VERSION));
        assert_eq!(new.check_goes_on(&old, &[], None), Ok(()));
    }

    #[test]
    fn how_the_parts_were_made_does_not_matter_where_they_are_the_same() {
        let of = |method: &str, digest: &str| identity(&[("partition.method", method), (PARTITION, digest)]);
        assert_eq!(of("multilevel", "a").check_goes_on(&of("random", "a"), &[], None), Ok(()));
        let refused =
            of("multilevel", "b").check_goes_on(&of("random", "a"), &[], None).expect_err("another partition");
        assert!(refused.starts_with("partition.method"), "{refused}");
        assert!(of("random", "b").check_goes_on(&of("random", "a"), &[], None).is_err());
        // What workers have written of own rows is in the order of these.
        let ordered = identity(&[("partition.order", "locality"), (PARTITION, "a")]);
        let refused = ordered.check_goes_on(&identity(&[(PARTITION, "a")]), &[], None).expect_err("another order");
        assert!(refused.starts_with("partition.order is locality"), "{refused}");
    }

    #[test]
    fn what_is_written_of_a_run_is_called_by_what_is_run_and_where_it_went_on() {
        let (one, other) = (identity(&[("train.lr", "0.1")]), identity(&[("train.lr", "0.2")]));
        let names =
            [one.run(None), other.run(None), one.run(Some(("a", 3))), one.run(Some(("a", 4))), one.run(Some(("b", 3)))];
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name));
        }
        assert_eq!(one.run(Some(("a", 3))), names[2]);
    }

    #[test]
    fn a_key_may_change_where_it_its_section_or_a_part_of_it_is_set() {
        let (before, now) = (identity(&[("train.lr", "0.1")]), identity(&[("train.lr", "0.2")]));
        for (given, may) in
            [("train.lr", true), ("train", true), ("train.lr.x", true), ("train.l", false), ("lr", false)]
        {
            assert_eq!(now.check_goes_on(&before, &[given.to_owned()], None).is_ok(), may, "{given}");
        }
    }
}
