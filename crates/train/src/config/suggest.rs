//! What was probably meant by a name that there is not: one that is misspelt, another program's, or of another section.

use super::keys::KEYS;
use super::usual::{ABSENT, FILLERS, KEYS_ELSEWHERE, SECTIONS_ELSEWHERE, VALUES_ABSENT, VALUES_ELSEWHERE};
use crate::error::{Result, TrainError};

/// What a name that is no key may stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// Keys that say the same, or are spelt nearly so.
    Keys(Vec<&'static str>),
    /// Something that there is not, and why.
    Absent(&'static str),
}

/// Refuses keys that do not exist, with what was probably meant; `foreign` are those that members from outside read.
pub(crate) fn refuse_unknown(table: &toml::Table, foreign: &[String]) -> Result<()> {
    for (section, value) in table {
        let toml::Value::Table(keys) = value else {
            return Err(match sections().any(|known| known == section) {
                true if section == "messages" => {
                    TrainError::config(format!("messages: expected a section or \"auto\", found {value}"))
                }
                true => TrainError::config(format!("{section}: expected a section, found {}", value.type_str())),
                false => unknown(section),
            });
        };
        if !sections().any(|known| known == section) {
            let hint = section_like(section).map(|known| format!("; did you mean {known:?}?")).unwrap_or_default();
            return Err(TrainError::config(format!("unknown key {section:?}{hint}")));
        }
        for key in keys.keys() {
            let full = format!("{section}.{key}");
            if !KEYS.iter().any(|k| k.key == full) && !foreign.contains(&full) {
                return Err(unknown(&full));
            }
        }
    }
    Ok(())
}

fn unknown(key: &str) -> TrainError {
    let hint = match meant(key) {
        Some(Meant::Keys(keys)) => {
            let keys: Vec<String> = keys.iter().map(|key| format!("{key:?}")).collect();
            format!("; did you mean {}?", keys.join(" or "))
        }
        Some(Meant::Absent(why)) => format!(": {why}"),
        None => String::new(),
    };
    TrainError::config(format!("unknown key {key:?}{hint}"))
}

/// What a name that is no key may stand for, with or without a section before it. Nothing where no key is near: a
/// suggestion that is only the best of bad ones sends people the wrong way.
pub fn meant(name: &str) -> Option<Meant> {
    let name = name.to_lowercase().replace('-', "_");
    let (section, bare) = name.rsplit_once('.').unwrap_or(("", &name));
    let without_fillers: Vec<&str> = bare.split('_').filter(|word| !FILLERS.contains(word)).collect();
    let core = without_fillers.join("_");
    let elsewhere = |called: &str| {
        let same = |bare: &str| KEYS.iter().filter(|k| bare_of(k.key) == bare).map(|k| k.key).collect::<Vec<_>>();
        let usual = || KEYS_ELSEWHERE.iter().find(|(other, _)| *other == called).map(|(_, keys)| keys.to_vec());
        let found = same(called);
        if found.is_empty() { usual() } else { Some(found) }
    };
    let absent = ABSENT.iter().find(|(names, _)| names.contains(&bare)).map(|(_, why)| Meant::Absent(why));
    let here = |keys: Vec<&'static str>| {
        // Of several keys of this name, the one of the section that was named, or of one spelt nearly so.
        let section = section_like(section).unwrap_or(section);
        let within: Vec<_> = keys.iter().copied().filter(|key| key.split('.').next() == Some(section)).collect();
        Meant::Keys(if within.is_empty() { keys } else { within })
    };
    let exact = elsewhere(bare).map(here);
    let found = exact.or(absent).or_else(|| elsewhere(&core).filter(|_| !core.is_empty()).map(here));
    found.or_else(|| {
        let in_section = nearest(bare, KEYS.iter().map(|k| k.key).filter(|key| key.split('.').next() == Some(section)));
        let anywhere = || nearest(bare, KEYS.iter().map(|k| k.key)).filter(|_| section.is_empty());
        in_section.or_else(anywhere).map(|key| Meant::Keys(vec![key]))
    })
}

fn bare_of(key: &str) -> &str {
    key.split_once('.').map_or(key, |(_, bare)| bare)
}

fn sections() -> impl Iterator<Item = &'static str> {
    KEYS.iter().filter_map(|k| k.key.split_once('.')).map(|(section, _)| section)
}

/// The section that is called or spelt nearly so.
fn section_like(name: &str) -> Option<&'static str> {
    let known = |name: &str| sections().find(|known| *known == name);
    let usual = || SECTIONS_ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, here)| *here);
    known(name).or_else(usual).or_else(|| sections().find(|known| is_near(name, known)))
}

