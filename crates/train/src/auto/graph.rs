//! The graph that all ways are tried on, cut once.

use laconic_graph::part::Part;
use laconic_graph::skew::LabelSkew;
use laconic_wire::Ledger;

use crate::config::Config;
use crate::error::Result;
use crate::forecast::costs::{Costs, forecast_knowing};
use crate::inputs::Found;
use crate::plan::Members;
use crate::run::source::Source;
use crate::run::{Data, plan};

/// A graph in parts: in memory, or in the folder that the configuration names.
pub struct CutGraph {
    parts: Option<Vec<Part>>,
    /// What is known of them once it was looked for.
    found: Found,
    /// What is unusual about the data, a line each.
    pub notes: Vec<String>,
    /// The number of parts.
    pub workers: u32,
    /// The number of validation nodes.
    pub validation_nodes: u64,
    /// Whether a node may have several classes.
    pub is_sets: bool,
    /// How far classes of training nodes differ between parts, where that is known.
    pub label_skew: Option<f64>,
}

impl CutGraph {
    /// Reads and cuts what a run is about.
    ///
    /// # Errors
    /// If there is no such data, or they cannot be cut so.
    pub fn open(members: &Members, config: &Config, data: Data) -> Result<CutGraph> {
        let source = data.source(members, config)?;
        let (workers, notes) = (source.parts(), source.notes().to_vec());
        let label_skew = source.label_skew();
        let validation_nodes = source.global().map_or(0, |global| global.val);
        let is_sets = source.global().is_some_and(|global| global.multi_label);
        let parts = match source {
            Source::Folder(..) => None,
            source @ Source::Cut(..) => Some(source.all()?),
        };
        let label_skew = match &parts {
            Some(parts) => LabelSkew::of_parts(parts).map(|labels| labels.skew),
            None => label_skew,
        };
        Ok(CutGraph { parts, found: Found::default(), notes, workers, validation_nodes, is_sets, label_skew })
    }

    /// The parts for one more run.
    pub fn data(&self) -> Data {
        self.parts.clone().map_or(Data::Configured, Data::Parts)
    }

    /// What a run on it would cost.
    ///
    /// # Errors
    /// If the configuration does not suit the data.
    pub fn costs(&self, members: &Members, config: &Config) -> Result<Costs> {
        match &self.parts {
            Some(parts) => forecast_knowing(members, config, (parts, &self.found), Ledger::of_totals),
            None => plan(members, config, Data::Configured),
        }
    }
}
