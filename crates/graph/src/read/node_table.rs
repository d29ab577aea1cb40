//! Node tables: one row a node, with an id, features, labels and a part in a split.

use super::ReadOptions;
use super::float_ids::warn_of_floats;
use super::heading::{Heading, is_neo4j_id};
use super::index_column::index_column;
use super::label_columns::{LABEL_NAMES, LabelColumns};
use super::node_columns::{Fate, Survey, feature_names, places, survey};
use super::node_labels::{LabelReader, Named};
use super::node_matrix::{Matrix, read_matrix};
use super::node_roles::{say_features, say_labels, say_leaks, shorten_list};
use super::node_splits::{read_masks, read_split};
use super::repeated_ids::{all_wrong, firsts};
use super::table::{IdColumn, Kind, Table, find_column, load_ids, open_table, usual_column};
use crate::about::{About, Reading, TableColumn};
use crate::build::Duplicates;
use crate::dataset::{Features, Labels, Split};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::limits::Limits;
use crate::roles::{Role, Roles, TableRoles};
use std::path::Path;

pub(super) const ID_NAMES: [&str; 4] = ["id", "node_id", "node", "nid"];
const SPLIT_NAMES: [&str; 2] = ["split", "set"];
const MASK_NAMES: [(&[&str], u8); 3] = [
    (&["train_mask", "train"], Split::TRAIN),
    (&["val_mask", "valid_mask", "val", "valid"], Split::VAL),
    (&["test_mask", "test"], Split::TEST),
];

/// What is given for a column of ids where the row's number is the id.
pub const ROW: &str = "row";

/// A node table, its ids still on disk.
pub struct NodeTable {
    table: Box<dyn Table>,
    id: Option<usize>,
    /// How many nodes there are.
    pub nodes: usize,
    /// What columns became that are neither ids nor labels nor split.
    pub features: Features,
    /// Columns of these of which `f32` loses too much, as they are.
    pub exact: Exact,
    /// The labels; texts are numbered in their alphabetic order.
    pub labels: Labels,
    /// The split, if there is one.
    pub splits: Vec<Split>,
    /// What classes and features are called, and how features were made.
    pub about: About,
}

/// The columns that are no features, by their places.
struct Found {
    id: Option<usize>,
    label: LabelColumns,
    split: Option<usize>,
    masks: Vec<(usize, u8)>,
}

impl NodeTable {
    /// Reads all of the table except the ids, and says what became of each column.
    pub fn read(path: &Path, options: &ReadOptions, roles: &mut Roles) -> Result<NodeTable> {
        NodeTable::of(open_nodes(path, options)?, path, options, roles)
    }

    /// The same of a table that is open.
    pub fn of(table: Box<dyn Table>, path: &Path, options: &ReadOptions, roles: &mut Roles) -> Result<NodeTable> {
        let limits = &options.limits;
        if table.rows() as u64 > limits.nodes_max {
            return Err(GraphError::too_large(path, "rows", limits.nodes_max));
        }
        let mut roles = roles.of_table(path);
        let mut found = Found::find(&*table, path, options)?;
        let table = match found.id.filter(|_| options.duplicates == Duplicates::First) {
            Some(id) => firsts(table, id, &mut roles)?,
            None => table,
        };
        let nodes = table.rows();
        found.say(&*table, &mut roles);
        warn_of_floats(&*table, found.id.as_slice(), &mut roles)?;
        let free: Vec<usize> = (0..table.columns().len()).filter(|column| !found.taken().contains(column)).collect();
        let seen = Seen::look(&*table, path, &free, options).and_then(|seen| {
            refuse_twice(&*table, path, &seen.wanted())?;
            Ok((read_matrix(&*table, &seen.wanted(), limits)?, seen))
        });
        let columns = GraphError::both(seen, found.splits(&*table));
        let (mut labels, ((matrix, seen), splits)) = GraphError::both(found.labels(&*table, options), columns)?;
        if let (LabelColumns::One(column), None, None) = (&found.label, &options.columns.label, &options.like)
            && let Some(what) = labels.as_ref().and_then(Named::are_names)
        {
            let name = table.columns()[*column].name.as_str();
            roles.ignored(name, &format!("{what}; --label {name} (data.label) takes them as classes all the same"));
            (found.label, labels) = (LabelColumns::None, None);
        }
        if let Some(named) = labels.as_ref().filter(|named| named.absent.0 > 0) {
            let (count, word) = &named.absent;
            let what = format!("{count} of {nodes} rows have no label: '{word}' stands for a missing value");
            let remedy = "a class that is called so needs another spelling in the table";
            roles.doubtful(Role::Labels, &[], what.clone(), format!("{what}; {remedy}"));
        }
        say_labels(&*table, &found.label, labels.as_ref(), &seen.candidates, &mut roles);
        found.say_split(&*table, &mut roles);
        say_features(&*table, &seen.wanted(), &matrix, options, &mut roles);
        seen.say_absent(nodes, &mut roles);
        if found.label.is_some() && options.like.is_none() {
            say_leaks(&seen.wanted(), &mut roles);
        }
        for (column, why) in &seen.ignored {
            match why {
                Some(why) => roles.ignored(column, why),
                None => roles.unwanted(column),
            }
        }
        let columns: Vec<TableColumn> = seen.features.into_iter().map(|(_, column)| column).collect();
        let (labels, classes) = labels.map_or((Labels::None, Vec::new()), |named| (named.labels, named.classes));
        let about = About { classes, features: feature_names(&columns), columns, ..About::default() };
        let Matrix { features, exact, .. } = matrix;
        Ok(NodeTable { table, id: found.id, nodes, features, exact, labels, splits, about })
    }

