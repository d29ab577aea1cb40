//! Which columns of an edge table say what of edges. Nothing is guessed where a wrong guess would be another graph.

use super::ReadOptions;
use super::index_column::is_index_name;
use super::names::{COLUMNS_MAX, Likeness, are_two_kinds, likeness};
use super::numbers::shorten;
use super::place::{Third, third};
use super::table::{ColumnInfo, IdColumn, Kind, Table, called, find_column, usual_column};
use crate::build::Duplicates;
use crate::error::{GraphError, Result};
use crate::roles::{Role, Roles, TableRoles};
use std::collections::HashSet;
use std::path::Path;

pub(super) const SOURCE_NAMES: [&str; 6] = ["source", "src", "src_id", "source_id", "from", "u"];
pub(super) const TARGET_NAMES: [&str; 7] = ["target", "dst", "dst_id", "target_id", "dest", "to", "v"];
const WEIGHT_NAMES: [&str; 3] = ["weight", "edge_weight", "w"];
const RELATION_NAMES: [&str; 10] = [
    "relation",
    "rel",
    "predicate",
    "relation_type",
    "edge_type",
    "rel_type",
    "relation_id",
    "rel_id",
    ":type",
    "_type",
];

/// What is given for a column of weights where an edge weighs as much as it is listed times.
pub const COUNT: &str = "count";

/// Which columns of a table say what of edges.
pub(super) struct EdgeColumns {
    pub(super) source: usize,
    pub(super) target: usize,
    pub(super) weight: Option<usize>,
    /// Whether each row weighs 1.
    pub(super) is_counted: bool,
    /// The relation of each edge, where it is asked for.
    pub(super) relation: Option<usize>,
    /// A column that seems to hold relations that are not asked for.
    unasked: Option<usize>,
    /// A third column without a name that holds times, in this unit.
    times: Option<&'static str>,
    known: Known,
}

/// How the ends came to be known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// They are named by whom the table belongs to, or have usual names, or are all that there is.
    Surely,
    /// By names that often are those of ends.
    ByNames,
    /// By names of nodes of two kinds.
    ByKinds,
    /// By their places, in a table without names.
    ByPlaces,
}

/// A table whose columns are looked for.
struct Search<'a> {
    table: &'a dyn Table,
    path: &'a Path,
    options: &'a ReadOptions,
}

impl EdgeColumns {
    /// Finds them.
    ///
    /// # Errors
    ///
    /// If a column that is named is not there, or no rule says which columns are the ends.
    pub(super) fn find(table: &dyn Table, path: &Path, options: &ReadOptions) -> Result<EdgeColumns> {
        let search = Search { table, path, options };
        let (given_source, given_target) = (&options.columns.source, &options.columns.target);
        let source = find_column(table, path, given_source.as_deref(), &[])?;
        let mut target = find_column(table, path, given_target.as_deref(), &[])?;
        if let Some(first) = source.filter(|_| given_source == given_target) {
            // The first and the second of two columns of one name.
            let name = &table.columns()[first].name;
            let second = table.columns().iter().enumerate().skip(first + 1).find(|(_, column)| column.name == *name);
            target = second.map_or(target, |(place, _)| Some(place));
        }
        let is_free = |name: &str| !options.columns.ignore.iter().any(|ignored| ignored == name);
        let source = source.or_else(|| usual_column(table, &SOURCE_NAMES, &is_free));
        let target = target.or_else(|| usual_column(table, &TARGET_NAMES, &is_free));
        if table.columns().len() < 2 {
            let what = format!("expected a source and a target column, found [{}]", search.listed());
            return Err(search.error(what));
        }
        let (source, target, known) = match (source, target) {
            (Some(source), Some(target)) if source != target => (source, target, Known::Surely),
            (None, None) => search.pair()?,
            (source, target) => search.other(source, target)?,
        };
        let (weight, times, is_counted) = search.weight([source, target], &is_free)?;
        let usual = usual_column(table, &RELATION_NAMES, &is_free);
        let usual = usual.filter(|column| ![Some(source), Some(target), weight].contains(&Some(*column)));
        let named = find_column(table, path, options.columns.relation.as_deref(), &[])?;
        let relation = named.or(usual.filter(|_| options.typed));
        let unasked = usual.filter(|_| relation.is_none());
        Ok(EdgeColumns { source, target, weight, is_counted, relation, unasked, times, known })
    }

