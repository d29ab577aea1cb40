//! House rules that no compiler knows, as tests of the sources. What breaks one is listed with file and line and with
//! what to do.
//!
//! Each rule may have a list of exceptions. Such a list only ever gets shorter: an exception that nothing needs any
//! more fails too.

mod arrows;
mod functions;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use laconic_graph::partition::PartitionerRegistry;
use laconic_nn::layer::LayerRegistry;
use laconic_nn::optimiser::{OptimiserRegistry, RateRegistry};
use laconic_train::config::TransportKind;
use laconic_train::plan::TaskRegistry;
use laconic_train::schedule::ScheduleRegistry;
use laconic_train::selection::SelectionRegistry;
use laconic_wire::codec::CodecRegistry;

use source::{Source, files};

const COLUMNS_MAX: usize = 120;
const LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 60;
const PARAMETERS_MAX: usize = 7;

/// The words with which the header of a longer file says why it is longer.
const WHY_LONG: &str = "Longer than 500 lines because";

/// Where sources of our own are.
const EVERYWHERE: [&str; 5] = ["benchmarks", "crates", "examples", "fuzz", "tests"];
/// Where a member's name must not decide anything.
const ENGINE: [&str; 4] = ["crates/wire/src", "crates/nn/src", "crates/graph/src", "crates/train/src"];
/// The sources of each crate.
const CRATES: [&str; 8] = [
    "crates/array/src",
    "crates/federation/src",
    "crates/key/src",
    "crates/graph/src",
    "crates/nn/src",
    "crates/wire/src",
    "crates/train/src",
    "crates/laconic/src",
];

/// Files with longer lines.
const LONG_LINES: &[&str] = &[];

/// Names of members outside their own files: file, name.
const NAMES: &[(&str, &str)] = &[
    // Words for readers of a table, and for labels in files.
    ("crates/graph/src/info/summary.rs", "none"),
    ("crates/graph/src/read/node_roles.rs", "none"),
    ("crates/graph/src/read/node_splits.rs", "none"),
    ("crates/graph/src/read/node_table.rs", "none"),
    // A list of parameters that only a perceptron has.
    ("crates/nn/src/network.rs", "mlp"),
    // A way to choose columns.
    ("crates/wire/src/codec/masked.rs", "random"),
    // The evaluation that there is not.
    ("crates/train/src/messages/mod.rs", "none"),
];

/// Files and folders that use each other although another way round leads back: crate, from, to. The list only gets
/// shorter.
const CIRCLES: &[(&str, &str, &str)] = &[];

/// Files with documentation that says too little yet.
const BRIEF: &[&str] = &[];

/// Attributes that silence a lint: file, lint.
const ALLOWED: &[(&str, &str)] = &[
    // The only places with `unsafe`: foreign libraries, files and arrays of Python as memory, advice to the kernel, and
    // vector instructions behind a check of the processor.
    ("crates/wire/src/transport/mpi.rs", "unsafe_code"),
    ("crates/graph/src/part/mapped.rs", "unsafe_code"),
    ("crates/python/src/lent.rs", "unsafe_code"),
    ("crates/graph/src/partition/quiet.rs", "unsafe_code"),
    ("crates/graph/src/memory.rs", "unsafe_code"),
    ("crates/array/src/huge_pages.rs", "unsafe_code"),
    ("crates/graph/src/memory/shrunk.rs", "unsafe_code"),
    ("crates/nn/src/kernels/dispatch.rs", "unsafe_code"),
    ("crates/nn/src/kernels/product_tiles.rs", "unsafe_code"),
    ("crates/nn/src/kernels/wide.rs", "unsafe_code"),
    // Compiled into several programs of tests, of which each uses some of it.
    ("crates/laconic/tests/program/mod.rs", "dead_code"),
];

/// Functions longer than a screen: file, function.
const LONG: &[(&str, &str)] = &[
    // One arm for each instruction of a machine.
    ("crates/graph/src/read/pickle.rs", "step"),
];

/// Functions with many parameters, those in tuples counted one by one: file, function.
const WIDE: &[(&str, &str)] = &[];

/// Where words of the field are explained, with what was said in their place.
const GLOSSARY: &str = "docs/development/glossary.md";

