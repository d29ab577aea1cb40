//! `--set key=value`, and `--unset key`, which is the override `!key`.

use super::messages::AUTO;
use super::typed::quote_words;
use crate::error::{Result, TrainError};

/// What stands before the key of an override that takes the key out of the file.
pub(crate) const UNSET: char = '!';

/// Writes `messages = "auto"` out as the table that it stands for.
pub(crate) fn write_out(table: &mut toml::Table) {
    if let Some(messages) = table.get_mut("messages").filter(|messages| messages.as_str() == Some(AUTO)) {
        *messages = toml::Table::from_iter([(AUTO.to_owned(), true.into())]).into();
    }
}

/// Takes one key, or a whole section, out.
fn unset(table: &mut toml::Table, key: &str) -> Result<()> {
    let absent = || TrainError::config(format!("--unset {key}: the file has no such key to leave out"));
    let mut at = table;
    let (path, last) = key.rsplit_once('.').unwrap_or(("", key));
    for step in path.split('.').filter(|step| !step.is_empty()) {
        at = at.get_mut(step).and_then(toml::Value::as_table_mut).ok_or_else(absent)?;
    }
    at.remove(last).map(drop).ok_or_else(absent)
}

/// Sets one key, or takes it out. The value is read as TOML; what is not TOML is taken as text, so that quotes
/// may be left out, but for those within a table or a list.
pub(crate) fn apply(table: &mut toml::Table, text: &str) -> Result<()> {
    if let Some(key) = text.strip_prefix(UNSET) {
        return unset(table, key.trim());
    }
    let Some((key, value)) = text.split_once('=') else {
        return Err(TrainError::config(format!("--set {text}: expected key=value")));
    };
    let (key, value) = (key.trim(), value.trim());
    let value = match read(value) {
        Some(value) => value,
        None if value.starts_with(['{', '[']) => {
            let quoted = quote_words(value);
            let hint = read(&quoted).map(|_| format!("; text within stands in quotes: --set '{key}={quoted}'"));
            let what = format!("--set {text}: expected a value of TOML{}", hint.unwrap_or_default());
            return Err(TrainError::config(what));
        }
        None => toml::Value::String(value.to_owned()),
    };
    let mut path: Vec<&str> = key.split('.').collect();
    let last =
        path.pop().filter(|k| !k.is_empty()).ok_or_else(|| TrainError::config(format!("--set {text}: no key")))?;
    let mut at = &mut *table;
    for step in path {
        let next = at.entry(step).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = match next {
            toml::Value::Table(table) => table,
            _ => return Err(TrainError::config(format!("--set {text}: {step} is a value, not a section"))),
        };
    }
    at.insert(last.to_owned(), value);
    write_out(table);
    Ok(())
}

fn read(value: &str) -> Option<toml::Value> {
    format!("value = {value}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"))
}

/// The override that an error is about, where it names a key that was set so.
pub(crate) fn culprit<'a>(error: &TrainError, overrides: &'a [String]) -> Option<&'a str> {
    let TrainError::Config(text) = error else { return None };
    let text = text.strip_prefix("unknown key \"").unwrap_or(text);
    let is_key = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let named = text.split(|c| !is_key(c)).next().filter(|named| !named.is_empty())?;
    let within = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'));
    let sets = |set: &&String| {
        let key = set.split('=').next().unwrap_or_default().trim();
        key == named || within(named, key) || within(key, named)
    };
    // The last of them decides.
    overrides.iter().rev().find(sets).map(String::as_str)
}
