//! The pages for people: their links lead somewhere, and the first of them stays short.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Pages that have to stay short, and their words at most: three minutes, and ten.
const SHORT: [(&str, usize); 2] = [("README.md", 800), ("ARCHITECTURE.md", 2500)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages in a folder and the folders in it.
fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target") {
                pages(&path, into);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            into.push(path);
        }
    }
}

/// A page without its blocks of code.
fn prose(page: &Path) -> String {
    let text = std::fs::read_to_string(page).expect("a page");
    text.split("```").step_by(2).collect()
}

/// Where the links of a page lead, but for those to other places of the network.
fn links(prose: &str) -> Vec<&str> {
    let ends = prose.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next());
    ends.filter(|link| !link.contains("://")).collect()
}

/// The names by which links call the headings of a page.
fn headings(page: &Path) -> BTreeSet<String> {
    let of = |line: &str| {
        let kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
        line.trim_matches(['#', ' ']).to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    prose(page).lines().filter(|line| line.starts_with('#')).map(of).collect()
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let root = root();
    let mut all: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|page| root.join(page)).into();
    for folder in ["benchmarks", "docs", "examples", "fuzz", "tests", "tools"] {
        pages(&root.join(folder), &mut all);
    }
    let (mut followed, mut broken) = (0, Vec::new());
    for page in &all {
        for link in links(&prose(page)) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let there = if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            followed += 1;
            if !there.exists() || !heading.is_empty() && !headings(&there).contains(heading) {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
    assert!(followed > 50, "{followed} links were found, expected more");
}

#[test]
fn the_first_pages_stay_short() {
    for (page, most) in SHORT {
        let text = std::fs::read_to_string(root().join(page)).expect("a page");
        let words = text.split_whitespace().count();
        assert!(words <= most, "{page}: {words} words, expected at most {most}: move some to a page in docs");
    }
}

#[test]
fn every_content_of_a_frame_has_a_row_that_says_what_it_reveals() {
    let page = std::fs::read_to_string(root().join("docs/explanation/privacy.md")).expect("a page");
    let (_, section) = page.split_once("## What each content says of somebody").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("another section");
    let first = |line: &str| line.strip_prefix("| ").and_then(|row| row.split(" |").next()).map(str::to_owned);
    let rows: Vec<String> = section.lines().filter_map(first).collect();
    for content in laconic_wire::Content::ALL {
        let name = format!("`{}`", content.name());
        assert!(rows.iter().any(|row| row.contains(&name)), "{name} has no row");
    }
}
