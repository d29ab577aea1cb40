//! Graphs that are cut without being read: `laconic data synth` into a folder of arrays, and `partition --memory`.

mod program;

use program::Place;
use std::collections::BTreeSet;

/// A folder of arrays of 512 nodes.
fn arrays() -> Place {
    let place = Place::new();
    place.json("data synth rmat --scale 9 --features 4 --classes 3 --out web");
    place
}

#[test]
fn a_folder_of_arrays_is_data_like_any_other() {
    let place = arrays();
    place.json("data synth rmat --scale 9 --features 4 --classes 3 --out web.npz");
    assert_eq!(place.json("data info web")["digest"], place.json("data info web.npz")["digest"]);
}

#[test]
fn parts_that_are_cut_on_the_disk_are_those_that_are_cut_in_memory_and_a_run_trains_on_them() {
    let place = arrays();
    for method in ["random", "streaming", "super_node --clusterer streaming --clusters 40"] {
        let line = format!("partition web --parts 4 --seed 3 --method {method} --force");
        let whole = place.json(&format!("{line} --out whole"));
        let pieces = place.json(&format!("{line} --memory 1GB --out pieces"));
        for field in ["nodes", "edges", "cut_edges", "halo_rows", "node_balance", "parts", "labels"] {
            assert_eq!(whole[field], pieces[field], "{method}: {field}");
        }
        for part in 0..4 {
            for file in ["graph", "nodes", "features"] {
                let of =
                    |dir: &str| std::fs::read(place.path(&format!("{dir}/part-{part}/{file}.safetensors"))).unwrap();
                assert!(of("whole") == of("pieces"), "{method}: part {part}: {file}");
            }
        }
    }
    place.write("run.toml", "[data]\npath = \"pieces\"\n[train]\nepochs = 2\n");
    let run = place.run("train run.toml");
    assert_eq!(run.code, 0, "{}", run.err);
}

#[test]
fn an_edge_list_with_gaps_between_its_ids_is_cut_in_passes_as_it_is_in_memory() {
    let place = Place::new();
    let edges: Vec<(u64, u64)> = (0..400).map(|edge| (edge * edge % 997 * 3, edge * 7 % 331 * 5)).collect();
    let edges = [&edges[..], &edges[..9], &[edges[3], (edges[5].1, edges[5].0), (15, 15)]].concat();
    let text: String = edges.iter().map(|(source, target)| format!("{source},{target}\n")).collect();
    place.write("a.csv", &format!("src,dst\n{text}"));
    for flags in ["", "--symmetrise"] {
        let line = format!("partition a.csv --parts 3 --seed 1 --method streaming --rule fennel {flags} --force");
        let whole = place.json(&format!("{line} --out whole"));
        let pieces = place.json(&format!("{line} --memory 1GB --out pieces"));
        assert_eq!((&whole["parts"], &whole["cut_edges"]), (&pieces["parts"], &pieces["cut_edges"]));
        let of = |dir: &str| std::fs::read(place.path(&format!("{dir}/meta.json"))).unwrap();
        assert!(of("whole") == of("pieces"), "{flags}: meta.json tells of every byte");
        let is_both = !flags.is_empty();
        let turned = |&(a, b): &(u64, u64)| if is_both { (a.min(b), a.max(b)) } else { (a, b) };
        let own: BTreeSet<(u64, u64)> = edges.iter().filter(|(a, b)| a != b).map(turned).collect();
        let said = format!("{} of {} rows are no edges of their own", edges.len() - own.len(), edges.len());
        let err = place.run(&format!("{line} --memory 1GB --out pieces")).err;
        assert!(err.contains(&said), "{said}: {err}");
    }
}

#[test]
fn what_is_needed_is_said_before_it_is_taken_and_progress_after() {
    let place = arrays();
    let ran = place.run("partition web --parts 4 --method streaming --rule ldg --memory 1GB --out parts --log-every 0");
    assert_eq!(ran.code, 0, "{}", ran.err);
    let told = ["counting edges", "MB of memory", "buckets", "sorting", "pass 1 of 10", "writing part 4 of 4"];
    let places: Vec<usize> =
        told.iter().map(|text| ran.err.find(text).unwrap_or_else(|| panic!("{text}: {}", ran.err))).collect();
    assert!(places.is_sorted(), "{}", ran.err);
    assert_eq!(place.names(), ["parts", "web"]);
}

