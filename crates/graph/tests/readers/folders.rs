//! One table in the files of a folder, as engines write them.

use crate::parquets::{Leaf, file, texts};
use laconic_graph::dataset::{Dataset, Features};
use laconic_graph::read::{ReadOptions, read_with_roles};
use std::path::Path;

/// Writes files into a folder, and folders on the way.
fn write(folder: &Path, files: &[(&str, Vec<u8>)]) {
    for (name, bytes) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

fn read(path: &Path) -> Result<Dataset, String> {
    read_with_roles(path, &ReadOptions::default()).map(|(got, _)| got).map_err(|error| error.to_string())
}

/// Edges from each number to the next one, in Parquet.
fn chain(numbers: std::ops::Range<i64>) -> Vec<u8> {
    let ends = [numbers.clone().collect(), numbers.map(|number| number + 1).collect()];
    file("required int64 src; required int64 dst;", ends.map(Leaf::Int64).into_iter().collect())
}

fn edges(path: &Path) -> usize {
    read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).graph.edges()
}

#[test]
fn folders_of_all_engines_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let text = |row: &str| format!("src,dst\n{row}\n").into_bytes();
    for (name, files) in [
        (
            "spark",
            vec![
                ("part-00000-5f.c000.snappy.parquet", chain(0..2)),
                ("part-00001-5f.c000.snappy.parquet", chain(2..3)),
            ],
        ),
        ("duckdb", vec![("data_0.parquet", chain(0..2)), ("data_1.parquet", chain(2..3))]),
        ("dask", vec![("part.0.parquet", chain(0..2)), ("part.1.parquet", chain(2..3)), ("_metadata", vec![1])]),
        ("pyarrow", vec![("5f3a-0.parquet", chain(0..2)), ("5f3a-1.parquet", chain(2..3))]),
        ("hive", vec![("000000_0", chain(0..2)), ("000001_0", chain(2..3)), (".000000_0.crc", vec![1])]),
        ("days", vec![("day=1/kind=a/part-0.parquet", chain(0..2)), ("day=2/kind=b/part-0.parquet", chain(2..3))]),
        (
            "text",
            vec![
                ("part-00000-5f3a-c000.csv", text("0,1\n1,2")),
                ("part-00001-77bc-c000.csv", text("2,3")),
                ("_SUCCESS", vec![]),
            ],
        ),
    ] {
        let path = folder.path().join(name);
        write(&path, &files);
        assert_eq!(edges(&path), 3, "{name}");
    }
    // Beside edges that are called so, other tables are none of theirs.
    let path = folder.path().join("two");
    write(&path, &[("edges.parquet", chain(0..2)), ("scores.parquet", chain(7..9))]);
    assert_eq!(edges(&path), 2);
    // Thousands of files are no more at once than may be open.
    let many: Vec<(String, Vec<u8>)> =
        (0..1500).map(|number| (format!("part-{number:05}.parquet"), chain(number..number + 1))).collect();
    let path = folder.path().join("many");
    write(&path, &many.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect::<Vec<_>>());
    assert_eq!(edges(&path), 1500);
}

/// The features and the ids of nodes in a folder beside edges.
fn nodes(folder: &Path, id: Option<&str>) -> Result<Vec<f32>, String> {
    std::fs::write(folder.join("edges.csv"), "src,dst\n0,1\n1,2\n").unwrap();
    let mut options = ReadOptions { nodes: Some(folder.join("table")), ..ReadOptions::default() };
    options.columns.id = id.map(str::to_owned);
    match read_with_roles(&folder.join("edges.csv"), &options).map_err(|error| error.to_string())?.0.features {
        Features::Dense { values, .. } => Ok(values.into_vec()),
        _ => Err("no features".to_owned()),
    }
}

#[test]
fn files_are_read_in_the_order_of_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let one = |number: usize| file("required double x;", vec![Leaf::Double(vec![number as f64])]);
    let files: Vec<(String, Vec<u8>)> =
        (0..12).map(|number| (format!("table/part-{number}.parquet"), one(number))).collect();
    write(folder.path(), &files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect::<Vec<_>>());
    let expected: Vec<f32> = (0..12).map(|number| number as f32).collect();
    assert_eq!(nodes(folder.path(), Some("row")), Ok(expected));
}

