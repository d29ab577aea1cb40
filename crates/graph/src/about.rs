//! What the numbers of a dataset mean: what its classes and feature columns are called, and how features came to be
//! from what their owner has.
//!
//! It travels with the data through parts into the model, so that a model says the names of classes, and prepares new
//! data as it prepared those that it learned from.

use serde::{Deserialize, Serialize};

use crate::error::{GraphError, Result};
use crate::rules::{Violation, length_violation};

/// The meaning of features and labels. Nothing here changes a bit of training, so digests of data leave it out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct About {
    /// The name of each class, in the order of their numbers; empty where classes are called by their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// The name of each relation that edges are of, in the order of their numbers; empty where relations are called by
    /// their numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<String>,
    /// The name of each feature column; empty where columns have none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// The types of nodes, in the order of their stretches of feature columns; empty where there is one type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub node_types: Vec<NodeType>,
    /// How the columns of a node table become feature columns, in their order; empty where features are given as
    /// numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<TableColumn>,
    /// Whether features are columns of tables of several types that nobody has prepared, which `columns` do not say.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_typed_tables: bool,
    /// What was done to the features after that.
    #[serde(skip_serializing_if = "Scale::is_given")]
    pub scale: Scale,
}

/// A type of nodes, which has feature columns of its own: they are 0 for all other nodes ([`crate::node_types`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeType {
    /// What it is called.
    pub name: String,
    /// How many feature columns it has: those of its features, and at the end one that is 1 for each of its nodes.
    pub columns: usize,
}

/// A column of a node table and how it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableColumn {
    /// Its name in the table.
    pub name: String,
    /// What becomes of its cells.
    pub reading: Reading,
    /// What stands for a missing cell in each feature column that this one becomes; `None` where a missing cell is an
    /// error. Categories need none: a missing one is none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill: Option<Vec<f64>>,
    /// Whether one more feature column follows that is 1 where the cell is missing and 0 elsewhere.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub indicator: bool,
}

/// How the cells of a column become numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reading {
    /// A number, or a truth value as 0 or 1.
    Number,
    /// A number as people write it, with separators of thousands, and perhaps a sign of percents or of a currency.
    Amount {
        /// Whether fractions stand behind commas.
        comma: bool,
    },
    /// A list of `width` numbers: as many feature columns.
    List {
        /// Numbers in each list.
        width: usize,
    },
    /// One of these texts: a feature column for each, 1 in that of the cell's text and 0 in the others. A text that is
    /// not among them is 0 in all.
    Category {
        /// The texts, in the order of their feature columns.
        values: Vec<String>,
    },
    /// A date or a time, as days since 1970-01-01.
    Date,
}

impl TableColumn {
    /// How many feature columns it becomes.
    pub fn width(&self) -> usize {
        let values = match &self.reading {
            Reading::Number | Reading::Amount { .. } | Reading::Date => 1,
            Reading::List { width } => *width,
            Reading::Category { values } => values.len(),
        };
        values.saturating_add(usize::from(self.indicator))
    }
}

/// What was done to all features (`data.features`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scale {
    /// Nothing.
    #[default]
    Given,
    /// Each row was divided by its sum.
    RowNormalised,
    /// Of each column its mean was subtracted, and what is left divided by its deviation, both over the training nodes.
    Standardised {
        /// The mean of each column.
        means: Vec<f64>,
        /// The (population) standard deviation of each column; 1 where it is constant.
        deviations: Vec<f64>,
        /// What `f64` leaves out of each mean, as of integers beyond 2^53; empty where that is nothing.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rests: Vec<f64>,
        /// Whether columns of each type of nodes were scaled for its own nodes alone; older programs scaled them for
        /// all nodes.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_type: bool,
    },
}

impl Scale {
    /// Whether features are as they were given.
    pub fn is_given(&self) -> bool {
        *self == Scale::Given
    }