    /// Whether its ends are nodes of two kinds, as was said or as their names say.
    pub(super) fn is_bipartite(&self, options: &ReadOptions) -> bool {
        options.bipartite || self.known == Known::ByKinds
    }

    /// What is said where names are not those of the two ends of an edge, and both columns hold the same numbers.
    pub(super) fn two_kinds(&self, table: &dyn Table, ends: &[IdColumn]) -> Option<String> {
        let [source, target] = [self.source, self.target].map(|end| table.columns()[end].name.as_str());
        let flag = "--bipartite (data.bipartite) keeps nodes of two kinds apart that have the same ids";
        if !table.has_header() {
            let [a, b] = two_counts(ends)?;
            return Some(format!("sources count up to {a} and targets to {b}, as nodes of two kinds would; {flag}"));
        }
        let is_usual = SOURCE_NAMES.contains(&source.to_lowercase().as_str());
        if is_usual || likeness(source, target).is_some() {
            return None;
        }
        let count = shared(ends);
        (count > 0).then(|| format!("{count} ids are in both columns, '{source}' and '{target}'; {flag}"))
    }

    /// Says what became of each column.
    pub(super) fn say(&self, table: &dyn Table, path: &Path, options: &ReadOptions, roles: &mut Roles) {
        let mut roles = roles.of_table(path);
        let ends = [
            (Role::Source, Some(self.source)),
            (Role::Target, Some(self.target)),
            (Role::Relation, self.relation),
            (Role::Weight, self.weight),
        ];
        if self.is_counted {
            roles.line(Role::Weight, &[], "how often each edge is listed");
        }
        for (role, column) in ends {
            let Some(column) = column else { continue };
            let (name, shown) = (table.columns()[column].name.as_str(), called(table, column));
            match (role, self.known) {
                (Role::Source, Known::ByPlaces) => {
                    roles.line(role, &[name], format!("{shown} (by its place: the first line is a row)"));
                }
                (Role::Source, Known::ByKinds) => {
                    let kinds =
                        format!("'{shown}' and '{}' are nodes of two kinds by their names", called(table, self.target));
                    let what = format!(
                        "{kinds}, which are kept apart, as --bipartite (data.bipartite) does; --source and --target \
                         (data.source, data.target) join them as nodes of one kind"
                    );
                    roles.doubtful(role, &[name], shown, what);
                }
                (Role::Source, Known::ByNames) => {
                    let what = format!(
                        "ends of edges are guessed by their names: '{shown}' and '{}'; --source and --target \
                         (data.source, data.target) name them",
                        called(table, self.target)
                    );
                    roles.doubtful(role, &[name], shown, what);
                }
                (Role::Weight, _) if table.columns()[column].kind == Kind::Date => {
                    let what = "weights are days: of dates those since 1970-01-01, of intervals their length, of which \
                                30 s are 0.000347";
                    roles.doubtful(role, &[name], shown, what.to_owned());
                }
                _ => roles.line(role, &[name], shown),
            }
        }
        let taken: Vec<usize> = ends.iter().filter_map(|(_, column)| *column).collect();
        self.say_rest(table, options, &taken, &mut roles);
    }

    /// Says what became of the columns beside those that are `taken`.
    fn say_rest(&self, table: &dyn Table, options: &ReadOptions, taken: &[usize], roles: &mut TableRoles<'_>) {
        for (place, column) in table.columns().iter().enumerate() {
            let name = column.name.as_str();
            if taken.contains(&place) {
                continue;
            }
            let times = self.times.filter(|_| place == 2);
            match (column.kind, times) {
                _ if options.columns.ignore.contains(&column.name) => roles.unwanted(name),
                (_, Some(unit)) => {
                    let flag = "--weight \"column 3\" (data.weight) takes them as weights all the same";
                    roles.ignored(name, &format!("times ({unit}) are no weights; {flag}"));
                }
                _ if self.unasked == Some(place) => {
                    let flags = format!("--relation {name} (data.relation)");
                    roles.ignored(name, &format!("edges are of one kind; {flags} tells their relations apart by it"));
                }
                (Kind::Integer | Kind::Float, _) if self.weight.is_none() && !self.is_counted => {
                    roles.ignored(name, &format!("not called a weight; --weight {name} (data.weight) makes it one"));
                }
                _ => roles.ignored(name, "edges have no features"),
            }
        }
    }
}

