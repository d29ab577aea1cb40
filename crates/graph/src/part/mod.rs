//! Parts: what one owner of a piece of the graph may know, cut from a dataset or read from a part folder.
//!
//! A part knows its own nodes and the edges that end at them, with the sources' global ids, and no more. Nobody ever
//! needs the whole graph: owners find out who holds which source by exchanging ids, see [`crate::plan`].

mod check;
mod counts;
mod cut;
mod digest;
mod empty;
mod folder;
mod mapped;
mod meta;
mod negatives;
mod owned;
mod tensors;
mod to_be;
mod whole;

use serde::{Deserialize, Serialize};

use crate::about::About;
use crate::dataset::{Features, Ids, Labels};
use crate::edges::Edges;
use crate::given::{GivenCounts, GivenNegatives};
use crate::leaks::Leaks;
use crate::owners::Owners;
use crate::type_runs::TypeRuns;

pub use counts::{Needs, PartCounts};
pub use cut::{cut, cut_one_by_one};
pub(crate) use folder::{Aside, OLD, clear, may_replace, take_back};
pub use folder::{
    features_bytes, is_part_folder, open_meta, open_part, open_part_with, parts_here, write_counts, write_part,
    write_parts,
};
pub use mapped::FeaturesIn;
pub use meta::{FORMAT, FileEntry, Meta, PartEntry, Provenance, VERSION};
pub(crate) use to_be::FolderToBe;

/// All that the owner of one part knows. Rows of `features`, `labels`, `roles` and `ids` are the nodes of `nodes`.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The number of this part, below `parts`.
    pub index: u32,
    /// How many parts there are.
    pub parts: u32,
    /// The global ids of the own nodes, ascending.
    pub nodes: Vec<u64>,
    /// The edges that end at own rows, by the global ids of their sources.
    pub edges: Edges<u64>,
    /// Who owns the sources of edges that are not own nodes, where whoever cut the graph has told it.
    pub owners: Option<Owners>,
    /// What in-edges count for in the degree of each own node that are not among `edges`; empty where none is left out.
    /// Part folders do not hold it: [`Part::alone`] makes it.
    pub left_out: Vec<f32>,
    /// Pairs that the data give as no edges, each with the owner of its target; where edges have pairs of their own,
    /// with the owner of the edge's target.
    pub negatives: Option<GivenNegatives<u64>>,
    /// Features of the own nodes.
    pub features: Features,
    /// Labels of the own nodes.
    pub labels: Labels,
    /// The flag of [`crate::dataset::Split`] of each own node, at most one: what is learned from is not judged by.
    /// Empty without a split.
    pub roles: Vec<u8>,
    /// The user's ids of the own nodes. [`Ids::Row`] says that a node is called by its global id, and that global ids
    /// lie below [`GlobalCounts::nodes`].
    pub ids: Ids,
    /// What all owners know about the whole.
    pub global: GlobalCounts,
}

/// Figures about the whole graph, the same in every part: normalisation and loss weights never depend on the partition.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GlobalCounts {
    /// What the data is called.
    pub dataset: String,
    /// [`crate::digest::digest`] of the dataset the parts were cut from; empty where nobody ever held the whole.
    pub data_digest: String,
    /// A digest of the schema that sites built their parts by ([`crate::site::Schema::digest`]); else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub schema: String,
    /// A digest of which node went to which part; empty where nobody ever held the whole.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub partition_digest: String,
    /// The number of nodes; 0, as of edges and of nodes of each split, where nobody has counted those of all parts.
    pub nodes: u64,
    /// The number of directed edges.
    pub edges: u64,
    /// The number of training nodes.
    pub train: u64,
    /// The number of validation nodes.
    pub val: u64,
    /// The number of test nodes.
    pub test: u64,
    /// The number of feature columns; 0 without features.
    pub columns: usize,
    /// The number of classes; 0 without labels.
    pub classes: usize,
    /// Whether a node may have several classes.
    pub multi_label: bool,
    /// Whether edges have weights.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub weighted: bool,
    /// How many relations edges are of; 0 where there is one kind of edge.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub relations: usize,
    /// How many edges the data hold out, for validation and for testing; `None` where they do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<[u64; 2]>,
    /// Of those, for validation and for testing, how many have a training edge between the same two nodes; `None` where
    /// the data hold none out, or nobody who cut the parts saw all edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaks: Option<[Leaks; 2]>,
    /// How many pairs the data give as no edges, for validation and for testing; `None` where they give none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub negatives: Option<[GivenCounts; 2]>,
    /// Which node is of which type; empty where there is one type of nodes, or nobody who cut the parts knew.
    #[serde(default, skip_serializing_if = "TypeRuns::is_empty")]
    pub types: TypeRuns,
    /// What classes, relations and features are called, and how features were made.
    #[serde(default, skip_serializing_if = "About::is_empty")]
    pub about: About,
    /// What each part is called; empty where parts are called by their numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub part_names: Vec<String>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl GlobalCounts {
    /// Whether somebody has counted nodes and edges of all parts: not where a site has built its own.
    pub fn are_counted(&self) -> bool {
        self.nodes > 0
    }

    /// What a part is called.
    pub fn called(&self, part: u32) -> String {
        self.part_names.get(part as usize).cloned().unwrap_or_else(|| format!("part {part}"))
    }
}

impl Part {
    /// The number of own nodes.
    pub fn rows(&self) -> usize {
        self.nodes.len()
    }

    /// The same as part `index` of `parts`, among others than it was cut with: whose their nodes are it does not know.
    #[must_use]
    pub fn numbered(self, index: u32, parts: u32) -> Part {
        Part { index, parts, owners: None, ..self }
    }

    /// Whether somebody lends its features, who may keep them where they are.
    pub fn features_are_lent(&self) -> bool {
        matches!(&self.features, Features::Dense { values, .. } if values.lender().is_some())
    }

    /// Whether its features stay in their file; see [`FeaturesIn::File`].
    pub fn features_are_in_file(&self) -> bool {
        let Features::Dense { values, .. } = &self.features else { return false };
        values.lender().is_some_and(|lender| lender.file().is_some())
    }
}