/// Words that this project once had of its own, and the field's. This list only gets longer, and what it names stands
/// in no file but the glossary.
const OWN_WORDS: [(&str, &str); 22] = [
    ("trainers on their own", "independent trainers"),
    ("trainer on its own", "independent trainer"),
    ("the way back", "the backward pass"),
    ("no way back", "no backward pass"),
    ("its way back", "its backward pass"),
    ("puts out", "outputs"),
    ("puts_out", "outputs"),
    ("foretold", "predicted"),
    ("foretell", "predict"),
    ("leaves whom", "the egress report"),
    ("standard way", "baseline"),
    ("dealt out", "distributed, or assigned"),
    ("deals out", "distributes, or assigns"),
    ("first cache", "L1 cache"),
    ("second cache", "L2 cache"),
    ("housemate", "same process"),
    ("lodger", "hosted trainer"),
    ("who is lost", "a failed trainer"),
    ("who comes back", "a trainer that rejoins"),
    ("goes on behind", "continues from"),
    ("has the bits of", "is bitwise identical to"),
    ("have the bits of", "are bitwise identical to"),
];

/// A place that breaks a rule, with what an exception would have to name.
struct Violation {
    place: String,
    names: Vec<String>,
}

/// Fails with all violations that are no exceptions, and with all exceptions that are no violations.
fn judge(what_to_do: &str, violations: &[Violation], exceptions: &[&[&str]]) {
    if source::root().is_none() {
        return;
    }
    let excepted = |violation: &&Violation| exceptions.iter().any(|names| violation.names == *names);
    let mut lines: Vec<String> =
        violations.iter().filter(|violation| !excepted(violation)).map(|violation| violation.place.clone()).collect();
    if !lines.is_empty() {
        lines.push(what_to_do.to_owned());
    }
    for names in exceptions.iter().filter(|names| !violations.iter().any(|violation| violation.names == **names)) {
        lines.push(format!("no longer an exception, take it off crates/laconic/tests/tidy/main.rs: {names:?}"));
    }
    assert!(lines.is_empty(), "\n{}", lines.join("\n"));
}

fn pairs<'a>(exceptions: &'a [(&'a str, &'a str)]) -> Vec<[&'a str; 2]> {
    exceptions.iter().map(|&(file, name)| [file, name]).collect()
}

/// [`judge`] for exceptions that are whole files.
fn judge_files(what_to_do: &str, violations: Vec<Violation>, exceptions: &[&str]) {
    let whole = |violation: Violation| Violation { names: violation.names[..1].to_vec(), ..violation };
    let violations: Vec<Violation> = violations.into_iter().map(whole).collect();
    judge(what_to_do, &violations, &exceptions.iter().map(std::slice::from_ref).collect::<Vec<_>>());
}

/// [`judge`] for exceptions that are pairs of a file and a name in it.
fn judge_pairs(what_to_do: &str, violations: &[Violation], exceptions: &[(&str, &str)]) {
    let exceptions = pairs(exceptions);
    judge(what_to_do, violations, &exceptions.iter().map(|pair| pair.as_slice()).collect::<Vec<_>>());
}

fn violation(source: &Source, line: usize, name: &str, what: &str) -> Violation {
    let place = format!("{}: {name}{what}", source.at(line));
    Violation { place, names: vec![source.path.clone(), name.to_owned()] }
}

#[test]
fn lines_have_at_most_120_columns() {
    let mut found = Vec::new();
    for file in files(&EVERYWHERE, "rs").iter().chain(&files(&["."], "toml")) {
        found.extend(long_lines(file));
    }
    judge_files("Break the lines; rustfmt leaves comments, strings and macros alone.", found, LONG_LINES);
}

fn long_lines(file: &Source) -> Vec<Violation> {
    let long = file.text.lines().enumerate().filter(|(_, line)| line.chars().count() > COLUMNS_MAX);
    long.map(|(line, text)| violation(file, line, &text.chars().count().to_string(), " columns")).collect()
}

#[test]
fn files_over_500_lines_say_why_in_their_header() {
    let found: Vec<Violation> = files(&EVERYWHERE, "rs").iter().filter_map(unexplained).collect();
    judge(&format!("Split the file, or say in its header `{WHY_LONG} …`."), &found, &[]);
}

