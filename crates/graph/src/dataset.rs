//! A whole dataset in memory: graph, features, labels, splits and the user's own ids.

use crate::graph::Graph;

/// Everything a reader found. Rows of features, labels, splits and ids are nodes `0..graph.nodes()`.
#[derive(Debug, Clone)]
pub struct Dataset {
    /// What the data is called: the stem of its file or folder.
    pub name: String,
    /// The edges.
    pub graph: Graph,
    /// Node features.
    pub features: Features,
    /// Node labels.
    pub labels: Labels,
    /// The splits found, most datasets have none or one; training chooses one.
    pub splits: Vec<Split>,
    /// The user's own node ids, in node order.
    pub ids: Ids,
}

/// Node features, one row a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Features {
    /// No features.
    None,
    /// Row-major, rows × `columns`.
    Dense {
        /// Number of columns.
        columns: usize,
        /// The values, row after row.
        values: Vec<f32>,
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
    /// The number of columns; 0 without features.
    pub fn columns(&self) -> usize {
        match self {
            Features::None => 0,
            Features::Dense { columns, .. } | Features::Sparse { columns, .. } => *columns,
        }
    }
}

/// Node labels.
#[derive(Debug, Clone, PartialEq)]
pub enum Labels {
    /// No labels.
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
        /// 0 or 1, row-major, rows × `classes`.
        values: Vec<u8>,
    },
}

impl Labels {
    /// The number of classes; 0 without labels.
    pub fn classes(&self) -> usize {
        match self {
            Labels::None => 0,
            Labels::Single { classes, .. } | Labels::Multi { classes, .. } => *classes,
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
    /// Integer ids.
    Integers(Vec<i64>),
    /// Text ids.
    Strings(Vec<String>),
}
