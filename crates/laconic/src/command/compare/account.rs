//! The account of methods in tables: who saw what, and how often somebody waited.

use std::fmt::Write;

use laconic_train::record::account::Account;

use super::outcome::Line;
use crate::bytes::separated;
use crate::page::table::Table;
use crate::plot::key;

/// What the columns of [`table`] mean.
pub const SAW: &str = "Who had to hold the whole graph; who saw labels, features, rows that a model has made (class \
                       scores, hidden rows) and single models or their gradients of others: nobody but their owner, \
                       peers (other workers), the aggregator, or all of these. Round trips: how often somebody waits \
                       for frames, one wait after the other, in training; those of evaluations, and those at start \
                       and end apart. As foreseen from what crosses, before the run.";

/// Who saw what, in letters; a dash where it is not known.
pub fn saw(line: &Line) -> String {
    line.account.as_ref().map_or("-".to_owned(), Account::letters)
}

/// Waits of training; a dash where nobody knows.
pub fn trips(account: &Account) -> String {
    account.round_trips.map_or("-".to_owned(), |trips| trips.training.to_string())
}

/// Who saw each of the four, and waits of training, as fields of CSV; empty where nothing is known.
pub fn fields(line: &Line) -> String {
    let Some(account) = &line.account else { return ",,,,".to_owned() };
    let trips = account.round_trips.map(|trips| trips.training.to_string()).unwrap_or_default();
    let parties = account.saw().map(|party| party.name().to_owned());
    parties.into_iter().chain([trips]).collect::<Vec<_>>().join(",")
}

/// The columns of [`words`].
const HEAD: [&str; 8] =
    ["whole graph", "labels", "features", "scores", "models", "round trips", "of evaluations", "at start and end"];

/// The account of one run, in words.
pub fn of_run(account: &Account) -> Table {
    let mut table = Table::new(&HEAD);
    table.rows.push(words(account).collect());
    table
}

/// In words, a row a method; `None` where nothing is known of any.
pub fn table(lines: &[Line]) -> Option<Table> {
    let mut table = Table::new(&[&["method"][..], &HEAD].concat());
    for (style, line) in lines.iter().enumerate() {
        let Some(account) = &line.account else { continue };
        table.keys.push(key(style));
        table.rows.push(std::iter::once(line.name.clone()).chain(words(account)).collect());
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The account in the order of the columns.
fn words(account: &Account) -> impl Iterator<Item = String> {
    let parties = std::iter::once(account.holds_graph).chain(account.saw());
    let mut parties: Vec<String> = parties.map(|party| party.name().to_owned()).collect();
    if let Some(epsilon) = account.label_epsilon {
        let _ = write!(parties[1], ", answers at random (ε = {epsilon})");
    }
    let trips = account.round_trips.map(|trips| [trips.training, trips.evaluation, trips.start_up]);
    let trips = trips.map_or(["-"; 3].map(str::to_owned), |trips| trips.map(separated));
    parties.into_iter().chain(trips)
}
