//! `[messages]`: which halo rows travel and how they become bytes, as it was typed.

use std::collections::BTreeMap;

use laconic_wire::codec::Options;
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ramp::Controller;
use crate::error::{Result, TrainError};

/// What stands in place of the table `[messages]` where all of it is left to the program.
pub(super) const AUTO: &str = "auto";

/// `[messages]`: which rows travel, and how they become bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(transform = or_auto)]
pub struct MessagesConfig {
    /// Try ways to train of which each sends more than the one before, and keep the cheapest that is as good as the
    /// best; messages = "auto" is the same (false).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auto: bool,
    /// With messages.auto, the validation figure with which it is content, such as 0.66 (none).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// Codec of features and activations: exact | half | quantised | codewords | low_rank | largest | top | entropy |
    /// grouped | masked, or { codec, … }; quantised: bits = 1 | 2 | 4 | 8 | 16 | 32 | random | adaptive or a ramp,
    /// period = rounds or a share of them such as 0.2, lambda, menu = widths that random and adaptive choose from (`[2,
    /// 4, 8]`); codewords: pieces = bytes of a row; low_rank: rank = number | classes, inner; largest: share of the
    /// values, sizes that are told apart; top: keep = values of a row, bits; entropy: inner, or one around another such
    /// as "grouped/quantised"; grouped: rows of a group, inner; masked: ratio = number or a ramp { law = fixed | linear
    /// | exponential | staircase | columns, clock = epoch | elapsed | bytes | gradient_norm (needs train.sync_every =
    /// 1), from, to, slope, steps, limit }, inner, columns = random | prefix, rescale, whole_last; quantised and
    /// masked: reveal.
    pub forward: CodecChoice,
    /// Codec of activation gradients, in the same words.
    pub backward: CodecChoice,
    /// Codec of evaluation passes, or none: without the others' rows.
    pub evaluation: CodecChoice,
    /// Inputs that cross once, for evaluations: whole, coded by messages.evaluation, or training's, which
    /// schedule.evaluator = workers does not keep.
    pub evaluation_inputs: EvaluationInputs,
    /// Codec of parameter gradients, averaged parameters or trainers' models: exact | half | { codec = quantised, bits
    /// } | { codec = low_rank, rank, inner } | { codec = entropy, inner } | { codec = largest, share, sizes } or {
    /// codec = masked, ratio, inner }, which need messages.error_feedback.
    pub parameters: CodecChoice,
    /// Add what a lossy messages.parameters drops to the next round's.
    pub error_feedback: bool,
    /// Rows that travel in a round: all | none | { kind = boundary_sample, rate = 0.1 } | vertex_cover, a row or a sum
    /// of several, whichever stands for more edges (gcn, gin, sage with mean).
    pub selection: SelectionChoice,
    /// { change = 0.7, staleness = 10 }: skip messages whose rows moved less, for so many rounds; dropout alone moves
    /// rows by half, without it 0.05 skips (never).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<SkipConfig>,
    /// The assigner's costs of links: shape (all links alike) | measured (each link, in a short profile; no run is like
    /// another).
    pub costs: CostsChoice,
    /// The most that the whole run may send, such as "200 MB", and with messages.auto all that are tried together;
    /// chooses codecs that are left at exact (none).
    pub budget: String,
    /// Codecs of single layers: messages.layers.N.forward, messages.layers.N.backward.
    pub layers: std::collections::BTreeMap<String, LayerMessages>,
}

/// The word that may stand in the table's place.
fn or_auto(schema: &mut Schema) {
    schema.insert("type".to_owned(), json!(["object", "string"]));
    schema.insert("if".to_owned(), json!({ "type": "string" }));
    schema.insert("then".to_owned(), json!({ "const": AUTO }));
}

/// `messages.layers.N`: what one layer has of its own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LayerMessages {
    /// The codec of the layer's features or activations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forward: Option<CodecChoice>,
    /// The codec of the layer's activation gradients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backward: Option<CodecChoice>,
}

impl Default for MessagesConfig {
    fn default() -> Self {
        MessagesConfig {
            auto: false,
            target: None,
            forward: CodecChoice::exact(),
            backward: CodecChoice::exact(),
            evaluation: CodecChoice::exact(),
            evaluation_inputs: EvaluationInputs::Whole,
            parameters: CodecChoice::exact(),
            error_feedback: true,
            selection: SelectionChoice::Name("all".to_owned()),
            skip: None,
            costs: CostsChoice::Shape,
            budget: String::new(),
            layers: Default::default(),
        }
    }
}

/// `messages.evaluation_inputs`: what evaluations know of the neighbours' inputs where these cross once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationInputs {
    /// Every row, through the codec of evaluations: fetched apart, once, where training's are rounded, masked, sampled
    /// or missing.
    Whole,
    /// What training knows of them, at no further bytes.
    Training,
}

/// `messages.costs`: where the assigner's costs of links come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostsChoice {
    /// Of `transport.shape`, or else 1 Gbit/s and 1 ms; all links alike, so that their speed cancels.
    Shape,
    /// Measured at the start, each link for itself; no run is like another.
    Measured,
}

