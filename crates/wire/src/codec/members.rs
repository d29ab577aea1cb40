//! The codecs of this crate. This file alone knows all of them.

use super::{
    CodecKind, CodecRegistry, Codewords, Entropy, Exact, Grouped, Half, Largest, LowRank, Masked, Quantised, Top,
};

/// One line each. The first is the one inside a codec that wraps another and names none.
const OURS: &[&CodecKind] = &[
    &Exact::KIND,
    &Half::KIND,
    &Quantised::KIND,
    &Codewords::KIND,
    &LowRank::KIND,
    &Largest::KIND,
    &Entropy::KIND,
    &Grouped::KIND,
    &Top::KIND,
    &Masked::KIND,
];

impl Default for CodecRegistry {
    fn default() -> CodecRegistry {
        CodecRegistry::of(OURS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::MASKED;
    use super::*;

    #[test]
    fn our_own_entries_keep_the_rules() {
        let registry = CodecRegistry::default();
        let numbers: std::collections::BTreeSet<u8> = registry.iter().map(|kind| kind.number).collect();
        let names: std::collections::BTreeSet<&str> = registry.names().collect();
        assert_eq!((numbers.len(), names.len()), (OURS.len(), OURS.len()));
        assert!(registry.iter().all(|kind| !kind.name.is_empty() && (1..=MASKED).contains(&kind.number)));
        assert_eq!(registry.iter().find(|kind| kind.number == MASKED).map(|kind| kind.name), Some(Masked::KIND.name));
    }
}
