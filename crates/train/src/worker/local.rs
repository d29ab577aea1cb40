//! What a worker trains on: its part with blocks, degrees, features and targets in the form that the kernels read.

use std::borrow::Cow;
use std::sync::Arc;

use laconic_graph::dataset::{Labels, Split};
use laconic_graph::edges::Edges;
use laconic_graph::part::Part;
use laconic_graph::plan::Topology;
use laconic_nn::loss::Targets;
use laconic_nn::{Block, EdgeData, Nodes, Operand};

use super::by_id::ById;
use crate::inputs::operand;
use crate::pass::inputs::LocalGraph;

/// The three splits, in the order of every array over splits.
pub const SPLITS: [&str; 3] = ["train", "val", "test"];

/// One worker's rows.
pub struct Local {
    /// Global ids of own nodes, in the order of rows.
    pub ids: Vec<u64>,
    /// Own rows in the order of these.
    pub by_id: Arc<ById>,
    /// 1 / Σ in-weights.
    pub inverse_degree: Vec<f32>,
    /// (Σ in-weights)^(−1/2), 0 for a node without in-edges.
    pub inverse_root_degree: Vec<f32>,
    /// What in-edges that are in neither block count for in the degree of each row; empty where none do.
    left_out: Vec<f32>,
    /// Own → own edges.
    pub own: Block,
    /// Halo → own edges.
    pub halo: Block,
    /// Global ids of halo rows.
    pub halo_ids: Vec<u64>,
    /// A 1 for each halo row.
    halo_ones: Vec<f32>,
    /// Which rows belong to each split and have a label, or several of which one at least is known.
    pub masks: [Vec<bool>; 3],
    /// What own rows should say.
    pub labels: Labels,
    /// The part of each row where the rows of several parts are here; empty where all are of one.
    owners: Vec<u32>,
    /// Number of feature columns.
    pub columns: usize,
    /// Number of classes.
    pub classes: usize,
}

/// Own rows, before anything is known of their edges.
struct OwnRows {
    ids: Vec<u64>,
    masks: [Vec<bool>; 3],
    labels: Labels,
    columns: usize,
    classes: usize,
}

/// The edges that end at own rows.
struct EndingHere<'a> {
    topology: Topology,
    /// What is left out of each row's degree; of none where it is empty.
    left_out: &'a [f32],
    /// Whether they are told apart by their relations.
    relational: bool,
}

impl Local {
    /// Takes a part over; the features come apart, because the first stage consumes them.
    /// Its edges are told apart by their relations where the layers are `relational`.
    pub fn new(part: Part, topology: Topology, relational: bool) -> (Local, Operand) {
        let rows = part.rows();
        let (columns, classes) = (part.global.columns, part.global.classes);
        let mask = |role: u8| {
            let has = |row: usize| part.roles.get(row).is_some_and(|r| r & role != 0) && part.labels.known(row) > 0;
            (0..rows).map(has).collect::<Vec<bool>>()
        };
        let masks = [mask(Split::TRAIN), mask(Split::VAL), mask(Split::TEST)];
        let x = operand(part.features, rows, columns);
        let edges = EndingHere { topology, left_out: &part.left_out, relational };
        (Local::with_edges(OwnRows { ids: part.nodes, masks, labels: part.labels, columns, classes }, edges), x)
    }

    /// The same rows with other edges, and degrees of these.
    pub fn over(&self, topology: Topology) -> Local {
        let (ids, masks, labels) = (self.ids.clone(), self.masks.clone(), self.labels.clone());
        let rows = OwnRows { ids, masks, labels, columns: self.columns, classes: self.classes };
        Local::with_edges(rows, EndingHere { topology, left_out: &[], relational: self.own.shares().is_some() })
    }

