//! Values mean what was written, in whatever type or spelling a tool has put them.

use crate::parquets::{Leaf, file, texts};
use laconic_graph::dataset::{Dataset, Features, Ids};
use laconic_graph::read::{Dates, ReadOptions, read_with_roles};
use laconic_graph::roles::{Role, Roles};

type Read = Result<(Dataset, Roles), String>;

/// Reads a table of edges and one of nodes, each a file of this name.
fn read(tables: [(&str, Vec<u8>); 2], change: impl FnOnce(&mut ReadOptions)) -> Read {
    let folder = tempfile::tempdir().unwrap();
    tables.iter().for_each(|(name, bytes)| std::fs::write(folder.path().join(name), bytes).unwrap());
    let mut options = ReadOptions::default();
    change(&mut options);
    read_with_roles(&folder.path().join(tables[0].0), &options).map_err(|error| error.to_string())
}

/// Three nodes in a circle, and a table of them in Parquet with these columns behind the ids.
fn nodes(columns: &str, leaves: Vec<Leaf>, change: impl FnOnce(&mut ReadOptions)) -> Read {
    let all = [vec![Leaf::Int64(vec![1, 2, 3])], leaves].into_iter().flatten().collect();
    let table = file(&format!("required int64 id; {columns}"), all);
    read([("edges.csv", b"src,dst\n1,2\n2,3\n3,1\n".to_vec()), ("nodes.parquet", table)], change)
}

/// The same with a text table.
fn rows(text: &str, change: impl FnOnce(&mut ReadOptions)) -> Read {
    read([("edges.csv", b"src,dst\n1,2\n2,3\n3,1\n".to_vec()), ("nodes.csv", text.as_bytes().to_vec())], change)
}

fn dense(got: &Read) -> &[f32] {
    match got {
        Ok((Dataset { features: Features::Dense { values, .. }, .. }, _)) => values,
        Ok((_, roles)) => panic!("no features: {roles}"),
        Err(error) => panic!("{error}"),
    }
}

/// Edges alone, in Parquet.
fn edges(columns: &str, leaves: Vec<Leaf>) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edges.parquet");
    std::fs::write(&path, file(columns, leaves)).unwrap();
    read_with_roles(&path, &ReadOptions::default()).map_err(|error| error.to_string())
}

#[test]
fn decimals_are_weights_features_and_ids_whatever_they_are_stored_as() {
    let fixed = |number: i128, bytes: usize| number.to_be_bytes()[16 - bytes..].to_vec();
    let columns = "required int32 a (DECIMAL(9,2)); required int64 b (DECIMAL(18,3)); required \
                   fixed_len_byte_array(16) c (DECIMAL(38,2)); required binary d (DECIMAL(20,1));";
    let leaves = vec![
        Leaf::Int32(vec![125, -50, 7]),
        Leaf::Int64(vec![1, 2000, -3500]),
        Leaf::Fixed([199, -1, 0].map(|number| fixed(number, 16)).to_vec()),
        Leaf::Bytes([5, -15, 1000].map(|number| fixed(number, 2)).to_vec()),
    ];
    let got = nodes(columns, leaves, |_| {});
    assert_eq!(dense(&got), [1.25, 0.001, 1.99, 0.5, -0.5, 2.0, -0.01, -1.5, 0.07, -3.5, 0.0, 100.0]);
    let ends = |numbers: [i128; 3]| Leaf::Fixed(numbers.map(|number| fixed(number, 16)).to_vec());
    let columns = "required fixed_len_byte_array(16) src (DECIMAL(38,0)); required fixed_len_byte_array(16) dst \
                   (DECIMAL(38,0)); required int64 weight (DECIMAL(10,2));";
    let graph = |numbers| {
        let leaves = vec![ends(numbers), ends([numbers[1], numbers[2], numbers[0]]), Leaf::Int64(vec![150, 25, 300])];
        edges(columns, leaves).unwrap().0
    };
    let got = graph([10, 20, 30]);
    assert_eq!(got.ids, Ids::Integers(vec![10, 20, 30]));
    let mut weights = got.graph.data.weights.unwrap();
    weights.sort_by(f32::total_cmp);
    assert_eq!(weights, [0.25, 1.5, 3.0]);
    // Beyond 64 bits they are texts.
    let large = 10i128.pow(30);
    assert_eq!(graph([large, 2, 3]).ids, Ids::Strings(vec![large.to_string(), "2".to_owned(), "3".to_owned()]));
}

