//! Errors of what was typed, in the words of who typed it: key, value and what was expected, or that a file is no TOML.

use super::batch::BYTES;
use super::keys::KEYS;
use super::suggest::one_of;
use crate::error::TrainError;

/// What TOML says of a table that has another form than a configuration, with key and value.
pub(crate) fn misfit(error: &toml::de::Error, table: &toml::Table) -> TrainError {
    let text = error.to_string();
    let message = error.message().trim();
    let Some(key) = text.trim_end().lines().last().and_then(|line| line.strip_prefix("in `")?.strip_suffix('`')) else {
        return TrainError::config(message);
    };
    let Some(value) = value_at(table, key) else { return TrainError::config(format!("{key}: {message}")) };
    if let (Some(names), Some(value)) = (variants(message), value.as_str())
        && let Err(error) = one_of(key, value, &names)
    {
        return error;
    }
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
    let generic = ["invalid type: ", "invalid value: ", "unknown variant ", "data did not match any variant"];
    if !generic.iter().any(|start| message.starts_with(start)) {
        return TrainError::config(format!("{key}: {message}"));
    }
    let choice = message.strip_prefix("data did not match any variant of untagged enum ");
    let words = expected.or(choice).and_then(in_words).map(str::to_owned);
    let doc = || KEYS.iter().find(|k| k.key == key).map(|k| k.doc.to_owned());
    let expected = words.or_else(doc).or(expected.map(str::to_owned)).unwrap_or_else(|| message.to_owned());
    TrainError::config(format!("{key} = {value}: expected {expected}"))
}

/// The names in "unknown variant `x`, expected one of `a`, `b`".
fn variants(message: &str) -> Option<Vec<&str>> {
    let (_, names) = message.strip_prefix("unknown variant ")?.split_once(", expected ")?;
    Some(names.split('`').skip(1).step_by(2).collect())
}

fn value_at<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    let mut steps = key.split('.');
    let first = table.get(steps.next()?)?;
    steps.try_fold(first, |value, step| value.get(step))
}

/// What Rust calls a type, in words.
fn in_words(expected: &str) -> Option<&'static str> {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => Some("a whole number, not below 0"),
        "i32" | "i64" => Some("a whole number"),
        "f32" | "f64" => Some("a number"),
        "a boolean" => Some("true or false"),
        "a sequence" => Some("a list in brackets, as in [1, 2]"),
        "LinkSplitChoice" => Some("\"given\", or shares in braces, such as { val = 0.05, test = 0.1, seed = 0 }"),
        "EvalNegatives" => Some("\"given\", or a whole number"),
        BYTES => Some(BYTES),
        "a string" | "path string" => Some("text in quotes"),
        _ => None,
    }
}

/// What is said of a text that is no TOML: what it looks like instead, or the place and what is probably missing there.
pub(crate) fn malformed(text: &str, error: &toml::de::Error) -> TrainError {
    if let Some(looks) = other_language(text) {
        let lines = "[data]\n  path = \"graph.npz\"\n  [train]\n  epochs = 100";
        return TrainError::config(format!("this looks like {looks}; a run is TOML, as in\n  {lines}"));
    }
    let place = error.to_string().trim_end().to_owned();
    let hint = unquoted(text, error).map(|hint| format!("\n{hint}")).unwrap_or_default();
    TrainError::config(format!("{place}{hint}"))
}

/// The language that a text seems to be in, by its first line that says anything.
fn other_language(text: &str) -> Option<&'static str> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_-. ".contains(c));
    if first.starts_with('{') {
        return Some("JSON");
    }
    if ["import ", "from ", "def ", "class "].iter().any(|start| first.starts_with(start)) {
        return Some("Python");
    }
    let key = first.split_once(':').map(|(key, rest)| (key, rest.is_empty() || rest.starts_with(' ')));
    let is_yaml = first == "---" || key.is_some_and(|(key, ends)| ends && is_word(key));
    is_yaml.then_some("YAML")
}

/// What the line of the error needs, where its value reads in quotes or is another language's.
fn unquoted(text: &str, error: &toml::de::Error) -> Option<String> {
    let start = error.span()?.start.min(text.len());
    let line_start = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let (key, value) = text[line_start..].lines().next()?.split_once('=')?;
    let value = value.split('#').next().unwrap_or_default().trim();
    let key = key.trim();
    match value {
        "True" | "False" => return Some(format!("TOML writes it {}", value.to_lowercase())),
        "None" | "null" | "nil" => return Some(format!("TOML has no {value}: leave {key} out")),
        _ => {}
    }
    let fits = |value: &str| format!("{key} = {value}").parse::<toml::Table>().is_ok();
    let quoted = if value.starts_with(['{', '[']) { quote_words(value) } else { format!("{value:?}") };
    (!fits(value) && fits(&quoted)).then(|| format!("text stands in quotes: {key} = {quoted}"))
}

/// The same text with quotes around every bare word that is a value.
pub(crate) fn quote_words(text: &str) -> String {
    let (mut quoted, mut word, mut inside) = (String::new(), String::new(), false);
    for (at, c) in text.char_indices() {
        inside ^= c == '"';
        if !inside && (c.is_alphanumeric() || "_-./@".contains(c)) {
            word.push(c);
            continue;
        }
        let is_key = text[at..].trim_start().starts_with('=');
        let is_value = |word: &str| format!("x = {word}").parse::<toml::Table>().is_ok();
        if inside || word.is_empty() || is_key || is_value(&word) {
            quoted += &word;
        } else {
            quoted += &format!("{word:?}");
        }
        word.clear();
        quoted.push(c);
    }
    quoted + &word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_values_get_quotes_and_nothing_else_does() {
        for (bare, quoted) in [
            ("{codec=quantised,bits=4}", "{codec=\"quantised\",bits=4}"),
            (
                "{ codec = masked, ratio = { from = 2.0, law = linear } }",
                "{ codec = \"masked\", ratio = { from = 2.0, \
                law = \"linear\" } }",
            ),
            ("[accuracy, hits@50]", "[\"accuracy\", \"hits@50\"]"),
            ("{codec=\"half\",whole_last=false}", "{codec=\"half\",whole_last=false}"),
        ] {
            assert_eq!(quote_words(bare), quoted);
        }
    }

    #[test]
    fn other_languages_are_named_and_toml_is_none_of_them() {
        for (text, language) in [
            ("{\"data\": 1}", Some("JSON")),
            ("# a run\ndata:\n  path: x\n", Some("YAML")),
            ("---\n- 1", Some("YAML")),
            ("epochs: 5", Some("YAML")),
            ("import torch\nlr = 1", Some("Python")),
            ("[data]\npath = \"c:x\"", None),
            ("a = \"b: c\"", None),
            ("", None),
        ] {
            assert_eq!(other_language(text), language, "{text}");
        }
    }
}