    fn with_edges(rows: OwnRows, edges: EndingHere<'_>) -> Local {
        let OwnRows { ids, masks, labels, columns, classes } = rows;
        let EndingHere { topology, left_out, relational } = edges;
        let block = |sources: usize, edges: Edges<u32>| {
            let offsets = edges.offsets.into_iter().map(|offset| offset as usize).collect();
            let relations = edges.data.relations.filter(|_| relational).map(|relations| relations.of);
            Block::new(sources, offsets, edges.sources, EdgeData { weights: edges.data.weights, relations })
        };
        let [own_names, halo_names] = names(&ids, &topology.halo_ids);
        let mut own = block(ids.len(), topology.own).naming(own_names);
        let mut halo = block(topology.halo_ids.len(), topology.halo).naming(halo_names);
        if relational {
            [own, halo] = Block::share_relations([own, halo]);
        }
        let inverse = |power: f32| {
            let mut degrees = vec![0.0; ids.len()];
            own.add_in_degrees(&mut degrees);
            halo.add_in_degrees(&mut degrees);
            degrees.iter_mut().zip(left_out).for_each(|(degree, left_out)| *degree += left_out);
            degrees.iter_mut().for_each(|d| *d = if *d > 0.0 { d.powf(-power) } else { 0.0 });
            degrees
        };
        let (inverse_degree, inverse_root_degree) = (inverse(1.0), inverse(0.5));
        let halo_ids = topology.halo_ids;
        let halo_ones = vec![1.0; halo_ids.len()];
        Local {
            by_id: Arc::new(ById::of(&ids)),
            ids,
            inverse_degree,
            inverse_root_degree,
            left_out: left_out.to_vec(),
            own,
            halo,
            halo_ids,
            halo_ones,
            masks,
            labels,
            owners: Vec::new(),
            columns,
            classes,
        }
    }

    /// The same rows with other edges from halo rows, which come to the same sums: degrees stay.
    #[must_use]
    pub fn covered(self, halo: Edges<u32>, halo_ids: Vec<u64>) -> Local {
        let offsets = halo.offsets.into_iter().map(|offset| offset as usize).collect();
        let data = EdgeData { weights: halo.data.weights, relations: None };
        let halo = Block::new(halo_ids.len(), offsets, halo.sources, data);
        Local { halo, halo_ones: vec![1.0; halo_ids.len()], halo_ids, ..self }
    }

    /// Notes which part each node is of, by ascending ids.
    pub fn set_owners(&mut self, owners: &[u32]) {
        let ascending = self.by_id.ids(&self.ids);
        let owner = |id| ascending.binary_search(id).ok().and_then(|place| owners.get(place)).copied();
        self.owners = self.ids.iter().map(|id| owner(id).unwrap_or_default()).collect();
    }

    /// The part of each row where the rows of several parts are here; empty where all are of one.
    pub fn owners(&self) -> &[u32] {
        &self.owners
    }

    /// How many parts the rows here are told apart by.
    pub fn parts(&self) -> usize {
        self.owners.iter().max().map_or(1, |last| *last as usize + 1)
    }

    /// Which rows of a part belong to each split.
    pub fn masks_of(&self, part: usize) -> Cow<'_, [Vec<bool>; 3]> {
        if self.owners.is_empty() {
            return Cow::Borrowed(&self.masks);
        }
        let of = |mask: &Vec<bool>| {
            mask.iter().zip(&self.owners).map(|(&is_in, &owner)| is_in && owner as usize == part).collect()
        };
        Cow::Owned(self.masks.each_ref().map(of))
    }

    /// Global ids of own nodes, ascending.
    pub fn ascending_ids(&self) -> &[u64] {
        self.by_id.ids(&self.ids)
    }

    /// What the rows of each split count for: a row for 1, or for the share of its labels that are known. A training
    /// row of a class for what that weighs in the loss.
    pub fn split_weights(&self, class_weights: &[f32]) -> [f64; 3] {
        let all = self.labels.per_node().max(1) as f64;
        let mut weights = self.masks.each_ref().map(|mask| {
            let rows = (0..mask.len()).filter(|&row| mask[row]);
            rows.map(|row| self.labels.known(row)).sum::<usize>() as f64 / all
        });
        if let (Labels::Single { values, .. }, false) = (&self.labels, class_weights.is_empty()) {
            let rows = (0..values.len()).filter(|&row| self.masks[0][row]);
            weights[0] = rows.map(|row| f64::from(class_weights[values[row] as usize])).sum();
        }
        weights
    }

    /// What in-edges that are in neither block count for in the degree of an own row.
    pub fn left_out(&self, row: u32) -> f32 {
        self.left_out.get(row as usize).copied().unwrap_or(0.0)
    }

    /// Own rows as layers see them.
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes { ids: &self.ids, inverse_degree: &self.inverse_degree, inverse_root_degree: &self.inverse_root_degree }
    }

    /// Halo rows as layers see them: what their degrees do to them, their owners have done.
    pub fn halo_nodes(&self) -> Nodes<'_> {
        Nodes { ids: &self.halo_ids, inverse_degree: &self.halo_ones, inverse_root_degree: &self.halo_ones }
    }

    /// Own rows and the edges that end there.
    pub fn graph(&self) -> LocalGraph<'_> {
        LocalGraph { nodes: self.nodes(), own: &self.own, halo: &self.halo, halo_nodes: self.halo_nodes() }
    }

    /// What own rows should say.
    pub fn targets(&self) -> Targets<'_> {
        match &self.labels {
            Labels::Single { values, .. } => Targets::Classes(values),
            Labels::Multi { values, .. } => Targets::Sets(values),
            // Nobody asks: no row of such a part is in a split.
            Labels::None => Targets::Classes(&[]),
        }
    }
}