    /// The ids alone: what edges can be held to where something else is wrong with the table.
    pub fn bare(path: &Path, options: &ReadOptions) -> Result<NodeTable> {
        let table = open_nodes(path, options)?;
        let is_free = |name: &str| !options.columns.ignore.iter().any(|ignored| ignored == name);
        let id = find_ids((&*table, path), options.columns.id.as_deref(), &is_free)?;
        let table = match id.filter(|_| options.duplicates == Duplicates::First) {
            Some(id) => firsts(table, id, &mut Roles::default().of_table(path))?,
            None => table,
        };
        let (features, exact, labels, about) = (Features::None, Exact::default(), Labels::None, About::default());
        Ok(NodeTable { nodes: table.rows(), table, id, features, exact, labels, splits: Vec::new(), about })
    }

    /// Whether ids are there and are not all integers.
    pub fn has_text_ids(&self) -> bool {
        self.id.is_some_and(|column| self.table.columns()[column].kind != Kind::Integer)
    }

    /// The ids in the order of the rows; `None` where the row is the id.
    pub fn ids(&self, as_text: bool, limits: &Limits) -> Result<Option<IdColumn>> {
        let Some(column) = self.id else { return Ok(None) };
        let ids = load_ids(&*self.table, &[column], as_text, limits);
        Ok(ids.map_err(|first| all_wrong(&*self.table, (column, as_text), first, limits))?.pop())
    }
}

/// Opens a node table, by whose usual names and those that are given its header is told from a row.
pub fn open_nodes(path: &Path, options: &ReadOptions) -> Result<Box<dyn Table>> {
    let columns = &options.columns;
    let chosen = [&columns.id, &columns.label, &columns.split].into_iter().flatten().map(String::as_str);
    let chosen = chosen.chain(ID_NAMES);
    let chosen: Vec<&str> = chosen.chain(columns.features.iter().chain(&columns.ignore).map(String::as_str)).collect();
    let masks = MASK_NAMES.iter().flat_map(|(names, _)| names.iter());
    let usual: Vec<&str> = ID_NAMES.iter().chain(&LABEL_NAMES).chain(&SPLIT_NAMES).chain(masks).copied().collect();
    open_table(
        path,
        &options.limits,
        &Heading { given: options.header, chosen: &chosen, usual: &[&usual], ends: false },
    )
}

impl Found {
    fn find(table: &dyn Table, path: &Path, options: &ReadOptions) -> Result<Found> {
        let columns = &options.columns;
        let is_left = |name: &str| columns.ignore.iter().any(|ignored| ignored == name);
        // A feature of the model is one in new data, too, whatever it is called.
        let is_read = |about: &About, name: &str| about.columns.iter().any(|column| column.name == name);
        let is_free = |name: &str| !is_left(name) && !options.like.as_ref().is_some_and(|about| is_read(about, name));
        if let Some(name) = [&columns.id, &columns.label, &columns.split].into_iter().flatten().find(|n| is_left(n)) {
            let what = format!("data.ignore leaves out '{name}', which another key (or flag) names");
            return Err(GraphError::format(path, "header", what));
        }
        let find = |given: &Option<String>, usual: &[&str]| match given {
            Some(_) => find_column(table, path, given.as_deref(), usual),
            None => Ok(usual_column(table, usual, &is_free)),
        };
        let id = find_ids((table, path), columns.id.as_deref(), &is_free)?;
        // New nodes need neither label nor split, whatever these were called where a model has learned.
        let there = |given: &Option<String>| {
            let is_it = |name: &str, column: &str| match name.strip_suffix('*') {
                Some(prefix) => column.starts_with(prefix),
                None => column == name,
            };
            let is_there = |name: &String| table.columns().iter().any(|column| is_it(name, &column.name));
            given.clone().filter(|name| options.like.is_none() || is_there(name))
        };
        let split = find(&there(&columns.split), &SPLIT_NAMES)?;
        let mut masks = Vec::new();
        if split.is_none() {
            for (names, role) in MASK_NAMES {
                masks.extend(find(&None, names)?.map(|column| (column, role)));
            }
        }
        Ok(Found {
            id,
            label: LabelColumns::find((table, path), there(&columns.label).as_deref(), &is_free)?,
            split,
            masks,
        })
    }

