//! Writing datasets in the interchange format, so that [`crate::read::interchange`] gets back exactly what was written.

use crate::aside::write_aside;
use crate::dataset::{Dataset, Features, Ids, Labels, Split};
use crate::error::{GraphError, Result};
use crate::exact::Exact;
use crate::given::GivenPairs;
use crate::node_types::types_of;
use crate::npy::write_header;
use crate::pack::{self, PIECE, packed};
use std::collections::HashSet;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes `dataset` to `path`, aside first and then renamed, so that a half-written file is never seen.
///
/// Edges are written as arcs (`directed` = 1) in the order of the graph. A graph with self-loops comes back whole only
/// if the reader keeps them.
///
/// # Errors
///
/// If the system refuses to write; what was at `path` is then as it was.
pub fn write_interchange(path: &Path, dataset: &Dataset) -> Result<()> {
    write_aside(path, |file| {
        let mut archive = Archive(pack::Archive::new(BufWriter::new(file)));
        archive.dataset(dataset)?;
        archive.0.finish()?.flush()
    })
    .map_err(|source: io::Error| GraphError::io(path, source))
}

/// A number as the bytes that `.npy` files hold.
trait Item: Copy {
    /// The type as NumPy spells it.
    const DESCR: &'static str;
    /// Appends the little-endian bytes.
    fn put(self, into: &mut Vec<u8>);
}

macro_rules! item {
    ($type:ty, $descr:literal) => {
        impl Item for $type {
            const DESCR: &'static str = $descr;
            fn put(self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_le_bytes());
            }
        }
    };
}

item!(u8, "|u1");
item!(i32, "<i4");
item!(i64, "<i8");
item!(f32, "<f4");
item!(f64, "<f8");

/// So many first bytes say whether packing a member saves much.
const SAMPLE: usize = 1 << 16;

struct Archive<W>(pack::Archive<W>);

impl<W: Write> Archive<W> {
    fn dataset(&mut self, dataset: &Dataset) -> io::Result<()> {
        let graph = &dataset.graph;
        let nodes = graph.nodes();
        let targets = || (0..nodes).flat_map(|node| std::iter::repeat_n(node as u32, graph.in_edges(node).len()));
        let ends = graph.sources.iter().copied().chain(targets());
        if nodes as u64 <= i32::MAX as u64 + 1 {
            self.member("edge_index", &[2, graph.edges()], ends.map(|end| end as i32), true)?;
        } else {
            self.member("edge_index", &[2, graph.edges()], ends.map(i64::from), true)?;
        }
        self.array("directed", &[1], [1u8])?;
        self.array("num_nodes", &[1], [nodes as i64])?;
        if let Some(weights) = &graph.data.weights {
            self.array("edge_weight", &[weights.len()], weights.iter().copied())?;
        }
        if let Some(relations) = &graph.data.relations {
            self.array("edge_type", &[relations.of.len()], relations.of.iter().map(|&relation| i32::from(relation)))?;
            self.array("num_relations", &[1], [relations.count as i64])?;
        }
        for (split, name) in ["val", "test"].into_iter().enumerate() {
            let of = |held: &Vec<u8>| {
                let edges = graph.sources.iter().copied().zip(targets()).enumerate();
                let edges = edges.filter(|(edge, _)| usize::from(held[*edge]) == split + 1);
                edges.map(|(edge, (source, target))| (source, target, graph.data.relation(edge))).collect()
            };
            let given = dataset.negatives.as_ref().map(|given| &given[split]);
            self.held((name, graph.data.kinds()), graph.data.held.as_ref().map(of), given)?;
        }
        if let Some(types) = types_of(&dataset.features, &dataset.about.node_types) {
            self.array("node_type", &[types.len()], types.into_iter().map(i32::from))?;
        }
        self.features((&dataset.features, &dataset.exact), nodes)?;
        self.labels(&dataset.labels, nodes)?;
        self.masks(&dataset.splits, nodes)?;
        if !dataset.about.is_empty() {
            let about = serde_json::to_vec(&dataset.about).map_err(io::Error::other)?;
            self.array("about", &[about.len()], about)?;
        }
        match &dataset.ids {
            Ids::Row => Ok(()),
            Ids::Integers(ids) => self.array("ids", &[ids.len()], ids.iter().copied()),
            Ids::Strings(ids) => {
                let bytes = ids.iter().map(String::len).sum();
                self.array("ids_data", &[bytes], ids.iter().flat_map(|id| id.bytes()))?;
                let ends = ids.iter().scan(0, |end, id| {
                    *end += id.len() as i64;
                    Some(*end)
                });
                self.array("ids_offsets", &[ids.len() + 1], std::iter::once(0).chain(ends))
            }
        }
    }

