//! Ids that are not among the nodes, but would be if both were written alike.

use super::numbers::shorten;
use super::table::IdColumn;
use std::collections::{HashMap, HashSet};

/// An id without what is often written before or behind it: a plus or zeros, `.0`; and in small letters.
fn plain(id: &str) -> String {
    let id = id.trim();
    let id = id.strip_suffix(".0").unwrap_or(id);
    let rest = id.trim_start_matches('+').trim_start_matches('0');
    if rest.is_empty() { id.to_lowercase() } else { rest.to_lowercase() }
}

/// What two spellings of one id differ in.
fn difference(one: &str, other: &str) -> &'static str {
    let differ = |is: &dyn Fn(&str) -> bool| is(one) != is(other);
    if differ(&|id| id.starts_with('+')) {
        "a '+' before it"
    } else if differ(&|id| id.ends_with(".0")) {
        "a '.0' behind it, as of numbers that were floating-point for a while"
    } else if differ(&|id| id.starts_with('0')) {
        "zeros before it"
    } else {
        "capital letters or spaces"
    }
}

/// How many of these unknown ids some node has in another spelling, with an example; empty where none has.
pub fn hint(unknown: &HashSet<String>, ids: &IdColumn) -> String {
    let IdColumn::Texts(ids) = ids else { return String::new() };
    let spelt: HashMap<String, &str> = ids.iter().map(|id| (plain(id), id)).collect();
    let mut near: Vec<(&str, &str)> =
        unknown.iter().filter_map(|id| Some((id.as_str(), *spelt.get(&plain(id))?))).collect();
    near.sort_unstable();
    let Some((one, other)) = near.first() else { return String::new() };
    format!(
        "; {} of {} such ids are there in another spelling, '{}' as '{}': they differ in {}; write both tables alike",
        near.len(),
        unknown.len(),
        shorten(one),
        shorten(other),
        difference(one, other)
    )
}
