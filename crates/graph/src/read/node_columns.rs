//! Which columns of a node table become features, and how.

use super::index_column::{is_index_name, is_row_name};
use super::numbers::shorten;
use super::table::{Cell, Kind, Table};
use super::words::{days, is_missing, is_no_number};
use super::written::{Amounts, Written, is_list_name};
use super::{Cells, Dates, Missing};
use crate::about::{About, Reading, TableColumn};
use crate::error::{GraphError, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// What becomes of a column that is neither id nor label nor split.
pub enum Fate {
    /// Features.
    Feature(TableColumn),
    /// Nothing, for this reason.
    Ignored(String),
}

/// What the cells of a column were seen to be.
#[derive(Default)]
pub struct Survey {
    /// Cells that hold something.
    pub present: usize,
    /// Cells that do not.
    pub missing: usize,
    /// A word that stands for no value, and how often such words do.
    pub absent: Option<(String, usize)>,
    /// The different texts, as long as they are few.
    texts: BTreeSet<String>,
    /// Whether there were more of them.
    many: bool,
    /// The different whole numbers, and one more where there are many.
    numbers: BTreeSet<i64>,
    /// Whether all texts are dates.
    dates: bool,
    /// What numbers all texts could be.
    written: Written,
    /// The first text with a comma.
    comma: Option<String>,
    /// Texts that say among numbers that there is none.
    no_numbers: usize,
    /// Whether the values are 0, 1, 2, … in the order of the rows.
    counts: bool,
    /// The same from 1 on, as R counts.
    counts_from_1: bool,
    /// Numbers in each list.
    width: usize,
    /// Lists in which some number is missing.
    broken: usize,
    /// The first row with a list of another length, that length, and how many such rows there are.
    uneven: Option<(usize, usize, usize)>,
}

/// Lists are no longer than this.
const WIDTH_MAX: usize = 1 << 20;

/// With more different values than this a column is not taken for labels that have another name.
const NUMBERS_MAX: usize = 64;

/// Looks at all cells of these columns.
pub fn survey(table: &dyn Table, columns: &[usize], cells: &Cells) -> Result<Vec<Survey>> {
    let start = || Survey { dates: true, counts: true, counts_from_1: true, ..Survey::default() };
    let mut seen: Vec<Survey> = columns.iter().map(|_| start()).collect();
    let kind = |place: usize| table.columns()[columns[place]].kind;
    let places: Vec<usize> =
        (0..columns.len()).filter(|&place| !matches!(kind(place), Kind::Unread(_) | Kind::Refused(_))).collect();
    let wanted: Vec<_> = places.iter().map(|&place| (columns[place], kind(place))).collect();
    table.scan(&wanted, &mut |row, slot, cell| seen[places[slot]].look(row, cell, cells))?;
    Ok(seen)
}

impl Survey {
    fn look(&mut self, row: usize, cell: Cell, cells: &Cells) -> std::result::Result<(), String> {
        let missing = match cell {
            Cell::Missing => true,
            Cell::Text(text) => is_missing(text),
            Cell::Float(value) => value.is_nan(),
            Cell::Integer(_) => false,
            Cell::List(list) => list.is_empty() || list.iter().any(|value| value.is_nan()),
        };
        if let Cell::Text(word) = cell
            && missing
            && !word.is_empty()
        {
            self.absent.get_or_insert_with(|| (word.to_owned(), 0)).1 += 1;
        }
        if let Cell::List([_, ..]) = cell
            && missing
        {
            self.broken += 1;
        }
        if missing {
            self.missing += 1;
            self.counts = false;
            return Ok(());
        }
        self.present += 1;
        match cell {
            Cell::Integer(value) => {
                self.counts &= value == row as i64;
                self.counts_from_1 &= value == row as i64 + 1;
                if self.numbers.len() <= NUMBERS_MAX {
                    self.numbers.insert(value);
                }
            }
            Cell::Float(value) => self.counts &= value == row as f64,
            Cell::Text(text) => self.look_at_text(text, cells),
            Cell::List(list) if list.len() > WIDTH_MAX => return Err(format!("a list of {} numbers", list.len())),
            Cell::List(list) if self.width != 0 && self.width != list.len() => {
                self.uneven.get_or_insert((row, list.len(), 0)).2 += 1;
            }
            Cell::List(list) => self.width = list.len(),
            Cell::Missing => {}
        }
        Ok(())
    }

    fn look_at_text(&mut self, text: &str, cells: &Cells) {
        match is_no_number(text) {
            true => self.no_numbers += 1,
            false => {
                self.dates = self.dates && days(text).is_some();
                self.written.look(text);
            }
        }
        if text.contains(',') && self.comma.is_none() {
            self.comma = Some(shorten(text));
        }
        if !self.many && !self.texts.contains(text) {
            self.many = self.texts.len() >= cells.categories_max;
            match self.many {
                true => self.texts.clear(),
                false => drop(self.texts.insert(text.to_owned())),
            }
        }
    }

    /// Whether the values could be classes: texts or whole numbers, few and each several times.
    pub fn could_be_label(&self) -> bool {
        let few = |count: usize, max: usize| count >= 2 && count <= max && 2 * count <= self.present;
        !self.many && few(self.texts.len(), NUMBERS_MAX) || few(self.numbers.len(), NUMBERS_MAX)
    }

    /// What becomes of the column.
    pub fn fate(mut self, table: &dyn Table, path: &Path, column: usize, cells: &Cells) -> Result<Fate> {
        let info = &table.columns()[column];
        let error = |what: String| GraphError::format(path, format!("column '{}'", info.name), what);
        let ignored = |why: &str| Ok(Fate::Ignored(why.to_owned()));
        let reading = match self.reading(table, column, cells).map_err(error)? {
            Ok(reading) => reading,
            Err(why) => return Ok(Fate::Ignored(why)),
        };
        if info.kind == Kind::Text && !matches!(reading, Reading::Category { .. }) {
            self.missing += self.no_numbers;
            self.present -= self.no_numbers;
        }
        if reading == Reading::Date && cells.dates == Dates::Ignore {
            return ignored("dates; data.dates = \"days\" (--dates days) reads them as days since 1970-01-01");
        }
        let category = matches!(reading, Reading::Category { .. });
        let width = if let Reading::List { width } = &reading { *width } else { 1 };
        let fill = match cells.missing {
            _ if category => None,
            Missing::Error if self.missing > 0 => {
                let all = self.missing + self.present;
                let remedy = "data.missing = \"mean\" or \"zero\" (--missing) fills such cells and marks them in a \
                              column of their own";
                let or = format!("data.ignore = [\"{}\"] (--ignore) leaves the column out", info.name);
                return Err(error(format!("{} of {all} cells have no value; {remedy}, {or}", self.missing)));
            }
            Missing::Error => None,
            Missing::Zero => Some(vec![0.0; width]),
            // Means are taken when it is known who trains.
            Missing::Mean => Some(vec![f64::NAN; width]),
        };
        let indicator = self.missing > 0 && !category;
        Ok(Fate::Feature(TableColumn { name: info.name.clone(), reading, fill, indicator }))
    }

    /// How the column is read, or why nothing is made of it.
    ///
    /// # Errors
    /// If it would be features, and nobody can know which.
    fn reading(
        &mut self,
        table: &dyn Table,
        column: usize,
        cells: &Cells,
    ) -> std::result::Result<std::result::Result<Reading, String>, String> {
        let info = &table.columns()[column];
        let ignored = |why: &str| Ok(Err(why.to_owned()));
        let or = format!("or leave the column out: data.ignore = [\"{0}\"] (--ignore {0})", info.name);
        let varies = self.many || self.texts.len() > 1;
        let is_different = self.numbers.len() > NUMBERS_MAX || self.numbers.len() == self.present;
        Ok(Ok(match info.kind {
            Kind::Unread(what) => return Ok(Err(format!("{what} are not read"))),
            Kind::Refused(what) => {
                return Err(format!("{what} are not read: write them as columns or lists of numbers, {or}"));
            }
            Kind::List if self.broken > 0 && self.present == 0 => {
                return Err(format!("every list has a place without a number: fill them, {or}"));
            }
            _ if self.present == 0 => return ignored("no values"),
            Kind::Integer if self.counts_from_1 && self.missing == 0 && info.name.is_empty() => {
                return ignored("it counts the rows");
            }
            Kind::Integer | Kind::Float if self.counts && is_index_name(&info.name) => {
                return ignored("it counts the rows");
            }
            // Of a frame that was sorted, sampled or filtered.
            Kind::Integer if is_different && is_row_name(&info.name, column) => {
                return ignored("numbers of rows, as pandas and R write them unasked");
            }
            Kind::Float if table.may_be_thousands(column) => {
                return Err(format!(
                    "numbers below 1,000, and others with three digits after a point: thousands, or fractions? Write \
                     all of them with as many digits behind the point, or without one (in pandas, read_csv(…, \
                     thousands=\".\") reads thousands), {or}"
                ));
            }
            Kind::Integer | Kind::Float => Reading::Number,
            Kind::List => self.list(table.rows())?,
            Kind::Date => Reading::Date,
            Kind::Text if self.dates && self.no_numbers < self.present => Reading::Date,
            Kind::Text => match self.number(&info.name)? {
                Some(reading) => reading,
                None => match self.categories(cells) {
                    Ok(values) => Reading::Category { values },
                    // In a text file these are numbers; here their column has the type of texts.
                    Err(_) if varies && self.written.are_numbers() => {
                        return Err(format!("its texts are numbers: write it as a column of numbers, {or}"));
                    }
                    Err(why) => return Ok(Err(why)),
                },
            },
        }))
    }

    /// Lists of one length.
    ///
    /// # Errors
    /// If there are others.
    fn list(&self, rows: usize) -> std::result::Result<Reading, String> {
        let Some((row, found, count)) = self.uneven else { return Ok(Reading::List { width: self.width }) };
        let what = format!("row {row}: expected lists of {} numbers, found one of {found}", self.width);
        let all = format!("{count} of {rows} rows have others than the first");
        Err(format!("{what}; {all}: write lists of one length, or leave the column out (--ignore, data.ignore)"))
    }

    /// How texts are numbers, if they are.
    ///
    /// # Errors
    /// If they are numbers, and nobody can know which.
    fn number(&self, name: &str) -> std::result::Result<Option<Reading>, String> {
        let such = self.comma.as_deref().unwrap_or_default();
        let or = format!("or leave the column out: data.ignore = [\"{name}\"] (--ignore {name})");
        if let Some(width) = self.written.lists(is_list_name(name)) {
            return Ok(Some(Reading::List { width }));
        }
        match self.written.amounts() {
            Amounts::Plain { comma } => Ok(Some(Reading::Amount { comma })),
            Amounts::Thousands => Err(format!(
                "numbers with three digits after each comma, such as '{such}': thousands, or decimal commas? Write \
                 them without (in pandas, read_csv(…, thousands=\",\") or decimal=\",\" reads them), {or}"
            )),
            Amounts::Commas => Err(format!(
                "numbers with decimal commas, such as '{such}', or lists of two: write them with points (in pandas, \
                 read_csv(…, decimal=\",\") reads them), lists as [1, 2], {or}"
            )),
            Amounts::None if self.written.are_broken_lists() => {
                Err(format!("lists of numbers that are not all of one length: write lists of one length, {or}"))
            }
            Amounts::None => Ok(None),
        }
    }

    /// The texts in their order, or why each of them does not become a feature.
    fn categories(&mut self, cells: &Cells) -> std::result::Result<Vec<String>, String> {
        let (texts, many, present) = (std::mem::take(&mut self.texts), self.many, self.present);
        let max = cells.categories_max;
        if many {
            let raise = "data.categories (--categories) allows more";
            return Err(format!("free text: more than {max} different values; {raise}"));
        }
        if texts.len() == 1 {
            return Err("the same text in every row that has one".to_owned());
        }
        if 2 * texts.len() > present {
            return Err(format!("free text: {} different values in {present} rows", texts.len()));
        }
        Ok(texts.into_iter().collect())
    }
}

/// The names of the feature columns that these columns become.
pub fn feature_names(columns: &[TableColumn]) -> Vec<String> {
    let mut names = Vec::new();
    for column in columns {
        let name = &column.name;
        match &column.reading {
            Reading::Number | Reading::Amount { .. } | Reading::Date => names.push(name.clone()),
            Reading::List { width } => names.extend((0..*width).map(|place| format!("{name}[{place}]"))),
            Reading::Category { values } => names.extend(values.iter().map(|value| format!("{name}={value}"))),
        }
        if column.indicator {
            names.push(format!("{name} missing"));
        }
    }
    names
}

/// The columns of a table that a recipe names, in its order.
pub fn places(table: &dyn Table, path: &Path, recipe: &About) -> Result<Vec<usize>> {
    let place = |wanted: &TableColumn| {
        let mut found = table.columns().iter().enumerate().filter(|(_, column)| column.name == wanted.name);
        let first = found.next().map(|(place, _)| place);
        if found.next().is_some() {
            return Err(GraphError::format(path, "header", format!("two columns are called '{}'", wanted.name)));
        }
        first.ok_or_else(|| {
            let names: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
            let why = format!("the model was trained with it; there are: {}", names.join(", "));
            GraphError::format(path, "header", format!("expected a column '{}': {why}", wanted.name))
        })
    };
    recipe.columns.iter().map(place).collect()
}
