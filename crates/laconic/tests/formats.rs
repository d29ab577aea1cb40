//! `docs/formats.md`: what it says is so, and the programs in it are those in `examples/savers`.

mod program;

use std::path::{Path, PathBuf};
use std::process::Command;

use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::given::GivenPairs;
use laconic_graph::read::{ReadOptions, read};
use laconic_train::config::KEYS;
use program::needs;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/formats.md")).expect("the page")
}

#[test]
fn the_page_holds_the_savers_as_they_are() {
    let page = page();
    for name in ["from_pyg.py", "from_dgl.py", "from_networkx.py", "from_ogb_links.py", "from_h5ad.py"] {
        let saver = std::fs::read_to_string(root().join("examples/savers").join(name)).expect(name);
        assert!(page.contains(&format!("(`examples/savers/{name}`):\n\n```python\n{saver}```\n")), "{name}");
    }
}

#[test]
fn the_page_names_every_key_about_tables_and_every_such_key_has_a_flag() {
    let page = page();
    let help = Command::new(env!("CARGO_BIN_EXE_laconic")).args(["data", "info", "--help"]).output().expect("help");
    let help = String::from_utf8(help.stdout).expect("text");
    let about_tables =
        |doc: &str| ["edge list:", "node table:", "tables:", "text tables:"].iter().any(|w| doc.starts_with(w));
    let keys: Vec<_> = KEYS.iter().filter(|key| key.key.starts_with("data.") && about_tables(key.doc)).collect();
    assert_eq!(keys.len(), 16);
    for key in keys {
        let flag = format!("--{}", key.key["data.".len()..].replace('_', "-"));
        assert!(page.contains(key.key) && page.contains(&flag), "{}", key.key);
        assert!(help.contains(&flag), "{flag}");
    }
}

#[test]
fn every_example_runs_on_generated_data_from_any_clone() {
    let place = program::Place::new();
    place.json("data synth sbm --nodes 400 --mean-degree 6 --classes 3 --features 5 --degree-max 50 --out graph.npz");
    let mut planned = 0;
    let files = ["examples/configs", "benchmarks/peers"].map(|folder| std::fs::read_dir(root().join(folder)));
    for entry in files.into_iter().flat_map(|files| files.expect("a folder")) {
        let path = entry.expect("an example").path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        assert!(!text.contains("../"), "{}: what is outside the repository is not there", path.display());
        let plan = place.run(&format!("plan {} --set data.path=graph.npz --json --quiet", path.display()));
        assert_eq!(plan.code, 0, "{}: {}", path.display(), plan.err);
        planned += 1;
    }
    assert!(planned >= 7, "{planned}");
}

/// Whether there is a Python with all of these modules, separated by commas.
fn python(modules: &str) -> bool {
    let asked = Command::new("python3").args(["-c", &format!("import {modules}")]).output();
    let there = asked.is_ok_and(|asked| asked.status.success());
    if !there {
        needs::missing("python", &format!("Python with {modules}"));
    }
    there
}

/// Runs a program that saves a graph, and reads what it has saved.
fn saved(saver: &str, program: &str) -> Dataset {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("graph.npz");
    let ran = Command::new("python3")
        .args([
            "-B",
            "-c",
            &format!("from {saver} import save\nimport numpy as np\nfrom types import SimpleNamespace\n{program}"),
        ])
        .arg(&path)
        .env("PYTHONPATH", root().join("examples/savers"))
        .output()
        .expect("Python");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    read(&path, &ReadOptions::default()).expect("what was saved")
}

fn arcs(dataset: &Dataset) -> Vec<(u32, u32)> {
    let of = |to: usize| dataset.graph.in_neighbours(to).iter().map(move |&from| (from, to as u32));
    (0..dataset.graph.nodes()).flat_map(of).collect()
}

/// Four nodes, the last of which has no edge; 0 → 1 and 1 → 2 with weights.
fn is_the_graph(got: &Dataset) {
    assert_eq!((got.graph.nodes(), arcs(got)), (4, vec![(0, 1), (1, 2)]));
    assert_eq!(got.graph.data.weights, Some(vec![0.5, 2.0]));
    assert_eq!(
        got.features,
        Features::Dense { columns: 2, values: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0].into() }
    );
    assert_eq!(got.labels, Labels::Single { classes: 3, values: vec![2, 0, 1, 0] });
    assert_eq!(got.splits[0].roles, [Split::TRAIN, Split::TRAIN, Split::VAL, Split::TEST]);
}

const MASKS: &str = "
masks = dict(train_mask=np.array([1, 1, 0, 0], bool), val_mask=np.array([0, 0, 1, 0], bool),
             test_mask=np.array([0, 0, 0, 1], bool))
x, y = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([2, 0, 1, 0])
weight = np.array([0.5, 2], np.float32)
";

