//! The ladder: what each way would send, sorted.

use std::collections::BTreeSet;

use laconic_wire::{Carrier, Content, LinkShape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::graph::CutGraph;
use super::rule::Limits;
use crate::config::{Config, MessagesConfig};
use crate::error::{Result, TrainError};
use crate::forecast::costs::Costs;
use crate::forecast::load::load;
use crate::plan::Members;
use crate::record::tries::AutoSummary;

/// The ways of `messages = "auto"`, as they are written down, and those of `schedule.hand_on = "auto"`.
const OF_MESSAGES: &str = include_str!("../../../../examples/methods/auto.toml");
const OF_HAND_ON: &str = include_str!("../../../../examples/methods/hand_on.toml");

/// What a way sets for sums in the place of rows, where these take fewer bytes.
const SUMS: &str = "messages.selection=vertex_cover";

/// From which label skew on parts are unlike each other.
const UNLIKE: f64 = 0.1;

/// What a way has that takes one mean of its 100 rounds.
const ONE_MEAN: &str = "train.sync_every=100";

/// The link whose seconds are said where the configuration names none.
const LINK: &str = "wan-20mbit-80ms";

/// `auto.json`, and what `laconic plan` prints of `messages = "auto"` and `schedule.hand_on = "auto"`: ways to train by
/// what they send.
#[derive(Serialize, JsonSchema)]
pub struct Ladder {
    /// How many workers there are.
    pub workers: u32,
    /// Bytes of all rungs together, as predicted.
    pub bytes: u64,
    /// (`messages.budget`) The most bytes that all tries together may send.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// (`messages.target`) The validation figure with which it is content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<f64>,
    /// The metric of validation nodes that decides.
    pub metric: String,
    /// How many validation nodes there are.
    pub validation_nodes: u64,
    /// The link that seconds are of: `transport.shape`, or one of 20 Mbit/s and 80 ms.
    pub link: String,
    /// The rungs, the cheapest first.
    pub rungs: Vec<Rung>,
    /// Ways that these data or this policy do not allow.
    pub left_out: Vec<LeftOut>,
    /// (after a run) What was tried, and why no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AutoSummary>,
    /// Whether a node may have several classes.
    #[serde(skip)]
    pub(super) is_sets: bool,
    /// The number of nodes that figures are shares of, and what bounds the search.
    #[serde(skip)]
    pub(super) limits: Limits,
}

/// One way to train.
#[derive(Serialize, JsonSchema)]
pub struct Rung {
    /// What it is called.
    pub name: String,
    /// The keys that it sets.
    pub set: Vec<String>,
    /// Bytes that all workers will send, framing included.
    pub predicted: u64,
    /// Whether it may send less, because sizes depend on what happens during the run.
    pub is_bound: bool,
    /// Seconds on the link, if nothing overlaps.
    pub seconds_on_link: f64,
    /// What leaves workers, in the words of `policy.deny`, but for reports and digests.
    pub leaves: Vec<String>,
    /// (tried) Bytes that all workers sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<u64>,
    /// (tried, and defined) The validation figure of its best round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// (tried, with a folder) Where its run is: in this folder, or below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// Whether it was not tried since its model lacks an input by which another one was better.
    pub passed_over: bool,
    /// What its model is told besides own features, a bit an input.
    #[serde(skip)]
    pub(super) told: u64,
    /// Whether its schedule passes labels on.
    #[serde(skip)]
    pub(super) passes_on: bool,
    /// The whole run.
    #[serde(skip)]
    pub config: Config,
}

/// A way that is not tried.
#[derive(Serialize, JsonSchema)]
pub struct LeftOut {
    /// What it is called.
    pub name: String,
    /// Why it is not.
    pub why: String,
}

/// The file of ways.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ways {
    method: Vec<Way>,
}

/// A name, and keys on top of the user's.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    name: String,
    set: Vec<String>,
}

/// The link whose seconds are said: that of `transport.shape`, or one between continents.
pub fn link_of(config: &Config) -> &str {
    Some(config.transport.shape.as_str()).filter(|shape| !shape.is_empty()).unwrap_or(LINK)
}

