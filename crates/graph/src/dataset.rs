//! A whole dataset in memory: graph, features, labels, splits and the user's own ids.

use std::path::Path;

use laconic_array::Array;

use crate::about::About;
use crate::error::{GraphError, Result};
use crate::exact::{Exact, ExactColumn};
use crate::given::{GivenNegatives, NAMES};
use crate::graph::Graph;
use crate::rules::{Violation, length_violation, offsets_violation};

/// Everything a reader found. Rows of features, labels, splits and ids are nodes `0..graph.nodes()`.
///
/// [`Dataset::new`] checks that they fit each other, and readers and generators end in the same check. The fields are
/// public for reading and for preparation; who changes them asks [`Dataset::checked`] again.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What the data is called: the stem of its file or folder.
    pub name: String,
    /// The edges, whose ends are the rows of everything else.
    pub graph: Graph,
    /// Features of the nodes, if there are any.
    pub features: Features,
    /// Columns of dense features as they were given, where `f32` does not hold them well enough; whoever prepares
    /// features reads these, and what is prepared has none.
    pub exact: Exact,
    /// Labels of the nodes, if there are any.
    pub labels: Labels,
    /// The splits found, most datasets have none or one; training chooses one.
    pub splits: Vec<Split>,
    /// The user's own node ids, in node order.
    pub ids: Ids,
    /// What classes and features are called, and how features were made.
    pub about: About,
    /// Pairs that are given as no edges, to judge edges against that are held out.
    pub negatives: Option<GivenNegatives<u32>>,
}

impl Dataset {
    /// A dataset whose nodes are called by their rows. Other names come after: [`Dataset::with_ids`].
    ///
    /// ```
    /// use laconic_graph::dataset::{Dataset, Features, Labels, Split};
    /// use laconic_graph::graph::Graph;
    /// let path = Graph::from_edges(3, &[(0, 1), (1, 0), (1, 2), (2, 1)])?;
    /// let features = Features::Dense { columns: 2, values: vec![0.0; 6].into() };
    /// let labels = Labels::Single { classes: 2, values: vec![0, 1, -1] };
    /// let split = Split { roles: vec![Split::TRAIN, Split::VAL, 0] };
    /// let dataset = Dataset::new("path", path, features, labels, vec![split])?;
    /// assert_eq!(dataset.splits[0].count(Split::TRAIN), 1);
    /// # Ok::<(), laconic_graph::error::GraphError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Dataset::checked`].
    pub fn new(
        name: impl Into<String>,
        graph: Graph,
        features: Features,
        labels: Labels,
        splits: Vec<Split>,
    ) -> Result<Dataset> {
        let (name, ids, about, exact) = (name.into(), Ids::Row, About::default(), Exact::default());
        Dataset { name, graph, features, exact, labels, splits, ids, about, negatives: None }.checked()
    }

    /// The dataset with the user's own names of the nodes.
    ///
    /// # Errors
    ///
    /// If there are not as many as nodes.
    pub fn with_ids(self, ids: Ids) -> Result<Dataset> {
        Dataset { ids, ..self }.checked()
    }

