//! The codecs of a run at work: one for each layer and direction, with the bits and memories of its messages.
//!
//! `by_layer` is `messages.layers.N`; `by_round` are the controllers of ratios and bits, which [`Coders::turn`] turns
//! once a round, on every worker to the same value. What a message's level was when it was sent is kept with it
//! ([`Setting`]), so that a message may be decoded rounds later.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use laconic_key::{Key, Purpose};
use laconic_nn::matrix::Bf16;
use laconic_wire::codec::{self, Bits, Codec, Half, Level, Memory, Message, MessageKey};
use laconic_wire::codec::{RowsMut, RowsRef, Skipping, Store};
use laconic_wire::{Content, Direction, Frame, FramePurpose, Rank, Tag, WireError};

use super::Messages;
use super::assign::Menu;
use super::coding::{Coding, WidthCounts, Widths, width_below};
use crate::config::ramp::Reading;
use crate::error::Result;
use crate::saved::{Name, Remembers, Saved, Stream, odd};

/// A layer's messages in one direction.
type Place = (u16, Direction);

/// A peer and whether messages go out to it.
type Heading = (Rank, bool);

/// The codecs of all messages of rows.
pub struct Coders {
    messages: Messages,
    seed: u64,
    /// What decides levels in this round, and what decided them in the one before.
    reading: Reading,
    before: Option<Reading>,
    coders: BTreeMap<(bool, u16, Direction), Coder>,
    /// Whether what is predicted continues from messages that have been sent.
    goes_on: bool,
}

/// The codec of one layer's messages in one direction.
pub struct Coder {
    codec: Box<dyn Codec>,
    coding: Coding,
    seed: u64,
    place: Place,
    /// Whether messages are traced for the assigner.
    traced: bool,
    /// Bits of each message by peer and whether it goes out, and the period that they belong to.
    widths: BTreeMap<Heading, (u32, Arc<[u8]>)>,
    /// Per peer what is known of each message that goes out.
    traces: BTreeMap<Rank, Trace>,
    /// What the codec remembers of the messages of a link.
    memories: BTreeMap<Heading, Memory>,
    /// Whether what is predicted continues from messages that have been sent.
    goes_on: bool,
    /// Of which links a first message was predicted, with the codec's state.
    begun: BTreeSet<Heading>,
}

/// What is known of the messages of a link: D/6 · Σ span² of the codec's grids, over how many messages. What was seen
/// before the last assignment counts as one.
#[derive(Debug, Default)]
struct Trace {
    sums: Vec<f64>,
    counts: Vec<u32>,
}

impl Trace {
    fn add(&mut self, at: usize, value: f64) {
        self.sums[at] += value;
        self.counts[at] += 1;
    }

    /// The mean of each message, NaN of those that never were, which stands for all that is known from now on.
    fn take_means(&mut self) -> Vec<f64> {
        for (sum, count) in self.sums.iter_mut().zip(&mut self.counts).filter(|(_, count)| **count > 0) {
            *sum /= f64::from(*count);
            *count = 1;
        }
        let mean = |(sum, count): (&f64, &u32)| if *count > 0 { *sum } else { f64::NAN };
        self.sums.iter().zip(&self.counts).map(mean).collect()
    }
}

/// The level of a message as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    ratio: f64,
    bits: u8,
    widths: Option<Arc<[u8]>>,
}

impl Setting {
    /// The level that a codec reads.
    pub fn level(&self) -> Level<'_> {
        let bits = self.widths.as_deref().map_or(Bits::Uniform(self.bits), Bits::Rows);
        Level { ratio: self.ratio, bits }
    }

    /// The setting of these positions of the message alone.
    fn at(self, positions: Option<&[u32]>) -> Setting {
        let pick = |widths: Arc<[u8]>, positions: &[u32]| positions.iter().map(|&p| widths[p as usize]).collect();
        match (self.widths, positions) {
            (Some(widths), Some(positions)) => Setting { widths: Some(pick(widths, positions)), ..self },
            (widths, _) => Setting { widths, ..self },
        }
    }
}

/// One end of a link as a message sees it.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// This worker's number.
    pub rank: Rank,
    /// The other end.
    pub peer: Rank,
    /// Whether the message goes out from here.
    pub outgoing: bool,
    /// Rows of the whole link.
    pub rows: usize,
    /// The positions that travel; all of them if `None`.
    pub drawn: Option<&'a [u32]>,
}

impl Coders {
    /// The codecs of resolved messages.
    pub fn new(messages: &Messages, seed: u64) -> Coders {
        let (reading, before, coders, goes_on) = Default::default();
        Coders { messages: messages.clone(), seed, reading, before, coders, goes_on }
    }

    /// What codes these messages.
    pub fn coding(&self, tag: Tag) -> &Coding {
        self.messages.coding(tag)
    }

