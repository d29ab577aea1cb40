//! A first policy, for people to change.

use super::vocabulary::Vocabulary;

/// What stands above the rules.
const HEAD: &str = "\
# What may leave this site, and what it takes in: nothing but what a rule below allows. This file is this site's own;
# nobody else sees it, but for auditors of this site's log, which holds a copy.
#
# A rule is about all that it names at once, and may have, besides content:
#   to = \"*\" or [\"south\", \"west\"]      sites (from, in [[accept]])
#   layers = [0, 1]                     layers of the model
#   direction = \"forward\"               or \"reverse\"
#   max_bytes = \"50 MB\"                 in the whole run, of all that this rule lets pass
# content = \"*\" is everything. [[deny]] beats every [[allow]] and [[accept]].
version = 1

";

/// What stands below them.
const TAIL: &str = "
# [limits]
# max_bytes = \"2 GB\"      # what leaves in the whole run, to all sites
# runs = [\"stroke-*\"]     # names of runs; * stands for any characters
# until = 2027-03-31      # the last day
";

/// A commented policy that allows what the vocabulary says of a first one.
pub(super) fn template(vocabulary: &Vocabulary) -> String {
    let mut text = HEAD.to_owned();
    text += &notes(vocabulary);
    text += "# What may leave. Take the # off a line to allow it.\n[[allow]]\nto = \"*\"\n";
    text += &contents(vocabulary);
    text += "\n# What may come in: to hold others' data is a burden too.\n[[accept]]\nfrom = \"*\"\n";
    text += &contents(vocabulary);
    text + TAIL
}

/// What else may be named, and what always passes.
fn notes(vocabulary: &Vocabulary) -> String {
    let mut text = String::new();
    if let [one, ..] = vocabulary.purposes {
        let name = vocabulary.contents.first().map_or("*", |content| content.0);
        let purposes = vocabulary.purposes.join(", ");
        text += &format!("# For one purpose alone: \"{name}:{one}\". Purposes: {purposes}.\n");
    }
    for (name, contents) in vocabulary.groups {
        text += &format!("# \"{name}\" stands for {}.\n", contents.join(", "));
    }
    for (name, what) in vocabulary.contents.iter().filter(|content| vocabulary.always.contains(&content.0)) {
        text += &format!("# Always passes: {name}. {}\n", one_line(what));
    }
    text + "\n"
}

/// One line for each content that a rule may name.
fn contents(vocabulary: &Vocabulary) -> String {
    let named = vocabulary.contents.iter().filter(|content| !vocabulary.always.contains(&content.0));
    let width = named.clone().map(|content| content.0.len()).max().unwrap_or(0) + 3;
    let lines = named.map(|(name, what)| {
        let hidden = if vocabulary.first.contains(name) { "  " } else { "# " };
        let entry = format!("\"{name}\",");
        format!("    {hidden}{entry:width$} # {}\n", one_line(what))
    });
    format!("content = [\n{}]\n", lines.collect::<String>())
}

/// A comment ends with its line, so what is told in one has no more.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
