//! What a codec remembers from one message of a stream to the next.

/// What a codec remembers of one stream (layer, direction) on one link at one end. Its owner is the caller, who keeps
/// one for each and, where a run can be resumed, saves it; codecs themselves keep nothing that a result depends on. A
/// memory that was read from a file may be anything.
///
/// The two ends of a link remember different things, so each end has one of its own. A codec around another hands it
/// the memory inside, so that the two never meet: [`inside`](Memory::inside) and [`holding`](Memory::holding) reach it
/// for saving and restoring.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// The round of the message that `values` are of.
    pub round: u32,
    /// Values of the last message, or what the codec makes of them; their number is the codec's business.
    pub values: Vec<f32>,
    inner: Option<Box<Memory>>,
}

impl Memory {
    /// How many memories may stand one inside the other in a file.
    pub const NESTED_MAX: usize = 8;

    /// A memory of these values, with nothing inside, as it was saved.
    pub fn of(round: u32, values: Vec<f32>) -> Memory {
        Memory { round, values, inner: None }
    }

    /// What a codec inside this one remembers, to be read and written by it.
    pub fn inner(&mut self) -> &mut Memory {
        self.inner.get_or_insert_default()
    }

    /// What a codec inside this one remembers, if it was ever asked.
    pub fn inside(&self) -> Option<&Memory> {
        self.inner.as_deref()
    }

    /// The same memory with this one inside, as [`inside`](Memory::inside) gave it before it was saved.
    #[must_use]
    pub fn holding(self, inside: Memory) -> Memory {
        Memory { inner: Some(Box::new(inside)), ..self }
    }

    /// Whether nothing is remembered, here or further inside: then there is nothing to save.
    pub fn is_empty(&self) -> bool {
        self.round == 0 && self.values.is_empty() && self.inside().is_none_or(Memory::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_survives_being_taken_apart() {
        let mut memory = Memory::of(3, vec![1.0]);
        assert!(memory.inside().is_none() && !memory.is_empty());
        memory.inner().inner().values.push(2.0);
        let inside = memory.inside().expect("it was asked").clone();
        let back = Memory::of(3, vec![1.0]).holding(inside);
        assert_eq!(back, memory);
    }

    #[test]
    fn a_memory_that_was_only_looked_into_is_empty() {
        let mut memory = Memory::default();
        memory.inner().inner();
        assert!(memory.is_empty());
        memory.inner().inner().round = 1;
        assert!(!memory.is_empty());
    }
}
