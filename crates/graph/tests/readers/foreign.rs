//! What is refused says what it is and the shortest way in.

use laconic_graph::read::{ReadOptions, read};

#[test]
fn every_known_ending_that_is_not_read_says_what_it_is_and_a_way_in() {
    let folder = tempfile::tempdir().unwrap();
    for (name, words) in [
        ("cells.h5ad", ["AnnData", "from_h5ad.py"]),
        ("data.h5", ["HDF5", "numpy.savez("]),
        ("graph.net", ["Pajek", "read_pajek"]),
        ("graph.s6", ["sparse6", "read_sparse6"]),
        ("graph.ncol", ["igraph", ".txt"]),
        ("graph.lgl", ["igraph", "write_ncol"]),
        ("graph.adjlist", ["NetworkX", "write_edgelist"]),
        ("net.sif", ["Cytoscape", "--target"]),
        ("part-0.orc", ["ORC", "write_table"]),
        ("rows.jsonl", ["JSON lines", "read_json"]),
        ("graph.json", ["JSON", "read_json"]),
        ("graph.mat", ["MATLAB", "loadmat"]),
        ("graph.dgl", ["Python", "from_dgl.py"]),
        ("data.pt", ["torch", "from_pyg.py"]),
        ("edges.feather", ["Arrow", "write_table"]),
        ("edges.arrow", ["Arrow", "write_table"]),
        ("edges.avro", ["Avro", "write_parquet"]),
        ("edges.XLSX", ["spreadsheet", ".csv"]),
        ("graph.rds", ["R", "writeMM"]),
        ("graph.sqlite", ["database", "COPY"]),
        ("graph.zip", ["archive", "unpack"]),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, "x").unwrap();
        let error = read(&path, &ReadOptions::default()).unwrap_err().to_string();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}
