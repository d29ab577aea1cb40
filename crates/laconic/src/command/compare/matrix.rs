//! The file that says which methods are compared over which seeds.

use std::path::{Path, PathBuf};

use laconic_graph::limits::read_file;
use laconic_train::config::{PartitionConfig, TransportKind, suggested};
use laconic_train::run::source::is_part_folder;
use laconic_train::{Config, TrainError};
use laconic_wire::LinkShape;
use serde::Deserialize;

use super::entry::{MethodEntry, RUNS_MAX, Result, refuse};
use super::seeds::{self, Seeds};
use super::sweep::Sweep;
use crate::command::train::RunFile;
use crate::plot::short;

/// Letters of a method's name at most: it becomes the name of a folder.
const NAME_MAX: usize = 60;
/// Letters at most of a line of the file that an error shows.
const SHOWN: usize = 120;
/// Bytes of the file at most.
const BYTES_MAX: u64 = 1 << 20;

/// What is compared.
pub struct Matrix {
    /// The seeds, each for every method; those of one partition and split stand together.
    pub seeds: Vec<Seeds>,
    /// The link model on whose clock runs are timed.
    pub link: Option<String>,
    /// The methods, checked.
    pub methods: Vec<Method>,
    /// How the graph is cut for them: each way once, in the order of the methods.
    pub cuts: Vec<PartitionConfig>,
    /// Which of them the others are measured against.
    pub baseline: usize,
}

/// One way to train.
pub struct Method {
    /// The name that the file gives it.
    pub name: String,
    /// The name of its folder.
    pub slug: String,
    /// What it changes.
    pub set: Vec<String>,
    /// Its configuration, but for seed and folder.
    pub config: Config,
    /// Which of [`Matrix::cuts`] it trains on.
    pub cut: usize,
}

/// Arguments that go before what the file says.
pub struct Wishes {
    /// `--seeds`: 0 up to here.
    pub seeds: Option<u64>,
    /// The link model of all methods: `--link`.
    pub link: Option<String>,
    /// The methods that are taken of those of the file, in this order; empty for all of them.
    pub methods: Vec<String>,
}

/// The methods of papers, which need no file.
const PAPERS: &str = include_str!("../../../../../examples/methods/papers.toml");
/// What stands in messages in the place of the file's name then.
const PAPERS_NAME: &str = "examples/methods/papers.toml";

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MatrixFile {
    seeds: Option<toml::Value>,
    link: Option<String>,
    baseline: Option<String>,
    #[serde(default)]
    method: Vec<MethodEntry>,
    #[serde(default)]
    sweep: Vec<Sweep>,
}

/// The methods of papers that need no file.
pub fn methods_of_papers() -> Vec<MethodEntry> {
    // The file is part of the program, and a test reads it.
    MatrixFile::parse(PAPERS, PAPERS_NAME).map(|file| file.method).unwrap_or_default()
}

impl Matrix {
    /// Reads the file, or without one the methods of papers, and checks every configuration, so that the last run fails
    /// no later than the first.
    pub fn load(path: Option<&Path>, run: &RunFile, base: &Config, wishes: Wishes) -> Result<Matrix> {
        let file = match path {
            Some(path) => MatrixFile::read(path)?,
            None => MatrixFile::parse(PAPERS, PAPERS_NAME)?,
        };
        let place = path.unwrap_or(Path::new(PAPERS_NAME)).display();
        let at = |error: TrainError| TrainError::config(format!("{place}: {}", bare(&error)));
        let seeds = seeds::read(file.seeds, wishes.seeds, base).map_err(at)?;
        let mut entries = file.method;
        for sweep in file.sweep {
            entries.extend(sweep.methods().map_err(at)?);
        }
        if !wishes.methods.is_empty() {
            entries = picked(entries, &wishes.methods)?;
        }
        if entries.is_empty() {
            return refuse(format!("{place}: no [[method]] and no [[sweep]], so nothing to compare"));
        }
        if seeds.len() * entries.len() > RUNS_MAX {
            let (methods, seeds) = (entries.len(), seeds.len());
            return refuse(format!("{place}: {methods} methods over {seeds} seeds: more than {RUNS_MAX} runs"));
        }
        let named = |name: &String| entries.iter().position(|entry| entry.name == *name);
        let baseline = match &file.baseline {
            None => 0,
            // One that was not picked is none.
            Some(name) if !wishes.methods.is_empty() => named(name).unwrap_or(0),
            Some(name) => named(name)
                .ok_or_else(|| TrainError::config(format!("{place}: baseline = {name:?}: no method is called so")))?,
        };
        // A link model that the run itself names is as good.
        let own = Some(&base.transport.shape).filter(|shape| !shape.is_empty()).cloned();
        let link = wishes.link.or(file.link).or(own);
        if let Some(link) = &link {
            link.parse::<LinkShape>().map_err(|error| TrainError::config(format!("link = {link:?}: {error}")))?;
        }
        let method = |entry| Method::new(entry, run, base, link.as_deref());
        let mut methods = entries.into_iter().map(method).collect::<Result<Vec<Method>>>().map_err(at)?;
        check_together(&methods).map_err(at)?;
        let mut cuts: Vec<PartitionConfig> = Vec::new();
        for method in &mut methods {
            let partition = &method.config.partition;
            method.cut = cuts.iter().position(|cut| cut == partition).unwrap_or(cuts.len());
            if method.cut == cuts.len() {
                cuts.push(partition.clone());
            }
        }
        Ok(Matrix { seeds, link, methods, cuts, baseline })
    }

