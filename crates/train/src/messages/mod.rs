//! How much of each message travels: codecs that choose a codec, and the assigner of bit-widths.

pub mod assign;
pub mod codecs;

use laconic_wire::codec::{CodecRegistry, Options};
use laconic_wire::collectives::Reducer;
use laconic_wire::{Direction, Kind, Tag};

use crate::config::{BitsChoice, CodecChoice, CodecConfig, MessagesConfig};
use crate::error::Result;
use crate::schedule::Stage;

/// `[messages]`, resolved for the layers of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Messages {
    pub(crate) config: MessagesConfig,
    /// Layers whose messages masks leave whole: the last of a network, where it exchanges every round.
    whole: Vec<u16>,
    /// The most that the whole run may send.
    pub budget: Option<u64>,
}

impl Messages {
    /// Resolves checked messages for these stages.
    pub fn of(config: &MessagesConfig, stages: &[Stage]) -> Result<Messages> {
        let last = |stage: &Stage| {
            let units = stage.network.units();
            let exchanges = units.len() > 1 && units[units.len() - 1].layer.message_width() > 0;
            exchanges.then_some(stage.last_layer())
        };
        let budget = config.budget_bytes()?;
        Ok(Messages { config: config.clone(), whole: stages.iter().filter_map(last).collect(), budget })
    }

    /// What codes these messages.
    pub fn coding(&self, tag: Tag) -> CodecConfig {
        let config = &self.config;
        let special = config.layers.get(&tag.layer.to_string());
        let exact = CodecChoice::exact();
        let choice: &CodecChoice = match (tag.kind, tag.direction) {
            // Where evaluations exchange nothing, a trained model still reads its inputs once.
            (Kind::Evaluation, _) if config.evaluation == CodecChoice::named("none") => &exact,
            (Kind::Evaluation, _) => &config.evaluation,
            (_, Direction::Forward) => special.and_then(|s| s.forward.as_ref()).unwrap_or(&config.forward),
            (_, Direction::Reverse) => special.and_then(|s| s.backward.as_ref()).unwrap_or(&config.backward),
        };
        let mut choice = choice.config();
        if let Some(budget) = self.budget {
            choice.ratio = choice.ratio.with_limit(budget as f64);
            if let BitsChoice::Same(bits) = &mut choice.bits {
                *bits = bits.with_limit(budget as f64);
            }
        }
        if choice.codec == "masked" && choice.whole_last && self.whole.contains(&tag.layer) {
            choice.codec = choice.inner.take().unwrap_or_else(|| "exact".to_owned());
        }
        choice
    }

    /// The same messages where nothing depends on what happens during a run: the most that they can be.
    pub fn at_most(&self) -> Messages {
        Messages { config: self.config.at_most(), ..self.clone() }
    }

    /// Whether the assigner chooses bits of any message.
    pub fn are_adaptive(&self) -> bool {
        self.config.is_adaptive()
    }

    /// Whether a controller reads clocks that only show during a run.
    pub fn read_clocks(&self) -> bool {
        self.config.reads_clocks()
    }

    /// Whether the bytes of a run follow from shapes alone; otherwise its prediction is a bound.
    pub fn are_predictable(&self) -> bool {
        self.config.is_predictable()
    }

    /// Whether the assigner's costs are measured.
    pub fn measure_costs(&self) -> bool {
        self.config.costs == "measured"
    }

    fn has_feedback(&self) -> bool {
        self.config.error_feedback && self.config.parameters.config().codec != "exact"
    }

    /// Whether what is sent depends on what a worker alone remembers.
    pub fn remember(&self) -> bool {
        self.has_feedback() || self.config.skip.is_some() || self.are_adaptive()
    }

    /// Whether anything is lost between sender and receiver.
    pub fn are_lossy(&self) -> bool {
        let config = &self.config;
        let exact = |choice: &CodecChoice| choice.config().codec == "exact";
        let layers = config.layers.values().flat_map(|layer| [&layer.forward, &layer.backward]).flatten();
        let rows = [&config.forward, &config.backward, &config.parameters].into_iter().chain(layers);
        config.skip.is_some() || !rows.into_iter().all(exact)
    }

    /// How parameters travel.
    ///
    /// # Errors
    /// If their codec cannot be made.
    pub fn reducer(&self, seed: u64) -> Result<Reducer> {
        let choice = self.config.parameters.config();
        let codec = CodecRegistry::default().build(&choice.codec, &Options::default())?;
        Ok(Reducer::new(codec, choice.most_bits(), seed, self.has_feedback()))
    }
}
