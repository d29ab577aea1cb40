//! The door that every frame passes before it is sent.

use crate::content::{Content, FramePurpose};
use crate::{Frame, HEADER_BYTES, Header, Rank, Tag, WireError};

/// Decides whether a frame may leave its worker. Asked before the frame is sent; of what stays in a process nobody is
/// asked. [`Metered`](crate::Metered) holds one.
pub trait Door: Send {
    /// Whether a frame with this tag and so many bytes of payload may go to `to`.
    fn passes(&mut self, to: Rank, tag: Tag, payload_bytes: usize) -> bool;
}

/// A door that is closed for some contents, to everybody.
///
/// ```
/// use laconic_wire::{Content, door::DenyList, FramePurpose};
/// let closed = DenyList::parse(["labels", "rows:evaluation"]).unwrap();
/// assert!(closed.denies(Content::LabelledScores, FramePurpose::Evaluation));
/// assert!(closed.denies(Content::HiddenRows, FramePurpose::Evaluation));
/// assert!(!closed.denies(Content::HiddenRows, FramePurpose::Training));
/// assert!(DenyList::parse(["lables"]).unwrap_err().contains("scores_and_labels"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyList {
    closed: [[bool; FramePurpose::ALL.len()]; Content::ALL.len()],
}

/// Names of several contents at once.
const GROUPS: [(&str, &[Content]); 5] = [
    (
        "rows",
        &[
            Content::Features,
            Content::HiddenRows,
            Content::Scores,
            Content::LearnedColumns,
            Content::Embeddings,
            Content::PropagatedLabels,
        ],
    ),
    ("labels", &[Content::LabelledScores, Content::TrainingLabels, Content::LabelCodewords, Content::PropagatedLabels]),
    ("counts", &[Content::Figures, Content::ClassCounts, Content::ScoreBins, Content::PartFigures]),
    ("gradients", &[Content::RowGradients, Content::ParameterGradients]),
    ("edges", &[Content::Pairs, Content::Neighbours]),
];

/// What workers cannot do without: to say what they run, and why they stop.
const ALWAYS: [Content; 2] = [Content::Agreement, Content::Refusal];

impl DenyList {
    /// Reads entries such as `features` (for whatever purpose), `rows:evaluation` (for this one alone) and `labels` (a
    /// group).
    ///
    /// # Errors
    /// A sentence that names the entry that says nothing, and what there is.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<DenyList, String> {
        let mut list = DenyList { closed: Default::default() };
        for entry in entries {
            let (name, purpose) = match entry.split_once(':') {
                Some((name, purpose)) => (name, Some(purpose)),
                None => (entry, None),
            };
            let single = Content::ALL.iter().position(|content| content.name() == name);
            let single = single.map(|at| std::slice::from_ref(&Content::ALL[at]));
            let group = GROUPS.iter().find(|group| group.0 == name).map(|group| group.1);
            let Some(contents) = single.or(group).filter(|contents| !contents.iter().any(|of| ALWAYS.contains(of)))
            else {
                return Err(format!("{entry:?} is no content; there are {}", DenyList::names().join(", ")));
            };
            let purposes: Vec<FramePurpose> = match purpose {
                None => FramePurpose::ALL.to_vec(),
                Some(name) => FramePurpose::ALL.into_iter().filter(|purpose| purpose.name() == name).collect(),
            };
            if purposes.is_empty() {
                let names: Vec<&str> = FramePurpose::ALL.into_iter().map(FramePurpose::name).collect();
                return Err(format!("{entry:?} has no purpose that there is; there are {}", names.join(", ")));
            }
            for content in contents {
                purposes.iter().for_each(|purpose| list.closed[*content as usize][*purpose as usize] = true);
            }
        }
        Ok(list)
    }

    /// All names that an entry may have: contents, and groups of them.
    pub fn names() -> Vec<&'static str> {
        let contents = Content::ALL.into_iter().filter(|content| !ALWAYS.contains(content)).map(Content::name);
        contents.chain(GROUPS.map(|group| group.0)).collect()
    }

    /// Names of several contents at once, with these.
    pub fn groups() -> impl Iterator<Item = (&'static str, &'static [Content])> {
        GROUPS.into_iter()
    }

    /// What is never kept back: without it workers cannot say what they run, or why they stop.
    pub fn always() -> [Content; 2] {
        ALWAYS
    }

    /// Whether frames of this content and purpose are kept back.
    pub fn denies(&self, content: Content, purpose: FramePurpose) -> bool {
        self.closed[content as usize][purpose as usize]
    }
}