fn unexplained(file: &Source) -> Option<Violation> {
    let lines = file.text.lines().count();
    let says_why = file.header().any(|line| line.contains(WHY_LONG));
    (lines > LINES_MAX && !says_why).then(|| violation(file, 0, &lines.to_string(), " lines"))
}

/// A member is one file and one line in a registry, and members from outside join by a registry alone. Neither is true
/// any more where somebody asks for a name: what the asker wants to know belongs into the member's kind. Defaults of a
/// configuration are names, since a configuration is what was typed; `config/` is exempt for them, and so are tests and
/// documentation.
#[test]
fn names_of_members_stand_in_their_own_files_alone() {
    let names = member_names();
    let mut found = Vec::new();
    for file in files(&ENGINE, "rs").iter().filter(|file| !file.path.starts_with("crates/train/src/config/")) {
        found.extend(member_literals(file, &names));
    }
    judge_pairs("Ask the member's kind for what you want to know of it, not for its name.", &found, NAMES);
}

/// The names of all members, from their registries.
fn member_names() -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    names.extend(CodecRegistry::default().names());
    names.extend(SelectionRegistry::default().names());
    names.extend(ScheduleRegistry::default().names());
    names.extend(TaskRegistry::default().names());
    names.extend(PartitionerRegistry::default().names());
    names.extend(LayerRegistry::default().names());
    names.extend(OptimiserRegistry::default().names());
    names.extend(RateRegistry::default().names());
    names.extend([TransportKind::Threads, TransportKind::Mpi].map(TransportKind::name));
    names
}

fn member_literals(file: &Source, names: &BTreeSet<&str>) -> Vec<Violation> {
    let is_own = |name: &str| file.text.contains(&format!("name: {name:?}"));
    let is_feature = |line: usize| file.code[line].contains("cfg(feature");
    let strings = file.strings.iter().filter(|(line, text)| names.contains(text.as_str()) && !file.test[*line]);
    let foreign = strings.filter(|(line, text)| !is_own(text) && !is_feature(*line));
    foreign.map(|(line, text)| violation(file, *line, text, ", a member's name")).collect()
}

/// Files that use each other across folders make a circle of folders, so this finds those too; and it looks into each
/// folder in the same way. A folder's own file and what is in the folder may use each other.
#[test]
fn files_and_folders_of_a_crate_use_each_other_in_no_circle() {
    let mut found = Vec::new();
    for path in CRATES {
        let name = path.split('/').nth(1).expect("crates/NAME/src");
        found.extend(circles(name, &files(&[path], "rs")));
    }
    let exceptions: Vec<[&str; 3]> = CIRCLES.iter().map(|&(name, from, to)| [name, from, to]).collect();
    let exceptions: Vec<&[&str]> = exceptions.iter().map(|names| names.as_slice()).collect();
    judge("Move what both need to where neither has to look back.", &found, &exceptions);
}

/// For each circle, the arrows within it. Those that [`CIRCLES`] lets pass close none, and are violations if they are
/// there at all.
fn circles(name: &str, files: &[Source]) -> Vec<Violation> {
    let mut places: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for arrow in arrows::arrows(files) {
        // The first names that differ: two files or folders of one folder.
        let differ = arrow.from.iter().zip(&arrow.to).position(|(from, to)| from != to);
        if let Some(depth) = differ {
            let [from, to] = [&arrow.from, &arrow.to].map(|module| module[..=depth].join("/"));
            places.entry((from, to)).or_default().push(arrow.place);
        }
    }
    let excepted = |(from, to): &(String, String)| CIRCLES.contains(&(name, from, to));
    let kept: Vec<(String, String)> = places.keys().filter(|arrow| !excepted(arrow)).cloned().collect();
    let circles = arrows::circles(&kept);
    let closes = |(from, to): &(String, String)| circles.iter().any(|all| all.contains(from) && all.contains(to));
    let mut found = Vec::new();
    for (arrow, places) in places.iter().filter(|(arrow, _)| excepted(arrow) || closes(arrow)) {
        let (from, to) = arrow;
        let place = format!("{name}: {from} uses {to}\n    {}", places.join("\n    "));
        found.push(Violation { place, names: vec![name.to_owned(), from.clone(), to.clone()] });
    }
    found
}

