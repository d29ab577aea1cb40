//! Small valid inputs in the formats of other graph tools, as [`crate::fixtures`] has them in the usual ones.

use crate::fixtures::{Content, Fixture, float32, int32, int64, npy, uint8};
use laconic_graph::read::Reader;
use laconic_graph::read::{
    dgl_csv::DglCsv, dgl_reddit::DglReddit, geom_gcn::GeomGcn, gml::Gml, graph_xml::GraphXml,
    heterophilous::Heterophilous, konect::Konect, matrix_market::MatrixMarket, ogb_binary::OgbBinary,
    scipy_npz::ScipyNpz, triples::Triples,
};

fn of(reader: &'static dyn Reader, path: &'static str, files: &[(&str, &str)]) -> Fixture {
    let file = |&(name, text): &(&str, &str)| (name.to_owned(), Content::Bytes(text.as_bytes().to_vec()));
    Fixture { reader, path, files: files.iter().map(file).collect() }
}

/// As SciPy writes it: the lower triangle of a symmetric matrix with an entry on its diagonal.
pub fn matrix_market() -> Fixture {
    let text = "%%MatrixMarket matrix coordinate real symmetric\n%\n4 4 4\n2 1 5e-01\n3 2 2\n3 3 9\n4 1 1\n";
    of(&MatrixMarket, "links.mtx", &[("links.mtx", text)])
}

/// A word as SciPy writes it, in bytes.
pub fn word(text: &str) -> Vec<u8> {
    npy(&format!("|S{}", text.len()), &[], text.bytes().map(|byte| [byte]))
}

/// The matrix 0 → 1 (0.5), 0 → 2 (2), 2 → 0 (-1) as `scipy.sparse.save_npz` writes it.
pub fn scipy() -> Fixture {
    let members = vec![
        ("indices", int32(&[3], &[1, 2, 0])),
        ("indptr", int32(&[4], &[0, 2, 2, 3])),
        ("format", word("csr")),
        ("shape", int64(&[2], &[3, 3])),
        ("data", float32(&[3], &[0.5, 2.0, -1.0])),
    ];
    Fixture {
        reader: &ScipyNpz,
        path: "adjacency.npz",
        files: vec![("adjacency.npz".to_owned(), Content::Npz(members))],
    }
}

/// Four papers, one of them without a label; features in 16 bits.
pub fn ogb_binary() -> Fixture {
    let halves = [0x3c00u16, 0x0000, 0x4000, 0x3800, 0x0000, 0x3c00, 0xc000, 0x0000];
    let data = vec![
        ("edge_index", int64(&[2, 3], &[0, 1, 3, 1, 2, 0])),
        ("num_nodes_list", int64(&[1], &[4])),
        ("num_edges_list", int64(&[1], &[3])),
        ("node_feat", npy("<f2", &[4, 2], halves.map(u16::to_le_bytes))),
        ("node_year", int64(&[4, 1], &[2011, 2012, 2013, 2014])),
    ];
    let labels = vec![("node_label", float32(&[4, 1], &[0.0, 2.0, f32::NAN, 1.0]))];
    let split = |name: &str, rows: &str| (format!("papers/split/time/{name}.csv"), Content::Bytes(rows.into()));
    let files = vec![
        ("papers/raw/data.npz".to_owned(), Content::Npz(data)),
        ("papers/raw/node-label.npz".to_owned(), Content::Npz(labels)),
        split("train", "0\n"),
        split("valid", "1\n"),
        split("test", "3\n"),
    ];
    Fixture { reader: &OgbBinary, path: "papers", files }
}

/// Weights and times, tabs and blanks.
pub fn konect() -> Fixture {
    let text = "% sym weighted\n% 3 3 3\n1 2\t0.5 1082040961\n2\t3 2 1082040962\n1 3 -1 1082040963\n";
    of(&Konect, "out.trust", &[("out.trust", text)])
}

/// Three pages in another order than that of their ids.
pub fn geom_gcn() -> Fixture {
    let nodes = "node_id\tfeature\tlabel\n2\t0,1\t1\n0\t1,1\t0\n1\t1,0\t2\n";
    let files = [
        ("texas/out1_node_feature_label.txt", nodes),
        ("texas/out1_graph_edges.txt", "node_id\tnode_id\n0\t2\n2\t1\n"),
    ];
    let mut fixture = of(&GeomGcn, "texas", &files);
    let masks = |train: &[u8], test: &[u8]| {
        let masks = [("train_mask", train), ("val_mask", &[0, 1, 0]), ("test_mask", test)];
        Content::Npz(masks.into_iter().map(|(name, mask)| (name, uint8(&[3], mask))).collect())
    };
    let split = |number: u32| format!("texas/splits/texas_split_0.6_0.2_{number}.npz");
    fixture.files.push((split(10), masks(&[0, 0, 1], &[1, 0, 0])));
    fixture.files.push((split(2), masks(&[1, 0, 0], &[0, 0, 1])));
    fixture
}

/// One kind of nodes and edges.
pub fn dgl_csv() -> Fixture {
    let meta = "dataset_name: calls\nedge_data:\n- file_name: links_0.csv\nnode_data:\n- file_name: users_0.csv\n";
    let edges = "src_id,dst_id,weight\n0,2,0.5\n2,1,2\n";
    let nodes = "node_id,label,age,train_mask,val_mask,test_mask\n2,1,30,1,0,0\n0,0,20,0,1,0\n1,1,25,0,0,1\n";
    of(&DglCsv, "calls", &[("calls/meta.yaml", meta), ("calls/links_0.csv", edges), ("calls/users_0.csv", nodes)])
}