    fn taken(&self) -> Vec<usize> {
        let labels: &[usize] = match &self.label {
            LabelColumns::None => &[],
            LabelColumns::One(column) => std::slice::from_ref(column),
            LabelColumns::Several(columns, _) => columns,
        };
        let masks = self.masks.iter().map(|(column, _)| *column);
        self.id.into_iter().chain(self.split).chain(masks).chain(labels.iter().copied()).collect()
    }

    fn labels(&self, table: &dyn Table, options: &ReadOptions) -> Result<Option<Named>> {
        let given = options.like.as_ref().map(|about| about.classes.as_slice());
        let reader = LabelReader { table, given, limits: &options.limits, absent: Default::default() };
        let named = match (&self.label, &options.columns.label_separator) {
            (LabelColumns::None, _) => return Ok(None),
            (LabelColumns::One(column), None) => reader.single(*column)?,
            (LabelColumns::One(column), Some(separator)) => reader.separated(*column, separator)?,
            (LabelColumns::Several(columns, prefix), _) => reader.several(columns, prefix)?,
        };
        Ok(Some(Named { absent: reader.absent.take(), ..named }))
    }

    fn splits(&self, table: &dyn Table) -> Result<Vec<Split>> {
        Ok(match (self.split, self.masks.is_empty()) {
            (Some(column), _) => vec![read_split(table, column)?],
            (None, false) => vec![read_masks(table, &self.masks)?],
            (None, true) => Vec::new(),
        })
    }

    fn say(&self, table: &dyn Table, roles: &mut TableRoles) {
        match self.id {
            Some(column) => {
                let name = table.columns()[column].name.as_str();
                let kind = if table.columns()[column].kind == Kind::Integer { "integers" } else { "texts" };
                roles.line(Role::Ids, &[name], format!("{name} ({kind})"));
            }
            None if table.path().is_dir() => {
                let what =
                    "nodes are the rows of all files, in the order of the numbers in the files' names".to_owned();
                roles.doubtful(Role::Ids, &[], "the numbers of the rows", what);
            }
            None => roles.line(Role::Ids, &[], "the numbers of the rows"),
        }
    }

    fn say_split(&self, table: &dyn Table, roles: &mut TableRoles) {
        let name = |column: usize| table.columns()[column].name.as_str();
        match self.split {
            Some(column) => roles.line(Role::Split, &[name(column)], name(column)),
            None if self.masks.is_empty() => roles.line(Role::Split, &[], "none"),
            None => {
                let names: Vec<&str> = self.masks.iter().map(|(column, _)| name(*column)).collect();
                roles.line(Role::Split, &names, names.join(", "));
            }
        }
    }
}

/// The column of ids; `None` where rows are asked for.
fn find_ids(
    (table, path): (&dyn Table, &Path),
    given: Option<&str>,
    is_free: &dyn Fn(&str) -> bool,
) -> Result<Option<usize>> {
    let usual = || {
        let usual = usual_column(table, &ID_NAMES, is_free).or_else(|| neo4j_ids(table, is_free));
        usual.or_else(|| index_column(table, is_free)).ok_or_else(|| no_ids(table, path))
    };
    match given {
        Some(ROW) if !table.columns().iter().any(|column| column.name == ROW) => Ok(None),
        Some(_) => find_column(table, path, given, &[]),
        None => usual().map(Some),
    }
}

/// The column that Neo4j imports as ids, such as `id:ID(Person)`.
fn neo4j_ids(table: &dyn Table, is_free: &dyn Fn(&str) -> bool) -> Option<usize> {
    table.columns().iter().position(|column| is_neo4j_id(&column.name) && is_free(&column.name))
}

fn no_ids(table: &dyn Table, path: &Path) -> GraphError {
    let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
    let expected = format!(
        "no column of node ids is recognised among: {}; data.id = \"COLUMN\" (--id COLUMN) names it, and \"{ROW}\" \
         (--id {ROW}) says that the row's number is the id",
        shorten_list(&names)
    );
    GraphError::format(path, "header", expected)
}

