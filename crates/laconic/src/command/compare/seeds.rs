//! The seeds of a comparison: of training, and where it says so of partition and split.

use std::collections::BTreeSet;
use std::fmt;

use laconic_train::config::SplitChoice;
use laconic_train::run::source::is_part_folder;
use laconic_train::{Config, TrainError};
use serde::Deserialize;

use super::entry::{RUNS_MAX, Result, refuse};

/// What one run of every method draws from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seeds {
    /// `train.seed`: initial values and dropout.
    pub train: u64,
    /// `partition.seed`, where it is not the run file's.
    pub partition: Option<u64>,
    /// `data.split.seed`, where it is not the run file's.
    pub split: Option<u64>,
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}", self.train)?;
        self.partition.map_or(Ok(()), |seed| write!(f, ", partition {seed}"))?;
        self.split.map_or(Ok(()), |seed| write!(f, ", split {seed}"))
    }
}

impl From<u64> for Seeds {
    /// A seed of training alone.
    fn from(train: u64) -> Seeds {
        Seeds { train, partition: None, split: None }
    }
}

impl Seeds {
    /// The end of a run's folder: `seed-0`, `seed-0-partition-1-split-2`.
    pub fn folder(&self) -> String {
        self.to_string().replace(", ", "-").replace(' ', "-")
    }

    /// The configuration with these seeds.
    pub fn applied(&self, config: &Config) -> Config {
        let mut config = config.clone();
        config.train.seed = self.train;
        config.partition.seed = self.partition.unwrap_or(config.partition.seed);
        if let (SplitChoice::Random(random), Some(seed)) = (&mut config.data.split, self.split) {
            random.seed = seed;
        }
        config
    }

    /// Whether both are runs on one graph, cut and split alike.
    pub fn share_parts(&self, other: &Seeds) -> bool {
        (self.partition, self.split) == (other.partition, other.split)
    }
}

/// `seeds = { train = […], partition = […], split = […] }`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lists {
    #[serde(default = "first")]
    train: Vec<u64>,
    partition: Option<Vec<u64>>,
    split: Option<Vec<u64>>,
    /// Whether the first of each list go together, then the second, in place of every combination.
    #[serde(default)]
    zip: bool,
}

fn first() -> Vec<u64> {
    vec![0]
}

/// The seeds of all runs of a method, those on one partition and split one after the other.
pub fn read(value: Option<toml::Value>, count: Option<u64>, base: &Config) -> Result<Vec<Seeds>> {
    let expected = |error: toml::de::Error| TrainError::config(format!("seeds: {}", error.message()));
    let mut lists = match value {
        None => Lists { train: first(), partition: None, split: None, zip: false },
        Some(value @ toml::Value::Table(_)) => value.try_into::<Lists>().map_err(expected)?,
        Some(value) => {
            let train = value.try_into::<Vec<u64>>().map_err(expected)?;
            Lists { train, partition: None, split: None, zip: false }
        }
    };
    if let Some(count) = count {
        lists.train = (0..count.min(RUNS_MAX as u64 + 1)).collect();
    }
    lists.check(base)?;
    Ok(lists.all())
}

impl Lists {
    fn check(&self, base: &Config) -> Result<()> {
        let lists =
            [("train", Some(&self.train)), ("partition", self.partition.as_ref()), ("split", self.split.as_ref())];
        for (name, list) in lists.into_iter().filter_map(|(name, list)| Some((name, list?))) {
            if list.is_empty() {
                return refuse(format!("no seeds ({name}), so nothing to run"));
            }
            if list.iter().collect::<BTreeSet<_>>().len() < list.len() {
                return refuse(format!("seeds: one of them stands there twice ({name})"));
            }
            if self.zip && list.len() != self.train.len() {
                let (train, other) = (self.train.len(), list.len());
                return refuse(format!("seeds: zip = true with {train} seeds of train and {other} of {name}"));
            }
        }
        let cut = is_part_folder(&base.data.path);
        if cut && (self.partition.is_some() || self.split.is_some()) {
            let what = "is a folder of parts, cut and split already: name the dataset";
            return refuse(format!("seeds: data.path {} {what}", base.data.path.display()));
        }
        if self.split.is_some() && !matches!(base.data.split, SplitChoice::Random(_)) {
            return refuse(
                "seeds.split: data.split draws none; data.split = { train = 0.6, val = 0.2 } does".to_owned(),
            );
        }
        Ok(())
    }

    fn all(&self) -> Vec<Seeds> {
        let some = |list: &Option<Vec<u64>>| match list {
            Some(list) => list.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        let (partitions, splits) = (some(&self.partition), some(&self.split));
        if self.zip {
            let at = |list: &[Option<u64>], index: usize| list[index.min(list.len() - 1)];
            let seeds = self.train.iter().enumerate();
            let seeds = seeds.map(|(i, &train)| Seeds { train, partition: at(&partitions, i), split: at(&splits, i) });
            return seeds.collect();
        }
        let mut all = Vec::new();
        // Each list is short, but their product may be anything; one more than allowed is refused later.
        for &split in &splits {
            for &partition in &partitions {
                let left = (RUNS_MAX + 1).saturating_sub(all.len());
                all.extend(self.train.iter().take(left).map(|&train| Seeds { train, partition, split }));
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, base: &str) -> Result<Vec<String>> {
        let value = text.parse::<toml::Table>().expect("TOML").remove("seeds");
        let base = Config::parse(base, &[]).expect("a configuration");
        read(value, None, &base).map(|all| all.iter().map(Seeds::folder).collect())
    }

    #[test]
    fn lists_are_combined_or_taken_together_and_folders_of_one_list_keep_their_names() {
        let random = "[data]\nsplit = { train = 0.5, val = 0.2 }\n";
        assert_eq!(read_text("", "").expect("seeds"), ["seed-0"]);
        assert_eq!(read_text("seeds = [3, 1]", "").expect("seeds"), ["seed-3", "seed-1"]);
        let all = read_text("seeds = { train = [0, 1], partition = [5, 6] }", "").expect("seeds");
        assert_eq!(all, ["seed-0-partition-5", "seed-1-partition-5", "seed-0-partition-6", "seed-1-partition-6"]);
        let zip = "seeds = { train = [0, 1], partition = [5, 6], split = [7, 8], zip = true }";
        let zipped = read_text(zip, random).expect("seeds");
        assert_eq!(zipped, ["seed-0-partition-5-split-7", "seed-1-partition-6-split-8"]);
        for (text, base, word) in [
            ("seeds = { train = [0, 1], partition = [5], zip = true }", "", "zip"),
            ("seeds = { split = [1] }", "", "data.split"),
            ("seeds = { partition = [1, 1] }", "", "twice"),
            ("seeds = { train = [] }", "", "no seeds"),
            ("seeds = { trian = [1] }", "", "trian"),
            ("seeds = [-1]", "", "seeds"),
        ] {
            let error = read_text(text, base).expect_err(text).to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn seeds_reach_the_keys_that_they_are_called_after() {
        let base = Config::parse("[data]\nsplit = { train = 0.5, val = 0.2 }\n", &[]).expect("a configuration");
        let seeds = Seeds { train: 3, partition: Some(4), split: Some(5) };
        let config = seeds.applied(&base);
        let SplitChoice::Random(random) = &config.data.split else { panic!("a drawn split") };
        assert_eq!((config.train.seed, config.partition.seed, random.seed), (3, 4, 5));
        assert_eq!(Seeds { partition: None, split: None, ..seeds }.applied(&base).partition, base.partition);
    }
}