/// Users who follow each other and play games, as `yaml.dump` writes it.
pub fn dgl_csv_of_types() -> Fixture {
    let meta = "dataset_name: games\nedge_data:\n- etype:\n  - user\n  - follows\n  - user\n  file_name: links_0.csv\n\
                - etype: [user, \"plays\", game]  # bought\n  file_name: links_1.csv\nnode_data:\n\
                - file_name: users.csv\n  ntype: user\n- file_name: 'games.csv'\n  ntype: game\nseparator: ','\n";
    let files = [
        ("games/meta.yaml", meta),
        ("games/links_0.csv", "src_id,dst_id\n0,1\n"),
        ("games/links_1.csv", "src_id,dst_id\n1,5\n0,7\n"),
        ("games/users.csv", "node_id,age\n0,20\n1,30\n"),
        ("games/games.csv", "node_id,price\n5,1.5\n7,2.5\n"),
    ];
    of(&DglCsv, "games", &files)
}

/// A triple of a known relation to be predicted, and one of an entity that training has not.
pub fn triples() -> Fixture {
    let files = [
        ("family/train.txt", "ann\tknows\tbob\nbob\tlikes\tann\nann\tlikes\tbob\n"),
        ("family/valid.txt", "bob\tknows\tann\n"),
        ("family/test.txt", "cem\tknows\tann\n"),
    ];
    of(&Triples, "family", &files)
}

/// Three words, two splits.
pub fn heterophilous() -> Fixture {
    let members = vec![
        ("node_features", float32(&[3, 1], &[0.5, 1.0, 2.0])),
        ("node_labels", int64(&[3], &[1, 0, 1])),
        ("edges", int64(&[2, 2], &[0, 1, 2, 1])),
        ("train_masks", uint8(&[2, 3], &[1, 0, 0, 0, 1, 0])),
        ("val_masks", uint8(&[2, 3], &[0, 1, 0, 0, 0, 1])),
        ("test_masks", uint8(&[2, 3], &[0, 0, 1, 1, 0, 0])),
    ];
    Fixture { reader: &Heterophilous, path: "roman.npz", files: vec![("roman.npz".to_owned(), Content::Npz(members))] }
}

/// As NetworkX writes it.
pub fn gml() -> Fixture {
    let text = "# made\ngraph [\n  directed 1\n  node [\n    id 0\n    label \"a &#38; b\"\n    age 3.5\n    \
                graphics [ x 1 ]\n  ]\n  \
                node [ id 7 label \"c\" age 4 ]\n  edge [ source 7 target 0 weight 0.5 ]\n]\n";
    of(&Gml, "friends.gml", &[("friends.gml", text)])
}

/// As NetworkX writes it, with a default.
pub fn graphml() -> Fixture {
    let text = "<?xml version='1.0' encoding='utf-8'?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n\
                <key id=\"d1\" for=\"edge\" attr.name=\"weight\" attr.type=\"double\"/>\n\
                <key id=\"d0\" for=\"node\" attr.name=\"age\" attr.type=\"int\"><default>9</default></key>\n\
                <graph edgedefault=\"undirected\"><node id=\"a&amp;b\"><data key=\"d0\">3</data></node>\n\
                <node id=\"c\"/><edge source=\"a&amp;b\" target=\"c\"><data key=\"d1\">0.5</data></edge>\n\
                </graph></graphml>\n";
    of(&GraphXml, "friends.graphml", &[("friends.graphml", text)])
}

/// As Gephi writes it.
pub fn gexf() -> Fixture {
    let text = "<gexf version=\"1.3\"><graph defaultedgetype=\"directed\">\n\
                <attributes class=\"node\"><attribute id=\"0\" title=\"class\" type=\"string\"/></attributes>\n\
                <nodes><node id=\"5\" label=\"Ann\"><attvalues><attvalue for=\"0\" value=\"x\"/></attvalues></node>\n\
                <node id=\"2\" label=\"Bob\"><attvalues><attvalue for=\"0\" value=\"y\"/></attvalues></node></nodes>\n\
                <edges><edge id=\"0\" source=\"5\" target=\"2\" weight=\"2.0\"/></edges></graph></gexf>\n";
    of(&GraphXml, "friends.gexf", &[("friends.gexf", text)])
}

/// Three posts.
pub fn dgl_reddit() -> Fixture {
    let graph = vec![
        ("row", int32(&[2], &[0, 1])),
        ("col", int32(&[2], &[1, 0])),
        ("format", word("coo")),
        ("shape", int64(&[2], &[3, 3])),
        ("data", float32(&[2], &[1.0, 1.0])),
    ];
    let data = vec![
        ("feature", float32(&[3, 1], &[0.5, 1.0, 2.0])),
        ("label", int64(&[3], &[1, 0, 1])),
        ("node_types", int64(&[3], &[3, 1, 2])),
    ];
    let files = [("reddit/reddit_graph.npz", graph), ("reddit/reddit_data.npz", data)];
    let files = files.into_iter().map(|(name, members)| (name.to_owned(), Content::Npz(members))).collect();
    Fixture { reader: &DglReddit, path: "reddit", files }
}

pub fn all() -> Vec<Fixture> {
    vec![
        matrix_market(),
        scipy(),
        ogb_binary(),
        konect(),
        geom_gcn(),
        dgl_csv(),
        dgl_csv_of_types(),
        triples(),
        heterophilous(),
        dgl_reddit(),
        gml(),
        graphml(),
        gexf(),
    ]
}
