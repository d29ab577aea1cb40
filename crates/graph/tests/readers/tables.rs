//! Node tables as people have them: whatever a column holds, it becomes what its owner can see, or an error.

use crate::fixtures;
use laconic_graph::about::{About, Reading, TableColumn};
use laconic_graph::dataset::{Dataset, Features, Labels};
use laconic_graph::read::{Dates, Header, Missing, ReadOptions, read_with_roles};
use laconic_graph::roles::{Role, Roles};

/// Reads three edges, and a node table of this text.
fn try_read(nodes: &str, change: impl FnOnce(&mut ReadOptions)) -> Result<(Dataset, Roles), String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("edges.csv"), "src,dst\n1,2\n2,3\n3,4\n").unwrap();
    std::fs::write(folder.path().join("nodes.csv"), nodes).unwrap();
    let mut options = ReadOptions::default();
    change(&mut options);
    read_with_roles(&folder.path().join("edges.csv"), &options).map_err(|error| error.to_string())
}

fn read(nodes: &str) -> (Dataset, Roles) {
    try_read(nodes, |_| {}).unwrap()
}

fn dense(dataset: &Dataset) -> (usize, &[f32]) {
    match &dataset.features {
        Features::Dense { columns, values } => (*columns, values),
        _ => panic!("expected dense features"),
    }
}

fn line(roles: &Roles, role: Role) -> Vec<&str> {
    roles.lines.iter().filter(|line| line.role == role).map(|line| line.text.as_str()).collect()
}

const PEOPLE: &str = "user_id,age,country,status,set,note\n\
                      1,30,fr,ok,train,a\n2,40,de,banned,train,b\n3,50,fr,ok,val,c\n4,60,de,ok,test,d\n";

fn people(options: &mut ReadOptions) {
    options.columns.id = Some("user_id".to_owned());
    options.columns.label = Some("status".to_owned());
}

#[test]
fn a_column_of_ids_that_is_not_recognised_is_an_error_and_no_feature() {
    let error = try_read(PEOPLE, |_| {}).unwrap_err();
    for words in ["nodes.csv: header", "user_id, age, country, status, set, note", "data.id", "--id COLUMN", "--id row"]
    {
        assert!(error.contains(words), "expected '{words}' in: {error}");
    }
    // Rows in any order are the same graph.
    let (sorted, _) = try_read(PEOPLE, people).unwrap();
    let mut lines: Vec<&str> = PEOPLE.lines().collect();
    lines[1..].reverse();
    let (reversed, _) = try_read(&(lines.join("\n") + "\n"), people).unwrap();
    let ends = |dataset: &Dataset| {
        let name = |node: usize| dataset.ids.name(node);
        let edges = (0..4).flat_map(|to| dataset.graph.in_neighbours(to).iter().map(move |&from| (from as usize, to)));
        let mut edges: Vec<_> = edges.map(|(from, to)| (name(from), name(to))).collect();
        edges.sort();
        edges
    };
    assert_eq!(ends(&sorted), ends(&reversed));
    assert_ne!(sorted.ids, reversed.ids);
}

#[test]
fn every_column_has_a_role_and_every_name_is_kept() {
    let (dataset, roles) = try_read(PEOPLE, people).unwrap();
    let text = |role| line(&roles, role);
    assert_eq!(text(Role::Ids), ["user_id (integers)"]);
    assert_eq!(text(Role::Labels), ["status: banned=0 ok=1"]);
    assert_eq!(text(Role::Split), ["set"]);
    assert_eq!(text(Role::Features), ["age, country (one-hot 2)"]);
    assert_eq!(text(Role::Ignored), ["note (free text: 4 different values in 4 rows)"]);
    assert_eq!((text(Role::Source), text(Role::Target)), (vec!["src"], vec!["dst"]));
    let warnings: Vec<String> = roles.warnings().collect();
    assert_eq!(warnings, ["nodes.csv: column 'note' is ignored: free text: 4 different values in 4 rows"]);
    assert_eq!(dataset.about.classes, ["banned", "ok"]);
    assert_eq!(dataset.about.features, ["age", "country=de", "country=fr"]);
    let values = [30.0, 0.0, 1.0, 40.0, 1.0, 0.0, 50.0, 0.0, 1.0, 60.0, 1.0, 0.0];
    assert_eq!(dense(&dataset), (3, &values[..]));
    assert_eq!(dataset.labels, Labels::Single { classes: 2, values: vec![1, 0, 1, 1] });
}

