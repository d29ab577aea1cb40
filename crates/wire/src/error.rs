//! What can go wrong between workers. The world may fail, and then one of these says who waited for whom and why; the
//! program may not, and there an assertion speaks.

use crate::{Rank, Tag};
use std::fmt;
use std::time::Duration;

/// The result of everything that touches the network or its bytes.
pub type Result<T> = std::result::Result<T, WireError>;

/// What can go wrong between workers, with who waited for whom where somebody did.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Nothing came from the peer in time.
    #[error("rank {rank} waited {} for rank {peer}: {tag}: {}", Seconds(*.waited), Instead(*.instead))]
    Deadline {
        /// The rank that waited.
        rank: Rank,
        /// The rank that it waited for.
        peer: Rank,
        /// What it waited for.
        tag: Tag,
        /// How long it waited.
        waited: Duration,
        /// The oldest frame that did come from this peer and that nobody has asked for.
        instead: Option<Tag>,
    },
    /// The peer's end of the link no longer exists.
    #[error("rank {peer} is gone: rank {rank} {} {tag}", if *.sending { "was sending it" } else { "waited for" })]
    Gone {
        /// The rank that noticed.
        rank: Rank,
        /// The rank that is gone.
        peer: Rank,
        /// What was to pass between them.
        tag: Tag,
        /// Whether it was noticed while sending.
        sending: bool,
    },
    /// Somebody asked this process to stop while it waited.
    #[error("rank {rank} was told to stop while it waited for rank {peer}: {tag}")]
    Interrupted {
        /// The rank that waited.
        rank: Rank,
        /// The rank that it waited for.
        peer: Rank,
        /// What it waited for.
        tag: Tag,
    },
    /// This worker was done, but the peer did not take what was sent to it, or did not finish.
    #[error("rank {rank} was done and waited {} for rank {peer} to {}", Seconds(*.waited), Parting(*.unsent))]
    Unfinished {
        /// The rank that waited.
        rank: Rank,
        /// The rank that it waited for.
        peer: Rank,
        /// How long, until the deadline or an interrupt.
        waited: Duration,
        /// A frame that the peer did not take, if that is what failed.
        unsent: Option<Tag>,
    },
    /// The peer is in another round: it sent a later frame of this stream and so will never send the one waited for.
    #[error("rank {rank} waits for rank {peer}: {expected}, but a frame of round {found} came")]
    Round {
        /// The rank that waits.
        rank: Rank,
        /// The rank that sent it.
        peer: Rank,
        /// What was waited for.
        expected: Tag,
        /// The round of the frame that came.
        found: u32,
    },
    /// A peer sent so many frames nobody asked for that keeping more would only hide a defect.
    #[error(
        "rank {rank} waits for rank {peer}: {tag}, and keeps {kept} frames that nobody asked for, the first {oldest}"
    )]
    Unclaimed {
        /// The rank that waits.
        rank: Rank,
        /// The rank that sent it.
        peer: Rank,
        /// What was waited for.
        tag: Tag,
        /// How many frames are kept.
        kept: usize,
        /// The oldest of them.
        oldest: Tag,
    },
    /// A worker's [door](crate::door::Door) is closed to a frame, which was not sent. All workers get this error.
    #[error(
        "rank {from} may not send rank {to} {} for {} (layer {}, {}, round {})",
        .tag.content, .tag.purpose, .tag.layer, .tag.direction.name(), .tag.round
    )]
    Denied {
        /// The rank whose door it is.
        from: Rank,
        /// The rank that the frame was for.
        to: Rank,
        /// The frame.
        tag: Tag,
    },
    /// Bytes that are not a frame.
    #[error("not a frame: {what} is {found}, expected {expected}")]
    Header {
        /// Which field is wrong.
        what: &'static str,
        /// What it should hold.
        expected: u64,
        /// What it holds instead.
        found: u64,
    },
    /// A frame larger than the receiver accepts.
    #[error("a frame announces {announced} payload bytes, the limit is {limit}")]
    TooLarge {
        /// The payload that the header announces.
        announced: u64,
        /// The most that the receiver accepts.
        limit: u64,
    },
    /// A payload that does not have the size that the receiver computed.
    #[error("{what}: {found} payload bytes came, expected {expected}")]
    PayloadSize {
        /// The codec or collective that reads the payload.
        what: &'static str,
        /// The size that follows from the shapes.
        expected: u64,
        /// The size that came.
        found: u64,
    },
    /// A message whose content makes no sense: a report or a question of a size that nothing fixes beforehand, or a
    /// payload of the right size that points to where nothing is.
    /// Made by whoever reads it, and told whose it is by [`from_peer`](WireError::from_peer).
    #[error("{what} came")]
    Malformed {
        /// What came, such as "a report of another shape".
        what: String,
    },
    /// A value that no codec may put on the wire.
    #[error("codec {codec}: row {row}, column {column} is {value}; only finite values travel")]
    NotFinite {
        /// The codec that refused.
        codec: &'static str,
        /// The row of the matrix (not the position in the message).
        row: usize,
        /// The column of the matrix.
        column: usize,
        /// The value itself.
        value: f32,
    },
    /// The sender encoded with another codec than the receiver decodes with.
    #[error("the frame was coded by codec {found}, this end expects codec {expected} ({name})")]
    OtherCodec {
        /// The id of the receiver's codec.
        expected: u8,
        /// The codec's name.
        name: &'static str,
        /// The id in the frame.
        found: u8,
    },
    /// A codec's name that is not registered.
    #[error("no codec is named {given:?}; there are: {known}")]
    UnknownCodec {
        /// The name as it was given.
        given: String,
        /// All names that there are.
        known: String,
    },
    /// A codec that a registry cannot hold.
    #[error("codec {name:?} with the number {number} cannot be registered: {reason}")]
    UnfitCodec {
        /// The codec's name.
        name: &'static str,
        /// Its number in frames.
        number: u8,
        /// Which rule it breaks.
        reason: &'static str,
    },
    /// An option of a codec whose value the codec cannot read.
    #[error("option {name} is {given}, expected {expected}")]
    BadOption {
        /// The name of the option.
        name: String,
        /// The value as it was given.
        given: String,
        /// What the codec can read.
        expected: String,
    },
    /// A mask as the inner codec of a mask.
    #[error("codec masked cannot hold another mask: one ratio says how many columns travel")]
    NestedMask,
    /// A link's name that is not on the ladder, or numbers that do not parse.
    #[error("no link is named {given:?} ({reason}); give numbers such as \"100mbit,40ms\" or one of: {known}")]
    UnknownLink {
        /// The text as it was given.
        given: String,
        /// Why it does not parse as numbers.
        reason: &'static str,
        /// The names on the ladder.
        known: String,
    },
    /// The message-passing library reported a failure.
    #[error("rank {rank}: {call}: {message}")]
    Library {
        /// The rank that called it.
        rank: Rank,
        /// The call that failed.
        call: &'static str,
        /// What the library says about it.
        message: String,
    },
    /// An error in a frame, with the frame's origin.
    #[error("rank {rank}, from rank {peer}: {tag}: {source}")]
    WithPeer {
        /// The rank that received it.
        rank: Rank,
        /// The rank that sent it.
        peer: Rank,
        /// The frame that was expected.
        tag: Tag,
        /// What is wrong with it.
        source: Box<WireError>,
    },
}

