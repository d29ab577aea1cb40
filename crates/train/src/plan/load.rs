//! Reading and writing configurations: the file, `--set key=value`, and keys that nothing reads.

use std::io::ErrorKind;
use std::path::Path;

use laconic_graph::part::{Provenance, open_meta};
use laconic_graph::read::is_part_folder;

use laconic_nn::optimiser::{RateSchedule, RateSpec};

use super::members::{Axis, Members};
use crate::config::ramp::Clock;
use crate::config::typed::{malformed, misfit};
use crate::config::{Config, MeansEvaluator, TransportKind, apply, culprit, refuse_unknown, write_out};
use crate::error::{Result, TrainError};
use crate::messages::Messages;

/// Larger configuration files are refused.
const BYTES_MAX: u64 = 1 << 20;

/// What an error begins with that is about an override and not about the file.
const SET: &str = "--set ";
const UNSET: &str = "--unset ";

impl Config {
    /// Reads a configuration file and applies overrides of the form `key=value`.
    ///
    /// # Errors
    /// If the file cannot be read, a key is unknown or read by nobody, or a value makes no sense.
    pub fn load(path: &Path, overrides: &[String]) -> Result<Config> {
        Members::default().load(path, overrides)
    }

    /// Reads a configuration from its text and applies overrides.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, overrides: &[String]) -> Result<Config> {
        Members::default().parse(text, overrides)
    }

    /// Checks everything that does not depend on data.
    ///
    /// # Errors
    /// If a name is unknown or a value makes no sense.
    pub fn check(&self) -> Result<()> {
        Members::default().check(self)
    }

    /// The configuration as TOML.
    ///
    /// # Errors
    /// If a value cannot be written as TOML.
    pub fn to_toml(&self) -> Result<String> {
        Members::default().to_toml(self)
    }

    /// The configuration with what the number of workers and the model decide filled in, so that the run can be
    /// repeated from it.
    ///
    /// # Errors
    /// If there is no such layer.
    pub fn resolved(&self, parts: u32) -> Result<Config> {
        Members::default().resolved(self, parts)
    }
}

impl Members {
    /// A run that goes on from one of `before`, where it ends elsewhere: rates and ramps that follow how much of a run
    /// is over go on towards the end that they had.
    ///
    /// # Errors
    /// If the messages name a codec that there is not.
    pub(super) fn keeping_horizon(&self, config: Config, before: &Config) -> Result<Config> {
        let rate = RateSchedule { kind: self.rate(&config)?, spec: RateSpec { step: 1, factor: 1.0 } };
        let messages = Messages::of(&config.messages, &self.codecs, &[])?;
        let runs_towards = rate.follows_the_share() || messages.follow(Clock::Epoch) || messages.are_adaptive();
        Ok(if runs_towards { config.keeping_horizon(before) } else { config })
    }

    /// Reads a configuration file and applies overrides of the form `key=value`, or `!key`, which takes a key of the
    /// file out.
    ///
    /// # Errors
    /// If the file cannot be read, a key is unknown or read by nobody, or a value makes no sense.
    pub fn load(&self, path: &Path, overrides: &[String]) -> Result<Config> {
        self.load_and_tell(path, overrides).map(|(config, _)| config)
    }

