//! A dataset as it is read: its split, and its features as they are asked for.

use std::path::Path;

use laconic_graph::about::Scale;
use laconic_graph::dataset::{Dataset, Features, Split};
use laconic_graph::error::GraphError;
use laconic_graph::info::{unlike_scales, unusable};
use laconic_graph::limits::Limits;
use laconic_graph::prepare;
use laconic_graph::read::{self, read_with_roles};
use laconic_graph::roles::Roles;

use crate::config::{DataConfig, FeaturePreparation, SplitChoice};
use crate::error::{Result, TrainError};

/// A dataset that is ready to be cut.
pub struct Prepared {
    /// The dataset, its features prepared.
    pub dataset: Dataset,
    /// Which of its splits counts.
    pub split: Option<usize>,
    /// What became of the columns of its tables.
    pub roles: Roles,
    /// What was done to features, or should perhaps be, a line each.
    pub notes: Vec<String>,
}

/// The first key about tables that data in another format do not read, and what that format is called.
pub fn idle_key(config: &DataConfig) -> Option<(&'static str, &'static str)> {
    read::idle_key(&config.path, config.table_keys())
}

/// Reads a dataset and prepares features and split.
///
/// # Errors
/// If the data cannot be read, or have not the split that is asked for.
pub fn prepared(config: &DataConfig) -> Result<Prepared> {
    if let Some((key, format)) = idle_key(config) {
        let path = config.path.display();
        return Err(TrainError::config(format!("{key} belongs to an edge list, but {path} is {format}")));
    }
    if matches!(config.split, SplitChoice::Random(_)) && config.split_index > 0 {
        return Err(TrainError::config("data.split_index is read by nothing: data.split draws one split"));
    }
    let (dataset, roles) = read_with_roles(&config.path, &config.read_options())?;
    prepared_of(dataset, roles, config)
}

/// Prepares features and split of a dataset that has been read, as [`prepared`].
///
/// # Errors
/// If it has not the split that is asked for, or features that cannot be prepared so.
pub fn prepared_of(mut dataset: Dataset, roles: Roles, config: &DataConfig) -> Result<Prepared> {
    let split = match &config.split {
        SplitChoice::Named(_) if dataset.splits.is_empty() => None,
        SplitChoice::Named(_) if config.split_index < dataset.splits.len() => Some(config.split_index),
        SplitChoice::Named(_) => {
            let (index, found) = (config.split_index, dataset.splits.len());
            return Err(TrainError::config(format!("data.split_index = {index}, but the data has {found} splits")));
        }
        SplitChoice::Random(random) => {
            dataset.splits = vec![prepare::random_split(&dataset.labels, &random.spec()?, random.seed)?];
            Some(0)
        }
    };
    let trained = split.map(|index| dataset.splits[index].roles.as_slice());
    prepare::fill_missing((&mut dataset.features, &mut dataset.exact), &mut dataset.about, trained);
    if let Some(what) = unusable(&dataset, split) {
        // Data in memory have no path, but a name.
        let is_named = config.path.as_os_str().is_empty();
        let path = if is_named { Path::new(&dataset.name) } else { config.path.as_path() };
        return Err(GraphError::format(path, "data", what).into());
    }
    let notes = scale(&mut dataset, split, config.features, &config.read_options().limits)?;
    dataset.about.check(dataset.features.columns(), dataset.labels.classes())?;
    Ok(Prepared { dataset, split, roles, notes })
}

/// Prepares the features as asked, and notes how; what is to be said of that.
fn scale(dataset: &mut Dataset, split: Option<usize>, how: FeaturePreparation, limits: &Limits) -> Result<Vec<String>> {
    let Dataset { features, about, splits, .. } = dataset;
    let exact = std::mem::take(&mut dataset.exact);
    let (is_given, is_of_tables) = (about.scale.is_given(), about.is_of_tables());
    if ![FeaturePreparation::Auto, FeaturePreparation::Given].contains(&how) && !is_given {
        let what = "the features of these data have been row-normalised or standardised already";
        return Err(TrainError::config(format!("data.features: {what}")));
    }
    let roles = split.map(|index| splits[index].roles.as_slice());
    let as_given = |features: &Features, names: &[String]| -> Vec<String> {
        let unlike = if is_given { unlike_scales(features, names, false) } else { None };
        exact.lost(names).into_iter().chain(unlike).collect()
    };
    about.of_typed_tables = false;
    Ok(match how {
        FeaturePreparation::Auto if is_given && is_of_tables => {
            let stays = prepare::unscaled((features, &exact), about);
            let (columns, left) = (stays.len(), stays.iter().filter(|&&stays| stays).count());
            if left == columns {
                return Ok(Vec::new());
            }
            let trains = |roles: &&[u8]| roles.iter().any(|roles| roles & Split::TRAIN != 0);
            let roles = roles.filter(trains);
            about.scale = prepare::standardise((features, &exact), roles, (&stays, &about.node_types), limits)?;
            let of = match (roles.is_some(), about.node_types.is_empty()) {
                (false, _) => "all nodes",
                (true, true) => "training nodes",
                (true, false) => "training nodes of their type (all of its nodes where none trains)",
            };
            let turn_off = "data.features = \"given\" leaves them as they are";
            let scaled = columns - left;
            vec![format!("{scaled} of {columns} feature columns are standardised over {of}; {turn_off}")]
        }
        FeaturePreparation::Auto | FeaturePreparation::Given => as_given(features, &about.features),
        FeaturePreparation::RowNormalised => {
            prepare::row_normalise(features, &exact);
            about.scale = Scale::RowNormalised;
            Vec::new()
        }
        FeaturePreparation::Standardised => {
            about.scale = prepare::standardise((features, &exact), roles, (&[], &about.node_types), limits)?;
            Vec::new()
        }
    })
}