    /// Edges that are held out for a split, with their relations, and pairs that are none. Edges that have pairs of
    /// their own come first.
    fn held(
        &mut self,
        (split, relations): (&str, usize),
        edges: Option<Vec<(u32, u32, u16)>>,
        given: Option<&GivenPairs<u32>>,
    ) -> io::Result<()> {
        let ends = |edges: &[(u32, u32, u16)]| {
            let ends = edges.iter().map(|edge| edge.0).chain(edges.iter().map(|edge| edge.1));
            ends.map(i64::from).collect::<Vec<_>>()
        };
        let related = |given: &GivenPairs<u32>| {
            let relations = given.relations.iter().copied().chain(std::iter::repeat(0));
            given.iter().zip(relations).map(|((source, target), of)| (source, target, of)).collect::<Vec<_>>()
        };
        if let Some(pool) = given.filter(|given| given.each == 0) {
            let pool = related(pool);
            self.array(&format!("{split}_neg_edge_index"), &[2, pool.len()], ends(&pool))?;
        }
        let Some(mut edges) = edges else { return Ok(()) };
        if let Some(given) = given.filter(|given| given.each > 0) {
            let first = related(given);
            let own: HashSet<(u32, u32, u16)> = first.iter().copied().collect();
            edges = first.into_iter().chain(edges.into_iter().filter(|edge| !own.contains(edge))).collect();
            let none = (edges.len() - given.len()) * given.each;
            let others = given.others.iter().map(|&other| i64::from(other)).chain(std::iter::repeat_n(-1, none));
            self.array(&format!("{split}_neg_targets"), &[edges.len(), given.each], others)?;
        }
        if relations > 0 {
            self.array(&format!("{split}_edge_type"), &[edges.len()], edges.iter().map(|edge| i32::from(edge.2)))?;
        }
        self.array(&format!("{split}_edge_index"), &[2, edges.len()], ends(&edges))
    }

    /// As `f64` where `f32` does not hold all of them.
    fn features(&mut self, (features, exact): (&Features, &Exact), nodes: usize) -> io::Result<()> {
        match features {
            Features::None => Ok(()),
            Features::Dense { columns, values } if !exact.is_empty() => {
                let mut kept = vec![None; *columns];
                exact.columns.iter().for_each(|of| kept[of.column] = Some(&of.values));
                let number = |at: usize| {
                    let (row, column) = (at / columns, at % columns);
                    kept[column].map_or_else(|| f64::from(values.at(at)), |of| of[row].value)
                };
                self.array("features", &[nodes, *columns], (0..values.len()).map(number))
            }
            Features::Dense { columns, values } => {
                self.array("features", &[nodes, *columns], (0..values.len()).map(|at| values.at(at)))
            }
            Features::Sparse { columns, offsets, indices, values } => {
                if exact.is_empty() {
                    self.array("features_data", &[values.len()], values.iter().copied())?;
                } else {
                    let rows = offsets.windows(2).enumerate();
                    let rows = rows.flat_map(|(row, ends)| std::iter::repeat_n(row, (ends[1] - ends[0]) as usize));
                    let number = |((row, &column), &value): ((usize, &u32), &f32)| {
                        exact.at(row, column as usize).map_or(f64::from(value), |of| of.value)
                    };
                    self.array("features_data", &[values.len()], rows.zip(indices).zip(values).map(number))?;
                }
                self.array("features_indices", &[indices.len()], indices.iter().map(|&i| i64::from(i)))?;
                self.array("features_indptr", &[offsets.len()], offsets.iter().map(|&o| o as i64))?;
                self.array("features_shape", &[2], [nodes as i64, *columns as i64])
            }
        }
    }

    fn labels(&mut self, labels: &Labels, nodes: usize) -> io::Result<()> {
        match labels {
            Labels::None => return Ok(()),
            Labels::Single { values, .. } => self.array("labels", &[nodes], values.iter().copied())?,
            Labels::Multi { classes, values } if values.contains(&Labels::UNKNOWN) => {
                let number = |&value| if value == Labels::UNKNOWN { f32::NAN } else { f32::from(value) };
                self.array("labels", &[nodes, *classes], values.iter().map(number))?
            }
            Labels::Multi { classes, values } => self.array("labels", &[nodes, *classes], values.iter().copied())?,
        }
        self.array("num_classes", &[1], [labels.classes() as i64])
    }

