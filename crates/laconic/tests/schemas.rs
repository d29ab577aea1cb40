//! `docs/json.md` and the schemas are what `--json` prints: every field is there, and no other.

mod program;

use std::collections::{BTreeMap, BTreeSet};

use program::Place;
use serde_json::Value;

/// A documented field: its path, whether it is in every document, and whether it is null or holds others.
#[derive(Debug)]
struct Field {
    path: Vec<String>,
    always: bool,
    holds: bool,
}

/// The tables of the page by their heading: rows begin with a path in backticks; text that begins with a bracket says
/// when the field is there.
fn documented() -> BTreeMap<String, Vec<Field>> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let mut tables: BTreeMap<String, Vec<Field>> = BTreeMap::new();
    let mut heading = String::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.to_owned();
        } else if let Some((path, rest)) = line.strip_prefix("| `").and_then(|row| row.split_once("` | ")) {
            let (kind, text) = rest.split_once(" | ").unwrap_or((rest, ""));
            let holds = ["object or null", "list or null"].contains(&kind);
            let path = path.split('.').map(str::to_owned).collect();
            tables.entry(heading.clone()).or_default().push(Field { path, always: !text.starts_with('('), holds });
        }
    }
    tables
}

/// The paths of all values that hold no others: `[]` stands for the elements of a list.
fn leaves(value: &Value, path: &[String], found: &mut BTreeSet<Vec<String>>) {
    let below = |path: &[String], step: &str| [path, &[step.to_owned()]].concat();
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(name, value)| leaves(value, &below(path, name), found));
        }
        Value::Array(elements) if !elements.is_empty() => {
            let mut path = path.to_vec();
            match path.last_mut() {
                Some(last) => last.push_str("[]"),
                None => path.push("[]".to_owned()),
            }
            elements.iter().for_each(|element| leaves(element, &path, found));
        }
        Value::Null => drop(found.insert([path, &[NULL.to_owned()]].concat())),
        _ => drop(found.insert(path.to_vec())),
    }
}

/// The step below a value that is null, of whose fields nothing is known.
const NULL: &str = "null";

/// Whether a documented path is that of a value: capitals stand for any name, `…` for whatever is below. Of a list or a
/// map that is empty nothing below is known.
fn is(field: &[String], path: &[String]) -> bool {
    let any = |step: &str| {
        let name = step.trim_end_matches("[]");
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase())
    };
    let lists = |step: &str| step.len() - step.trim_end_matches("[]").len();
    match (field, path) {
        ([], []) => true,
        (_, [step]) if step == NULL => true,
        ([step], [_, ..]) if step == "…" => true,
        ([step, rest @ ..], [name, below @ ..]) => {
            let is_list = lists(step) > 0 && step.trim_end_matches("[]") == name;
            let is_empty_list = is_list && (below.is_empty() || below == [NULL]);
            let is_empty_map = below.is_empty() && step == name && matches!(rest, [next] if any(next));
            let is_step = step == name || any(step) && lists(step) == lists(name);
            is_empty_list || is_empty_map || is_step && is(rest, below)
        }
        _ => false,
    }
}

/// Runs commands and compares what they print with the page's table of that name; the first prints what is always
/// there.
fn check((tables, place): (&mut BTreeMap<String, Vec<Field>>, &Place), heading: &str, documents: &[Value]) {
    let fields = tables.remove(heading).unwrap_or_else(|| panic!("no table {heading:?}"));
    let first = heading.split(',').next().unwrap_or_default().trim_matches('`').trim_start_matches("laconic ");
    let schema = place.json(&format!("schema {}", first.replace("--", "").trim_end_matches(".jsonl")));
    let mut all = BTreeSet::new();
    for document in documents {
        fits((&schema, &schema), document).unwrap_or_else(|what| panic!("{heading}: {what}: {document}"));
        let mut found = BTreeSet::new();
        leaves(document, &[], &mut found);
        for path in &found {
            let known = fields.iter().any(|field| is(&field.path, path));
            assert!(known, "{heading}: `{}` is not in docs/json.md", path.join("."));
        }
        for field in fields.iter().filter(|field| field.always && !field.holds) {
            let there = found.iter().any(|path| is(&field.path, path));
            assert!(there, "{heading}: `{}` is not always there: {document}", field.path.join("."));
        }
        all.extend(found);
    }
    for field in fields.iter().filter(|field| !field.holds) {
        assert!(all.iter().any(|path| is(&field.path, path)), "{heading}: no `{}`", field.path.join("."));
    }
}

