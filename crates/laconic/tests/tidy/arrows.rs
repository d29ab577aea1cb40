//! Who uses whom within a crate: arrows from the file that names something to the file that has it.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;

/// A module by its names from the crate's root.
type Module = Vec<String>;

/// One use of something in another file.
pub struct Arrow {
    /// The file that names it.
    pub from: Module,
    /// The file that has it, re-exports seen through.
    pub to: Module,
    /// Where, as `file:line`, with the path as written.
    pub place: String,
}

/// A path as it is written somewhere.
struct Written {
    segments: Vec<String>,
    /// The name under which others can have it from here, if it is a re-export.
    name: Option<String>,
    line: usize,
}

/// All arrows of a crate with these files; what is there for tests alone is not looked at.
pub fn arrows(files: &[Source]) -> Vec<Arrow> {
    let modules: BTreeMap<Module, &Source> =
        files.iter().filter_map(|file| Some((module(&file.path)?, file))).collect();
    let written: BTreeMap<&Module, Vec<Written>> = modules.iter().map(|(module, file)| (module, paths(file))).collect();
    let mut arrows = Vec::new();
    for (from, file) in &modules {
        for path in &written[from] {
            let to = absolute(from, &path.segments, &modules).map(|path| resolve(&path, &modules, &written, 8));
            if let Some(to) = to.filter(|to| to != from && !to.is_empty() && !from.is_empty()) {
                let place = format!("{}  {}", file.at(path.line), path.segments.join("::"));
                arrows.push(Arrow { from: from.clone(), to, place });
            }
        }
    }
    arrows
}

/// The groups of more than one folder in which each reaches every other, but for arrows that are let pass.
pub fn circles(arrows: &[(String, String)]) -> Vec<BTreeSet<String>> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in arrows {
        reach.entry(from).or_default().insert(to);
    }
    loop {
        let wider: BTreeMap<&str, BTreeSet<&str>> = reach
            .iter()
            .map(|(&from, to)| (from, to.iter().filter_map(|to| reach.get(to)).flatten().chain(to).copied().collect()))
            .collect();
        if wider == reach {
            break;
        }
        reach = wider;
    }
    let both = |a: &str, b: &str| reach[a].contains(b) && reach.get(b).is_some_and(|back| back.contains(a));
    let group = |a: &&str| reach[*a].iter().filter(|b| both(a, b)).map(|b| (*b).to_owned()).collect::<BTreeSet<_>>();
    let groups: BTreeSet<BTreeSet<String>> = reach.keys().map(group).filter(|group| group.len() > 1).collect();
    groups.into_iter().collect()
}

/// The module of a file in a folder `src`.
fn module(path: &str) -> Option<Module> {
    let (_, path) = path.split_once("/src/")?;
    let mut names: Module = path.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|last| ["lib", "main", "mod"].contains(&last.as_str())) {
        names.pop();
    }
    Some(names)
}

/// The path from the crate's root, or nothing where it leads into another crate.
fn absolute(from: &Module, segments: &[String], modules: &BTreeMap<Module, &Source>) -> Option<Module> {
    let mut base = from.clone();
    let mut rest = segments;
    match segments.first()?.as_str() {
        "crate" => (base, rest) = (Vec::new(), &segments[1..]),
        "self" => rest = &segments[1..],
        "super" => {}
        child => {
            let below: Module = from.iter().cloned().chain([child.to_owned()]).collect();
            modules.get(&below)?;
        }
    }
    while rest.first().is_some_and(|first| first == "super") {
        base.pop();
        rest = &rest[1..];
    }
    base.extend_from_slice(rest);
    Some(base)
}

/// The module of the file that has what an absolute path names.
fn resolve(
    path: &Module,
    modules: &BTreeMap<Module, &Source>,
    written: &BTreeMap<&Module, Vec<Written>>,
    depth: usize,
) -> Module {
    let len = (0..=path.len()).rev().find(|&len| modules.contains_key(&path[..len])).unwrap_or(0);
    let found = path[..len].to_vec();
    let Some(name) = path.get(len).filter(|_| depth > 0) else { return found };
    let export = written.get(&found).into_iter().flatten().find(|path| path.name.as_ref() == Some(name));
    match export.and_then(|export| absolute(&found, &export.segments, modules)) {
        Some(further) => resolve(&further, modules, written, depth - 1),
        None => found,
    }
}

