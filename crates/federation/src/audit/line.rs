//! Lines of a log: one object of JSON each, with sorted keys and no space outside strings, so that what a line says has
//! one form of bytes only.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::key::PublicKey;
use crate::policy::{Crossing, Direction, Way};
use crate::time::Time;

/// What a site writes into its log in the course of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A link to a peer is there, or is there no more. A longer path than 1,000 bytes is cut off.
    Link {
        /// The name of the other site.
        peer: &'a str,
        /// The way to it: an address, or a relay's URL.
        path: &'a str,
        /// Whether it is there now.
        connected: bool,
    },
    /// Something leaves, or has come in: written before it is handed on.
    Crossing(Passed<'a>),
    /// Something was kept back, or not taken in. Longer texts than 1,000 bytes are cut off.
    Refused {
        /// Whether it was to leave or has come.
        way: Way,
        /// The name of the other site.
        peer: &'a str,
        /// What it is: a name of the vocabulary, or what the frame calls it.
        content: &'a str,
        /// What it is for.
        purpose: &'a str,
        /// Why: of the policy's decision, or what is wrong with the frame.
        reason: &'a str,
    },
}

/// What has passed the gate, once or in several frames of one account: what
/// [`Gate::pass`](crate::Gate::pass) was asked about, one entry for each time it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed<'a> {
    /// What it is; its bytes are those of frames with headers.
    pub crossing: Crossing<'a>,
    /// The round, from 0.
    pub round: u32,
    /// The step within the round.
    pub step: u32,
    /// How many frames.
    pub frames: u64,
    /// How many bytes, without headers.
    pub payload: u64,
    /// A keyed digest of the payload, where the two ends have a key for it: it has to be the same at both.
    pub mac: Option<Digest>,
}

/// Whatever a line may be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event<'a> {
    Open(Opening<'a>),
    Said(Entry<'a>),
    Witness(&'a str),
    Checkpoint(&'a str),
    Close(Closing),
}

/// Who keeps a log, of what run, under which policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening<'a> {
    pub(super) contract: Digest,
    pub(super) key: PublicKey,
    pub(super) policy: Digest,
    pub(super) policy_text: &'a str,
    pub(super) program: &'a str,
    pub(super) run: &'a str,
    pub(super) site: &'a str,
}

/// How a run has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closing {
    pub(super) exit_code: u8,
    pub(super) incoming: Totals,
    pub(super) outgoing: Totals,
    pub(super) parameters: Option<Digest>,
}

/// What has crossed in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    pub(super) frames: u64,
    pub(super) payload: u64,
    pub(super) framed: u64,
}

impl Totals {
    pub(super) fn add(&mut self, passed: &Passed) {
        self.frames = self.frames.saturating_add(passed.frames);
        self.payload = self.payload.saturating_add(passed.payload);
        self.framed = self.framed.saturating_add(passed.crossing.bytes);
    }
}

macro_rules! line {
    ($($field:ident: $kind:ty,)*) => {
        /// A line as its bytes have it; the fields are in the order of the alphabet.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct Line {
            $(#[serde(skip_serializing_if = "Option::is_none")] $field: Option<$kind>,)*
        }

        impl Line {
            /// How many fields it has.
            fn fields(&self) -> usize {
                [$(self.$field.is_some()),*].into_iter().filter(|is| *is).count()
            }
        }
    };
}

line! {
    content: String,
    contract: Digest,
    direction: Direction,
    event: String,
    exit_code: u8,
    framed: u64,
    frames: u64,
    in_framed: u64,
    in_frames: u64,
    in_payload: u64,
    key: PublicKey,
    layer: u16,
    mac: Digest,
    note: String,
    out_framed: u64,
    out_frames: u64,
    out_payload: u64,
    parameters: Digest,
    path: String,
    payload: u64,
    peer: String,
    policy: Digest,
    policy_text: String,
    prev: String,
    program: String,
    purpose: String,
    reason: String,
    round: u32,
    run: String,
    seq: u64,
    site: String,
    step: u32,
    time: String,
    r#type: String,
    way: Way,
}

/// The longest text that a peer may have a say in, in bytes.
const BRIEF_MAX: usize = 1000;

/// A text, cut off where it is too long: a peer may not make a line too long to be written.
fn brief(text: &str) -> String {
    if text.len() <= BRIEF_MAX {
        return text.to_owned();
    }
    let most = BRIEF_MAX - '…'.len_utf8();
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &text[..end])
}