#[test]
fn uuids_and_ids_beyond_63_bits_are_texts_and_ids_that_were_rounded_an_error() {
    let id = |last: u8| [[0x55, 0x0e, 0x84, 0, 0xe2, 0x9b, 0x41, 0xd4, 0xa7, 0x16, 0x44, 0x66, 0x55, 0x44, 0, last]];
    let ids = |lasts: [u8; 3]| Leaf::Fixed(lasts.iter().flat_map(|&last| id(last)).map(|id| id.to_vec()).collect());
    let columns = "required fixed_len_byte_array(16) src (UUID); required fixed_len_byte_array(16) dst (UUID);";
    let got = edges(columns, vec![ids([1, 2, 3]), ids([2, 3, 1])]).unwrap().0;
    let Ids::Strings(names) = got.ids else { panic!("expected texts") };
    assert_eq!(names[0], "550e8400-e29b-41d4-a716-446655440001");
    let columns = "required int64 src (INTEGER(64,false)); required int64 dst (INTEGER(64,false));";
    let got = edges(columns, vec![Leaf::Int64(vec![-1, 5]), Leaf::Int64(vec![5, 7])]).unwrap().0;
    assert_eq!(got.ids, Ids::Strings(["18446744073709551615", "5", "7"].map(str::to_owned).to_vec()));
    let columns = "required double src; required double dst;";
    let floats = |first: f64| edges(columns, vec![Leaf::Double(vec![first, 2.0]), Leaf::Double(vec![2.0, 1.0])]);
    assert_eq!(floats(1.0).unwrap().0.graph.nodes(), 2);
    let warned = |got: Read| got.unwrap().1.warnings().any(|what| what.contains("'src'") && what.contains("BIGINT"));
    assert!(warned(floats(9_007_199_254_740_992.0)) && !warned(floats(9_007_199_254_740_991.0)));
    // In text: what Excel and R make of long numbers.
    let nodes = "id,x\n1,1\n2,2\n8.90123E+18,3\n";
    let error = rows(nodes, |_| {}).unwrap_err();
    assert!(error.contains("8.90123E+18") && error.contains("lost digits"), "{error}");
    // Whole numbers that pandas held as floating-point numbers are the numbers that they were.
    let got = rows("id,x\n1.0,1\n2.0,2\n3.0,3\n", |_| {}).unwrap().0;
    assert_eq!(got.graph.nodes(), 3);
}

