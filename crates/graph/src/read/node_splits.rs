//! Who trains, validates and tests, by columns of a node table.

use super::numbers::shorten;
use super::table::{Cell, Kind, Table, scan_all};
use super::words::is_missing;
use crate::dataset::Split;
use crate::error::Result;

/// The split that a column of words says.
///
/// # Errors
///
/// If a word is none that is known; the message says in how many rows.
pub fn read_split(table: &dyn Table, column: usize) -> Result<Split> {
    let mut split = Split { roles: vec![0; table.rows()] };
    scan_all(table, &[(column, Kind::Text)], &mut |row, _, cell| {
        let Cell::Text(name) = cell else { return Ok(()) };
        if is_missing(name) {
            return Ok(());
        }
        split.roles[row] = match name.to_lowercase().as_str() {
            "train" | "training" | "tr" => Split::TRAIN,
            "val" | "valid" | "validation" | "va" => Split::VAL,
            "test" | "te" => Split::TEST,
            "none" | "-" | "unlabelled" | "unlabeled" => 0,
            _ => {
                return Err(format!("expected train, val, test, none or nothing, found '{}'", shorten(name)));
            }
        };
        Ok(())
    })?;
    Ok(split)
}

const NO_MASK: &str = "expected 0 or 1, as in a mask of the nodes that train, validate or test; --ignore (data.ignore) \
                       leaves out a column that is called like one and is none";

/// The split that columns of 0 and 1 say, each with the role that 1 gives.
///
/// # Errors
///
/// If a cell is neither; the message says how many are.
pub fn read_masks(table: &dyn Table, masks: &[(usize, u8)]) -> Result<Split> {
    let mut split = Split { roles: vec![0; table.rows()] };
    let wanted: Vec<_> = masks.iter().map(|&(column, _)| (column, Kind::Integer)).collect();
    scan_all(table, &wanted, &mut |row, slot, cell| {
        match cell {
            Cell::Integer(1) => split.roles[row] |= masks[slot].1,
            Cell::Integer(0) | Cell::Missing => {}
            _ => return Err(NO_MASK.to_owned()),
        }
        Ok(())
    })?;
    Ok(split)
}