const CONNECTED: &str = "connected";
const LOST: &str = "lost";

impl Line {
    /// The line of an event.
    pub(super) fn of(event: &Event) -> Line {
        let some = |text: &str| Some(text.to_owned());
        match *event {
            Event::Open(Opening { contract, key, policy, policy_text, program, run, site }) => Line {
                contract: Some(contract),
                key: Some(key),
                policy: Some(policy),
                policy_text: some(policy_text),
                program: some(program),
                run: some(run),
                site: some(site),
                r#type: some("open"),
                ..Line::default()
            },
            Event::Said(Entry::Link { peer, path, connected }) => Line {
                peer: some(peer),
                path: Some(brief(path)),
                event: some(if connected { CONNECTED } else { LOST }),
                r#type: some("link"),
                ..Line::default()
            },
            Event::Said(Entry::Crossing(passed)) => Line::of_passed(&passed),
            Event::Said(Entry::Refused { way, peer, content, purpose, reason }) => Line {
                way: Some(way),
                peer: some(peer),
                content: Some(brief(content)),
                purpose: Some(brief(purpose)),
                reason: Some(brief(reason)),
                r#type: some("refused"),
                ..Line::default()
            },
            Event::Witness(note) => Line { note: some(note), r#type: some("witness"), ..Line::default() },
            Event::Checkpoint(note) => Line { note: some(note), r#type: some("checkpoint"), ..Line::default() },
            Event::Close(Closing { exit_code, incoming, outgoing, parameters }) => Line {
                exit_code: Some(exit_code),
                in_framed: Some(incoming.framed),
                in_frames: Some(incoming.frames),
                in_payload: Some(incoming.payload),
                out_framed: Some(outgoing.framed),
                out_frames: Some(outgoing.frames),
                out_payload: Some(outgoing.payload),
                parameters,
                r#type: some("close"),
                ..Line::default()
            },
        }
    }

    fn of_passed(passed: &Passed) -> Line {
        let Passed { crossing, round, step, frames, payload, mac } = *passed;
        let Crossing { way, peer, content, purpose, layer, direction, bytes } = crossing;
        Line {
            content: Some(content.to_owned()),
            direction: Some(direction),
            framed: Some(bytes),
            frames: Some(frames),
            layer: Some(layer),
            mac,
            payload: Some(payload),
            peer: Some(peer.to_owned()),
            purpose: Some(purpose.to_owned()),
            round: Some(round),
            step: Some(step),
            way: Some(way),
            r#type: Some("crossing".to_owned()),
            ..Line::default()
        }
    }

    /// What it is about; `None` if something is missing. What is there too much, [`Line::json`] of it shows.
    pub(super) fn event(&self) -> Option<Event<'_>> {
        let note = self.note.as_deref();
        Some(match self.r#type.as_deref()? {
            "open" => Event::Open(Opening {
                contract: self.contract?,
                key: self.key?,
                policy: self.policy?,
                policy_text: self.policy_text.as_deref()?,
                program: self.program.as_deref()?,
                run: self.run.as_deref()?,
                site: self.site.as_deref()?,
            }),
            "link" => Event::Said(Entry::Link {
                peer: self.peer.as_deref()?,
                path: self.path.as_deref()?,
                connected: match self.event.as_deref()? {
                    CONNECTED => true,
                    LOST => false,
                    _ => return None,
                },
            }),
            "crossing" => Event::Said(Entry::Crossing(self.passed()?)),
            "refused" => Event::Said(Entry::Refused {
                way: self.way?,
                peer: self.peer.as_deref()?,
                content: self.content.as_deref()?,
                purpose: self.purpose.as_deref()?,
                reason: self.reason.as_deref()?,
            }),
            "witness" => Event::Witness(note?),
            "checkpoint" => Event::Checkpoint(note?),
            "close" => Event::Close(Closing {
                exit_code: self.exit_code?,
                incoming: Totals { frames: self.in_frames?, payload: self.in_payload?, framed: self.in_framed? },
                outgoing: Totals { frames: self.out_frames?, payload: self.out_payload?, framed: self.out_framed? },
                parameters: self.parameters,
            }),
            _ => return None,
        })
    }