    /// A number for each column, of which none makes what it is applied to infinite.
    fn violation(&self, columns: usize) -> Option<Violation> {
        let Scale::Standardised { means, deviations, rests, .. } = self else { return None };
        let (mean, deviation) = ("about.scale.means", "about.scale.deviations");
        let bad_mean = means.iter().position(|mean| !mean.is_finite());
        let (rest, bad_rest) = ("about.scale.rests", rests.iter().position(|rest| !rest.is_finite()));
        let bad_deviation = deviations.iter().position(|deviation| !(deviation.is_finite() && *deviation > 0.0));
        let odd = |what, at: usize, found: f64| format!("expected {what}, found {found} for column {at}");
        length_violation(mean, means.len(), columns)
            .or_else(|| length_violation(deviation, deviations.len(), columns))
            .or_else(|| (!rests.is_empty()).then(|| length_violation(rest, rests.len(), columns)).flatten())
            .or_else(|| bad_rest.map(|at| (rest, odd("finite numbers", at, rests[at]))))
            .or_else(|| bad_mean.map(|at| (mean, odd("finite numbers", at, means[at]))))
            .or_else(|| bad_deviation.map(|at| (deviation, odd("finite numbers above 0", at, deviations[at]))))
    }
}

impl About {
    /// Larger ones are refused: files of models have them in their headers.
    pub const BYTES_MAX: usize = 32 << 20;

    /// Whether nothing is known but numbers.
    pub fn is_empty(&self) -> bool {
        *self == About::default()
    }

    /// Gives the other directions of edges names where they have become relations of their own: `rev_` and the name of
    /// what they are the other direction of.
    pub(crate) fn name_reverses(&mut self, relations: usize) {
        let given = self.relations.len();
        if given > 0 && relations == 2 * given {
            let names = self.relations.iter().map(|name| format!("rev_{name}"));
            self.relations = self.relations.iter().cloned().chain(names).collect();
        }
    }

    /// A name for each of so many relations, or for none.
    pub(crate) fn relation_violation(&self, relations: usize) -> Option<Violation> {
        let found = self.relations.len();
        (found > 0).then(|| length_violation("about.relations", found, relations)).flatten()
    }

    /// What the class of this number is called.
    pub fn class(&self, number: usize) -> String {
        self.classes.get(number).cloned().unwrap_or_else(|| number.to_string())
    }

    /// Refuses what does not fit so many feature columns and classes, or takes more room than any file of a model has.
    ///
    /// # Errors
    ///
    /// Names the field, and what was expected in it.
    pub fn check(&self, columns: usize, classes: usize) -> Result<()> {
        match self.violation(columns, classes) {
            Some((field, what)) => Err(GraphError::invalid(format!("{field}: {what}"))),
            None => Ok(()),
        }
    }

    /// About as many bytes as it takes when written down.
    fn bytes(&self) -> usize {
        let texts = |texts: &[String]| texts.iter().map(|text| text.len() + 8).fold(0, usize::saturating_add);
        let of_column = |column: &TableColumn| {
            let values = if let Reading::Category { values } = &column.reading { texts(values) } else { 0 };
            column.name.len() + 64 + values + 16 * column.fill.as_ref().map_or(0, Vec::len)
        };
        let scale = if let Scale::Standardised { means, deviations, rests, .. } = &self.scale {
            24 * (means.len() + deviations.len() + rests.len())
        } else {
            0
        };
        let types: usize = self.node_types.iter().map(|kind| kind.name.len() + 32).sum();
        types
            + texts(&self.classes)
            + texts(&self.relations)
            + texts(&self.features)
            + self.columns.iter().map(of_column).sum::<usize>()
            + scale
    }

    /// Whether features are columns of tables, in whatever units these have.
    pub fn is_of_tables(&self) -> bool {
        self.of_typed_tables || !self.columns.is_empty()
    }

