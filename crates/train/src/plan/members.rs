//! Who there is on every axis: the registries in which names of a configuration are looked up.
//!
//! A value that is handed on and no global list: a program with members of its own makes one with them and passes it to
//! [`Members::parse`] and to a run's options.

use std::sync::Arc;

use laconic_graph::partition::{PartitionerKind, PartitionerRegistry, clusterers};
use laconic_nn::decoder::{DecoderKind, DecoderRegistry};
use laconic_nn::layer::{LayerKind, LayerRegistry};
use laconic_nn::optimiser::{OptimiserKind, OptimiserRegistry, RateKind, RateRegistry};
use laconic_nn::registry::{Kind, Registry};
use laconic_wire::codec::{CodecKind, CodecRegistry};

use super::cadence::Cadence;
use super::kinds::{AgreementKind, AgreementRegistry, BatchingKind, BatchingRegistry, TaskKind, TaskRegistry};
use crate::config::{Config, KEYS, one_of};
use crate::error::{Result, TrainError};
use crate::inputs::{InputKind, InputRegistry};
use crate::schedule::{Propagated, ScheduleKind, ScheduleRegistry};
use crate::selection::{SelectionKind, SelectionRegistry};

/// The members of every axis: ours ([`Members::default`]) and any that others add.
#[derive(Debug, Clone, Default)]
pub struct Members {
    pub(crate) codecs: Arc<CodecRegistry>,
    pub(crate) selections: SelectionRegistry,
    pub(crate) schedules: ScheduleRegistry,
    pub(crate) partitioners: PartitionerRegistry,
    pub(crate) layers: LayerRegistry,
    pub(crate) tasks: TaskRegistry,
    pub(crate) batchings: BatchingRegistry,
    pub(crate) agreements: AgreementRegistry,
    pub(crate) decoders: DecoderRegistry,
    pub(crate) optimisers: OptimiserRegistry,
    pub(crate) rates: RateRegistry,
    pub(crate) inputs: InputRegistry,
}

impl Members {
    /// These members and one more codec.
    ///
    /// # Errors
    /// If its name or number is taken, or it says of itself what cannot be.
    pub fn with_codec(self, kind: &'static CodecKind) -> Result<Members> {
        Ok(Members { codecs: Arc::new(CodecRegistry::clone(&self.codecs).with(kind)?), ..self })
    }

    /// These members and one more partitioner.
    ///
    /// # Errors
    /// If its name is taken.
    pub fn with_partitioner(self, kind: &'static PartitionerKind) -> Result<Members> {
        Ok(Members { partitioners: self.partitioners.with(kind)?, ..self })
    }

    /// These members and one more selection, in place of one of its name.
    #[must_use]
    pub fn with_selection(self, kind: &'static SelectionKind) -> Members {
        Members { selections: self.selections.with(kind), ..self }
    }

    /// These members and one more schedule, in place of one of its name.
    #[must_use]
    pub fn with_schedule(self, kind: &'static ScheduleKind) -> Members {
        Members { schedules: self.schedules.with(kind), ..self }
    }

    /// These members and one more layer, in place of one of its name.
    #[must_use]
    pub fn with_layer(self, kind: &'static LayerKind) -> Members {
        Members { layers: self.layers.with(kind), ..self }
    }

    /// These members and one more task, in place of one of its name.
    #[must_use]
    pub fn with_task(self, kind: &'static TaskKind) -> Members {
        Members { tasks: self.tasks.with(kind), ..self }
    }

    /// These members and one more kind of batches, in place of one of its name.
    #[must_use]
    pub fn with_batching(self, kind: &'static BatchingKind) -> Members {
        Members { batchings: self.batchings.with(kind), ..self }
    }

    /// These members and one more agreement, in place of one of its name; of several that suit, the last is taken. No
    /// key names it, so nothing compares it: all workers of a run, and whoever resumes it, must have the same.
    #[must_use]
    pub fn with_agreement(self, kind: &'static AgreementKind) -> Members {
        Members { agreements: self.agreements.with(kind), ..self }
    }