/// Seconds of a run on a link, if nothing overlaps.
///
/// # Errors
/// If there is no such link.
pub fn seconds_on(link: &str, costs: &Costs) -> Result<f64> {
    let shape: LinkShape = link.parse()?;
    let [seconds, _] = shape.seconds(&load(costs.workers.iter().map(|(_, ledger, _)| ledger)), Carrier::Nothing);
    Ok(seconds)
}

/// What leaves workers, in the words of `policy.deny`, but for reports and digests.
pub fn what_leaves(costs: &Costs) -> Vec<String> {
    let contents = costs.leaves.iter().flatten().map(|leaving| leaving.item.what.content());
    let contents: BTreeSet<Content> = contents.filter(|content| *content != Content::Agreement).collect();
    contents.into_iter().map(|content| content.name().to_owned()).collect()
}

impl Ladder {
    /// The ladder of a configuration with `messages.auto`.
    ///
    /// # Errors
    /// If there is nothing to decide by, no way is possible, or the budget is not enough for one.
    pub fn of(members: &Members, config: &Config, graph: &CutGraph) -> Result<Ladder> {
        members.check(config)?;
        let (by, file) = (config.several_by(), if config.messages.auto { OF_MESSAGES } else { OF_HAND_ON });
        let ways: Ways = toml::from_str(file).map_err(|error| TrainError::config(format!("{by}: {error}")))?;
        refuse_undecidable(members, config, graph)?;
        let link = link_of(config);
        let (mut rungs, mut left_out, mut metric) = (Vec::new(), Vec::new(), String::new());
        for Way { name, set } in of_parts(ways.method, config, graph) {
            match Rung::of((members, config, graph), &name, set) {
                Ok((rung, measured)) => {
                    metric = measured;
                    rungs.push(rung);
                }
                Err(error) => {
                    left_out.push(LeftOut { name, why: error.to_string().replace("configuration: ", "") });
                }
            }
        }
        rungs.sort_by_key(|rung| rung.predicted);
        let Some(first) = rungs.first() else {
            let why: Vec<String> = left_out.iter().map(|left| format!("{}: {}", left.name, left.why)).collect();
            let what = "none of its ways is possible here";
            return Err(TrainError::config(format!("{by}: {what}\n  {}", why.join("\n  "))));
        };
        let (budget, target) = (config.messages.budget_bytes()?, config.messages.target);
        if let Some(budget) = budget.filter(|budget| first.predicted > *budget) {
            let (name, needs) = (&first.name, first.predicted);
            let what = format!("{budget} bytes are not enough; the cheapest way ({name}) needs {needs}: raise it");
            return Err(TrainError::config(format!("messages.budget: {what}")));
        }
        Ok(Ladder {
            workers: graph.workers,
            bytes: rungs.iter().map(|rung| rung.predicted).sum(),
            budget,
            target,
            metric,
            validation_nodes: graph.validation_nodes,
            link: link.to_owned(),
            rungs,
            left_out,
            outcome: None,
            is_sets: graph.is_sets,
            limits: Limits { budget, target, nodes: graph.validation_nodes, constant: None },
        })
    }
}

/// The ways as these parts need them. Where classes differ between parts, models learn different things, and one mean
/// of them is too few: ways with one take four, and those are not tried twice.
fn of_parts(ways: Vec<Way>, config: &Config, graph: &CutGraph) -> Vec<Way> {
    if !config.messages.auto || graph.label_skew.is_none_or(|skew| skew < UNLIKE) {
        return ways;
    }
    let mut of_parts: Vec<Way> = Vec::new();
    for way in ways.into_iter().map(Way::with_four_means) {
        if of_parts.iter().all(|known| known.name != way.name) {
            of_parts.push(way);
        }
    }
    of_parts
}