#[test]
fn columns_are_matched_by_name_numbers_widened_and_the_column_that_differs_is_named() {
    let first = || file("required int64 id; required int64 x;", vec![Leaf::Int64(vec![0, 1]), Leaf::Int64(vec![5, 6])]);
    let read = |second: Vec<u8>| {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("table/a=7/part-0.parquet", first()), ("table/a=8/part-1.parquet", second)]);
        nodes(folder.path(), None)
    };
    let other = |columns: &str, leaves| file(columns, leaves);
    let swapped = other("required double x; required int64 id;", vec![Leaf::Double(vec![0.5]), Leaf::Int64(vec![2])]);
    assert_eq!(read(swapped), Ok(vec![5.0, 7.0, 6.0, 7.0, 0.5, 8.0]));
    let named = other("required int64 id; required int64 z;", vec![Leaf::Int64(vec![2]), Leaf::Int64(vec![7])]);
    let error = read(named).unwrap_err();
    assert!(error.contains("part-1.parquet") && error.contains("column 'x'") && error.contains("part-0"), "{error}");
    let more = other(
        "required int64 id; required int64 x; required int64 z;",
        vec![Leaf::Int64(vec![2]), Leaf::Int64(vec![7]), Leaf::Int64(vec![7])],
    );
    assert!(read(more).unwrap_err().contains("the column 'z' is not in"));
    let words = other("required int64 id; required binary x (UTF8);", vec![Leaf::Int64(vec![2]), texts(&["many"])]);
    let error = read(words).unwrap_err();
    assert!(error.contains("column 'x'") && error.contains("texts here and integers in"), "{error}");
}

fn delta(folder: &Path, log: &[&str]) {
    for (version, lines) in log.iter().enumerate() {
        write(folder, &[(&format!("_delta_log/{version:020}.json"), lines.as_bytes().to_vec())]);
    }
}

/// The first lines of a log: a table of `src`, `dst` and `weight`.
fn meta() -> String {
    let field = |name: &str, of: &str| {
        format!(r#"{{\"name\":\"{name}\",\"type\":\"{of}\",\"nullable\":true,\"metadata\":{{}}}}"#)
    };
    let fields = [field("src", "long"), field("dst", "long"), field("weight", "double")].join(",");
    let schema = format!(r#"{{\"type\":\"struct\",\"fields\":[{fields}]}}"#);
    let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}"#;
    let rest = r#""partitionColumns":[],"configuration":{}"#;
    format!("{protocol}\n{{\"metaData\":{{\"id\":\"1\",\"schemaString\":\"{schema}\",{rest}}}}}\n")
}

#[test]
fn of_a_delta_lake_table_the_current_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |numbers: [i64; 2], weight: f64| {
        let ends = numbers.map(|number| Leaf::Int64(vec![number]));
        let leaves = ends.into_iter().chain([Leaf::Double(vec![weight])]).collect();
        file("required int64 src; required int64 dst; required double weight;", leaves)
    };
    let files = [
        ("part-0.parquet", rows([0, 1], 1.0)),
        ("part%1.parquet", rows([0, 1], 100.0)),
        ("part-2.parquet", rows([1, 2], 2.0)),
    ];
    write(folder.path(), &files);
    let add = |path: &str| {
        format!(
            r#"{{"add":{{"path":"{path}","partitionValues":{{}},"size":1,"modificationTime":1,"dataChange":true}}}}"#
        )
    };
    let remove = |path: &str| format!(r#"{{"remove":{{"path":"{path}","dataChange":true}}}}"#);
    let first = format!("{}{}\n{}\n", meta(), add("part-0.parquet"), add("part-2.parquet"));
    let second = format!("{}\n{}\n", remove("part-0.parquet"), add("part%251.parquet"));
    delta(folder.path(), &[&first, &second]);
    let weights = |path: &Path| {
        let mut weights = read(path)?.graph.data.weights.unwrap_or_default();
        weights.sort_by(f32::total_cmp);
        Ok::<_, String>(weights)
    };
    assert_eq!(weights(folder.path()), Ok(vec![2.0, 100.0]));
    for (line, words) in [
        (
            add("part-2.parquet").replace("\"size\"", r#""deletionVector":{"storageType":"u"},"size""#),
            "deletion vectors",
        ),
        (
            meta().replace("\"configuration\":{}", r#""configuration":{"delta.columnMapping.mode":"name"}"#),
            "column mapping",
        ),
        (r#"{"protocol":{"minReaderVersion":3,"readerFeatures":["catalogManaged"]}}"#.to_owned(), "catalogManaged"),
        (add("s3://other/part.parquet"), "lies elsewhere"),
    ] {
        delta(folder.path(), &[&first, &second, &line]);
        let error = weights(folder.path()).unwrap_err();
        assert!(error.contains(words) && error.contains("to_pyarrow_table()"), "expected '{words}' in: {error}");
    }
    std::fs::remove_file(folder.path().join(format!("_delta_log/{:020}.json", 0))).unwrap();
    assert!(weights(folder.path()).unwrap_err().contains("whose log has gaps"));
}

#[test]
fn tables_of_iceberg_and_hudi_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("ice"), &[("metadata/v1.metadata.json", vec![]), ("data/part-0.parquet", chain(0..2))]);
    write(&folder.path().join("hudi"), &[(".hoodie/hoodie.properties", vec![]), ("part-0.parquet", chain(0..2))]);
    for (path, word) in [("ice", "Iceberg"), ("ice/data", "Iceberg"), ("hudi", "Hudi")] {
        let error = read(&folder.path().join(path)).unwrap_err();
        assert!(error.contains(word) && error.contains(".write.parquet"), "{path}: {error}");
    }
}