#[test]
fn what_cannot_be_cut_on_the_disk_is_refused_with_the_flag() {
    let place = arrays();
    place.write("a.csv", "src,dst\n0,1\n");
    for (line, words) in [
        ("web --memory 1GB --method multilevel --out p", &["multilevel", "random, streaming, given"][..]),
        ("web --memory 1GB --method super_node --out p", &["super_node needs the graph in memory"]),
        ("web --memory 1GB --method random", &["--out"]),
        ("web --memory 1GB --method random --out p --assignment a.txt", &["--assignment"]),
        ("web --memory 1GB --method random --out p --split train=0.5,val=0.1", &["--split", "memory"]),
        ("web --memory 1GB --method random --out p --feature-preparation standardised", &["--feature-preparation"]),
        ("web --memory much --method random --out p", &["--memory", "12GB"]),
    ] {
        place.refused(&format!("partition {line} --parts 2"), 2, words);
    }
    for (name, text, words) in [
        ("ids.csv", "src,dst\nann,bob\n", ["ids.csv: column 'src'", "expected integers"]),
        ("signs.csv", "src,dst\n-1,2\n", ["signs.csv", "expected an id from 0 to 2^36, found -1"]),
        ("weights.csv", "src,dst,weight\n0,1,2\n", ["weights.csv", "column 'weight' holds weights"]),
    ] {
        place.write(name, text);
        place.refused(&format!("partition {name} --memory 1GB --method random --out p --parts 2"), 3, &words);
        std::fs::remove_file(place.path(name)).unwrap();
    }
    place.write("a.npz", "");
    place.refused("partition a.npz --memory 1GB --method random --out p --parts 2", 2, &["a.npz", "graph.json"]);
    std::fs::remove_file(place.path("a.npz")).unwrap();
    place.refused("partition web --memory 1MB --parts 2 --method random --out p", 3, &["web", "1 MB are allowed"]);
    place.refused("data synth rmat --scale 5 --out web", 2, &["web is there already"]);
    for (flags, words) in [
        ("--scale 10 --features 4000000000", ["features", "found 4000000000"]),
        ("--scale 4 --classes 17", ["classes", "at most 16"]),
        ("--scale 31 --edge-factor 100000", ["rmat: a graph of that size needs", "and there are"]),
        ("--scale 31 --features 16000000", ["rmat: a graph of that size needs", "MB of memory"]),
    ] {
        for out in ["more", "more.npz"] {
            place.refused(&format!("data synth rmat {flags} --out {out}"), 2, &words);
        }
    }
    assert_eq!(place.names(), ["a.csv", "web"]);
}

/// Node for node and name for name: integer ids, class names, features, labels and a split.
#[test]
fn an_interchange_npz_is_cut_in_passes_as_it_is_in_memory() {
    let place = Place::new();
    let line = |node: u32| {
        let (class, split) =
            (["red", "green", "blue"][node as usize % 3], ["train", "val", "test", ""][node as usize % 4]);
        format!("{},{},{}.5,{class},{split}\n", 7 * node + 3, node % 5, node)
    };
    place.write("nodes.csv", &format!("id,x,y,label,split\n{}", (0..200).map(line).collect::<String>()));
    let edge = |edge: u32| format!("{},{}\n", 7 * (edge * edge % 197) + 3, 7 * (edge * 11 % 200) + 3);
    place.write("edges.csv", &format!("src,dst\n{}", (0..900).map(edge).collect::<String>()));
    for (name, flags) in [("one_way", ""), ("both", "--symmetrise")] {
        place.json(&format!("data convert edges.csv --nodes nodes.csv {flags} --out {name}.npz"));
        for rest in ["--rule fennel", "--rule ldg --balance-edges", "--symmetrise"] {
            let line = format!("partition {name}.npz --parts 3 --seed 1 --method streaming {rest} --force");
            let whole = place.json(&format!("{line} --feature-preparation given --out whole"));
            let pieces = place.json(&format!("{line} --memory 1GB --out pieces"));
            assert_eq!((&whole["parts"], &whole["cut_edges"]), (&pieces["parts"], &pieces["cut_edges"]));
            let of = |dir: &str| std::fs::read_to_string(place.path(&format!("{dir}/meta.json"))).unwrap();
            assert!(of("whole").contains("green"), "classes have names");
            assert_eq!(of("whole"), of("pieces"), "{name} {rest}: meta.json tells of every byte");
        }
    }
}

