//! One codec of messages with everything that is known of it: what `{ codec = …, … }` comes to.

use std::collections::{BTreeMap, BTreeSet};

use laconic_wire::codec::{Bits, Codec, CodecKind, CodecRegistry, Exact, Level, Options, travelling};

use super::assign::Menu;
use crate::config::ramp::{Clock, Controller};
use crate::config::{BitsChoice, CodecChoice, CodecConfig, EachMessage, Period, WIDTHS, one_of};
use crate::error::{Result, TrainError};

/// What the variance weighs where nobody says otherwise: as much as the time.
const LAMBDA: f64 = 0.5;

/// Values sent by their width, in the order of [`WIDTHS`].
pub type WidthCounts = [u64; WIDTHS.len()];

/// Who decides the bits of values.
#[derive(Debug, Clone, PartialEq)]
pub enum Widths {
    /// A number of bits, the same in every row.
    Same(Controller),
    /// Each message's own, drawn anew each period.
    Drawn {
        /// From one draw to the next.
        period: Period,
        /// The widths that are drawn from.
        menu: Menu,
    },
    /// Each message's own, as the assigner chooses.
    Assigned {
        /// From one assignment to the next.
        period: Period,
        /// What the variance weighs against the time, 0 to 1.
        lambda: f64,
        /// The widths to choose from.
        menu: Menu,
    },
}

impl Widths {
    fn of(key: &str, config: &CodecConfig) -> Result<Widths> {
        let period = config.period.unwrap_or_default();
        let menu = config.menu.as_deref().map_or(Ok(Menu::default()), Menu::of);
        let menu = menu.map_err(|what| TrainError::config(format!("{key}.menu = {what}")))?;
        Ok(match config.bits.clone() {
            None => Widths::Same(Controller::Fixed(4.0)),
            Some(BitsChoice::Same(bits)) => Widths::Same(bits),
            Some(BitsChoice::Each(EachMessage::Random)) => Widths::Drawn { period, menu },
            Some(BitsChoice::Each(EachMessage::Adaptive)) => {
                Widths::Assigned { period, lambda: config.lambda.unwrap_or(LAMBDA), menu }
            }
        })
    }

    fn map(&self, change: impl Fn(&Controller) -> Controller) -> Widths {
        match self {
            Widths::Same(bits) => Widths::Same(change(bits)),
            each => each.clone(),
        }
    }
}

/// A codec of messages, resolved.
#[derive(Debug, Clone)]
pub struct Coding {
    /// What is known of the codec, with what is inside it.
    pub kind: CodecKind,
    options: Options,
    /// d / k: how many times fewer columns travel.
    pub ratio: Controller,
    /// Who decides the bits of values.
    pub widths: Widths,
    /// Whether rows that never change arrive bit by bit.
    pub reveal: bool,
    /// What codes messages that a mask leaves whole: the codec inside.
    whole: Option<Box<Coding>>,
    /// Whether a mask leaves those of the last layer whole.
    whole_last: bool,
    /// Whether a mask sends the first columns rather than random ones.
    pub takes_prefix: bool,
}

/// Refuses an `inner` that is no codec, or one codec around another as in `grouped/quantised`, of which only the last
/// stands around none; a mask stands around all.
fn check_inside(key: &str, inner: &str, registry: &CodecRegistry) -> Result<()> {
    let mut names = inner.split('/').peekable();
    while let Some(name) = names.next() {
        let may = |kind: &&'static CodecKind| match names.peek() {
            Some(_) => kind.wraps && !kind.reads.ratio,
            None => !kind.wraps,
        };
        let may: Vec<&str> = registry.iter().filter(may).map(|kind| kind.name).collect();
        one_of(&format!("{key}.inner"), name, &may)?;
    }
    Ok(())
}