    /// The configuration of one of the cuts, with these seeds.
    pub fn cut(&self, base: &Config, seeds: &Seeds, cut: usize) -> Config {
        seeds.applied(&Config { partition: self.cuts[cut].clone(), ..base.clone() })
    }
}

impl MatrixFile {
    fn read(path: &Path) -> Result<MatrixFile> {
        let bytes = read_file(path, BYTES_MAX).map_err(|source| TrainError::io(path, source))?;
        let text = String::from_utf8(bytes).map_err(|_| TrainError::file(path, "expected text in UTF-8"))?;
        MatrixFile::parse(&text, &path.display().to_string())
    }

    fn parse(text: &str, name: &str) -> Result<MatrixFile> {
        let shown = |line: &str| short(line, SHOWN);
        let malformed = |error: toml::de::Error| {
            let lines: Vec<String> = error.to_string().trim_end().lines().map(shown).collect();
            format!("{name}: {}", lines.join("\n"))
        };
        toml::from_str(text).map_err(|error| TrainError::config(malformed(error)))
    }
}

/// The methods of these names, whatever the case of their letters; `words` are what stands between commas, of which a
/// name may have some.
fn picked(entries: Vec<MethodEntry>, words: &[String]) -> Result<Vec<MethodEntry>> {
    let all: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let longest = all.iter().map(|name| name.split(',').count()).max().unwrap_or(1);
    let place_of = |words: &[String]| {
        let wanted = words.join(",").trim().to_lowercase();
        all.iter().position(|known| known.to_lowercase() == wanted)
    };
    let mut places: Vec<usize> = Vec::with_capacity(words.len());
    let mut rest = words;
    while let Some(name) = rest.first() {
        let counts = (1..=longest.min(rest.len())).rev();
        let Some((count, place)) = counts.filter_map(|count| Some(count).zip(place_of(&rest[..count]))).next() else {
            let hint = suggested(name.trim(), &all).map(|hint| format!("{hint} ")).unwrap_or_default();
            return refuse(format!("--methods: no method is called {name:?}; {hint}there are {}", all.join(" | ")));
        };
        if places.contains(&place) {
            return refuse(format!("--methods names {:?} twice", all[place]));
        }
        places.push(place);
        rest = &rest[count..];
    }
    let mut entries: Vec<Option<MethodEntry>> = entries.into_iter().map(Some).collect();
    Ok(places.into_iter().filter_map(|place| entries[place].take()).collect())
}