    /// Makes the codec that a coding asks for, beside those of the exchange.
    ///
    /// # Errors
    /// If it objects to its options.
    pub fn build(&self, coding: &Coding) -> Result<Box<dyn Codec>> {
        coding.build(self.messages.registry())
    }

    /// Sets all controllers for a round; every worker must give the same reading.
    pub fn turn(&mut self, reading: Reading) {
        self.before = (reading.done > 0).then_some(self.reading);
        self.reading = reading;
    }

    /// Whether the messages that are predicted from now on continue from others, so that no state is in front.
    pub fn go_on(&mut self, goes_on: bool) {
        self.goes_on = goes_on;
    }

    /// Forgets what the messages of a stage have left behind.
    pub fn forget(&mut self) {
        self.coders.clear();
        self.before = None;
    }

    /// As [`Coders::coder`]; where messages answer `late` rows, with what decided the level of these a round ago.
    ///
    /// # Errors
    /// As [`Coders::coder`].
    pub fn coder_of(&mut self, tag: Tag, late: bool) -> Result<(&mut Coder, Reading)> {
        let before = self.before.filter(|_| late);
        let (coder, reading) = self.coder(tag)?;
        Ok((coder, before.unwrap_or(*reading)))
    }

    /// The codec of these messages, with what decides levels now.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn coder(&mut self, tag: Tag) -> Result<(&mut Coder, &Reading)> {
        let evaluation = tag.evaluates();
        let at = (evaluation, tag.layer, tag.direction);
        if !self.coders.contains_key(&at) {
            let coding = self.messages.coding(tag).clone();
            let mut codec = coding.build(self.messages.registry())?;
            if let Some(skip) = self.messages.skip.filter(|_| !evaluation) {
                codec = Box::new(Skipping::around(codec, skip.change, skip.staleness));
            }
            let traced = coding.is_adaptive() && !evaluation;
            let (seed, goes_on, place) = (self.seed, self.goes_on, (tag.layer, tag.direction));
            let (widths, traces, memories, begun) = Default::default();
            let coder = Coder { codec, coding, seed, place, traced, widths, traces, memories, goes_on, begun };
            self.coders.insert(at, coder);
        }
        Ok((self.coders.get_mut(&at).expect("it was just put there"), &self.reading))
    }

    /// The codec of a layer's messages in one direction while training.
    fn of_stream(&mut self, stream: Stream) -> Result<&mut Coder> {
        let Stream { layer, direction, .. } = stream;
        let content = if direction == Direction::Forward { Content::HiddenRows } else { Content::RowGradients };
        let purpose = FramePurpose::Training;
        Ok(self.coder(Tag { content, purpose, direction, layer, round: 0, step: 0 })?.0)
    }

    /// As [`Coders::coder`], of messages whose level has been asked for before.
    pub(crate) fn known(&mut self, tag: Tag) -> &mut Coder {
        self.coder(tag).expect("a codec whose level is known exists").0
    }
}

const READING: &str = "reading";
const WIDTHS: &str = "widths";
const TRACE: &str = "trace";
const TRACED: &str = "traced";

impl Remembers for Coders {
    fn save(&self, saved: &mut Saved) {
        let Reading { done, rounds, elapsed, bytes, gradient } = self.reading;
        saved.put(Name::one(READING), &[f64::from(done), f64::from(rounds), elapsed, bytes, gradient]);
        for ((evaluation, ..), coder) in &self.coders {
            if !evaluation {
                coder.save(saved);
            }
        }
    }

    fn restore(&mut self, saved: &mut Saved) -> Result<()> {
        let name = Name::one(READING);
        match saved.take::<f64>(&name)?.as_deref() {
            Some(&[done, rounds, elapsed, bytes, gradient]) => {
                self.reading = Reading { done: done as u32, rounds: rounds as u32, elapsed, bytes, gradient };
            }
            Some(_) => return Err(odd(&name, "something that is no reading of the clocks")),
            None => {}
        }
        for (stream, _, widths) in saved.take_streams::<u8>(WIDTHS)? {
            if let Some(end) = stream.end {
                self.of_stream(stream)?.set_widths(end, widths);
            }
        }
        for (stream, _, sums) in saved.take_streams::<f64>(TRACE)? {
            if let Some((peer, outgoing)) = stream.end {
                let name = Name::of(TRACED, (stream.layer, stream.direction), Some((peer, outgoing)));
                let counts: Vec<u32> = saved.take(&name)?.unwrap_or_default();
                if sums.len() != counts.len() {
                    return Err(odd(&name, "messages of another number"));
                }
                self.of_stream(stream)?.traces.insert(peer, Trace { sums, counts });
            }
        }
        for (stream, _, values) in saved.take_streams::<f32>(&memory_name(0, "values"))? {
            if let Some(end) = stream.end {
                let memory = take_memory(saved, stream, values)?;
                self.of_stream(stream)?.memories.insert(end, memory);
            }
        }
        Ok(())
    }
}