#[test]
fn what_pytorch_geometric_holds_is_saved_and_read() {
    if !python("numpy") {
        return;
    }
    // The library itself where it is installed, otherwise something with its names.
    let program = "
import sys
edge_index = np.array([[0, 1], [1, 2]])
try:
    import torch
    from torch_geometric.data import Data
    tensors = {name: torch.tensor(mask) for name, mask in masks.items()}
    data = Data(x=torch.tensor(x), edge_index=torch.tensor(edge_index), y=torch.tensor(y), **tensors)
    data.edge_weight = torch.tensor(weight)
except ImportError:
    data = SimpleNamespace(x=x, edge_index=edge_index, y=y, num_nodes=4, edge_weight=weight, **masks)
save(data, sys.argv[1])
";
    is_the_graph(&saved("from_pyg", &format!("{MASKS}{program}")));
    // Its own names are read, too.
    let program = "
import sys
np.savez(sys.argv[1], edge_index=[[0, 1], [1, 2]], x=x, y=y, edge_weight=weight, **masks)
";
    is_the_graph(&saved("from_pyg", &format!("{MASKS}{program}")));
}

#[test]
fn what_dgl_holds_is_saved_and_read() {
    if !python("numpy") {
        return;
    }
    let program = "
import sys
try:
    import dgl, torch
    graph = dgl.graph((torch.tensor([0, 1]), torch.tensor([1, 2])), num_nodes=4)
    array = torch.tensor
except ImportError:
    ends = (np.array([0, 1]), np.array([1, 2]))
    graph = SimpleNamespace(edges=lambda: ends, num_nodes=lambda: 4, ndata={}, edata={})
    array = np.asarray
for name, values in dict(feat=x, label=y, **masks).items():
    graph.ndata[name] = array(values)
graph.edata['weight'] = array(weight)
save(graph, sys.argv[1])
";
    is_the_graph(&saved("from_dgl", &format!("{MASKS}{program}")));
}

#[test]
fn edges_that_ogb_holds_out_are_saved_with_their_negatives_in_both_forms() {
    if !python("numpy") {
        return;
    }
    let dataset = |val: &str, test: &str| {
        format!(
            "
import sys
class Links(list):
    def get_edge_split(self):
        return dict(train=None, valid=dict({val}), test=dict({test}))
edge_index = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
graph = dict(edge_index=edge_index, num_nodes=5, node_feat=np.ones((5, 2), np.float32))
save(Links([graph]), sys.argv[1])
"
        )
    };
    let pool = "edge=np.array([[0, 3]]), edge_neg=np.array([[4, 0], [2, 4]])";
    let own = "source_node=np.array([3, 0]), target_node=np.array([1, 4]), target_node_neg=np.array([[2, 0], [3, 2]])";
    let got = saved("from_ogb_links", &dataset(pool, own));
    assert_eq!(arcs(&got), [(1, 0), (0, 1), (2, 1), (3, 1), (1, 2), (0, 3), (0, 4)]);
    assert_eq!(got.graph.data.held, Some(vec![0, 0, 0, 2, 0, 1, 2]));
    let [val, test] = got.negatives.expect("pairs");
    assert_eq!(val, GivenPairs { sources: vec![4, 2], targets: vec![0, 4], ..GivenPairs::default() });
    assert_eq!(
        test,
        GivenPairs { sources: vec![3, 0], targets: vec![1, 4], others: vec![2, 0, 3, 2], each: 2, relations: vec![] }
    );
}

#[test]
fn what_networkx_holds_is_saved_with_its_names() {
    if !python("numpy, networkx") {
        return;
    }
    let program = "
import sys, networkx
graph = networkx.Graph()
graph.add_node('zoë', age=3, party='red', role='train')
graph.add_node('bob', age=4, party='blue', role='val')
graph.add_node(7, age=5)
graph.add_edge('zoë', 'bob', weight=2)
graph.add_edge('bob', 7, weight=0.5)
save(graph, sys.argv[1], features=['age'], label='party', split='role')
";
    let got = saved("from_networkx", program);
    assert_eq!(got.ids, Ids::Strings(["zoë", "bob", "7"].map(str::to_owned).to_vec()));
    assert_eq!(arcs(&got), [(1, 0), (0, 1), (2, 1), (1, 2)]);
    assert_eq!(got.graph.data.weights, Some(vec![2.0, 2.0, 0.5, 0.5]));
    assert_eq!(got.features, Features::Dense { columns: 1, values: vec![3.0, 4.0, 5.0].into() });
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![1, 0, -1] });
    assert_eq!(
        (got.about.classes, got.about.features),
        (vec!["blue".to_owned(), "red".to_owned()], vec!["age".to_owned()])
    );
    assert_eq!(got.splits[0].roles, [Split::TRAIN, Split::VAL, 0]);
    let plain = saved("from_networkx", "import sys, networkx\nsave(networkx.path_graph(3), sys.argv[1])\n");
    assert_eq!((plain.graph.nodes(), plain.graph.edges(), plain.labels), (3, 4, Labels::None));
}
