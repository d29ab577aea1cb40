//! `[messages]`: which halo rows travel and how they become bytes.

use serde::{Deserialize, Serialize};

use super::one_of;
use crate::config::ramp::Controller;
use crate::error::{Result, TrainError};
use crate::selection;

/// `[messages]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagesConfig {
    /// The codec of features and activations.
    pub forward: CodecChoice,
    /// The codec of activation gradients.
    pub backward: CodecChoice,
    /// The codec of evaluation passes, or `none`: evaluate without the other workers' rows.
    pub evaluation: CodecChoice,
    /// The codec of parameter gradients, or of parameters where they are averaged.
    pub parameters: CodecChoice,
    /// Whether what a lossy codec of `parameters` drops is added to the next round's.
    pub error_feedback: bool,
    /// Which halo rows travel in a round of training.
    pub selection: SelectionChoice,
    /// Whether exchanges whose rows hardly moved are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip: Option<SkipConfig>,
    /// Where the assigner's costs of links come from: `shape` (of `transport.shape`, or else 1 Gbit/s and 1 ms; all links alike, so
    /// that their speed cancels) or `measured`.
    pub costs: String,
    /// The most that the whole run may send, such as `200 MB`; empty for no limit.
    pub budget: String,
    /// Codecs of single layers, by number: `{ 1 = { forward = "half" } }`.
    pub layers: std::collections::BTreeMap<String, LayerMessages>,
}

/// `messages.layers.N`
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
            forward: CodecChoice::exact(),
            backward: CodecChoice::exact(),
            evaluation: CodecChoice::exact(),
            parameters: CodecChoice::exact(),
            error_feedback: true,
            selection: SelectionChoice::Name("all".to_owned()),
            skip: None,
            costs: "shape".to_owned(),
            budget: String::new(),
            layers: Default::default(),
        }
    }
}

/// A codec, by its name or with options: `"half"`, `{ codec = "quantised", bits = 4 }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "toml::Value")]
pub enum CodecChoice {
    /// The name; options as they are by default.
    Name(String),
    /// Name and options.
    Table(Box<CodecConfig>),
}

/// A codec with its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecConfig {
    /// Its name.
    pub codec: String,
    /// `quantised`: bits of a value.
    #[serde(default)]
    pub bits: BitsChoice,
    /// `masked`: d / k, how many times fewer columns travel.
    #[serde(default = "ratio_default")]
    pub ratio: Controller,
    /// `masked`: the codec of the columns that travel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<String>,
    /// `masked`: `random` or `prefix`.
    #[serde(default = "columns_default")]
    pub columns: String,
    /// `masked`: whether columns that travel are multiplied by d / k.
    #[serde(default)]
    pub rescale: bool,
    /// `masked`: whether the last layer's messages travel whole.
    #[serde(default = "yes")]
    pub whole_last: bool,
    /// Whether rows that never change arrive bit by bit: new columns of a mask, finer bits of quantised rows.
    #[serde(default = "yes")]
    pub reveal: bool,
    /// `bits = "random"` and `"adaptive"`: rounds between two assignments; 0: a tenth of the stage's rounds.
    #[serde(default)]
    pub period: u32,
    /// `bits = "adaptive"`: what the variance weighs against the time, 0 to 1.
    #[serde(default = "half")]
    pub lambda: f64,
}

fn ratio_default() -> Controller {
    Controller::Fixed(4.0)
}

fn columns_default() -> String {
    "random".to_owned()
}

fn yes() -> bool {
    true
}

fn half() -> f64 {
    0.5
}

/// `bits`: a number, a controller, `random` or `adaptive`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BitsChoice {
    /// A number of bits that is the same in every row.
    Same(Controller),
    /// `random`: each message's own, drawn anew each period. `adaptive`: each message's own, chosen by the assigner.
    Named(String),
}

impl BitsChoice {
    /// The same bits with ramps over epochs.
    #[must_use]
    pub fn by_epochs(&self) -> BitsChoice {
        match self {
            BitsChoice::Same(bits) => BitsChoice::Same(bits.by_epochs()),
            named => named.clone(),
        }
    }
}

impl Default for BitsChoice {
    fn default() -> Self {
        BitsChoice::Same(Controller::Fixed(4.0))
    }
}

impl TryFrom<toml::Value> for CodecChoice {
    type Error = String;

