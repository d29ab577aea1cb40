//! The list of keys, made from the fields of the configuration: names, meanings and defaults are written there alone.

use std::sync::LazyLock;

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

/// Every key of a configuration, by name.
pub static KEYS: LazyLock<Vec<KeyDoc>> = LazyLock::new(|| {
    let schema = schema();
    let sections = properties(schema.as_value()).into_iter().flatten();
    let keys = sections.flat_map(|(section, value)| {
        let keys = properties(resolved(schema.as_value(), value)).into_iter().flatten();
        // They are listed once, and live as long as the program.
        keys.map(move |(key, about)| KeyDoc { key: format!("{section}.{key}").leak(), doc: meaning(about).leak() })
    });
    keys.collect()
});

/// The JSON schema of a configuration, draft 2020-12: for editors, and for programs that write configurations.
pub fn schema() -> Schema {
    schema_for!(Config)
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
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Bool(_) => Some(default.to_string()),
        Value::Number(number) => {
            let number = number.as_f64()?;
            let short = number as f32;
            // Of the shortest number of 32 bits, which stands here with 64.
            let text = if f64::from(short) == number { format!("{short:?}") } else { format!("{number:?}") };
            Some(text.trim_end_matches(".0").to_owned())
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