impl Coding {
    /// Resolves a choice; `key` is where it stands.
    ///
    /// # Errors
    /// If there is no such codec, an option has a value that makes no sense, or one is given that the codec does not
    /// read.
    pub fn of(key: &str, choice: &CodecChoice, registry: &CodecRegistry) -> Result<Coding> {
        let config = choice.config();
        let refuse = |error: laconic_wire::WireError| TrainError::config(format!("{key}: {error}"));
        one_of(key, &config.codec, &registry.names().collect::<Vec<_>>())?;
        let outer = registry.get(&config.codec).map_err(refuse)?;
        if outer.wraps {
            let inner = config.options.text("inner").map_err(refuse)?.unwrap_or(Exact::KIND.name);
            check_inside(key, inner, registry)?;
        }
        let kind = registry.describe(&config.codec, &config.options).map_err(refuse)?;
        let mut coding = Coding {
            kind,
            options: config.options.clone(),
            ratio: config.ratio.unwrap_or(Controller::Fixed(4.0)),
            widths: Widths::of(key, &config)?,
            reveal: config.reveal.unwrap_or(true),
            whole: None,
            whole_last: config.whole_last.unwrap_or(true),
            takes_prefix: config.options.text("columns").is_ok_and(|columns| columns == Some("prefix")),
        };
        if outer.wraps && outer.reads.ratio {
            let kind = registry.describe_inner(&config.options).map_err(refuse)?;
            let (_, options) = registry.inside(&config.options).map_err(refuse)?;
            coding.whole = Some(Box::new(Coding { kind, options, ..coding.clone() }));
        }
        let takes_whole_rows = coding.kind.prepares || coding.kind.of_matrices;
        if takes_whole_rows && config.reveal == Some(true) {
            let what = "what is revealed crosses column by column, and its codec takes whole rows";
            return Err(TrainError::config(format!("{key}.reveal: {what}")));
        }
        coding.reveal &= !takes_whole_rows;
        coding.refuse_idle(key, &config, registry)?;
        coding.check(key, &config)?;
        coding.build(registry).map_err(|error| match error {
            TrainError::Wire(error) => refuse(error),
            error => error,
        })?;
        Ok(coding)
    }

    /// Whether both round alike, at no level and without chance.
    pub fn is_same_rounding(&self, other: &Coding) -> bool {
        let steady = |kind: &CodecKind| !kind.draws && !kind.remembers && !kind.reads.ratio && !kind.reads.bits;
        self.kind.name == other.kind.name && self.options == other.options && steady(&self.kind)
    }

    /// Whether gradients in this coding's counterpart `back` come in the columns that rows in this one go out in; they
    /// do where no column stays away.
    pub fn leaves_out_as(&self, back: &Coding) -> bool {
        let of_mask = |coding: &Coding| {
            let options = coding.options.iter().filter(|(name, _)| *name != "inner");
            options.map(|(name, value)| (name.to_owned(), value.clone())).collect::<BTreeMap<_, _>>()
        };
        let same = || back.kind.reads.ratio && self.ratio == back.ratio && of_mask(self) == of_mask(back);
        !self.kind.reads.ratio || same()
    }