#[test]
fn documentation_has_more_than_two_words() {
    let found: Vec<Violation> = files(&CRATES, "rs").iter().flat_map(brief).collect();
    judge_files("Say what the name does not: shapes, units, errors, source.", found, BRIEF);
}

/// Public items with one or two words of documentation.
fn brief(file: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut words: Option<usize> = None;
    for (line, text) in file.text.lines().enumerate() {
        let text = text.trim();
        if let Some(doc) = text.strip_prefix("///") {
            words = Some(words.unwrap_or(0) + doc.split_whitespace().count());
        } else if !text.starts_with("#[") {
            if let (Some(1..=2), Some(item)) = (words, text.strip_prefix("pub ")) {
                let keywords = ["fn", "struct", "enum", "trait", "const", "static", "type", "mod", "unsafe", "async"];
                let mut names = item.split(|c: char| !c.is_alphanumeric() && c != '_');
                let name = names.find(|name| !keywords.contains(name)).unwrap_or_default();
                found.push(violation(file, line, name, ": one or two words of documentation"));
            }
            words = None;
        }
    }
    found
}

#[test]
fn no_lint_is_silenced() {
    let found: Vec<Violation> = files(&EVERYWHERE, "rs").iter().flat_map(silenced).collect();
    judge_pairs("Mend what the lint is about.", &found, ALLOWED);
}

fn silenced(file: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for (line, code) in file.code.iter().enumerate() {
        let starts = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
        for lints in starts.iter().filter_map(|start| code.trim_start().strip_prefix(start)) {
            found.push(violation(file, line, lints.split(')').next().unwrap_or(lints), " silenced"));
        }
    }
    found
}

/// A busy machine may let a thread wait for a second at any place, so a shorter deadline tests the machine.
#[test]
fn no_deadline_in_a_test_is_shorter_than_a_second() {
    let found: Vec<Violation> = files(&EVERYWHERE, "rs").iter().flat_map(short_deadlines).collect();
    judge_pairs("Wait for a second or more, and give what is measured no upper bound near it.", &found, &[]);
}

fn short_deadlines(file: &Source) -> Vec<Violation> {
    let is_short = |code: &str| ["from_millis(", "from_micros(", "from_nanos("].iter().any(|unit| code.contains(unit));
    let waits = |code: &str| ["threads(", "deadline", "DEADLINE", "End::new("].iter().any(|word| code.contains(word));
    let lines = file.code.iter().enumerate().filter(|(line, code)| file.test[*line] && is_short(code) && waits(code));
    let keys =
        file.strings.iter().filter(|(line, text)| file.test[*line] && text.contains(&["deadline_s", "=0"].concat()));
    let lines = lines.map(|(line, _)| line).chain(keys.map(|(line, _)| *line));
    lines.map(|line| violation(file, line, "deadline", " of less than a second in a test")).collect()
}

#[test]
fn functions_have_at_most_60_lines() {
    let found: Vec<Violation> = files(&EVERYWHERE, "rs").iter().flat_map(long_functions).collect();
    judge_pairs("Split the function where a name for the piece comes by itself.", &found, LONG);
}

fn long_functions(file: &Source) -> Vec<Violation> {
    let long = functions::functions(file).into_iter().filter(|function| function.lines > FUNCTION_LINES_MAX);
    long.map(|one| violation(file, one.line, &one.name, &format!(" has {} lines", one.lines))).collect()
}

#[test]
fn functions_have_at_most_seven_parameters() {
    let found: Vec<Violation> = files(&EVERYWHERE, "rs").iter().flat_map(wide_functions).collect();
    judge_pairs("Make a struct of those that belong together.", &found, WIDE);
}

fn wide_functions(file: &Source) -> Vec<Violation> {
    let wide = functions::functions(file).into_iter().filter(|function| function.parameters > PARAMETERS_MAX);
    wide.map(|one| violation(file, one.line, &one.name, &format!(" has {} parameters", one.parameters))).collect()
}

