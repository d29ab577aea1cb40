//! Where a good guess would be wrong, the user is asked, or told; each is a file that some tool writes.

use crate::fixtures::npy;
use crate::parquets::{Leaf, file, texts};
use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::read::{ReadOptions, read_with_roles};
use std::path::Path;

/// What is read of an edge table beside a node table, and all that is said; or the error.
fn read(edges: &Path, nodes: Option<&Path>) -> Result<(Dataset, Vec<String>), String> {
    let options = ReadOptions { nodes: nodes.map(Path::to_owned), ..ReadOptions::default() };
    let (dataset, roles) = read_with_roles(edges, &options).map_err(|error| error.to_string())?;
    Ok((dataset, roles.warnings().collect()))
}

/// A folder of files by their names.
pub fn written(files: &[(&str, Vec<u8>)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    folder
}

/// The error about one edge table.
fn refused(name: &str, bytes: Vec<u8>) -> String {
    let folder = written(&[(name, bytes)]);
    read(&folder.path().join(name), None).map(|(dataset, _)| dataset.graph.edges()).unwrap_err()
}

/// What is made of a node table of 40 nodes, with the ids from 1,000 on.
fn nodes(name: &str, table: Vec<u8>) -> Result<(Dataset, Vec<String>), String> {
    let edges: String = (1000..1039).map(|id| format!("{id},{}\n", id + 1)).collect();
    let folder = written(&[("e.csv", format!("source,target\n{edges}").into_bytes()), (name, table)]);
    read(&folder.path().join("e.csv"), Some(&folder.path().join(name)))
}

/// A node table with one column of these cells beside the ids.
fn column(cells: impl Fn(usize) -> String) -> Result<(Dataset, Vec<String>), String> {
    let rows: String = (0..40).map(|row| format!("{};{}\n", 1000 + row, cells(row))).collect();
    nodes("n.csv", format!("id;amount\n{rows}").into_bytes())
}

#[test]
fn a_matrix_with_numbers_or_names_around_it_is_no_list_of_edges() {
    let rows = |sign: &str, before: &dyn Fn(usize) -> String| -> String {
        let cell = |row: usize, column: usize| if row.abs_diff(column) == 1 { "1.0" } else { "0.0" };
        let line = |row: usize| (0..5).map(|column| cell(row, column)).collect::<Vec<_>>().join(sign);
        (0..5).map(|row| format!("{}{}\n", before(row), line(row))).collect()
    };
    let plain = |_: usize| String::new();
    for (name, text, way) in [
        ("a.csv", format!("0,1,2,3,4\n{}", rows(",", &plain)), "pandas.read_csv(\"a.csv\"); m.index = m.columns"),
        ("b.csv", rows(",", &plain), "read_csv(\"b.csv\", header=None); m.index"),
        ("c.csv", format!("v,w,x,y,z\n{}", rows(",", &plain)), "read_csv(\"c.csv\"); m.index"),
        ("d.tsv", format!("\t0\t1\t2\t3\t4\n{}", rows("\t", &|row| format!("{row}\t"))), "sep=\"\\\\t\", index_col=0)"),
        ("e.txt", rows(" ", &plain), "sep=\"\\\\s+\", header=None)"),
    ] {
        let error = refused(name, text.into_bytes());
        assert!(error.contains("adjacency matrix") && error.contains(way), "{name}: {error}");
    }
    // Edges that happen to have numbers as their first line.
    for (list, edges) in [
        ("0,1,2\n1,2,5\n2,0,7\n0,2,1\n", 4),
        ("0,1\n1,2\n2,0\n", 3),
        ("1,2\n2,3\n3,1\n", 3),
        ("0,1,2\n0,5,1\n5,0,2\n1,2,0\n", 4),
    ] {
        let folder = written(&[("l.csv", list.as_bytes().to_vec())]);
        assert_eq!(read(&folder.path().join("l.csv"), None).unwrap().0.graph.edges(), edges, "{list}");
    }
}

#[test]
fn rows_of_calls_without_names_are_asked_about() {
    let who = |at: i32| format!("+4915{:06}", at * 7919 % 37);
    let line = |row: i32, first: String| format!("{first},{},{},{}\n", who(row), who(row * 3 + 1), row % 9);
    for what in ["call ids", "times", "numbers of rows"] {
        let first = |row: i32| match what {
            "call ids" => format!("C{row}"),
            "times" => format!("2026-01-01 10:{:02}:00", row % 60),
            _ => row.to_string(),
        };
        let text: String = (0..200).map(|row| line(row, first(row))).collect();
        let error = refused("calls.csv", text.into_bytes());
        assert!(error.contains("--source \"column 2\" --target \"column 3\""), "{what}: {error}");
    }
    // Weights of a ring, and weights of many digits.
    let ring: String = (0..30).map(|row| format!("{row} {} {}\n", (row + 1) % 30, row + 1)).collect();
    let padded: String = (0..30).map(|row| format!("{row} {} {:03}\n", (row + 7) % 30, row % 4 + 1)).collect();
    for list in [ring, padded] {
        let folder = written(&[("l.txt", list.into_bytes())]);
        assert!(read(&folder.path().join("l.txt"), None).unwrap().0.graph.data.weights.is_some());
    }
    let numbered: String = (0..200).map(|row| format!("{row},{},{},3\n", row * 7 % 90, row * 11 % 90)).collect();
    assert!(refused("calls.csv", numbered.into_bytes()).contains("--source \"column 2\""));
}

#[test]
fn years_and_months_are_no_weights() {
    for (first, unit) in [(1990, "years"), (201_001, "months as YYYYMM")] {
        let text: String = (0..60i32).map(|row| format!("{} {} {}\n", row % 9, row % 7, first + row % 12)).collect();
        let folder = written(&[("t.txt", text.into_bytes())]);
        let (dataset, said) = read(&folder.path().join("t.txt"), None).unwrap();
        assert!(dataset.graph.data.weights.is_none(), "{unit}");
        assert!(said.iter().any(|said| said.contains(&format!("times ({unit}) are no weights"))), "{said:?}");
    }
}

#[test]
fn weights_that_are_no_plain_numbers_come_with_a_remedy() {
    for cell in ["\"1,234.50\"", "50%", "$5.00", "(9.50)"] {
        let error = refused("w.csv", format!("source,target,weight\n1,2,{cell}\n2,3,{cell}\n").into_bytes());
        assert!(error.contains("column 'weight'") && error.contains("write numbers without signs"), "{error}");
    }
    let table = file(
        "required int64 source; required int64 target; required binary weight (UTF8);",
        vec![Leaf::Int64(vec![0]), Leaf::Int64(vec![1]), texts(&["1.5"])],
    );
    assert!(refused("w.parquet", table).contains("write the column as numbers"));
}

#[test]
fn the_second_of_two_columns_of_one_name_is_the_target_by_whichever_name() {
    let prices = "customer,article,price,price_1\n9,1,5,6\n8,2,6,5\n7,1,5,5\n";
    let folder = written(&[("p.csv", prices.as_bytes().to_vec())]);
    assert_eq!(read(&folder.path().join("p.csv"), None).unwrap().0.graph.nodes(), 5, "customers and articles");
    for second in ["Account_1", "Account_duplicated_0", "Account.1", "Account"] {
        let text = format!("From Bank,Account,To Bank,{second},Amount\n1,A,2,B,5.5\n1,B,3,C,6.5\n");
        let folder = written(&[("ibm.csv", text.into_bytes())]);
        let (dataset, _) = read(&folder.path().join("ibm.csv"), None).unwrap();
        let laconic_graph::dataset::Ids::Strings(ids) = &dataset.ids else { panic!("{second}: {:?}", dataset.ids) };
        assert_eq!(ids, &["A", "B", "C"], "{second}");
    }
}

/// A tab before or behind lines that something else divides is nothing.
#[test]
fn tabs_around_lines_divide_nothing() {
    for text in ["1 2\t\n2 3\n3 4\t\n", "1,2\t\n2,3\t\n3,4\t\n", "\t1 2\n2 3\n3 4\n", "\t1\t2\n\t2\t3\n\t3\t4\n"] {
        let folder = written(&[("t.txt", text.as_bytes().to_vec())]);
        let ends = read(&folder.path().join("t.txt"), None).map(|(dataset, _)| dataset.graph.edges());
        if text.starts_with("\t1\t") {
            // A column that holds nothing is no end.
            assert!(ends.is_err(), "{ends:?}");
        } else {
            assert_eq!(ends, Ok(3), "{text:?}");
        }
    }
}

#[test]
fn row_numbers_of_a_frame_that_was_filtered_are_no_feature() {
    for name in ["", "Unnamed: 0", "__index_level_0__"] {
        let row = |row: usize| format!("{},{},{}\n", (row * 37 + 5) % 101, 1000 + row, row % 7);
        let table = format!("{name},id,age\n{}", (0..40).map(row).collect::<String>());
        let (dataset, said) = nodes("n.csv", table.into_bytes()).unwrap();
        assert_eq!(dataset.about.features, ["age"], "{name}");
        assert!(said.iter().any(|said| said.contains("numbers of rows")), "{name}: {said:?}");
    }
    // With tabs, of which the header begins with one.
    let table: String = (0..40).map(|row| format!("{}\t{}\t{}\n", row * 3, 1000 + row, row % 2)).collect();
    let (dataset, _) = nodes("n.tsv", format!("\tid\tage\n{table}").into_bytes()).unwrap();
    assert_eq!(dataset.about.features, ["age"]);
}

#[test]
fn amounts_below_zero_in_brackets_are_no_lists_and_thousands_are_asked_about() {
    let values = |cells: &dyn Fn(usize) -> String| {
        let (dataset, _) = column(cells).unwrap();
        let Features::Dense { columns: 1, values } = &dataset.features else { panic!("{:?}", dataset.about.features) };
        values[..2].to_vec()
    };
    assert_eq!(
        values(&|row| if row % 2 == 0 { "1,000.50".to_owned() } else { format!("({row}.25)") }),
        [1000.5, -1.25]
    );
    assert_eq!(values(&|row| if row % 2 == 0 { format!("${row}.50") } else { format!("-${row}.50") }), [0.5, -1.5]);
    for (what, cells) in [
        (
            "thousands with commas",
            &(|row: usize| if row < 9 { "1,000" } else { "(2,234)" }.to_owned()) as &dyn Fn(usize) -> String,
        ),
        ("thousands with points", &|row| if row < 20 { format!("{}", 900 + row) } else { format!("1.{row:03}") }),
    ] {
        let error = column(cells).unwrap_err();
        assert!(error.contains("thousands") && error.contains("--ignore"), "{what}: {error}");
    }
    assert_eq!(values(&|row| if row % 2 == 0 { "1.500".to_owned() } else { "2".to_owned() }), [1.5, 2.0]);
    // Fractions of three digits are fractions, with none smaller than 1,000 that has no point.
    assert_eq!(values(&|row| format!("{}.250", row + 1)), [1.25, 2.25]);
}

#[test]
fn numbers_that_are_texts_in_parquet_and_lists_with_gaps_are_errors() {
    let ids = || Leaf::Int64((1000..1040).collect());
    let numbers: Vec<String> = (0..40).map(|row| format!("{}.50", row * 3)).collect();
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    let schema = "required int64 id; required binary income (UTF8);";
    let error = nodes("n.parquet", file(schema, vec![ids(), texts(&numbers)])).unwrap_err();
    assert!(error.contains("column 'income': its texts are numbers") && error.contains("--ignore income"), "{error}");
    // Codes are texts, with a 0 before them and without.
    for zero in ["0", ""] {
        let codes: Vec<String> = (0..40).map(|row| format!("{zero}{}", 1000 + row)).collect();
        let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
        assert!(nodes("n.parquet", file(schema, vec![ids(), texts(&codes)])).is_ok());
    }
    let lists = Leaf::ListsDouble((0..40).map(|row| vec![f64::from(row), f64::NAN]).collect());
    let schema = "required int64 id; required group v (LIST) { repeated group list { required double element; } }";
    let error = nodes("n.parquet", file(schema, vec![ids(), lists])).unwrap_err();
    assert!(error.contains("every list has a place without a number"), "{error}");
}

#[test]
fn a_piece_of_a_delta_table_is_refused() {
    let edges =
        || file("required int64 source; required int64 target;", vec![Leaf::Int64(vec![0]), Leaf::Int64(vec![1])]);
    let folder = written(&[("t/_delta_log/0.json", b"{}".to_vec()), ("t/day=a/part-0.parquet", edges())]);
    for piece in ["t/day=a", "t/day=a/part-0.parquet"] {
        let error = read(&folder.path().join(piece), None).map(|(dataset, _)| dataset.graph.edges()).unwrap_err();
        assert!(error.contains("a piece of the Delta Lake table"), "{piece}: {error}");
    }
    // What lies beside it is none.
    for beside in ["t/exports/e.parquet", "t/e.csv"] {
        let bytes = if beside.ends_with("csv") { b"source,target\n0,1\n".to_vec() } else { edges() };
        let path = folder.path().join(beside);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path, None).unwrap().0.graph.edges(), 1, "{beside}");
    }
}

