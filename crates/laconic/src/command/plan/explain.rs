//! `laconic plan --explain`: where each byte goes, and what a few changes would make of it.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;
use laconic_train::auto::{CutGraph, link_of, seconds_on};
use laconic_train::config::ramp::Controller;
use laconic_train::config::{BitsChoice, CodecChoice, CodecConfig, Config};
use laconic_train::forecast::contents::{Item, What};
use laconic_train::run::Data;
use laconic_train::{Costs, Members};
use laconic_wire::codec::LowRank;
use laconic_wire::{Content, Count, FramePurpose};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bytes::{human_bytes, plural, separated};

/// `explained`: where bytes go, and what a few changes would make of them.
#[derive(Serialize, JsonSchema)]
pub struct Explained {
    /// The link that seconds are of: `transport.shape`, or one of 20 Mbit/s and 80 ms.
    link: String,
    /// Seconds on it, if nothing overlaps.
    seconds_on_link: f64,
    /// What all workers send together, by what it is; comes to `bytes`.
    goes: Vec<Goes>,
    /// What a few changes would make of it, each alone.
    changes: Vec<Change>,
}

/// Bytes of one sort.
#[derive(Serialize, JsonSchema)]
struct Goes {
    /// `start_up`, `told_once`, `rows`, `parameters` or `evaluation`.
    purpose: &'static str,
    /// The name of what leaves, as in `leaves`.
    what: String,
    /// (rows) The layer that reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    layer: Option<u16>,
    /// How many frames.
    frames: u64,
    /// Bytes of all of them.
    bytes: u64,
    /// Their share of all bytes.
    share: f64,
}

/// A change of the configuration.
#[derive(Serialize, JsonSchema)]
struct Change {
    /// What it is, in a few words.
    change: &'static str,
    /// The keys that it sets.
    set: Vec<String>,
    /// (where it is possible) Bytes that all workers would send.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// (where it is possible) Seconds on the link, if nothing overlaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_on_link: Option<f64>,
    /// (where it is not) Why it is not possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

impl Explained {
    /// What is said of a run.
    pub fn of(costs: &Costs, config: &Config) -> Result<Explained> {
        let (members, link) = (Members::default(), link_of(config));
        let graph = CutGraph::open(&members, config, Data::Configured)?;
        let ask = |set: &[String]| -> laconic_train::Result<(u64, f64)> {
            let costs = graph.costs(&members, &members.with_keys(config, set)?)?;
            Ok((costs.bytes(), seconds_on(link, &costs)?))
        };
        let changes = changes(config, costs).into_iter().map(|(change, set)| {
            let (bytes, seconds, why_not) = match ask(&set) {
                Ok((bytes, seconds)) => (Some(bytes), Some(seconds), None),
                Err(error) => (None, None, Some(error.to_string().replacen("configuration: ", "", 1))),
            };
            Change { change, set, bytes, seconds_on_link: seconds, why_not }
        });
        Ok(Explained {
            link: link.to_owned(),
            seconds_on_link: seconds_on(link, costs)?,
            goes: goes(costs),
            changes: changes.collect(),
        })
    }

    /// The same for people.
    pub fn text(&self, total: u64) -> String {
        let mut text = "where bytes go:\n".to_owned();
        for Goes { purpose, what, layer, frames, bytes, share } in &self.goes {
            let layer = layer.map(|layer| format!(", layer {layer}")).unwrap_or_default();
            let (what, bytes) = (format!("{}{layer}", what.replace('_', " ")), human_bytes(*bytes));
            let frames = plural(*frames, "frame");
            let _ = writeln!(
                text,
                "  {:<11} {what:<32} {bytes:>11} {:>5.1} %  in {frames}",
                purpose.replace('_', " "),
                100.0 * share
            );
        }
        let _ = writeln!(text, "what a change would make of it ({}: {:.1} s now):", self.link, self.seconds_on_link);
        for Change { change, set, bytes, seconds_on_link, why_not } in &self.changes {
            let _ = match (bytes, seconds_on_link) {
                (Some(bytes), Some(seconds)) => {
                    let times = total as f64 / (*bytes).max(1) as f64;
                    writeln!(text, "  {change:<42} {:>11} {times:>8.1}x fewer {seconds:>9.1} s", human_bytes(*bytes))
                }
                _ => writeln!(text, "  {change:<42} not here: {}", why_not.as_deref().unwrap_or_default()),
            };
            let sets: Vec<String> = set.iter().map(|key| format!("--set '{key}'")).collect();
            let _ = writeln!(text, "    {}", sets.join(" "));
        }
        let _ = write!(text, "{} bytes in all; fewer bytes may cost accuracy, which no plan knows", separated(total));
        text
    }
}

/// What something is for, in the words of [`Goes::purpose`].
fn purpose(item: &Item) -> &'static str {
    match item.what {
        _ if item.purpose() == FramePurpose::Evaluation => "evaluation",
        What::Input(_) => "told_once",
        what => match what.content() {
            Content::ParameterGradients | Content::Models => "parameters",
            Content::Ids | Content::Agreement | Content::ClassCounts if item.purpose() == FramePurpose::StartUp => {
                "start_up"
            }
            Content::Agreement | Content::ClassCounts | Content::Figures => "start_up",
            _ => "rows",
        },
    }
}