    /// Refuses options that nothing reads.
    fn refuse_idle(&self, key: &str, config: &CodecConfig, registry: &CodecRegistry) -> Result<()> {
        let reads = self.kind.reads;
        let each = matches!(config.bits, Some(BitsChoice::Each(_)));
        let assigned = matches!(self.widths, Widths::Assigned { .. });
        let common = [
            ("bits", config.bits.is_some(), reads.bits),
            ("ratio", config.ratio.is_some(), reads.ratio),
            ("whole_last", config.whole_last.is_some(), self.whole.is_some()),
            ("reveal", config.reveal.is_some(), reads.ratio || self.refines()),
            ("period", config.period.is_some(), reads.bits && each),
            ("menu", config.menu.is_some(), reads.bits && each),
            ("lambda", config.lambda.is_some(), reads.bits && assigned),
        ];
        let inner = config.options.text("inner").ok().flatten().filter(|_| self.kind.wraps).unwrap_or_default();
        let of_inner = inner.split('/').filter_map(|name| registry.get(name).ok()).flat_map(|kind| kind.options);
        let own: BTreeSet<&str> = self.kind.options.iter().chain(of_inner).copied().collect();
        let idle = common.iter().find(|(_, given, read)| *given && !read).map(|(name, ..)| *name);
        let idle = idle.or_else(|| config.options.iter().map(|(name, _)| name).find(|name| !own.contains(name)));
        let Some(name) = idle else { return Ok(()) };
        let read = common.iter().filter(|(.., read)| *read).map(|(name, ..)| *name).chain(own);
        let mut what = format!("{key}.{name}: {:?} does not read it", config.codec);
        if name == "lambda" && reads.bits {
            what += "; only bits = \"adaptive\" does";
        } else if name == "reveal" && reads.bits {
            what += "; only bits that are a ramp do";
        } else if name == "period" || (name == "menu" && reads.bits) {
            what += "; only bits = \"random\" and \"adaptive\" do";
        } else if let Some(other) = registry.iter().find(|other| reader(other, name)) {
            what += &format!("; {:?} does", other.name);
        } else {
            let read: Vec<&str> = read.collect();
            what += &format!("; it reads {}", if read.is_empty() { "no options".to_owned() } else { read.join(", ") });
        }
        Err(TrainError::config(what))
    }

    fn check(&self, key: &str, config: &CodecConfig) -> Result<()> {
        self.ratio.check(&format!("{key}.ratio"), 1.0, 1e9).map_err(TrainError::config)?;
        match &self.widths {
            Widths::Same(Controller::Fixed(bits)) if !WIDTHS.iter().any(|width| f64::from(*width) == *bits) => {
                let what = "expected one of 1, 2, 4, 8, 16, 32, random, adaptive";
                return Err(TrainError::config(format!("{key}.bits = {bits}: {what}")));
            }
            Widths::Same(bits) => bits.check(&format!("{key}.bits"), 1.0, 32.0).map_err(TrainError::config)?,
            Widths::Drawn { .. } | Widths::Assigned { .. } => {}
        }
        match config.lambda {
            Some(lambda) if !(0.0..=1.0).contains(&lambda) => {
                Err(TrainError::config(format!("{key}.lambda = {lambda}: expected 0 to 1")))
            }
            _ => Ok(()),
        }
    }

    /// Makes the codec.
    ///
    /// # Errors
    /// If it objects to its options.
    pub fn build(&self, registry: &CodecRegistry) -> Result<Box<dyn Codec>> {
        Ok(registry.build(self.kind.name, &self.options)?)
    }

    /// The codec of messages of a network's last layer.
    pub fn of_last(&self) -> &Coding {
        self.whole.as_deref().filter(|_| self.whole_last).unwrap_or(self)
    }

    /// The codec of the values that travel: what is inside a mask.
    pub fn of_values(&self) -> &Coding {
        self.whole.as_deref().unwrap_or(self)
    }

    /// The same coding, where ramps over bytes that state no limit run to this many.
    #[must_use]
    pub fn within(&self, bytes: Option<u64>) -> Coding {
        let Some(bytes) = bytes else { return self.clone() };
        self.map(|controller| controller.with_limit(bytes as f64))
    }

    /// The same coding with ramps over epochs.
    #[must_use]
    pub fn by_epochs(&self) -> Coding {
        self.map(Controller::by_epochs)
    }

    fn map(&self, change: impl Fn(&Controller) -> Controller + Copy) -> Coding {
        Coding {
            ratio: change(&self.ratio),
            widths: self.widths.map(change),
            whole: self.whole.as_ref().map(|whole| Box::new(whole.map(change))),
            ..self.clone()
        }
    }

    /// Whether rows that never change arrive coarsely and are refined later, unless told otherwise.
    pub fn refines(&self) -> bool {
        self.kind.reads.bits && matches!(&self.widths, Widths::Same(Controller::Ramp(_)))
    }

