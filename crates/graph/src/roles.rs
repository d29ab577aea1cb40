//! What became of each column of the user's tables: ids, labels, features, or nothing.

use crate::build::{Duplicates, Removed};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It names the nodes.
    Ids,
    /// Where edges start.
    Source,
    /// Where edges end.
    Target,
    /// The weights of edges.
    Weight,
    /// What kinds of edges there are.
    Relation,
    /// What became of rows that are no edges of their own.
    Rows,
    /// What is learned.
    Labels,
    /// Who trains, validates and tests.
    Split,
    /// What is learned from.
    Features,
    /// Nothing.
    Ignored,
}

impl Role {
    /// Its name, as users read it.
    pub fn name(self) -> &'static str {
        match self {
            Role::Ids => "ids",
            Role::Source => "source",
            Role::Target => "target",
            Role::Weight => "weight",
            Role::Relation => "relation",
            Role::Rows => "rows",
            Role::Labels => "labels",
            Role::Split => "split",
            Role::Features => "features",
            Role::Ignored => "ignored",
        }
    }
}

/// One role in a table and the columns that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RoleLine {
    /// The name of the file.
    pub table: String,
    /// What the columns are for.
    pub role: Role,
    /// Their names, in the order of the table; none where it has no column for this.
    pub columns: Vec<String>,
    /// Columns and what is made of them, for people.
    pub text: String,
    /// (something that may not be meant) A column that is left out unasked, or something that is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The roles of all columns, table by table.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Roles {
    /// A line a role; a line a column for those that are ignored.
    pub lines: Vec<RoleLine>,
}

/// The roles of one table, as they are found out.
pub(crate) struct TableRoles<'a> {
    table: String,
    roles: &'a mut Roles,
}

impl Roles {
    /// The roles of the table in this file.
    pub(crate) fn of_table(&mut self, path: &std::path::Path) -> TableRoles<'_> {
        let table = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        TableRoles { table, roles: self }
    }

    /// A line a table, with all of its roles.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let tables = self.lines.chunk_by(|one, other| one.table == other.table);
        tables.map(|lines| {
            let roles: Vec<String> = lines.iter().map(|line| format!("{} {}", line.role.name(), line.text)).collect();
            format!("{}: {}", lines[0].table, roles.join(" | "))
        })
    }

    /// Everything that its owner may not have meant.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.lines.iter().filter_map(|line| line.warning.as_ref().map(|what| format!("{}: {what}", line.table)))
    }
}

/// What became of rows of an edge table that name nodes which there are not.
pub(crate) struct UnknownEnds {
    /// Rows that went since they name some.
    pub dropped: usize,
    /// Nodes that came since rows name them.
    pub added: usize,
    /// Rows that went since they name none.
    pub nameless: usize,
}

