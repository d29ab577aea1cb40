//! Names of what crosses between sites, which the caller knows.

use super::Crossing;

/// What may cross between sites, by its names. This crate knows none of them.
#[derive(Debug, Clone, Copy)]
pub struct Vocabulary<'a> {
    /// Each content: its name, and a sentence that says what it is, for [`Policy::template`](crate::Policy::template).
    pub contents: &'a [(&'a str, &'a str)],
    /// What a frame may be for.
    pub purposes: &'a [&'a str],
    /// Names of several contents at once, with these.
    pub groups: &'a [(&'a str, &'a [&'a str])],
    /// Contents without which sites cannot run at all: they always pass, and no rule may name them.
    pub always: &'a [&'a str],
    /// Contents that a first policy allows ([`Policy::template`](crate::Policy::template)).
    pub first: &'a [&'a str],
}

/// Which contents for which purposes: of each content, one for each purpose.
pub(super) type Chosen = Vec<bool>;

/// The names of a vocabulary that decisions are made by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    /// In the order of their names.
    contents: Vec<(String, bool)>,
    purposes: Vec<String>,
}

impl Names {
    pub(super) fn of(vocabulary: &Vocabulary) -> Names {
        let always = |name: &str| vocabulary.always.contains(&name);
        let contents = vocabulary.contents.iter().map(|(name, _)| ((*name).to_owned(), always(name)));
        let mut contents: Vec<(String, bool)> = contents.collect();
        contents.sort();
        contents.dedup();
        Names { contents, purposes: vocabulary.purposes.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// The place of a content for a purpose in a [`Chosen`].
    pub(super) fn place(&self, content: &str, purpose: &str) -> Option<usize> {
        let content = self.contents.binary_search_by(|(name, _)| name.as_str().cmp(content)).ok()?;
        let purpose = self.purposes.iter().position(|name| name == purpose)?;
        Some(content * self.purposes.len() + purpose)
    }

    /// Whether the content at a place always passes.
    pub(super) fn always(&self, place: usize) -> bool {
        self.contents[place / self.purposes.len()].1
    }

    /// Opens what an entry names: `*`, a content or a group, each with or without `:PURPOSE`.
    pub(super) fn choose(&self, vocabulary: &Vocabulary, entry: &str, chosen: &mut Chosen) -> Result<(), String> {
        let (name, purpose) = entry.split_once(':').map_or((entry, None), |(name, purpose)| (name, Some(purpose)));
        let single = [name];
        let group = vocabulary.groups.iter().find(|group| group.0 == name).map(|group| group.1);
        let is = |known: &str| self.contents.iter().any(|(content, _)| content == known);
        let names: Vec<&str> = match group {
            _ if name == "*" => self.contents.iter().map(|(name, _)| name.as_str()).collect(),
            Some(names) => names.to_vec(),
            None if is(name) => single.to_vec(),
            None => return Err(unknown(name, "content", &self.known(vocabulary))),
        };
        if vocabulary.always.contains(&name) {
            return Err(format!("{name:?} always passes, for sites cannot run without it: take it off"));
        }
        let purposes: Vec<&str> = match purpose {
            None => vocabulary.purposes.to_vec(),
            Some(purpose) if vocabulary.purposes.contains(&purpose) => vec![purpose],
            Some(purpose) => return Err(unknown(purpose, "purpose", vocabulary.purposes)),
        };
        chosen.resize(self.contents.len() * self.purposes.len(), false);
        for name in names {
            purposes.iter().filter_map(|purpose| self.place(name, purpose)).for_each(|place| chosen[place] = true);
        }
        Ok(())
    }

    fn known<'a>(&self, vocabulary: &Vocabulary<'a>) -> Vec<&'a str> {
        let contents = vocabulary.contents.iter().map(|content| content.0);
        contents
            .filter(|name| !vocabulary.always.contains(name))
            .chain(vocabulary.groups.iter().map(|of| of.0))
            .collect()
    }
}

/// What to say of a name that there is not: the nearest that there is, and all of them.
pub(super) fn unknown(name: &str, what: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|one| (strsim::damerau_levenshtein(name, one), one)).min();
    let hint = match nearest {
        Some((distance, one)) if distance <= 1 + one.len() / 3 => format!("did you mean {one:?}? "),
        _ => String::new(),
    };
    format!("{name:?} is no {what}; {hint}there are {}", known.join(", "))
}

/// A crossing in words.
pub(super) fn words(crossing: &Crossing) -> String {
    let Crossing { way, peer, content, purpose, layer, direction, bytes } = crossing;
    let preposition = way.preposition();
    let direction = direction.name();
    format!("{content}:{purpose} of layer {layer}, {direction}, {bytes} bytes, {preposition} {peer}")
}