impl Method {
    fn new(entry: MethodEntry, run: &RunFile, base: &Config, link: Option<&str>) -> Result<Method> {
        let MethodEntry { name, set } = entry;
        let slug = slug(&name)?;
        for change in &set {
            let key = change.split('=').next().unwrap_or_default().trim_start_matches('!');
            let key = &key.split('.').map(str::trim).collect::<Vec<_>>().join(".");
            if let Some(why) = forbidden(key, link.is_some()) {
                return refuse(format!("method {name:?} sets {key}: {why}"));
            }
        }
        let all: Vec<String> = run.overrides().into_iter().chain(set.iter().cloned()).collect();
        let mut config = Config::load(&run.file, &all)
            .map_err(|error| TrainError::config(format!("method {name:?}: {}", bare(&error))))?;
        if config.data != base.data {
            return refuse(format!("method {name:?}: data are not those of {}", run.file.display()));
        }
        if config.partition != base.partition && is_part_folder(&base.data.path) {
            let path = base.data.path.display();
            let what = "is a folder of parts, cut already: name the dataset";
            return refuse(format!("method {name:?} sets partition: data.path {path} {what}"));
        }
        if ![TransportKind::Threads, TransportKind::Simulated].contains(&config.transport.kind) {
            let what = "runs are compared on threads of one process, or simulated";
            return refuse(format!("method {name:?}: transport.kind: {what}"));
        }
        if let Some(link) = link {
            config.transport.shape = link.to_owned();
            config.transport.shape_sleeps = false;
        }
        Ok(Method { name, slug, set, config, cut: 0 })
    }

    /// The configuration of one run, and its folder.
    pub fn run(&self, out: &Path, seeds: &Seeds) -> (Config, PathBuf) {
        let mut config = seeds.applied(&self.config);
        config.out.dir = out.join(self.folder(seeds));
        let folder = config.out.dir.clone();
        (config, folder)
    }

    /// The folder of one run within that of the comparison.
    pub fn folder(&self, seeds: &Seeds) -> String {
        format!("runs/{}/{}", self.slug, seeds.folder())
    }
}

/// Why a method may not set this key.
fn forbidden(key: &str, has_link: bool) -> Option<&'static str> {
    match key.split('.').next().unwrap_or_default().trim() {
        "data" => Some("all methods run on one graph; set it in the run's file"),
        "train" if key == "train.seed" => Some("seeds are listed under seeds"),
        "partition" if key == "partition.seed" => {
            Some("seeds are listed under seeds: seeds = { train = [0, 1], partition = [0, 1] }")
        }
        "train" | "partition" if !key.contains('.') => Some("set single keys, not whole sections"),
        "out" if key != "out.checkpoint_every" => Some("the folders of runs are chosen by compare"),
        "transport" if has_link && (!key.contains('.') || key.starts_with("transport.shape")) => {
            Some("link decides the link model of all methods")
        }
        _ => None,
    }
}

/// What methods must not share, and what they must.
fn check_together(methods: &[Method]) -> Result<()> {
    for (index, method) in methods.iter().enumerate() {
        if let Some(other) = methods[..index].iter().find(|other| other.slug == method.slug) {
            let (name, other) = (&method.name, &other.name);
            return refuse(if name == other {
                format!("two methods are called {name:?}")
            } else {
                format!("methods {other:?} and {name:?} would share the folder {:?}", method.slug)
            });
        }
        // Otherwise one column would hold figures of different metrics.
        if method.config.train.metrics.first() != methods[0].config.train.metrics.first() {
            let (name, first) = (&method.name, &methods[0].name);
            return refuse(format!("method {name:?}: train.metrics: the first has to be that of {first:?}"));
        }
    }
    Ok(())
}

/// The name of a method's folder: small letters, digits and dashes.
fn slug(name: &str) -> Result<String> {
    let letters = name.chars().flat_map(char::to_lowercase);
    let dashed: String = letters.map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let slug = dashed.split('-').filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-");
    if slug.is_empty() {
        return refuse(format!("method {name:?}: a name needs a letter or digit"));
    }
    if name.chars().count() > NAME_MAX {
        return refuse(format!("method {name:?}: a name has at most {NAME_MAX} letters"));
    }
    Ok(slug)
}

/// An error's text without the word that says what kind it is.
pub fn bare(error: &TrainError) -> String {
    error.to_string().replacen("configuration: ", "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_hold_nothing_but_letters_digits_and_dashes() {
        assert_eq!(slug("../Lazy, from  scores/..").expect("a name"), "lazy-from-scores");
        assert_eq!(slug("Gröbner 2").expect("a name"), "gröbner-2");
        assert!(slug(" ./.. ").is_err() && slug("").is_err() && slug(&"x".repeat(61)).is_err());
    }
}
