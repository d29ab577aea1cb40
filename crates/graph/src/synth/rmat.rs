//! R-MAT (Chakrabarti, Zhan and Faloutsos, 2004): the graph of Graph500, with hubs and without communities.

use laconic_key::{Key, Purpose};
use rayon::prelude::*;

use crate::about::About;
use crate::build::{BuildOptions, build_graph};
use crate::dataset::{Dataset, Features, Ids, Labels};
use crate::error::{GraphError, Result};
use crate::synth::nodes::{self, affordable};

/// What [`rmat`] generates. The default probabilities are those of Graph500.
#[derive(Debug, Clone, PartialEq)]
pub struct RmatSpec {
    /// There are 2^scale nodes; at most 31.
    pub scale: u32,
    /// Edges drawn for each node; those drawn twice and self loops are dropped.
    pub edge_factor: usize,
    /// Probability of the upper left quadrant.
    pub a: f64,
    /// Probability of the upper right quadrant.
    pub b: f64,
    /// Probability of the lower left quadrant; the lower right one has what is left.
    pub c: f64,
    /// Whether each edge gets its other direction.
    pub symmetric: bool,
    /// Columns of standard normal features.
    pub features: usize,
    /// Classes, drawn independently of everything; 0 for no labels and no split.
    pub classes: usize,
    /// The seed of everything random.
    pub seed: u64,
}

impl Default for RmatSpec {
    fn default() -> Self {
        RmatSpec {
            scale: 14,
            edge_factor: 16,
            a: 0.57,
            b: 0.19,
            c: 0.19,
            symmetric: true,
            features: 64,
            classes: 8,
            seed: 0,
        }
    }
}

/// Generates a graph; with classes, also labels and a 60/20/20 split that mean nothing.
///
/// Node ids are scrambled by a bijection, as in Graph500: else the hubs would be the nodes whose ids have the fewest
/// ones. 15 million directed edges take 0.7 s on two cores.
///
/// # Errors
///
/// If the specification asks for what there cannot be; the message names the key.
pub fn rmat(spec: &RmatSpec) -> Result<Dataset> {
    let drawing = Drawing::new(spec)?;
    let (nodes, edges) = (1usize << spec.scale, drawing.edges as usize);
    let directed = edges as f64 * if spec.symmetric { 2.0 } else { 1.0 };
    affordable(&[[nodes, spec.features]], directed).map_err(|what| GraphError::invalid(format!("rmat: {what}")))?;
    let edge = |edge| drawing.edge(edge as u64).into();
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    (0..edges).into_par_iter().map(edge).unzip_into_vecs(&mut sources, &mut targets);
    let options = BuildOptions { symmetrise: spec.symmetric, ..BuildOptions::default() };
    let (graph, _) = build_graph(nodes, sources, targets, None, options)?;
    let labelled = spec.classes > 0;
    Dataset {
        name: "rmat".to_owned(),
        graph,
        features: match spec.features {
            0 => Features::None,
            columns => nodes::features(0..nodes, columns, spec.seed, &vec![0.0; columns], |_| 0),
        },
        labels: match spec.classes {
            0 => Labels::None,
            classes => Labels::Single { classes, values: nodes::classes(0..nodes, classes, spec.seed) },
        },
        splits: labelled.then(|| nodes::split(0..nodes, TRAIN, VAL, spec.seed)).into_iter().collect(),
        ids: Ids::Row,
        about: About::default(),
        exact: Default::default(),
        negatives: None,
    }
    .checked()
}

/// Feature columns are no more.
const COLUMNS_MAX: usize = 1 << 24;

/// Shares of training and of validation nodes.
pub(super) const TRAIN: f64 = 0.6;
pub(super) const VAL: f64 = 0.2;

/// The edges by number.
pub(super) struct Drawing {
    scale: u32,
    /// How many there are.
    pub(super) edges: u64,
    quadrants: [u64; 3],
    key: Key,
    scramble: Scramble,
}

impl Drawing {
    /// Refuses what there cannot be.
    pub(super) fn new(spec: &RmatSpec) -> Result<Drawing> {
        let quadrants = spec.quadrants()?;
        let nodes = 1usize << spec.scale;
        let edges = nodes.checked_mul(spec.edge_factor).ok_or_else(|| GraphError::invalid("rmat: too many edges"))?;
        Ok(Drawing {
            scale: spec.scale,
            edges: edges as u64,
            quadrants,
            key: Key::new(spec.seed, Purpose::GraphEdges),
            scramble: Scramble::new(spec.scale, Key::new(spec.seed, Purpose::GraphNodes).with(3)),
        })
    }

    /// Source and target of one.
    pub(super) fn edge(&self, edge: u64) -> [u32; 2] {
        let (source, target) = draw(self.scale, self.quadrants, self.key.with(edge));
        [self.scramble.apply(source), self.scramble.apply(target)]
    }
}