    /// The same, and where files were found that are not where they were named, a line each.
    ///
    /// # Errors
    /// As [`Members::load`].
    pub fn load_and_tell(&self, path: &Path, overrides: &[String]) -> Result<(Config, Vec<String>)> {
        let bytes = laconic_graph::limits::read_file(path, BYTES_MAX).map_err(|source| match source.kind() {
            ErrorKind::FileTooLarge | ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
                TrainError::config(format!("{}: {source}", path.display()))
            }
            _ => TrainError::io(path, source),
        })?;
        let text = String::from_utf8(bytes).map_err(|_| TrainError::file(path, "expected text in UTF-8"))?;
        let mut config = self.parse(&text, overrides).map_err(|error| match error {
            TrainError::Config(what) if what.starts_with(SET) || what.starts_with(UNSET) => TrainError::Config(what),
            error @ TrainError::NotAllowed { .. } => error,
            error => TrainError::config(format!("{}: {error}", path.display()).replace("configuration: ", "")),
        })?;
        if config.out.dir.as_os_str().is_empty() {
            config.out.dir = Path::new("runs").join(path.file_stem().unwrap_or_default());
        }
        let told = locate(&mut config, path.parent().unwrap_or(Path::new("")))?;
        adopt_provenance(self, &mut config);
        Ok((config, told))
    }

    /// Reads a configuration from its text and applies overrides.
    ///
    /// # Errors
    /// As [`Members::load`].
    pub fn parse(&self, text: &str, overrides: &[String]) -> Result<Config> {
        let mut table: toml::Table = text.parse().map_err(|error| malformed(text, &error))?;
        write_out(&mut table);
        let file = table.clone();
        for text in overrides {
            apply(&mut table, text)?;
        }
        take_back(&mut table, &file, overrides);
        self.of_table(table, overrides).map_err(|error| match culprit(&error, overrides) {
            Some(set) => TrainError::config(format!("{SET}{set}: {error}").replace("configuration: ", "")),
            None => error,
        })
    }

    fn of_table(&self, table: toml::Table, overrides: &[String]) -> Result<Config> {
        let axes = self.axes();
        let foreign = axes.iter().flat_map(|axis| axis.members.iter().map(move |(_, options)| (axis.section, options)));
        let foreign = foreign.flat_map(|(section, options)| options.iter().map(move |key| format!("{section}.{key}")));
        refuse_unknown(&table, &foreign.collect::<Vec<_>>())?;
        let config: Config = table.clone().try_into().map_err(|error| misfit(&error, &table))?;
        self.check(&config)?;
        let is_given = |idle: &&Idle<'_>| {
            let value = &table[idle.axis.section][&idle.option];
            value.as_array().is_none_or(|list| !list.is_empty())
        };
        match idle(&axes, &table).iter().find(is_given) {
            Some(Idle { axis, member, option }) => {
                let Axis { section, key, .. } = axis;
                let readers = axis.readers(option);
                let does = if readers.contains(" and ") { "do" } else { "does" };
                let what =
                    format!("{section}.{option}: {section}.{key} = {member:?} does not read it; {readers} {does}");
                let is_set = overrides.iter().any(|set| set.starts_with(&format!("{section}.{option}=")));
                let way = format!(" (--unset {section}.{option} leaves it out of the file)");
                Err(TrainError::config(if is_set { what } else { what + &way }))
            }
            None => Ok(config),
        }
    }

    /// The configuration as TOML, without keys that its members do not read.
    ///
    /// # Errors
    /// If a value cannot be written as TOML.
    pub fn to_toml(&self, config: &Config) -> Result<String> {
        let refuse = |error: toml::ser::Error| TrainError::config(format!("cannot be written as TOML: {error}"));
        // By way of text, in which a number of 32 bits has the digits that it was typed with.
        let text = toml::to_string(config).map_err(refuse)?;
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| TrainError::config(error.to_string()))?;
        let axes = self.axes();
        let idle: Vec<_> = idle(&axes, &table).iter().map(|idle| (idle.axis.section, idle.option.clone())).collect();
        for (section, option) in idle {
            if let Some(toml::Value::Table(section)) = table.get_mut(section) {
                section.remove(&option);
            }
        }
        toml::to_string(&table).map_err(refuse)
    }

    /// The same run with these keys set, and without those that the members which they name do not read.
    ///
    /// # Errors
    /// If a key is unknown or a value makes no sense.
    pub fn with_keys(&self, config: &Config, set: &[String]) -> Result<Config> {
        let mut table: toml::Table =
            self.to_toml(config)?.parse().map_err(|error: toml::de::Error| TrainError::config(error.to_string()))?;
        set.iter().try_for_each(|text| apply(&mut table, text))?;
        let config: Config = table.clone().try_into().map_err(|error| misfit(&error, &table))?;
        self.parse(&self.to_toml(&config)?, &[])
    }

    /// The same for the folder of a run: of data that were cut before, without how they would be cut.
    ///
    /// # Errors
    /// As [`Members::to_toml`].
    pub(crate) fn to_toml_of_run(&self, config: &Config) -> Result<String> {
        let text = self.to_toml(config)?;
        let Ok(mut table) = text.parse::<toml::Table>() else { return Ok(text) };
        if let (true, Some(toml::Value::Table(partition))) = (is_cut(config), table.get_mut("partition")) {
            partition.retain(|key, _| ["parts", "method", "seed"].contains(&key));
        }
        toml::to_string(&table).map_err(|error| TrainError::config(error.to_string()))
    }

    /// The configuration with what the number of workers and the model decide filled in, so that the run can be
    /// repeated from it.
    ///
    /// # Errors
    /// If there is no such layer.
    pub fn resolved(&self, config: &Config, parts: u32) -> Result<Config> {
        let mut resolved = config.clone();
        resolved.partition.parts = parts;
        resolved.model.self_loops = Some(self.has_self_loops(config)?);
        resolved.schedule.evaluator = self.evaluator(config)?;
        Ok(resolved)
    }

    /// Who evaluates means; `None` where there are none that workers could evaluate.
    fn evaluator(&self, config: &Config) -> Result<Option<MeansEvaluator>> {
        let kind = self.schedule(config)?;
        if !kind.trainers || !kind.options.contains(&"evaluator") {
            return Ok(None);
        }
        // Owners of parts keep them to themselves, and so do the machines of a cluster.
        let apart = is_part_folder(&config.data.path) || config.transport.kind == TransportKind::Mpi;
        let usual = if apart { MeansEvaluator::Workers } else { MeansEvaluator::Aggregator };
        Ok(config.schedule.evaluator.or(Some(usual)))
    }

    /// Whether independent trainers evaluate the means of their models together, with an aggregator that holds no part.
    ///
    /// # Errors
    /// If there is no such schedule.
    pub fn workers_evaluate_means(&self, config: &Config) -> Result<bool> {
        Ok(self.evaluator(config)? == Some(MeansEvaluator::Workers))
    }
}