impl Door for DenyList {
    fn passes(&mut self, _to: Rank, tag: Tag, _payload_bytes: usize) -> bool {
        !self.denies(tag.content, tag.purpose)
    }
}

/// The tag of notices that a frame was kept back.
const REFUSAL: Tag = Tag {
    content: Content::Refusal,
    purpose: FramePurpose::StartUp,
    direction: crate::Direction::Forward,
    layer: 0,
    round: 0,
    step: 0,
};

/// A notice that `from` keeps back a frame with this tag, which was to go to `to`.
pub(crate) fn notice(from: Rank, to: Rank, tag: Tag, buffer: Vec<u8>) -> Frame {
    let mut kept = Frame::new(tag, Vec::new());
    kept.seal();
    let mut notice = Frame::new(REFUSAL, buffer);
    let payload = notice.payload_mut();
    payload.extend(kept.into_bytes());
    payload.extend(from.0.to_le_bytes());
    payload.extend(to.0.to_le_bytes());
    notice
}

/// The tag of the last word of a worker that takes part no more, though its process may go on.
const FAREWELL: Tag = Tag { step: 1, ..REFUSAL };

/// The last word of a worker that can go on no more: who waits for it waits in vain.
pub(crate) fn farewell(buffer: Vec<u8>) -> Frame {
    Frame::new(FAREWELL, buffer)
}

/// Whether a frame is such a last word.
pub(crate) fn is_farewell(frame: &Frame) -> bool {
    let Tag { content, step, .. } = frame.tag();
    (content, step) == (FAREWELL.content, FAREWELL.step)
}

/// The error that a notice stands for; `None` of any other frame, and of one that only calls itself a notice: whoever
/// hears that treats it like other nonsense of this peer.
pub(crate) fn refusal(frame: &Frame) -> Option<WireError> {
    if frame.tag().content != Content::Refusal {
        return None;
    }
    let (header, ranks) = frame.payload().split_at_checked(HEADER_BYTES)?;
    let (&[from, to], []) = ranks.as_chunks::<4>() else { return None };
    let tag = Header::parse(header, 0).ok()?.tag;
    Some(WireError::Denied { from: Rank(u32::from_le_bytes(from)), to: Rank(u32::from_le_bytes(to)), tag })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Direction;

    #[test]
    fn every_name_denies_something_and_what_runs_cannot_do_without_is_never_denied() {
        for name in DenyList::names() {
            let list = DenyList::parse([name]).unwrap();
            let closed = |content: Content| FramePurpose::ALL.map(|purpose| list.denies(content, purpose));
            assert!(Content::ALL.into_iter().any(|content| closed(content) == [true; 3]), "{name}");
            assert_eq!(ALWAYS.map(closed), [[false; 3]; 2], "{name}");
        }
        for wrong in ["", "agreement", "refusal", "features:now", "features:", ":training", "Features"] {
            assert!(DenyList::parse([wrong]).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_notice_says_who_keeps_what_from_whom_and_no_bytes_make_another_one() {
        let tag = Tag {
            direction: Direction::Reverse,
            layer: 2,
            round: 7,
            step: 3,
            ..Tag::new(Content::Scores, FramePurpose::Evaluation)
        };
        let told = notice(Rank(1), Rank(0), tag, Vec::new());
        assert_eq!(refusal(&told), Some(WireError::Denied { from: Rank(1), to: Rank(0), tag }));
        assert_eq!(refusal(&Frame::new(tag, Vec::new())), None);
        for length in 0..told.payload().len() {
            let mut cut = Frame::new(REFUSAL, Vec::new());
            cut.payload_mut().extend(&told.payload()[..length]);
            assert_eq!(refusal(&cut), None, "{length}");
        }
        let mut longer = told;
        longer.payload_mut().push(0);
        assert_eq!(refusal(&longer), None);
    }
}
