//! The list of keys, made from the fields of the configuration: names, meanings and defaults are written there alone.

use std::sync::LazyLock;

use schemars::transform::{RecursiveTransform, Transform};
use schemars::{Schema, schema_for};
use serde_json::{Map, Value};

use super::Config;

/// One key with what it means.
#[derive(Debug, Clone, Copy)]
pub struct KeyDoc {
    /// The key with its section, such as `train.lr`.
    pub key: &'static str,
    /// What it means, and in brackets at its end its default. Names before a colon are those of the members that read
    /// it: with others it is refused.
    pub doc: &'static str,
}

/// The sections in the order in which they are told: data, what is learned from them, and how.
const SECTIONS: [&str; 12] = [
    "data",
    "partition",
    "model",
    "task",
    "train",
    "batch",
    "schedule",
    "averaging",
    "messages",
    "transport",
    "policy",
    "out",
];

/// Keys by which others are read or not: they come first in their section, so that of two configurations that differ
/// the key that decides is named.
const DECIDING: [&str; 9] = [
    "partition.method",
    "model.arch",
    "task.kind",
    "train.optimiser",
    "train.lr_schedule",
    "batch.size",
    "batch.kind",
    "schedule.kind",
    "schedule.evaluator",
];

/// Every key of a configuration, by section and name.
pub static KEYS: LazyLock<Vec<KeyDoc>> = LazyLock::new(|| {
    let schema = schema();
    let sections = properties(schema.as_value()).into_iter().flatten();
    let keys = sections.flat_map(|(section, value)| {
        let keys = properties(resolved(schema.as_value(), value)).into_iter().flatten();
        // They are listed once, and live as long as the program.
        keys.map(move |(key, about)| KeyDoc { key: format!("{section}.{key}").leak(), doc: meaning(about).leak() })
    });
    let mut keys: Vec<KeyDoc> = keys.collect();
    let section = |key: &KeyDoc| SECTIONS.iter().position(|section| key.key.split('.').next() == Some(section));
    let decides = |key: &KeyDoc| DECIDING.iter().position(|known| *known == key.key).unwrap_or(DECIDING.len());
    keys.sort_by_key(|key| (section(key), decides(key)));
    keys
});

/// The JSON schema of a configuration, draft 2020-12: for editors, and for programs that write configurations.
pub fn schema() -> Schema {
    let mut schema = schema_for!(Config);
    RecursiveTransform(shorten_default).transform(&mut schema);
    schema
}

/// Defaults as people write them: numbers of 32 bits in their shortest form, and none where it is empty.
fn shorten_default(schema: &mut Schema) {
    let Some(default) = schema.get("default") else { return };
    let short = |number: f64| format!("{:?}", number as f32).parse::<f64>();
    match (default, default.as_f64().filter(|number| f64::from(*number as f32) == *number).map(short)) {
        (Value::Number(number), Some(Ok(short))) if number.is_f64() => {
            schema.insert("default".to_owned(), short.into());
        }
        (Value::String(text), _) if text.is_empty() => {
            schema.remove("default");
        }
        _ => {}
    }
}

fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// What a reference stands for; other schemas stand for themselves.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    name.and_then(|path| root.pointer(path)).unwrap_or(schema)
}

/// A field's documentation in one line, without the full stop and with its default.
fn meaning(about: &Value) -> String {
    let text = about.get("description").and_then(Value::as_str).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.trim_end_matches('.');
    let mut first = text.chars();
    // A sentence there, one of many lines here. What is all in capitals is a name.
    let text = match (first.next(), first.clone().next()) {
        (Some(capital), Some(next)) if next.is_lowercase() || next == ' ' => {
            format!("{}{}", capital.to_lowercase(), first.as_str())
        }
        _ => text.to_owned(),
    };
    match about.get("default").and_then(in_words) {
        // Some say in brackets what the default stands for.
        Some(default) if !is_explained(&text, &default) => format!("{text} ({default})"),
        _ => text,
    }
}

/// Whether the brackets at the end of a text begin with this default.
fn is_explained(text: &str, default: &str) -> bool {
    let brackets = text.strip_suffix(')').and_then(|text| text.rsplit_once('('));
    brackets.is_some_and(|(_, inside)| inside.starts_with(default))
}

/// A default as a configuration would say it; nothing for what is empty by default, and for tables.
fn in_words(default: &Value) -> Option<String> {
    match default {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) => Some(default.to_string()),
        Value::Number(number) => {
            let number = number.as_f64()?;
            Some(format!("{number:?}").trim_end_matches(".0").to_owned())
        }
        Value::Array(list) if list.is_empty() => Some("[]".to_owned()),
        _ => None,
    }
}

/// Every key that serialises, for the test that [`KEYS`] is complete.
#[cfg(test)]
pub(crate) fn serialised() -> Vec<String> {
    let table = toml::Table::try_from(Config::default()).expect("plain values");
    let keys = |(section, value): (&String, &toml::Value)| {
        let keys = value.as_table().expect("sections").keys().map(|key| format!("{section}.{key}"));
        keys.collect::<Vec<_>>()
    };
    table.iter().flat_map(keys).collect()
}
