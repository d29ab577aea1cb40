//! What is not read: what it is, and the shortest way in.

use super::arrays::Npz;
use super::extension;
use super::parts::unnamed_folder;
use crate::error::GraphError;
use crate::limits::Limits;
use std::io::Read;
use std::path::Path;

/// Endings, what files are that have them, and what to do.
const ENDINGS: &[(&[&str], &str, &str)] = &[
    (
        &["pt", "pth", "ckpt"],
        "a file of torch's, which only Python opens",
        "save(data, \"graph.npz\") of examples/savers/from_pyg.py, or numpy.savez(\"graph.npz\", \
         edge_index=data.edge_index, x=data.x, y=data.y, train_mask=data.train_mask, …), writes what is read here",
    ),
    (
        &["pkl", "pickle", "gpickle", "joblib"],
        "a file of Python objects, which only Python opens",
        "examples/savers/from_networkx.py saves a NetworkX graph, and numpy.savez(\"graph.npz\", edge_index=…, x=…, \
         y=…) any other",
    ),
    (
        &["bin", "dgl"],
        "a file of Python objects, which only Python opens",
        "save(dgl.load_graphs(FILE)[0][0], \"graph.npz\") of examples/savers/from_dgl.py, or \
         numpy.savez(\"graph.npz\", edge_index=…, x=…, y=…), writes what is read here",
    ),
    (
        &["h5ad"],
        "AnnData in HDF5",
        "save(anndata.read_h5ad(FILE), \"graph.npz\", label=\"cell_type\") of examples/savers/from_h5ad.py writes \
         connectivities, features and labels",
    ),
    (
        &["loom", "h5mu", "zarr"],
        "single cells in HDF5 or Zarr",
        "scanpy or mudata read it; then examples/savers/from_h5ad.py saves its AnnData",
    ),
    (
        &["h5", "hdf5"],
        "an HDF5 file",
        "with h5py, numpy.savez(\"graph.npz\", edge_index=file[…], x=file[…], y=file[…]) writes what is read here",
    ),
    (
        &["mat"],
        "a MATLAB file",
        "scipy.sparse.save_npz(\"graph.npz\", scipy.io.loadmat(FILE)[\"A\"].tocsr()) writes its matrix, and \
         --features and --nodes say the rest",
    ),
    (&["net", "paj", "pajek"], "a Pajek network", NETWORKX_PAJEK),
    (&["graph6", "g6", "sparse6", "s6"], "graph6 or sparse6, of many small graphs as a rule", NETWORKX_S6),
    (&["ncol"], "igraph's list of edges by name", "call it .txt: its columns are source, target, weight"),
    (
        &["lgl"],
        "igraph's lists of neighbours",
        "igraph.Graph.Read_Lgl(FILE).write_ncol(\"graph.txt\") writes a list of edges",
    ),
    (
        &["adjlist", "multiline_adjlist"],
        "NetworkX's lists of neighbours",
        "networkx.write_edgelist(networkx.read_adjlist(FILE, create_using=networkx.DiGraph), \"graph.txt\", \
         data=False) writes a list of edges, each as it is listed",
    ),
    (
        &["sif", "nnf"],
        "Cytoscape's simple interaction format",
        "call it .tsv where each line is source, relation, target; --source \"column 1\" --target \"column 3\"",
    ),
    (&["cys", "gephi"], "a session of Cytoscape or Gephi", "export nodes and edges as two tables (.csv)"),
    (&["dot", "gv", "graphmlz", "gdf", "tlp", "vna", "dl"], "a drawing format", NETWORKX),
    (&["cyjs", "cx", "cx2"], "a format of Cytoscape", NETWORKX),
    (&["jsonl", "ndjson"], "JSON lines", DUCKDB_JSON),
    (&["json"], "JSON", DUCKDB_JSON),
    (&["orc"], "an ORC table", "pyarrow.parquet.write_table(pyarrow.orc.read_table(FILE), \"edges.parquet\")"),
    (
        &["feather", "arrow", "ipc"],
        "an Arrow table",
        "pyarrow.parquet.write_table(pyarrow.feather.read_table(FILE), \"edges.parquet\")",
    ),
    (&["avro"], "an Avro table", "polars.read_avro(FILE).write_parquet(\"edges.parquet\")"),
    (
        &["xlsx", "xls", "ods"],
        "a spreadsheet",
        "save the sheet of edges and that of nodes as .csv each (edges.csv, nodes.csv)",
    ),
    (
        &["db", "sqlite", "sqlite3", "duckdb"],
        "a database",
        "in DuckDB: COPY (SELECT … AS source, … AS target FROM …) TO 'edges.parquet'",
    ),
    (&["sql", "dump"], "a dump of a database", "load it, and export the edges and the nodes as .csv or .parquet"),
    (
        &["rds", "rdata", "rda"],
        "a file of R's",
        "in R: write.csv(igraph::as_data_frame(g), \"edges.csv\", row.names = FALSE), or Matrix::writeMM(A, \
         \"graph.mtx\")",
    ),
    (&["ttl", "nt", "nq", "rdf", "owl"], "RDF", "write subject, predicate and object of each triple as a .tsv"),
    (
        &["npy"],
        "an array of NumPy's by itself",
        "of a matrix of adjacency scipy.sparse.save_npz(\"graph.npz\", scipy.sparse.csr_matrix(numpy.load(FILE))) \
         writes what is read here, of a list of edges numpy.savez(\"graph.npz\", edge_index=numpy.load(FILE).T)",
    ),
    (
        &["gr"],
        "a graph of DIMACS's shortest paths",
        "sed -n 's/^a //p' FILE > graph.txt keeps the lines of edges: source, target, weight",
    ),
    (&["lgf", "lgr"], "a graph of LEMON's", "write its @arcs as a table (.csv: source, target, weight)"),
    (
        &["zip", "tar", "tgz", "7z", "rar"],
        "an archive",
        "unpack it, and name the file or folder that comes out (one of NumPy's arrays has to be called .npz)",
    ),
    (&["bz2", "xz", "zst", "lz4"], "a packed file", "unpack it, or pack it with gzip"),
];

