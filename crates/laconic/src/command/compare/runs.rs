//! One run of a matrix: kept, resumed or done, by what its folder holds.

use std::path::{Path, PathBuf};

use laconic_graph::part::Part;
use laconic_train::plan::identity::Identity;
use laconic_train::record::checkpoint::Checkpoint;
use laconic_train::run::source::is_part_folder;
use laconic_train::{Config, Plan, TrainError};

use crate::recorded::{Recorded, read_text};

/// What a run's folder holds.
pub enum Found {
    /// The whole run.
    Done(Box<Recorded>),
    /// A checkpoint of it.
    Begun,
    /// Nothing of use.
    Nothing,
}

impl Found {
    /// Looks into the folder of the run with this resolved configuration on these parts. What cannot be read counts as
    /// not there, and what has another configuration too: the run is then done again, and what stands there is
    /// moved aside.
    pub fn in_folder(folder: &Path, config: &Config, parts: &[Part]) -> Found {
        let summary = folder.join("summary.json");
        if summary.exists() {
            let Ok(recorded) = Recorded::read(folder) else { return Found::Nothing };
            let recorded_config = serde_json::from_value::<Config>(recorded.summary.config.clone());
            return match recorded_config {
                Ok(old) if !is_same(&old, config) => Found::Nothing,
                Err(_) => Found::Nothing,
                Ok(_) if recorded.summary.interrupted => Found::checkpoint(folder, config, parts),
                Ok(_) => Found::Done(Box::new(recorded)),
            };
        }
        let text = read_text(&folder.join("config.toml")).unwrap_or_default();
        match Config::parse(&text, &[]) {
            Ok(old) if is_same(&old, config) => Found::checkpoint(folder, config, parts),
            _ => Found::Nothing,
        }
    }

    fn checkpoint(folder: &Path, config: &Config, parts: &[Part]) -> Found {
        let goes_on = || -> laconic_train::Result<bool> {
            let checkpoint = Checkpoint::from_bytes(&Checkpoint::read_bytes(folder)?)?;
            let counts = &parts.first().ok_or_else(|| TrainError::config("there are no parts"))?.global;
            let plan = Plan::of(config, counts)?;
            if !plan.goes_on_as_one() {
                // What it would come to cannot stand beside runs that were not stopped.
                return Ok(false);
            }
            let identity = Identity::of(&plan, counts)?;
            let identity = identity.with_parts(parts.iter().map(Part::digest));
            Ok(identity.check_goes_on(&checkpoint.identity, &[], None).is_ok())
        };
        if goes_on().unwrap_or(false) { Found::Begun } else { Found::Nothing }
    }
}

/// Whether two configurations are the same run. Folders may have been moved since, so of paths the last name counts.
/// Parts that were cut before say themselves how, which earlier programs did not ask them.
fn is_same(a: &Config, b: &Config) -> bool {
    let (mut old, new) = (anywhere(a), anywhere(b));
    if is_part_folder(&b.data.path) {
        (old.partition.method, old.partition.seed) = (new.partition.method.clone(), new.partition.seed);
    }
    old == new
}

fn anywhere(config: &Config) -> Config {
    let mut config = config.clone();
    config.out.dir = PathBuf::new();
    let (data, partition) = (&mut config.data, &mut config.partition);
    let named = [data.features_path.as_mut(), data.nodes_path.as_mut(), partition.file.as_mut()];
    for path in named.into_iter().flatten().chain([&mut data.path]) {
        *path = path.file_name().unwrap_or_default().into();
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moved_run_is_the_same_run_and_another_key_or_dataset_is_not() {
        let config = |text: &str| Config::parse(text, &[]).expect("a configuration");
        let here = config("[data]\npath = \"/here/cora.npz\"\n[out]\ndir = \"a\"\n");
        assert!(is_same(&here, &config("[data]\npath = \"/there/cora.npz\"\n[out]\ndir = \"b\"\n")));
        assert!(!is_same(&here, &config("[data]\npath = \"/here/citeseer.npz\"\n")));
        assert!(!is_same(&here, &config("[data]\npath = \"/here/cora.npz\"\n[train]\nepochs = 3\n")));
    }
}
