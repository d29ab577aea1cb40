//! Text from files and names, made safe to look at.

/// The text with control characters, and those that turn the direction of writing, as escapes: neither a terminal nor a
/// page may take orders from a file's name or content. Line breaks and tabs stay.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

fn is_hidden(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

/// Text as Markdown takes it, in one line.
pub fn markdown(text: &str) -> String {
    let special = |c: char| if "\\`*_{}[]<>#|!".contains(c) { format!("\\{c}") } else { c.to_string() };
    text.chars().map(special).collect::<String>().replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_would_move_the_cursor_or_turn_the_line_is_shown_as_an_escape() {
        let text = "e\u{1b}[2Jsc\u{7}\r\u{9b}x\u{202e}txt.exe\u{2066}é日\tb\n";
        assert_eq!(visible(text), "e\\u{1b}[2Jsc\\u{7}\\r\\u{9b}x\\u{202e}txt.exe\\u{2066}é日\tb\n");
    }
}