/// Whether a document is as a schema, of these, says: types, what is always there, and no field that it does not name.
fn fits((all, schema): (&Value, &Value), value: &Value) -> Result<(), String> {
    let is_of = |kind: &str| match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let listed = |key: &str| schema[key].as_array().into_iter().flatten();
    if let Some(path) = schema["$ref"].as_str() {
        let of = all.pointer(path.trim_start_matches('#')).ok_or_else(|| format!("nothing at {path}"))?;
        fits((all, of), value)?;
    }
    let kinds: Vec<&str> =
        schema["type"].as_str().into_iter().chain(listed("type").filter_map(Value::as_str)).collect();
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind)) {
        return Err(format!("{value} is not {kinds:?}"));
    }
    for shapes in ["anyOf", "oneOf"].into_iter().filter(|key| schema[key].is_array()) {
        let mut reasons = listed(shapes).map(|shape| fits((all, shape), value)).collect::<Vec<_>>();
        if !reasons.iter().any(Result::is_ok) {
            return reasons.pop().unwrap_or(Ok(()));
        }
    }
    if schema.get("const").is_some_and(|only| only != value)
        || schema["enum"].is_array() && !listed("enum").any(|one| one == value)
    {
        return Err(format!("{value} is none of those named"));
    }
    for (at, element) in value.as_array().into_iter().flatten().enumerate() {
        let items = schema.get("items").map_or(Ok(()), |items| fits((all, items), element));
        items.map_err(|what| format!("[{at}]: {what}"))?;
    }
    fields_fit((all, schema), value)
}

fn fields_fit((all, schema): (&Value, &Value), value: &Value) -> Result<(), String> {
    let (Some(fields), Some(_)) = (value.as_object(), schema.get("type")) else { return Ok(()) };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(name) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Err(format!("there is no {name}"));
    }
    for (name, value) in fields {
        let known = schema["properties"].get(name).or(schema.get("additionalProperties"));
        match known.filter(|known| **known != false) {
            Some(known) => fits((all, known), value).map_err(|what| format!("{name}: {what}"))?,
            None => return Err(format!("{name} is not in the schema")),
        }
    }
    Ok(())
}

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 2\n[model]\nhidden = 8\n[train]\nepochs = 3\n";

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 120 --features 4 --classes 3 --out graph.npz");
    place.write("run.toml", RUN);
    place.write("edges.csv", "src,dst,weight\na,b,1\nb,c,2\nc,a,1\na,a,1\n");
    place.write("nodes.csv", "id,x,label,split,note\na,1,0,train,some\nb,2,1,val,free\nc,3,,test,text\n");
    let calls: String = (0..24).map(|n| format!("p{n},p{}\n", (n + 5) % 24)).collect();
    place.write("calls.csv", &format!("src,dst\n{calls}"));
    let people = |n: usize| format!("p{n},{n},{},{}\n", ["no", "yes"][n % 2], ["train", "val", "test"][n % 3]);
    let people: String = (0..24).map(people).collect();
    place.write("people.csv", &format!("id,x,label,split\n{people}"));
    let owned: String = (0..24).map(|n| format!("p{n},{}\n", ["north", "south"][n % 2])).collect();
    place.write("owned.csv", &format!("id,part\n{owned}"));
    let alike: String = people.lines().map(|line| line.replace("yes,val", "no,val") + "\n").collect();
    place.write("alike.csv", &format!("id,x,label,split\n{alike}"));
    // Its parts have names.
    let people = RUN.replace("graph.npz\"", "calls.csv\"\nnodes_path = \"people.csv\"");
    place.write("people.toml", &people.replace("parts = 2", "method = \"given\"\nfile = \"owned.csv\""));
    let method = |name: &str, set: &str| format!("[[method]]\nname = \"{name}\"\nset = [{set}]\n");
    let [a, b] = [method("a", ""), method("b", "\"schedule.kind=lazy\"")];
    place.write("methods.toml", &(a.clone() + &b + &method("c", "\"messages.backward=masked\"")));
    let schedule =
        "[schedule]\nkind = \"averaging\"\ninterval = \"2 steps\"\nlimit = \"8 steps\"\nquorum = 1\naggregator = 0\n";
    let fault = "{ who = 1, at = \"3 s\", kind = \"killed\", back = \"9 s\" }";
    let trainers = format!("{schedule}[transport]\nkind = \"simulated\"\nfaults = [{fault}]\n");
    place.write("trainers.toml", &(RUN.to_owned() + &trainers));
    let trainers = "\"schedule.kind=averaging\", \"transport.kind=simulated\", \"schedule.interval=1 epoch\"";
    place.write("trained.toml", &method("d", trainers));
    place.write("seeds.toml", &("seeds = { train = [0], partition = [1], split = [2] }\n".to_owned() + &a));
    place
}