impl WireError {
    /// A message whose content makes no sense, in words that fit behind "came"; see [`WireError::Malformed`].
    pub fn malformed(what: impl Into<String>) -> Self {
        WireError::Malformed { what: what.into() }
    }

    /// Adds where the offending frame came from.
    #[must_use]
    pub fn from_peer(self, rank: Rank, peer: Rank, tag: Tag) -> Self {
        WireError::WithPeer { rank, peer, tag, source: Box::new(self) }
    }

    /// The peer that this error is about, if it is about one.
    pub fn peer(&self) -> Option<Rank> {
        match self {
            WireError::Deadline { peer, .. }
            | WireError::Gone { peer, .. }
            | WireError::Interrupted { peer, .. }
            | WireError::Unfinished { peer, .. }
            | WireError::Round { peer, .. }
            | WireError::Unclaimed { peer, .. }
            | WireError::WithPeer { peer, .. } => Some(*peer),
            _ => None,
        }
    }
}

/// Checks a payload's size against the one that follows from the shapes.
pub(crate) fn expect_payload(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(WireError::PayloadSize { what, expected: expected as u64, found: found as u64 })
}

/// A duration as a reader of an error message wants it: "30 s", "1.5 s", "20 ms".
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Seconds(duration) = self;
        if duration.as_secs() == 0 {
            write!(f, "{} ms", duration.as_millis())
        } else {
            write!(f, "{} s", (duration.as_secs_f64() * 10.0).round() / 10.0)
        }
    }
}

/// What came instead of the frame waited for.
struct Instead(Option<Tag>);

impl fmt::Display for Instead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("nothing came"),
            Some(tag) => write!(f, "instead came {tag}"),
        }
    }
}

/// What the peer should have done before this worker could leave.
struct Parting(Option<Tag>);

impl fmt::Display for Parting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("finish too"),
            Some(tag) => write!(f, "take {tag}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, FramePurpose};

    #[test]
    fn a_deadline_names_both_ends_the_phase_the_layer_and_the_round() {
        let tag = Tag { layer: 1, round: 17, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
        let (rank, peer, waited) = (Rank(2), Rank(0), Duration::from_secs(30));
        assert_eq!(
            WireError::Deadline { rank, peer, tag, waited, instead: None }.to_string(),
            "rank 2 waited 30 s for rank 0: activations of layer 1, forward, round 17: nothing came"
        );
        let waited = Duration::from_millis(1500);
        let instead = Some(Tag { content: Content::Agreement, step: 3, ..tag });
        assert_eq!(
            WireError::Deadline { rank, peer, tag, waited, instead }.to_string(),
            "rank 2 waited 1.5 s for rank 0: activations of layer 1, forward, round 17: \
             instead came control of layer 1, forward, round 17, step 3"
        );
        assert_eq!(
            WireError::Gone { rank, peer, tag, sending: false }.to_string(),
            "rank 0 is gone: rank 2 waited for activations of layer 1, forward, round 17"
        );
    }
}