/// A codec, by its name or with options: `"half"`, `{ codec = "quantised", bits = 4 }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "toml::Value")]
#[schemars(!try_from)]
pub enum CodecChoice {
    /// The name; options as they are by default.
    Name(String),
    /// Name and options.
    Table(Box<CodecConfig>),
}

/// A codec with the options that were given. What they default to stands in [`crate::messages::Coding`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CodecConfig {
    /// The codec's name in the registry.
    pub codec: String,
    /// Codecs that round: bits of a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<BitsChoice>,
    /// Masks: d / k, how many times fewer columns travel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Controller>,
    /// Masks: whether the last layer's messages travel whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_last: Option<bool>,
    /// Whether rows that never change arrive bit by bit: new columns of a mask, finer bits of rounded rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reveal: Option<bool>,
    /// `bits = "random"` and `"adaptive"`: from one assignment to the next; a tenth of the stage's rounds otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// `bits = "adaptive"`: what the variance weighs against the time, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    /// `bits = "random"` and `"adaptive"`: the widths to choose from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub menu: Option<Vec<u8>>,
    /// What the codec itself reads, such as a mask's `inner`, `columns` and `rescale`.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub options: Options,
}

/// `period`: from one assignment of bits to the next.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Period {
    /// So many rounds; 0: a tenth of the stage's.
    Rounds(u32),
    /// A share of the stage's rounds, above 0 and up to 1.
    Share(f64),
}

impl Default for Period {
    fn default() -> Period {
        Period::Rounds(0)
    }
}

impl Period {
    /// Rounds of it in a stage of so many.
    pub fn of(self, rounds: u32) -> u32 {
        match self {
            Period::Rounds(0) => rounds.div_ceil(10).max(1),
            Period::Rounds(period) => period,
            Period::Share(share) => ((f64::from(rounds) * share).round() as u32).max(1),
        }
    }
}

/// `bits`: a number, a controller, `random` or `adaptive`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BitsChoice {
    /// A number of bits that is the same in every row.
    Same(Controller),
    /// Each message's own.
    Each(EachMessage),
}

/// Who chooses the bits of each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EachMessage {
    /// Drawn anew each period.
    Random,
    /// Chosen by the assigner.
    Adaptive,
}

impl TryFrom<toml::Value> for CodecChoice {
    type Error = String;

    fn try_from(value: toml::Value) -> std::result::Result<Self, String> {
        match value {
            toml::Value::String(name) => Ok(CodecChoice::Name(name)),
            toml::Value::Table(table) => {
                if let Some(bits) = table.get("bits") {
                    check_bits(bits)?;
                }
                if let Some(period) = table.get("period") {
                    check_period(period)?;
                }
                Ok(CodecChoice::Table(Box::new(table.try_into().map_err(one_line)?)))
            }
            other => Err(format!("expected a codec's name or a table with `codec`, found {}", other.type_str())),
        }
    }
}

fn one_line(error: toml::de::Error) -> String {
    error.to_string().trim_end().to_owned()
}

/// Says what is wrong with `bits` in words that the untagged enum would lose.
fn check_bits(bits: &toml::Value) -> std::result::Result<(), String> {
    match bits {
        toml::Value::String(name) if !["random", "adaptive"].contains(&name.as_str()) => {
            Err(format!("bits = {name:?}: expected one of 1, 2, 4, 8, 16, 32, random, adaptive"))
        }
        toml::Value::Table(table) => table.clone().try_into::<Controller>().map(drop).map_err(one_line),
        _ => Ok(()),
    }
}

/// Says what is wrong with `period`, likewise.
fn check_period(period: &toml::Value) -> std::result::Result<(), String> {
    match period {
        toml::Value::Integer(rounds) if u32::try_from(*rounds).is_ok() => Ok(()),
        toml::Value::Float(share) if *share > 0.0 && *share <= 1.0 => Ok(()),
        other => Err(format!(
            "period = {other}: expected a whole number of rounds, or a share of the stage's rounds such as 0.2"
        )),
    }
}

impl CodecChoice {
    /// The codec that loses nothing.
    pub fn exact() -> CodecChoice {
        CodecChoice::named("exact")
    }

    /// The codec of this name with its default options.
    pub fn named(name: &str) -> CodecChoice {
        CodecChoice::Name(name.to_owned())
    }

    /// The same codec, where an option that is "classes" is so many: the outputs of the last layer.
    #[must_use]
    pub fn with_classes(&self, classes: usize) -> CodecChoice {
        let mut config = self.config();
        let named = |(name, _): &(&str, _)| config.options.text(name) == Ok(Some("classes"));
        let names: Vec<String> = config.options.iter().filter(named).map(|(name, _)| name.to_owned()).collect();
        if names.is_empty() {
            return self.clone();
        }
        for name in names {
            config.options = config.options.with(&name, classes as f64);
        }
        CodecChoice::Table(Box::new(config))
    }