/// The document of a command that may fail.
fn any(place: &Place, line: &str) -> Value {
    serde_json::from_str(&place.run(&format!("{line} --json")).out).expect("one document")
}

/// What is printed of cuts in memory and on the disk.
fn partitioned(place: &Place) -> Vec<Value> {
    let lines = [
        "graph.npz --parts 2",
        "graph.npz --parts 2 --method multilevel --out parts --assignment owners.txt",
        "calls.csv --nodes people.csv --file owned.csv",
        "graph.npz --parts 2 --measure",
        "rmat --parts 2 --memory 1GB --out rmat-2",
    ];
    lines.iter().map(|line| place.json(&format!("partition {line}"))).collect()
}

/// The summary, the ladder, and the ladder after the run, where all is left to the program.
fn left_to_the_program(place: &Place) -> [Value; 3] {
    let auto = "run.toml --set messages=auto --set messages.budget=1GB --set messages.target=1.0";
    let summary = place.json(&format!("train {auto} --out auto"));
    let text = std::fs::read_to_string(place.path("auto/auto.json")).expect("a ladder");
    [summary, place.json(&format!("plan {auto}")), serde_json::from_str(&text).expect("JSON")]
}

/// What is printed of nodes, with names of classes and without, and of pairs.
fn predicted(place: &Place) -> [Value; 3] {
    place.json("train run.toml --out linked --set task.kind=link_prediction --set train.metrics=hits@100");
    place.write("pairs.csv", "source,target\n1,2\n3,4\n");
    let lines = ["run --out p.parquet", "people --out p.csv", "linked --pairs pairs.csv --out q.csv"];
    lines.map(|line| place.json(&format!("predict {line}")))
}

