//! What relations pairs are of, in a model that scores them differently.

use laconic_train::record::card::Card;

/// Names of a column of relations, in the first line of a file.
const COLUMN: [&str; 5] = ["relation", "rel", "edge_type", "type", "predicate"];

/// No more of them are listed in an error.
const SHOWN: usize = 12;

/// The relations of a model, as its data call them: by names, or else by numbers.
pub struct Relations {
    names: Vec<String>,
}

impl Relations {
    /// Of a model that tells so many apart; `None` where that is but one.
    pub fn of(card: &Card, count: usize) -> Option<Relations> {
        let name = |number: usize| card.about.relations.get(number).cloned().unwrap_or_else(|| number.to_string());
        (count > 1).then(|| Relations { names: (0..count).map(name).collect() })
    }

    /// The number of the relation of this name.
    ///
    /// # Errors
    /// If there is none, or several are called so.
    pub fn number(&self, name: &str) -> Result<u32, String> {
        let called = |name: &str| {
            let numbers = self.names.iter().enumerate().filter(|(_, other)| *other == name);
            numbers.map(|(number, _)| number as u32).collect::<Vec<u32>>()
        };
        let exact = called(name);
        match &(if exact.is_empty() { called(name.trim()) } else { exact })[..] {
            [number] => Ok(*number),
            [] => Err(format!("no relation is called {name:?}; there are {}", self.listed())),
            several => Err(format!("{} relations are called {name:?}", several.len())),
        }
    }

    /// What a relation is called.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", String::as_str)
    }

    /// All names, or the first of many.
    pub fn listed(&self) -> String {
        let shown: Vec<&str> = self.names.iter().take(SHOWN).map(String::as_str).collect();
        shown.join(", ") + if self.names.len() > SHOWN { ", …" } else { "" }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }
}

/// Whether a column of this name has relations.
pub fn is_column(name: &str) -> bool {
    COLUMN.contains(&name.trim().to_lowercase().as_str())
}
