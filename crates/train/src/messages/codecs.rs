//! Which codec codes which message, and how much of it: codecs that choose a codec.
//!
//! `by_layer` is `messages.layers.N`; `by_round` are the controllers of ratios and bits, which [`Codecs::turn`] turns once a round, on
//! every worker to the same value. What a message's level was when it was sent is kept with it ([`Setting`]), so that a message may
//! be decoded rounds later.

use std::collections::BTreeMap;
use std::sync::Arc;

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{Bits, Codec, CodecRegistry, Level, Options, RowsRef};
use laconic_wire::{Direction, Kind, Rank, Tag};

use super::Messages;
use crate::config::ramp::{Controller, Reading, kept_columns};
use crate::config::{BitsChoice, CodecConfig, SkipConfig, WIDTHS};
use crate::error::Result;
use crate::messages::assign;
use crate::saved::{Name, Remembers, Saved, Stream};

/// Codecs of all messages of rows.
pub struct Codecs {
    messages: Messages,
    seed: u64,
    reading: Reading,
    channels: BTreeMap<(bool, u16, Direction), Channel>,
}

/// A layer's messages in one direction.
type Place = (u16, Direction);

/// A peer and whether messages go out to it.
type Heading = (Rank, bool);

/// The codec of one layer's messages in one direction.
pub struct Channel {
    /// The codec.
    pub codec: Box<dyn Codec>,
    config: CodecConfig,
    seed: u64,
    place: Place,
    /// Bits of each message by peer and whether it goes out, and the period that they belong to.
    widths: BTreeMap<Heading, (u32, Arc<[u8]>)>,
    /// Per peer, of each message that goes out: D/6 · Σ (max − min)² since the last assignment.
    traces: BTreeMap<Rank, Vec<f64>>,
}

/// The level of a message as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    ratio: f64,
    bits: u8,
    widths: Option<Arc<[u8]>>,
}

impl Setting {
    /// The level.
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
    /// This worker.
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

impl Codecs {
    /// The codecs of resolved messages.
    pub fn new(messages: &Messages, seed: u64) -> Codecs {
        Codecs { messages: messages.clone(), seed, reading: Reading::default(), channels: BTreeMap::new() }
    }

    /// What codes these messages.
    pub fn coding(&self, tag: Tag) -> CodecConfig {
        self.messages.coding(tag)
    }

    /// When messages are skipped.
    pub fn skip(&self) -> Option<SkipConfig> {
        self.messages.config.skip
    }

    /// Sets all controllers for a round; every worker must give the same reading.
    pub fn turn(&mut self, reading: Reading) {
        self.reading = reading;
    }

    /// The codec of these messages, with what decides levels now.
    pub fn channel(&mut self, tag: Tag) -> Result<(&mut Channel, &Reading)> {
        let place = (tag.kind == Kind::Evaluation, tag.layer, tag.direction);
        if !self.channels.contains_key(&place) {
            let config = self.messages.coding(tag);
            let options = Options::default().with("columns", &*config.columns).with("rescale", config.rescale);
            let options = config.inner.iter().fold(options, |options, inner| options.with("inner", &**inner));
            let codec = CodecRegistry::default().build(&config.codec, &options)?;
            let place_of = (tag.layer, tag.direction);
            let channel = Channel {
                codec,
                config,
                seed: self.seed,
                place: place_of,
                widths: BTreeMap::new(),
                traces: BTreeMap::new(),
            };
            self.channels.insert(place, channel);
        }
        Ok((self.channels.get_mut(&place).expect("it was just put there"), &self.reading))
    }

    /// The codec of a layer's messages in one direction while training.
    fn of_stream(&mut self, stream: Stream) -> Result<&mut Channel> {
        let Stream { layer, direction, .. } = stream;
        let kind = if direction == Direction::Forward { Kind::Activations } else { Kind::ActivationGradients };
        Ok(self.channel(Tag { kind, direction, layer, round: 0, step: 0 })?.0)
    }

