//! From a path to parts: reading, preparing, splitting, cutting; or opening parts that are cut already.

use std::path::{Path, PathBuf};

use laconic_graph::dataset::{Labels, Split};
use laconic_graph::error::GraphError;
use laconic_graph::info::{empty_classes, empty_splits, foreseen, never_learned, one_hot};
use laconic_graph::part::{self, FeaturesIn, GlobalCounts, Meta, Part, features_bytes};
use laconic_graph::partition::quality;
use laconic_graph::plan::check_counts;
pub use laconic_graph::read::is_part_folder;

use crate::config::{Config, DataConfig, FeaturesPlace};
use crate::error::{Result, TrainError};
use crate::forecast::gigabytes;
use crate::plan::Members;

use super::assigned::named_parts;
pub use super::assigned::{Assigned, assign, assigned, parts_unsaid, prepared_to_cut};
pub use super::prepared::{Prepared, idle_key, prepared, prepared_of};

/// Where a run's parts come from.
pub enum Source {
    /// A dataset that was read, prepared and cut here, and what is unusual about it.
    Cut(Vec<Option<Part>>, Vec<String>),
    /// A folder of parts, opened one at a time: no worker reads another's.
    Folder(PathBuf, Box<Meta>, Held),
}

/// What the parts hold that were opened so far: their number, and training, validation and test nodes.
#[derive(Default)]
pub struct Held {
    parts: u32,
    nodes: [u64; 3],
    /// Where features are, and a line about it.
    features_in: FeaturesIn,
    notes: Vec<String>,
}

impl Held {
    /// Counts one more part; once all have been, they must hold what each of them says that all do.
    fn add(&mut self, part: &Part) -> laconic_graph::error::Result<()> {
        self.parts += 1;
        for (count, role) in self.nodes.iter_mut().zip([Split::TRAIN, Split::VAL, Split::TEST]) {
            *count += part.roles.iter().filter(|&&roles| roles & role != 0).count() as u64;
        }
        if !part.global.are_counted() {
            return Ok(());
        }
        let said = [part.global.train, part.global.val, part.global.test];
        if self.parts == part.parts && self.nodes != said {
            let what = format!("expected {said:?} training, validation and test nodes, found {:?}", self.nodes);
            return Err(GraphError::invalid(format!("{} parts of {}: {what}", part.parts, part.global.dataset)));
        }
        Ok(())
    }
}

/// What labels say of figures before anything is trained, where classes of nodes are learned.
///
/// # Errors
/// If there is no such task.
pub fn foreseen_of<'a>(
    members: &Members,
    config: &Config,
    pieces: impl Iterator<Item = (&'a Labels, &'a [u8])> + Clone,
) -> Result<Vec<String>> {
    if !members.task(config)?.of_labels || pieces.clone().all(|(labels, _)| labels.classes() == 0) {
        return Ok(Vec::new());
    }
    let is_asked = |metric: &str| config.train.metrics.iter().any(|asked| asked == metric);
    let mut said = empty_splits(pieces.clone());
    said.extend(never_learned(pieces.clone()));
    said.extend(foreseen(pieces, is_asked));
    Ok(said)
}

