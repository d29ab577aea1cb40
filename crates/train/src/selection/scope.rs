//! Which of the rows that edges need take part in an exchange.

/// A set of halo rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of them.
    Whole,
    /// Those that the selection draws for the round.
    Selected,
    /// None: nothing is sent and every halo row is absent.
    Nothing,
}