/// What a codec remembers, or one `depth` codecs inside it.
fn memory_name(depth: usize, what: &str) -> String {
    format!("memory.{depth}.{what}")
}

/// The memory of a stream whose outermost values are given, with what is inside.
fn take_memory(saved: &mut Saved, stream: Stream, values: Vec<f32>) -> Result<Memory> {
    let name = |depth, what| Name::of(&memory_name(depth, what), (stream.layer, stream.direction), stream.end);
    let rounds = saved.take::<u32>(&name(0, "rounds"))?.unwrap_or_default();
    if rounds.len() > Memory::NESTED_MAX {
        return Err(odd(&name(0, "rounds"), "memories inside memories without end"));
    }
    let mut rounds = rounds.into_iter();
    let mut memories = vec![Memory::of(rounds.next().unwrap_or_default(), values)];
    for round in rounds {
        let values = saved.take(&name(memories.len(), "values"))?.unwrap_or_default();
        memories.push(Memory::of(round, values));
    }
    Ok(memories.into_iter().rev().reduce(|inside, outside| outside.holding(inside)).unwrap_or_default())
}

impl Coder {
    /// What the configuration says.
    pub fn coding(&self) -> &Coding {
        &self.coding
    }

    fn save(&self, saved: &mut Saved) {
        if self.coding.is_adaptive() {
            for (end, (_, widths)) in &self.widths {
                saved.put(Name::of(WIDTHS, self.place, Some(*end)), widths);
            }
        }
        for (peer, trace) in &self.traces {
            saved.put(Name::of(TRACE, self.place, Some((*peer, true))), &trace.sums);
            saved.put(Name::of(TRACED, self.place, Some((*peer, true))), &trace.counts);
        }
        for (end, memory) in self.memories.iter().filter(|(_, memory)| !memory.is_empty()) {
            let (mut rounds, mut at) = (Vec::new(), Some(memory));
            while let Some(memory) = at {
                let name = memory_name(rounds.len(), "values");
                saved.put(Name::of(&name, self.place, Some(*end)), &memory.values);
                rounds.push(memory.round);
                at = memory.inside();
            }
            saved.put(Name::of(&memory_name(0, "rounds"), self.place, Some(*end)), &rounds);
        }
    }

    /// Encodes the rows of a message that goes out, and counts their values by width. A codec may find that nothing has
    /// to be sent: then the frame stays empty, and nothing is counted or traced.
    ///
    /// # Errors
    /// If a value is no number.
    pub fn write(
        &mut self,
        key: &MessageKey,
        end: End<'_>,
        setting: &Setting,
        rows: RowsRef<'_>,
        frame: &mut Frame,
        counts: &mut WidthCounts,
    ) -> std::result::Result<(), WireError> {
        let (shape, level) = ((rows.rows.len(), rows.columns), setting.level());
        let memory = self.memories.entry((end.peer, true)).or_default();
        let state = if memory.is_empty() { self.codec.state_bytes(rows.columns) } else { 0 };
        codec::write(self.codec.as_mut(), Message { key, level: &level, memory }, rows.clone(), frame)?;
        let payload = frame.payload().len();
        if payload > 0 {
            self.coding.count_values(&level, shape, payload - state, counts);
            if self.traced {
                self.trace(end, &rows);
            }
        }
        Ok(())
    }

    /// Whether rows that are stored as bf16 travel as they are: [`Coder::write_stored`], [`Coder::read_stored`].
    pub fn is_half(&self) -> bool {
        self.codec.is_half()
    }

    /// [`Coder::write`] of rows that are stored as bf16.
    ///
    /// # Errors
    /// If a value is no number.
    ///
    /// # Panics
    /// If the codec is not that of such rows.
    pub fn write_stored(
        &mut self,
        setting: &Setting,
        rows: &RowsRef<'_, Bf16>,
        frame: &mut Frame,
        counts: &mut WidthCounts,
    ) -> std::result::Result<(), WireError> {
        assert!(self.is_half());
        frame.set_codec(self.codec.id().number);
        Half::append_stored(rows, frame.payload_mut(), Bf16::bits)?;
        self.coding.count_values(&setting.level(), (rows.rows.len(), rows.columns), frame.payload().len(), counts);
        Ok(())
    }