impl Search<'_> {
    fn error(&self, what: String) -> GraphError {
        GraphError::format(self.path, "header", what)
    }

    /// Whether a column may be an end where nobody says so.
    fn may_be_end(&self, (place, column): &(usize, &ColumnInfo)) -> bool {
        let is_left = self.options.columns.ignore.contains(&column.name);
        !is_left && !is_index_name(&column.name) && self.is_end_kind(*place)
    }

    /// The columns that are neither left out nor the numbers of rows.
    fn all(&self) -> Vec<usize> {
        let columns = self.table.columns().iter().enumerate();
        let is_there =
            |column: &ColumnInfo| !self.options.columns.ignore.contains(&column.name) && !is_index_name(&column.name);
        columns.filter(|(_, column)| is_there(column)).map(|(place, _)| place).collect()
    }

    /// The column of weights, or whether each row is to weigh 1.
    fn weight(
        &self,
        [source, target]: [usize; 2],
        is_free: &dyn Fn(&str) -> bool,
    ) -> Result<(Option<usize>, Option<&'static str>, bool)> {
        let (table, options) = (self.table, self.options);
        let given = options.columns.weight.as_deref();
        if given == Some(COUNT) && !table.columns().iter().any(|column| column.name == COUNT) {
            if options.duplicates != Duplicates::Sum {
                let what = "--weight count adds up how often an edge is listed, so data.duplicates has to be \"sum\"";
                return Err(self.error(what.to_owned()));
            }
            return Ok((None, None, true));
        }
        let named = find_column(table, self.path, given, &[])?;
        let named = named.or_else(|| usual_column(table, &WEIGHT_NAMES, is_free));
        let (weight, times) = match named {
            None if !table.has_header() => self.third(source, target)?,
            weight => (weight.filter(|&column| ![source, target].contains(&column)), None),
        };
        Ok((weight, times, false))
    }

    /// Both ends, neither of which is named.
    fn pair(&self) -> Result<(usize, usize, Known)> {
        if !self.table.has_header() {
            return self.first_two();
        }
        let (found, known) = self.alike();
        match found[..] {
            [(source, target)] => return Ok((source, target, known)),
            [] => {
                if let [(source, target)] = self.two_kinds()[..] {
                    return Ok((source, target, Known::ByKinds));
                }
            }
            _ => {
                let pairs = found.iter().map(|&(a, b)| {
                    format!("--source \"{}\" --target \"{}\"", called(self.table, a), called(self.table, b))
                });
                let pairs: Vec<String> = pairs.collect();
                let what = format!("the ends of edges may be any of these: {}", pairs.join("; or "));
                return Err(self.error(format!("{what}; say which")));
            }
        }
        match self.all()[..] {
            [source, target] if [source, target].iter().all(|&end| self.is_end_kind(end)) => {
                Ok((source, target, Known::Surely))
            }
            _ => Err(self.unknown("source and target")),
        }
    }

    /// The pairs of columns that are called like nodes of two kinds.
    fn two_kinds(&self) -> Vec<(usize, usize)> {
        let columns: Vec<(usize, &ColumnInfo)> =
            self.table.columns().iter().enumerate().filter(|column| self.may_be_end(column)).collect();
        let columns = if columns.len() > COLUMNS_MAX { &[] } else { &columns[..] };
        let pairs = columns.iter().flat_map(|one| columns.iter().map(move |other| (one, other)));
        pairs
            .filter(|(one, other)| are_two_kinds(&one.1.name, &other.1.name))
            .map(|(one, other)| (one.0, other.0))
            .collect()
    }

    /// The pairs of columns that are called like ends, those that are so most.
    fn alike(&self) -> (Vec<(usize, usize)>, Known) {
        let mut best = None;
        let mut found = Vec::new();
        let columns: Vec<(usize, &ColumnInfo)> =
            self.table.columns().iter().enumerate().filter(|column| self.may_be_end(column)).collect();
        if columns.len() > COLUMNS_MAX {
            return (found, Known::ByNames);
        }
        for (a, source) in &columns {
            for (b, target) in &columns {
                let like = if a == b { None } else { likeness(&source.name, &target.name) };
                // Two columns of one name are ends in their order.
                let like = like.filter(|_| source.name != target.name || a < b);
                if like.is_none() || like < best {
                    continue;
                }
                if like > best {
                    found.clear();
                    best = like;
                }
                found.push((*a, *b));
            }
        }
        (found, if best.is_some() { Known::ByNames } else { Known::Surely })
    }

    /// The end that is missing beside one that is named or has a usual name.
    fn other(&self, source: Option<usize>, target: Option<usize>) -> Result<(usize, usize, Known)> {
        let one = source.or(target).unwrap_or(0);
        let name = |column: usize| self.table.columns()[column].name.as_str();
        if let (Some(_), Some(_)) = (source, target) {
            let what = format!("expected a source and a target column, found '{}' for both", name(one));
            return Err(self.error(format!("{what}; the columns are: {}", self.listed())));
        }
        let columns = self.table.columns().iter().enumerate().filter(|column| self.may_be_end(column));
        let is_like = |other: usize| match source {
            Some(_) => likeness(name(one), name(other)) > Some(Likeness::Letters),
            None => likeness(name(other), name(one)) > Some(Likeness::Letters),
        };
        let alike: Vec<usize> =
            columns.map(|(place, _)| place).filter(|&place| place != one && is_like(place)).collect();
        let rest: Vec<usize> = self.all().into_iter().filter(|&place| place != one).collect();
        let (other, known) = match (&alike[..], &rest[..]) {
            ([other], _) => (*other, Known::ByNames),
            (_, [other]) if self.is_end_kind(*other) => (*other, Known::Surely),
            _ => return Err(self.unknown(if source.is_some() { "target" } else { "source" })),
        };
        Ok(if source.is_some() { (one, other, known) } else { (other, one, known) })
    }

    fn is_end_kind(&self, column: usize) -> bool {
        match self.table.columns()[column].kind {
            Kind::Integer | Kind::Text => true,
            Kind::Float => self.table.are_digits(column),
            _ => false,
        }
    }

    /// The first two columns of a table without names.
    fn first_two(&self) -> Result<(usize, usize, Known)> {
        let columns = self.table.columns();
        let kind = |place: usize| if self.is_end_kind(place) { Kind::Text } else { Kind::Float };
        let kinds: Vec<Kind> = match columns.iter().take(2).map(|column| column.kind).collect::<Vec<_>>()[..] {
            [Kind::Float, _] | [_, Kind::Float] => vec![kind(0), kind(1)],
            ref kinds => kinds.to_vec(),
        };
        match kinds[..] {
            // Without a row there is nothing to get wrong.
            [_, _] if self.table.rows() == 0 => Ok((0, 1, Known::ByPlaces)),
            [Kind::Integer | Kind::Text, Kind::Integer | Kind::Text] if columns.len() == 2 || kinds[0] == kinds[1] => {
                Ok((0, 1, Known::ByPlaces))
            }
            _ => Err(self.unknown("source and target")),
        }
    }

    /// The third column as weights, in a table without names.
    fn third(&self, source: usize, target: usize) -> Result<(Option<usize>, Option<&'static str>)> {
        let columns = self.table.columns();
        let Some(column) = columns.get(2) else { return Ok((None, None)) };
        let is_named = self.options.columns.source.is_some() && self.options.columns.target.is_some();
        let is_left = self.options.columns.ignore.contains(&column.name);
        let is_taken = self.options.columns.relation.as_deref() == Some(column.name.as_str());
        if (source, target) != (0, 1) || is_taken || column.name != "column 3" || is_left || self.table.rows() == 0 {
            return Ok((None, None));
        }
        let is_number = matches!(column.kind, Kind::Integer | Kind::Float);
        if !is_number && (is_named || column.kind != Kind::Text) {
            return Ok((None, None));
        }
        let what = match third(self.table)? {
            Third::Weights => return Ok((Some(2), None)),
            Third::Dates => return Ok((None, None)),
            Third::Tails | Third::Ends if is_named => return Ok((Some(2), None)),
            Third::Times(unit) => return Ok((None, Some(unit))),
            Third::Tails => {
                let triples = "--source \"column 1\" --relation \"column 2\" --target \"column 3\"";
                format!(
                    "these look like triples of head, relation and tail: {triples} reads them as such; {}",
                    self.all_the_same(is_number)
                )
            }
            Third::Ends => format!(
                "column 2 and column 3 hold the same values, and column 1 others: --source \"column 2\" --target \
                 \"column 3\" joins these; {}",
                self.all_the_same(is_number)
            ),
            Third::Texts => {
                let which = "--source and --target (data.source, data.target) say which columns are the ends of edges";
                format!(
                    "column 3 holds texts, so the first two columns may be no ends: {which}; {}",
                    self.all_the_same(false)
                )
            }
        };
        Err(GraphError::format(self.path, "columns", what))
    }

    /// How to have the first two columns all the same.
    fn all_the_same(&self, is_weight: bool) -> &'static str {
        match is_weight {
            true => "--weight \"column 3\" takes the first two as ends and the third as weights all the same",
            false => "--source \"column 1\" --target \"column 2\" takes the first two all the same",
        }
    }

    /// The error of ends that no rule knows.
    fn unknown(&self, ends: &str) -> GraphError {
        let flags = match ends {
            "source" => "--source COLUMN (data.source) names it",
            "target" => "--target COLUMN (data.target) names it",
            _ => "--source COLUMN and --target COLUMN (data.source, data.target) name them",
        };
        let listed = self.listed();
        let kinds = "and --bipartite keeps two kinds of nodes apart that may have the same ids";
        self.error(format!("no rule knows the {ends} of edges among the columns: {listed}; {flags}, {kinds}"))
    }

    /// The columns as they can be named, with the first values where they have no names.
    fn listed(&self) -> String {
        let names: Vec<String> = (0..self.table.columns().len()).map(|column| called(self.table, column)).collect();
        shorten_list(&names)
    }
}

