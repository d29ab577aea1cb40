//! `ledger.csv`, added up by layer, direction and kind.

use std::collections::BTreeMap;
use std::path::Path;

use laconic_train::TrainError;
use laconic_wire::{Direction, Kind, Row};

use crate::plot::{Bar, Bars, Unit};
use crate::recorded::read_lines;

/// Layers on a page at most: a deeper network than any, and a guard against a ledger that nobody wrote.
const LAYERS_MAX: usize = 1024;

/// Bytes by (layer, direction) and kind.
#[derive(Debug, Default, PartialEq)]
pub struct Ledger {
    sums: BTreeMap<(u16, Direction), [u64; Kind::ALL.len()]>,
}

impl Ledger {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Ledger, TrainError> {
        let mut ledger = Ledger::default();
        read_lines(path, &mut |number, line| {
            let wrong = |what: String| Err(TrainError::file(path, format!("line {number}: {what}")));
            if number == 1 {
                let expected = format!("expected {}", Row::CSV_HEADER);
                return if Row::is_header(line) { Ok(()) } else { wrong(expected) };
            }
            match line.parse().and_then(|row| ledger.enter(&row)) {
                Ok(()) if ledger.sums.len() <= 2 * LAYERS_MAX => Ok(()),
                Ok(()) => wrong(format!("expected at most {LAYERS_MAX} layers")),
                Err(error) => wrong(error),
            }
        })?;
        Ok(ledger)
    }

    fn enter(&mut self, row: &Row) -> Result<(), String> {
        let sum = &mut self.sums.entry((row.entry.layer, row.entry.direction)).or_default()[row.entry.kind as usize];
        *sum = sum.checked_add(row.count.framed).ok_or("more bytes than there can be")?;
        Ok(())
    }

    /// The sums as stacked bars.
    pub fn svg(&self, title: &str) -> String {
        let bar = |(&(layer, direction), sums): (&(u16, Direction), &[u64; Kind::ALL.len()])| Bar {
            name: format!("layer {layer}, {}", direction.name()),
            values: sums.iter().map(|bytes| *bytes as f64).collect(),
        };
        let segments = Kind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
        let bars = self.sums.iter().map(bar).collect();
        Bars { title: title.to_owned(), unit: Unit::Bytes, segments, bars }.svg()
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
        let ledger = read(Row::CSV_HEADER, &rows).expect("a ledger");
        assert_eq!(ledger.sums[&(1, Direction::Forward)].iter().sum::<u64>(), 78);
        let older = rows.map(|row| &row[..row.len() - 2]);
        let header = Row::CSV_HEADER.strip_suffix(",start").expect("the last field");
        assert_eq!(read(header, &older).expect("a ledger without starts"), ledger);
        assert!(read("round,from,to", &rows).is_err());
        assert!(read(Row::CSV_HEADER, &["1,0,1,gossip,1,forward,1,10,34,0"]).is_err());
    }
}
