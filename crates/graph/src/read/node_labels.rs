//! Labels of a node table: a column of classes, a column of several, or a column a class.

use super::labels;
use super::numbers::shorten;
use super::table::{Cell, Kind, Table, scan_all};
use super::words::is_missing;
use crate::dataset::Labels;
use crate::error::{GraphError, Result};
use crate::limits::Limits;
use crate::memory::afford;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Labels, what their classes are called, and how many there are of no such class.
pub struct Named {
    /// What each node is labelled with.
    pub labels: Labels,
    /// The name of each class; none where classes are called by their numbers.
    pub classes: Vec<String>,
    /// Labels that are none of the classes that were given, and the first of them.
    pub unknown: (usize, String),
    /// How many labels are missing for a word that says so, and the first such word.
    pub absent: (usize, String),
}

impl Named {
    fn new(labels: Labels, classes: Vec<String>) -> Named {
        let numbers = classes.iter().enumerate().all(|(number, name)| *name == number.to_string());
        Named {
            labels,
            classes: if numbers { Vec::new() } else { classes },
            unknown: (0, String::new()),
            absent: (0, String::new()),
        }
    }
}

/// Fewer nodes may well be of a class each.
const NAMES_MIN: usize = 8;

/// Reads labels from a table.
pub struct LabelReader<'a> {
    /// The table that they are in.
    pub table: &'a dyn Table,
    /// The classes that there are, from a model that knows them.
    pub given: Option<&'a [String]>,
    /// What it may ask for.
    pub limits: &'a Limits,
    /// Words in the column of labels that say that there is none.
    pub absent: RefCell<(usize, String)>,
}

