//! What a cut on the disk reads: edges, and what is known of nodes.

use std::path::Path;

use crate::about::About;
use crate::error::{GraphError, Result};
use crate::source::EdgeSource;

/// What the user calls a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Id<'a> {
    /// By a number.
    Integer(i64),
    /// By a text.
    Text(&'a str),
}

/// A graph that is read in passes. Without features, labels, roles and names of nodes unless it says otherwise.
pub trait Input: EdgeSource {
    /// What it is called.
    fn name(&self) -> String;

    /// Whether edges lead one way; otherwise each is there once and leads both ways.
    fn is_directed(&self) -> bool;

    /// How many edges are listed, where that may be more than there are.
    fn listed(&self) -> Option<u64> {
        None
    }

    /// How many of these the last pass left out, since they name nodes that there are not.
    fn lost(&self) -> u64 {
        0
    }

    /// What classes and features are called, and how features were made.
    fn about(&self) -> About {
        About::default()
    }

    /// The number of classes; 0 without labels.
    fn classes(&self) -> usize {
        0
    }

    /// The columns of features; 0 without any.
    fn columns(&self) -> usize {
        0
    }

    /// Calls `each` with the values of features, row after row.
    ///
    /// # Errors
    ///
    /// If they cannot be read, or `each` fails.
    fn features(&self, each: &mut dyn FnMut(&[f32]) -> Result<()>) -> Result<()> {
        let _ = each;
        Ok(())
    }

    /// The label of each node, −1 where it is not known; none without labels.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn labels(&self) -> Result<Vec<i32>> {
        Ok(Vec::new())
    }

    /// The flag of [`crate::dataset::Split`] of each node; none without a split.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    fn roles(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    /// What the user calls a node; `None` where all nodes are called by their numbers.
    fn id(&self, node: u64) -> Option<Id<'_>> {
        let _ = node;
        None
    }

    /// The bytes of memory that it keeps.
    fn memory(&self) -> u64 {
        0
    }

    /// The files with their sizes and times of change: what an unfinished cut is compared by.
    ///
    /// # Errors
    ///
    /// If they are not there.
    fn fingerprint(&self) -> Result<String>;
}

/// What tells a file from another in its place.
pub(crate) fn fingerprint(path: &Path) -> Result<String> {
    let found = std::fs::metadata(path).map_err(|source| GraphError::io(path, source))?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(format!("{} {} {:?}\n", path.display(), found.len(), found.modified().ok()))
}
