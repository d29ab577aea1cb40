//! Data that a model was not trained on: read, cut, and prepared as the model's own were.

use std::path::{Path, PathBuf};

use laconic_graph::about::{About, Scale};
use laconic_graph::dataset::{Dataset, Labels};
use laconic_graph::error::GraphError;
use laconic_graph::exact::Exact;
use laconic_graph::info::unusable;
use laconic_graph::limits::Limits;
use laconic_graph::part::{self, FeaturesIn, Part};
use laconic_graph::partition::GIVEN;
use laconic_graph::prepare;
use laconic_graph::read::{ReadOptions, read_with_roles};

use super::source::{Source, assign, is_part_folder, open_alone};
use crate::config::{Config, PartitionConfig, Widths};
use crate::error::{Result, TrainError};
use crate::plan::{Members, Plan};
use crate::record::card::Card;

/// Opens a dataset in any format, or a folder of parts, for a model. Labels and splits are taken where there are some.
/// A dataset is cut for so many workers, one where nothing is said, as `partition` says; of a folder of parts one may
/// be asked for alone.
///
/// # Errors
/// If there are no such data, or the model cannot read them.
pub fn open_other(
    members: &Members,
    config: &Config,
    path: &Path,
    options: &ReadOptions,
    card: &Card,
    workers: Option<u32>,
    part: Option<u32>,
) -> Result<Source> {
    let (mut parts, mut notes) = if let Some(part) = part {
        let (part, note) = open_alone(path, part, FeaturesIn::Memory)?;
        (vec![part], vec![note])
    } else if is_part_folder(path) {
        let count = part::open_meta(path)?.parts;
        if let Some(workers) = workers.filter(|workers| *workers != count) {
            let what = format!("holds {count} parts, and as many workers predict, not {workers}");
            return Err(TrainError::config(format!("{} {what}", path.display())));
        }
        let parts = (0..count).map(|index| part::open_part(path, index));
        (parts.collect::<std::result::Result<Vec<Part>, _>>()?, Vec::new())
    } else {
        // From tables, what the model's own columns were made of.
        let options = ReadOptions { like: Some(card.recipe()), ..options.clone() };
        let (dataset, roles) = read_with_roles(path, &options)?;
        let parts = cut((members, config), (dataset, path), workers.unwrap_or(1), card)?;
        (parts, roles.notes().collect())
    };
    notes.extend(suited((members, config), (&mut parts, path), card)?);
    Ok(Source::Cut(parts.into_iter().map(Some).collect(), notes))
}

/// The same of a dataset in memory, for one worker.
///
/// # Errors
/// If the model cannot read it.
pub fn other_of(members: &Members, config: &Config, dataset: Dataset, card: &Card) -> Result<Source> {
    let path = PathBuf::from(&dataset.name);
    let mut parts = cut((members, config), (dataset, &path), 1, card)?;
    let notes = suited((members, config), (&mut parts, &path), card)?;
    Ok(Source::Cut(parts.into_iter().map(Some).collect(), notes))
}

/// Makes of parts what the model reads; what is to be said of that.
fn suited(
    (members, config): (&Members, &Config),
    (parts, path): (&mut [Part], &Path),
    card: &Card,
) -> Result<Vec<String>> {
    let widths = Widths { columns: card.inputs, classes: card.classes, relations: card.relations };
    let reads_weights = Plan::for_model(members, config, widths)?.reads_weights();
    let notes = parts.first().into_iter().flat_map(|part| unlike(part, card, reads_weights)).collect();
    for part in parts {
        let of_data = |what| TrainError::from(GraphError::format(path, "data", what));
        suit(part, card).map_err(of_data)?;
    }
    Ok(notes)
}

fn cut(
    (members, config): (&Members, &Config),
    (mut dataset, path): (Dataset, &Path),
    workers: u32,
    card: &Card,
) -> Result<Vec<Part>> {
    // Before anything is rounded to what parts hold.
    let exact = std::mem::take(&mut dataset.exact);
    if dataset.about.scale.is_given() && dataset.features.columns() == card.inputs {
        prepare::rescale(
            (&mut dataset.features, &exact),
            (&card.about.scale, &card.about.node_types),
            &Limits::default(),
        )?;
        dataset.about.scale = card.about.scale.clone();
    }
    let split = (dataset.splits.len() == 1).then_some(0);
    if let Some(what) = unusable(&dataset, split) {
        return Err(GraphError::format(path, "data", what).into());
    }
    let assignment = match workers {
        1 => vec![0; dataset.graph.nodes()],
        _ => {
            // What was given is about the run's own nodes.
            let mut config = config.clone();
            if config.partition.method == GIVEN {
                config.partition = PartitionConfig::default();
            }
            assign(members, &config, &dataset, split, workers)?
        }
    };
    Ok(part::cut(&dataset, split, &assignment, workers)?)
}

/// What the model can work with, and was not trained on.
fn unlike(part: &Part, card: &Card, reads_weights: bool) -> Vec<String> {
    let about = &part.global.about;
    let weights = match (card.weighted, part.global.weighted) {
        _ if !reads_weights => "",
        (true, false) => "the model was trained with weights of edges, and these have none: each counts 1",
        (false, true) => "the model was trained without weights of edges, and those that these have are used",
        _ => "",
    };
    let columns = if about.columns.is_empty() || about.columns == card.about.columns {
        ""
    } else {
        "what stands for missing cells and categories is not the model's: predict from the tables to have that"
    };
    let notes = [weights, columns].into_iter().filter(|note| !note.is_empty()).map(str::to_owned);
    notes.chain(nameless(part, card)).collect()
}