    fn try_from(value: toml::Value) -> std::result::Result<Self, String> {
        match value {
            toml::Value::String(name) => Ok(CodecChoice::Name(name)),
            toml::Value::Table(table) => {
                let config = table.try_into().map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned());
                Ok(CodecChoice::Table(Box::new(config?)))
            }
            other => Err(format!("expected a codec's name or a table with `codec`, found {}", other.type_str())),
        }
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

    /// Name and options.
    pub fn config(&self) -> CodecConfig {
        match self {
            CodecChoice::Table(config) => config.as_ref().clone(),
            CodecChoice::Name(name) => CodecConfig {
                codec: name.clone(),
                bits: BitsChoice::default(),
                ratio: ratio_default(),
                inner: None,
                columns: columns_default(),
                rescale: false,
                whole_last: true,
                reveal: true,
                period: 0,
                lambda: half(),
            },
        }
    }

    fn check(&self, key: &str) -> Result<()> {
        let names: Vec<&str> = laconic_wire::CodecRegistry::default().names().collect();
        let config = self.config();
        one_of(key, &config.codec, &names)?;
        let refuse = |what: String| Err(TrainError::config(what));
        if let Some(inner) = &config.inner {
            let plain: Vec<&str> = names.into_iter().filter(|name| *name != "masked").collect();
            one_of(&format!("{key}.inner"), inner, &plain)?;
        }
        one_of(&format!("{key}.columns"), &config.columns, &["random", "prefix"])?;
        config.ratio.check(&format!("{key}.ratio"), 1.0, 1e9).map_err(TrainError::config)?;
        match &config.bits {
            BitsChoice::Named(name) => one_of(&format!("{key}.bits"), name, &["random", "adaptive"])?,
            BitsChoice::Same(Controller::Fixed(bits)) if !WIDTHS.iter().any(|width| f64::from(*width) == *bits) => {
                return refuse(format!("{key}.bits = {bits}: expected one of 1, 2, 4, 8, 16, 32, random, adaptive"));
            }
            BitsChoice::Same(bits) => bits.check(&format!("{key}.bits"), 1.0, 32.0).map_err(TrainError::config)?,
        }
        if !(0.0..=1.0).contains(&config.lambda) {
            return refuse(format!("{key}.lambda = {}: expected 0 to 1", config.lambda));
        }
        Ok(())
    }
}

/// The widths that quantisers know.
pub const WIDTHS: [u8; 6] = [1, 2, 4, 8, 16, 32];

/// `messages.selection`: a name, or a name with a rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "toml::Value")]
pub enum SelectionChoice {
    /// `all`, `boundary_sample`, `none`.
    Name(String),
    /// With its rate.
    Table(SelectionConfig),
}

/// A selection with its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelectionConfig {
    /// Its name.
    pub kind: String,
    /// `boundary_sample`: the share of boundary rows that travel in a round.
    #[serde(default = "rate_default")]
    pub rate: f64,
}

fn rate_default() -> f64 {
    0.1
}

impl TryFrom<toml::Value> for SelectionChoice {
    type Error = String;

    fn try_from(value: toml::Value) -> std::result::Result<Self, String> {
        match value {
            toml::Value::String(name) => Ok(SelectionChoice::Name(name)),
            toml::Value::Table(table) => table
                .try_into()
                .map(SelectionChoice::Table)
                .map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned()),
            other => Err(format!("expected a selection's name or a table with `kind`, found {}", other.type_str())),
        }
    }
}

impl SelectionChoice {
    /// Name and options.
    pub fn config(&self) -> SelectionConfig {
        match self {
            SelectionChoice::Table(config) => config.clone(),
            SelectionChoice::Name(kind) => SelectionConfig { kind: kind.clone(), rate: rate_default() },
        }
    }
}

/// `messages.skip` (SANCUS, Peng et al., 2022): an exchange on a link is skipped while its rows have hardly moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SkipConfig {
    /// The relative change ‖now − last sent‖ / ‖last sent‖ up to which a message is skipped.
    pub change: f64,
    /// Rounds after which a message is sent whatever the change.
    pub staleness: u32,
}

impl Default for SkipConfig {
    fn default() -> Self {
        SkipConfig { change: 0.05, staleness: 10 }
    }
}