    /// The dataset itself, if all of it fits together: a graph that keeps the rules of [`Graph::check`], a row of
    /// features, a label, a role in each split and an id for each node, sparse columns ascending and in range, classes
    /// in range. Reads every array but dense features once.
    ///
    /// What is unusual but can be worked with is not refused, such as a feature that is not finite or a split without
    /// training nodes; [`crate::info::check()`] finds that.
    ///
    /// # Errors
    ///
    /// Names the dataset, the array and what was expected in it.
    pub fn checked(self) -> Result<Dataset> {
        let error = |what| GraphError::invalid(format!("dataset {:?}: {what}", self.name));
        self.graph.check().map_err(|violation| error(violation.to_string()))?;
        let nodes = self.graph.nodes();
        let roles = |(number, split): (usize, &Split)| {
            role_violation(&split.roles, nodes).map(|(array, what)| (array, format!("split {number}: {what}")))
        };
        let exact = |of: &ExactColumn| length_violation("exact features", of.values.len(), nodes);
        let violation = feature_violation(&self.features, nodes)
            .or_else(|| self.exact.columns.iter().find_map(exact))
            .or_else(|| label_violation(&self.labels, nodes))
            .or_else(|| self.splits.iter().enumerate().find_map(roles))
            .or_else(|| id_violation(&self.ids, nodes))
            .or_else(|| self.about.violation(self.features.columns(), self.labels.classes()))
            .or_else(|| self.about.relation_violation(self.graph.data.kinds()))
            .or_else(|| {
                self.negatives.as_ref().and_then(|given| negative_violation(given, nodes, self.graph.data.kinds()))
            });
        match violation {
            Some((array, what)) => Err(error(format!("{array}: {what}"))),
            None => Ok(self),
        }
    }
}

/// So many rows of features that are lent in 16 bits are widened at once.
const ROWS_AT_ONCE: usize = 256;

/// Node features, one row a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// The nodes have no features.
    None,
    /// Row-major, rows × `columns`.
    Dense {
        /// Number of columns.
        columns: usize,
        /// The values, row after row.
        values: Array<f32>,
    },
    /// Compressed sparse rows, columns ascending within a row.
    Sparse {
        /// Number of columns.
        columns: usize,
        /// Row boundaries; length rows + 1.
        offsets: Vec<u64>,
        /// The column of each stored value.
        indices: Vec<u32>,
        /// The stored values.
        values: Vec<f32>,
    },
}

impl Features {
    /// [`Features::stored`] for changing. Values of a file or of another program are copied first.
    pub fn stored_mut(&mut self) -> &mut [f32] {
        match self {
            Features::None => &mut [],
            Features::Dense { values, .. } => values,
            Features::Sparse { values, .. } => values,
        }
    }

    /// Calls `each` with row, column and number of all that is stored, row after row.
    pub fn for_each(&self, mut each: impl FnMut(usize, usize, f32)) {
        match self {
            Features::None => {}
            Features::Dense { columns, values } => {
                let (width, mut row) = ((*columns).max(1), 0);
                values.pieces(width.saturating_mul(ROWS_AT_ONCE), |piece| {
                    for numbers in piece.chunks_exact(width) {
                        numbers.iter().enumerate().for_each(|(column, &number)| each(row, column, number));
                        row += 1;
                    }
                });
            }
            Features::Sparse { offsets, .. } => {
                (1..offsets.len())
                    .for_each(|end| self.for_each_of(end - 1, |column, number| each(end - 1, column, number)));
            }
        }
    }

    /// Calls `each` with column and number of all that is stored of a row.
    pub fn for_each_of(&self, row: usize, mut each: impl FnMut(usize, f32)) {
        match self {
            Features::None => {}
            Features::Dense { columns, values } => {
                let (start, mut room) = (row * columns, Vec::new());
                let numbers = values.piece(start..start + columns, &mut room);
                numbers.iter().enumerate().for_each(|(column, &number)| each(column, number));
            }
            Features::Sparse { offsets, indices, values, .. } => {
                let stored = offsets[row] as usize..offsets[row + 1] as usize;
                let columns = indices[stored.clone()].iter();
                columns.zip(&values[stored]).for_each(|(&column, &number)| each(column as usize, number));
            }
        }
    }

    /// The values that are stored: all of them if dense, those that are not 0 if sparse. Where a program lends them in
    /// 16 bits they are made, and kept, for this.
    pub fn stored(&self) -> &[f32] {
        match self {
            Features::None => &[],
            Features::Dense { values, .. } => values,
            Features::Sparse { values, .. } => values,
        }
    }

