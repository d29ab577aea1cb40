//! Which columns of a node table become features, and how.

use super::numbers::shorten;
use super::table::{Cell, Kind, Table};
use super::words::{days, has_decimal_comma, is_missing};
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
    /// The different texts, as long as they are few.
    texts: BTreeSet<String>,
    /// Whether there were more of them.
    many: bool,
    /// The different whole numbers, and one more where there are many.
    numbers: BTreeSet<i64>,
    /// Whether all texts are dates, and have decimal commas or are whole.
    dates: bool,
    commas: bool,
    /// Whether there is a comma.
    comma: Option<String>,
    /// Whether the values are 0, 1, 2, … in the order of the rows.
    counts: bool,
    /// Numbers in each list.
    width: usize,
}

/// Lists are no longer than this.
const WIDTH_MAX: usize = 1 << 20;

/// With more different values than this a column is not taken for labels that have another name.
const NUMBERS_MAX: usize = 64;

/// Looks at all cells of these columns.
pub fn survey(table: &dyn Table, columns: &[usize], cells: &Cells) -> Result<Vec<Survey>> {
    let start = || Survey { dates: true, commas: true, counts: true, ..Survey::default() };
    let mut seen: Vec<Survey> = columns.iter().map(|_| start()).collect();
    let kind = |place: usize| table.columns()[columns[place]].kind;
    let places: Vec<usize> = (0..columns.len()).filter(|&place| !matches!(kind(place), Kind::Unread(_))).collect();
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
        if missing {
            self.missing += 1;
            self.counts = false;
            return Ok(());
        }
        self.present += 1;
        match cell {
            Cell::Integer(value) => {
                self.counts &= value == row as i64;
                if self.numbers.len() <= NUMBERS_MAX {
                    self.numbers.insert(value);
                }
            }
            Cell::Float(value) => self.counts &= value == row as f64,
            Cell::Text(text) => self.look_at_text(text, cells),
            Cell::List(list) if list.len() > WIDTH_MAX => return Err(format!("a list of {} numbers", list.len())),
            Cell::List(list) if self.width != 0 && self.width != list.len() => {
                return Err(format!("expected lists of {} numbers, found one of {}", self.width, list.len()));
            }
            Cell::List(list) => self.width = list.len(),
            Cell::Missing => {}
        }
        Ok(())
    }

    fn look_at_text(&mut self, text: &str, cells: &Cells) {
        self.dates = self.dates && days(text).is_some();
        if has_decimal_comma(text) {
            self.comma.get_or_insert_with(|| text.to_owned());
        } else {
            self.commas = self.commas && text.parse::<f64>().is_ok();
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
        let reading = match info.kind {
            Kind::Unread(what) => return Ok(Fate::Ignored(format!("{what} are not read"))),
            _ if self.present == 0 => return ignored("no values"),
            Kind::Integer | Kind::Float if self.counts && is_index_name(&info.name) => {
                return ignored("it counts the rows");
            }
            Kind::Integer | Kind::Float => Reading::Number,
            Kind::List => Reading::List { width: self.width },
            Kind::Date => Reading::Date,
            Kind::Text if self.dates => Reading::Date,
            Kind::Text => match (&self.comma, self.commas) {
                (Some(comma), true) => {
                    let remedy = "write them with points (in pandas, read_csv(…, decimal=\",\") reads them)";
                    let or = format!("or leave the column out: data.ignore = [\"{}\"] (--ignore)", info.name);
                    return Err(error(format!("numbers with decimal commas, such as '{comma}': {remedy}, {or}")));
                }
                _ => match self.categories(cells) {
                    Ok(values) => Reading::Category { values },
                    Err(why) => return Ok(Fate::Ignored(why)),
                },
            },
        };
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
        if let Some(list) = texts.first().filter(|text| text.starts_with('[')) {
            return Err(format!("lists written as text, such as '{}'; lists in Parquet are read", shorten(list)));
        }
        Ok(texts.into_iter().collect())
    }
}

/// What pandas calls the column of row numbers that it writes unasked.
fn is_index_name(name: &str) -> bool {
    name.is_empty() || name.starts_with("Unnamed: ") || name.starts_with("__index_level_")
}

/// The names of the feature columns that these columns become.
pub fn feature_names(columns: &[TableColumn]) -> Vec<String> {
    let mut names = Vec::new();
    for column in columns {
        let name = &column.name;
        match &column.reading {
            Reading::Number | Reading::Date => names.push(name.clone()),
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