const NETWORKX: &str = "save(networkx.read_…(FILE), \"graph.npz\") of examples/savers/from_networkx.py, or edges as a \
                        table (.csv: source, target), and what is known of nodes as another";
const NETWORKX_PAJEK: &str = "g = networkx.read_pajek(FILE); save((networkx.DiGraph if g.is_directed() else \
                              networkx.Graph)(g), \"graph.npz\") of examples/savers/from_networkx.py";
const NETWORKX_S6: &str = "save(networkx.read_sparse6(FILE), \"graph.npz\") (or read_graph6) of \
                           examples/savers/from_networkx.py";
const DUCKDB_JSON: &str = "write the edges as a table (.csv or .parquet: source, target), and what is known of nodes \
                           as another; in DuckDB: COPY (SELECT … FROM read_json('FILE')) TO 'edges.parquet'";

/// The error about a path that no reader knows: what it is, where its name says so, or else what was looked for.
pub fn unrecognised(path: &Path, limits: &Limits) -> GraphError {
    let ending = extension(path);
    if ending == "npz" && path.is_file() {
        return match Npz::open(path, limits) {
            Ok(npz) => unknown_arrays(npz),
            Err(error) => error,
        };
    }
    let ending = if path.is_file() && !is_known(&ending) { by_magic(path).unwrap_or(ending) } else { ending };
    let known = |ending: &str| ENDINGS.iter().find(|(endings, ..)| endings.contains(&ending));
    if let Some((_, what, way)) = known(&ending) {
        return GraphError::format(path, "input", format!("{what}, not a format that is read: {way}"));
    }
    if let Some((name, (_, what, way))) = inside(path).into_iter().find_map(|name| {
        let ending = extension(Path::new(&name));
        Some((name, known(&ending)?))
    }) {
        let folder = format!("a folder that holds {name}: {what}, not a format that is read: {way}");
        return GraphError::format(path, "input", folder);
    }
    if let Some(what) = of_cells(path) {
        return GraphError::format(path, "input", what);
    }
    if let Some(error) = unnamed_folder(path) {
        return error;
    }
    let known = "an .npz with edge_index, of SciPy or of gnn-benchmark, an edge list (.csv, .tsv, .txt, .parquet), a \
                 matrix (.mtx), a METIS .graph, or a folder of OGB, Planetoid, GraphSAINT or edge-list files";
    let parts = "to train on, a part folder (a folder with meta.json and part-0, as it is cut from a dataset)";
    GraphError::format(path, "input", format!("expected one of: {known}; or, {parts}; found none of them"))
}

