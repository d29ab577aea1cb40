//! Rows of edge tables that are no edges of their own, relations, and nodes of two kinds.

use laconic_graph::build::Duplicates;
use laconic_graph::dataset::{Dataset, Features, Ids, Labels};
use laconic_graph::read::{ReadOptions, Unknown, read_with_roles};

/// What is read of these tables, and all that is said of roles.
fn try_read(
    (name, edges): (&str, &str),
    nodes: Option<&str>,
    change: impl FnOnce(&mut ReadOptions),
) -> Result<(Dataset, String), String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(name), edges).unwrap();
    if let Some(nodes) = nodes {
        std::fs::write(folder.path().join("nodes.csv"), nodes).unwrap();
    }
    let mut options = ReadOptions::default();
    change(&mut options);
    let read = read_with_roles(&folder.path().join(name), &options).map_err(|error| error.to_string());
    read.map(|(dataset, roles)| (dataset, format!("{roles}{}", roles.warnings().collect::<Vec<_>>().join("\n"))))
}

fn texts(dataset: &Dataset) -> Vec<String> {
    match &dataset.ids {
        Ids::Row => (0..dataset.graph.nodes()).map(|node| node.to_string()).collect(),
        Ids::Integers(ids) => ids.iter().map(i64::to_string).collect(),
        Ids::Strings(ids) => ids.clone(),
    }
}

#[test]
fn rows_that_are_no_edges_of_their_own_are_counted() {
    let text = "source,target\n1,1\n1,2\n1,2\n2,1\n2,2\n2,3\n";
    let (dataset, said) = try_read(("x.csv", text), None, |_| {}).unwrap();
    assert_eq!(dataset.graph.edges(), 3);
    for words in ["2 of 6 rows are edges from a node to itself", "--self-loops keep", "1 of 6 rows are duplicates"] {
        assert!(said.contains(words), "{said}");
    }
    let (_, said) = try_read(("x.csv", text), None, |options| options.symmetrise = true).unwrap();
    assert!(said.contains("1 pairs of nodes are listed in both directions"), "{said}");
    let count = |options: &mut ReadOptions| options.columns.weight = Some("count".to_owned());
    let (dataset, _) = try_read(("x.csv", text), None, count).unwrap();
    assert_eq!(dataset.graph.data.weights, Some(vec![1.0, 2.0, 1.0]));
    let refuse = |options: &mut ReadOptions| options.duplicates = Duplicates::Error;
    let error = try_read(("x.csv", text), None, refuse).unwrap_err();
    assert!(error.contains("rows 1 and 2 are the same edge: 1 rows repeat"), "{error}");
}

#[test]
fn rows_that_name_unknown_nodes_are_counted_dropped_or_their_nodes_added() {
    let edges = ("edges.csv", "source,target,weight\na,b,1\na,x,2\nx,b,3\ny,,4\nb,a,5\n");
    let whole = ("edges.csv", "source,target,weight\na,b,1\na,x,2\nx,b,3\nb,a,5\n");
    let nodes = Some("id,age,label\na,20,0\nb,30,1\n");
    let error = try_read(whole, nodes, |_| {}).unwrap_err();
    for words in ["edge 1 names 'x'", "2 of 4 rows with 1 such ids", "--unknown drop", "--unknown add"] {
        assert!(error.contains(words), "{error}");
    }
    let (dataset, said) = try_read(edges, nodes, |options| options.unknown = Unknown::Drop).unwrap();
    assert_eq!((dataset.graph.nodes(), dataset.graph.data.weights), (2, Some(vec![5.0, 1.0])));
    assert!(said.contains("1 of 5 rows have no node") && said.contains("2 of 5 rows name nodes"), "{said}");
    let (dataset, said) = try_read(whole, nodes, |options| options.unknown = Unknown::Add).unwrap();
    assert_eq!(texts(&dataset), ["a", "b", "x"]);
    assert_eq!(dataset.graph.edges(), 4);
    assert_eq!(dataset.features, Features::Dense { columns: 1, values: vec![20.0, 30.0, 0.0].into() });
    assert_eq!(dataset.labels, Labels::Single { classes: 2, values: vec![0, 1, -1] });
    assert!(said.contains("1 nodes that are not in the node table, added"), "{said}");
}