fn goes(costs: &Costs) -> Vec<Goes> {
    let mut sums: BTreeMap<(&'static str, String, u16), Count> = BTreeMap::new();
    for leaving in costs.leaves.iter().flatten() {
        let key = (purpose(&leaving.item), leaving.item.what.name(), leaving.item.layer);
        *sums.entry(key).or_default() += leaving.count;
    }
    let total = costs.bytes().max(1) as f64;
    let line = |((purpose, what, layer), count): ((_, _, u16), Count)| {
        let (frames, bytes) = (count.frames, count.framed);
        Goes { purpose, what, layer: (layer > 0).then_some(layer), frames, bytes, share: bytes as f64 / total }
    };
    let mut goes: Vec<Goes> = sums.into_iter().map(line).collect();
    goes.sort_by_key(|goes| std::cmp::Reverse(goes.bytes));
    goes
}

/// A few settings next to these.
fn changes(config: &Config, costs: &Costs) -> Vec<(&'static str, Vec<String>)> {
    let (messages, train) = (&config.messages, &config.train);
    let sends = |what: What| costs.leaves.iter().flatten().any(|leaving| leaving.item.what == what);
    let mut changes = Vec::new();
    let rows = [("forward", &messages.forward, true), ("backward", &messages.backward, sends(What::RowGradients))];
    let rows: Vec<String> = rows
        .into_iter()
        .filter(|(.., is_sent)| *is_sent)
        .filter_map(|(key, codec, _)| Some(format!("messages.{key}={}", coarser(codec)?)))
        .collect();
    changes.push(("rows in fewer bits", rows));
    let parameters = coarser(&messages.parameters).map(|codec| format!("messages.parameters={codec}"));
    changes.push(("parameters in fewer bits", parameters.into_iter().collect()));
    if messages.parameters.config().codec != LowRank::KIND.name {
        let low = "{ codec = \"low_rank\", rank = \"classes\", inner = \"quantised\", bits = 8 }";
        changes.push(("parameters of low rank", vec![format!("messages.parameters={low}")]));
    }
    let every = |key: &str, every: u32, times: u32| vec![format!("{key}={}", every.saturating_mul(times))];
    if train.sync_every < train.epochs {
        changes.push(("workers agree a quarter as often", every("train.sync_every", train.sync_every, 4)));
    }
    if train.eval_every > 0 && train.eval_every < train.epochs {
        changes.push(("a tenth of the evaluations", every("train.eval_every", train.eval_every, 10)));
    }
    let scores = ["schedule.kind=lazy", "schedule.start=mlp", "schedule.hand_on=scores"].map(str::to_owned);
    changes.push(("class scores once, a layer at a time", scores.to_vec()));
    for (change, told) in [
        ("labels told once in place of rows", &["labels", "codewords"][..]),
        ("neighbours' features told once", &["propagated"]),
    ] {
        let added = told.iter().map(|name| (*name).to_owned()).filter(|name| !config.model.inputs.contains(name));
        let inputs: Vec<String> = config.model.inputs.iter().cloned().chain(added).collect();
        if inputs != config.model.inputs {
            changes.push((change, vec!["model.arch=mlp".to_owned(), format!("model.inputs={inputs:?}")]));
        }
    }
    changes.retain(|(_, set)| !set.is_empty());
    changes
}

/// The codec with fewer bits, as a value of TOML; `None` where it is of another sort.
fn coarser(codec: &CodecChoice) -> Option<String> {
    let CodecConfig { codec, bits, .. } = codec.config();
    let bits = match (codec.as_str(), bits) {
        ("exact" | "half", _) => 8,
        ("quantised", None) => 4,
        ("quantised", Some(BitsChoice::Same(Controller::Fixed(bits)))) if bits >= 2.0 => (bits / 2.0) as u32,
        _ => return None,
    };
    Some(format!("{{ codec = \"quantised\", bits = {bits} }}"))
}
