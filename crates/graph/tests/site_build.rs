//! A site's part is what its tables say in the words of the schema, and every mistake is named by its place.

use std::path::{Path, PathBuf};

use laconic_graph::dataset::{Features, Ids, Labels};
use laconic_graph::error::Result;
use laconic_graph::limits::Limits;
use laconic_graph::part::{open_meta, write_part};
use laconic_graph::site::{Built, Schema, build, id_on_the_wire};

const SCHEMA: &str = "\
version = 1
sites = ['north', 'south']
[nodes]
id = 'who'
label = { column = 'class', classes = ['x', 'y'] }
split = { train = 0.5, val = 0.25 }
features = [
  { column = 'age', number = { mean = 10.0, sd = 2.0 } },
  { column = 'ward', one_hot = ['a', 'b'] },
  { column = 'flag', flag = true },
]
[edges]
source = 'from'
target = 'to'
";

const NODES: &str = "who,age,ward,flag,class\n7,14,a,1,x\nnorth/8,10,,false,\n9,6.5,b,0,y\n";
const EDGES: &str = "from,to\n7,8\nsouth/3,7\nsouth/4,7\n8,south/3\nsouth/4,north/9\n9,9\n7,8\n";

fn schema() -> Schema {
    Schema::parse(SCHEMA).unwrap_or_else(|error| panic!("{error:?}"))
}

fn tables(place: &Path, nodes: &str, edges: &str) -> (PathBuf, PathBuf) {
    let (nodes_path, edges_path) = (place.join("nodes.csv"), place.join("edges.csv"));
    std::fs::write(&nodes_path, nodes).unwrap();
    std::fs::write(&edges_path, edges).unwrap();
    (nodes_path, edges_path)
}

fn built(schema: &Schema, nodes: &str, edges: &str) -> Result<Built> {
    let place = tempfile::tempdir().unwrap();
    let (nodes, edges) = tables(place.path(), nodes, edges);
    build(schema, "north", &nodes, &[edges], &Limits::default())
}

/// Whatever stands between a site and its id in tables, this is what is hashed: ids on the wire are part of every run.
#[test]
fn an_id_on_the_wire_is_the_hash_that_sites_agree_on() {
    let hash = |text: &[u8]| u64::from_le_bytes(blake3::hash(text).as_bytes()[..8].try_into().unwrap());
    assert_eq!(id_on_the_wire("south", "123"), hash(b"laconic id v1\nsouth/123"));
    assert_ne!(id_on_the_wire("south", "123"), id_on_the_wire("north", "123"));
}

#[test]
fn a_part_holds_what_the_tables_say_in_the_words_of_the_schema() {
    let built = built(&schema(), NODES, EDGES).unwrap();
    let part = &built.part;
    let Ids::Strings(ids) = &part.ids else { panic!("ids are texts") };
    let row = |id: &str| ids.iter().position(|other| other == id).unwrap();
    let rows = ["north/7", "north/8", "north/9"].map(row);
    let Features::Dense { columns: 4, values } = &part.features else { panic!("four columns") };
    let features = |row: usize| values[row * 4..][..4].to_vec();
    assert_eq!(features(rows[0]), [2.0, 1.0, 0.0, 1.0]);
    assert_eq!(features(rows[1]), [0.0, 0.0, 0.0, 0.0]);
    assert_eq!(features(rows[2]), [-1.75, 0.0, 1.0, 0.0]);
    let Labels::Single { classes: 2, values } = &part.labels else { panic!("two classes") };
    assert_eq!(rows.map(|row| values[row]), [0, -1, 1]);
    assert_eq!(part.roles[rows[1]], 0, "a node without a label is in no part of the split");
    // South's 3 and 4 into 7, 7 into 8 once, south's 4 into 9; what ends at south's 3 is not used.
    let sources = |row: usize| part.edges.in_neighbours(row).to_vec();
    let mut from_south = [3, 4].map(|id| id_on_the_wire("south", &id.to_string()));
    from_south.sort_unstable();
    assert_eq!(sources(rows[0]), from_south);
    assert_eq!(sources(rows[1]), [id_on_the_wire("north", "7")]);
    assert_eq!(sources(rows[2]), [id_on_the_wire("south", "4")]);
    let from = &built.from[0];
    assert_eq!((built.from.len(), from.site.as_str(), from.edges, from.nodes), (1, "south", 3, 2));
    assert_eq!((built.elsewhere, built.removed.self_loops, built.removed.duplicates), (1, 1, 1));
    assert_eq!((part.global.nodes, part.global.data_digest.as_str(), part.global.schema.len()), (0, "", 71));
    let names = ["age", "ward=a", "ward=b", "flag"];
    assert_eq!((part.global.about.features.as_slice(), part.global.columns), (&names.map(String::from)[..], 4));
}

