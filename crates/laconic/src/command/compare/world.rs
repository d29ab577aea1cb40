//! The graph as it is cut for some of the methods: once for all runs on it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use laconic_graph::part::{Part, Provenance, open_meta, open_part, write_parts};
use laconic_graph::plan::IdIndex;
use laconic_train::inputs::Found;
use laconic_train::run::source::Source;
use laconic_train::{Config, Members, TrainError};

/// The folder of parts in that of a comparison while it runs.
const PARTS: &str = ".parts";

/// The graph, cut and split in one way, for the runs that share it.
pub struct World {
    /// The parts; none while others are in memory in their place.
    pub parts: Vec<Part>,
    /// What is known of them once it was looked for.
    pub found: Found,
    /// The share of edges whose ends are of two parts.
    pub edge_cut: f64,
    config: Config,
    /// Tells its folder from those of other cuts.
    number: usize,
    /// Where the runs' processes find it: the folder that the data are in, or one that is written when it is needed.
    folder: Option<PathBuf>,
    written: Option<PathBuf>,
}

/// How many edges with these sources start at none of the own nodes, which ascend and may be any numbers.
fn from_others(own: &[u64], sources: &[u64]) -> u64 {
    let own = IdIndex::new(own);
    sources.iter().filter(|source| own.row(**source).is_none()).count() as u64
}

impl World {
    /// Reads the data and cuts them as the configuration says.
    pub fn open(config: Config, number: usize) -> Result<World, TrainError> {
        let source = Source::open(&Members::default(), &config, None)?;
        let folder = matches!(source, Source::Folder(..)).then(|| config.data.path.clone());
        let parts = source.all()?;
        let foreign: u64 = parts.iter().map(|part| from_others(&part.nodes, &part.edges.sources)).sum();
        let edges: usize = parts.iter().map(|part| part.edges.sources.len()).sum();
        let edge_cut = foreign as f64 / edges.max(1) as f64;
        Ok(World { parts, found: Found::default(), edge_cut, config, number, folder, written: None })
    }

    /// The folder of its parts, written beside the runs where there is none.
    pub fn folder(&mut self, out: &Path) -> Result<PathBuf, TrainError> {
        if let Some(folder) = &self.folder {
            return Ok(folder.clone());
        }
        let partition = &self.config.partition;
        // One that is left by a process that was killed is replaced.
        let folder = out.join(if self.number == 0 { PARTS.to_owned() } else { format!("{PARTS}-{}", self.number) });
        let provenance = Provenance { method: partition.method.clone(), seed: partition.seed };
        write_parts(&folder, &self.parts, &provenance, true)?;
        self.written = Some(folder.clone());
        self.folder = Some(folder.clone());
        Ok(folder)
    }

    /// Makes room in memory for another: the parts are then in their folder alone.
    pub fn set_aside(&mut self, out: &Path) -> Result<(), TrainError> {
        self.folder(out)?;
        self.parts = Vec::new();
        Ok(())
    }

    /// The parts in memory again.
    pub fn take_up(&mut self) -> Result<(), TrainError> {
        if let Some(folder) = self.folder.as_ref().filter(|_| self.parts.is_empty()) {
            let count = open_meta(folder)?.parts;
            self.parts = (0..count).map(|index| open_part(folder, index)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(folder) = &self.written {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::from_others;

    #[test]
    fn edges_from_other_parts_are_counted_whatever_numbers_nodes_have() {
        assert_eq!(from_others(&[3, 5, 1 << 40, u64::MAX], &[5, 4, u64::MAX, 0, 1 << 41, 3]), 3);
        assert_eq!((from_others(&[], &[7, 7]), from_others(&[7], &[])), (2, 0));
    }
}
