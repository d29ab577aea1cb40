//! What can be wrong with files of a federation.

use std::path::{Path, PathBuf};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, FederationError>;

/// What is wrong, where, and what mends it.
#[derive(Debug, thiserror::Error)]
pub enum FederationError {
    /// The operating system refused something.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// The file that it is about.
        path: PathBuf,
        /// What was tried: `read`, `create`, `write`.
        doing: &'static str,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// A file is there that is never replaced.
    #[error("{}: there is such a file already, and {what} is never replaced: name another file, or move this one \
        away", path.display())]
    Exists {
        /// The file that is there.
        path: PathBuf,
        /// What was to be written: `a key`, `an audit log`.
        what: &'static str,
    },
    /// Others than the owner can read a key.
    #[error("{}: others can read this key (mode {mode:o}): chmod 600 {}; if somebody may have read it, make a new one",
        path.display(), path.display())]
    Mode {
        /// The file of the key.
        path: PathBuf,
        /// Its permissions: the nine lowest bits.
        mode: u32,
    },
    /// A file is larger than files of its kind may be.
    #[error("{}: larger than {limit} bytes, which files of this kind never are", path.display())]
    TooLarge {
        /// The file itself.
        path: PathBuf,
        /// The most bytes that it may have.
        limit: usize,
    },
    /// Text does not say what it should.
    #[error("{file}: {place}: {what}")]
    Text {
        /// The file, or what kind of text it is.
        file: String,
        /// The key, the rule or the line.
        place: String,
        /// What is wrong, and what is expected.
        what: String,
    },
    /// A contract is not the one to be run now, by this program.
    #[error("contract of run {run}: {what}")]
    Contract {
        /// The run's name.
        run: String,
        /// What differs, with both values, and what mends it.
        what: String,
    },
    /// A signature is not by the key that it should be by, of the text that it should be of.
    #[error("{of}: this is not a signature by {key}: the text was changed after it was signed, or another key signed")]
    Signature {
        /// What was signed.
        of: String,
        /// The key that should have signed, as [`PublicKey`](crate::PublicKey) prints it.
        key: String,
    },
    /// The operating system has no randomness.
    #[error("the operating system has no random numbers: {0}")]
    Random(getrandom::Error),
    /// An audit log takes no such line.
    #[error("{}: {what}", path.display())]
    Log {
        /// The file of the log.
        path: PathBuf,
        /// Why, and what mends it.
        what: String,
    },
}

impl FederationError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl Fn(std::io::Error) -> FederationError {
        move |source| FederationError::Io { path: path.to_owned(), doing, source }
    }

    pub(crate) fn text(file: &str, place: impl Into<String>, what: impl Into<String>) -> FederationError {
        FederationError::Text { file: file.to_owned(), place: place.into(), what: what.into() }
    }

    pub(crate) fn log(path: &Path, what: impl Into<String>) -> FederationError {
        FederationError::Log { path: path.to_owned(), what: what.into() }
    }
}
