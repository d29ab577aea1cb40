//! What tools write in other words than one expects: ids, names of rows, and tables of two kinds of rows.

use laconic_graph::build::Duplicates;
use laconic_graph::dataset::{Dataset, Features, Ids, Labels};
use laconic_graph::read::{ReadOptions, Unknown, read_with_roles};
use std::path::PathBuf;

/// What is read of the first of these files, and all that is said of roles.
fn try_read(
    files: &[(&str, &str)],
    change: impl FnOnce(&mut ReadOptions, PathBuf),
) -> Result<(Dataset, String), String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut options = ReadOptions::default();
    change(&mut options, folder.path().to_owned());
    let first = files[0].0.split_once('/').map_or(files[0].0, |(folder, _)| folder);
    let read = read_with_roles(&folder.path().join(first), &options).map_err(|error| error.to_string());
    read.map(|(dataset, roles)| (dataset, format!("{roles}{}", roles.warnings().collect::<Vec<_>>().join("\n"))))
}

fn plain(files: &[(&str, &str)]) -> Result<(Dataset, String), String> {
    try_read(files, |_, _| {})
}

/// Sources and targets by name, in the order of these.
fn named(dataset: &Dataset) -> Vec<(String, String)> {
    let name = |node: usize| match &dataset.ids {
        Ids::Row => node.to_string(),
        Ids::Integers(ids) => ids[node].to_string(),
        Ids::Strings(ids) => ids[node].clone(),
    };
    let graph = &dataset.graph;
    let into = |to: usize| graph.in_edges(to).map(move |edge| (name(graph.sources[edge] as usize), name(to)));
    let mut edges: Vec<_> = (0..graph.nodes()).flat_map(into).collect();
    edges.sort();
    edges
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

fn dense(dataset: &Dataset) -> Vec<f32> {
    let Features::Dense { values, .. } = &dataset.features else { panic!("{:?}", dataset.features) };
    values.to_vec()
}

#[test]
fn telephone_numbers_and_long_ids_are_ends_though_they_could_be_numbers() {
    let calls = "call_id,caller,callee,start,duration\n7,+4915,+4916,2026-11-01,3\n8,+4916,+4917,2026-11-01,4\n";
    let (dataset, _) = plain(&[("calls.csv", calls)]).unwrap();
    assert_eq!(named(&dataset), pairs(&[("+4915", "+4916"), ("+4916", "+4917")]));
    let zeros = "payer,payee,amount\n001,002,1.5\n002,010,2.5\n";
    let (dataset, _) = plain(&[("zeros.csv", zeros)]).unwrap();
    assert_eq!(named(&dataset), pairs(&[("001", "002"), ("002", "010")]));
    let far = "89490172000000000001 89490172000000000002\n89490172000000000002 7\n";
    let (dataset, _) = plain(&[("far.txt", far)]).unwrap();
    assert_eq!(dataset.graph.nodes(), 3);
    // What has a fraction is no id.
    let amounts = "payer,payee,to_pay\n1.5,2.5,1\n";
    assert!(plain(&[("amounts.csv", amounts)]).unwrap_err().contains("--source"));
}

#[test]
fn names_of_rows_that_r_writes_without_a_name_are_names_of_rows() {
    let edges = "\"from\" \"to\" \"weight\"\n\"1\" \"ann\" \"bob\" 2.5\n\"2\" \"bob\" \"cem\" 0.5\n";
    let nodes = "\"x\"\t\"class\"\n\"ann\"\t1.5\t\"a\"\n\"bob\"\t2.5\t\"b\"\n\"cem\"\t4\t\"a\"\n";
    let (dataset, _) = plain(&[("edges.txt", edges), ("nodes.tsv", nodes)]).unwrap();
    assert_eq!(named(&dataset), pairs(&[("ann", "bob"), ("bob", "cem")]));
    assert_eq!(dataset.graph.data.weights, Some(vec![2.5, 0.5]));
    assert_eq!(dense(&dataset), [1.5, 2.5, 4.0]);
    // A row that ends in nothing has no name of its own, and neither has one that is alone in it.
    assert!(plain(&[("edges.csv", "source,target\na,b,\nb,c,\n")]).unwrap_err().contains("expected 2 fields"));
    assert!(plain(&[("edges.csv", "source,target\na,b\n1,b,c\n")]).unwrap_err().contains("expected 2 fields"));
    // write.csv gives the column an empty name and counts from 1.
    let nodes = "\"\",\"id\",\"x\"\n\"1\",\"ann\",1.5\n\"2\",\"bob\",2.5\n\"3\",\"cem\",4\n";
    let (dataset, said) = plain(&[("edges.txt", edges), ("nodes.csv", nodes)]).unwrap();
    assert_eq!(dense(&dataset), [1.5, 2.5, 4.0]);
    assert!(said.contains("it counts the rows"), "{said}");
}

#[test]
fn ids_in_another_spelling_are_counted_and_shown() {
    let error = |edges: &str, nodes: &str| plain(&[("edges.csv", edges), ("nodes.csv", nodes)]).unwrap_err();
    for (edges, nodes, words) in [
        ("source,target\n+491,+492\n+492,x\n", "id\n491\n492\n", ["2 of 3 such ids", "'+491' as '491'", "a '+'"]),
        ("source,target\n491,492\n", "id\n+491\n+492\n", ["2 of 2 such ids", "'491' as '+491'", "a '+'"]),
        ("source,target\na,7.0\n", "id\na\n7\n", ["1 of 1 such ids", "'7.0' as '7'", "a '.0'"]),
        ("source,target\na,7\n", "id\na\n007\n", ["1 of 1 such ids", "'7' as '007'", "zeros"]),
        ("source,target\nAnn,bob\n", "id\nann\nbob\n", ["1 of 1 such ids", "'Ann' as 'ann'", "capital letters"]),
    ] {
        let error = error(edges, nodes);
        assert!(words.iter().all(|word| error.contains(word)) && error.contains("--unknown drop"), "{error}");
    }
    let other = error("source,target\na,x\n", "id\na\nb\n");
    assert!(!other.contains("another spelling"), "{other}");
}

#[test]
fn repeated_ids_and_unknown_nodes_are_said_at_once_and_the_first_row_can_be_kept() {
    let edges = "source,target\na,b\nb,c\nb,x\n";
    let nodes = "id,x\na,1\nb,2\na,3\nc,4\nb,5\nb,6\n";
    let files = [("edges.csv", edges), ("nodes.csv", nodes)];
    let error = plain(&files).unwrap_err();
    for words in ["have the same id 'a': 3 of 6 rows repeat one", "--duplicates first", "edge 2 names 'x'"] {
        assert!(error.contains(words), "{error}");
    }
    let first = |options: &mut ReadOptions, _| {
        options.duplicates = Duplicates::First;
        options.unknown = Unknown::Drop;
    };
    let (dataset, said) = try_read(&files, first).unwrap();
    assert_eq!((named(&dataset), dense(&dataset)), (pairs(&[("a", "b"), ("b", "c")]), vec![1.0, 2.0, 4.0]));
    assert!(said.contains("3 of 6 rows have the id of an earlier one"), "{said}");
}

#[test]
fn all_columns_that_cannot_be_read_are_named_at_once() {
    let nodes = "id,age,height\na,1,\nb,,2\n";
    let error = plain(&[("edges.csv", "source,target\na,b\n"), ("nodes.csv", nodes)]).unwrap_err();
    assert!(error.contains("'age'") && error.contains("'height'") && error.contains("--missing"), "{error}");
    // And so are rows of edges, as far as ids are there.
    let edges = "source,target\na,b\nb,x\n";
    let error = plain(&[("edges.csv", edges), ("nodes.csv", &format!("{nodes}a,2,3\n"))]).unwrap_err();
    for words in ["'age'", "'height'", "names 'x'", "--duplicates first"] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_table_of_nodes_and_relationships_is_both() {
    let text = "_id,_labels,age,role,_start,_end,_type\n7,:Man,30,,,,\n9,:Man,40,,,,\n8,:Woman,50,,,,\n\
                ,,,Neo,7,8,ACTS\n,,,Trinity,9,7,ACTS\n";
    let (dataset, said) = plain(&[("all.csv", text)]).unwrap();
    assert_eq!(named(&dataset), pairs(&[("7", "8"), ("9", "7")]));
    assert_eq!((dataset.ids.clone(), dense(&dataset)), (Ids::Integers(vec![7, 9, 8]), vec![30.0, 40.0, 50.0]));
    assert!(said.contains("_labels"), "{said}");
    let label = |options: &mut ReadOptions, _| options.columns.label = Some("_labels".to_owned());
    let (dataset, _) = try_read(&[("all.csv", text)], label).unwrap();
    assert_eq!(dataset.labels, Labels::Single { classes: 2, values: vec![0, 0, 1] });
}

#[test]
fn a_header_of_neo4js_import_names_ids_and_labels() {
    let edges = ":START_ID(P),:END_ID(P),:TYPE\na,b,X\nb,c,X\n";
    let nodes = "personId:ID(P),emb:float[],:LABEL\na,0.5;1.0,A\nb,1.5;2.0,B\nc,2.5;3.0,A\n";
    let (dataset, _) = plain(&[("edges.csv", edges), ("nodes.csv", nodes)]).unwrap();
    assert_eq!(named(&dataset), pairs(&[("a", "b"), ("b", "c")]));
    assert_eq!(dense(&dataset), [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    assert_eq!(dataset.labels, Labels::Single { classes: 2, values: vec![0, 1, 0] });
}

#[test]
fn a_folder_with_a_table_a_type_takes_names_of_columns() {
    let files = [
        ("shop/nodes/user.csv", "key,age\na,1\nb,2\n"),
        ("shop/nodes/item.csv", "nid,price\nx,3\ny,4\n"),
        ("shop/edges/user__buys__item.csv", "who,what,when\na,y,1\nb,x,2\n"),
    ];
    let change = |options: &mut ReadOptions, _| {
        options.typed = true;
        options.columns.id = Some("key".to_owned());
        options.columns.source = Some("who".to_owned());
        options.columns.target = Some("what".to_owned());
    };
    let (dataset, _) = try_read(&files, change).unwrap();
    assert_eq!(named(&dataset), pairs(&[("user/a", "item/y"), ("user/b", "item/x")]));
    let nowhere = |options: &mut ReadOptions, _| options.columns.id = Some("name".to_owned());
    let error = try_read(&files, nowhere).unwrap_err();
    assert!(error.contains("--id") && error.contains("name"), "{error}");
}

#[test]
fn lists_of_neighbours_are_refused_with_what_writes_edges() {
    for (name, text, words) in [
        ("adjacent.txt", "# made by NetworkX\n0 1 3\n1 2\n2\n3\n", ["read_adjlist", "write_edgelist"]),
        ("lgl.txt", "# a\nb 0.5\n# b\nc 1.5\n", ["Read_Lgl", "write_ncol"]),
        ("snap.txt", "p 3 2 u u 0\n1 0\n2 1\n", ["NetworKit", "EdgeListTabZero"]),
    ] {
        let error = plain(&[(name, text)]).unwrap_err();
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let error = plain(&[("table/part-0.orc", "ORC")]).unwrap_err();
    assert!(error.contains("part-0.orc") && error.contains("pyarrow.orc"), "{error}");
}

#[test]
fn a_metis_graph_may_list_a_node_as_its_own_neighbour_once() {
    let (dataset, said) = plain(&[("loop.graph", "3 3\n2\n1 2 3\n2\n")]).unwrap();
    assert_eq!(named(&dataset), pairs(&[("0", "1"), ("1", "0"), ("1", "2"), ("2", "1")]));
    assert!(said.contains("1 of 5 rows are edges from a node to itself"), "{said}");
    assert!(plain(&[("less.graph", "3 3\n2\n1 3\n2\n")]).unwrap_err().contains("3 edges promised"));
}

#[test]
fn files_of_an_ogb_folder_that_are_not_read_are_named() {
    let files = [
        ("set/raw/edge.csv", "0,1\n1,2\n"),
        ("set/raw/num-node-list.csv", "3\n"),
        ("set/raw/node-feat.csv", "1\n2\n3\n"),
        ("set/raw/edge_reltype.csv", "0\n1\n"),
        ("set/raw/species.csv", "7\n7\n9\n"),
    ];
    let (_, said) = plain(&files).unwrap();
    assert!(said.contains("'edge_reltype' is ignored") && said.contains("'species' is ignored"), "{said}");
    assert!(!said.contains("'edge' is ignored") && !said.contains("'node-feat' is ignored"), "{said}");
}
