//! The distinct ids of a column, and what is said where some are those of several rows.

use super::table::{IdColumn, Texts};
use std::collections::HashSet;

/// The least id and the span of all, where a table of the whole span is no larger than a few times the ids.
pub fn dense_range(ids: &[i64]) -> Option<(i64, usize)> {
    let (least, most) = (ids.iter().copied().min()?, ids.iter().copied().max()?);
    let span = u64::try_from(most.checked_sub(least)?).ok()? + 1;
    (span <= 4 * ids.len() as u64 + 1024).then_some((least, span as usize))
}

/// The distinct ids in the columns of an edge list: integers ascending, texts in the order of their first appearance,
/// row by row.
pub fn distinct(columns: &[IdColumn]) -> IdColumn {
    let integers = columns.iter().flat_map(|column| match column {
        IdColumn::Integers(ids) => &ids[..],
        IdColumn::Texts(_) => &[],
    });
    let texts: Vec<&Texts> = columns
        .iter()
        .filter_map(|column| match column {
            IdColumn::Texts(ids) => Some(ids),
            IdColumn::Integers(_) => None,
        })
        .collect();
    if let [first, second] = texts[..] {
        let mut seen = HashSet::new();
        let mut ids = Texts::default();
        for id in first.iter().zip(second.iter()).flat_map(|(one, other)| [one, other]) {
            if seen.insert(id) {
                ids.push(id);
            }
        }
        return IdColumn::Texts(ids);
    }
    let mut ids: Vec<i64> = integers.copied().collect();
    if let Some((least, span)) = dense_range(&ids) {
        // Marking beats sorting where it is possible.
        let mut there = vec![false; span];
        ids.iter().for_each(|id| there[(id - least) as usize] = true);
        ids = (least..).zip(there).filter_map(|(id, there)| there.then_some(id)).collect();
    } else {
        ids.sort_unstable();
        ids.dedup();
    }
    IdColumn::Integers(ids)
}

/// Ids of one column, each once: integers ascending, texts in the order of their first appearance.
pub fn distinct_of(column: &IdColumn) -> IdColumn {
    match column {
        IdColumn::Integers(_) => distinct(std::slice::from_ref(column)),
        IdColumn::Texts(ids) => {
            let mut seen = HashSet::new();
            let mut once = Texts::default();
            ids.iter().filter(|id| seen.insert(*id)).for_each(|id| once.push(id));
            IdColumn::Texts(once)
        }
    }
}

/// What is said of ids of which some are those of several rows, the first two of these; `place` says which row of the
/// file that of an id is.
pub fn said_of_repeated(ids: &IdColumn, (first, row): (u32, usize), place: &dyn Fn(usize) -> usize) -> String {
    let (all, count) = (ids.len(), ids.len() - distinct_of(ids).len());
    let id = match ids {
        IdColumn::Integers(ids) => ids[row].to_string(),
        IdColumn::Texts(ids) => ids.get(row).to_owned(),
    };
    let (first, row) = (place(first as usize), place(row));
    format!(
        "rows {first} and {row} have the same id '{id}': {count} of {all} rows repeat one; --duplicates first \
         (data.duplicates) keeps the first row of each node, and of each edge"
    )
}