#[test]
fn all_that_is_wrong_with_both_tables_is_said_at_once() {
    let edges = ("edges.csv", "source,target,weight\na,,1\n,b,\nb,a,2\n");
    let error = try_read(edges, Some("id,age\na,1\nb,\n"), |_| {}).unwrap_err();
    let lines: Vec<&str> = error.lines().collect();
    assert!(lines.iter().any(|line| line.contains("nodes.csv") && line.contains("'age'")), "{error}");
    let error = try_read(edges, Some("id,age\na,1\na,2\n"), |_| {}).unwrap_err();
    let lines: Vec<&str> = error.lines().collect();
    let has = |words: &[&str]| lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
    assert!(has(&["expected a node id", "2 cells of 3 rows hold none"]), "{error}");
    assert!(has(&["expected a weight", "1 cells of 3 rows hold none"]), "{error}");
}

/// Edges, nodes, what is asked for, and the words of each line of the error.
type Wrong = (&'static str, Option<&'static str>, fn(&mut ReadOptions), &'static [&'static [&'static str]]);

const WRONG: [Wrong; 9] = [
    (
        "source,target,weight\na,b,1\nb,a,\nc,a,2\n",
        Some("id,age\na,1\nb,2\na,3\n"),
        |_| {},
        &[
            &["edges.csv", "line 3", "'weight'", "1 cells of 3 rows hold none"],
            &["nodes.csv", "rows 0 and 2 have the same id 'a': 1 of 3 rows"],
            &["edges.csv", "edge 2 names 'c'", "1 of 3 rows"],
        ],
    ),
    (
        "source,target\n,b\na,b\nx,\na,y\n",
        Some("id,age\na,1\nb,2\nb,3\n"),
        |_| {},
        &[
            &["edges.csv", "line 2", "'source'", "2 cells of 4 rows hold none"],
            &["nodes.csv", "rows 1 and 2 have the same id 'b'"],
            &["edges.csv", "edge 3 names 'y'", "1 of 2 rows"],
        ],
    ),
    (
        "source,target\na,b\n",
        Some("id,age\na,1\n,2\nb,3\nb,4\n"),
        |_| {},
        &[
            &["nodes.csv", "line 3", "'id'", "1 cells of 4 rows hold none"],
            &["nodes.csv", "rows 2 and 3 have the same id 'b': 1 of 3 rows"],
        ],
    ),
    (
        "source,target\na,b\n",
        Some("id,age,label,split\na,,0.5,often\nb,2,1,train\na,3,1.5,seldom\n"),
        |_| {},
        &[
            &["'label'", "the label of node 0 is 0.5 (and 1 others)"],
            &["'age'", "1 of 3 cells have no value"],
            &["line 2", "'split'", "found 'often'; 2 such cells in 3 rows"],
            &["rows 0 and 2 have the same id 'a': 1 of 3 rows"],
        ],
    ),
    (
        "when,what\n0.5,red\n1.5,blue\n",
        Some("id,age\na,1\nb,2\na,3\n"),
        |_| {},
        &[&["no rule knows"], &["rows 0 and 2 have the same id 'a'"]],
    ),
    (
        "source,target,weight,kind\na,b,,x\nb,a,1,\na,a,1,x\n",
        None,
        |options| options.columns.relation = Some("kind".to_owned()),
        &[&["line 2", "'weight'", "1 cells of 3"], &["line 3", "'kind'", "1 cells of 3", "--relation kind"]],
    ),
    (
        "source,target\na,\na,x\nb,a\na,b\na,b\n",
        Some("id,age\na,1\nb,2\n"),
        |options| (options.unknown, options.duplicates) = (Unknown::Drop, Duplicates::Error),
        &[&["rows 3 and 4 are the same edge: 1 rows"]],
    ),
    (
        "source,target,weight\na,b,1\nb,a,\na,b,2\n",
        Some("id,age\na,1\nb,2\na,3\n"),
        |options| options.duplicates = Duplicates::First,
        &[&["line 3", "'weight'"]],
    ),
    (
        "source,target\na,b\n",
        Some("id,age\na,\nb,2\na,3\n"),
        |options| (options.duplicates, options.columns.features) = (Duplicates::First, vec!["hue".to_owned()]),
        &[&["expected", "'hue'"]],
    ),
];

/// Each line of the error, held to what a person counts in the tables.
#[test]
fn no_error_of_a_table_hides_one_of_another_kind() {
    for (edges, nodes, change, expected) in WRONG {
        let error = try_read(("edges.csv", edges), nodes, change).unwrap_err();
        let lines: Vec<&str> = error.lines().collect();
        for words in expected {
            let is_said = lines.iter().any(|line| words.iter().all(|word| line.contains(word)));
            assert!(is_said, "{words:?} in no line of:\n{error}");
        }
        assert_eq!(lines.len(), expected.len(), "{error}");
    }
}

#[test]
fn triples_are_edges_of_a_relation_each() {
    let text = "head\trelation\ttail\nann\tlikes\tbob\nbob\tknows\tcem\nann\tknows\tbob\n";
    let (plain, said) = try_read(("kg.tsv", text), None, |_| {}).unwrap();
    assert_eq!((texts(&plain), plain.graph.edges()), (["ann", "bob", "cem"].map(str::to_owned).to_vec(), 2));
    assert!(said.contains("--relation relation"), "{said}");
    let typed: [fn(&mut ReadOptions); 2] =
        [|options| options.typed = true, |options| options.columns.relation = Some("relation".to_owned())];
    for change in typed {
        let (dataset, _) = try_read(("kg.tsv", text), None, change).unwrap();
        let relations = dataset.graph.data.relations.as_ref().unwrap();
        assert_eq!((dataset.about.relations.join(" ").as_str(), &relations.of[..]), ("knows likes", &[0, 1, 0][..]));
    }
    let (dataset, _) = try_read(("kg.tsv", text), None, |options| {
        (options.typed, options.symmetrise) = (true, true);
    })
    .unwrap();
    assert_eq!(dataset.about.relations, ["knows", "likes", "rev_knows", "rev_likes"]);
    let numbers = "0 5 1\n1 6 2\n2 5 0\n";
    let (dataset, _) = try_read(("kg.txt", numbers), None, |options| {
        let columns = &mut options.columns;
        columns.source = Some("column 1".to_owned());
        columns.relation = Some("column 2".to_owned());
        columns.target = Some("column 3".to_owned());
    })
    .unwrap();
    assert_eq!((dataset.about.relations.join(" "), dataset.graph.nodes()), ("5 6".to_owned(), 3));
    assert_eq!(dataset.graph.data.weights, None);
}

#[test]
fn nodes_of_two_kinds_with_the_same_ids_are_kept_apart() {
    let text = "userId,movieId,rating,timestamp\n1,1,5.0,964982703\n1,3,4.0,964981247\n2,1,4.0,964982224\n";
    let (dataset, said) = try_read(("ratings.csv", text), None, |_| {}).unwrap();
    assert_eq!(texts(&dataset), ["userId/1", "userId/2", "movieId/1", "movieId/3"]);
    assert_eq!((dataset.graph.in_neighbours(2), dataset.graph.in_neighbours(3)), (&[0, 1][..], &[0][..]));
    let names: Vec<&str> = dataset.about.node_types.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!((names, dataset.about.relations[0].as_str()), (vec!["userId", "movieId"], "userId__ratings__movieId"));
    assert!(said.contains("two kinds") && said.contains("--bipartite"), "{said}");
    let rows = |films: u64| -> String { (0..60).map(|i| format!("{} {}\n", 1 + i % 12, 1 + i * 7 % films)).collect() };
    for (films, is_said) in [(30, true), (12, false)] {
        let said = try_read(("r.txt", &rows(films)), None, |_| {}).unwrap().1;
        assert_eq!(said.contains("--bipartite"), is_said, "{said}");
    }
    let named = |bipartite: bool| {
        try_read(("x.csv", "who,what,times\n1,1,3\n1,3,4\n2,1,5\n"), None, |options| {
            let columns = &mut options.columns;
            columns.source = Some("who".to_owned());
            columns.target = Some("what".to_owned());
            columns.weight = Some("times".to_owned());
            options.bipartite = bipartite;
        })
        .unwrap()
    };
    let (dataset, said) = named(false);
    assert!(dataset.graph.nodes() == 3 && said.contains("1 ids are in both columns"), "{said}");
    let (dataset, _) = named(true);
    assert_eq!((dataset.graph.nodes(), dataset.graph.data.weights), (4, Some(vec![3.0, 5.0, 4.0])));
}

#[test]
fn an_adjacency_matrix_is_no_list_of_edges() {
    for text in [
        ",A,B,C\nA,0,1,0\nB,1,0,2\nC,0,2,0\n",
        "0,1,0,1\n1,0,1,0\n0,1,0,1\n1,0,1,0\n",
        ",0,1,2\n0,0,1,0\n1,1,0,2\n2,0,2,0\n",
        "A,B,C\n0,1,0\n1,0,2\n0,2,0\n",
    ] {
        let error = try_read(("m.csv", text), None, |_| {}).unwrap_err();
        assert!(error.contains("adjacency matrix") && error.contains("pandas.read_csv"), "{text}: {error}");
    }
    assert!(try_read(("m.csv", "0,1,5\n1,2,3\n2,0,4\n"), None, |_| {}).is_ok());
}

#[test]
fn bars_colons_and_dicts_are_read() {
    let knows = "Person1Id|Person2Id|since\n1|2|2010-03-13T07:37:21\n2|3|2011-03-13T07:37:21\n";
    assert_eq!(try_read(("knows.csv", knows), None, |_| {}).unwrap().0.graph.edges(), 2);
    let colons = "1::193::5\n1::661::3\n2::193::4\n";
    let (dataset, _) = try_read(("ratings.txt", colons), None, |_| {}).unwrap();
    assert_eq!((dataset.graph.edges(), dataset.graph.data.weights), (3, Some(vec![5.0, 4.0, 3.0])));
    let dicts = "ann bob {'weight': 4, 'kind': 'call, long'}\nbob cem {}\nann cem {'weight': 2.5}\n";
    let error = try_read(("g.edgelist", dicts), None, |_| {}).unwrap_err();
    assert!(error.contains("column 'weight'") && error.contains("1 cells of 3"), "{error}");
    let (dataset, said) = try_read(("g.edgelist", &dicts.replace("{}", "{'weight': 1}")), None, |_| {}).unwrap();
    assert_eq!(dataset.graph.data.weights, Some(vec![4.0, 2.5, 1.0]));
    assert!(said.contains("column 'kind' is ignored"), "{said}");
    let (dataset, _) = try_read(("g.edgelist", "0 1 {}\n1 2 {}\n"), None, |_| {}).unwrap();
    assert_eq!((dataset.graph.edges(), dataset.graph.data.weights), (2, None));
    let market = "%%MatrixMarket matrix coordinate real general\n%\n5 9 2\n1 2 0.5\n5 1 2\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("edges.txt"), market).unwrap();
    let error = read_with_roles(folder.path(), &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("Matrix Market"), "{error}");
}

#[test]
fn names_are_no_classes_and_words_for_missing_values_are_counted() {
    let edges = ("edges.csv", "source,target\n0,1\n1,2\n");
    let table = |header: &str, row: &dyn Fn(usize) -> String| -> String {
        std::iter::once(format!("{header}\n")).chain((0..12).map(|node| format!("{node},{}\n", row(node)))).collect()
    };
    let people = table("Id,Label,group", &|node| format!("Person {node},{}", node % 3));
    let (dataset, said) = try_read(edges, Some(&people), |_| {}).unwrap();
    assert_eq!(dataset.labels, Labels::None);
    assert!(said.contains("12 different values in 12 rows") && said.contains("--label Label"), "{said}");
    let label = |options: &mut ReadOptions| options.columns.label = Some("Label".to_owned());
    assert_eq!(try_read(edges, Some(&people), label).unwrap().0.labels.classes(), 12);
    let masks = table("id,country,label", &|node| {
        format!("{},{}", ["NA", "DE", "FR"][node % 3], ["None", "I", "II"][node % 3])
    });
    let (_, said) = try_read(edges, Some(&masks), |_| {}).unwrap();
    assert!(said.contains("4 of 12 rows have no label: 'None'"), "{said}");
    assert!(said.contains("'country': 4 of 12 values are missing: 'NA'"), "{said}");
}