    /// As [`Codecs::channel`], of messages whose level has been asked for before.
    pub(crate) fn known(&mut self, tag: Tag) -> &mut Channel {
        self.channel(tag).expect("a codec whose level is known exists").0
    }
}

const WIDTHS_NAME: &str = "widths";
const TRACE: &str = "trace";

impl Remembers for Codecs {
    fn save(&self, saved: &mut Saved) {
        for channel in self.channels.values().filter(|channel| channel.is_adaptive()) {
            for (end, (_, widths)) in &channel.widths {
                saved.put(Name::of(WIDTHS_NAME, channel.place, Some(*end)), widths);
            }
            for (peer, trace) in &channel.traces {
                saved.put(Name::of(TRACE, channel.place, Some((*peer, true))), trace);
            }
        }
    }

    fn restore(&mut self, saved: &mut Saved) -> Result<()> {
        for (stream, _, widths) in saved.take_streams::<u8>(WIDTHS_NAME)? {
            if let Some(end) = stream.end {
                self.of_stream(stream)?.set_widths(end, widths);
            }
        }
        for (stream, _, trace) in saved.take_streams::<f64>(TRACE)? {
            if let Some((peer, _)) = stream.end {
                self.of_stream(stream)?.traces.insert(peer, trace);
            }
        }
        Ok(())
    }
}

impl Channel {
    /// Whether the assigner chooses the bits.
    pub fn is_adaptive(&self) -> bool {
        self.config.is_adaptive()
    }

    /// What the configuration says.
    pub fn config(&self) -> &CodecConfig {
        &self.config
    }

    /// Adds the ranges of the rows of a message that is about to go out.
    pub fn trace(&mut self, end: End<'_>, rows: &RowsRef<'_>) {
        let trace = self.traces.entry(end.peer).or_default();
        trace.resize(end.rows, 0.0);
        for position in 0..rows.rows.len() {
            let range = laconic_nn::kernels::measure::row_range(rows.row(position));
            let at = end.drawn.map_or(position, |drawn| drawn[position] as usize);
            if range.is_finite() && range > 0.0 {
                trace[at] += rows.columns as f64 / 6.0 * range * range;
            }
        }
    }

    /// What was traced of the messages to a peer; forgets it.
    pub fn take_trace(&mut self, peer: Rank) -> Vec<f64> {
        self.traces.remove(&peer).unwrap_or_default()
    }

    /// The level of a message on this link now.
    pub fn setting(&mut self, reading: &Reading, end: End<'_>) -> Setting {
        let ratio = self.config.ratio.at(reading);
        let BitsChoice::Same(bits) = &self.config.bits else {
            let widths = self.config.quantises().then(|| self.widths_of(reading, end));
            return Setting { ratio, bits: FIRST_BITS, widths }.at(end.drawn);
        };
        Setting { ratio, bits: width_below(bits.at(reading)), widths: None }
    }