impl LabelReader<'_> {
    fn error(&self, column: usize, what: impl Into<String>) -> GraphError {
        GraphError::format(self.table.path(), format!("column '{}'", self.table.columns()[column].name), what)
    }

    /// One class a node: numbers or texts, in their order. A number below 0 is unknown.
    pub fn single(&self, column: usize) -> Result<Named> {
        let kind = self.table.columns()[column].kind;
        if kind == Kind::Text || !self.are_plain(column)? {
            return self.texts(column);
        }
        let mut values = vec![f64::NAN; self.table.rows()];
        self.table.scan(&[(column, Kind::Float)], &mut |row, _, cell| {
            match cell {
                Cell::Float(value) => values[row] = value,
                Cell::Missing => {}
                _ => return Err("expected a class".to_owned()),
            }
            Ok(())
        })?;
        match self.given {
            Some([]) => labels::single(&values, 0, self.limits).map(|labels| Named::new(labels, Vec::new())),
            // Ids of classes may be as large as they like; only how many there are has a limit.
            _ => self.numbers(&values),
        }
        .map_err(|what| self.error(column, what))
    }

    /// Whether all cells are numbers as people write them: `01` and `true` are names.
    fn are_plain(&self, column: usize) -> Result<bool> {
        let is_name = |text: &str| {
            let mut bytes = text.trim_start_matches('-').bytes();
            let first = bytes.next().unwrap_or(b'0');
            first == b'0' && bytes.next().is_some_and(|next| next.is_ascii_digit()) || b"tTfF".contains(&first)
        };
        let mut are = true;
        self.each_text(column, &mut |_, text| {
            are &= !is_name(text);
            Ok(())
        })?;
        Ok(are)
    }

    fn numbers(&self, values: &[f64]) -> std::result::Result<Named, String> {
        let known = |value: &f64| !value.is_nan() && *value >= 0.0;
        let mut names = BTreeSet::new();
        for (node, value) in values.iter().enumerate().filter(|(_, value)| known(value)) {
            let is_class = |value: &f64| value.fract() == 0.0 && *value <= 9_007_199_254_740_992.0;
            if !is_class(value) {
                let count = values.iter().filter(|value| known(value) && !is_class(value)).count();
                let all = if count > 1 { format!(" (and {} others)", count - 1) } else { String::new() };
                let what =
                    format!("the label of node {node} is {value}{all}, expected a class: a whole number or a text");
                let way = "targets of a regression are not learned; --ignore (data.ignore) leaves the column out, and \
                           --label (data.label) names another";
                return Err(format!("{what}; {way}"));
            }
            names.insert(*value as u64);
            self.refuse_many(names.len())?;
        }
        if let Some(given) = self.given {
            let places: HashMap<&str, i32> = given.iter().map(String::as_str).zip(0..).collect();
            let mut named = Named::new(Labels::None, given.to_vec());
            let mut number = |value: &f64| match known(value) {
                true => named.of(places.get((*value as u64).to_string().as_str()), || value.to_string()),
                false => -1,
            };
            let values = values.iter().map(&mut number).collect();
            return Ok(Named { labels: Labels::Single { classes: given.len(), values }, ..named });
        }
        let places: HashMap<u64, i32> = names.iter().copied().zip(0..).collect();
        let values = values.iter().map(|value| if known(value) { places[&(*value as u64)] } else { -1 }).collect();
        let labels = Labels::Single { classes: names.len(), values };
        Ok(Named::new(labels, names.iter().map(u64::to_string).collect()))
    }

    fn refuse_many(&self, classes: usize) -> std::result::Result<(), String> {
        if classes as u64 > self.limits.classes_max {
            return Err(format!("expected at most {} classes", self.limits.classes_max));
        }
        Ok(())
    }

    fn texts(&self, column: usize) -> Result<Named> {
        let mut values: Vec<i32> = vec![-1; self.table.rows()];
        if let Some(given) = self.given {
            if given.is_empty() {
                return Err(self.error(column, "expected numbers, as the model's classes have no names"));
            }
            let places: HashMap<&str, i32> = given.iter().map(String::as_str).zip(0..).collect();
            let mut named = Named::new(Labels::None, given.to_vec());
            self.each_text(column, &mut |row, text| {
                values[row] = named.of(places.get(text), || shorten(text));
                Ok(())
            })?;
            return Ok(Named { labels: Labels::Single { classes: given.len(), values }, ..named });
        }
        // First numbered as they come, then renumbered in alphabetic order.
        let mut names: BTreeMap<String, i32> = BTreeMap::new();
        self.each_text(column, &mut |row, text| {
            values[row] = self.number(&mut names, text)?;
            Ok(())
        })?;
        let order = order(&names);
        values.iter_mut().filter(|value| **value >= 0).for_each(|value| *value = order[*value as usize]);
        let labels = Labels::Single { classes: names.len(), values };
        Ok(Named {
            labels,
            classes: names.into_keys().collect(),
            unknown: (0, String::new()),
            absent: (0, String::new()),
        })
    }

    fn number(&self, names: &mut BTreeMap<String, i32>, text: &str) -> std::result::Result<i32, String> {
        let count = names.len();
        match names.get(text) {
            Some(&number) => Ok(number),
            None => {
                self.refuse_many(count + 1)?;
                names.insert(text.to_owned(), count as i32);
                Ok(count as i32)
            }
        }
    }

    fn each_text(
        &self,
        column: usize,
        each: &mut dyn FnMut(usize, &str) -> std::result::Result<(), String>,
    ) -> Result<()> {
        let mut absent = (0, String::new());
        let is_text = self.table.columns()[column].kind == Kind::Text;
        let read = self.table.scan(&[(column, Kind::Text)], &mut |row, _, cell| match cell {
            Cell::Text(text) if is_missing(text) => {
                if is_text {
                    note(&mut absent, || text.to_owned());
                }
                Ok(())
            }
            Cell::Text(text) => each(row, text),
            Cell::Missing => Ok(()),
            _ => Err("expected a class".to_owned()),
        });
        self.absent.replace(absent);
        read
    }

    /// Any number of classes a node, with `separator` between them. An empty cell is not known; the separator alone
    /// is none of the classes.
    pub fn separated(&self, column: usize, separator: &str) -> Result<Named> {
        let parts = |text: &str| -> Vec<String> {
            text.split(separator).map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let mut names: BTreeMap<String, i32> = self.given.unwrap_or(&[]).iter().cloned().zip(0..).collect();
        if self.given.is_none() {
            self.each_text(column, &mut |_, text| {
                parts(text).iter().try_for_each(|part| self.number(&mut names, part).map(drop))
            })?;
        }
        let order = if self.given.is_some() { (0..names.len() as i32).collect() } else { order(&names) };
        let classes = names.len();
        let mut values = self.room(column, classes)?;
        let mut unknown = (0, String::new());
        self.each_text(column, &mut |row, text| {
            let into = &mut values[row * classes..][..classes];
            into.fill(0);
            for part in parts(text) {
                match names.get(&part) {
                    Some(&number) => into[order[number as usize] as usize] = 1,
                    None => note(&mut unknown, || shorten(&part)),
                }
            }
            Ok(())
        })?;
        let labels = if classes == 0 { Labels::None } else { Labels::Multi { classes, values } };
        let classes = self.given.map_or_else(|| names.into_keys().collect(), <[String]>::to_vec);
        Ok(Named { unknown, ..Named::new(labels, classes) })
    }

    /// A column of 0 and 1 a class, called by what follows `prefix`.
    pub fn several(&self, columns: &[usize], prefix: &str) -> Result<Named> {
        let name = |&column: &usize| {
            let name = &self.table.columns()[column].name;
            name.strip_prefix(prefix).unwrap_or(name).to_owned()
        };
        let names: Vec<String> = columns.iter().map(name).collect();
        let unnamed: Vec<String>;
        let classes: &[String] = match self.given {
            None => &names,
            Some([]) => {
                unnamed = (0..names.len()).map(|number| number.to_string()).collect();
                &unnamed
            }
            Some(given) => given,
        };
        let place = |name: &String| classes.iter().position(|class| class == name);
        let places: Vec<Option<usize>> = names.iter().map(place).collect();
        let width = classes.len();
        let mut values = self.room(columns[0], width)?;
        let wanted: Vec<_> = columns.iter().map(|&column| (column, Kind::Float)).collect();
        scan_all(self.table, &wanted, &mut |row, slot, cell| {
            let value = match cell {
                Cell::Float(0.0) => 0,
                Cell::Float(1.0) => 1,
                Cell::Missing => Labels::UNKNOWN,
                Cell::Float(value) if value.is_nan() => Labels::UNKNOWN,
                _ => return Err("expected 0 or 1".to_owned()),
            };
            if let Some(place) = places[slot] {
                values[row * width + place] = value;
            }
            Ok(())
        })?;
        let mut named = Named::new(Labels::Multi { classes: width, values }, classes.to_vec());
        for (name, _) in names.iter().zip(&places).filter(|(_, place)| place.is_none()) {
            note(&mut named.unknown, || name.clone());
        }
        Ok(named)
    }

    /// Labels of this many classes, none of them known.
    fn room(&self, column: usize, classes: usize) -> Result<Vec<u8>> {
        let count = (self.table.rows() as u64).saturating_mul(classes as u64);
        if count > self.limits.features_values_max {
            return Err(GraphError::too_large(self.table.path(), "labels", self.limits.features_values_max));
        }
        afford(count).map_err(|what| self.error(column, format!("labels of {classes} classes: what {what}")))?;
        Ok(vec![Labels::UNKNOWN; count as usize])
    }
}

impl Named {
    /// Why these are hardly classes: nearly every node has one of its own.
    pub fn are_names(&self) -> Option<String> {
        let Labels::Single { classes, values } = &self.labels else { return None };
        let known = values.iter().filter(|value| **value >= 0).count();
        let are = known >= NAMES_MIN && 10 * classes > 9 * known;
        are.then(|| format!("{classes} different values in {known} rows are names and no classes"))
    }

    /// The number of a class, or −1 for a label that is none of them.
    fn of(&mut self, number: Option<&i32>, shown: impl FnOnce() -> String) -> i32 {
        if number.is_none() {
            note(&mut self.unknown, shown);
        }
        number.copied().unwrap_or(-1)
    }
}

fn note(seen: &mut (usize, String), shown: impl FnOnce() -> String) {
    if seen.0 == 0 {
        seen.1 = shown();
    }
    seen.0 += 1;
}

/// For each number, given as names came, the place of its name in alphabetic order.
fn order(names: &BTreeMap<String, i32>) -> Vec<i32> {
    let mut order = vec![0; names.len()];
    names.values().zip(0..).for_each(|(&number, place)| order[number as usize] = place);
    order
}