/// What has names on one side alone, and so is taken to be in the same order on both.
fn nameless(part: &Part, card: &Card) -> impl Iterator<Item = String> {
    let (found, known) = (&part.global.about, &card.about);
    let is_labelled = part.labels != Labels::None;
    let relations = if card.relations > 0 { [found.relations.len(), known.relations.len()] } else { [0; 2] };
    let classes = if is_labelled { [found.classes.len(), known.classes.len()] } else { [0; 2] };
    let all = [
        ("feature columns", [found.features.len(), known.features.len()]),
        ("relations", relations),
        ("classes of labels", classes),
    ];
    all.into_iter().filter_map(|(what, [there, here])| {
        let side = match (there, here) {
            (0, 1..) => "of these data have no names",
            (1.., 0) => "of the model have no names",
            _ => return None,
        };
        Some(format!("the {what} {side}, so they are taken to be in the same order as the other's"))
    })
}

/// Makes of a part what the model reads: its columns on its scale, its classes.
fn suit(part: &mut Part, card: &Card) -> std::result::Result<(), String> {
    let found = std::mem::take(&mut part.global.about);
    let known = &card.about;
    if part.features.columns() != card.inputs {
        let (reads, there) = (named(card.inputs, &known.features), named(part.features.columns(), &found.features));
        return Err(format!("the model reads {reads}, the data have {there}"));
    }
    if !found.features.is_empty() && !known.features.is_empty() && found.features != known.features {
        let place = found.features.iter().zip(&known.features).take_while(|(found, known)| found == known).count();
        let (there, reads) = (&found.features[place], &known.features[place]);
        return Err(format!("feature column {place} is {there:?}, and the model reads {reads:?} there"));
    }
    if card.relations > 0 {
        let there = part.global.relations;
        if there != card.relations {
            return Err(format!("the model tells {} relations of edges apart, the data have {there}", card.relations));
        }
        let differs = |(ours, theirs): (&String, &String)| ours != theirs;
        if let Some(place) = found.relations.iter().zip(&known.relations).position(differs) {
            let (there, reads) = (&found.relations[place], &known.relations[place]);
            return Err(format!("relation {place} is {there:?}, and the model knows it as {reads:?}"));
        }
    }
    if found.scale.is_given() {
        let features = (&mut part.features, &Exact::default());
        let scaled = prepare::rescale(features, (&known.scale, &known.node_types), &Limits::default());
        scaled.map_err(|error| error.to_string())?;
    } else if found.scale != known.scale {
        let how = if let Scale::RowNormalised = found.scale { "row-normalised" } else { "standardised" };
        let what = "and the model's were not, or by other means; give it the features as they were before \
                    (laconic partition --feature-preparation given)";
        return Err(format!("the features have been {how} already, {what}"));
    }
    relabel(&mut part.labels, &found, card)?;
    (part.global.about, part.global.columns) = (known.clone(), card.inputs);
    (part.global.classes, part.global.multi_label) = (card.classes, card.multi_label);
    Ok(())
}

/// So many feature columns, with the names of the first ones.
fn named(columns: usize, names: &[String]) -> String {
    let first: Vec<&str> = names.iter().take(12).map(String::as_str).collect();
    let more = if names.len() > first.len() { ", …" } else { "" };
    let names = if first.is_empty() { String::new() } else { format!(" ({}{more})", first.join(", ")) };
    format!("{columns} feature columns{names}")
}

/// Gives labels the numbers that the model has for classes of their names; what is none of them is not known. Classes
/// without names are called by the same numbers on both sides.
fn relabel(labels: &mut Labels, found: &About, card: &Card) -> std::result::Result<(), String> {
    let (classes, several) = match labels {
        Labels::None => return Ok(()),
        Labels::Single { classes, .. } => (*classes, false),
        Labels::Multi { classes, .. } => (*classes, true),
    };
    if classes == 0 {
        // None of them is known.
        *labels = Labels::None;
        return Ok(());
    }
    if several != card.multi_label {
        let of = |several| if several { "any number of classes" } else { "one class" };
        return Err(format!("the model gives a node {}, the labels {}", of(card.multi_label), of(several)));
    }
    let of_model: Vec<String> = (0..card.classes).map(|class| card.about.class(class)).collect();
    let place = |class: usize| match found.classes.get(class) {
        Some(name) => of_model.iter().position(|known| known == name),
        None => Some(class).filter(|class| *class < card.classes),
    };
    let places: Vec<Option<usize>> = (0..classes).map(place).collect();
    if places.iter().all(Option::is_none) || (found.classes.is_empty() && classes > card.classes) {
        let there: Vec<String> = (0..classes).map(|class| found.class(class)).collect();
        let both = [&there, &of_model].map(|names| names.iter().take(20).cloned().collect::<Vec<_>>().join(", "));
        let hint = "leave the labels out, or call them as the model does";
        return Err(format!("the labels are of the classes {}, and the model's are {}; {hint}", both[0], both[1]));
    }
    *labels = match std::mem::replace(labels, Labels::None) {
        Labels::None => Labels::None,
        Labels::Single { values, .. } => {
            let class = |value: i32| usize::try_from(value).ok().and_then(|value| places[value]);
            let values = values.into_iter().map(|value| class(value).map_or(-1, |class| class as i32)).collect();
            Labels::Single { classes: card.classes, values }
        }
        Labels::Multi { values, .. } => {
            let rows = values.len() / classes;
            let mut moved = vec![Labels::UNKNOWN; rows * card.classes];
            for (at, value) in values.into_iter().enumerate() {
                if let Some(class) = places[at % classes] {
                    moved[at / classes * card.classes + class] = value;
                }
            }
            Labels::Multi { classes: card.classes, values: moved }
        }
    };
    Ok(())
}
