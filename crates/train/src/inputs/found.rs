//! What was found out of parts that stay the same while several runs on them are forecast.

use std::sync::{Mutex, PoisonError};

use super::{InputKind, Response};
use crate::error::Result;

/// Bytes of what is told: of each part, and there for each peer.
type OfParts = Vec<Vec<usize>>;

/// What an input's bytes depend on, besides the parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// How owners answer.
    pub response: Option<Response>,
    /// How many training nodes a sum is of, at least.
    pub least: u32,
    /// Whether nodes have edges to themselves.
    pub self_loops: bool,
}

/// Bytes that parts were found to tell. To tell takes long, and forecasts of other runs on the same parts ask again.
#[derive(Debug, Default)]
pub struct Found(Mutex<Vec<(&'static str, Terms, OfParts)>>);

impl Found {
    /// Bytes of these inputs: part, input, peer. `tell` finds those of all of them, where any is new.
    ///
    /// # Errors
    /// Those of `tell`.
    pub fn bytes(
        &self,
        kinds: &[&InputKind],
        terms: &Terms,
        tell: impl FnOnce() -> Result<Vec<Vec<Vec<usize>>>>,
    ) -> Result<Vec<Vec<Vec<usize>>>> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |found: &[(&str, Terms, OfParts)], kind: &InputKind| {
            let mut all = found.iter();
            all.find(|(name, under, _)| *name == kind.name && under == terms).map(|(.., bytes)| bytes.clone())
        };
        let known: Option<Vec<OfParts>> = kinds.iter().map(|kind| of(&found, kind)).collect();
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            let parts = 0..known[0].len();
            return Ok(parts.map(|part| known.iter().map(|bytes| bytes[part].clone()).collect()).collect());
        }
        let told = tell()?;
        for (at, kind) in kinds.iter().enumerate().filter(|(_, kind)| of(&found, kind).is_none()).collect::<Vec<_>>() {
            let bytes = told.iter().map(|of_part| of_part[at].clone()).collect();
            found.push((kind.name, terms.clone(), bytes));
        }
        Ok(told)
    }
}