    fn masks(&mut self, splits: &[Split], nodes: usize) -> io::Result<()> {
        if splits.is_empty() {
            return Ok(());
        }
        let shape = if splits.len() == 1 { vec![nodes] } else { vec![nodes, splits.len()] };
        for (name, role) in [("train_mask", Split::TRAIN), ("val_mask", Split::VAL), ("test_mask", Split::TEST)] {
            let mask = (0..nodes).flat_map(|node| splits.iter().map(move |s| u8::from(s.roles[node] & role != 0)));
            self.array(name, &shape, mask)?;
        }
        Ok(())
    }

    /// One member, packed as it is produced, unless its first values say that this saves little.
    fn array<T: Item, V>(&mut self, name: &str, shape: &[usize], values: V) -> io::Result<()>
    where
        V: IntoIterator<Item = T, IntoIter: Send>,
    {
        self.member(name, shape, values, false)
    }

    /// The same; one that `shrinks` is always packed, whatever its first values say. Targets of edges ascend and take
    /// hardly any room, and they stand behind the sources.
    fn member<T: Item, V>(&mut self, name: &str, shape: &[usize], values: V, shrinks: bool) -> io::Result<()>
    where
        V: IntoIterator<Item = T, IntoIter: Send>,
    {
        let bytes = shape.iter().product::<usize>() * size_of::<T>();
        let mut values = values.into_iter();
        let mut take = move |into: &mut Vec<u8>, most: usize| {
            values.by_ref().take(most / size_of::<T>()).for_each(|value| value.put(into));
        };
        let mut sample = Vec::with_capacity(SAMPLE);
        take(&mut sample, SAMPLE);
        let is_packed = shrinks || bytes < 16 * SAMPLE || packed(&sample)?.len() < sample.len() / 5 * 4;
        let mut begun = Vec::with_capacity(PIECE);
        write_header(&mut begun, T::DESCR, shape)?;
        begun.append(&mut sample);
        self.0.member(&format!("{name}.npy"), is_packed, move |piece| {
            piece.append(&mut begun);
            let left = PIECE - piece.len();
            take(piece, left);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::about::About;
    use crate::build::{BuildOptions, build_graph};
    use crate::edges::{EdgeData, Relations};
    use crate::given::GivenNegatives;
    use crate::graph::Graph;
    use crate::read::{ReadOptions, read};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;
    use std::fs::File;

    fn features() -> impl Strategy<Value = Features> {
        let value = -4.0f32..4.0;
        let dense = prop::collection::vec(value.clone(), 7 * 3)
            .prop_map(|values| Features::Dense { columns: 3, values: values.into() });
        let sparse = prop::collection::vec(prop::collection::btree_map(0u32..9, value, 0..5), 7).prop_map(|rows| {
            let mut offsets = vec![0u64];
            offsets.extend(rows.iter().scan(0, |end, row| {
                *end += row.len() as u64;
                Some(*end)
            }));
            let (indices, values) = rows.into_iter().flatten().unzip();
            Features::Sparse { columns: 9, offsets, indices, values }
        });
        prop_oneof![Just(Features::None), dense, sparse]
    }

    fn labels() -> impl Strategy<Value = Labels> {
        let single = prop::collection::vec(-1i32..5, 7).prop_map(|values| Labels::Single { classes: 6, values });
        let multi = (1usize..4).prop_flat_map(|classes| {
            let value = prop_oneof![8 => 0u8..2, 1 => Just(Labels::UNKNOWN)];
            prop::collection::vec(value, 7 * classes).prop_map(move |values| Labels::Multi { classes, values })
        });
        prop_oneof![Just(Labels::None), single, multi]
    }

    fn ids() -> impl Strategy<Value = Ids> {
        let integers = prop::collection::vec(any::<i64>(), 7).prop_map(Ids::Integers);
        let strings = prop::collection::vec("[a-zé]{0,4}", 7).prop_map(Ids::Strings);
        prop_oneof![Just(Ids::Row), integers, strings]
    }

    /// A pool for validation, and four targets of its own for every other edge of testing.
    fn given(graph: &Graph) -> GivenNegatives<u32> {
        let pool = GivenPairs { sources: vec![3, 0, 3], targets: vec![1, 6, 1], ..GivenPairs::default() };
        let mut own = GivenPairs { each: 4, ..GivenPairs::default() };
        let ends = (0..7).flat_map(|node| graph.in_edges(node).map(move |edge| (edge, node as u32)));
        let held = graph.data.held.as_ref().unwrap();
        for (number, (edge, target)) in ends.filter(|(edge, _)| held[*edge] == 2).step_by(2).enumerate() {
            own.sources.push(graph.sources[edge]);
            own.targets.push(target);
            own.relations.extend(graph.data.told_apart(edge));
            own.others.extend((0..4).map(|other| (number * 5 + other * 3) as u32 % 7));
        }
        [pool, own]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
        })]
        #[test]
        fn what_was_written_is_what_is_read(
            edges in prop::collection::vec((0u32..7, 0u32..7, -2.0f32..2.0), 0..30),
            weighted: bool,
            further in any::<[bool; 2]>(),
            features in features(),
            labels in labels(),
            splits in prop::collection::vec(prop::collection::vec(0u8..8, 7).prop_map(|roles| Split { roles }), 0..3),
            ids in ids(),
        ) {
            let [related, has_held] = further;
            let weights = weighted.then(|| edges.iter().map(|e| e.2).collect());
            let (sources, targets) = (edges.iter().map(|e| e.0).collect(), edges.iter().map(|e| e.1).collect());
            let of = edges.iter().map(|e| (e.0 * 7 + e.1 + (e.2 > 0.5) as u32) as u16 % 3).collect();
            let relations = related.then_some(Relations { count: 3 + usize::from(weighted), of });
            let held = has_held.then(|| (0..edges.len()).map(|edge| (edge * 7 % 3) as u8).collect());
            let data = EdgeData { weights, relations, held };
            let (graph, _) = build_graph(7, sources, targets, data, BuildOptions::default()).unwrap();
            let names = |count: usize| (0..count).map(|number| format!("{number} é")).collect::<Vec<_>>();
            let (classes, columns) = (names(labels.classes()), names(features.columns()));
            let relations = names(graph.data.kinds());
            let named = About { classes, relations, features: columns, ..About::default() };
            let about = if weighted { named } else { About::default() };
            let name = "data.v1".to_owned();
            let negatives = graph.data.held.is_some().then(|| given(&graph));
            let exact = Exact::default();
            let written = Dataset { name, graph, features, exact, labels, splits, ids, about, negatives };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("data.v1.npz");
            write_interchange(&path, &written).unwrap();
            let got = read(&path, &ReadOptions { typed: true, ..ReadOptions::default() }).unwrap();
            prop_assert_eq!(&got.name, &written.name);
            prop_assert_eq!(&got.graph, &written.graph);
            prop_assert_eq!(&got.features, &written.features);
            prop_assert_eq!(&got.labels, &written.labels);
            prop_assert_eq!(&got.splits, &written.splits);
            prop_assert_eq!(&got.ids, &written.ids);
            prop_assert_eq!(&got.about, &written.about);
            prop_assert_eq!(&got.negatives, &written.negatives);
        }
    }