/// All paths of a file that may lead into its own crate.
fn paths(file: &Source) -> Vec<Written> {
    let mut found = Vec::new();
    let mut line = 0;
    while line < file.code.len() {
        let code = file.code[line].trim_start();
        let is_use = code.split_once("use ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        let is_export = is_use.is_some_and(|(before, _)| !before.is_empty());
        let start = line;
        match is_use.filter(|_| !file.test[line]) {
            Some((_, tree)) => {
                let mut tree = tree.to_owned();
                while !tree.contains(';') && line + 1 < file.code.len() {
                    line += 1;
                    tree += &file.code[line];
                }
                let tree = tree.split(';').next().unwrap_or_default();
                expand(&[], tree, &mut |segments, name| {
                    found.push(Written { segments, name: is_export.then_some(name), line: start });
                });
            }
            None if !file.test[line] => inline(code, line, &mut found),
            None => {}
        }
        line += 1;
    }
    found
}

/// Paths in the midst of code that begin with `crate::` or `super::`.
fn inline(code: &str, line: usize, found: &mut Vec<Written>) {
    for piece in code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
        if piece.starts_with("crate::") || piece.starts_with("super::") {
            let segments = piece.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
            found.push(Written { segments, name: None, line });
        }
    }
}

/// Calls `each` with every path of `a::{b, c::d as e}`, and with the name that it has here.
fn expand(prefix: &[String], tree: &str, each: &mut impl FnMut(Vec<String>, String)) {
    let tree = tree.trim();
    if let Some((before, inside)) = tree.split_once('{') {
        let before = before.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
        let prefix: Vec<String> = prefix.iter().cloned().chain(before).collect();
        let inside = inside.trim_end().strip_suffix('}').unwrap_or(inside);
        let (mut depth, mut start) = (0, 0);
        for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == ',' && depth == 0 {
                expand(&prefix, &inside[start..at], each);
                start = at + 1;
            }
        }
    } else if !tree.is_empty() {
        let (path, name) = tree.split_once(" as ").unwrap_or((tree, tree.rsplit("::").next().unwrap_or(tree)));
        let path = path.split("::").map(str::trim).filter(|name| *name != "self" || prefix.is_empty());
        each(prefix.iter().cloned().chain(path.map(str::to_owned)).collect(), name.trim().to_owned());
    }
}

#[test]
fn arrows_see_through_re_exports_and_past_tests() {
    let files = [
        ("crates/x/src/lib.rs", "mod a;\nmod b;\npub use b::Deep;\n"),
        ("crates/x/src/a.rs", "use crate::{Deep, b::{self}};\n#[cfg(test)]\nmod tests { use crate::c::No; }\n"),
        ("crates/x/src/b/mod.rs", "pub use deep::Deep as Deeper;\npub use deep::Deep;\n"),
        ("crates/x/src/b/deep.rs", "fn f(_: super::super::a::A) {}\n"),
        ("crates/x/src/c.rs", "use std::fmt;\n"),
    ];
    let files: Vec<Source> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    let found: Vec<String> =
        arrows(&files).iter().map(|arrow| format!("{} > {}", arrow.from.join("/"), arrow.to.join("/"))).collect();
    assert_eq!(found, ["a > b/deep", "a > b", "b > b/deep", "b > b/deep", "b/deep > a"]);
}

#[test]
fn circles_are_found() {
    let arrow = |(from, to): (&str, &str)| (from.to_owned(), to.to_owned());
    let one = circles(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d"), ("e", "a")].map(arrow));
    assert_eq!(one, [BTreeSet::from(["b".to_owned(), "c".to_owned()])]);
    assert!(circles(&[("a", "b"), ("b", "c"), ("a", "c")].map(arrow)).is_empty());
}