impl Source {
    /// Opens what the configuration names, for `workers` workers where the transport decides their number.
    ///
    /// # Errors
    /// If there is no such data, they cannot be cut so, or there are other numbers of parts and workers.
    pub fn open(members: &Members, config: &Config, workers: Option<u32>) -> Result<Source> {
        let path = &config.data.path;
        if path.as_os_str().is_empty() {
            return Err(TrainError::config("data.path is not set: which graph?"));
        }
        if config.batch.size > 0 {
            // Batches and evaluations take turns, with rows of quite other sizes.
            laconic_graph::memory::keep_large_apart();
        }
        let source = if let Some(part) = config.data.part {
            let (features_in, features) = features_place(config, path, &[part])?;
            let (part, note) = open_alone(path, part, features_in)?;
            check_keys(config, 1)?;
            Source::Cut(vec![Some(part)], std::iter::once(note).chain(features).collect())
        } else if is_part_folder(path) {
            let meta = open_folder(config)?;
            let (features_in, features) = features_place(config, path, &Vec::from_iter(0..meta.parts))?;
            let held = Held { features_in, notes: features.into_iter().collect(), ..Held::default() };
            Source::Folder(path.clone(), Box::new(meta), held)
        } else {
            if config.data.features_in == FeaturesPlace::File {
                let what = "features stay in the files of a folder of parts, as `laconic partition` writes it";
                return Err(TrainError::config(format!("data.features_in = \"file\": {what}")));
            }
            let Prepared { dataset, split, roles, notes: of_features } = prepared_to_cut(config)?;
            let assigned = assigned(members, config, &dataset, split, workers)?;
            let one_way = "some edges have one direction only; data.symmetrise adds the other";
            let mut notes: Vec<String> =
                roles.notes().chain(of_features).chain(assigned.notes.iter().cloned()).collect();
            notes.extend(empty_classes(&dataset.labels).into_iter().chain(one_hot(&dataset.labels)));
            if let Some(index) = split {
                let whole = std::iter::once((&dataset.labels, dataset.splits[index].roles.as_slice()));
                notes.extend(foreseen_of(members, config, whole)?);
            }
            notes.extend(dataset.graph.has_one_way_edges().then(|| one_way.to_owned()));
            let roles = split.map(|index| dataset.splits[index].roles.as_slice());
            let figures = quality(&dataset.graph, &assigned.of, assigned.parts, roles, dataset.features.columns())?;
            notes.extend(figures.not_kept(members.partitioner(config)?, &config.partition.options()));
            Source::Cut(assigned.cut(&dataset, split)?.into_iter().map(Some).collect(), notes)
        };
        match workers {
            Some(workers) if workers != source.parts() => Err(TrainError::config(format!(
                "{} parts for {workers} processes: start as many processes as there are parts",
                source.parts()
            ))),
            _ => Ok(source),
        }
    }

    /// How many workers a run has whose transport does not decide it; reads no more than the meta data of parts.
    ///
    /// # Errors
    /// If the meta data of parts cannot be read.
    pub fn workers(config: &Config) -> Result<u32> {
        match config.partition.parts {
            _ if config.data.part.is_some() => Ok(1),
            _ if is_part_folder(&config.data.path) => Ok(part::open_meta(&config.data.path)?.parts),
            0 => named_parts(config)?.map_or_else(|| parts_unsaid(config), Ok),
            parts => Ok(parts),
        }
    }

    /// Parts that are in memory already.
    pub fn of(parts: Vec<Part>) -> Source {
        Source::Cut(parts.into_iter().map(Some).collect(), Vec::new())
    }

    /// The number of parts.
    pub fn parts(&self) -> u32 {
        match self {
            Source::Cut(parts, _) => parts.len() as u32,
            Source::Folder(_, meta, _) => meta.parts,
        }
    }

    /// The parts that are in memory and have not been taken.
    pub(super) fn left(&self) -> impl Iterator<Item = &Part> + Clone {
        let parts = if let Source::Cut(parts, _) = self { &parts[..] } else { &[] };
        parts.iter().flatten()
    }

    /// What all owners know about the whole, where a part is there or the folder says.
    pub fn global(&self) -> Option<&GlobalCounts> {
        match self {
            Source::Cut(parts, _) => parts.iter().flatten().next().map(|part| &part.global),
            Source::Folder(_, meta, _) => Some(&meta.global),
        }
    }

    /// What is allowed and unusual about the data, a line each, as far as it was seen.
    pub fn notes(&self) -> &[String] {
        match self {
            Source::Cut(_, notes) => notes,
            Source::Folder(_, _, held) => &held.notes,
        }
    }

    /// One more line about the data.
    pub(crate) fn add_note(&mut self, note: Option<String>) {
        match self {
            Source::Cut(_, notes) => notes.extend(note),
            Source::Folder(_, _, held) => held.notes.extend(note),
        }
    }

    /// How far labels differ between parts, where whoever cut them has said so.
    pub fn label_skew(&self) -> Option<f64> {
        match self {
            Source::Cut(..) => None,
            Source::Folder(_, meta, _) => meta.label_skew,
        }
    }

