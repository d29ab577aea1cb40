//! Partitioners by name: what is known of one before it is made, and the registry that finds it. Which ones there are
//! is said in `members.rs`.

use crate::error::{GraphError, Result};
use crate::partition::partitioner::Checked;
use crate::partition::{PartitionOptions, Partitioner};

/// One kind of partitioner: its name, the options it reads and how it is made of them.
#[derive(Debug)]
pub struct PartitionerKind {
    /// The name users know it by.
    pub name: &'static str,
    /// The options it reads, by the names of the fields of [`PartitionOptions`] or of its own options there, and `seed`
    /// if it draws. A wish for any other does nothing, which a program may refuse.
    pub options: &'static [&'static str],
    /// What it reads of a graph when it follows these options.
    pub reads: fn(&PartitionOptions) -> Reads,
    /// Makes a partitioner of the options, and refuses those that it could never follow.
    pub build: fn(&PartitionOptions) -> Result<Box<dyn Partitioner>>,
}

/// What a partitioner reads of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    /// How many nodes there are.
    Nodes,
    /// The edges, node by node, in passes: [`Partitioner::assign_rows`].
    Rows,
    /// The whole graph, which has to be in memory.
    Graph,
}

impl PartitionerKind {
    /// Makes a partitioner that follows `options`, and refuses what [`Partitioner::check`] does before anything else.
    /// Parts that it leaves empty get nodes of the largest ones, where there are as many nodes as parts; `given` ones
    /// are as they are given.
    ///
    /// # Errors
    ///
    /// If an option that it reads is missing or has a value it cannot follow.
    pub fn build(&self, options: &PartitionOptions) -> Result<Box<dyn Partitioner>> {
        Ok(Box::new(Checked((self.build)(options)?)))
    }

    /// Whether it reads the option called `key`.
    pub fn reads(&self, key: &str) -> bool {
        self.options.contains(&key)
    }
}

/// The partitioners that a program knows. A value and not a global list, so that a program can add its own without
/// anybody else seeing them.
///
/// ```
/// use laconic_graph::error::Result;
/// use laconic_graph::partition::{PartitionInput, Partitioner, PartitionerKind, PartitionerRegistry, Reads};
///
/// /// Nodes in turn.
/// struct InTurn;
/// impl Partitioner for InTurn {
///     fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
///         Ok((0..input.graph.nodes() as u32).map(|node| node % input.parts.max(1)).collect())
///     }
/// }
/// static IN_TURN: PartitionerKind =
///     PartitionerKind { name: "in_turn", options: &[], reads: |_| Reads::Graph, build: |_| Ok(Box::new(InTurn)) };
///
/// let registry = PartitionerRegistry::default().with(&IN_TURN)?;
/// assert_eq!(registry.names(), ["random", "multilevel", "super_node", "streaming", "given", "in_turn"]);
/// # Ok::<(), laconic_graph::error::GraphError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PartitionerRegistry {
    kinds: Vec<&'static PartitionerKind>,
}

impl PartitionerRegistry {
    /// A registry of these kinds, whose names differ.
    pub(super) fn of(kinds: &[&'static PartitionerKind]) -> PartitionerRegistry {
        PartitionerRegistry { kinds: kinds.to_vec() }
    }

    /// The registry with one more kind, at the end.
    ///
    /// # Errors
    ///
    /// If there is one of that name already.
    pub fn with(mut self, kind: &'static PartitionerKind) -> Result<Self> {
        if self.kinds.iter().any(|known| known.name == kind.name) {
            return Err(GraphError::invalid(format!("two partitioners are called {:?}", kind.name)));
        }
        self.kinds.push(kind);
        Ok(self)
    }

    /// The kind called `name`.
    ///
    /// # Errors
    ///
    /// If there is none; the message lists the names that are known.
    pub fn get(&self, name: &str) -> Result<&'static PartitionerKind> {
        self.iter().find(|kind| kind.name == name).ok_or_else(|| {
            GraphError::invalid(format!("no partitioner is called {name:?}; there are {}", self.names().join(", ")))
        })
    }

    /// The names of all kinds, this crate's first.
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(|kind| kind.name).collect()
    }

    /// All kinds, this crate's first.
    pub fn iter(&self) -> impl Iterator<Item = &'static PartitionerKind> {
        self.kinds.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{PartitionerKind, PartitionerRegistry, Reads};
    use crate::error::Result;
    use crate::partition::{OptionValue, PartitionInput, PartitionOptions, Partitioner};

    /// Blocks of as many nodes as its option says.
    struct Blocks(usize);

    impl Partitioner for Blocks {
        fn assign(&self, input: &PartitionInput) -> Result<Vec<u32>> {
            Ok((0..input.graph.nodes()).map(|node| (node / self.0) as u32 % input.parts).collect())
        }
    }

    static BLOCKS: PartitionerKind = PartitionerKind {
        name: "blocks",
        options: &["block"],
        reads: |_| Reads::Graph,
        build: |options| match options.own.get("block") {
            Some(&OptionValue::Integer(size)) if size > 0 => Ok(Box::new(Blocks(size as usize))),
            other => Err(crate::error::GraphError::invalid(format!("expected block = a size, found {other:?}"))),
        },
    };

    #[test]
    fn a_foreign_partitioner_is_found_and_reads_options_of_its_own() {
        let registry = PartitionerRegistry::default().with(&BLOCKS).unwrap();
        let graph = crate::graph::Graph::new(vec![0; 6], Vec::new());
        let input = PartitionInput { graph: &graph, roles: None, parts: 2, seed: 0 };
        let mut options = PartitionOptions::default();
        let kind = registry.get("blocks").unwrap();
        assert!(kind.build(&options).is_err());
        options.own.insert("block".to_owned(), OptionValue::Integer(2));
        assert_eq!(kind.build(&options).unwrap().assign(&input).unwrap(), [0, 0, 1, 1, 0]);
    }

    #[test]
    fn no_two_kinds_have_one_name() {
        let message = PartitionerRegistry::default().with(&BLOCKS).unwrap().with(&BLOCKS).unwrap_err().to_string();
        assert!(message.contains("blocks"), "{message}");
    }

    #[test]
    fn an_unknown_name_lists_the_known() {
        let message = PartitionerRegistry::default().get("metis").unwrap_err().to_string();
        assert_eq!(
            message,
            "no partitioner is called \"metis\"; there are random, multilevel, super_node, streaming, given"
        );
    }
}
