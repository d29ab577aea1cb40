//! Small valid inputs in the formats of other graph tools, as [`crate::fixtures`] has them in the usual ones.

use crate::fixtures::{Content, Fixture, float32, int32, int64, npy};
use laconic_graph::read::Reader;
use laconic_graph::read::{matrix_market::MatrixMarket, ogb_binary::OgbBinary, scipy_npz::ScipyNpz};

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

pub fn all() -> Vec<Fixture> {
    vec![matrix_market(), scipy(), ogb_binary()]
}