/// Makes every path whole, so that the run can be resumed, predicted and exported from any folder. What is not in the
/// current folder may be in the configuration's; what was found there, or in both, is told.
fn locate(config: &mut Config, folder: &Path) -> Result<Vec<String>> {
    let mut told = Vec::new();
    let is_elsewhere = std::path::absolute(folder).ok() != std::env::current_dir().ok() && folder != Path::new("");
    let named = [
        ("data.path", Some(&mut config.data.path)),
        ("data.features_path", config.data.features_path.as_mut()),
        ("data.nodes_path", config.data.nodes_path.as_mut()),
        ("partition.file", config.partition.file.as_mut()),
    ];
    for (key, named) in named.into_iter().filter_map(|(key, named)| Some((key, named?))) {
        if named.as_os_str().is_empty() {
            continue;
        }
        let beside = folder.join(&*named);
        let is_beside = named.is_relative() && is_elsewhere && beside.exists();
        match (named.exists(), is_beside) {
            (false, true) => {
                told.push(format!("{key}: {} is read, beside the configuration", beside.display()));
                *named = beside;
            }
            (true, true) => {
                let shown = named.display();
                told.push(format!("{key}: {shown} of the current folder is read, not {}", beside.display()));
            }
            _ => {}
        }
        *named = std::path::absolute(&*named).map_err(|source| TrainError::io(&*named, source))?;
    }
    Ok(told)
}

/// A folder of parts says how it was cut, whatever the configuration says or leaves to its defaults.
fn adopt_provenance(members: &Members, config: &mut Config) {
    let meta = if is_cut(config) { open_meta(&config.data.path).ok() } else { None };
    let Some(Provenance { method, seed }) = meta.map(|meta| meta.provenance) else { return };
    // One that only another program knows could not be read back.
    if members.partitioners.get(&method).is_ok() {
        config.partition.method = method;
        config.partition.seed = seed;
    }
}

/// Whether the data were cut before the run.
fn is_cut(config: &Config) -> bool {
    !config.data.path.as_os_str().is_empty() && is_part_folder(&config.data.path)
}

/// Removes keys of the file that overrides set to their defaults: so one is taken back that another override leaves
/// unread.
fn take_back(table: &mut toml::Table, file: &toml::Table, overrides: &[String]) {
    let defaults = toml::Table::try_from(Config::default()).unwrap_or_default();
    for text in overrides {
        let key = text.split_once('=').map_or("", |(key, _)| key.trim());
        let Some((section, key)) = key.split_once('.') else { continue };
        let of = |table: &toml::Table| table.get(section).and_then(|section| section.get(key)).cloned();
        let default = of(&defaults).filter(|_| of(file).is_some());
        if let (Some(default), Some(toml::Value::Table(section))) = (default, table.get_mut(section))
            && section.get(key) == Some(&default)
        {
            section.remove(key);
        }
    }
}

/// An option that the chosen member of its axis does not read.
struct Idle<'a> {
    axis: &'a Axis,
    member: String,
    option: String,
}

fn idle<'a>(axes: &'a [Axis], table: &toml::Table) -> Vec<Idle<'a>> {
    let defaults = toml::Table::try_from(Config::default()).unwrap_or_default();
    let member = |axis: &Axis| {
        let of = |table: &toml::Table| {
            table.get(axis.section).and_then(|section| section.get(axis.key)?.as_str()).map(str::to_owned)
        };
        of(table).or_else(|| of(&defaults)).unwrap_or_default()
    };
    let of_section = |name: &'static str| axes.iter().filter(move |axis| axis.section == name);
    let mut found = Vec::new();
    for axis in axes {
        let Some(toml::Value::Table(section)) = table.get(axis.section) else { continue };
        let (chosen, mut others) = (member(axis), of_section(axis.section).filter(|other| other.key != axis.key));
        // A clusterer that no partitioner asks for does not say what is read.
        let is_asked = others.all(|other| !other.knows(axis.key) || other.reads(&member(other), axis.key));
        let elsewhere = |option: &str| of_section(axis.section).any(|other| other.reads(&member(other), option));
        for option in section.keys().filter(|option| axis.knows(option) && !axis.reads(&chosen, option)) {
            if is_asked || !elsewhere(option) {
                found.push(Idle { axis, member: chosen.clone(), option: option.clone() });
            }
        }
    }
    found
}
