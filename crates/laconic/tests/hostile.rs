//! Inputs that are broken, or meant to harm: the documented exit code, one clear line, and nothing left behind.

mod program;

use std::process::Command;

use program::Place;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 4\n[train]\nepochs = 1\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 60 --features 3 --classes 2 --degree-max 20 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

fn pipe(place: &Place, name: &str) {
    assert!(Command::new("mkfifo").arg(place.path(name)).status().unwrap().success());
}

#[test]
fn a_broken_part_folder_says_what_is_broken() {
    let place = place();
    let commands = ["train run.toml --out run --set data.path=parts", "plan run.toml --set data.path=parts"];
    type Case<'a> = (&'a dyn Fn(String) -> Option<String>, &'a str);
    let cases: [Case; 5] = [
        (&|meta| Some(meta.replace("\"nodes\": 60", "\"nodes\": 61")), "meta.json: blake3 checksum: expected"),
        (
            &|meta| Some(meta.replace("\"version\": 1", "\"version\": 2")),
            "version 1, found \"laconic-parts\" version 2",
        ),
        (&|meta| Some(meta[..meta.len() / 2].to_owned()), "meta.json: JSON: EOF"),
        (&|_| Some(String::new()), "meta.json: JSON: EOF"),
        (&|_| None, "meta.json: No such file"),
    ];
    for (change, expected) in cases {
        place.json("partition graph.npz --parts 2 --out parts");
        let path = place.path("parts/meta.json");
        match change(std::fs::read_to_string(&path).unwrap()) {
            Some(text) => std::fs::write(&path, text).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        for command in commands {
            place.refused(command, 3, &["parts", expected]);
        }
        place.refused("data info parts", 3, &["a folder of parts"]);
        std::fs::remove_dir_all(place.path("parts")).unwrap();
    }
    std::fs::create_dir(place.path("empty")).unwrap();
    place.refused(
        "train run.toml --out run --set data.path=empty",
        3,
        &["expected one of", "part folder", "meta.json"],
    );
}

#[test]
fn a_node_with_two_roles_and_a_number_that_is_none_are_named_by_file_node_and_column() {
    let place = place();
    place.write("e.csv", "src,dst\na,b\nb,c\nc,a\n");
    let nodes = |rows: &str| place.write("n.csv", &("id,x,y,label,train_mask,test_mask\n".to_owned() + rows));
    let set = "--set data.path=e.csv --set data.nodes_path=n.csv";
    let commands =
        [format!("train run.toml --out run {set}"), "partition e.csv --nodes n.csv --parts 2 --out parts".to_owned()];
    nodes("a,1,1,0,1,0\nb,2,2,1,1,1\nc,3,3,0,0,1\n");
    for command in &commands {
        place.refused(command, 3, &["e.csv: data: 1 nodes have more than one role, the first is node \"b\""]);
    }
    nodes("a,1,1,0,1,0\nb,2,2,1,0,0\nc,3,nan,0,0,1\n");
    for command in &commands {
        place.refused(command, 3, &["n.csv: column 'y': 1 of 3 cells have no value", "--missing"]);
    }
    nodes("a,1,1,0,1,0\nb,2,2,1,0,0\nc,3,inf,0,0,1\n");
    for command in &commands {
        let expected = "e.csv: data: 1 feature values are not finite, the first at node \"c\", column 1";
        place.refused(command, 3, &[expected]);
    }
    let checked = place.run("data check e.csv --nodes n.csv");
    assert!(
        checked.out.contains("1 feature values are not finite, the first at node \"c\", column 1"),
        "{}",
        checked.out
    );
}

#[test]
#[cfg(target_os = "linux")]
fn pipes_devices_and_folders_are_refused_and_not_waited_for() {
    let place = place();
    for name in ["pipe.toml", "pipe.csv", "pipe.npz"] {
        pipe(&place, name);
    }
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.path("zero.csv")).unwrap();
    std::fs::create_dir(place.path("folder.npz")).unwrap();
    std::fs::create_dir(place.path("folder.toml")).unwrap();
    place.write("edges.tsv", "1\t2\n");
    for config in ["pipe.toml", "zero.toml", "folder.toml"] {
        place.refused(&format!("train {config}"), 2, &[config, "expected a file"]);
        place.refused(&format!("compare run.toml --runs {config} --out c"), 5, &[config, "expected a file"]);
    }
    for data in ["pipe.csv", "pipe.npz", "zero.csv"] {
        place.refused(&format!("data check {data}"), 3, &[data, "expected a file"]);
        place.refused(&format!("train run.toml --out run --set data.path={data}"), 3, &[data, "expected a file"]);
        place.refused(&format!("data check edges.tsv --nodes {data}"), 3, &[data]);
        place.refused(&format!("data check graph.npz --features {data}"), 3, &[data, "expected a file"]);
        let given = format!("partition graph.npz --parts 2 --method given --file {data}");
        place.refused(&given, 3, &[data, "expected a file"]);
    }
    place.refused("data check folder.npz", 3, &["folder.npz"]);
}

#[test]
#[cfg(target_os = "linux")]
fn graphs_and_verifications_beyond_reason_are_refused_on_the_command_line() {
    let place = place();
    for synth in
        ["sbm --features 4294967295", "sbm --nodes 4294967290", "rmat --scale 31", "rmat --edge-factor 4294967295"]
    {
        place.refused(&format!("data synth {synth} --out a.npz"), 2, &["needs", "of memory, and there are"]);
    }
    place.refused("verify run.toml --rounds 4294967295", 2, &["4294967295 rounds", "at most 1000000"]);
    place.write("runs.toml", &format!("seeds = [1]\n[[method]]\nname = \"{}\n", "x".repeat(100_000)));
    let error = place.run("compare run.toml --runs runs.toml --out c").err;
    assert!(error.contains("runs.toml: TOML parse error at line 3") && error.len() < 1_000, "{}", error.len());
}

#[test]
fn names_and_cells_give_no_orders_to_the_terminal() {
    let place = place();
    let name = "e\u{1b}[2Jsc\u{202e}.npz";
    std::fs::copy(place.path("graph.npz"), place.path(name)).unwrap();
    place.write("cell.csv", "src,dst,weight\n1,2,\u{1b}]0;title\u{7}\n");
    for line in [format!("data info {name}"), "data info cell.csv".to_owned(), format!("data check {name}x")] {
        let ran = place.run(&line);
        let text = ran.out + &ran.err;
        let orders = text.chars().filter(|c| c.is_control() && *c != '\n' || *c == '\u{202e}').count();
        assert!(orders == 0 && text.contains("\\u{1b}"), "{text:?}");
    }
}