#[test]
fn new_data_are_prepared_as_the_data_that_were_learned_from() {
    let about = try_read(PEOPLE, people).unwrap().0.about;
    let again = |nodes: &str| {
        try_read(nodes, |options| {
            people(options);
            options.like = Some(about.clone());
            options.columns.label = nodes.contains("status").then(|| "status".to_owned());
        })
    };
    // Other columns, another order, no split, a country and a status that nobody has seen.
    let (got, roles) =
        again("country,user_id,extra,age,status\nfr,1,9,31,ok\nit,2,9,41,new\nde,3,9,51,\n,4,9,61,banned\n").unwrap();
    let values = [31.0, 0.0, 1.0, 41.0, 0.0, 0.0, 51.0, 1.0, 0.0, 61.0, 0.0, 0.0];
    assert_eq!(dense(&got), (3, &values[..]));
    assert_eq!(got.about, about);
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![1, -1, -1, 0] });
    let warnings = roles.warnings().collect::<Vec<_>>().join("\n");
    for words in ["1 labels of other classes, such as 'new'", "no category of the model's: 'it'", "'extra' is ignored"]
    {
        assert!(warnings.contains(words), "expected '{words}' in: {warnings}");
    }
    // Without labels there are none, and that is no mistake.
    let (got, _) = again("user_id,age,country\n1,1,fr\n2,2,fr\n3,3,fr\n4,4,fr\n").unwrap();
    assert_eq!((got.labels, got.about.classes.len(), got.features.columns()), (Labels::None, 0, 3));
    let error = again("user_id,age\n1,1\n2,2\n3,3\n4,4\n").unwrap_err();
    assert!(error.contains("expected a column 'country'") && error.contains("user_id, age"), "{error}");
    let error = again("user_id,age,country\n1,1,fr\n2,,fr\n3,3,fr\n4,4,fr\n").unwrap_err();
    assert!(error.contains("line 3") && error.contains("'age'") && error.contains("without a value"), "{error}");
}

#[test]
fn missing_values_are_an_error_until_their_owner_says_what_stands_for_them() {
    let table = "id,age,kind\n1,30,a\n2,n/a,a\n3,NA,b\n4,60,b\n";
    let error = try_read(table, |_| {}).unwrap_err();
    for words in ["column 'age'", "2 of 4 cells have no value", "data.missing", "data.ignore = [\"age\"]"] {
        assert!(error.contains(words), "expected '{words}' in: {error}");
    }
    let (zero, roles) = try_read(table, |options| options.cells.missing = Missing::Zero).unwrap();
    assert_eq!(zero.about.features, ["age", "age missing", "kind=a", "kind=b"]);
    let values = [30., 0., 1., 0., 0., 1., 1., 0., 0., 1., 0., 1., 60., 0., 0., 1.];
    assert_eq!(dense(&zero), (4, &values[..]));
    assert_eq!(line(&roles, Role::Features), ["age (2 missing, filled with 0), kind (one-hot 2)"]);
    let expected =
        TableColumn { name: "age".to_owned(), reading: Reading::Number, fill: Some(vec![0.0]), indicator: true };
    assert_eq!(zero.about.columns[0], expected);
    let (ignored, roles) = try_read(table, |options| options.columns.ignore = vec!["age".to_owned()]).unwrap();
    assert_eq!((ignored.features.columns(), line(&roles, Role::Ignored)), (2, vec!["age (as asked)"]));
    assert!(!roles.warnings().any(|what| what.contains("age")), "what was asked for is no surprise");
}

#[test]
fn what_cannot_become_numbers_is_named_with_the_reason() {
    let error = try_read("id,price\n1,\"0,5\"\n2,\"1,25\"\n3,2\n4,\"7,0\"\n", |_| {}).unwrap_err();
    assert!(error.contains("'price'") && error.contains("decimal commas, such as '0,5'"), "{error}");
    assert!(error.contains("data.ignore = [\"price\"]"), "{error}");
    let table = ",id,joined,flag,same,none\n0,1,2026-01-01,true,x,\n1,2,2026-01-02,false,x,\n\
                 2,3,2026-01-03,true,x,\n3,4,2026-01-04T12:00,true,x,\n";
    let (got, roles) = read(table);
    assert_eq!((got.about.features.as_slice(), dense(&got).1), (&["flag".to_owned()][..], &[1.0, 0.0, 1.0, 1.0][..]));
    let ignored = line(&roles, Role::Ignored);
    for (line, words) in ignored.iter().zip([
        "a column without a name (it counts the rows)",
        "joined (dates; data.dates",
        "same (the same text in every row",
        "none (no values)",
    ]) {
        assert!(line.starts_with(words), "expected '{words}' in: {line}");
    }
    assert_eq!(ignored.len(), 4);
    let (got, _) = try_read(table, |options| options.cells.dates = Dates::Days).unwrap();
    assert_eq!(dense(&got).1, [20454.0, 1.0, 20455.0, 0.0, 20456.0, 1.0, 20457.5, 1.0]);
}