/// The key whose name behind the section is most like `bare`.
fn nearest(bare: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let near = known.filter(|key| is_near(bare, bare_of(key)));
    near.min_by_key(|key| strsim::damerau_levenshtein(bare, bare_of(key)))
}

/// Whether one is the other with a slip or two, or its beginning.
fn is_near(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let slips = match long.len() {
        0..=3 => 0,
        4..=5 => 1,
        _ => 2,
    };
    short.len() >= 4 && long.starts_with(short) || strsim::damerau_levenshtein(a, b) <= slips
}

/// Checks that a value is one of the known names, and suggests what was probably meant if not.
pub(crate) fn one_of(key: &str, value: &str, names: &[&str]) -> Result<()> {
    if names.contains(&value) {
        return Ok(());
    }
    let hint = suggested(value, names).map(|hint| format!("; {hint}")).unwrap_or_default();
    Err(TrainError::config(format!("{key} = {value:?}: expected one of {}{hint}", names.join(", "))))
}

/// What was probably meant by a value that is none of the names, as the end of a sentence; nothing where none is near.
pub fn suggested(value: &str, names: &[&str]) -> Option<String> {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    let is = |name: &&str| plain(name) == plain(value);
    let here = |name: &&str| names.contains(name);
    if value.contains('=') {
        return Some("a table stands in braces, and the whole in single quotes: '{codec=\"NAME\",…}'".to_owned());
    }
    if value.contains(',') {
        let each: Vec<String> = value.split(',').map(|one| format!("{:?}", one.trim())).collect();
        return Some(format!("a list stands in brackets: [{}]", each.join(", ")));
    }
    if let Some((.., why)) = VALUES_ABSENT.iter().find(|(other, like, _)| other.iter().any(is) && here(like)) {
        return Some((*why).to_owned());
    }
    let same = names.iter().copied().find(|name| is(name));
    let elsewhere = || VALUES_ELSEWHERE.iter().find(|(other, name)| is(other) && here(name)).map(|(_, name)| *name);
    let near = || names.iter().copied().find(|name| is_near(&value.to_lowercase(), &name.to_lowercase()));
    same.or_else(elsewhere).or_else(near).map(|name| format!("did you mean {name:?}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_name_is_a_key_here() {
        for key in KEYS_ELSEWHERE.iter().flat_map(|(_, keys)| *keys) {
            assert!(KEYS.iter().any(|known| known.key == *key), "{key}");
        }
        for (_, section) in SECTIONS_ELSEWHERE {
            assert!(sections().any(|known| known == *section), "{section}");
        }
        for name in KEYS_ELSEWHERE.iter().map(|(name, _)| name).chain(ABSENT.iter().flat_map(|(names, _)| *names)) {
            assert!(!KEYS.iter().any(|known| bare_of(known.key) == *name), "{name} is a key now");
        }
    }

    #[test]
    fn what_is_said_not_to_be_there_stands_beside_no_name_that_is() {
        let values = |help: &'static str| help.split([' ', ':', ',', ';', '(']).collect::<Vec<_>>();
        for (names, like, _) in VALUES_ABSENT {
            let beside = KEYS.iter().map(|known| values(known.doc)).filter(|values| values.contains(like));
            for values in beside {
                assert!(names.iter().all(|name| !values.contains(name)), "{names:?} {values:?}");
            }
        }
    }

    #[test]
    fn a_name_is_looked_for_in_every_section_and_nothing_far_is_suggested() {
        for (name, keys) in [
            ("epochs", &["train.epochs"][..]),
            ("train.epocs", &["train.epochs"]),
            ("trian.epochs", &["train.epochs"]),
            ("lr", &["train.lr", "schedule.lr"]),
            ("schedule.learning_rate", &["train.lr"]),
            ("num_layers", &["model.layers", "messages.layers"]),
            ("model.num_layers", &["model.layers"]),
            ("model.hidden_size", &["model.hidden"]),
            ("train.hidden", &["model.hidden"]),
            ("hidden-channels", &["model.hidden"]),
            ("model.heads_", &["model.heads"]),
            ("train.lr_sched", &["train.lr_schedule"]),
            ("data.undirected", &["data.symmetrise"]),
            ("train.batch_size", &["batch.size"]),
            ("num_neighbors", &["batch.fanouts"]),
        ] {
            assert_eq!(meant(name), Some(Meant::Keys(keys.to_vec())), "{name}");
        }
        for name in ["gpu", "loss", "device"] {
            assert!(matches!(meant(name), Some(Meant::Absent(_))), "{name}");
        }
        for name in ["train.x", "colour", "data.author", "out.kind_of_blue", "", "."] {
            assert_eq!(meant(name), None, "{name}");
        }
    }
}
