//! The page for people: a table for each document.

use super::documents::DOCUMENTS;
use super::rows::Row;

const BEGINNING: &str = "\
# What `--json` prints

With `--json` a command prints one JSON document on standard output, its result or an error, and nothing else; what
people read goes to standard error. Fields are added, never renamed. The tables list all of them, and a test compares
them with what the program prints. `laconic schema` lists the documents, and `laconic schema train` prints the JSON
schema of one. This page is made by `laconic schema --markdown`, from what the sources say of each field: change it
there.

Bytes are bytes on the wire, framing included, or bytes of a file or of memory; seconds are seconds. In a path `[]` are
the elements of a list, capitals stand for a name (`KIND` for a kind of message), and `…` for all that is below. A
remark in brackets says when a field is there, or when it is not empty; those that may be missing come last. A figure
that is not defined, because it would be 0/0 (an area under the curve of one class), is null under its own name; a split
in which nothing is labelled has none.

The folder of a run has `summary.json`, which is what `train` prints, and `metrics.jsonl`, one object a round; that of a
comparison has `compare.json`, which is what `compare` prints.
";

/// The page `docs/json.md`: a table for each document.
pub fn page() -> String {
    let mut page = BEGINNING.to_owned();
    for document in DOCUMENTS.iter() {
        page += &format!("\n## {}\n\n", document.heading);
        if !document.text.is_empty() {
            page += &format!("{}\n\n", document.text);
        }
        page += "| field | type | |\n|---|---|---|\n";
        document.rows().iter().for_each(|row| page += &line(row));
    }
    page
}

fn line(Row { path, kind, when, text }: &Row) -> String {
    let when = when.as_ref().map_or_else(String::new, |when| format!("({when}) "));
    let text = format!("{when}{text}").replace('|', "\\|");
    format!("| `{path}` | {kind} | {}{}|\n", text, if text.is_empty() { "" } else { " " })
}