#[test]
fn each_edge_leads_both_ways_where_the_schema_says_so_and_counts_once_however_often_it_is_listed() {
    let text = SCHEMA.to_owned() + "weight = 'w'\nsymmetrise = true\n";
    let schema = Schema::parse(&text).unwrap();
    let edges = "from,to,w\n7,8,2\n8,7,3\n7,south/3,4\nsouth/3,7,4\n";
    let part = built(&schema, NODES, edges).unwrap().part;
    assert_eq!(part.edges.edges(), 3);
    let mut weights = part.edges.data.weights.clone().unwrap();
    weights.sort_by(f32::total_cmp);
    assert_eq!(weights, [3.0, 3.0, 4.0]);
}

#[test]
fn what_a_table_has_and_the_schema_does_not_allow_is_named_by_file_line_and_column() {
    let with = |from: &str, to: &str| NODES.replace(from, to);
    for (nodes, expected) in [
        (with("9,6.5,b,0,y", "9,6.5,b,0,z"), "nodes.csv: line 4: column 'class': 'z' is no class of the schema"),
        (with("9,6.5,b", "9,6.5,c"), "nodes.csv: line 4: column 'ward': 'c' is no value of the schema"),
        (with("7,14,a", "7,old,a"), "nodes.csv: line 2: column 'age': expected a number, found 'old'"),
        (with("7,14,a", "7,,a"), "nodes.csv: line 2: column 'age': expected a number, found nothing; number.missing"),
        (with("b,0,y", "b,2,y"), "nodes.csv: line 4: column 'flag': expected 0 or 1, or false or true, found 2"),
        (with("9,6.5", "7,6.5"), "nodes.csv: line 4: column 'who': found the id '7' again"),
        (with("north/8", "south/8"), "nodes.csv: line 3: column 'who': found 'south/8' of south"),
        (
            with("north/8", "west/8"),
            "nodes.csv: line 3: column 'who': found the id 'west/8': 'west' is none of the sites",
        ),
        (with("north/8", "north/"), "nodes.csv: line 3: column 'who': found 'north/': expected an id behind the site"),
        (with("9,6.5", ",6.5"), "nodes.csv: line 4: column 'who': expected an id, found nothing"),
        (with("who,age", "who,years"), "nodes.csv: header: expected a column 'age' among: who, years, ward"),
        ("who,age,ward,flag,class\n".to_owned(), "nodes.csv: rows: expected 1 to"),
    ] {
        let error = built(&schema(), &nodes, EDGES).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    for (edges, expected) in [
        ("from,to\n7,8\n7,10\n", "edges.csv: line 3: column 'to': '10' is no node of the node table; a node of south"),
        ("from,to\n7,8\nwest/3,7\n", "edges.csv: line 3: column 'from': found the id 'west/3'"),
        ("from,to\n7,\n", "edges.csv: line 2: column 'to': expected an id, found nothing"),
        ("from,whom\n7,8\n", "edges.csv: header: expected a column 'to' among: from, whom"),
    ] {
        let error = built(&schema(), NODES, edges).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}\n{error}");
    }
    let weighted = Schema::parse(&(SCHEMA.to_owned() + "weight = 'w'\n")).unwrap();
    for (edges, expected) in [
        ("from,to,w\n7,8,1\n7,9,heavy\n", "edges.csv: line 3: column 'w': expected a weight, found 'heavy'"),
        ("from,to,w\n7,8,1\n7,9,\n", "edges.csv: line 3: column 'w': expected a weight, a finite number"),
    ] {
        let error = built(&weighted, NODES, edges).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}\n{error}");
    }
}

