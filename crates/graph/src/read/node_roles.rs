//! What is said of the columns of a node table.

use super::label_columns::{LABEL_NAMES, LABEL_PREFIX, LabelColumns};
use super::node_labels::Named;
use super::node_matrix::Matrix;
use super::numbers::shorten;
use super::table::{Kind, Table};
use super::{Missing, ReadOptions};
use crate::about::{Reading, TableColumn};
use crate::dataset::Labels;
use crate::roles::{Role, TableRoles, ranges};

/// Names in a line, runs of numbered ones shortened.
pub fn shorten_list(names: &[&str]) -> String {
    ranges(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
}

/// One line for labels, and a warning where there is doubt.
pub fn say_labels(
    table: &dyn Table,
    found: &LabelColumns,
    labels: Option<&Named>,
    candidates: &[String],
    roles: &mut TableRoles,
) {
    let columns: Vec<&str> = match found {
        LabelColumns::None => Vec::new(),
        LabelColumns::One(column) => vec![&table.columns()[*column].name],
        LabelColumns::Several(columns, _) => columns.iter().map(|&c| table.columns()[c].name.as_str()).collect(),
    };
    let Some(named) = labels else {
        if candidates.is_empty() {
            return roles.line(Role::Labels, &[], "none");
        }
        let few = shorten_list(&candidates.iter().map(String::as_str).collect::<Vec<_>>());
        let what = format!(
            "no column of labels is recognised ({}); data.label (--label) names one; with few different values: {few}",
            LABEL_NAMES.join(", ")
        );
        return roles.doubtful(Role::Labels, &[], "none", what);
    };
    let classes = named.labels.classes();
    let shown = |number: usize| match named.classes.get(number) {
        Some(name) => format!("{}={number}", shorten(name)),
        None => number.to_string(),
    };
    let listed = match (classes, named.classes.is_empty()) {
        (0, _) => "no classes".to_owned(),
        (classes, true) => format!("classes 0..{}", classes - 1),
        (classes, false) => {
            let more = if classes > 20 { format!(" and {} more", classes - 20) } else { String::new() };
            (0..classes.min(20)).map(shown).collect::<Vec<_>>().join(" ") + &more
        }
    };
    let kind = if matches!(named.labels, Labels::Multi { .. }) { " (multi-label)" } else { "" };
    let names = shorten_list(&columns);
    let mut text = format!("{names}{kind}: {listed}");
    let numbered = named.classes.iter().all(|name| name.parse::<u64>().is_ok()) && !named.classes.is_empty();
    let mut warning = None;
    if named.unknown.0 > 0 {
        let what = format!("{} labels of other classes, such as '{}'", named.unknown.0, named.unknown.1);
        text = format!("{text}, {what}, which are not known");
        warning = Some(format!("column '{names}': {what}, are taken as not known"));
    } else if numbered && matches!(found, LabelColumns::One(_)) {
        let what = "labels are numbers with gaps; the classes are the numbers that are there";
        warning = Some(format!("column '{names}': {what}: {listed}"));
    }
    match warning {
        Some(warning) => roles.doubtful(Role::Labels, &columns, text, warning),
        None => roles.line(Role::Labels, &columns, text),
    }
}

/// Warns of features that are called as labels are: what is to be learned would be read from them.
pub fn say_leaks(wanted: &[(usize, &TableColumn)], roles: &mut TableRoles) {
    let is_label = |name: &str| name.starts_with(LABEL_PREFIX) || LABEL_NAMES.contains(&name.to_lowercase().as_str());
    let names: Vec<&str> =
        wanted.iter().map(|(_, column)| column.name.as_str()).filter(|name| is_label(name)).collect();
    if !names.is_empty() {
        let what = "features that are called as labels are; data.ignore (--ignore) leaves them out".to_owned();
        roles.doubtful(Role::Features, &names, names.join(", "), format!("{}: {what}", names.join(", ")));
    }
}

/// One line for all features, and a warning for texts that are no category of theirs, or that are read as lists.
pub fn say_features(
    table: &dyn Table,
    wanted: &[(usize, &TableColumn)],
    matrix: &Matrix,
    options: &ReadOptions,
    roles: &mut TableRoles,
) {
    let names: Vec<&str> = wanted.iter().map(|(_, column)| column.name.as_str()).collect();
    if names.is_empty() {
        return roles.line(Role::Features, &[], "none");
    }
    let mut parts = Vec::new();
    let mut plain = Vec::new();
    let mut unknown = Vec::new();
    for (place, (_, column)) in wanted.iter().enumerate() {
        let mut notes = match &column.reading {
            Reading::Number => Vec::new(),
            Reading::Amount { comma: false } => vec!["amounts, thousands as in 1,234.50".to_owned()],
            Reading::Amount { comma: true } => vec!["amounts, thousands as in 1.234,50".to_owned()],
            Reading::List { width } => {
                if table.columns()[wanted[place].0].kind == Kind::Text {
                    unknown.push(format!("column '{}': texts are read as lists of {width} numbers", column.name));
                }
                vec![format!("list of {width}")]
            }
            Reading::Category { values } => vec![format!("one-hot {}", values.len())],
            Reading::Date => vec!["date as days".to_owned()],
        };
        let fill = match (options.like.is_some(), options.cells.missing) {
            _ if matches!(column.reading, Reading::Category { .. }) => "",
            (true, _) => ", filled as in training",
            (false, Missing::Mean) => ", filled with the mean",
            (false, _) => ", filled with 0",
        };
        if matrix.missing[place] > 0 {
            notes.push(format!("{} missing{fill}", matrix.missing[place]));
        }
        let (count, first) = &matrix.unknown[place];
        if *count > 0 {
            notes.push(format!("{count} of no known category"));
            unknown.push(format!("column '{}': {count} values are no category of the model's: '{first}'", column.name));
        }
        if notes.is_empty() {
            plain.push(column.name.clone());
            continue;
        }
        parts.extend((!plain.is_empty()).then(|| ranges(&std::mem::take(&mut plain))));
        parts.push(format!("{} ({})", column.name, notes.join(", ")));
    }
    parts.extend((!plain.is_empty()).then(|| ranges(&plain)));
    match unknown.is_empty() {
        true => roles.line(Role::Features, &names, parts.join(", ")),
        false => roles.doubtful(Role::Features, &names, parts.join(", "), unknown.join("; ")),
    }
}
