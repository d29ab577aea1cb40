//! Which columns of an edge table are its ends: known, named, or asked about.

use laconic_graph::dataset::{Dataset, Ids};
use laconic_graph::read::{ReadOptions, read_with_roles};

/// What is read of a file of this name and text, and what is warned of.
fn try_read(name: &str, text: &str, flags: &[(&str, &str)]) -> Result<(Dataset, Vec<String>), String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    let mut options = ReadOptions::default();
    for &(flag, value) in flags {
        let value = value.to_owned();
        match flag {
            "source" => options.columns.source = Some(value),
            "target" => options.columns.target = Some(value),
            "weight" => options.columns.weight = Some(value),
            _ => options.columns.ignore.push(value),
        }
    }
    let read = read_with_roles(&path, &options).map_err(|error| error.to_string());
    read.map(|(dataset, roles)| (dataset, roles.warnings().collect()))
}

/// The edges by the names of their nodes, in order.
fn edges(dataset: &Dataset) -> Vec<(String, String)> {
    let name = |node: usize| match &dataset.ids {
        Ids::Row => node.to_string(),
        Ids::Integers(ids) => ids[node].to_string(),
        Ids::Strings(ids) => ids[node].clone(),
    };
    let graph = &dataset.graph;
    let into = |node: usize| graph.in_neighbours(node).iter().map(move |&source| (name(source as usize), name(node)));
    let mut edges: Vec<(String, String)> = (0..graph.nodes()).flat_map(into).collect();
    edges.sort();
    edges
}

fn pairs(text: &str) -> Vec<(String, String)> {
    text.split(' ').map(|edge| edge.split_once('-').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()).collect()
}

#[test]
fn ends_are_read_by_names_that_tools_write_and_that_is_said() {
    let tables = [
        ("call_id,caller,callee,duration\n1,ann,bob,3\n2,bob,cem,5\n", "ann-bob bob-cem"),
        (
            "step,type,amount,nameOrig,oldbalanceOrg,newbalanceOrig,nameDest,oldbalanceDest,newbalanceDest\n\
             1,PAYMENT,5.5,C1,7,3,M1,0,2\n1,TRANSFER,5.5,C2,8,3,C1,0,2\n",
            "C1-M1 C2-C1",
        ),
        (":START_ID,role,:END_ID,:TYPE\nkeanu,Neo,m1,ACTED_IN\ncarrie,Trinity,m1,ACTED_IN\n", "carrie-m1 keanu-m1"),
        (":END_ID(F),:START_ID(P)\nm1,keanu\nm1,carrie\n", "carrie-m1 keanu-m1"),
        ("a.id,r.amount,b.id\na0,0.25,a1\na1,1.25,a2\n", "a0-a1 a1-a2"),
        ("when,Account,Bank,Account,Amount\n3,A,7,B,2.5\n4,B,7,C,0.5\n", "A-B B-C"),
        ("_key,_from,_to\nk1,p/1,p/2\nk2,p/2,p/3\n", "p/1-p/2 p/2-p/3"),
        ("id,src_id,x,dst_id\n7,1,0.5,2\n8,2,0.5,3\n", "1-2 2-3"),
    ];
    for (text, expected) in tables {
        let (dataset, warnings) = try_read("list.csv", text, &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(edges(&dataset), pairs(expected), "{text}");
        let is_said = warnings.iter().any(|what| what.contains("--source and --target"));
        assert_eq!(is_said, !text.contains("src_id"), "{text}: {warnings:?}");
    }
}

#[test]
fn ends_that_no_rule_knows_are_an_error_with_the_columns_and_the_flags() {
    let tables = [
        "day,who,what,whom\n1,1,7,3\n2,3,7,1\n",
        "call,who,whom\n1,ann,bob\n2,bob,cem\n",
        "x,y,weight\n0.5,1.5,2\n1.5,0.25,3\n",
        "amount,payer_name\n0.5,ann\n1.5,bob\n",
        "source,amount,friend\n1,5,2\n2,6,1\n",
        "from_bank,to_bank,from_branch,to_branch\n1,2,3,4\n2,3,5,6\n",
    ];
    for text in tables {
        let error = try_read("list.csv", text, &[]).unwrap_err();
        let names: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let has_flags = error.contains("--source") || error.contains("--target");
        assert!(has_flags && names.iter().all(|name| error.contains(name)), "{text}: {error}");
    }
    // Named they are read, and so are two columns that are all there is.
    let named = [("source", "who"), ("target", "whom")];
    assert_eq!(edges(&try_read("list.csv", tables[1], &named).unwrap().0), pairs("ann-bob bob-cem"));
    assert_eq!(edges(&try_read("list.csv", "x,who\n1,2\n2,3\n", &[]).unwrap().0), pairs("1-2 2-3"));
    let left = [("ignore", "call")];
    assert_eq!(edges(&try_read("list.csv", tables[1], &left).unwrap().0), pairs("ann-bob bob-cem"));
}

#[test]
fn the_second_of_two_columns_of_one_name_can_be_named() {
    let text = "when,Bank,Account,Bank,Account\n3,7,A,8,B\n4,8,B,7,C\n";
    for target in ["Account", "Account.1", "Account.2", "column 5"] {
        let read = try_read("list.csv", text, &[("source", "Account"), ("target", target)]).unwrap();
        assert_eq!(edges(&read.0), pairs("A-B B-C"), "{target}");
    }
    let three = "Account,Account,Account\nA,B,C\n";
    let error = try_read("list.csv", three, &[("source", "Account"), ("target", "Account.2")]).unwrap_err();
    assert!(error.contains("column 3"), "of three, the second and pandas' third are not the same: {error}");
}

#[test]
fn a_third_column_of_times_or_tails_is_no_weight_unless_that_is_said() {
    let list = |third: &dyn Fn(u64) -> u64| -> String {
        (0..24).map(|i| format!("{} {} {}\n", 1 + i % 6, 1 + (i * 5 + 1) % 6, third(i))).collect()
    };
    for (scale, unit) in [(1, "seconds"), (1000, "milliseconds"), (1_000_000, "microseconds"), (1_000_000_000, "nanos")]
    {
        let text = list(&|i| (1_082_040_961 + i * 100) * scale);
        let (dataset, warnings) = try_read("list.txt", &text, &[]).unwrap();
        let words = ["column 3", unit, "times", "--weight \"column 3\""];
        assert!(warnings.iter().any(|what| words.iter().all(|word| what.contains(word))), "{warnings:?}");
        assert_eq!((dataset.graph.nodes(), dataset.graph.data.weights), (6, None));
        assert_eq!(try_read("list.txt", &text, &[("ignore", "column 3")]).unwrap().0.graph.data.weights, None);
        assert!(try_read("list.txt", &text, &[("weight", "column 3")]).unwrap().0.graph.data.weights.is_some());
    }
    assert!(try_read("list.txt", &list(&|i| i % 5 + 1), &[]).unwrap().0.graph.data.weights.is_some());
    for triples in ["0\t5\t1\n1\t6\t2\n2\t5\t0\n", "a\tknows\tb\nb\tlikes\tc\nc\tknows\ta\n"] {
        let error = try_read("list.tsv", triples, &[]).unwrap_err();
        assert!(error.contains("triples") && error.contains("--relation \"column 2\""), "{error}");
    }
}