#[test]
fn a_broken_schema_is_named_by_line_or_key() {
    let with = |from: &str, to: &str| SCHEMA.replace(from, to);
    for (text, expected) in [
        (with("id = 'who'", "key = 'who'"), "line 4, column 1: unknown field `key`, expected one of `id`, `label`"),
        (with("version = 1", "version = 2"), "version: expected 1, found 2"),
        (with("'south'", "'north'"), "sites: \"north\" stands there twice"),
        (with("'south'", "'so/uth'"), "sites: expected names without '/'"),
        (with("['x', 'y']", "['x']"), "nodes.label.classes: expected two names or more"),
        (with("train = 0.5", "train = 0.9"), "nodes.split: expected train above 0"),
        (with("{ train = 0.5, val = 0.25 }", "{ val = 0.25 }"), "nodes.split: expected { column"),
        (with("sd = 2.0", "sd = 0.0"), "nodes.features, entry 1 (\"age\"): number: expected finite numbers"),
        (with(", flag = true", ""), "nodes.features, entry 3 (\"flag\"): expected one of number"),
        (with("column = 'ward'", "column = 'age'"), "nodes: \"age\" is read as two things"),
        (with("sd = 2.0", "sd = "), "line 8"),
    ] {
        let (place, what) = Schema::parse(&text).expect_err(expected);
        assert!(format!("{place}: {what}").contains(expected), "{expected}\n{place}: {what}");
    }
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("schema.toml");
    std::fs::write(&path, SCHEMA.to_owned() + &"#".repeat(64 << 10)).unwrap();
    let error = Schema::read(&path).expect_err("too large").to_string();
    assert!(error.contains("schema.toml") && error.contains("limit of 65536"), "{error}");
}

#[test]
fn a_digest_of_a_schema_is_of_what_it_says_and_not_of_how_it_is_written() {
    let spaced = Schema::parse(&SCHEMA.replace("version = 1", "# agreed in spring\nversion   = 1")).unwrap();
    let another = Schema::parse(&SCHEMA.replace("mean = 10.0", "mean = 10.5")).unwrap();
    assert_eq!(schema().digest(), spaced.digest());
    assert_ne!(schema().digest(), another.digest());
}

/// The bytes of all files of a folder.
fn bytes(dir: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { bytes(&path) } else { std::fs::read(&path).unwrap() }).collect()
}

#[test]
fn no_text_id_of_another_site_is_in_a_part() {
    let nodes = "who,age,ward,flag,class\nHANSEN,14,a,1,x\nBERG,10,,0,y\n";
    let edges = "from,to\nsouth/KARLSEN,BERG\nHANSEN,south/NILSEN\n";
    let built = built(&schema(), nodes, edges).unwrap();
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("part");
    write_part(&dir, &built.part, &built.provenance).unwrap();
    let bytes = bytes(&dir);
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    assert!(holds(b"north/HANSEN") && holds(b"north/BERG"), "own ids stay at home");
    for foreign in [&b"KARLSEN"[..], b"NILSEN"] {
        assert!(!holds(foreign));
    }
    assert!(holds(&id_on_the_wire("south", "KARLSEN").to_le_bytes()), "it needs this node");
    assert!(!holds(&id_on_the_wire("south", "NILSEN").to_le_bytes()), "and not this one");
}

#[test]
fn a_folder_to_which_every_site_has_added_its_part_counts_all_of_them_and_one_of_them_counts_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (all, schema) = (place.path().join("all"), schema());
    let north = built(&schema, NODES, EDGES).unwrap();
    write_part(&all, &north.part, &north.provenance).unwrap();
    assert!(!open_meta(&all).unwrap().global.are_counted());
    let (nodes, edges) = tables(place.path(), "who,age,ward,flag,class\n3,1,a,0,x\n4,2,b,1,y\n", "from,to\n3,4\n");
    let south = build(&schema, "south", &nodes, &[edges], &Limits::default()).unwrap();
    write_part(&all, &south.part, &south.provenance).unwrap();
    let global = open_meta(&all).unwrap().global;
    assert_eq!((global.nodes, global.edges, global.train + global.val + global.test), (5, 5, 4));
    // A part by another schema does not join them.
    let other = Schema::parse(&SCHEMA.replace("mean = 10.0", "mean = 10.5")).unwrap();
    let other = built(&other, NODES, EDGES).unwrap();
    let apart = place.path().join("apart");
    write_part(&apart, &south.part, &south.provenance).unwrap();
    assert!(write_part(&apart, &other.part, &other.provenance).is_err());
}