#[test]
fn halves_lists_of_any_numbers_and_vectors_of_spark_are_features() {
    let half = |bits: u16| bits.to_le_bytes().to_vec();
    let list =
        |name: &str, of: &str| format!("required group {name} (LIST) {{ repeated group list {{ required {of}; }} }}");
    let columns = [
        "required fixed_len_byte_array(2) h (FLOAT16);".to_owned(),
        list("e", "fixed_len_byte_array(2) element (FLOAT16)"),
        list("s", "int32 element (INTEGER(32,false))"),
        list("t", "int64 element (INTEGER(64,false))"),
        list("d", "int64 element (DECIMAL(10,1))"),
    ];
    // 1, -2 and 0.5 in sixteen bits.
    let leaves = vec![
        Leaf::Fixed([0x3c00, 0xc000, 0x3800].map(half).to_vec()),
        Leaf::ListsFixed(vec![vec![half(0x3c00), half(0x3800)]; 3]),
        Leaf::Lists32(vec![vec![-294_967_296]; 3]),
        Leaf::Lists64(vec![vec![i64::MIN]; 3]),
        Leaf::Lists64(vec![vec![15]; 3]),
    ];
    let got = nodes(&columns.join(" "), leaves, |_| {});
    let rest = [1.0, 0.5, 4e9, 9_223_372_036_854_775_808.0, 1.5];
    let expected: Vec<f32> = [1.0, -2.0, 0.5].iter().flat_map(|&h| [&[h][..], &rest].concat()).collect();
    assert_eq!(dense(&got), expected);
    let columns = "required group v { required int32 type (INTEGER(8,true)); required int32 size; required group \
                   indices (LIST) { repeated group list { required int32 element; } } required group values (LIST) { \
                   repeated group list { required double element; } } }";
    let vectors = |index: i32| {
        let leaves = vec![
            Leaf::Int32(vec![0, 1, 0]),
            Leaf::Int32(vec![3, 0, 3]),
            Leaf::Lists32(vec![vec![0, index], vec![], vec![]]),
            Leaf::ListsDouble(vec![vec![7.0, 9.0], vec![1.0, 2.0, 3.0], vec![]]),
        ];
        nodes(columns, leaves, |_| {})
    };
    assert_eq!(dense(&vectors(2)), [7.0, 0.0, 9.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
    let error = vectors(3).unwrap_err();
    assert!(error.contains("the index 3 in a vector of 3"), "{error}");
}

#[test]
fn times_of_day_and_intervals_are_dates_and_no_large_numbers() {
    let columns =
        "required int64 t (TIME(MICROS,true)); required fixed_len_byte_array(12) i (INTERVAL); required int96 z;";
    let leaves = || {
        let interval = |months: u32, days: u32, millis: u32| [months, days, millis].map(u32::to_le_bytes).concat();
        vec![
            Leaf::Int64(vec![21_600_000_000, 43_200_000_000, 0]),
            Leaf::Fixed(vec![interval(0, 1, 0), interval(2, 0, 0), interval(0, 0, 43_200_000)]),
            // Noon of the first day, and the nanoseconds of six hours in two words.
            Leaf::Int96(vec![[0, 0, 2_440_589], [0xa5dc_0000, 0x13a5, 2_440_588], [0, 0, 2_440_588]]),
        ]
    };
    let got = nodes(columns, leaves(), |_| {}).unwrap();
    assert_eq!(got.0.features, Features::None);
    assert!(got.1.warnings().any(|what| what.contains("'t'") && what.contains("--dates days")), "{}", got.1);
    let got = nodes(columns, leaves(), |options| options.cells.dates = Dates::Days);
    let expected = [0.25, 1.0, 1.0, 0.5, 60.0, 0.25, 0.0, 0.5, 0.0];
    let near = dense(&got).iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-3);
    assert!(near, "{:?}", dense(&got));
}

#[test]
fn bytes_are_left_out_and_said_and_numbers_that_are_not_read_an_error_until_they_are_ignored() {
    let bytes = || vec![Leaf::Bytes(vec![vec![1, 0xff, 0xfe]; 3]), Leaf::Double(vec![1.0, 2.0, 3.0])];
    let got = nodes("required binary geom; required double x;", bytes(), |_| {});
    assert_eq!(dense(&got), [1.0, 2.0, 3.0]);
    assert!(got.unwrap().1.warnings().any(|what| what.contains("'geom'") && what.contains("no text")));
    // Older writers do not say that bytes are text.
    let kinds = || vec![Leaf::Bytes([b"a", b"b", b"a"].map(|text| text.to_vec()).to_vec()), Leaf::Double(vec![1.0; 3])];
    let got = nodes("required binary kind; required double x;", kinds(), |options| {
        options.columns.features = vec!["x".to_owned(), "kind".to_owned()];
    });
    let error = got.unwrap_err();
    assert!(error.contains("'kind'") && error.contains("--features-columns"), "2 texts in 3 rows: {error}");
    let columns = "required group p { required double a; required double b; } required double x;";
    let leaves = || vec![Leaf::Double(vec![1.0; 3]), Leaf::Double(vec![2.0; 3]), Leaf::Double(vec![1.0, 2.0, 3.0])];
    let error = nodes(columns, leaves(), |_| {}).unwrap_err();
    assert!(error.contains("column 'p'") && error.contains("--ignore p"), "{error}");
    let got = nodes(columns, leaves(), |options| options.columns.ignore = vec!["p".to_owned()]);
    assert_eq!(dense(&got), [1.0, 2.0, 3.0]);
}

#[test]
fn texts_that_are_lists_or_amounts_are_numbers_and_doubtful_ones_an_error() {
    let column = |cells: [&str; 3]| format!("id;v\n1;{}\n2;{}\n3;{}\n", cells[0], cells[1], cells[2]);
    for (cells, expected) in [
        (["\"0.5, 1\"", "\"2, 3\"", "\"4, 5\""], vec![0.5, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (["[0.5 1]", "[2 3]", "[4 5]"], vec![0.5, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (["0.5|1", "2|3", "4|5"], vec![0.5, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (["1,234.50", "7", "0.5"], vec![1234.5, 7.0, 0.5]),
        (["1.234,50", "7", "0,5"], vec![1234.5, 7.0, 0.5]),
        (["12%", "50%", "7%"], vec![0.12, 0.5, 0.07]),
        (["$1,000.50", "$2", "$3"], vec![1000.5, 2.0, 3.0]),
    ] {
        assert_eq!(dense(&rows(&column(cells), |_| {})), expected, "{cells:?}");
    }
    let error = rows(&column(["1,234", "5,678", "9,012"]), |_| {}).unwrap_err();
    assert!(error.contains("thousands, or decimal commas") && error.contains("--ignore v"), "{error}");
    let error = rows(&column(["[1, 2]", "[1, 2, 3]", "[4, 5]"]), |_| {}).unwrap_err();
    assert!(error.contains("not all of one length"), "{error}");
    // Two whole numbers are a list where the column is called so, as in DGL's tables.
    let two = column(["0,1", "1,0", "2,1"]);
    assert!(rows(&two, |_| {}).unwrap_err().contains("or lists of two"));
    let got = rows(&two.replace(";v", ";feat"), |_| {});
    assert_eq!(dense(&got), [0.0, 1.0, 1.0, 0.0, 2.0, 1.0]);
    assert!(got.unwrap().1.warnings().any(|what| what.contains("'feat': texts are read as lists of 2")));
    // A dash among numbers says that there is none.
    let got = rows("id,v\n1,1.5\n2,-\n3,4\n", |options| options.cells.missing = laconic_graph::read::Missing::Zero);
    assert_eq!(dense(&got), [1.5, 0.0, 0.0, 1.0, 4.0, 0.0]);
}

#[test]
fn names_of_rows_that_pandas_writes_are_ids() {
    let table = file(
        "required double x; required binary __index_level_0__ (UTF8);",
        vec![Leaf::Double(vec![1.0, 2.0, 3.0]), texts(&["a", "b", "c"])],
    );
    let edges = || b"src,dst\na,b\nb,c\nc,a\n".to_vec();
    let (got, roles) = read([("edges.csv", edges()), ("nodes.parquet", table)], |_| {}).unwrap();
    assert_eq!((got.graph.nodes(), got.about.features), (3, vec!["x".to_owned()]));
    assert!(roles.lines.iter().any(|line| line.role == Role::Ids && line.text.contains("__index_level_0__")));
    let text = || b",x\na,1\nb,2\nc,3\n".to_vec();
    for id in [None, Some("Unnamed: 0"), Some("")] {
        let got = read([("edges.csv", edges()), ("nodes.csv", text())], |options| {
            options.columns.id = id.map(str::to_owned);
        });
        assert_eq!(dense(&got), [1.0, 2.0, 3.0], "{id:?}");
    }
    // Numbers of rows are no ids unasked.
    let numbers = b",x\n0,1\n1,2\n2,3\n".to_vec();
    let error = read([("edges.csv", b"src,dst\n0,1\n1,2\n".to_vec()), ("nodes.csv", numbers)], |_| {}).unwrap_err();
    assert!(error.contains("no column of node ids"), "{error}");
}
