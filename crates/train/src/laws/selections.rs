//! The laws of selections.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::Options;

use crate::selection::SelectionKind;

/// Checks a selection with each of these options: positions are ascending, different and on the link, as many as
/// promised, the same for the same key, and, where the kind says that it redraws nothing, the same for every key.
///
/// # Panics
/// If a law is broken, or the options are refused.
pub fn check(kind: &SelectionKind, options: &[Options]) {
    let name = kind.name;
    for options in options {
        let made = (kind.build)(options).unwrap_or_else(|error| panic!("{name} with {options:?}: {error}"));
        let Some(selection) = made else {
            assert!(!kind.cuts, "{name} cuts all edges between parts, but every row travels");
            continue;
        };
        assert!(!kind.covers, "{name} draws rows, and no sum stands for rows that were not drawn");
        let (mut drawn, mut again, mut other) = (Vec::new(), vec![7], vec![9, 9]);
        for rows in [0, 1, 2, 3, 10, 257] {
            for draw in 0..20 {
                let key = Key::new(5, Purpose::Test).with(rows as u64).with(draw);
                selection.draw(key, rows, &mut drawn);
                assert_eq!(drawn.len(), selection.count(rows), "{name}: rows of {rows}");
                assert!(drawn.is_sorted_by(|a, b| a < b), "{name}: {drawn:?} does not ascend");
                assert!(drawn.iter().all(|&row| (row as usize) < rows), "{name}: {drawn:?} of {rows} rows");
                selection.draw(key, rows, &mut again);
                assert_eq!(drawn, again, "{name}: the two ends of a link draw different rows");
                selection.draw(key.with(1), rows, &mut other);
                assert!(kind.redraws || drawn == other, "{name} redraws and does not say so");
            }
        }
    }
}