/// The place of each own and each halo row in the order of all global ids here, so that what goes by the order of rows
/// is the same on one worker and on many.
fn names(own: &[u64], halo: &[u64]) -> [Vec<u32>; 2] {
    let mut order: Vec<u32> = (0..(own.len() + halo.len()) as u32).collect();
    let id = |&row: &u32| own.get(row as usize).unwrap_or_else(|| &halo[row as usize - own.len()]);
    order.sort_unstable_by_key(|row| *id(row));
    let mut names = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&row, place)| names[row as usize] = place);
    let halo = names.split_off(own.len());
    [names, halo]
}

/// A subset of a worker's rows with their labels, so that rounds which touch no graph work on training rows alone.
pub struct Subset {
    /// Which own rows.
    pub rows: Vec<u32>,
    /// Which of them are learned from: all, unless somebody says otherwise.
    pub all: Vec<bool>,
    ids: Vec<u64>,
    inverse_degree: Vec<f32>,
    inverse_root_degree: Vec<f32>,
    labels: Labels,
}

impl Subset {
    /// The rows of `local` that `keep` selects.
    pub fn new(local: &Local, keep: &[bool]) -> Subset {
        Subset::of(local, (0..keep.len() as u32).filter(|&row| keep[row as usize]).collect())
    }

    /// These rows of `local`.
    pub fn of(local: &Local, rows: Vec<u32>) -> Subset {
        let pick = |values: &[f32]| rows.iter().map(|&r| values[r as usize]).collect::<Vec<f32>>();
        let labels = match &local.labels {
            Labels::None => Labels::None,
            Labels::Single { classes, values } => {
                Labels::Single { classes: *classes, values: rows.iter().map(|&r| values[r as usize]).collect() }
            }
            Labels::Multi { classes, values } => Labels::Multi {
                classes: *classes,
                values: rows.iter().flat_map(|&r| &values[r as usize * classes..][..*classes]).copied().collect(),
            },
        };
        let (inverse_degree, inverse_root_degree) = (pick(&local.inverse_degree), pick(&local.inverse_root_degree));
        let ids = rows.iter().map(|&r| local.ids[r as usize]).collect();
        Subset { all: vec![true; rows.len()], rows, ids, inverse_degree, inverse_root_degree, labels }
    }

    /// The same with those to be learned from marked among them.
    #[must_use]
    pub fn learning_from(self, mask: &[bool]) -> Subset {
        let all = self.rows.iter().map(|&row| mask[row as usize]).collect();
        Subset { all, ..self }
    }

    /// What its rows count for in the loss, as [`Local::split_weights`] counts training rows.
    pub fn weight(&self, class_weights: &[f32]) -> f64 {
        let rows = || (0..self.rows.len()).filter(|&row| self.all[row]);
        match &self.labels {
            Labels::Single { values, .. } if !class_weights.is_empty() => {
                rows().map(|row| f64::from(class_weights[values[row] as usize])).sum()
            }
            labels => {
                let all = labels.per_node().max(1) as f64;
                rows().map(|row| labels.known(row)).sum::<usize>() as f64 / all
            }
        }
    }

    /// The rows as layers see them.
    pub fn nodes(&self) -> Nodes<'_> {
        Nodes { ids: &self.ids, inverse_degree: &self.inverse_degree, inverse_root_degree: &self.inverse_root_degree }
    }

    /// What the rows should say.
    pub fn targets(&self) -> Targets<'_> {
        match &self.labels {
            Labels::Multi { values, .. } => Targets::Sets(values),
            Labels::Single { values, .. } => Targets::Classes(values),
            Labels::None => Targets::Classes(&[]),
        }
    }
}
