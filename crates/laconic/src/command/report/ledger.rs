//! `ledger.csv`, added up by layer, direction and kind, and by sender, kind and receiver.

use std::collections::BTreeMap;
use std::path::Path;

use laconic_train::Config;
use laconic_train::TrainError;
use laconic_wire::{Direction, Kind, Rank, Row as Account};

use super::contents::content;
use crate::bytes::human_bytes;
use crate::plot::{Dots, Row, Scale, Unit};
use crate::recorded::read_lines;

/// Layers on a page at most: a deeper network than any, and a guard against a ledger that nobody wrote.
const LAYERS_MAX: usize = 1024;
/// Of workers with higher numbers it is not kept who sent what to whom: no table has room for them.
const WORKERS_MAX: u32 = 64;

/// Sums of a ledger.
#[derive(Debug, Default, PartialEq)]
pub struct Ledger {
    /// Bytes by (layer, direction) and kind.
    sums: BTreeMap<(u16, Direction), [u64; Kind::ALL.len()]>,
    /// Bytes by sender and kind, for each receiver.
    sent: BTreeMap<(Rank, Kind), BTreeMap<Rank, u64>>,
}

impl Ledger {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Ledger, TrainError> {
        let mut ledger = Ledger::default();
        read_lines(path, &mut |number, line| {
            let wrong = |what: String| Err(TrainError::file(path, format!("line {number}: {what}")));
            if number == 1 {
                let expected = format!("expected {}", Account::CSV_HEADER);
                return if Account::is_header(line) { Ok(()) } else { wrong(expected) };
            }
            match line.parse().and_then(|row| ledger.enter(&row)) {
                Ok(()) if ledger.sums.len() <= 2 * LAYERS_MAX => Ok(()),
                Ok(()) => wrong(format!("expected at most {LAYERS_MAX} layers")),
                Err(error) => wrong(error),
            }
        })?;
        Ok(ledger)
    }

    fn enter(&mut self, row: &Account) -> Result<(), String> {
        let sum = &mut self.sums.entry((row.entry.layer, row.entry.direction)).or_default()[row.entry.kind as usize];
        *sum = sum.checked_add(row.count.framed).ok_or("more bytes than there can be")?;
        if row.from.0.max(row.entry.peer.0) < WORKERS_MAX {
            // No more than the sum that was just checked, or than another layer's.
            let sent = self.sent.entry((row.from, row.entry.kind)).or_default().entry(row.entry.peer).or_default();
            *sent = sent.saturating_add(row.count.framed);
        }
        Ok(())
    }

    /// Bytes by sender and kind, for each receiver; of the first workers where there are very many.
    pub fn sent(&self) -> &BTreeMap<(Rank, Kind), BTreeMap<Rank, u64>> {
        &self.sent
    }

    /// The sums by layer and direction, a dot for each kind.
    pub fn dots(&self, config: Option<&Config>) -> Dots {
        let row = |(&(layer, direction), sums): (&(u16, Direction), &[u64; Kind::ALL.len()])| Row {
            name: format!("layer {layer}, {}", direction.name()),
            values: sums.iter().map(|bytes| *bytes as f64).collect(),
            said: human_bytes(sums.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes))),
        };
        Dots {
            title: "Bytes by layer and direction".to_owned(),
            axis: "bytes of all workers, framing included; what belongs to no layer is under layer 0".to_owned(),
            unit: (Unit::Bytes, Scale::Log),
            kinds: Kind::ALL.iter().map(|kind| content(*kind, config)).collect(),
            rows: self.sums.iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_add_up_by_layer_and_direction_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ledger.csv");
        let read = |header: &str, rows: &[&str]| {
            std::fs::write(&path, [&[header], rows].concat().join("\n") + "\n").expect("written");
            Ledger::read(&path)
        };
        let rows = ["1,0,1,activations,1,forward,1,10,34,0", "2,1,0,activations,1,forward,1,20,44,1"];
        let ledger = read(Account::CSV_HEADER, &rows).expect("a ledger");
        assert_eq!(ledger.sums[&(1, Direction::Forward)].iter().sum::<u64>(), 78);
        assert_eq!(ledger.sent[&(Rank(0), Kind::Activations)], BTreeMap::from([(Rank(1), 34)]));
        let older = rows.map(|row| &row[..row.len() - 2]);
        let header = Account::CSV_HEADER.strip_suffix(",start").expect("the last field");
        assert_eq!(read(header, &older).expect("a ledger without starts"), ledger);
        assert!(read("round,from,to", &rows).is_err());
        assert!(read(Account::CSV_HEADER, &["1,0,1,gossip,1,forward,1,10,34,0"]).is_err());
    }
}
