//! The command line as it was typed.

/// The command line of this process, so that a shell reads it as it did.
pub fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("laconic".to_owned()).chain(words).collect::<Vec<String>>().join(" ")
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