    /// Names for as many columns and classes as there are, or for none.
    pub(crate) fn violation(&self, columns: usize, classes: usize) -> Option<Violation> {
        let fits = |array, found: usize, expected: usize| match found {
            0 => None,
            _ => length_violation(array, found, expected),
        };
        let filled = self.columns.iter().find(|column| {
            let values = column.width() - usize::from(column.indicator);
            column.fill.as_ref().is_some_and(|fill| fill.len() != values)
        });
        let filled = filled.map(|column| {
            let what = format!("{:?}: expected a number to fill each of its feature columns", column.name);
            ("about.columns", what)
        });
        let room = (self.bytes() > About::BYTES_MAX)
            .then(|| ("about", format!("expected names and scales of at most {} bytes", About::BYTES_MAX)));
        let read = self.columns.iter().map(TableColumn::width).fold(0, usize::saturating_add);
        let typed = self.node_types.iter().map(|kind| kind.columns).fold(0, usize::saturating_add);
        fits("about.node_types", typed, columns)
            .or_else(|| fits("about.classes", self.classes.len(), classes))
            .or_else(|| fits("about.features", self.features.len(), columns))
            .or_else(|| fits("about.columns", read, columns))
            .or(filled)
            .or_else(|| self.scale.violation(columns))
            .or(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str) -> TableColumn {
        TableColumn { name: name.to_owned(), reading: Reading::Number, fill: None, indicator: false }
    }

    #[test]
    fn names_are_for_every_column_and_class_or_for_none() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let colours = Reading::Category { values: words(&["green", "red"]) };
        let colour = TableColumn { reading: colours, indicator: true, ..number("colour") };
        let about = About {
            classes: words(&["ok", "banned"]),
            relations: words(&["calls"]),
            node_types: Vec::new(),
            features: words(&["age", "colour=green", "colour=red", "colour missing"]),
            columns: vec![number("age"), colour],
            scale: Scale::Standardised {
                means: vec![0.0; 4],
                deviations: vec![1.0; 4],
                rests: Vec::new(),
                by_type: false,
            },
            ..About::default()
        };
        assert_eq!(about.violation(4, 2), None);
        assert_eq!(About::default().violation(7, 3), None);
        assert_eq!(about.violation(4, 3).map(|(array, _)| array), Some("about.classes"));
        assert_eq!(about.violation(5, 2).map(|(array, _)| array), Some("about.features"));
        let of = |means: &[f64], deviations: &[f64]| {
            let scale = Scale::Standardised {
                means: means.to_vec(),
                deviations: deviations.to_vec(),
                rests: Vec::new(),
                by_type: false,
            };
            About { scale, ..About::default() }.violation(2, 2).map(|(field, what)| format!("{field}: {what}"))
        };
        assert_eq!(of(&[0.0, -1.0], &[1.0, 2.0]), None);
        for (means, deviations, expected) in [
            (&[0.0][..], &[1.0, 1.0][..], "about.scale.means: expected 2 values, found 1"),
            (&[0.0, 0.0], &[1.0; 3], "about.scale.deviations: expected 2 values, found 3"),
            (&[0.0, f64::NAN], &[1.0; 2], "about.scale.means: expected finite numbers, found NaN for column 1"),
            (&[0.0; 2], &[0.0, 1.0], "about.scale.deviations: expected finite numbers above 0, found 0 for column 0"),
            (&[0.0; 2], &[1.0, f64::INFINITY], "above 0, found inf for column 1"),
            (&[0.0; 2], &[-1.0, 1.0], "above 0, found -1 for column 0"),
        ] {
            assert!(of(means, deviations).is_some_and(|what| what.contains(expected)), "{expected}");
        }
        let fill = Some(vec![0.0; 2]);
        let filled = About { columns: vec![TableColumn { fill, ..number("age") }], ..About::default() };
        assert!(filled.check(1, 2).is_err_and(|error| error.to_string().contains("\"age\": expected a number")));
        let long = About { classes: vec!["x".repeat(About::BYTES_MAX)], ..About::default() };
        assert!(long.check(1, 1).is_err_and(|error| error.to_string().contains("at most")));
        let fewer = About { features: Vec::new(), ..about.clone() };
        assert_eq!(fewer.violation(5, 2).map(|(array, _)| array), Some("about.columns"));
        assert_eq!((about.class(1), About::default().class(1)), ("banned".to_owned(), "1".to_owned()));
        // What is written is what is read.
        let text = serde_json::to_string(&about).unwrap();
        assert_eq!(serde_json::from_str::<About>(&text).unwrap(), about);
        assert_eq!(serde_json::to_string(&About::default()).unwrap(), "{}");
    }
}
