//! `--set key=value`.

use crate::error::{Result, TrainError};

/// Sets one key. The value is read as TOML; what is not TOML is taken as text, so that quotes may be left out.
pub(crate) fn apply(table: &mut toml::Table, text: &str) -> Result<()> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(TrainError::config(format!("--set {text}: expected key=value")));
    };
    let (key, value) = (key.trim(), value.trim());
    let parsed = format!("value = {value}").parse::<toml::Table>().ok().and_then(|mut t| t.remove("value"));
    let value = parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()));
    let mut path: Vec<&str> = key.split('.').collect();
    let last =
        path.pop().filter(|k| !k.is_empty()).ok_or_else(|| TrainError::config(format!("--set {text}: no key")))?;
    let mut at = table;
    for step in path {
        let next = at.entry(step).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = match next {
            toml::Value::Table(table) => table,
            _ => return Err(TrainError::config(format!("--set {text}: {step} is a value, not a section"))),
        };
    }
    at.insert(last.to_owned(), value);
    Ok(())
}