fn shorten_list(names: &[String]) -> String {
    const MOST: usize = 40;
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    let names: Vec<String> = names.iter().take(MOST).map(|name| shorten(name).to_string()).collect();
    names.join(", ") + &more
}

/// How many whole numbers are ids at both ends.
fn shared(ends: &[IdColumn]) -> usize {
    let [IdColumn::Integers(a), IdColumn::Integers(b)] = ends else { return 0 };
    let of_a: HashSet<i64> = a.iter().copied().collect();
    b.iter().copied().collect::<HashSet<i64>>().intersection(&of_a).count()
}

/// The largest ids at both ends, where each end counts from its first id on without many gaps, and one much further
/// than the other: these may be numbers of different things.
fn two_counts(ends: &[IdColumn]) -> Option<[i64; 2]> {
    const ROWS_MIN: usize = 20;
    let [IdColumn::Integers(a), IdColumn::Integers(b)] = ends else { return None };
    let last = |ids: &[i64]| {
        let (least, most) = (*ids.iter().min()?, *ids.iter().max()?);
        let span = usize::try_from(most).ok().filter(|&most| (0..=1).contains(&least) && most <= ids.len())?;
        let mut there = vec![false; span + 1];
        ids.iter().for_each(|&id| there[id as usize] = true);
        let distinct = there.iter().filter(|&&there| there).count();
        (10 * distinct >= 9 * span && distinct > 2).then_some(most)
    };
    let (a_last, b_last) = (last(a)?, last(b)?);
    (a.len() >= ROWS_MIN && 10 * a_last.abs_diff(b_last) > a_last.max(b_last) as u64).then_some([a_last, b_last])
}