    /// Whether frozen inputs are revealed bit by bit rather than sent at once.
    pub fn reveals(&self) -> bool {
        self.reveal && (self.kind.reads.ratio || self.refines())
    }

    /// Whether the assigner chooses the bits.
    pub fn is_adaptive(&self) -> bool {
        self.kind.reads.bits && matches!(self.widths, Widths::Assigned { .. })
    }

    /// Whether a ramp over bytes does not say how many.
    pub fn lacks_limit(&self) -> bool {
        let bits = matches!(&self.widths, Widths::Same(bits) if bits.lacks_limit());
        self.ratio.lacks_limit() || bits
    }

    /// The most bits that a value may have.
    pub fn most_bits(&self) -> u8 {
        match &self.widths {
            Widths::Same(bits) => width_below(bits.range().1),
            Widths::Drawn { menu, .. } | Widths::Assigned { menu, .. } => menu.most(),
        }
    }

    /// The widths that each message's own are chosen from; `None` where all rows have the same.
    pub fn menu(&self) -> Option<&Menu> {
        match &self.widths {
            Widths::Drawn { menu, .. } | Widths::Assigned { menu, .. } => Some(menu),
            Widths::Same(_) => None,
        }
    }

    /// Bits before the first assignment, and of what has no bits of its own.
    pub fn first_bits(&self) -> u8 {
        self.menu().unwrap_or(&Menu::default()).first()
    }

    /// Rounds between two draws or assignments in a stage of `rounds`.
    pub fn period(&self, rounds: u32) -> u32 {
        match self.widths {
            Widths::Drawn { period, .. } | Widths::Assigned { period, .. } => period.of(rounds),
            Widths::Same(_) => Period::default().of(rounds),
        }
    }

    /// What the assigner weighs the variance by.
    pub fn lambda(&self) -> f64 {
        if let Widths::Assigned { lambda, .. } = self.widths { lambda } else { LAMBDA }
    }

    /// Whether the size of messages follows from shapes and the round alone.
    pub fn is_predictable(&self) -> bool {
        self.has_steady_controllers() && !self.is_adaptive() && !self.kind.varies
    }

    /// The clocks that ratio and bits follow, where the codec reads them.
    pub fn clocks(&self) -> impl Iterator<Item = Clock> {
        let bits = if let Widths::Same(bits) = &self.widths { bits.clock() } else { None };
        let ratio = self.ratio.clock().filter(|_| self.kind.reads.ratio);
        ratio.into_iter().chain(bits.filter(|_| self.kind.reads.bits))
    }

    /// Whether messages of a shape have the same size in every round.
    pub fn has_constant_size(&self) -> bool {
        let fixed = |controller: &Controller| matches!(controller, Controller::Fixed(_));
        let bits = matches!(&self.widths, Widths::Same(bits) if fixed(bits));
        (fixed(&self.ratio) || !self.kind.reads.ratio) && (bits || !self.kind.reads.bits) && !self.kind.prepares
    }

    /// Whether ratio and bits can be predicted.
    pub fn has_steady_controllers(&self) -> bool {
        self.clocks().all(Clock::is_predictable)
    }

    /// Whether it can code values that figures are made of: the same number of bits in every round, nothing left out,
    /// nothing remembered.
    pub fn suits_figures(&self) -> bool {
        let fixed = matches!(self.widths, Widths::Same(Controller::Fixed(_)));
        fixed && !self.kind.reads.ratio && !self.kind.wraps && !self.kind.remembers && !self.kind.leaves_out
    }

