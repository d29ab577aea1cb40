//! `laconic schema`: what `--json` prints.

mod documents;
mod page;
mod rows;

use anyhow::{Result, bail};
use clap::Args;

use super::keys::Page;
use crate::output::Output;

use documents::{DOCUMENTS, Document, Entry, Listed};

/// Arguments of `schema`.
#[derive(Args)]
#[command(after_help = "Examples:\n  laconic schema\n  laconic schema train > summary.schema.json\n  \
                        laconic schema data info")]
pub struct Schema {
    /// The command whose document is meant, such as data info, or another name of the list; its JSON schema is printed
    document: Vec<String>,
    /// The page docs/json.md in place of the list
    #[arg(long, conflicts_with = "document")]
    markdown: bool,
}

/// Lists the documents, or describes one.
pub fn run(arguments: Schema, output: &Output) -> Result<u8> {
    if arguments.markdown {
        let page = page::page();
        output.result(page.trim_end(), &Page { markdown: &page })?;
        return Ok(0);
    }
    if arguments.document.is_empty() {
        let entry = |document: &Document| Entry { names: document.names, about: document.about() };
        let documents: Vec<Entry> = DOCUMENTS.iter().map(entry).collect();
        output.result(list(&documents), &Listed { documents })?;
        return Ok(0);
    }
    let asked = arguments.document.join(" ");
    let Some(document) = DOCUMENTS.iter().find(|document| document.names.contains(&asked.as_str())) else {
        bail!("no document is called {asked:?}; laconic schema lists them");
    };
    let schema = document.schema();
    output.result(serde_json::to_string_pretty(&schema)?, &schema)?;
    Ok(0)
}

fn list(documents: &[Entry]) -> String {
    let names: Vec<String> = documents.iter().map(|document| document.names.join(", ")).collect();
    let width = names.iter().map(String::len).max().unwrap_or(0);
    let lines = names.iter().zip(documents).map(|(names, document)| format!("{names:width$}  {}", document.about));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_document_has_its_own_names_a_sentence_and_fields_that_are_explained() {
        let mut names = BTreeSet::new();
        for document in DOCUMENTS.iter() {
            assert!(document.names.iter().all(|name| names.insert(name)), "{:?}", document.names);
            assert!(!document.about().is_empty(), "{:?}", document.names);
            for row in document.rows() {
                assert!(!row.text.is_empty(), "{:?}: `{}` is not explained", document.names, row.path);
                // One that is not always there says when it is.
                assert!(row.when.as_deref() != Some(""), "{:?}: when is `{}` there?", document.names, row.path);
            }
        }
    }
}