    /// These members and one more decoder of links, in place of one of its name.
    #[must_use]
    pub fn with_decoder(self, kind: &'static DecoderKind) -> Members {
        Members { decoders: self.decoders.with(kind), ..self }
    }

    /// These members and one more optimiser, in place of one of its name.
    #[must_use]
    pub fn with_optimiser(self, kind: &'static OptimiserKind) -> Members {
        Members { optimisers: self.optimisers.with(kind), ..self }
    }

    /// These members and one more schedule of learning rates, in place of one of its name.
    #[must_use]
    pub fn with_rate(self, kind: &'static RateKind) -> Members {
        Members { rates: self.rates.with(kind), ..self }
    }

    /// These members and one more input of models, in place of one of its name.
    #[must_use]
    pub fn with_input(self, kind: &'static InputKind) -> Members {
        Members { inputs: self.inputs.with(kind), ..self }
    }

    /// The kind of layer that a configuration names.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn layer(&self, config: &Config) -> Result<&'static LayerKind> {
        find("model.arch", &self.layers, &config.model.arch)
    }

    /// The task that a configuration names.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn task(&self, config: &Config) -> Result<&'static TaskKind> {
        find("task.kind", &self.tasks, &config.task.kind)
    }

    pub(crate) fn batching(&self, config: &Config) -> Result<&'static BatchingKind> {
        find("batch.kind", &self.batchings, &config.batch.kind)
    }

    /// How workers agree at this cadence.
    pub(crate) fn agreement(&self, cadence: &Cadence) -> &'static AgreementKind {
        let suiting = self.agreements.iter().filter(|kind| (kind.suits)(cadence));
        // One of ours may have been replaced by one that suits less.
        let ours = || AgreementKind::ours().iter().find(|kind| (kind.suits)(cadence));
        suiting.last().or_else(ours).expect("ours suit every cadence")
    }

    pub(crate) fn decoder(&self, config: &Config) -> Result<&'static DecoderKind> {
        find("task.decoder", &self.decoders, &config.task.decoder)
    }

    pub(crate) fn schedule(&self, config: &Config) -> Result<&'static ScheduleKind> {
        find("schedule.kind", &self.schedules, &config.schedule.kind)
    }

    /// Whether nodes are their own neighbours: as the layers have it, or not at all where there are none, unless
    /// `model.self_loops` says so.
    ///
    /// # Errors
    /// If there is no such layer or schedule.
    pub fn has_self_loops(&self, config: &Config) -> Result<bool> {
        let usual = match self.schedule(config)?.propagates {
            Some(Propagated::Labels) => false,
            _ => self.layer(config)?.self_loops,
        };
        Ok(config.model.self_loops.unwrap_or(usual))
    }

    /// What owners tell once, of the inputs that a configuration names.
    pub fn told_inputs<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = &'static InputKind> + 'a {
        config.model.inputs.iter().filter_map(|name| self.inputs.get(name))
    }

    /// Whether workers are independent trainers, whose models are averaged.
    ///
    /// # Errors
    /// If there is no such schedule.
    pub fn has_trainers(&self, config: &Config) -> Result<bool> {
        Ok(self.schedule(config)?.trainers)
    }

    pub(crate) fn selection(&self, config: &Config) -> Result<&'static SelectionKind> {
        find("messages.selection", &self.selections, &config.messages.selection.config().kind)
    }

    pub(crate) fn optimiser(&self, config: &Config) -> Result<&'static OptimiserKind> {
        find("train.optimiser", &self.optimisers, &config.train.optimiser)
    }

    pub(crate) fn rate(&self, config: &Config) -> Result<&'static RateKind> {
        find("train.lr_schedule", &self.rates, &config.train.lr_schedule)
    }

    /// The partitioner that a configuration names.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn partitioner(&self, config: &Config) -> Result<&'static PartitionerKind> {
        let name = &config.partition.method;
        one_of("partition.method", name, &self.partitioners.names())?;
        Ok(self.partitioners.get(name)?)
    }

    /// The members that read a key, such as `lazy` of `schedule.start`; with others it is refused. None for a key that
    /// does not depend on members.
    pub fn readers(&self, key: &str) -> Vec<&'static str> {
        let Some((section, option)) = key.split_once('.') else { return Vec::new() };
        let axes = self.axes().into_iter().filter(|axis| axis.section == section);
        let members = axes.flat_map(|axis| axis.members);
        let mut readers: Vec<&str> = Vec::new();
        for (name, _) in members.filter(|(_, options)| options.contains(&option)) {
            // One name may stand on two axes.
            if !readers.contains(&name) {
                readers.push(name);
            }
        }
        readers
    }

    /// Every name that a key may be given, as key, name and the options that are read with it.
    pub fn all(&self) -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
        let of_axis = |axis: Axis| {
            let key = KEYS.iter().map(|k| k.key).find(|key| *key == format!("{}.{}", axis.section, axis.key));
            let key = key.expect("every axis is a key");
            axis.members.into_iter().map(move |(name, options)| (key, name, options.to_vec()))
        };
        let mut all: Vec<_> = self.axes().into_iter().flat_map(of_axis).collect();
        let selections = self.selections.iter().map(|kind| ("messages.selection", kind.name, kind.options.to_vec()));
        all.extend(selections);
        all.extend(self.codecs.iter().map(|kind| ("messages.forward", kind.name, kind.options.to_vec())));
        all
    }

    /// The places where a key is an option of one member or another, each with all members and the options that they
    /// read.
    pub(super) fn axes(&self) -> Vec<Axis> {
        let of = |section, key, members: Vec<(&'static str, &'static [&'static str])>| Axis { section, key, members };
        vec![
            of("partition", "method", self.partitioners.iter().map(|kind| (kind.name, kind.options)).collect()),
            of("partition", "clusterer", clusterers().to_vec()),
            of("model", "arch", self.layers.iter().map(|kind| (kind.name, kind.options)).collect()),
            of("task", "kind", self.tasks.iter().map(|kind| (kind.name, kind.options)).collect()),
            of("task", "decoder", self.decoders.iter().map(|kind| (kind.name, kind.options)).collect()),
            of("train", "optimiser", self.optimisers.iter().map(|kind| (kind.name, kind.options)).collect()),
            of("train", "lr_schedule", self.rates.iter().map(|kind| (kind.name, kind.options)).collect()),
            of("batch", "kind", self.batchings.iter().map(|kind| (kind.name, kind.options)).collect()),
            of("schedule", "kind", self.schedules.iter().map(|kind| (kind.name, kind.options)).collect()),
        ]
    }
}

/// A key of the configuration that names a member, with what each member reads of the same section.
pub(super) struct Axis {
    pub section: &'static str,
    pub key: &'static str,
    pub members: Vec<(&'static str, &'static [&'static str])>,
}

impl Axis {
    /// Whether any member reads an option of this name.
    pub fn knows(&self, option: &str) -> bool {
        self.members.iter().any(|(_, options)| options.contains(&option))
    }

    /// Whether this member reads it.
    pub fn reads(&self, member: &str, option: &str) -> bool {
        self.members.iter().any(|(name, options)| *name == member && options.contains(&option))
    }

    /// The members that do, for an error.
    pub fn readers(&self, option: &str) -> String {
        let readers = self.members.iter().filter(|(_, options)| options.contains(&option));
        readers.map(|(name, _)| format!("{name:?}")).collect::<Vec<_>>().join(" and ")
    }
}

fn find<K: Kind>(key: &str, registry: &Registry<K>, name: &str) -> Result<&'static K> {
    one_of(key, name, &registry.names().collect::<Vec<_>>())?;
    registry.get(name).ok_or_else(|| TrainError::config(format!("{key} = {name:?} is unknown")))
}