#[test]
fn categories_are_bounded() {
    let rows = |different: usize| {
        let row = |id: usize| format!("{},{id},word {}\n", id + 1, id % different);
        "id,age,word\n".to_owned() + &(0..300).map(row).collect::<String>()
    };
    assert_eq!(read(&rows(64)).0.features.columns(), 65);
    let (got, roles) = read(&rows(65));
    assert_eq!(got.features.columns(), 1);
    assert!(line(&roles, Role::Ignored)[0].contains("more than 64 different values; data.categories"), "{roles}");
    let more = try_read(&rows(65), |options| options.cells.categories_max = 65).unwrap().0;
    assert_eq!(more.features.columns(), 66);
}

#[test]
fn classes_are_the_values_that_are_there() {
    let table = |label: &str| format!("id,{label}\n1,100\n2,205\n3,100\n4,-1\n");
    let (got, roles) = read(&table("label"));
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![0, 1, 0, -1] });
    assert_eq!(got.about.classes, ["100", "205"]);
    let warnings: Vec<String> = roles.warnings().collect();
    assert!(warnings[0].contains("numbers with gaps") && warnings[0].contains("100=0 205=1"), "{warnings:?}");
    let plain = read("id,y\n1,0\n2,2\n3,1\n4,n/a\n").0;
    assert_eq!(
        (plain.about.classes.len(), plain.labels),
        (0, Labels::Single { classes: 3, values: vec![0, 2, 1, -1] })
    );
    // A column of another name is a feature, and it is said that it looks like labels.
    let (got, roles) = read("id,age,target\n1,5,0\n2,6,1\n3,7,0\n4,8,1\n");
    assert_eq!((got.labels, got.features.columns()), (Labels::None, 2));
    let warnings: Vec<String> = roles.warnings().collect();
    assert!(
        warnings[0].contains("no column of labels is recognised") && warnings[0].ends_with(": target"),
        "{warnings:?}"
    );
}

#[test]
fn a_node_may_have_several_classes() {
    let expected = Labels::Multi { classes: 3, values: vec![1, 0, 1, 0, 0, 0, 0, 1, 0, 255, 255, 255] };
    let columns = "id,label_art,label_music,label_sport\n1,1,0,1\n2,0,0,0\n3,0,1,0\n4,,,\n";
    let (got, roles) = read(columns);
    assert_eq!((&got.labels, &got.features), (&expected, &Features::None));
    assert_eq!(got.about.classes, ["art", "music", "sport"]);
    let text = "label_art, label_music, label_sport (multi-label): art=0 music=1 sport=2";
    assert_eq!(line(&roles, Role::Labels), [text]);
    let separated = try_read("id,label\n1,sport; art\n2,;\n3,music\n4,\n", |options| {
        options.columns.label_separator = Some(";".to_owned())
    });
    let got = separated.unwrap().0;
    assert_eq!((&got.labels, &got.about.classes.join(" ")), (&expected, &"art music sport".to_owned()));
    // New data have fewer columns, in another order.
    let like = |nodes: &str| try_read(nodes, |options| options.like = Some(got.about.clone())).unwrap().0.labels;
    const U: u8 = Labels::UNKNOWN;
    assert_eq!(
        like("id,label_music,label_art\n1,0,1\n2,1,0\n3,0,0\n4,1,1\n"),
        Labels::Multi { classes: 3, values: vec![1, 0, U, 0, 1, U, 0, 0, U, 1, 1, U] }
    );
    let error = try_read("id,label_a,label_b\n1,2,0\n2,1,1\n3,0,0\n4,0,1\n", |_| {}).unwrap_err();
    assert!(error.contains("column 'label_a'") && error.contains("expected 0 or 1"), "{error}");
}