    /// The file that the values are read from, if it has been written to or cut since; see [`Array::changed_file`].
    pub fn changed_file(&self) -> Option<&Path> {
        match self {
            Features::Dense { values, .. } => values.changed_file(),
            Features::None | Features::Sparse { .. } => None,
        }
    }

    /// The number of columns; 0 without features.
    pub fn columns(&self) -> usize {
        match self {
            Features::None => 0,
            Features::Dense { columns, .. } | Features::Sparse { columns, .. } => *columns,
        }
    }
}

/// Node labels: none, one class a node, or any number of classes.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// The nodes have no labels.
    None,
    /// One class a node.
    Single {
        /// Number of classes.
        classes: usize,
        /// The class of each node, −1 where unknown.
        values: Vec<i32>,
    },
    /// Any number of classes a node.
    Multi {
        /// Number of classes.
        classes: usize,
        /// 0, 1 or [`Labels::UNKNOWN`], row-major, rows × `classes`. A node that is unknown in all classes has no
        /// label.
        values: Vec<u8>,
    },
}

impl Labels {
    /// What stands in [`Labels::Multi`] where it is not known whether the node has the class.
    pub const UNKNOWN: u8 = u8::MAX;

    /// The number of classes; 0 without labels.
    pub fn classes(&self) -> usize {
        match self {
            Labels::None => 0,
            Labels::Single { classes, .. } | Labels::Multi { classes, .. } => *classes,
        }
    }

    /// How many labels a node can have: one for each class of a multi-label set, otherwise one.
    pub fn per_node(&self) -> usize {
        match self {
            Labels::None | Labels::Single { .. } => 1,
            Labels::Multi { classes, .. } => *classes,
        }
    }

    /// How many labels of node `row` are known; a node of which none is has no part in training and figures.
    pub fn known(&self, row: usize) -> usize {
        match self {
            Labels::None => 0,
            Labels::Single { values, .. } => usize::from(values[row] >= 0),
            Labels::Multi { classes, values } => {
                let row = &values[row * classes..][..*classes];
                row.iter().filter(|&&value| value != Labels::UNKNOWN).count()
            }
        }
    }
}

/// Which nodes train, validate and test: per node a set of [`Split::TRAIN`], [`Split::VAL`] and [`Split::TEST`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    /// One set of flags a node.
    pub roles: Vec<u8>,
}

impl Split {
    /// The node's label is learned from.
    pub const TRAIN: u8 = 1;
    /// The node's label chooses the best round.
    pub const VAL: u8 = 2;
    /// The node's label is only for the final figure.
    pub const TEST: u8 = 4;

    /// How many nodes have this role.
    pub fn count(&self, role: u8) -> usize {
        self.roles.iter().filter(|&&r| r & role != 0).count()
    }
}

/// The user's own node ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ids {
    /// Node `i` is called `i`.
    Row,
    /// Each node has an integer as its name.
    Integers(Vec<i64>),
    /// Each node has a text as its name.
    Strings(Vec<String>),
}

impl Ids {
    /// What node `row` is called in messages.
    pub fn name(&self, row: usize) -> String {
        match self {
            Ids::Row => row.to_string(),
            Ids::Integers(ids) => ids.get(row).map_or_else(|| row.to_string(), i64::to_string),
            Ids::Strings(ids) => ids.get(row).map_or_else(|| row.to_string(), |id| format!("{id:?}")),
        }
    }
}

/// The shape of features: as many rows as nodes, and in sparse ones columns that ascend and are there. Whether the
/// values are finite is another question: readers take those that are not, and [`crate::info::check()`] names them.
pub(crate) fn feature_violation(features: &Features, rows: usize) -> Option<Violation> {
    match features {
        Features::None => None,
        Features::Dense { columns, values } => {
            length_violation("features", values.len(), rows.saturating_mul(*columns))
        }
        Features::Sparse { columns, offsets, indices, values } => {
            if let Some(violation) = offsets_violation("features_offsets", offsets, rows, values.len())
                .or_else(|| length_violation("features_indices", indices.len(), values.len()))
            {
                return Some(violation);
            }
            let bad_row = (0..rows).find(|&row| {
                let indices = &indices[offsets[row] as usize..offsets[row + 1] as usize];
                indices.windows(2).any(|pair| pair[0] >= pair[1])
                    || indices.last().is_some_and(|&last| last as usize >= *columns)
            })?;
            Some(("features_indices", format!("expected ascending columns below {columns} in row {bad_row}")))
        }
    }
}

