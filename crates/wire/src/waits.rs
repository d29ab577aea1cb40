//! How often somebody has to wait for frames, one wait after the other.
//!
//! Who sends several frames under one tag, to one or to many, waits for nobody in between: all of them are one wait of
//! those whom they reach. Frames with another tag are another wait, since workers in step take what one tag brings
//! before they send the next.

use crate::{PerKind, Tag};
use std::collections::BTreeMap;

/// Waits by streams: tags without their rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waits {
    streams: BTreeMap<Tag, Stream>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stream {
    /// The last round that was noted.
    last: Option<u32>,
    /// In how many rounds there were frames.
    rounds: u64,
}

impl Waits {
    /// Notes a frame. Rounds of one stream do not decrease.
    pub fn note(&mut self, tag: Tag) {
        let stream = self.streams.entry(Tag { round: 0, ..tag }).or_default();
        if stream.last.replace(tag.round) != Some(tag.round) {
            stream.rounds += 1;
        }
    }

    /// Adds the waits of other rounds so many times.
    pub fn add_times(&mut self, other: &Waits, times: u64) {
        for (tag, more) in &other.streams {
            let stream = self.streams.entry(*tag).or_default();
            (stream.last, stream.rounds) = (more.last, stream.rounds + more.rounds * times);
        }
    }

    /// Joins those of another worker, which takes part in the same waits: one that either of them knows is one.
    pub fn join(&mut self, other: &Waits) {
        for (tag, theirs) in &other.streams {
            let stream = self.streams.entry(*tag).or_default();
            stream.rounds = stream.rounds.max(theirs.rounds);
        }
    }

    /// How many there are, by the kind of what is waited for.
    pub fn by_kind(&self) -> PerKind<u64> {
        let mut kinds = PerKind::<u64>::default();
        self.streams.iter().for_each(|(tag, stream)| kinds[tag.kind()] += stream.rounds);
        kinds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, FramePurpose, Kind};

    #[test]
    fn frames_of_one_tag_are_one_wait_and_workers_share_it() {
        let tag = |content, round| Tag { round, ..Tag::new(content, FramePurpose::Training) };
        let of = |tags: &[Tag]| {
            let mut waits = Waits::default();
            tags.iter().for_each(|tag| waits.note(*tag));
            waits
        };
        let [rows, sums] = [Content::HiddenRows, Content::ParameterGradients];
        let mut first = of(&[tag(rows, 1), tag(rows, 1), tag(sums, 1), tag(sums, 1).later(1), tag(rows, 2)]);
        let kinds = |waits: &Waits| [Kind::Activations, Kind::ParameterGradients].map(|kind| waits.by_kind()[kind]);
        assert_eq!(kinds(&first), [2, 2]);
        first.add_times(&of(&[tag(rows, 3), tag(sums, 3)]), 10);
        assert_eq!(kinds(&first), [12, 12]);
        first.join(&of(&[tag(rows, 1), tag(sums, 1).later(2)]));
        assert_eq!(kinds(&first), [12, 13]);
    }
}
