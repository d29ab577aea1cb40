//! What can go wrong with graphs on disk and in memory.

use std::path::{Path, PathBuf};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, GraphError>;

/// An error of this crate. Each message names the file, the place in it and what was expected there, so that it can be
/// shown to a user as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The system refused to read or write a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: std::io::Error,
    },
    /// A file does not hold what its format promises.
    #[error("{}: {place}: {expected}", path.display())]
    Format {
        /// The file or folder.
        path: PathBuf,
        /// The line, array, column or member.
        place: String,
        /// What was expected and what was found.
        expected: String,
    },
    /// A file asks for more than the limits allow.
    #[error("{}: {place}: more than the limit of {limit}", path.display())]
    TooLarge {
        /// The file or folder.
        path: PathBuf,
        /// The line, array, column or member.
        place: String,
        /// The limit that was passed, from [`crate::limits::Limits`].
        limit: u64,
    },
    /// Several things are wrong.
    #[error("{}", all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several {
        /// Each of them.
        all: Vec<GraphError>,
    },
    /// An argument or a dataset in memory is not valid.
    #[error("{what}")]
    Invalid {
        /// What is wrong and what was expected.
        what: String,
    },
}

impl GraphError {
    /// The system's refusal `source` about `path`.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        GraphError::Io { path: path.to_owned(), source }
    }

    /// Bad content at `place` of `path`.
    pub fn format(path: &Path, place: impl Into<String>, expected: impl Into<String>) -> Self {
        GraphError::Format { path: path.to_owned(), place: place.into(), expected: expected.into() }
    }

    /// `place` of `path` passes `limit`.
    pub fn too_large(path: &Path, place: impl Into<String>, limit: u64) -> Self {
        GraphError::TooLarge { path: path.to_owned(), place: place.into(), limit }
    }

    /// All of these errors, of which there is at least one.
    pub fn several(errors: impl IntoIterator<Item = GraphError>) -> Self {
        let mut all = Vec::new();
        for error in errors {
            match error {
                GraphError::Several { all: more } => all.extend(more),
                one => all.push(one),
            }
        }
        if all.len() == 1 { all.remove(0) } else { GraphError::Several { all } }
    }

    /// Both, or all that is wrong with either.
    pub(crate) fn both<A, B>(one: Result<A>, other: Result<B>) -> Result<(A, B)> {
        match (one, other) {
            (Ok(one), Ok(other)) => Ok((one, other)),
            (one, other) => Err(GraphError::several(one.err().into_iter().chain(other.err()))),
        }
    }

    /// An invalid argument or dataset.
    pub fn invalid(what: impl Into<String>) -> Self {
        GraphError::Invalid { what: what.into() }
    }
}