impl Way {
    fn with_four_means(self) -> Way {
        if !self.set.iter().any(|key| key == ONE_MEAN) {
            return self;
        }
        let oftener = |key: String| match key.split_once('=') {
            Some((of @ ("train.sync_every" | "train.eval_every"), "100")) => format!("{of}=25"),
            Some(("messages.parameters", codec)) => {
                format!("messages.parameters={}", codec.replace("bits = 4", "bits = 8"))
            }
            _ => key,
        };
        Way { name: self.name.replace("one mean", "four means"), set: self.set.into_iter().map(oftener).collect() }
    }
}

/// Refuses runs of which validation nodes cannot say which is better, or in which nothing is sent.
fn refuse_undecidable(members: &Members, config: &Config, graph: &CutGraph) -> Result<()> {
    let refuse = |what: &str| Err(TrainError::config(format!("{}: {what}", config.several_by())));
    if !members.task(config)?.of_labels {
        return refuse("it compares figures of nodes, and task.kind learns links");
    }
    if graph.validation_nodes == 0 {
        return refuse("it compares validation figures, and the data have no validation nodes; data.split makes some");
    }
    match graph.workers {
        1 => refuse("one worker sends nothing; partition.parts = 4 cuts the graph"),
        _ => Ok(()),
    }
}

/// What a model is told besides own features, a bit an input.
fn told(members: &Members, config: &Config) -> u64 {
    let bits = members.inputs.iter().zip(0..u64::BITS);
    let bits = bits.filter(|(kind, _)| config.model.inputs.iter().any(|name| name == kind.name));
    bits.fold(0, |told, (_, bit)| told | 1 << bit)
}

impl LeftOut {
    /// The same as a sentence.
    pub fn said(&self) -> String {
        format!("not tried: {}: {}", self.name, self.why)
    }
}

impl Rung {
    /// What is said when it begins: which of how many it is.
    pub fn said(&self, [number, all]: [usize; 2]) -> String {
        let most = if self.is_bound { "at most " } else { "" };
        format!("way {number} of {all}: {}, {most}{} bytes", self.name, self.predicted)
    }

    /// The rung, and the metric that it is judged by. Where messages are the program's to choose, some rows go as sums,
    /// if that is possible and takes fewer bytes: these stand for the same edges, so the way stays the same.
    fn of(asked: (&Members, &Config, &CutGraph), name: &str, set: Vec<String>) -> Result<(Rung, String)> {
        let in_sums = set.iter().cloned().chain([SUMS.to_owned()]).collect();
        let (rung, metric) = Rung::as_set(asked, name, set)?;
        let in_sums = asked.1.messages.auto.then(|| Rung::as_set(asked, name, in_sums).ok()).flatten();
        let fewer = in_sums.filter(|(in_sums, _)| in_sums.predicted < rung.predicted);
        Ok(fewer.unwrap_or((rung, metric)))
    }

    fn as_set(
        (members, config, graph): (&Members, &Config, &CutGraph),
        name: &str,
        set: Vec<String>,
    ) -> Result<(Rung, String)> {
        let mut base = config.clone();
        match base.messages.auto {
            true => base.messages = MessagesConfig::default(),
            // Target and budget are those of the search.
            false => {
                base.schedule.hand_on = None;
                (base.messages.target, base.messages.budget) = (None, String::new());
            }
        }
        let config = members.with_keys(&base, &set)?;
        let costs = graph.costs(members, &config)?;
        if let Some(list) = config.policy.list()? {
            let mut all = costs.leaves.iter().flatten();
            if let Some(tag) = all.find_map(|leaving| leaving.denied_by(&list)) {
                return Err(TrainError::config(format!("policy.deny has {}", tag.content.name())));
            }
        }
        let metric = costs.plan.metrics.first().map(|metric| metric.name().to_owned());
        let metric = metric.ok_or_else(|| TrainError::config("nothing is measured"))?;
        let rung = Rung {
            name: name.to_owned(),
            set,
            predicted: costs.bytes(),
            is_bound: costs.is_bound,
            seconds_on_link: seconds_on(link_of(&config), &costs)?,
            leaves: what_leaves(&costs),
            sent: None,
            validation: None,
            folder: None,
            passed_over: false,
            told: told(members, &config),
            passes_on: members.schedule(&config)?.propagates.is_some(),
            config,
        };
        Ok((rung, metric))
    }
}
