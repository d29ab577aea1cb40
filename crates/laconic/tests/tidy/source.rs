//! Source files as the rules see them: code without comments and strings, the strings, and what is there only for
//! tests.

use std::path::{Path, PathBuf};

/// A file of the repository.
pub struct Source {
    /// Its path from the root of the repository, with `/`.
    pub path: String,
    /// As it is.
    pub text: String,
    /// Line by line, with comments and the contents of strings blanked.
    pub code: Vec<String>,
    /// String literals with their lines, counted from 0.
    pub strings: Vec<(usize, String)>,
    /// For each line whether it is compiled for tests alone.
    pub test: Vec<bool>,
}

impl Source {
    /// A Rust file.
    pub fn new(path: &str, text: &str) -> Source {
        let (code, strings) = blank(text);
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
        let mut test = vec![is_test; code.len()];
        for start in 0..code.len() {
            if code[start].trim_start().starts_with("#[cfg(") && has_word(&code[start], "test") {
                let end = end_of_item(&code, start + 1);
                test[start..=end].fill(true);
            }
        }
        Source { path: path.to_owned(), text: text.to_owned(), code, strings, test }
    }

    /// Where something is, for a message; `line` counts from 0.
    pub fn at(&self, line: usize) -> String {
        format!("{}:{}", self.path, line + 1)
    }

    /// The sentences at the head of the file, `//!`.
    pub fn header(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take_while(|line| line.starts_with("//!"))
    }
}

/// The root of the repository, or nothing where its sources are not around.
pub fn root() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let found = root.join("crates/train/src/lib.rs").exists();
    if !found {
        eprintln!("skipped: the sources of the workspace are not around");
    }
    found.then_some(root)
}

/// All files below these folders with this extension, in the order of their paths.
pub fn files(folders: &[&str], extension: &str) -> Vec<Source> {
    let Some(root) = root() else { return Vec::new() };
    let mut paths = Vec::new();
    for folder in folders {
        walk(&root.join(folder), &mut paths);
    }
    let mut files = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|found| found == extension)) {
        let text = std::fs::read_to_string(path).expect("a readable source file");
        let path = path.strip_prefix(&root).expect("below the root").to_string_lossy().replace('\\', "/");
        files.push(if extension == "rs" { Source::new(&path, &text) } else { plain(&path, &text) });
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// A file that is not Rust: nothing of it is looked at but its lines.
fn plain(path: &str, text: &str) -> Source {
    let (code, strings, test) = (Vec::new(), Vec::new(), Vec::new());
    Source { path: path.to_owned(), text: text.to_owned(), code, strings, test }
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !path.is_dir() {
            into.push(path);
        } else if !name.starts_with('.')
            && !["target", "corpus", "artifacts", "runs"].contains(&name.as_str())
            && !path.join("pyvenv.cfg").exists()
        {
            walk(&path, into);
        }
    }
}

/// Whether a line of code has this word, and not as a part of another.
pub fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|found| found == word)
}

/// The last line of the item that begins at `start`: the one with the brace that closes it, or with its semicolon.
pub fn end_of_item(code: &[String], start: usize) -> usize {
    let mut depth = 0;
    for (index, line) in code.iter().enumerate().skip(start) {
        for c in line.chars() {
            match c {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth -= 1,
                ';' if depth == 0 => return index,
                _ => {}
            }
            if c == '}' && depth <= 0 {
                return index;
            }
        }
    }
    code.len().saturating_sub(1)
}

/// The code of a text without comments and the contents of strings, and the strings.
fn blank(text: &str) -> (Vec<String>, Vec<(usize, String)>) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut strings) = (String::with_capacity(text.len()), Vec::new());
    let (mut at, mut line) = (0, 0);
    while at < chars.len() {
        let rest = &chars[at..];
        let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
        let len = match rest[0] {
            '/' if rest.starts_with(&['/', '/']) => rest.iter().take_while(|&&c| c != '\n').count(),
            '/' if rest.starts_with(&['/', '*']) => comment(rest),
            '"' => 1 + text_end(&rest[1..]),
            'r' | 'b' if !in_word => raw_string(rest).unwrap_or(0),
            '\'' => character(rest),
            _ => 0,
        };
        if len == 0 {
            code.push(rest[0]);
            line += usize::from(rest[0] == '\n');
            at += 1;
            continue;
        }
        let piece: String = rest[..len.min(rest.len())].iter().collect();
        if let (false, Some(open), Some(close)) = (piece.starts_with('/'), piece.find('"'), piece.rfind('"'))
            && open < close
        {
            strings.push((line, piece[open + 1..close].to_owned()));
        }
        code.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        line += piece.matches('\n').count();
        at += len;
    }
    (code.split('\n').map(str::to_owned).collect(), strings)
}

/// Characters of a block comment, which may hold others.
fn comment(rest: &[char]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < rest.len() && depth > 0 {
        match &rest[at..] {
            ['/', '*', ..] => (at, depth) = (at + 2, depth + 1),
            ['*', '/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

/// Characters up to and with the quote that ends a string.
fn text_end(rest: &[char]) -> usize {
    let mut at = 0;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Characters of `r"…"`, `r#"…"#`, `b"…"` and `br"…"`, if that is what begins here.
fn raw_string(rest: &[char]) -> Option<usize> {
    let prefix = rest.iter().take_while(|&&c| c == 'b' || c == 'r').count();
    let hashes = rest[prefix..].iter().take_while(|&&c| c == '#').count();
    let open = prefix + hashes;
    if prefix > 2 || rest.get(open) != Some(&'"') {
        return None;
    }
    if !rest[..prefix].contains(&'r') {
        return Some(open + 1 + text_end(&rest[open + 1..]));
    }
    let closed = |at: &usize| rest[*at] == '"' && rest[at + 1..].iter().take_while(|&&c| c == '#').count() >= hashes;
    (open + 1..rest.len()).find(closed).map(|at| at + 1 + hashes)
}

/// Characters of a character literal, 0 for a lifetime.
fn character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', _, more @ ..] => 3 + more.iter().take_while(|&&c| c != '\'').count() + 1,
        ['\'', _, '\'', ..] => 3,
        _ => 0,
    }
}

#[test]
fn comments_and_strings_are_blanked_and_strings_are_kept() {
    let text = "let a = \"x // y\"; // \"no\"\nlet b = r#\"q\"q\"#; /* /* */ \"no\" */ let c = '\"'; fn f<'a>() {}\n";
    let source = Source::new("a.rs", text);
    assert_eq!(source.strings, [(0, "x // y".to_owned()), (1, "q\"q".to_owned())]);
    assert_eq!(source.code[0].trim_end(), "let a =         ;");
    assert!(source.code[1].ends_with("fn f<'a>() {}"));
}

#[test]
fn code_for_tests_is_known_as_such() {
    let source = Source::new("a.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n");
    assert_eq!(source.test[..6], [false, true, true, true, true, false]);
    assert!(Source::new("crates/x/tests/y.rs", "fn a() {}").test[0]);
}