    /// Bits of each message of a link: drawn for this period, or as assigned, or what comes before the first assignment.
    fn widths_of(&mut self, reading: &Reading, end: End<'_>) -> Arc<[u8]> {
        let at = (end.peer, end.outgoing);
        let random = !self.is_adaptive();
        let number = if random { reading.done / self.config.period(reading.rounds) } else { 0 };
        match self.widths.get(&at) {
            Some((known, widths)) if *known == number && widths.len() == end.rows => widths.clone(),
            _ => {
                let widths: Arc<[u8]> =
                    if random { self.drawn(number, end) } else { vec![FIRST_BITS; end.rows].into() };
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
        (0..end.rows).map(|row| assign::MENU[key.with(row as u64).below(assign::MENU.len() as u64) as usize]).collect()
    }

    /// Sets the bits of each message of a link.
    pub fn set_widths(&mut self, end: (Rank, bool), widths: Vec<u8>) {
        self.widths.insert(end, (0, widths.into()));
    }

    /// Payload bytes of a message on this link; a bound where an assigner chooses.
    pub fn bytes(&mut self, reading: &Reading, end: End<'_>, columns: usize) -> usize {
        let rows = end.drawn.map_or(end.rows, <[u32]>::len);
        let setting = self.setting(reading, end);
        self.codec.bytes(&setting.level(), rows, columns)
    }
}

/// Bits before the first assignment.
pub const FIRST_BITS: u8 = 8;

/// The largest width that quantisers know and that is not above this number.
pub fn width_below(bits: f64) -> u8 {
    WIDTHS.into_iter().rev().find(|&width| f64::from(width) <= bits).unwrap_or(WIDTHS[0])
}

impl CodecConfig {
    /// Whether the assigner chooses the bits.
    pub fn is_adaptive(&self) -> bool {
        self.bits == BitsChoice::Named("adaptive".to_owned()) && self.quantises()
    }

    /// The most bits that a value may have.
    pub fn most_bits(&self) -> u8 {
        match &self.bits {
            BitsChoice::Same(bits) => width_below(bits.range().1),
            BitsChoice::Named(_) => FIRST_BITS,
        }
    }

    /// Whether what arrives depends on chance.
    pub fn draws(&self) -> bool {
        !matches!(self.codec.as_str(), "exact" | "half")
    }

    /// Whether bits matter.
    pub fn quantises(&self) -> bool {
        self.codec == "quantised" || (self.codec == "masked" && self.inner.as_deref() == Some("quantised"))
    }

    /// Rounds between two assignments in a stage of `rounds`.
    pub fn period(&self, rounds: u32) -> u32 {
        if self.period > 0 { self.period } else { rounds.div_ceil(10).max(1) }
    }

    /// Adds to `values` how many values of a message travel in each width, in the order of [`WIDTHS`].
    pub fn count_values(&self, level: &Level<'_>, (rows, columns): (usize, usize), values: &mut [u64; WIDTHS.len()]) {
        let masked = self.codec == "masked" && level.ratio > 1.0;
        let columns = if masked { kept_columns(columns, level.ratio) } else { columns } as u64;
        let place = |width: u8| WIDTHS.iter().position(|known| *known == width).unwrap_or(WIDTHS.len() - 1);
        let inner = if self.codec == "masked" { self.inner.as_deref().unwrap_or("exact") } else { &self.codec };
        match (inner, level.bits) {
            ("quantised", Bits::Uniform(bits)) => values[place(bits)] += rows as u64 * columns,
            ("quantised", Bits::Rows(widths)) => widths.iter().for_each(|&width| values[place(width)] += columns),
            ("half", _) => values[place(16)] += rows as u64 * columns,
            _ => values[place(32)] += rows as u64 * columns,
        }
    }

    /// Whether the size of messages follows from shapes and the round alone.
    pub fn is_predictable(&self) -> bool {
        let ratio = self.codec != "masked" || self.ratio.is_predictable();
        let bits = match &self.bits {
            BitsChoice::Same(bits) => bits.is_predictable(),
            BitsChoice::Named(name) => name == "random",
        };
        ratio && (bits || !self.quantises())
    }

    /// The same codec where nothing depends on what happens during the run: the most that it can send.
    pub fn at_most(&self) -> CodecConfig {
        let most = |controller: &Controller, value: f64| {
            if controller.is_predictable() { *controller } else { Controller::Fixed(value) }
        };
        let bits = match &self.bits {
            BitsChoice::Same(bits) => BitsChoice::Same(most(bits, bits.range().1)),
            BitsChoice::Named(name) if name == "adaptive" => BitsChoice::Same(Controller::Fixed(FIRST_BITS.into())),
            random => random.clone(),
        };
        CodecConfig { ratio: most(&self.ratio, self.ratio.range().0), bits, ..self.clone() }
    }
}