/// Ids that are texts or numbers, categories, dates, features that are standardised, a random split, unknown ends: the
/// parts and their `meta.json` are those of the cut in memory, whose every byte it tells of.
#[test]
fn edges_beside_a_node_table_are_cut_in_passes_as_they_are_in_memory() {
    let place = Place::new();
    let name = |node: u32| if node.is_multiple_of(40) { format!("a-longer-name-{node}") } else { format!("n{node}") };
    let spelt: [(&str, &dyn Fn(u32) -> String); 3] =
        [("texts", &name), ("numbers", &|node| (7 * node + 3).to_string()), ("rows", &|node| node.to_string())];
    for (kind, spelt) in spelt {
        let line = |node: u32| {
            let (class, split) =
                (["red", "green", "blue"][node as usize % 3], ["train", "val", "test", ""][node as usize % 4]);
            let (when, town) = (1_764_230_400u64 + 3 * u64::from(node), ["Bern", "Graz"][node as usize % 2]);
            format!("{},{},{when},{town},{class},{split}\n", spelt(node), node % 5)
        };
        let rows = (0..200).map(line).collect::<String>();
        place.write("nodes.csv", &format!("id,x,when,town,label,split\n{rows}"));
        let edge = |edge: u32| format!("{},{}\n", spelt(edge * edge % 197), spelt(edge * 11 % 200));
        let edges = (0..6000).map(edge).collect::<String>();
        place.write("edges.csv", &format!("src,dst\n{edges}"));
        place.write("more.csv", &format!("src,dst\n{},{}\n{edges}", spelt(900), spelt(5)));
        for rest in [
            "edges.csv --symmetrise",
            "edges.csv --nodes nodes.csv --feature-preparation given",
            "edges.csv --split train=0.5,val=0.2,seed=3 --method streaming --rule fennel",
            "edges.csv --split-column split --ignore town --symmetrise",
            "more.csv --nodes nodes.csv --unknown drop --feature-preparation row-normalised",
        ] {
            let line = format!("partition {rest} --parts 3 --seed 1 --force");
            let line = if rest.contains("--method") { line } else { format!("{line} --method random") };
            let whole = place.json(&format!("{line} --out whole"));
            let pieces = place.json(&format!("{line} --memory 1GB --out pieces"));
            assert_eq!((&whole["parts"], &whole["cut_edges"]), (&pieces["parts"], &pieces["cut_edges"]));
            let of = |dir: &str| std::fs::read_to_string(place.path(&format!("{dir}/meta.json"))).unwrap();
            assert!(of("whole").contains("green"), "classes have names");
            assert_eq!(of("whole"), of("pieces"), "{kind}, {rest}: meta.json tells of every byte");
        }
        let cut = "--parts 3 --method random --memory 1GB --out p";
        let unknown =
            ["more.csv", "1 of 6001 rows name ids that are not among the nodes", "row 0 with", "--unknown drop"];
        place.refused(&format!("partition more.csv --nodes nodes.csv {cut}"), 3, &unknown);
        place.refused(&format!("partition more.csv --nodes nodes.csv --unknown add {cut}"), 3, &["--unknown drop"]);
        place.refused(&format!("partition edges.csv {}", cut.replace("1GB", "1kB")), 3, &["node table", "are allowed"]);
    }
    assert!(!place.path("p").exists());
}

#[test]
fn what_of_an_interchange_npz_is_not_read_in_passes_is_refused_by_its_name() {
    let place = Place::new();
    place.write("names.csv", "src,dst\nann,bob\nbob,cem\n");
    place.write("weights.csv", "src,dst,weight\n0,1,2\n1,2,0.5\n");
    for (name, words) in [("names", ["'ids", "texts"]), ("weights", ["'edge_weight'", "weights of edges"])] {
        place.json(&format!("data convert {name}.csv --out {name}.npz"));
        let line = format!("partition {name}.npz --memory 1GB --method random --out p --parts 2");
        place.refused(&line, 3, &[words[0], words[1], "in memory"]);
    }
}
