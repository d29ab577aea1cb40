//! The command line as it was typed, and what starts this program once more. Both are of the whole process, as its
//! arguments are, and set once.

use std::ffi::OsString;
use std::sync::OnceLock;

static TYPED: OnceLock<Typed> = OnceLock::new();

#[derive(Debug, Default)]
struct Typed {
    words: Vec<OsString>,
    again: Option<Vec<OsString>>,
}

/// Sets the words of the command line, the program's name left out, and those that start it once more, if these are not
/// the process's program. A second call changes nothing.
pub fn began(words: Vec<OsString>, again: Option<Vec<OsString>>) {
    let _ = TYPED.set(Typed { words, again });
}

/// The command line of this process, so that a shell reads it as it did.
pub fn command_line() -> String {
    let words = TYPED.get().into_iter().flat_map(|typed| &typed.words).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("laconic".to_owned()).chain(words).collect::<Vec<String>>().join(" ")
}

/// The words that start this program once more; `None` where it is the process's own.
pub fn again() -> Option<&'static [OsString]> {
    TYPED.get()?.again.as_deref()
}

/// A word as a shell reads it, in quotes where it needs them.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_that_a_shell_would_change_are_quoted() {
        let words = ["run.toml", "train.lr=0.1", "two words", "it's", "messages.forward={codec=\"half\"}", ""];
        let typed =
            ["run.toml", "train.lr=0.1", "'two words'", r"'it'\''s'", "'messages.forward={codec=\"half\"}'", "''"];
        assert_eq!(words.map(quoted), typed);
    }
}