impl TableRoles<'_> {
    /// One role.
    pub(crate) fn line(&mut self, role: Role, columns: &[&str], text: impl Into<String>) {
        self.push(role, columns, text.into(), None);
    }

    /// One role with something that may not be meant.
    pub(crate) fn doubtful(&mut self, role: Role, columns: &[&str], text: impl Into<String>, warning: String) {
        self.push(role, columns, text.into(), Some(warning));
    }

    /// Rows that are no edges of their own, of so many: edges from a node to itself, and those without weights that
    /// are listed again.
    pub(crate) fn left_out(&mut self, removed: &Removed, rows: usize, weighted: bool) {
        let Removed { self_loops, duplicates, reciprocal, .. } = *removed;
        if self_loops > 0 {
            let what = format!("{self_loops} of {rows} rows are edges from a node to itself (self-loops), left out");
            let warning = format!("{what}; --self-loops keep (data.keep_self_loops) keeps them");
            self.doubtful(Role::Rows, &[], what, warning);
        }
        if duplicates > 0 && !weighted {
            let what = format!("{duplicates} of {rows} rows are duplicates of others in the same direction, left out");
            let warning = format!("{what}; --weight count makes weights of how often an edge is listed");
            self.doubtful(Role::Rows, &[], what, warning);
        }
        if reciprocal > 0 && !weighted {
            self.line(Role::Rows, &[], format!("{reciprocal} pairs of nodes are listed in both directions"));
        }
    }

    /// Rows that name nodes that there are not, or none, and what became of them.
    pub(crate) fn unknown(&mut self, of: UnknownEnds, rows: usize) {
        let UnknownEnds { dropped, added, nameless } = of;
        if nameless > 0 {
            let what = format!("{nameless} of {rows} rows have no node at one of their ends, left out");
            self.doubtful(Role::Rows, &[], what.clone(), what);
        }
        if dropped > 0 {
            let what = format!("{dropped} of {rows} rows name nodes that are not in the node table, left out");
            self.doubtful(Role::Rows, &[], what.clone(), what);
        }
        if added > 0 {
            let what = format!("{added} nodes that are not in the node table, added with features of 0");
            self.doubtful(Role::Rows, &[], what.clone(), what);
        }
    }

    /// What became of the weights of edges that are listed several times; nothing where there are none.
    pub(crate) fn merged(&mut self, removed: &Removed, rule: Duplicates) {
        let Removed { duplicates, reciprocal, both_ways, .. } = *removed;
        let by = format!("{} (duplicates = {})", rule.said(), rule.name());
        if duplicates > 0 {
            self.line(Role::Weight, &[], format!("{duplicates} edges are listed again in the same direction: {by}"));
        }
        if reciprocal > 0 {
            let what = format!("{reciprocal} pairs of nodes are listed in both directions: {by}");
            self.line(Role::Weight, &[], what);
        }
        if both_ways {
            let what = "every edge is listed in both directions with equal weights, which stay as they are";
            self.line(Role::Weight, &[], what);
        }
    }

    /// A column that is left out, with the reason.
    pub(crate) fn ignored(&mut self, column: &str, why: &str) {
        let warning = format!("column '{column}' is ignored: {why}");
        self.push(Role::Ignored, &[column], format!("{} ({why})", shown(column)), Some(warning));
    }

    /// A column that is left out because that was asked for.
    pub(crate) fn unwanted(&mut self, column: &str) {
        self.push(Role::Ignored, &[column], format!("{} (as asked)", shown(column)), None);
    }

    fn push(&mut self, role: Role, columns: &[&str], text: String, warning: Option<String>) {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        self.roles.lines.push(RoleLine { table: self.table.clone(), role, columns, text, warning });
    }
}

/// A name, and words for one that is empty.
fn shown(column: &str) -> &str {
    if column.is_empty() { "a column without a name" } else { column }
}

/// Names in a row, those that count up as `f0..f9`.
pub(crate) fn ranges(names: &[String]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = names;
    while let [first, after @ ..] = rest {
        let counted = match numbered(first) {
            Some((stem, number)) => {
                let follows = |(name, expected): &(&String, u64)| numbered(name) == Some((stem, *expected));
                after.iter().zip(number + 1..).take_while(follows).count()
            }
            None => 0,
        };
        if counted >= 2 {
            parts.push(format!("{first}..{}", after[counted - 1]));
            rest = &after[counted..];
        } else {
            parts.push(shown(first).to_owned());
            rest = after;
        }
    }
    const MOST: usize = 40;
    if parts.len() > MOST {
        let more = parts.len() - MOST;
        parts.truncate(MOST);
        parts.push(format!("and {more} more"));
    }
    parts.join(", ")
}

/// A name that ends in a number without leading zeros.
fn numbered(name: &str) -> Option<(&str, u64)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = &name[stem.len()..];
    let plain = !digits.is_empty() && (digits.len() == 1 || !digits.starts_with('0'));
    if plain { Some((stem, digits.parse().ok()?)) } else { None }
}

impl fmt::Display for RoleLine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:<10} {}", self.role.name(), self.text)
    }
}

impl fmt::Display for Roles {
    /// A line a role under the name of each table.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut table = None;
        for line in &self.lines {
            if table != Some(&line.table) {
                writeln!(f, "{}", line.table)?;
                table = Some(&line.table);
            }
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn names_that_count_up_are_named_by_their_ends() {
        let shown = |names: &str| ranges(&names.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(shown("f0 f1 f2 f3 age x9 x10 x11 y1 y2"), "f0..f3, age, x9..x11, y1, y2");
        assert_eq!(shown("a0 a2 a3 0 1 2 f08 f09 f10"), "a0, a2, a3, 0..2, f08, f09, f10");
        let many: Vec<String> = (0..50).map(|i| format!("c{}", i * 2)).collect();
        assert!(ranges(&many).ends_with("c78, and 10 more"), "{}", ranges(&many));
    }
}