#[test]
fn words_are_those_of_the_field() {
    let mut found = Vec::new();
    for extension in ["rs", "md", "py", "toml"] {
        for file in files(&["."], extension).iter().filter(|file| !file.path.ends_with(GLOSSARY)) {
            found.extend(own_words(file));
        }
    }
    judge_pairs("Use the field's word: docs/development/glossary.md.", &found, &[]);
}

fn own_words(file: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    // The list itself is no use of them.
    let is_entry = |line: &str| line.trim_start().starts_with("(\"") && file.path.ends_with("tidy/main.rs");
    for (line, text) in file.text.lines().enumerate().filter(|(_, text)| !is_entry(text)) {
        let text = text.to_lowercase();
        let used = OWN_WORDS.iter().filter(|(word, _)| text.contains(word));
        found.extend(used.map(|(word, better)| violation(file, line, word, &format!(": the field says {better}"))));
    }
    found
}

/// Each rule finds what breaks it, or it would say nothing.
#[test]
fn every_rule_can_be_broken() {
    let rust = |text: &str| Source::new("crates/x/src/y.rs", text);
    assert_eq!(long_lines(&rust(&"é".repeat(121))).len(), 1);
    assert!(long_lines(&rust(&"é".repeat(120))).is_empty());
    assert!(unexplained(&rust(&"\n".repeat(501))).is_some());
    assert!(unexplained(&rust(&format!("//! {WHY_LONG} it is.\n{}", "\n".repeat(501)))).is_none());
    let names = BTreeSet::from(["exact"]);
    assert_eq!(member_literals(&rust("fn f(c: &str) -> bool { c == \"exact\" }"), &names).len(), 1);
    let fine = "/// \"exact\"\nfn f() { // \"exact\"\n}\n#[cfg(test)]\nmod tests { const A: &str = \"exact\"; }\n";
    assert!(member_literals(&rust(fine), &names).is_empty());
    assert!(member_literals(&rust("const K: Kind = Kind { name: \"exact\" };"), &names).is_empty());
    assert_eq!(brief(&rust("/// The key.\npub key: u8,\n/// The key.\n#[must_use]\npub fn key() {}\n")).len(), 2);
    assert!(brief(&rust("/// The key itself.\npub key: u8,\n/// The key.\nkey: u8,\n")).is_empty());
    assert_eq!(silenced(&rust("#![allow(dead_code)]\n    #[allow(clippy::all)]\nallow(1);\n")).len(), 2);
    assert_eq!(long_functions(&rust(&format!("fn f() {{\n{}}}\n", "\n".repeat(60)))).len(), 1);
    assert!(long_functions(&rust(&format!("fn f() {{\n{}}}\n", "\n".repeat(58)))).is_empty());
    assert_eq!(wide_functions(&rust("fn f(a: A, b: A, c: A, d: A, e: A, f: A, g: A, h: A) {}")).len(), 1);
    assert_eq!(wide_functions(&rust("fn f((a, b): (A, A), (c, (d, e)): B, [f, g]: [A; 2], h: A) {}")).len(), 1);
    assert!(wide_functions(&rust("fn f(a: A, b: A, c: A, d: A, e: A, f: A, (g,): (A,)) {}")).is_empty());
    let test = |text: &str| Source::new("crates/x/tests/y.rs", text);
    assert_eq!(short_deadlines(&test("let ends = threads(3, Duration::from_millis(30));")).len(), 1);
    assert_eq!(short_deadlines(&test(&["f(\"transport.deadline_s", "=0.5\")"].concat())).len(), 1);
    assert!(short_deadlines(&test("sleep(Duration::from_millis(5));\nthreads(1, Duration::from_secs(1))")).is_empty());
    assert_eq!(own_words(&rust(&["/// The way ", "back.\nfn puts() {}\n"].concat())).len(), 1);
    let file = |path: &str, text: &str| Source::new(path, text);
    let round = [file("crates/x/src/a.rs", "use crate::b::B;"), file("crates/x/src/b.rs", "fn f(_: super::a::A) {}")];
    assert_eq!(circles("x", &round).len(), 2);
    assert!(circles("x", &round[..1]).is_empty());
}

#[test]
#[should_panic(expected = "no longer an exception")]
fn an_exception_that_nothing_needs_fails_too() {
    judge_pairs("", &[], &[("a.rs", "f")]);
}