    /// Takes part `index` out. Each can be taken once.
    ///
    /// # Errors
    /// If the part's files are not what they should be.
    pub fn take(&mut self, index: u32) -> Result<Part> {
        match self {
            Source::Cut(parts, _) => Ok(parts[index as usize].take().expect("each part is taken once")),
            Source::Folder(dir, meta, held) => {
                let part = part::open_part_with(dir, index, held.features_in)?;
                if let Some(counts) = meta.files.get(&index).and_then(|entry| entry.counts.as_ref()) {
                    let of_folder = |error: GraphError| GraphError::format(dir, "meta.json", error.to_string());
                    check_counts(&part, counts).map_err(of_folder)?;
                }
                held.add(&part)?;
                Ok(part)
            }
        }
    }

    /// Every part, for what needs to see all of them: predictions and verification.
    ///
    /// # Errors
    /// As [`Source::take`].
    pub fn all(mut self) -> Result<Vec<Part>> {
        (0..self.parts()).map(|index| self.take(index)).collect()
    }
}

fn open_folder(config: &Config) -> Result<Meta> {
    let meta = part::open_meta(&config.data.path)?;
    check_keys(config, meta.parts)?;
    Ok(meta)
}

/// Refuses keys that a folder of parts does not read, or does not have so many workers for.
fn check_keys(config: &Config, workers: u32) -> Result<()> {
    let DataConfig { path, inductive, part, features_in, .. } = config.data.clone();
    let refuse = |what: String| Err(TrainError::config(format!("data.path {} {what}", config.data.path.display())));
    if config.data != (DataConfig { path, inductive, part, features_in, ..DataConfig::default() }) {
        let what = "data.features, data.split and the like belong to the command that cut it";
        return refuse(format!("is a folder of parts; {what}"));
    }
    let parts = config.partition.parts;
    match part {
        _ if [0, workers].contains(&parts) => Ok(()),
        Some(part) => {
            refuse(format!("has one worker for part {part} alone (data.part), but partition.parts = {parts}"))
        }
        None => {
            let made = format!("`laconic partition --parts {parts}` makes a folder of so many");
            let goes_on = format!("`laconic resume --workers {workers}` goes on over this one");
            refuse(format!("holds {workers} parts, but partition.parts = {parts}; {made}, {goes_on}"))
        }
    }
}

/// Where the features of these parts of a folder are while they are used, and a line about it if that is their file.
fn features_place(config: &Config, path: &Path, parts: &[u32]) -> Result<(FeaturesIn, Option<String>)> {
    let in_batches = config.batch.size > 0;
    let asked = config.data.features_in;
    if asked == FeaturesPlace::File && !in_batches {
        let what = "rounds over all nodes read all features, and keep sums of them; batch.size makes batches";
        return Err(TrainError::config(format!("data.features_in = \"file\": {what}")));
    }
    if !is_part_folder(path) || !in_batches || asked == FeaturesPlace::Memory {
        return Ok((FeaturesIn::Memory, None));
    }
    let bytes = features_bytes(&part::open_meta(path)?, parts.iter().copied());
    let is_too_much = laconic_graph::memory::available().is_some_and(|there| bytes > there / 2);
    if asked == FeaturesPlace::Auto && !is_too_much {
        return Ok((FeaturesIn::Memory, None));
    }
    let note = format!(
        "{} of features stay in their files; what is in memory of these counts in what is taken",
        gigabytes(bytes)
    );
    Ok((FeaturesIn::File, Some(note)))
}

/// One part of a folder as a graph of its own, for a worker that meets nobody, and a line about it. Nothing of the
/// others is read.
///
/// # Errors
/// If this is no folder of parts, there is no such part, or its files are not what they should be.
pub(super) fn open_alone(path: &Path, index: u32, features_in: FeaturesIn) -> Result<(Part, String)> {
    let refuse = |what: String| Err(TrainError::config(format!("data.part = {index}: {} {what}", path.display())));
    if !is_part_folder(path) {
        return refuse("is no folder of parts, as `laconic partition` writes it".to_owned());
    }
    let parts = part::open_meta(path)?.parts;
    if index >= parts {
        return refuse(format!("has parts 0 to {}", parts.saturating_sub(1)));
    }
    let part = part::open_part_with(path, index, features_in)?;
    let all = part.edges.edges();
    let part = part.alone();
    let (dataset, rows, inner) = (&part.global.dataset, part.rows(), part.edges.edges());
    let left_out = all - inner;
    let note =
        format!("{dataset}: {rows} nodes with the {inner} edges between them, without {left_out} from other parts");
    Ok((part, note))
}
