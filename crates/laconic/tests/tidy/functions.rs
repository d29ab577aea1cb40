//! Functions: their lengths and parameters.

use super::source::Source;

/// A function of a file.
pub struct Function {
    /// Its name, without the type that it belongs to.
    pub name: String,
    /// Its first line, counted from 0.
    pub line: usize,
    /// Its lines, from `fn` to the brace that closes it.
    pub lines: usize,
    /// Its parameters, `self` among them, and in place of a tuple that is taken apart what is in it.
    pub parameters: usize,
}

/// All functions of a file that have a name, tests too.
pub fn functions(source: &Source) -> Vec<Function> {
    let code: Vec<char> = source.code.join("\n").chars().collect();
    let is_word = |at: usize| code.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let mut found = Vec::new();
    for at in 0..code.len() {
        let starts = code[at..].starts_with(&['f', 'n', ' ']) && (at == 0 || !is_word(at - 1));
        if !starts || !is_word(at + 3) {
            continue;
        }
        let name: String = code[at + 3..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
        let mut open = at + 3 + name.len();
        if code.get(open) == Some(&'<') {
            open = closing(&code, open) + 1;
        }
        if code.get(open) != Some(&'(') {
            continue;
        }
        let end = body_end(&code, closing(&code, open));
        let count = |range: std::ops::Range<usize>| code[range].iter().filter(|c| **c == '\n').count();
        found.push(Function {
            name,
            line: count(0..at),
            lines: 1 + count(at..end.min(code.len())),
            parameters: arguments(&code[open + 1..closing(&code, open).min(code.len())]),
        });
    }
    found
}

/// The bracket that closes the one at `open`.
fn closing(code: &[char], open: usize) -> usize {
    let mut depth = 0;
    for at in open..code.len() {
        depth += step(code, at);
        if depth == 0 {
            return at;
        }
    }
    code.len()
}

/// What a character does to the depth of brackets; the arrow of a result closes none.
fn step(code: &[char], at: usize) -> i32 {
    match code[at] {
        '(' | '[' | '{' | '<' => 1,
        '>' if at > 0 && matches!(code[at - 1], '-' | '=') => 0,
        ')' | ']' | '}' | '>' => -1,
        _ => 0,
    }
}

/// How many things between commas there are; of a tuple or an array that is taken apart, each of its own.
fn arguments(code: &[char]) -> usize {
    let (mut depth, mut count, mut start) = (0, 0, 0);
    for at in 0..code.len() {
        depth += step(code, at);
        if code[at] == ',' && depth == 0 {
            count += leaves(&code[start..at]);
            start = at + 1;
        }
    }
    count + leaves(&code[start..])
}

/// How many names one parameter gives: none if nothing is there.
fn leaves(parameter: &[char]) -> usize {
    let Some(first) = parameter.iter().position(|c| !c.is_whitespace() && *c != '&') else { return 0 };
    let pattern = &parameter[first..];
    match pattern[0] {
        '(' | '[' => arguments(&pattern[1..closing(pattern, 0).min(pattern.len())]),
        _ => 1,
    }
}

/// The end of a function's body, or its semicolon where a trait leaves the body open.
fn body_end(code: &[char], parameters: usize) -> usize {
    let mut depth = 0;
    let mut body = false;
    for (at, c) in code.iter().enumerate().skip(parameters + 1) {
        match c {
            '{' => (depth, body) = (depth + 1, true),
            '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            ';' if depth == 0 => return at,
            _ => {}
        }
        if body && depth == 0 {
            return at;
        }
    }
    code.len()
}

#[test]
fn lengths_and_parameters_are_counted() {
    let text = "fn a<F: Fn(u8) -> u8>(f: F, (b, c): (u8, Vec<Map<u8, u8>>), ) -> [u8; 2] {\n\n}\n\
                trait T { fn d(&self); }\nconst F: fn(u8) = |_| {};\n\
                fn e([a, (b, _)]: [A; 2], &(c, S { d, e }): &(A, S), f: (A, B)) {}\n";
    let found = functions(&Source::new("a.rs", text));
    let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines, f.parameters)).collect();
    assert_eq!(found, [("a", 0, 3, 3), ("d", 3, 1, 1), ("e", 5, 1, 6)]);
}