    /// Weights of a chain, more than a mebibyte of them.
    fn weighted(weight: impl Fn(usize) -> f32) -> Dataset {
        let nodes = 300_000;
        let (sources, targets) = ((0..nodes as u32 - 1).collect(), (1..nodes as u32).collect());
        let weights: Vec<f32> = (0..nodes - 1).map(weight).collect();
        let graph = build_graph(nodes, sources, targets, Some(weights), BuildOptions::default()).unwrap().0;
        Dataset {
            name: "chain".to_owned(),
            graph,
            features: Features::None,
            exact: Exact::default(),
            labels: Labels::None,
            splits: vec![],
            ids: Ids::Row,
            about: About::default(),
            negatives: None,
        }
    }

    #[test]
    fn what_packing_hardly_shrinks_is_stored_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain.npz");
        let random = |edge: usize| f32::from_bits(0x3f80_0000 | (edge as u32).wrapping_mul(2_654_435_761) >> 9);
        for (dataset, method) in [
            (weighted(random), zip::CompressionMethod::Stored),
            (weighted(|edge| (edge / 1000) as f32), zip::CompressionMethod::Deflated),
        ] {
            write_interchange(&path, &dataset).unwrap();
            let mut archive = zip::ZipArchive::new(File::open(&path).unwrap()).unwrap();
            assert_eq!(archive.by_name("edge_weight.npy").unwrap().compression(), method);
            assert_eq!(archive.by_name("edge_index.npy").unwrap().compression(), zip::CompressionMethod::Deflated);
            assert_eq!(read(&path, &ReadOptions::default()).unwrap().graph, dataset.graph);
        }
    }

    #[test]
    fn a_refused_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        std::fs::create_dir_all(path.join("inside")).unwrap();
        let graph = build_graph(1, vec![], vec![], None, BuildOptions::default()).unwrap().0;
        let (features, labels) = (Features::None, Labels::None);
        let dataset = Dataset {
            name: String::new(),
            graph,
            features,
            labels,
            splits: vec![],
            ids: Ids::Row,
            about: About::default(),
            exact: Exact::default(),
            negatives: None,
        };
        assert!(write_interchange(&path, &dataset).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
