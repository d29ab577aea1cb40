//! `ledger.csv`, added up by layer, direction and kind.

use std::collections::BTreeMap;
use std::path::Path;

use laconic_train::TrainError;
use laconic_wire::{Direction, Kind, Ledger as Written};

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
            let wrong = |what: &str| Err(TrainError::file(path, format!("line {number}: expected {what}")));
            if number == 1 {
                return if line == Written::CSV_HEADER { Ok(()) } else { wrong(Written::CSV_HEADER) };
            }
            match ledger.enter(line) {
                Some(()) if ledger.sums.len() <= 2 * LAYERS_MAX => Ok(()),
                Some(()) => wrong(&format!("at most {LAYERS_MAX} layers")),
                None => wrong("an account: nine fields, as the first line names them"),
            }
        })?;
        Ok(ledger)
    }

    fn enter(&mut self, line: &str) -> Option<()> {
        let fields: Vec<&str> = line.splitn(10, ',').collect();
        let [_, _, _, kind, layer, direction, _, _, framed] = fields[..] else { return None };
        let kind = Kind::ALL.iter().position(|known| known.name() == kind)?;
        let directions = [Direction::Forward, Direction::Reverse];
        let direction = directions.into_iter().find(|known| known.name() == direction)?;
        let sums = self.sums.entry((layer.parse().ok()?, direction)).or_default();
        sums[kind] = sums[kind].checked_add(framed.parse().ok()?)?;
        Some(())
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
        let mut ledger = Ledger::default();
        for line in ["1,0,1,activations,1,forward,1,10,34", "2,1,0,activations,1,forward,1,20,44"] {
            assert_eq!(ledger.enter(line), Some(()), "{line}");
        }
        assert_eq!(ledger.sums[&(1, Direction::Forward)].iter().sum::<u64>(), 78);
        let wrong =
            ["", "1,0,1,gossip,1,forward,1,10,34", "1,0,1,control,70000,forward,1,1,1", "1,0,1,control,1,up,1,1,1"];
        for line in wrong.into_iter().chain(["1,0,1,control,1,forward,1,1,-1", "1,0,1,control,1,forward,1,1,1,1"]) {
            assert_eq!(ledger.enter(line), None, "{line}");
        }
    }
}