/// As many labels as nodes, and classes that there are.
pub(crate) fn label_violation(labels: &Labels, rows: usize) -> Option<Violation> {
    match labels {
        Labels::None => None,
        Labels::Single { classes, values } => length_violation("labels", values.len(), rows).or_else(|| {
            let bad = values.iter().find(|&&value| value < -1 || value >= 0 && value as usize >= *classes)?;
            Some(("labels", format!("expected −1 or a class below {classes}, found {bad}")))
        }),
        Labels::Multi { classes, values } => length_violation("labels", values.len(), rows.saturating_mul(*classes))
            .or_else(|| {
                let bad = values.iter().find(|&&value| value > 1 && value != Labels::UNKNOWN)?;
                Some(("labels", format!("expected 0, 1 or {} for unknown, found {bad}", Labels::UNKNOWN)))
            }),
    }
}

/// One set of the flags of [`crate::dataset::Split`] a node.
pub(crate) fn role_violation(roles: &[u8], rows: usize) -> Option<Violation> {
    if let Some(role) = roles.iter().find(|&&role| role > 7) {
        return Some(("roles", format!("expected sets of the flags 1, 2 and 4, found {role}")));
    }
    length_violation("roles", roles.len(), rows)
}

/// Pairs of nodes that there are, as many targets as sources, and as many others for each as are said.
fn negative_violation(given: &GivenNegatives<u32>, nodes: usize, relations: usize) -> Option<Violation> {
    given.iter().zip(NAMES).find_map(|(pairs, names)| {
        let [sources, targets, others, _] = names;
        let lists = [(sources, &pairs.sources), (targets, &pairs.targets), (others, &pairs.others)];
        let beyond = |(name, ids): (&'static str, &Vec<u32>)| {
            let id = ids.iter().find(|&&id| id as usize >= nodes)?;
            Some((name, format!("expected nodes below {nodes}, found {id}")))
        };
        pairs.violation(names, relations).or_else(|| lists.into_iter().find_map(beyond))
    })
}

/// One id a node.
pub(crate) fn id_violation(ids: &Ids, rows: usize) -> Option<Violation> {
    match ids {
        Ids::Row => None,
        Ids::Integers(ids) => length_violation("ids", ids.len(), rows),
        Ids::Strings(ids) => length_violation("id_bytes", ids.len(), rows),
    }
}

#[cfg(test)]
mod tests {
    use super::{About, Dataset, Exact, Features, Ids, Labels, Split};
    use crate::graph::Graph;

    /// Two nodes, an edge each way, and one of everything.
    fn sound() -> Dataset {
        Dataset {
            name: "pair".to_owned(),
            graph: Graph { offsets: vec![0, 1, 2], sources: vec![1, 0], data: Some(vec![1.0, 2.0]).into() },
            features: Features::Sparse {
                columns: 3,
                offsets: vec![0, 2, 3],
                indices: vec![0, 2, 1],
                values: vec![1.0; 3],
            },
            exact: Exact::default(),
            labels: Labels::Single { classes: 2, values: vec![1, -1] },
            splits: vec![Split { roles: vec![Split::TRAIN, Split::VAL | Split::TEST] }],
            ids: Ids::Integers(vec![7, 5]),
            about: About::default(),
            negatives: None,
        }
    }