#[test]
fn no_first_edge_is_taken_for_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    std::fs::write(&path, "ann,bob\ncem,dan\neve,cem\n").unwrap();
    let read = |header| {
        let options = ReadOptions { header, ..ReadOptions::default() };
        read_with_roles(&path, &options).map(|(dataset, _)| dataset.graph.edges()).map_err(|error| error.to_string())
    };
    assert_eq!((read(Header::No), read(Header::Yes)), (Ok(3), Ok(2)));
    let error = read(Header::Auto).unwrap_err();
    assert!(error.contains("line 1: found 'ann,bob'") && error.contains("--header"), "{error}");
    std::fs::write(&path, "ann,bob,2\nbob,cem,1\ncem,dan,4\n").unwrap();
    assert_eq!(read(Header::Auto), Ok(3), "names are no numbers");
    std::fs::write(&path, "ann,bob\nbob,cem\ncem,dan\n").unwrap();
    assert_eq!(read(Header::Auto), Ok(3), "who stands below again is no name of a column");
}

#[test]
fn columns_of_edges_are_named_and_amounts_hinted_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.csv");
    std::fs::write(&path, "src,dst,amount,why\n1,2,5.5,x\n2,3,1,y\n").unwrap();
    let mut options = ReadOptions::default();
    let (got, roles) = read_with_roles(&path, &options).unwrap();
    assert_eq!(got.graph.data.weights, None);
    let warnings: Vec<String> = roles.warnings().collect();
    assert!(warnings[0].contains("'amount'") && warnings[0].contains("--weight amount"), "{warnings:?}");
    assert!(warnings[1].contains("'why' is ignored: edges have no features"), "{warnings:?}");
    options.columns.ignore = vec!["amount".to_owned(), "why".to_owned()];
    assert_eq!(read_with_roles(&path, &options).unwrap().1.warnings().count(), 0);
    options.columns.ignore = vec!["amont".to_owned()];
    let error = read_with_roles(&path, &options).unwrap_err().to_string();
    assert!(error.contains("no table has a column 'amont'"), "{error}");
    options.columns.ignore.clear();
    options.columns.id = Some("id".to_owned());
    let error = read_with_roles(&path, &options).unwrap_err().to_string();
    assert!(error.contains("data.id") && error.contains("there is none"), "{error}");
}

#[test]
fn columns_that_hold_lists_and_dates_are_read_from_parquet() {
    let fixture = fixtures::parquet_of_lists(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]);
    let folder = tempfile::tempdir().unwrap();
    let path = fixture.write(folder.path());
    let (got, roles) = read_with_roles(&path, &ReadOptions::default()).unwrap();
    assert_eq!(dense(&got), (2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));
    assert_eq!(got.about.features, ["embedding[0]", "embedding[1]"]);
    assert_eq!(line(&roles, Role::Features), ["embedding (list of 2)"]);
    assert!(line(&roles, Role::Ignored)[0].starts_with("day (dates;"), "{roles}");
    let mut options = ReadOptions::default();
    options.cells.dates = Dates::Days;
    let (got, _) = read_with_roles(&path, &options).unwrap();
    assert_eq!(dense(&got), (3, &[1.0, 2.0, 0.0, 3.0, 4.0, 1.0, 5.0, 6.0, 2.0][..]));
    let uneven = fixtures::parquet_of_lists(&[&[1.0, 2.0], &[3.0], &[5.0, 6.0]]);
    let path = uneven.write(folder.path());
    let error = read_with_roles(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(
        error.contains("column 'embedding'") && error.contains("row 1: expected lists of 2 numbers, found one of 1")
    );
    let gaps = fixtures::parquet_of_lists(&[&[1.0, 2.0], &[], &[5.0, 7.0]]);
    let path = gaps.write(folder.path());
    let error = read_with_roles(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("1 of 3 cells have no value"), "{error}");
    options = ReadOptions::default();
    options.cells.missing = Missing::Zero;
    let (got, _) = read_with_roles(&path, &options).unwrap();
    assert_eq!(dense(&got), (3, &[1.0, 2.0, 0.0, 0.0, 0.0, 1.0, 5.0, 7.0, 0.0][..]));
}

#[test]
fn a_recipe_is_kept_through_json_to_the_bit() {
    let about = try_read(PEOPLE, people).unwrap().0.about;
    let text = serde_json::to_string(&about).unwrap();
    assert_eq!(serde_json::from_str::<About>(&text).unwrap(), about);
}