fn is_known(ending: &str) -> bool {
    ENDINGS.iter().any(|(endings, ..)| endings.contains(&ending))
}

/// How files begin whose names do not say what they are, with the ending that they should have.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89HDF\r\n\x1a\n", "h5"),
    (b"SQLite format 3", "sqlite"),
    (b"ARROW1", "arrow"),
    (b"ORC", "orc"),
    (b"Obj\x01", "avro"),
    (b"\x93NUMPY", "npy"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x80\x02", "pkl"),
    (b"\x80\x03", "pkl"),
    (b"\x80\x04", "pkl"),
    (b"\x80\x05", "pkl"),
    (b"PK\x03\x04", "zip"),
];

/// What a file is by its first bytes, as an ending.
fn by_magic(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    std::fs::File::open(path).ok()?.take(16).read_to_end(&mut start).ok()?;
    MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|(_, ending)| (*ending).to_owned())
}

/// What to do with the folder of counts that 10x Genomics' programs write: cells and genes, no edges.
fn of_cells(path: &Path) -> Option<String> {
    let names = if path.is_dir() { inside(path) } else { Vec::new() };
    let has = |name: &str| names.iter().any(|other| other.trim_end_matches(".gz") == name);
    (has("matrix.mtx") && has("barcodes.tsv")).then(|| {
        "counts of genes in cells (10x Genomics), which are no edges: a = scanpy.read_10x_mtx(FOLDER); \
         scanpy.pp.neighbors(a); save(a, \"graph.npz\") of examples/savers/from_h5ad.py writes the graph of the \
         nearest cells"
            .to_owned()
    })
}

/// The names of the files in a folder that are data, in order.
fn inside(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| !name.starts_with(['.', '_']));
    names.sort();
    names
}

/// So many arrays are listed.
const LISTED: usize = 24;

/// An archive whose arrays have other names: which there are, and what is read.
fn unknown_arrays(mut npz: Npz) -> GraphError {
    let names = npz.names();
    let shown = |name: &String| match npz.header(name) {
        Ok(header) => format!("{name} {:?}", header.shape),
        Err(_) => name.clone(),
    };
    let mut listed: Vec<String> = names.iter().take(LISTED).map(shown).collect();
    if names.len() > LISTED {
        listed.push(format!("and {} more", names.len() - LISTED));
    }
    let listed = if listed.is_empty() { "no arrays".to_owned() } else { listed.join(", ") };
    let matrix = names.iter().find_map(|name| name.strip_suffix("indptr"));
    let way = match matrix {
        Some(prefix) => format!(
            "{prefix}indptr and {prefix}indices are a sparse matrix: scipy.sparse.save_npz(\"graph.npz\", \
             scipy.sparse.csr_matrix((z[\"{prefix}data\"], z[\"{prefix}indices\"], z[\"{prefix}indptr\"]))) writes \
             one that is read, with --features and --nodes for the rest"
        ),
        None => "numpy.savez(\"graph.npz\", edge_index=…, x=…, y=…, train_mask=…) with edge_index of the shape [2, \
                 edges] and a row a node in the others writes what is read here"
            .to_owned(),
    };
    let expected = "expected edge_index, SciPy's format, shape and data, or gnn-benchmark's adj_indptr";
    GraphError::format(npz.path(), "arrays", format!("{expected}, found {listed}; {way}"))
}