/// The columns that are neither ids nor labels nor split.
struct Seen {
    features: Vec<(usize, TableColumn)>,
    /// Names and reasons; no reason where that was asked for.
    ignored: Vec<(String, Option<String>)>,
    /// Columns that could be labels, as far as values tell.
    candidates: Vec<String>,
    /// Columns of categories, the word that stands for no value in each, and how often it does.
    absent: Vec<(String, String, usize)>,
}

impl Seen {
    fn look(table: &dyn Table, path: &Path, free: &[usize], options: &ReadOptions) -> Result<Seen> {
        if let Some(recipe) = options.like.as_ref().filter(|about| !about.columns.is_empty()) {
            return Seen::like(table, path, free, recipe);
        }
        let mut seen = Seen { features: Vec::new(), ignored: Vec::new(), candidates: Vec::new(), absent: Vec::new() };
        let columns = &options.columns;
        let missing = columns.features.iter().map(|name| find_column(table, path, Some(name), &[]));
        let mut errors: Vec<GraphError> = missing.filter_map(Result::err).collect();
        let name = |column: usize| table.columns()[column].name.clone();
        let mut used = Vec::new();
        for &column in free {
            let name = name(column);
            if columns.ignore.contains(&name) {
                seen.ignored.push((name, None));
            } else if !columns.features.is_empty() && !columns.features.contains(&name) {
                seen.ignored.push((name, Some("not among data.features_columns".to_owned())));
            } else {
                used.push(column);
            }
        }
        let surveys: Vec<Survey> = survey(table, &used, &options.cells)?;
        for (column, survey) in used.into_iter().zip(surveys) {
            if survey.could_be_label() {
                seen.candidates.push(name(column));
            }
            let word = survey.absent.clone();
            let fate = match survey.fate(table, path, column, &options.cells) {
                Ok(fate) => fate,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            match fate {
                Fate::Feature(recipe) => {
                    let word = word.filter(|_| matches!(recipe.reading, Reading::Category { .. }));
                    seen.absent.extend(word.map(|(word, count)| (name(column), word, count)));
                    seen.features.push((column, recipe));
                }
                Fate::Ignored(why) if columns.features.contains(&name(column)) => {
                    let what = format!("data.features_columns (--features-columns) names it, but: {why}");
                    errors.push(GraphError::format(path, format!("column '{}'", name(column)), what));
                }
                Fate::Ignored(why) => seen.ignored.push((name(column), Some(why))),
            }
        }
        if errors.is_empty() { Ok(seen) } else { Err(GraphError::several(errors)) }
    }

    /// The columns that become features, by their places.
    fn wanted(&self) -> Vec<(usize, &TableColumn)> {
        self.features.iter().map(|(place, column)| (*place, column)).collect()
    }

    /// Warns of words in categories that stand for missing values.
    fn say_absent(&self, nodes: usize, roles: &mut TableRoles) {
        for (column, word, count) in &self.absent {
            let what = format!("{count} of {nodes} values are missing: '{word}' stands for a missing value");
            let remedy = "a category that is called so needs another spelling in the table";
            let warning = format!("column '{column}': {what}; {remedy}");
            roles.doubtful(Role::Features, &[column], format!("{column}: {what}"), warning);
        }
    }

    /// The columns that a model knows, in its order.
    fn like(table: &dyn Table, path: &Path, free: &[usize], recipe: &About) -> Result<Seen> {
        let places = places(table, path, recipe)?;
        let rest = free.iter().filter(|column| !places.contains(column));
        let unknown = |&column: &usize| {
            (table.columns()[column].name.clone(), Some("the model was trained without it".to_owned()))
        };
        let ignored = rest.map(unknown).collect();
        let features = places.into_iter().zip(recipe.columns.iter().cloned()).collect();
        Ok(Seen { features, ignored, candidates: Vec::new(), absent: Vec::new() })
    }
}

/// Two columns of one name cannot be told apart when new data come.
fn refuse_twice(table: &dyn Table, path: &Path, wanted: &[(usize, &TableColumn)]) -> Result<()> {
    let mut names: Vec<&str> = wanted.iter().map(|(place, _)| table.columns()[*place].name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some([name, _]) => {
            let way = format!("give one another name, or leave both out: data.ignore = [\"{name}\"] (--ignore {name})");
            Err(GraphError::format(path, "header", format!("two columns are called '{name}': {way}")))
        }
        Some(_) => Ok(()),
        None => Ok(()),
    }
}