#[test]
fn a_folder_of_parquet_files_is_one_table() {
    let fixture = fixtures::parquet_of_lists(&[&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]]);
    let folder = tempfile::tempdir().unwrap();
    let path = fixture.write(folder.path());
    let whole = read_with_roles(&path, &ReadOptions::default()).unwrap().0;
    // The ids of a second file go on where those of the first end.
    let table = folder.path().join("spark");
    std::fs::create_dir(&table).unwrap();
    std::fs::write(table.join("_SUCCESS"), "").unwrap();
    for (name, first, lists) in
        [("part-00001.parquet", 2, &[&[5.0f32, 6.0][..]][..]), ("part-00000.parquet", 0, &[&[1.0, 2.0], &[3.0, 4.0]])]
    {
        std::fs::write(table.join(name), fixtures::parquet_lists_from(first, lists)).unwrap();
    }
    let options = ReadOptions { nodes: Some(table.clone()), ..ReadOptions::default() };
    let got = read_with_roles(&path.join("edges.csv"), &options).unwrap().0;
    assert_eq!((&got.features, &got.ids, &got.graph), (&whole.features, &whole.ids, &whole.graph));
    // As the node table beside the edges, and as edges.
    std::fs::remove_file(path.join("nodes.parquet")).unwrap();
    std::fs::rename(&table, path.join("nodes.parquet")).unwrap();
    assert_eq!(read_with_roles(&path, &ReadOptions::default()).unwrap().0.features, whole.features);
    std::fs::write(path.join("nodes.parquet/part-00002.parquet"), "PAR1").unwrap();
    let error = read_with_roles(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("part-00002.parquet"), "{error}");
}

#[test]
fn arrays_under_the_names_of_pytorch_geometric_are_read_and_others_named() {
    let members = |more: &[(&'static str, Vec<u8>)]| {
        let mut members = vec![
            ("edge_index", fixtures::int64(&[2, 2], &[0, 1, 1, 2])),
            ("x", fixtures::float32(&[4, 1], &[1.0, 2.0, 3.0, 4.0])),
            ("y", fixtures::int64(&[4], &[0, 1, 1, 0])),
            ("edge_attr", fixtures::float32(&[2, 1], &[1.0, 2.0])),
        ];
        members.extend_from_slice(more);
        members
    };
    let read = |members: Vec<(&'static str, Vec<u8>)>| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("graph.npz");
        std::fs::write(&path, fixtures::npz(&members)).unwrap();
        read_with_roles(&path, &ReadOptions::default()).map_err(|error| error.to_string())
    };
    let (got, roles) = read(members(&[])).unwrap();
    assert_eq!(dense(&got), (1, &[1.0, 2.0, 3.0, 4.0][..]));
    assert_eq!(got.labels, Labels::Single { classes: 2, values: vec![0, 1, 1, 0] });
    let warnings: Vec<String> = roles.warnings().collect();
    assert!(warnings.len() == 1 && warnings[0].contains("'edge_attr'") && warnings[0].contains("edge_weight"));
    // Our own names come first.
    let (got, roles) = read(members(&[("features", fixtures::float32(&[4, 1], &[9.0; 4]))])).unwrap();
    assert_eq!(dense(&got).1, [9.0; 4]);
    assert!(roles.warnings().any(|what| what.contains("column 'x' is ignored")), "{roles}");
    // Texts as NumPy writes them: so many characters of four bytes.
    let letters = |text: &str| {
        let codes = text.chars().flat_map(|c| u32::from(c).to_le_bytes());
        fixtures::npy("<U2", &[text.chars().count() / 2], codes.map(|byte| [byte]).collect::<Vec<_>>())
    };
    let names = [("ids", letters("a\0bbc\0é\0")), ("class_names", letters("nooh"))];
    let (got, _) = read(members(&names)).unwrap();
    assert_eq!(got.ids, laconic_graph::dataset::Ids::Strings(["a", "bb", "c", "é"].map(str::to_owned).to_vec()));
    assert_eq!(got.about.classes, ["no", "oh"]);
    for (name, bytes, words) in [
        ("class_names", letters("nono"), ""),
        ("class_names", letters("nooh!!"), "about.classes"),
        ("class_names", fixtures::int64(&[2], &[1, 2]), "expected texts"),
        ("x", letters("a\0bbc\0é\0"), "expected numbers"),
        ("about", fixtures::uint8(&[2], b"{]"), "array 'about'"),
    ] {
        let mut members = members(&[]);
        members.retain(|member| member.0 != name);
        members.push((name, bytes));
        match read(members) {
            Ok(_) => assert_eq!(words, "", "{name}"),
            Err(error) => assert!(!words.is_empty() && error.contains(words), "expected '{words}' in: {error}"),
        }
    }
}