impl MessagesConfig {
    pub(super) fn check(&self) -> Result<()> {
        self.forward.check("messages.forward")?;
        self.backward.check("messages.backward")?;
        if self.evaluation != CodecChoice::named("none") {
            self.evaluation.check("messages.evaluation")?;
        }
        self.parameters.check("messages.parameters")?;
        let whole = |choice: &CodecChoice| {
            let config = choice.config();
            config.codec != "masked" && matches!(config.bits, BitsChoice::Same(Controller::Fixed(_)))
        };
        for (key, choice) in [("evaluation", &self.evaluation), ("parameters", &self.parameters)] {
            if !whole(choice) {
                let what = "expected exact, half, or quantised with a fixed number of bits";
                return Err(TrainError::config(format!("messages.{key}: {what}")));
            }
        }
        for (layer, messages) in &self.layers {
            if layer.parse::<u16>().map(|number| number.to_string()).as_ref() != Ok(layer) {
                return Err(TrainError::config(format!("messages.layers.{layer}: expected the number of a layer")));
            }
            for (direction, choice) in [("forward", &messages.forward), ("backward", &messages.backward)] {
                if let Some(choice) = choice {
                    choice.check(&format!("messages.layers.{layer}.{direction}"))?;
                }
            }
        }
        for choice in self.choices() {
            let bits = match &choice.bits {
                BitsChoice::Same(bits) => Some(bits),
                BitsChoice::Named(_) => None,
            };
            if self.budget.is_empty() && [Some(&choice.ratio), bits].into_iter().flatten().any(Controller::lacks_limit)
            {
                let what = "clock = \"bytes\" needs a limit, or messages.budget";
                return Err(TrainError::config(format!("messages: {what}")));
            }
        }
        one_of("messages.costs", &self.costs, &["shape", "measured"])?;
        let selection = self.selection.config();
        one_of("messages.selection", &selection.kind, &selection::names())?;
        if !(0.0..=1.0).contains(&selection.rate) {
            return Err(TrainError::config(format!("messages.selection.rate = {}: expected 0 to 1", selection.rate)));
        }
        if let Some(skip) = self.skip {
            if !(skip.change.is_finite() && skip.change >= 0.0) {
                return Err(TrainError::config(format!("messages.skip.change = {}: expected 0 or more", skip.change)));
            }
            if selection.kind == "boundary_sample" {
                let what = "rows that are drawn anew in every round cannot stand in for one another";
                return Err(TrainError::config(format!("messages.skip with messages.selection: {what}")));
            }
        }
        self.budget_bytes().map(drop)
    }

    /// `messages.budget` in bytes.
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

impl MessagesConfig {
    /// Every codec of rows in training that is named.
    fn choices(&self) -> impl Iterator<Item = CodecConfig> {
        let layers = self.layers.values().flat_map(|layer| [layer.forward.as_ref(), layer.backward.as_ref()]);
        [Some(&self.forward), Some(&self.backward)].into_iter().chain(layers).flatten().map(CodecChoice::config)
    }

    /// Whether the assigner chooses bits of any message.
    pub fn is_adaptive(&self) -> bool {
        self.choices().any(|choice| choice.is_adaptive())
    }

    /// Whether a controller reads clocks that only show during a run.
    pub fn reads_clocks(&self) -> bool {
        self.choices().any(|choice| !choice.is_adaptive() && !choice.is_predictable())
    }

    /// Whether the bytes of a run follow from shapes alone; otherwise its prediction is a bound.
    pub fn is_predictable(&self) -> bool {
        self.skip.is_none() && self.choices().all(|choice| choice.is_predictable())
    }

    /// The same messages where nothing depends on what happens during a run: the most that they can be.
    pub fn at_most(&self) -> MessagesConfig {
        let most = |choice: &CodecChoice| CodecChoice::Table(Box::new(choice.config().at_most()));
        let layer = |layer: &LayerMessages| LayerMessages {
            forward: layer.forward.as_ref().map(most),
            backward: layer.backward.as_ref().map(most),
        };
        MessagesConfig {
            forward: most(&self.forward),
            backward: most(&self.backward),
            layers: self.layers.iter().map(|(number, messages)| (number.clone(), layer(messages))).collect(),
            ..self.clone()
        }
    }
}

/// A number of bytes with a decimal or binary unit.
fn parse_bytes(text: &str) -> Option<u64> {
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
