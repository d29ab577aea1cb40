//! The part of who owns no node.

use laconic_array::Array;

use super::{GlobalCounts, Part};
use crate::dataset::{Features, Ids, Labels};
use crate::edges::{EdgeData, Edges, Relations};
use crate::given::{GivenCounts, GivenPairs};

impl Part {
    /// A part of no nodes and no edges, for who takes part in a computation without owning any of the graph: it knows
    /// what all owners know, and nothing else.
    pub fn without_nodes(index: u32, parts: u32, global: &GlobalCounts) -> Part {
        let GlobalCounts { columns, classes, multi_label, relations, .. } = *global;
        let data = EdgeData {
            weights: global.weighted.then(Vec::new),
            relations: (relations > 0).then(|| Relations { count: relations, of: Vec::new() }),
            held: global.held.map(|_| Vec::new()),
        };
        let pairs = |given: GivenCounts| GivenPairs { each: given.each as usize, ..GivenPairs::default() };
        let labels = match (classes, multi_label) {
            (0, _) => Labels::None,
            (classes, true) => Labels::Multi { classes, values: Vec::new() },
            (classes, false) => Labels::Single { classes, values: Vec::new() },
        };
        let features = if columns > 0 { Features::Dense { columns, values: Array::new() } } else { Features::None };
        Part {
            index,
            parts,
            nodes: Vec::new(),
            edges: Edges { offsets: vec![0], sources: Vec::new(), data },
            owners: None,
            left_out: Vec::new(),
            negatives: global.negatives.map(|given| given.map(pairs)),
            features,
            labels,
            roles: Vec::new(),
            ids: Ids::Row,
            global: global.clone(),
        }
    }
}
