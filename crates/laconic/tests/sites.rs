//! Parts by a column of the node table, or by a table of ids, run as users run it.

mod program;

use laconic_graph::dataset::Ids;
use laconic_graph::part::{open_meta, open_part};
use program::Place;

const REGIONS: [&str; 3] = ["Nord", "West", "Ost"];

/// Sixty customers of three regions, in an order that has nothing to do with these, and calls between them.
fn customers() -> (Place, Vec<(String, &'static str)>) {
    let place = Place::new();
    let customers: Vec<(String, &str)> =
        (0..60).map(|row| (format!("C{:03}", row * 37 % 60), REGIONS[row * row % 7 % 3])).collect();
    let mut nodes = "customer,age,region,churned\n".to_owned();
    for (row, (id, region)) in customers.iter().enumerate() {
        nodes += &format!("{id},{},{region},{}\n", 20 + row % 50, ["yes", "no"][row * 11 % 5 % 2]);
    }
    let calls: String =
        (0..240).map(|call| format!("C{:03},C{:03}\n", call % 60, (call * 7 + call / 60 + 1) % 60)).collect();
    place.write("customers.csv", &nodes);
    place.write("calls.csv", &format!("source,target\n{calls}"));
    (place, customers)
}

const FLAGS: &str = "--nodes customers.csv --id customer --label churned --split train=0.6,val=0.2";

/// The region of every node, by the parts of a folder.
fn found(place: &Place, folder: &str) -> Vec<(String, String)> {
    let meta = open_meta(&place.path(folder)).expect("meta data");
    let mut found = Vec::new();
    for index in 0..meta.parts {
        let part = open_part(&place.path(folder), index).expect("a part");
        let Ids::Strings(ids) = &part.ids else { panic!("ids are texts") };
        found.extend(ids.iter().map(|id| (id.clone(), meta.global.part_names[index as usize].clone())));
    }
    found.sort();
    found
}

#[test]
fn every_node_is_in_the_part_that_its_row_names_whatever_says_so() {
    let (place, customers) = customers();
    let mut truth: Vec<_> = customers.iter().map(|(id, region)| (id.clone(), (*region).to_owned())).collect();
    truth.sort();
    let cut = place.json(&format!("partition calls.csv {FLAGS} --part-column region --out regions"));
    assert_eq!((&cut["part_names"], &cut["method"]), (&serde_json::json!(["Nord", "Ost", "West"]), &"given".into()));
    assert_eq!(found(&place, "regions"), truth);
    // The column of parts is no feature, unless it is named as one.
    assert_eq!(open_meta(&place.path("regions")).expect("meta data").global.columns, 1);
    place.json(&format!("partition calls.csv {FLAGS} --part-column region --features-columns age,region --out both"));
    assert_eq!(open_meta(&place.path("both")).expect("meta data").global.columns, 4);
    // A table of its own, in yet another order.
    let rows: String = truth.iter().rev().map(|(id, region)| format!("{id};{region}\n")).collect();
    place.write("sites.csv", &format!("customer;site\n{rows}X999;Ost\n"));
    let told = place.run(&format!("partition calls.csv {FLAGS} --file sites.csv --out sites"));
    assert!(told.code == 0 && told.err.contains("sites.csv: 1 of its ids are no nodes"), "{}", told.err);
    assert_eq!(found(&place, "sites"), truth);
    // A list by row says nothing of who is who, which is said.
    let by_row: String = customers.iter().map(|(_, region)| format!("{}\n", u8::from(*region == "Ost"))).collect();
    place.write("rows.txt", &by_row);
    let told = place.run(&format!("partition calls.csv {FLAGS} --file rows.txt --parts 2"));
    assert!(told.code == 0 && told.err.contains("the assignment goes by row"), "{}", told.err);
    place.refused(&format!("partition calls.csv {FLAGS} --file rows.txt"), 2, &["--parts", "rows.txt"]);
    place.refused(
        &format!("partition calls.csv {FLAGS} --part-column region --parts 2"),
        2,
        &["3 parts: Nord, Ost, West"],
    );
    place.refused(
        &format!("partition calls.csv {FLAGS} --part-column land"),
        3,
        &["customers.csv", "'land'", "region"],
    );
}

/// What a plan, a run and its page call workers by is what their owners are called.
#[test]
fn parts_keep_their_names_in_plan_summary_and_report() {
    let (place, _) = customers();
    place.json(&format!("partition calls.csv {FLAGS} --part-column region --out regions"));
    place.write("cut.toml", "data = { path = \"regions\" }\nmodel = { hidden = 4 }\ntrain = { epochs = 2 }\n");
    place.write(
        "whole.toml",
        "data = { path = \"calls.csv\", nodes_path = \"customers.csv\", id = \"customer\", label = \"churned\", \
         split = { train = 0.6, val = 0.2 } }\npartition = { method = \"given\", column = \"region\" }\n\
         model = { hidden = 4 }\ntrain = { epochs = 2 }\n",
    );
    let names = serde_json::json!(["Nord", "Ost", "West"]);
    let mut digests = Vec::new();
    for run in ["cut", "whole"] {
        let plan = place.run(&format!("plan {run}.toml")).out;
        assert!(plan.contains("what leaves Ost, in the whole run") && plan.contains("  to Nord "), "{plan}");
        assert_eq!(place.json(&format!("plan {run}.toml"))["part_names"], names);
        let summary = place.json(&format!("train {run}.toml --out {run}"));
        assert_eq!((&summary["part_names"], &summary["workers"]), (&names, &3.into()));
        digests.push(summary["parameters"]["blake3"].clone());
        place.json(&format!("report {run} --out {run}.html"));
        let page = std::fs::read_to_string(place.path(&format!("{run}.html"))).expect("a page");
        assert!(["<th>to Ost", "<td>West"].iter().all(|cell| page.contains(cell)), "{page}");
    }
    assert_eq!(digests[0], digests[1]);
}

/// What is handed to those who have to agree says whose data, which columns, how often, and what that says of people.
#[test]
fn a_page_of_the_plan_names_sites_columns_and_how_often() {
    let (place, _) = customers();
    place.json(&format!("partition calls.csv {FLAGS} --part-column region --out regions"));
    place.write("run.toml", "[data]\npath = \"regions\"\n[train]\nepochs = 7\n");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).expect("a page");
    let plan = place.json("plan run.toml --out page.html");
    place.json("plan run.toml --out page.md");
    assert_eq!(plan["out"], "page.html");
    let (html, text) = (read("page.html"), read("page.md"));
    for page in [&html, &text] {
        for word in ["Nord", "Ost", "West", "columns age", "cross once", "7 times", "numbers of nodes", "not encrypted"]
        {
            assert!(page.contains(word), "{word}: {page}");
        }
        assert!(!page.contains("predictions about persons") && !page.contains("never leave"), "{page}");
    }
    // All bytes that leave anybody stand in the table, each line once.
    let sent: Vec<&serde_json::Value> = plan["leaves"].as_array().expect("a list").iter().collect();
    assert_eq!(
        text.matches("hidden rows of ").count(),
        sent.iter().filter(|line| line["what"] == "hidden_rows").count()
    );
    place.refused("plan run.toml --out page.html", 2, &["page.html", "--force"]);
    place.refused("plan run.toml --out page.pdf", 2, &[".html or .md"]);
    // From class scores on, features stay; what crosses says something of persons.
    let lazy = "--set schedule.kind=lazy --set schedule.start=mlp";
    place.json(&format!("plan run.toml --out page.md --force {lazy}"));
    let text = read("page.md");
    assert!(text.contains("Features never leave their owner") && text.contains("predictions about persons"), "{text}");
    assert!(!text.contains("aggregator"), "{text}");
    // Independent trainers send models alone, to one who has all data to evaluate them by; or all evaluate them
    // together, over the edges between parts or not.
    for (keys, words) in [
        ("--set schedule.evaluator=aggregator", ["Features never leave their owner", "has to have the data of all"]),
        ("", ["for evaluations: features of", "The aggregator holds no part"]),
        ("--set schedule.evaluate=local", ["Features never leave their owner", "The aggregator holds no part"]),
    ] {
        place.json(&format!("plan run.toml --out page.md --force --set schedule.kind=averaging {keys}"));
        let text = read("page.md");
        for word in words {
            assert!(text.contains(word), "{keys}: {word}: {text}");
        }
    }
}