    #[test]
    fn what_fits_together_is_taken_as_it_is() {
        let Dataset { name, graph, features, labels, splits, ids, .. } = sound();
        let made = Dataset::new(name, graph, features, labels, splits).unwrap();
        assert_eq!(made.ids, Ids::Row);
        assert_eq!(crate::digest::digest(&made.with_ids(ids).unwrap()), crate::digest::digest(&sound()));
        // Not finite is a finding, not a refusal: readers take such features.
        let values = vec![f32::NAN, 0.0];
        assert!(
            Dataset { features: Features::Dense { columns: 1, values: values.into() }, ..sound() }.checked().is_ok()
        );
    }

    #[test]
    fn every_misfit_is_refused_by_name() {
        let sparse = |offsets: &[u64], indices: &[u32], values: usize| Features::Sparse {
            columns: 3,
            offsets: offsets.to_vec(),
            indices: indices.to_vec(),
            values: vec![1.0; values],
        };
        type Misfit<'a> = (&'a str, &'a dyn Fn(&mut Dataset));
        let misfits: [Misfit; 21] = [
            ("offsets: expected a boundary", &|d| d.graph.offsets.clear()),
            ("offsets: expected to run from 0 to 2", &|d| d.graph.offsets[2] = 1),
            ("offsets: expected ascending", &|d| d.graph.offsets[1] = 3),
            ("sources: expected nodes below 2, found 2", &|d| d.graph.sources[1] = 2),
            ("sources: expected ascending sources", &|d| d.graph = Graph::new(vec![0, 2, 2], vec![1, 0])),
            ("weights: expected 2 values, found 1", &|d| d.graph.data.weights = Some(vec![1.0])),
            ("features: expected 4 values, found 5", &|d| {
                d.features = Features::Dense { columns: 2, values: vec![0.0; 5].into() };
            }),
            ("features: expected", &|d| d.features = Features::Dense { columns: usize::MAX, values: vec![].into() }),
            ("features_offsets: expected 3 values, found 4", &|d| d.features = sparse(&[0, 1, 2, 3], &[0, 1, 2], 3)),
            ("features_offsets: expected to run", &|d| d.features = sparse(&[0, 1, 2], &[0, 1, 2], 3)),
            ("features_offsets: expected ascending", &|d| d.features = sparse(&[0, 4, 3], &[0, 1, 2], 3)),
            ("features_indices: expected 3 values, found 2", &|d| d.features = sparse(&[0, 1, 3], &[0, 1], 3)),
            ("features_indices: expected ascending columns", &|d| d.features = sparse(&[0, 2, 2], &[1, 1], 2)),
            ("features_indices: expected ascending columns below 3 in row 1", &|d| {
                d.features = sparse(&[0, 1, 2], &[0, 3], 2);
            }),
            ("labels: expected 2 values", &|d| d.labels = Labels::Single { classes: 2, values: vec![0; 3] }),
            ("labels: expected −1 or a class below 2, found 2", &|d| {
                d.labels = Labels::Single { classes: 2, values: vec![0, 2] };
            }),
            ("labels: expected 4 values", &|d| d.labels = Labels::Multi { classes: 2, values: vec![0; 3] }),
            ("labels: expected 0, 1 or 255 for unknown, found 2", &|d| {
                d.labels = Labels::Multi { classes: 1, values: vec![0, 2] }
            }),
            ("roles: split 1: expected 2 values, found 1", &|d| d.splits.push(Split { roles: vec![1] })),
            ("roles: split 0: expected sets of the flags", &|d| d.splits[0].roles[0] = 8),
            ("ids: expected 2 values, found 3", &|d| d.ids = Ids::Integers(vec![1, 2, 3])),
        ];
        for (expected, change) in misfits {
            let mut dataset = sound();
            change(&mut dataset);
            let message = dataset.checked().expect_err(expected).to_string();
            assert!(message.contains(expected) && message.starts_with("dataset \"pair\""), "{expected}: {message}");
        }
        assert!(sound().with_ids(Ids::Strings(vec![String::new()])).is_err());
    }
}