/// What each measurement prints.
fn measured(place: &Place) -> [(&'static str, Vec<Value>); 4] {
    let short = "--seconds 0 --array 2MB";
    let small = format!("{short} --nodes 100 --edges 400 --features 4 --classes 2 --hidden 4 --rounds 1");
    let epochs = ["--layers 2", "--arch mlp", "--workers 2 --link wan-100mbit-40ms"];
    let epochs = epochs.map(|more| place.json(&format!("bench epoch {small} {more}")));
    let kernels = place.json(&format!("bench kernels {short} --nodes 100 --edges 400"));
    let scale = place.json("bench scale --from 400 --to 400 --features 4 --hidden 4 --rounds 1");
    [
        ("`laconic bench roofline`", vec![place.json(&format!("bench roofline {short}"))]),
        ("`laconic bench epoch`", epochs.to_vec()),
        ("`laconic bench kernels`", vec![kernels]),
        ("`laconic bench scale`", vec![scale]),
    ]
}

/// A site's part.
fn built(place: &Place) -> Value {
    let nodes =
        "id = 'id'\nlabel = { column = 'label', classes = ['no', 'yes'] }\nsplit = { train = 0.5, val = 0.2 }\n";
    let edges = "source = 'src'\ntarget = 'dst'\n";
    let schema = format!("version = 1\nsites = ['north', 'south']\n[nodes]\n{nodes}[edges]\n{edges}");
    place.write("schema.toml", &schema);
    place.write("crossing.csv", "src,dst\nsouth/1,p0\np0,p1\n");
    place.json("part build people.csv crossing.csv --schema schema.toml --site north --out part-north")
}

/// What the program says of itself, and of a site's part.
fn told(place: &Place) -> [(&'static str, Vec<Value>); 6] {
    let pages = ["keys --markdown", "schema --markdown"].map(|line| place.json(line));
    [
        ("`laconic part build`", vec![built(place)]),
        ("`laconic keys`", vec![place.json("keys")]),
        ("`laconic keys --markdown`, `laconic schema --markdown`", pages.to_vec()),
        ("`laconic schema`", vec![place.json("schema")]),
        ("`laconic completions`, `laconic man`", vec![place.json("completions bash"), place.json("man")]),
        ("`laconic man --out`", vec![place.json("man --out pages")]),
    ]
}

/// The rounds of these runs.
fn rounds(place: &Place, runs: &[&str]) -> Vec<Value> {
    let text = |run: &&str| std::fs::read_to_string(place.path(run).join("metrics.jsonl")).expect("rounds");
    let texts: Vec<String> = runs.iter().map(text).collect();
    texts.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).expect("one object")).collect()
}

/// One source: the fields of what is printed.
#[test]
fn the_page_is_what_the_program_prints() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/json.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let place = Place::new();
    assert!(page == place.run("schema --markdown").out, "laconic schema --markdown > docs/json.md");
    let named = place.run("schema data info").out;
    assert!(named.contains("\"title\": \"laconic data info\"") && place.run("schema").out.contains("data info"));
    place.refused("schema nosuch", 2, &["nosuch", "laconic schema"]);
}

/// Labels that are told at random.
const AT_RANDOM: &str = "--set model.inputs=[\"features\",\"labels\"] --set policy.allow=[\"labels\"] \
    --set policy.label_epsilon=2 --set policy.label_secret=secret";