    /// Name and options.
    pub fn config(&self) -> CodecConfig {
        match self {
            CodecChoice::Table(config) => config.as_ref().clone(),
            CodecChoice::Name(name) => CodecConfig { codec: name.clone(), ..CodecConfig::default() },
        }
    }
}

/// The widths that quantisers know, in bits.
pub const WIDTHS: [u8; 6] = [1, 2, 4, 8, 16, 32];

/// `messages.selection`: a name, or a name with options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, try_from = "toml::Value")]
#[schemars(!try_from)]
pub enum SelectionChoice {
    /// `all`, `boundary_sample`, `vertex_cover`, `none`.
    Name(String),
    /// With its options.
    Table(SelectionConfig),
}

/// A selection with the options that were given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SelectionConfig {
    /// The selection's name in the registry.
    pub kind: String,
    /// What the selection reads, such as `rate`: the share of boundary rows that travel in a round.
    #[serde(flatten)]
    #[schemars(skip)]
    pub options: Options,
}

impl TryFrom<toml::Value> for SelectionChoice {
    type Error = String;

    fn try_from(value: toml::Value) -> std::result::Result<Self, String> {
        match value {
            toml::Value::String(name) => Ok(SelectionChoice::Name(name)),
            toml::Value::Table(table) => table.try_into().map(SelectionChoice::Table).map_err(one_line),
            other => Err(format!("expected a selection's name or a table with `kind`, found {}", other.type_str())),
        }
    }
}

impl SelectionChoice {
    /// Name and options.
    pub fn config(&self) -> SelectionConfig {
        match self {
            SelectionChoice::Table(config) => config.clone(),
            SelectionChoice::Name(kind) => SelectionConfig { kind: kind.clone(), options: Options::default() },
        }
    }
}

/// `messages.skip` (SANCUS, Peng et al., 2022): an exchange on a link is skipped while its rows have hardly moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SkipConfig {
    /// The relative change ‖now − last sent‖ / ‖last sent‖ up to which a message is skipped. Dropout alone moves rows
    /// by half and more.
    pub change: f64,
    /// Rounds after which a message is sent whatever the change.
    pub staleness: u32,
}

impl Default for SkipConfig {
    fn default() -> Self {
        SkipConfig { change: 0.7, staleness: 10 }
    }
}

impl CodecChoice {
    /// The same choice, where ramps over bytes that state no limit run to this many.
    #[must_use]
    fn with_limit(&self, bytes: f64) -> CodecChoice {
        let CodecChoice::Table(config) = self else { return self.clone() };
        let bits = match &config.bits {
            Some(BitsChoice::Same(bits)) => Some(BitsChoice::Same(bits.with_limit(bytes))),
            other => other.clone(),
        };
        let ratio = config.ratio.map(|ratio| ratio.with_limit(bytes));
        CodecChoice::Table(Box::new(CodecConfig { bits, ratio, ..config.as_ref().clone() }))
    }
}

impl MessagesConfig {
    /// The same messages, where ramps over bytes that state no limit run to this many.
    #[must_use]
    pub fn with_limit(&self, bytes: f64) -> MessagesConfig {
        let own = |choice: &Option<CodecChoice>| choice.as_ref().map(|choice| choice.with_limit(bytes));
        let of_layer =
            |layer: &LayerMessages| LayerMessages { forward: own(&layer.forward), backward: own(&layer.backward) };
        MessagesConfig {
            forward: self.forward.with_limit(bytes),
            backward: self.backward.with_limit(bytes),
            layers: self.layers.iter().map(|(number, layer)| (number.clone(), of_layer(layer))).collect(),
            ..self.clone()
        }
    }

    /// Whether nothing is asked for but what `messages.auto` reads.
    pub(crate) fn leave_all_to_auto(&self) -> bool {
        let MessagesConfig { auto, target, budget, .. } = self.clone();
        *self == MessagesConfig { auto, target, budget, ..MessagesConfig::default() }
    }

    /// `messages.budget` in bytes.
    ///
    /// # Errors
    /// If it is no number of bytes.
    pub fn budget_bytes(&self) -> Result<Option<u64>> {
        if self.budget.is_empty() {
            return Ok(None);
        }
        parse_bytes(&self.budget).map(Some).ok_or_else(|| {
            let what = "expected bytes such as \"200 MB\", \"1.5 GB\" or \"64 MiB\"";
            TrainError::config(format!("messages.budget = {:?}: {what}", self.budget))
        })
    }
}

/// A number of bytes with a decimal or binary unit.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (text[..digits].parse::<f64>().ok()?, text[digits..].trim());
    let scale = match unit {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * scale;
    (1.0..1e18).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_with_their_units() {
        for (text, bytes) in
            [("200 MB", 200_000_000), ("1.5GB", 1_500_000_000), ("64 MiB", 67_108_864), ("12", 12), ("3 kB", 3000)]
        {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "MB", "-3 MB", "1 PB", "0", "1e3 MB", "1.2.3 MB", "nan", "inf B"] {
            assert_eq!(parse_bytes(text), None, "{text}");
        }
    }
}
