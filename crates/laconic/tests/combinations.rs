//! `docs/reference/combinations.md` lists what cannot be combined: every pair that it names is refused, neither half of
//! it is, and whatever else is refused among the settings on the page is there.

use std::path::PathBuf;

use laconic_graph::part::GlobalCounts;
use laconic_train::config::Config;
use laconic_train::{Members, Plan};

/// Settings that belong together, such as a schedule and a key of its own.
type Group = Vec<String>;

fn page() -> String {
    let page = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/combinations.md"));
    std::fs::read_to_string(page).expect("the page")
}

/// The pairs of groups of the page's tables: rows begin with two lists of settings in backticks.
fn pairs(page: &str) -> Vec<[Group; 2]> {
    let group = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Group>();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let [a, b] = [format!("`{}", cells.next()?), cells.next()?.to_owned()];
        Some([group(&a), group(&b)])
    };
    page.lines().filter_map(row).collect()
}

/// What the program says to these settings on a graph of two classes.
fn said(sets: &[&String]) -> Result<(), String> {
    let members = Members::default();
    let base = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 8\n";
    let sets: Vec<String> = sets.iter().map(|set| (*set).clone()).collect();
    let counts = GlobalCounts { nodes: 200, edges: 900, columns: 8, classes: 2, train: 100, ..GlobalCounts::default() };
    let config: Config = members.parse(base, &sets).map_err(|error| error.to_string())?;
    members.check(&config).map_err(|error| error.to_string())?;
    Plan::with(&members, &config, &counts).map(drop).map_err(|error| error.to_string())
}

fn both([a, b]: &[Group; 2]) -> Vec<&String> {
    a.iter().chain(b).collect()
}

/// Whether a row with this setting is about that one, too: a codec's name stands for it with any options.
fn stands_for(row: &str, set: &str) -> bool {
    let named = row.split_once('=').map(|(key, codec)| format!("{key}={{codec={codec:?},"));
    row == set || named.is_some_and(|start| set.starts_with(&start))
}

#[test]
fn what_the_page_names_is_refused_together_and_taken_apart() {
    let pairs = pairs(&page());
    assert!(pairs.len() > 30, "{} rows", pairs.len());
    for pair in &pairs {
        let together = said(&both(pair));
        assert!(together.is_err(), "{pair:?} is taken: it has no place on the page any more");
        for half in pair {
            assert_eq!(said(&half.iter().collect::<Vec<_>>()), Ok(()), "{half:?} alone");
        }
    }
}

#[test]
fn of_the_settings_on_the_page_no_other_pair_is_refused() {
    let pairs = pairs(&page());
    let mut groups: Vec<&Group> = pairs.iter().flatten().collect();
    groups.sort();
    groups.dedup();
    let key = |set: &String| set.split('=').next().unwrap_or_default().to_owned();
    let mut unlisted = Vec::new();
    for (at, a) in groups.iter().enumerate() {
        for b in &groups[at + 1..] {
            let pair = [(*a).clone(), (*b).clone()];
            let sets = both(&pair);
            let names_a_key_twice = a.iter().any(|set| b.iter().any(|other| key(set) == key(other)));
            let holds = |row: &[Group; 2]| both(row).iter().all(|set| sets.iter().any(|other| stands_for(set, other)));
            if names_a_key_twice || pairs.iter().any(holds) {
                continue;
            }
            if let Err(why) = said(&sets) {
                unlisted.push(format!("{} with {}: {why}", a.join(" "), b.join(" ")));
            }
        }
    }
    assert!(unlisted.is_empty(), "{}", unlisted.join("\n"));
}