#[test]
fn every_field_is_documented_and_every_documented_field_is_there() {
    let place = place();
    let mut tables = documented();
    let mut check = |heading: &str, documents: &[Value]| check((&mut tables, &place), heading, documents);
    check("errors", &[any(&place, "train nosuch.toml"), any(&place, "train")]);
    check("`laconic data info`", &[place.json("data info graph.npz"), place.json("data info edges.csv")]);
    check("`laconic data check`", &[place.json("data check graph.npz"), any(&place, "data check edges.csv")]);
    let convert = ["--out converted.npz", "--to csv --out tables"];
    let converted = convert.map(|how| place.json(&format!("data convert edges.csv {how}")));
    check("`laconic data convert`", &converted);
    check(
        "`laconic data synth`",
        &[place.json("data synth rmat --scale 5 --out rmat.npz"), place.json("data synth rmat --scale 5 --out rmat")],
    );
    check("`laconic partition`", &partitioned(&place));
    let lossy = format!("--set messages.forward=quantised --set schedule.kind=synchronous {AT_RANDOM}");
    let shaped = "--set transport.shape=50mbit,25ms --set messages.backward=masked";
    let [tried, ladder, climbed] = left_to_the_program(&place);
    check("`auto.json`", &[ladder, climbed]);
    check(
        "`laconic plan`",
        &[
            place.json("plan run.toml --explain"),
            place.json("plan run.toml"),
            place.json(&format!("plan run.toml {lossy} {shaped} --ledger ledger.csv --out page.md")),
            any(&place, "plan run.toml --set messages.budget=16kB --set policy.deny=[\"features\"]"),
            place.json("plan trainers.toml"),
            place.json("plan people.toml"),
        ],
    );
    let train = place.json("train run.toml --out run --set out.checkpoint_every=1");
    let budget = place.json("train run.toml --out budget --set messages.budget=16kB");
    let noted = place.json(&format!("train run.toml --out noted {lossy} {shaped}"));
    let trained = place.json("train trainers.toml --out trained");
    let resumed = place.json("resume run --set train.epochs=5");
    let areas = place.json("train people.toml --out areas --set data.nodes_path=alike.csv --set train.metrics=roc_auc");
    let people = place.json("train people.toml --out people");
    let links = place.json("train run.toml --out links --set task.kind=link_prediction");
    check("`laconic train`, `laconic resume`", &[train, budget, noted, resumed, people, trained, areas, links, tried]);
    check("`metrics.jsonl`", &rounds(&place, &["run", "noted", "trained", "areas", "links"]));
    check("`laconic verify`", &[place.json("verify run.toml --rounds 2")]);
    let compared = place.json("compare run.toml --runs methods.toml --out compared --seeds 2");
    let linked = place.json("compare run.toml --runs methods.toml --out linked --link wan-100mbit-40ms");
    let drawn = "--out drawn --set data.split={train=0.5,val=0.2}";
    let seeded = place.json(&format!("compare run.toml --runs seeds.toml {drawn}"));
    let trained = place.json("compare run.toml --runs trained.toml --out of-trainers");
    let at_random = place.json(&format!("compare run.toml --runs methods.toml --out at-random {AT_RANDOM}"));
    check("`laconic compare`", &[compared, linked, seeded, trained, at_random]);
    let plans = ["", "--set transport.shape=50mbit,25ms", AT_RANDOM];
    let plans = plans.map(|set| place.json(&format!("compare run.toml --runs methods.toml --plan {set}")));
    check("`laconic compare --plan`", &plans);
    check("`laconic report`", &[place.json("report run")]);
    check("`laconic predict`", &predicted(&place));
    check("`laconic export`", &[place.json("export run --to pyg --out pyg")]);
    check("`laconic demo`", &[place.json("demo --nodes 300 --parts 2 --epochs 2")]);
    for (heading, documents) in measured(&place).into_iter().chain(told(&place)) {
        check(heading, &documents);
    }
    assert!(tables.is_empty(), "no command prints these: {:?}", tables.keys());
}

#[test]
fn a_field_that_is_not_documented_and_one_that_is_not_there_are_noticed() {
    let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
    let same = [
        ("a.KIND", "a.x"),
        ("a[].b", "a[].b"),
        ("a[].b", "a"),
        ("a.KIND", "a"),
        ("c.…", "c.d.e"),
        ("a[]", "a"),
        ("a[]", "a.null"),
    ];
    for (field, value) in same {
        assert!(is(&path(field), &path(value)), "{field} {value}");
    }
    let others = [("a.b", "a"), ("a", "a.b"), ("a.KIND", "a.x.y"), ("a.KIND", "a.x[]"), ("c.…", "c"), ("a[].b", "b")];
    for (field, value) in others {
        assert!(!is(&path(field), &path(value)), "{field} {value}");
    }
}

#[test]
fn what_a_schema_does_not_say_is_noticed() {
    let schema = serde_json::json!({
        "$defs": {
            "A": { "type": "object", "properties": { "b": { "type": ["integer", "null"] } }, "required": ["b"] },
        },
        "type": "array", "items": { "$ref": "#/$defs/A" },
    });
    let fits = |text: &str| fits((&schema, &schema), &serde_json::from_str(text).expect("JSON")).is_ok();
    assert!(fits("[]") && fits(r#"[{"b":1}]"#) && fits(r#"[{"b":null}]"#));
    for text in ["{}", "[{}]", r#"[{"b":"1"}]"#, r#"[{"b":1.5}]"#, r#"[{"b":1,"c":1}]"#] {
        assert!(!fits(text), "{text}");
    }
}