    fn passed(&self) -> Option<Passed<'_>> {
        let crossing = Crossing {
            way: self.way?,
            peer: self.peer.as_deref()?,
            content: self.content.as_deref()?,
            purpose: self.purpose.as_deref()?,
            layer: self.layer?,
            direction: self.direction?,
            bytes: self.framed?,
        };
        let (round, step, frames, payload) = (self.round?, self.step?, self.frames?, self.payload?);
        Some(Passed { crossing, round, step, frames, payload, mac: self.mac })
    }

    /// Puts it at its place in the chain: after a line of this digest, at this time.
    pub(super) fn placed(mut self, seq: u64, prev: &str, time: Time) -> Line {
        self.seq = Some(seq);
        self.prev = Some(prev.to_owned());
        self.time = Some(time.to_string());
        self
    }

    /// Its place: number, digest of the line before, time.
    pub(super) fn place(&self) -> Option<(u64, &str, &str)> {
        Some((self.seq?, self.prev.as_deref()?, self.time.as_deref()?))
    }

    /// Its bytes, without the end of the line.
    pub(super) fn json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// Reads the bytes of a line, without its end: exactly as [`Line::json`] has them.
    pub(super) fn parse(bytes: &[u8]) -> Result<Line, String> {
        let line: Line = serde_json::from_slice(bytes).map_err(|e| format!("no line of a log: {e}"))?;
        let other = "no line that this program writes: something is missing, too much, or in another form";
        if line.is_all_of(bytes) { Ok(line) } else { Err(other.to_owned()) }
    }

    /// Whether these are its bytes, and it has its place, what its event says, and nothing else.
    fn is_all_of(&self, bytes: &[u8]) -> bool {
        let fields = match self.event() {
            Some(Event::Open(_)) => 7,
            Some(Event::Close(_)) => 7 + usize::from(self.parameters.is_some()),
            Some(Event::Said(Entry::Crossing(_))) => 11 + usize::from(self.mac.is_some()),
            Some(Event::Said(Entry::Refused { .. })) => 5,
            Some(Event::Said(Entry::Link { .. })) => 3,
            Some(Event::Witness(_) | Event::Checkpoint(_)) => 1,
            None => return false,
        };
        // Besides: number, time, digest of the line before, and type.
        self.fields() == fields + 4 && self.place().is_some() && self.json().is_ok_and(|json| json == bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_its_event_says_and_nothing_else() {
        let (digest, key) = (Digest::of(b"a"), crate::key::SiteKey::from_seed([1; 32]).public());
        let opening =
            Opening { contract: digest, key, policy: digest, policy_text: "p", program: "p", run: "r", site: "s" };
        let direction = Direction::Reverse;
        let (peer, content, purpose) = ("south", "c", "p");
        let crossing = Crossing { way: Way::In, peer, content, purpose, layer: 1, direction, bytes: 2 };
        let passed = |mac| Passed { crossing, round: 1, step: 2, frames: 3, payload: 1, mac };
        let totals = Totals { frames: 1, payload: 2, framed: 3 };
        let closing = |parameters| Closing { exit_code: 1, incoming: totals, outgoing: totals, parameters };
        let events = [
            Event::Open(opening),
            Event::Said(Entry::Link { peer, path: "a", connected: false }),
            Event::Said(Entry::Crossing(passed(None))),
            Event::Said(Entry::Crossing(passed(Some(digest)))),
            Event::Said(Entry::Refused { way: Way::Out, peer, content, purpose, reason: "r" }),
            Event::Witness("note"),
            Event::Checkpoint("note"),
            Event::Close(closing(None)),
            Event::Close(closing(Some(digest))),
        ];
        for event in events {
            let line = Line::of(&event).placed(1, "", Time::now());
            assert_eq!(line.event(), Some(event));
            assert_eq!(Line::parse(&line.json().unwrap()), Ok(line.clone()));
            let more = [
                Line { exit_code: line.exit_code.xor(Some(1)), ..line.clone() },
                Line { note: line.note.clone().xor(Some(String::new())), ..line.clone() },
                Line { seq: None, ..line.clone() },
                Line { seq: None, contract: line.contract.or(Some(digest)), ..line.clone() },
            ];
            more.iter().for_each(|line| assert!(Line::parse(&line.json().unwrap()).is_err(), "{line:?}"));
        }
    }

    #[test]
    fn fields_are_in_the_order_of_the_alphabet() {
        let names = format!("{:?}", Line::default());
        let names: Vec<&str> = names.split(['{', ',']).skip(1).filter_map(|field| field.split(':').next()).collect();
        let names: Vec<&str> = names.iter().map(|name| name.trim().trim_start_matches("r#")).collect();
        assert_eq!(names.len(), 35);
        assert!(names.is_sorted(), "{names:?}");
    }
}
