//! The laws of skipping: what is sent, what stands for what is not, and what each end remembers.

use laconic_wire::codec::{self, Bits, CodecRegistry, Exact, Level, Memory, Message, Options, Skipping};
use laconic_wire::codec::{RowSet, RowsMut, RowsRef, Store};
use laconic_wire::{Codec, Content, Frame, FramePurpose, MessageKey, NO_CODEC, Rank, Tag, WireError};

fn key(round: u32, step: u16) -> MessageKey {
    let tag = Tag { layer: 1, round, step, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
    MessageKey { seed: 5, tag, from: Rank(0), to: Rank(1), drawn: tag.round }
}

/// One link: the codec of each end and what it remembers.
struct Link {
    ends: [(Box<dyn Codec>, Memory); 2],
    columns: usize,
    level: Level<'static>,
}

impl Link {
    fn new(inner: &str, change: f64, staleness: u32) -> Link {
        let end = || {
            let inner = CodecRegistry::default().build(inner, &Options::default()).unwrap();
            (Box::new(Skipping::around(inner, change, staleness)) as Box<dyn Codec>, Memory::default())
        };
        Link { ends: [end(), end()], columns: 2, level: Level::WHOLE }
    }

    fn encode(&mut self, key: &MessageKey, rows: &[f32]) -> Vec<u8> {
        let (codec, memory) = &mut self.ends[0];
        let mut payload = Vec::new();
        let (columns, message) = (self.columns, Message { key, level: &self.level, memory });
        let rows = RowsRef { data: rows, columns, rows: RowSet::Range(0..rows.len() / columns) };
        codec.encode(message, rows, &mut payload).unwrap();
        payload
    }

    fn decode(&mut self, key: &MessageKey, payload: &[u8], into: &mut [f32], store: Store) -> Result<(), WireError> {
        let (codec, memory) = &mut self.ends[1];
        let (columns, rows) = (self.columns, RowSet::Range(0..into.len() / self.columns));
        let message = Message { key, level: &self.level, memory };
        codec.decode(message, payload, RowsMut { data: into, columns, rows }, store)
    }

    /// Whether the message was sent, and what the receiver has then.
    fn send(&mut self, round: u32, rows: &[f32]) -> (bool, Vec<f32>) {
        let payload = self.encode(&key(round, 0), rows);
        let mut back = vec![f32::NAN; rows.len()];
        self.decode(&key(round, 0), &payload, &mut back, Store::Set).unwrap();
        (!payload.is_empty(), back)
    }
}

#[test]
fn rows_that_hardly_moved_since_they_were_sent_are_skipped_and_the_receiver_keeps_what_it_has() {
    let mut link = Link::new("exact", 0.1, 100);
    let first = [3.0, 0.0, 0.0, 4.0]; // of size 5
    assert_eq!(link.send(1, &first), (true, first.to_vec()));
    assert_eq!(link.send(2, &[3.5, 0.0, 0.0, 4.0]), (false, first.to_vec())); // moved by just a tenth
    // Compared with what was sent, not with what was there last.
    let moved = [3.6, 0.0, 0.0, 4.0];
    assert_eq!(link.send(3, &moved), (true, moved.to_vec()));
    assert_eq!(link.send(4, &moved), (false, moved.to_vec()));
    assert_eq!(link.ends[0].1, Memory::of(3, moved.to_vec()).holding(Memory::default()));
}

#[test]
fn nothing_is_older_than_the_staleness() {
    for staleness in 0..5 {
        let mut link = Link::new("exact", 1e9, staleness);
        let sent: Vec<u32> = (10..30).filter(|&round| link.send(round, &[round as f32, 1.0]).0).collect();
        let every = staleness.max(1) as usize;
        assert_eq!(sent, (10..30).step_by(every).collect::<Vec<u32>>(), "staleness {staleness}");
    }
}

#[test]
fn a_change_of_zero_skips_only_what_has_not_moved_at_all() {
    let mut link = Link::new("exact", 0.0, 100);
    assert!(link.send(1, &[0.0, 0.0]).0);
    assert!(!link.send(2, &[0.0, -0.0]).0);
    assert!(link.send(3, &[0.0, f32::MIN_POSITIVE]).0);
    assert!(link.send(4, &[1.0, 1.0, 1.0, 1.0]).0, "another shape always crosses");
}

#[test]
fn what_is_skipped_is_as_the_other_codec_made_it_and_adds_like_it() {
    for inner in ["exact", "half", "quantised"] {
        let mut link = Link::new(inner, 1.0, 100);
        let rows = [1.001, 2.002, 3.003, 4.004];
        let (_, arrived) = link.send(1, &rows);
        assert_eq!(link.send(2, &rows), (false, arrived.clone()), "{inner}");
        let mut back = [10.0; 4];
        link.decode(&key(3, 0), &[], &mut back, Store::Add).unwrap();
        assert!(back.iter().zip(&arrived).all(|(back, arrived)| *back == 10.0 + arrived), "{inner}");
    }
}

/// What the receiver would use instead is what arrived: rows that stand still cross again where rounding took them
/// further than `change`, and both ends know the same.
#[test]
fn rows_are_compared_with_what_arrived_and_not_with_what_was_meant() {
    // A grid of two points, 0 and 1, in each row.
    let rows = [0.0, 0.5, 0.5, 1.0, 0.0, 0.25, 0.75, 1.0];
    let coarse = |change: f64| {
        let level = Level { bits: Bits::Uniform(1), ..Level::WHOLE };
        Link { columns: 4, level, ..Link::new("quantised", change, 100) }
    };
    let mut link = coarse(0.01);
    let (sent, arrived) = link.send(1, &rows);
    assert!(sent && arrived != rows);
    assert_eq!(link.ends.each_ref().map(|(_, memory)| memory.values.clone()), [arrived.clone(), arrived]);
    assert!(link.send(2, &rows).0, "what arrived is another half of the span away");
    let mut link = coarse(10.0);
    let arrived = link.send(1, &rows).1;
    assert_eq!(link.send(2, &rows), (false, arrived), "within ten times their size");
}

#[test]
fn messages_of_later_steps_cross_once_and_are_not_remembered() {
    let mut link = Link::new("exact", 1e9, 100);
    link.send(1, &[1.0, 2.0]);
    let before = link.ends.each_ref().map(|(_, memory)| (memory.round, memory.values.clone()));
    let payload = link.encode(&key(2, 1), &[1.0, 2.0]);
    assert_eq!(payload.len(), 8);
    let mut back = [0.0; 2];
    link.decode(&key(2, 1), &payload, &mut back, Store::Set).unwrap();
    assert_eq!(back, [1.0, 2.0]);
    assert_eq!(link.ends.each_ref().map(|(_, memory)| (memory.round, memory.values.clone())), before);
    assert!(link.decode(&key(2, 1), &[], &mut back, Store::Set).is_err(), "nothing stands for it");
}

#[test]
fn an_empty_payload_stands_for_nothing_that_never_came() {
    let mut link = Link::new("exact", 1.0, 100);
    let mut back = [0.0; 2];
    assert!(link.decode(&key(1, 0), &[], &mut back, Store::Set).is_err());
    assert!(link.decode(&key(1, 0), &[1, 2, 3], &mut back, Store::Set).is_err());
    assert!(link.decode(&key(1, 0), &[], &mut back, Store::Set).is_err(), "an error leaves nothing behind");
    link.send(2, &[1.0, 2.0]);
    assert!(link.decode(&key(3, 0), &[], &mut [0.0; 4], Store::Set).is_err(), "another shape");
}

#[test]
fn what_the_other_codec_refuses_is_not_taken_for_sent() {
    let mut link = Link::new("exact", 1e9, 100);
    link.send(1, &[1.0, 2.0]);
    let (codec, memory) = &mut link.ends[0];
    let before = memory.clone();
    let rows = RowsRef { data: &[1.0, f32::NAN], columns: 2, rows: RowSet::Range(0..1) };
    let message = Message { key: &key(2, 0), level: &Level::WHOLE, memory };
    assert!(matches!(
        codec.encode(message, rows, &mut Vec::new()),
        Err(WireError::NotFinite { row: 0, column: 1, .. })
    ));
    assert_eq!(*memory, before);
}

#[test]
fn ends_go_on_from_memories_that_were_saved() {
    let run = |interrupted: bool| {
        let mut link = Link::new("quantised", 0.05, 4);
        (0..12)
            .map(|round| {
                if interrupted && round == 6 {
                    let saved = link.ends.each_ref().map(|(_, memory)| (memory.round, memory.values.clone()));
                    link = Link::new("quantised", 0.05, 4);
                    for ((_, memory), (round, values)) in link.ends.iter_mut().zip(saved) {
                        *memory = Memory::of(round, values);
                    }
                }
                link.send(round, &[1.0 + 0.02 * round as f32, 1.0])
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn frames_say_what_the_other_codec_says_or_that_none_wrote_them() {
    let mut link = Link::new("exact", 1.0, 100);
    let mut back = [0.0; 2];
    for (round, number) in [(1, Exact::KIND.number), (2, NO_CODEC)] {
        let key = key(round, 0);
        let mut frame = Frame::new(key.tag, Vec::new());
        let rows = RowsRef { data: &[1.0, 2.0], columns: 2, rows: RowSet::Range(0..1) };
        let (codec, memory) = &mut link.ends[0];
        codec::write(&mut **codec, Message { key: &key, level: &Level::WHOLE, memory }, rows, &mut frame).unwrap();
        assert_eq!((frame.codec(), frame.payload().is_empty()), (number, round == 2));
        let (codec, memory) = &mut link.ends[1];
        let into = RowsMut { data: &mut back, columns: 2, rows: RowSet::Range(0..1) };
        let message = Message { key: &key, level: &Level::WHOLE, memory };
        codec::read(&mut **codec, message, &frame, into, Store::Set).unwrap();
        assert_eq!(back, [1.0, 2.0]);
    }
}

#[test]
fn options_make_it_by_name_where_it_was_registered() {
    let registry = CodecRegistry::default().with(&Skipping::KIND).unwrap();
    let options = Options::default().with("inner", "half").with("change", 0.5).with("staleness", 3.0);
    assert_eq!(registry.build("skipping", &options).unwrap().id().number, 2);
    for (name, value) in [("change", -1.0), ("change", f64::NAN), ("staleness", 1.5), ("staleness", -1.0)] {
        let refused = registry.build("skipping", &options.clone().with(name, value)).err();
        assert!(matches!(refused, Some(WireError::BadOption { .. })), "{name} = {value}");
    }
}