#[test]
fn values_of_one_key_in_gml_are_a_list() {
    let node =
        |id: usize| format!("node [ id {id} label \"n{id}\" emb {id}.5 emb 2.5 one \"_networkx_list_start\" one 7 ]");
    let text = format!("graph [ {} {} edge [ source 0 target 1 ] ]", node(0), node(1));
    let folder = written(&[("g.gml", text.into_bytes())]);
    let (dataset, _) = read(&folder.path().join("g.gml"), None).unwrap();
    assert_eq!(dataset.about.features, ["emb[0]", "emb[1]", "one[0]"]);
}

#[test]
fn features_are_read_of_a_matrix_that_scipy_saved() {
    let int32 = |values: &[i32]| npy("<i4", &[values.len()], values.iter().map(|value| value.to_le_bytes()));
    let members = |format: &str| {
        let word: Vec<[u8; 3]> = vec![format.as_bytes().try_into().unwrap()];
        crate::fixtures::npz(&[
            ("format", npy("|S3", &[], word)),
            ("shape", crate::fixtures::int64(&[2], &[3, 2])),
            ("data", crate::fixtures::float32(&[2], &[0.5, 2.5])),
            ("indices", int32(&[1, 0])),
            ("indptr", int32(&[0, 1, 1, 2])),
        ])
    };
    let folder = written(&[
        ("e.csv", b"source,target\n0,1\n1,2\n".to_vec()),
        ("x.npz", members("csr")),
        ("y.npz", members("csc")),
    ]);
    let with = |name: &str| {
        let options = ReadOptions { features_path: Some(folder.path().join(name)), ..ReadOptions::default() };
        read_with_roles(&folder.path().join("e.csv"), &options).map(|(dataset, _)| dataset.features)
    };
    let (offsets, indices, values) = (vec![0, 1, 1, 2], vec![1, 0], vec![0.5, 2.5]);
    assert_eq!(with("x.npz").unwrap(), Features::Sparse { columns: 2, offsets, indices, values });
    assert!(with("y.npz").unwrap_err().to_string().contains("matrix.tocsr()"));
}

#[test]
fn all_that_is_wrong_with_two_tables_is_said_at_once() {
    let folder = written(&[
        ("e.csv", b"src,dst,weight\na,b,1\nb,a,x\nc,d,\n".to_vec()),
        ("n.csv", b"id,age\na,1\nb,2\nc,3\nd,4\n".to_vec()),
        ("e2.csv", b"src,dst\na,b\na,q\n".to_vec()),
        ("n2.csv", b"id,age\na,1\nb,inf\n".to_vec()),
    ]);
    let error = |edges: &str, nodes: &str| {
        let nodes = folder.path().join(nodes);
        read(&folder.path().join(edges), Some(&nodes)).map(|(dataset, _)| dataset.graph.edges()).unwrap_err()
    };
    let weights = error("e.csv", "n.csv");
    assert!(
        weights.contains("line 3") && weights.contains("2 cells of 3 rows hold none: --ignore weight"),
        "{weights}"
    );
    let both = error("e2.csv", "n2.csv");
    assert!(
        both.contains("names 'q'") && both.contains("1 feature values are not finite, the first at node"),
        "{both}"
    );
}