    /// Why it cannot code parameters and their gradients, if so; what is lost of them is added to the next ones where
    /// there is error feedback.
    pub fn unfit_for_parameters(&self, feedback: bool) -> Option<&'static str> {
        let fixed = |controller: &Controller| matches!(controller, Controller::Fixed(_));
        let has_own_feedback = self.kind.remembers && self.kind.leaves_out;
        if !matches!(&self.widths, Widths::Same(bits) if fixed(bits)) {
            Some("expected a number of bits that stays the same")
        } else if self.kind.reads.ratio && !fixed(&self.ratio) {
            Some("expected a ratio that stays the same")
        } else if self.kind.reads.ratio && self.takes_prefix && self.ratio.range().0 > 1.0 {
            Some("columns = \"prefix\" would send the same values each time, and the others never")
        } else if (self.kind.leaves_out || self.kind.reads.ratio) && !feedback && !has_own_feedback {
            Some("it leaves values out, which are lost for good with messages.error_feedback = false")
        } else if self.options.flag("rescale") == Ok(Some(true)) && feedback {
            Some("rescale = true lets more be left over than was to be sent, which grows with error feedback")
        } else {
            None
        }
    }

    /// The level of parameters and of their gradients, whose codec is one that suits them.
    pub fn level_of_parameters(&self) -> Level<'static> {
        let ratio = if self.kind.reads.ratio { self.ratio.range().0 } else { 1.0 };
        Level { ratio, bits: Bits::Uniform(self.most_bits()) }
    }

    /// The same codec where nothing depends on what happens during the run: the most that it can send. The finest level
    /// is the dearest ([`Codec::bytes`]).
    #[must_use]
    pub fn at_most(&self) -> Coding {
        let most = |controller: &Controller, value: f64| {
            if controller.is_predictable() { *controller } else { Controller::Fixed(value) }
        };
        let widths = match &self.widths {
            Widths::Same(bits) => Widths::Same(most(bits, bits.range().1)),
            Widths::Assigned { menu, .. } => Widths::Same(Controller::Fixed(menu.most().into())),
            drawn => drawn.clone(),
        };
        let whole = self.whole.as_ref().map(|whole| Box::new(whole.at_most()));
        Coding { ratio: most(&self.ratio, self.ratio.range().0), widths, whole, ..self.clone() }
    }

    /// Adds to `counts` how many values of a message travel in each width. A codec that reads no bits has those that
    /// its payload comes to.
    pub fn count_values(
        &self,
        level: &Level<'_>,
        (rows, columns): (usize, usize),
        payload: usize,
        counts: &mut WidthCounts,
    ) {
        let columns = if self.kind.reads.ratio { travelling(columns, level.ratio) } else { columns };
        // What is not smaller rounded travels as it is.
        let whole = payload == 4 * rows * columns;
        let place = |width: u8| WIDTHS.iter().position(|known| *known >= width).unwrap_or(WIDTHS.len() - 1);
        match level.bits {
            Bits::Uniform(bits) if self.kind.reads.bits && !whole => counts[place(bits)] += (rows * columns) as u64,
            Bits::Rows(widths) if self.kind.reads.bits && !whole => {
                widths.iter().for_each(|&width| counts[place(width)] += columns as u64);
            }
            _ if rows * columns > 0 => {
                let bits = (8 * payload).div_ceil(rows * columns).min(32) as u8;
                counts[place(bits)] += (rows * columns) as u64;
            }
            _ => {}
        }
    }
}

/// Whether a kind reads an option of this name.
fn reader(kind: &CodecKind, name: &str) -> bool {
    let common = match name {
        "bits" | "period" | "lambda" | "menu" => kind.reads.bits,
        "ratio" => kind.reads.ratio,
        "whole_last" => kind.wraps && kind.reads.ratio,
        "reveal" => kind.reads.bits || kind.reads.ratio,
        _ => false,
    };
    common || kind.options.contains(&name)
}

/// The largest width that quantisers know and that is not above this number.
pub fn width_below(bits: f64) -> u8 {
    WIDTHS.into_iter().rev().find(|&width| f64::from(width) <= bits).unwrap_or(WIDTHS[0])
}

/// The smallest width that quantisers know and that is not below this number.
pub fn width_above(bits: u8) -> u8 {
    WIDTHS.into_iter().find(|&width| width >= bits).unwrap_or(32)
}