impl RmatSpec {
    /// The upper ends of the first three quadrants, in units of 2⁻³².
    fn quadrants(&self) -> Result<[u64; 3]> {
        let refuse = |what: String| Err(GraphError::invalid(format!("rmat: {what}")));
        let (a, b, c) = (self.a, self.b, self.c);
        // The slack is for sums like 0.7 + 0.2 + 0.1.
        if !(a >= 0.0 && b >= 0.0 && c >= 0.0 && a + b + c <= 1.0 + 1e-9) {
            return refuse(format!(
                "expected probabilities a, b and c with a sum of at most 1, found {a}, {b} and {c}"
            ));
        }
        if self.scale > 31 {
            return refuse(format!("scale: expected at most 31, found {}", self.scale));
        }
        let nodes = 1usize << self.scale;
        if self.classes > nodes.min(i32::MAX as usize) {
            return refuse(format!("classes: expected at most {nodes}, one a node, found {}", self.classes));
        }
        if self.features > COLUMNS_MAX {
            return refuse(format!("features: expected at most {COLUMNS_MAX} columns, found {}", self.features));
        }
        Ok([a, a + b, a + b + c].map(|end| (end * 4_294_967_296.0) as u64))
    }
}

/// One edge: at each level, one quadrant, which is one bit of the source and one of the target.
fn draw(scale: u32, quadrants: [u64; 3], key: Key) -> (u32, u32) {
    let (mut source, mut target) = (0, 0);
    let mut bits = 0;
    for level in 0..scale {
        // One word of random bits decides two levels.
        bits = if level % 2 == 0 { key.with(u64::from(level)).bits() } else { bits >> 32 };
        let point = bits & 0xffff_ffff;
        let quadrant = quadrants.iter().filter(|&&end| point >= end).count() as u32;
        source = source << 1 | quadrant >> 1;
        target = target << 1 | quadrant & 1;
    }
    (source, target)
}

/// A bijection of the numbers below `2^scale`: rounds of an odd multiplication with an addition and of a shift, each of
/// which can be undone.
struct Scramble {
    mask: u32,
    shift: u32,
    rounds: [(u32, u32); 4],
}

impl Scramble {
    fn new(scale: u32, key: Key) -> Self {
        let round = |i| {
            let bits = key.with(i).bits();
            (bits as u32 | 1, (bits >> 32) as u32)
        };
        let mask = ((1u64 << scale) - 1) as u32;
        Scramble { mask, shift: scale / 2 + 1, rounds: [round(0), round(1), round(2), round(3)] }
    }

    fn apply(&self, id: u32) -> u32 {
        self.rounds.iter().fold(id, |id, &(factor, offset)| {
            let id = id.wrapping_mul(factor).wrapping_add(offset) & self.mask;
            id ^ id >> self.shift
        })
    }
}

#[cfg(test)]
mod tests {
    use laconic_key::{Key, Purpose};

    use super::{RmatSpec, Scramble, rmat};
    use crate::digest::digest;

    #[test]
    fn the_same_seed_gives_the_same_graph_on_any_number_of_threads() {
        let with_threads = |threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            digest(&pool.install(|| rmat(&RmatSpec { scale: 11, features: 3, seed, ..RmatSpec::default() })).unwrap())
        };
        assert_eq!(with_threads(1, 7), with_threads(2, 7));
        assert_ne!(with_threads(1, 7), with_threads(1, 8));
    }

    #[test]
    fn unequal_quadrants_make_hubs_and_equal_ones_do_not() {
        let largest_share = |a, b, c| {
            let graph = rmat(&RmatSpec { a, b, c, features: 0, ..RmatSpec::default() }).unwrap().graph;
            let mut degrees: Vec<usize> = (0..graph.nodes()).map(|node| graph.in_edges(node).len()).collect();
            degrees.sort_unstable_by(|a, b| b.cmp(a));
            degrees[..graph.nodes() / 100].iter().sum::<usize>() as f64 / graph.edges() as f64
        };
        // Of edge ends, by the top 1 % of nodes.
        assert!(largest_share(0.57, 0.19, 0.19) > 0.12);
        assert!(largest_share(0.25, 0.25, 0.25) < 0.02);
    }

    #[test]
    fn scrambling_permutes_the_ids() {
        for scale in [0, 1, 2, 3, 10, 13] {
            let scramble = Scramble::new(scale, Key::new(1, Purpose::Test));
            let mut ids: Vec<u32> = (0..1 << scale).map(|id| scramble.apply(id)).collect();
            ids.sort_unstable();
            assert!(ids.into_iter().eq(0..1 << scale));
        }
    }

    #[test]
    fn directed_graphs_are_not_symmetrised_and_nonsense_is_refused() {
        let spec = RmatSpec { scale: 8, features: 0, classes: 0, symmetric: false, ..RmatSpec::default() };
        let dataset = rmat(&spec).unwrap();
        let graph = &dataset.graph;
        let one_way = (0..256u32).flat_map(|node| graph.in_neighbours(node as usize).iter().map(move |&s| (s, node)));
        let one_way = one_way.filter(|&(s, t)| graph.in_neighbours(s as usize).binary_search(&t).is_err()).count();
        assert!(one_way > 100 && dataset.splits.is_empty());
        for bad in [
            RmatSpec { a: 0.9, ..spec.clone() },
            RmatSpec { b: f64::NAN, ..spec.clone() },
            RmatSpec { scale: 32, ..spec.clone() },
        ] {
            assert!(rmat(&bad).is_err());
        }
    }
}