    /// [`Coder::read`] into rows that are stored as bf16.
    ///
    /// # Errors
    /// If it is not what its level says.
    pub fn read_stored(
        &self,
        frame: &Frame,
        into: RowsMut<'_, Bf16>,
        store: Store,
    ) -> std::result::Result<(), WireError> {
        codec::expect_codec(self.codec.as_ref(), frame)?;
        let sum = |a: Bf16, b: Bf16| Bf16::round(a.widen() + b.widen());
        match store {
            Store::Set => Half::read_stored(frame.payload(), into, |target, came| *target = Bf16::of_bits(came)),
            Store::Add => {
                Half::read_stored(frame.payload(), into, |target, came| *target = sum(*target, Bf16::of_bits(came)))
            }
        }
    }

    /// Decodes a message that came.
    ///
    /// # Errors
    /// If it is not what its key and level say.
    pub fn read(
        &mut self,
        key: &MessageKey,
        setting: &Setting,
        frame: &Frame,
        into: RowsMut<'_>,
        store: Store,
    ) -> std::result::Result<(), WireError> {
        let memory = self.memories.entry((key.from, false)).or_default();
        let level = &setting.level();
        codec::read(self.codec.as_mut(), Message { key, level, memory }, frame, into, store)
    }

    /// Adds the spans of the rows of a message that goes out.
    pub fn trace(&mut self, end: End<'_>, rows: &RowsRef<'_>) {
        let (trace, bits) = (self.traces.entry(end.peer).or_default(), self.coding.first_bits());
        trace.sums.resize(end.rows, 0.0);
        trace.counts.resize(end.rows, 0);
        for position in 0..rows.rows.len() {
            let span = self.codec.span(bits, rows.row(position));
            let at = end.drawn.map_or(position, |drawn| drawn[position] as usize);
            trace.add(at, rows.columns as f64 / 6.0 * span * span);
        }
    }

    /// The variance of each message to a peer, for each unit of noise, as far as it was ever traced; NaN of the others.
    pub fn take_trace(&mut self, peer: Rank) -> Vec<f64> {
        self.traces.get_mut(&peer).map(Trace::take_means).unwrap_or_default()
    }

    /// The level of a message on this link now.
    pub fn setting(&mut self, reading: &Reading, end: End<'_>) -> Setting {
        let ratio = self.coding.ratio.at(reading);
        if let Widths::Same(bits) = &self.coding.widths {
            return Setting { ratio, bits: width_below(bits.at(reading)), widths: None };
        }
        let widths = self.coding.kind.reads.bits.then(|| self.widths_of(reading, end));
        Setting { ratio, bits: self.coding.first_bits(), widths }.at(end.drawn)
    }

    /// Bits of each message of a link: drawn for this period, or as assigned, or what comes before the first
    /// assignment.
    fn widths_of(&mut self, reading: &Reading, end: End<'_>) -> Arc<[u8]> {
        let at = (end.peer, end.outgoing);
        let random = !self.coding.is_adaptive();
        let number = if random { reading.done / self.coding.period(reading.rounds) } else { 0 };
        match self.widths.get(&at) {
            Some((known, widths)) if *known == number && widths.len() == end.rows => widths.clone(),
            _ => {
                let widths: Arc<[u8]> =
                    if random { self.drawn(number, end) } else { vec![self.coding.first_bits(); end.rows].into() };
                self.widths.insert(at, (number, widths.clone()));
                widths
            }
        }
    }

    /// Both ends draw the same bits for each message.
    fn drawn(&self, period: u32, end: End<'_>) -> Arc<[u8]> {
        let (from, to) = if end.outgoing { (end.rank, end.peer) } else { (end.peer, end.rank) };
        let place = u64::from(self.place.0) << 1 | self.place.1 as u64;
        let link = u64::from(from.0) << 32 | u64::from(to.0);
        let key = Key::new(self.seed, Purpose::Width).with(period.into()).with(place).with(link);
        let menu = self.coding.menu().map(Menu::widths).unwrap_or_default();
        (0..end.rows).map(|row| menu[key.with(row as u64).below(menu.len() as u64) as usize]).collect()
    }

    /// Sets the bits of each message of a link.
    pub fn set_widths(&mut self, end: Heading, widths: Vec<u8>) {
        self.widths.insert(end, (0, widths.into()));
    }

    /// Payload bytes of a message of this setting and shape; a bound where an assigner chooses or the codec varies.
    pub fn bytes(&self, setting: &Setting, rows: usize, columns: usize) -> usize {
        self.codec.bytes(&setting.level(), rows, columns)
    }

    /// Payload bytes of a message on this link now, as [`Coder::bytes`]; of the first that is asked for with the state
    /// in front.
    pub fn forecast(&mut self, reading: &Reading, end: End<'_>, columns: usize) -> usize {
        let setting = self.setting(reading, end);
        let begins = self.coding.kind.prepares && !self.goes_on && self.begun.insert((end.peer, end.outgoing));
        let state = if begins { self.codec.state_bytes(columns) } else { 0 };
        state + self.bytes(&setting, end.drawn.map_or(end.rows, <[u32]>::len), columns)
    }
}
