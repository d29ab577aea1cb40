//! `laconic part build` as sites use it: parts from own tables, a run over all of them, predictions by the users' ids.

mod program;

use program::Place;

const SCHEMA: &str = "\
version = 1
name = 'stroke'
sites = ['north', 'south']
[nodes]
id = 'patient'
label = { column = 'outcome', classes = ['home', 'ward', 'icu'] }
split = { train = 0.6, val = 0.2, seed = 1 }
features = [{ column = 'age', number = { mean = 50.0, sd = 10.0 } }, { column = 'sex', one_hot = ['f', 'm'] }]
[edges]
source = 'from'
target = 'to'
symmetrise = true
";

/// Thirty patients of each site; the south has none of the class icu.
fn tables() -> Place {
    let place = Place::new();
    place.write("schema.toml", SCHEMA);
    for (site, other) in [("north", "south"), ("south", "north")] {
        let classes = if site == "north" { ["home", "ward", "icu"] } else { ["home", "ward", "ward"] };
        let row = |number: usize| {
            let sex = ["f", "m"][number % 2];
            format!("{number},{},{sex},{},secret {number}\n", 30 + number, classes[number % 3])
        };
        let rows: String = (0..30).map(row).collect();
        place.write(&format!("{site}.csv"), &format!("patient,age,sex,outcome,note\n{rows}"));
        // Own edges in one table, those with the other site in another.
        let own: String = (0..30).map(|number| format!("{number},{}\n", (number * 7 + 1) % 30)).collect();
        place.write(&format!("{site}-own.csv"), &format!("from,to\n{own}"));
        let between = |number: usize| match site {
            "north" => format!("{number},{other}/{number}\n"),
            _ => format!("{other}/{number},{number}\n"),
        };
        let between: String = (0..10).map(between).collect();
        place.write(&format!("{site}-others.csv"), &format!("from,to\n{between}"));
    }
    place
}

fn line(site: &str, out: &str) -> String {
    format!("part build {site}.csv {site}-own.csv {site}-others.csv --schema schema.toml --site {site} --out {out}")
}

const RUN: &str = "
    data = { path = 'all' }
    model = { hidden = 8 }
    train = { epochs = 5, threads = 1 }
";

#[test]
fn sites_build_parts_from_their_tables_and_a_run_over_these_predicts_by_their_ids() {
    let place = tables();
    let north = place.json(&line("north", "all"));
    assert_eq!((&north["nodes"], &north["part"], &north["parts"]), (&30.into(), &0.into(), &2.into()));
    assert_eq!(north["from"], serde_json::json!([{ "site": "south", "edges": 10, "nodes": 10 }]));
    assert_eq!((&north["elsewhere"], &north["labelled"]), (&10.into(), &30.into()));
    assert_eq!(north["unread"], serde_json::json!(["note"]));
    let said = place.run(&line("south", "all"));
    assert_eq!(said.code, 0, "{}", said.err);
    for words in
        ["part 1 of 2, of south", "10 start at 10 nodes of north", "10 edges end elsewhere (not used)", "icu 0"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    place.write("run.toml", RUN);
    let plan = place.json("plan run.toml");
    let summary = place.json("train run.toml --out run");
    assert_eq!(summary["bytes"]["total"], summary["bytes"]["predicted"]);
    assert_eq!(plan["bytes"], summary["bytes"]["total"]);
    place.json("predict run --out predictions.csv");
    let predictions = std::fs::read_to_string(place.path("predictions.csv")).expect("predictions");
    assert!(predictions.contains("north/17,") && predictions.contains("south/17,"), "{predictions}");
}

#[test]
fn a_site_alone_with_its_part_learns_what_it_would_send_at_most() {
    let place = tables();
    place.json(&line("north", "part-north"));
    place.write("run.toml", &RUN.replace("'all'", "'part-north'"));
    let plan = place.json("plan run.toml");
    assert_eq!(plan["is_bound"], true);
    // As a graph of its own, without edges from elsewhere.
    place.json("train run.toml --set data.part=0 --out alone");
}

#[test]
fn mistakes_are_named_by_file_and_place_and_nothing_is_written() {
    let place = tables();
    place.write("wrong.csv", "patient,age,sex,outcome\n1,40,f,home\n2,41,x,home\n");
    let wrong = line("north", "out").replace("north.csv", "wrong.csv");
    place.refused(&wrong, 3, &["wrong.csv: line 3: column 'sex': 'x' is no value of the schema, which has f, m"]);
    place.refused(
        &line("north", "out").replace("--site north", "--site east"),
        2,
        &["no site is called \"east\"", "north, south"],
    );
    assert!(!place.path("out").exists());
    place.json(&line("north", "out"));
    place.refused(&line("north", "out"), 2, &["out holds this site's part already; --force replaces it"]);
    place.json(&format!("{} --force", line("north", "out")));
    place.json(&line("south", "out"));
    place.refused(&format!("{} --force", line("north", "out")), 2, &["holds parts of other sites"]);
}
