//! Folders of a knowledge graph's triples with their splits: `train.txt`, `valid.txt` and `test.txt` (or tsv, or no
//! ending) of the lines head, relation, tail, with tabs between them, as FB15k-237 and WN18RR come.
//!
//! Each triple is an edge from its head to its tail; relations are told apart. Those of `valid` and `test` are held out
//! to be predicted. Entities and relations are in the order of their first appearance.

use super::text::{Lines, find_text};
use super::{ReadOptions, Reader, dataset_name};
use crate::about::About;
use crate::build::build_graph;
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::edges::{EdgeData, Relations};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::limits::Limits;
use crate::roles::{Role, Roles};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The reader of folders of triples.
pub struct Triples;

/// The files of training, validation and testing, each by its first name that is there.
const FILES: [&[&str]; 3] = [
    &["train.txt", "train.tsv", "train"],
    &["valid.txt", "valid.tsv", "valid", "val.txt", "val.tsv", "val", "dev.txt", "dev.tsv", "dev"],
    &["test.txt", "test.tsv", "test"],
];

impl Reader for Triples {
    fn name(&self) -> &'static str {
        "folder of triples"
    }

    fn recognises(&self, path: &Path) -> bool {
        let Some([train, ..]) = files(path) else { return false };
        let line = Lines::open(&train, &Limits::default()).and_then(|mut lines| {
            let line = lines.next_line()?;
            Ok(line.is_some_and(|line| line.split('\t').count() == 3))
        });
        line.unwrap_or(false)
    }

    fn read(&self, path: &Path, options: &ReadOptions) -> Result<Dataset> {
        Ok(self.read_with_roles(path, options)?.0)
    }

    fn read_with_roles(&self, path: &Path, options: &ReadOptions) -> Result<(Dataset, Roles)> {
        let files = files(path).ok_or_else(|| GraphError::format(path, "folder", "expected train, valid and test"))?;
        let (mut found, mut roles) = (Found::default(), Roles::default());
        for (role, file) in files.iter().enumerate() {
            found.read(file, role as u8, &options.limits)?;
            let what = if role == 0 { "tail" } else { "tail, held out" };
            let mut lines = roles.of_table(file);
            lines.line(Role::Source, &[], "head");
            lines.line(Role::Target, &[], what);
        }
        let Found { entities, relations, sources, targets, of, held } = found;
        let relations = relations.names;
        let data =
            EdgeData { weights: None, relations: Some(Relations { count: relations.len(), of }), held: Some(held) };
        let built = build_graph(entities.names.len(), sources, targets, data, options.build());
        let graph = built.map_err(|error| GraphError::format(path, "triples", error.to_string()))?.0;
        let mut about = About { relations, ..About::default() };
        about.name_reverses(graph.data.kinds());
        let dataset = Dataset {
            name: dataset_name(path),
            graph,
            features: Features::None,
            exact: Exact::default(),
            labels: Labels::None,
            splits: Vec::new(),
            ids: Ids::Strings(entities.names),
            about,
            negatives: None,
        };
        Ok((dataset.checked()?, roles))
    }
}

fn files(folder: &Path) -> Option<[PathBuf; 3]> {
    let [train, valid, test] = FILES.map(|names| find_text(folder, names));
    Some([train?, valid?, test?])
}

/// Names with numbers in the order of their first appearance.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Names {
    /// The number of a name, of which there may be so many.
    fn number(&mut self, name: &str, most: u64) -> std::result::Result<u32, String> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        let number = self.names.len() as u64;
        if number >= most.min(u64::from(u32::MAX)) {
            return Err(format!("more than {most} different names"));
        }
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number as u32);
        Ok(number as u32)
    }
}

#[derive(Default)]
struct Found {
    entities: Names,
    relations: Names,
    sources: Vec<u32>,
    targets: Vec<u32>,
    of: Vec<u16>,
    held: Vec<u8>,
}

impl Found {
    fn read(&mut self, path: &Path, role: u8, limits: &Limits) -> Result<()> {
        let mut lines = Lines::open(path, limits)?;
        while lines.next_line()?.is_some() {
            let line = lines.line();
            if line.is_empty() {
                continue;
            }
            let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
            let [head, relation, tail] = fields[..] else {
                return Err(lines.error(format!("expected head, relation and tail, found {} fields", fields.len())));
            };
            let added = self.add([head, relation, tail], role, limits);
            added.map_err(|what| lines.error(what))?;
            if self.sources.len() as u64 > limits.edges_max {
                return Err(GraphError::too_large(path, "triples", limits.edges_max));
            }
        }
        Ok(())
    }

    fn add(&mut self, [head, relation, tail]: [&str; 3], role: u8, limits: &Limits) -> std::result::Result<(), String> {
        self.sources.push(self.entities.number(head, limits.nodes_max)?);
        self.targets.push(self.entities.number(tail, limits.nodes_max)?);
        self.of.push(self.relations.number(relation, Relations::MOST as u64)? as u16);
        self.held.push(role);
        Ok(())
    }
}
