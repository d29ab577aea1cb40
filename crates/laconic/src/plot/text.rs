//! How much room a text takes, and where its lines break.

/// The size of letters in figures.
pub const SIZE: f64 = 13.0;

/// From one line of a text to the next.
pub const LINE: f64 = 16.0;

/// About how wide a text is in figures. A reader's font is not known: this is DejaVu Sans, wider than most, so that
/// what is given room here is not cut anywhere.
pub fn width(text: &str) -> f64 {
    text.chars().map(letter).sum::<f64>() * SIZE
}

/// The width of a letter in units of its size.
fn letter(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' => 0.29,
        ' ' | ',' | '.' | ':' | ';' | '|' | 'I' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.415,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '—' | '…' => 1.0,
        '+' | '=' | '<' | '>' | '~' | '^' | '#' | '&' | '±' | '×' | '→' => 0.84,
        'A'..='Z' => 0.79,
        'a'..='z' | '0'..='9' => 0.64,
        c if c.is_ascii() => 0.64,
        // Anything else may be as wide as it is high.
        c if (c as u32) < 0x250 => 0.8,
        _ => 1.1,
    }
}

/// The text in lines of at most `room`, broken between words, and within a word that has no room in a line.
pub fn wrap(text: &str, room: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        for (index, piece) in pieces(word, room).into_iter().enumerate() {
            let last = lines.last_mut().expect("there is always a line");
            if last.is_empty() {
                *last = piece;
            } else if index == 0 && width(last) + width(" ") + width(&piece) <= room {
                *last += " ";
                *last += &piece;
            } else {
                lines.push(piece);
            }
        }
    }
    lines
}

/// The text in as few lines of at most `room`, about equally long.
pub fn balanced(text: &str, room: f64) -> Vec<String> {
    let lines = wrap(text, room).len();
    // In ten steps, down to where all lines would be full.
    let fewest = (0..10).map(|step| room / lines as f64 + room * (1.0 - 1.0 / lines as f64) * f64::from(step) / 10.0);
    fewest.map(|room| wrap(text, room)).find(|found| found.len() == lines).unwrap_or_else(|| wrap(text, room))
}

/// A word in pieces that have room in a line, a letter each at least.
fn pieces(word: &str, room: f64) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for c in word.chars() {
        let last = pieces.last_mut().expect("there is always a piece");
        if !last.is_empty() && width(last) + letter(c) * SIZE > room {
            pieces.push(c.to_string());
        } else {
            last.push(c);
        }
    }
    pieces
}

/// The width of the widest of these lines.
pub fn widest(lines: &[String]) -> f64 {
    lines.iter().map(|line| width(line)).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_room_and_no_letter_is_lost() {
        for text in
            ["BNS-GCN (10 % of boundary)", "", "VARCO (masked, 128 to 1, slope 5)", &"x".repeat(60), "日本語 学"]
        {
            for room in [1.0, 40.0, 90.0, 400.0] {
                let lines = wrap(text, room);
                let bare = |text: &str| text.split_whitespace().collect::<String>();
                assert_eq!(bare(&lines.concat()), bare(text));
                assert!(lines.iter().all(|line| width(line) <= room || line.chars().count() == 1), "{lines:?}");
            }
        }
        assert_eq!(wrap("lazy, from scores", 1000.0), ["lazy, from scores"]);
        let name = "VARCO (masked, 128 to 1, slope 5)";
        assert_eq!(wrap(name, 250.0), ["VARCO (masked, 128 to 1, slope", "5)"]);
        assert_eq!(balanced(name, 250.0), ["VARCO (masked,", "128 to 1, slope 5)"]);
        assert_eq!(balanced("PipeGCN", 270.0), ["PipeGCN"]);
    }
}
