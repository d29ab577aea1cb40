//! The HTML page and the figures of a comparison, looked at as text: what stands where, what is cut, what is escaped.

mod program;

use std::path::Path;

use program::Place;
use serde_json::Value;

const RUN: &str = "[data]\npath = \"graph.npz\"\n[partition]\nparts = 3\n[model]\nhidden = 16\n[train]\nepochs = 5\n";
const COMPARE: &str = "compare run.toml --runs methods.toml --out both";

/// A name as long as a name may be, of the widest letters.
const LONG: &str = "WWWWWWWWWW WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW";

/// Advance widths of DejaVu Sans from the space to the tilde, in thousandths of its size.
#[rustfmt::skip]
const ADVANCES: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,
    603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,
    500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,
    635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

fn place() -> Place {
    let place = Place::new();
    place.json("data synth sbm --nodes 400 --features 8 --out graph.npz");
    place.write("run.toml", RUN);
    place
}

fn read(place: &Place, file: &str) -> String {
    std::fs::read_to_string(place.path(file)).expect("a file")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// Ten methods, two of them lazy, and one with a very long name.
fn ten_methods() -> String {
    let mut text = "seeds = [0, 1, 2]\n".to_owned();
    let mut method = |name: &str, set: &str| text += &format!("[[method]]\nname = \"{name}\"\nset = [{set}]\n");
    method("synchronous", "");
    method("lazy, from features", "\"schedule.kind=lazy\"");
    method("RETEXO (lazy from scores)", "\"schedule.kind=lazy\", \"schedule.start=mlp\"");
    method("PipeGCN", "\"schedule.kind=pipelined\"");
    method("no messages", "\"messages.selection=none\"");
    method("BNS-GCN (10 % of boundary)", "\"messages.selection=boundary_sample\"");
    method("half", "\"messages.forward=half\"");
    method(LONG, "\"train.lr=0.02\"");
    method("slow", "\"train.lr=0.001\"");
    method("dropout <5> & more", "\"model.dropout=0.5\"");
    text
}

/// The markup between every `<svg` and `</svg>`.
fn figures(page: &str) -> Vec<&str> {
    page.split("<svg").skip(1).map(|rest| rest.split("</svg>").next().expect("it ends")).collect()
}

fn attribute(tag: &str, name: &str) -> f64 {
    let text = tag.split(&format!(" {name}=\"")).nth(1).unwrap_or_else(|| panic!("{name} in {tag}"));
    text.split('"').next().expect("it ends").parse().expect("a number")
}

fn unescaped(text: &str) -> String {
    let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    pairs.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// A text of a figure: what it says, whether it is quiet, and its left, right and base line in DejaVu Sans.
struct Written {
    said: String,
    quiet: bool,
    x: (f64, f64),
    y: f64,
}

fn texts(figure: &str) -> Vec<Written> {
    let text = |piece: &str| {
        let (tag, rest) = piece.split_once('>').expect("a tag");
        let said = unescaped(rest.split("</text>").next().expect("it ends"));
        let is_title = tag.contains("font-weight");
        // Bold letters are about an eighth wider.
        let size = if is_title { 14.0 * 1.13 } else { 13.0 };
        let advance = |c: char| ADVANCES.get((c as usize).wrapping_sub(32)).map_or(1.0, |a| f64::from(*a) / 1000.0);
        let (x, width) = (attribute(tag, "x"), said.chars().map(advance).sum::<f64>() * size);
        let left = match () {
            () if tag.contains("\"middle\"") => x - width / 2.0,
            () if tag.contains("\"end\"") => x - width,
            () => x,
        };
        let quiet = tag.contains("quiet") || is_title;
        Written { said, quiet, x: (left, left + width), y: attribute(tag, "y") }
    };
    figure.split("<text").skip(1).map(text).collect()
}

/// Every text lies in its figure, and none is shortened.
fn assert_uncut(page: &str) {
    let figures = figures(page);
    assert!(!figures.is_empty());
    for figure in figures {
        let size = (attribute(figure, "width"), attribute(figure, "height"));
        for text in texts(figure) {
            let inside = text.x.0 >= -0.5 && text.x.1 <= size.0 + 0.5 && (9.0..=size.1 - 2.0).contains(&text.y);
            assert!(inside, "{:?} at {:?}, {} in {size:?}", text.said, text.x, text.y);
            assert!(!text.said.contains('…'), "{}", text.said);
        }
    }
}

/// The text of a page without markup, configurations and digests.
fn prose(page: &str) -> String {
    let mut text = String::new();
    let (body, mut hidden) = (page.split_once("</head>").expect("a body").1, false);
    for piece in body.split('<').skip(1) {
        let (tag, said) = piece.split_once('>').expect("a tag");
        hidden = if tag.starts_with("pre") { true } else { hidden && !tag.starts_with("/pre") };
        if !hidden {
            text += said;
            text.push('\n');
        }
    }
    text.split_whitespace().filter(|word| !word.contains("blake3:")).collect::<Vec<&str>>().join(" ")
}

fn assert_themed(markup: &str) {
    for word in ["color-scheme:light dark", "prefers-color-scheme:dark"] {
        assert!(markup.contains(word), "{word}");
    }
    // A colour beside a class would be the same on both grounds.
    for fixed in ["fill=\"#", "stroke=\"#", "fill=\"white", "fill=\"black"] {
        assert!(!markup.contains(fixed), "{fixed}");
    }
}

#[test]
fn a_comparison_of_thirty_runs_opens_with_means_then_final_points_and_stays_small() {
    let place = place();
    place.write("methods.toml", &ten_methods());
    place.json(&format!("{COMPARE} --set train.epochs=120"));
    place.json("report both --out page.html");
    let page = read(&place, "page.html");
    assert!(page.len() <= 400_000, "{} bytes", page.len());
    let body = page.split_once("<body>").expect("a body").1;
    let (before, figures) = body.split_once("<figure>").expect("figures");
    assert!(body.matches("<figure>").count() <= 12, "{}", body.matches("<figure>").count());
    // A row a method, with the mean over its summaries; and behind that the account, a row a method, too.
    assert_eq!((before.matches("<table>").count(), before.matches("<tr>").count()), (2, 22));
    let test = |seed: usize| {
        json(&place.path(&format!("both/runs/slow/seed-{seed}/summary.json")))["metrics"]["test"]["accuracy"].as_f64()
    };
    let tests: Vec<f64> = (0..3).filter_map(test).collect();
    let mean = tests.iter().sum::<f64>() / 3.0;
    let sd = (tests.iter().map(|test| (test - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
    assert!(before.contains(&format!("slow</td><td>{mean:.4} ± {sd:.4}</td>")), "{before}");
    // The title and the line below: data, partition, seeds, version.
    for word in [
        "graph in 3 parts by random: 10 methods, 3 runs each",
        "seeds 0, 1, 2",
        "400 nodes",
        "laconic compare run.toml",
        env!("CARGO_PKG_VERSION"),
    ] {
        assert!(before.contains(word), "{word} in {before}");
    }
    // The first figure: points with error bars and the front, no learning curve.
    let first = figures.split("</svg>").next().expect("a figure");
    assert!(first.contains("class=\"front\"") && first.contains(" ± ") && !first.contains("class=\"curve"), "{first}");
    assert!(page.contains(">stage 2<") && page.contains(">stage 3<"));
    // What belongs to single runs is folded away.
    let open: String =
        body.split("<details>").map(|piece| piece.rsplit("</details>").next().expect("a piece")).collect();
    assert!(!open.contains("seed 1</td>") && body.contains("seed 1</td>"));
}

#[test]
fn names_in_figures_are_whole_lie_on_no_other_name_and_keep_inside() {
    let place = place();
    place.write("methods.toml", &ten_methods());
    place.json(&format!("{COMPARE} --seeds 2"));
    place.json("report both --out page.html");
    let curves = read(&place, "both/compare_curves.svg");
    for markup in
        [&read(&place, "page.html"), &curves, &read(&place, "both/compare.svg"), &read(&place, "both/compare_time.svg")]
    {
        assert_uncut(markup);
        assert_themed(markup);
    }
    for file in ["both/compare.svg", "both/compare_time.svg"] {
        let figure = read(&place, file);
        let names: Vec<Written> = texts(&figure).into_iter().filter(|text| !text.quiet).collect();
        let all: String = names.iter().map(|text| text.said.replace(' ', "")).collect();
        for name in ["synchronous", "PipeGCN", "dropout<5>&more", "BNS-GCN(10%ofboundary)", &LONG.replace(' ', "")] {
            assert!(all.contains(name), "{name} in {all}");
        }
        for (index, text) in names.iter().enumerate() {
            for other in &names[index + 1..] {
                let apart = text.x.1 <= other.x.0 || other.x.1 <= text.x.0 || (text.y - other.y).abs() >= 12.0;
                assert!(apart, "{file}: {} on {}", text.said, other.said);
            }
        }
    }
    assert!(curves.contains("class=\"curve"));
}

#[test]
fn a_runs_page_says_in_words_what_it_did_and_what_left_whom() {
    let place = place();
    let set = "--set schedule.kind=lazy --set schedule.start=mlp --set messages.forward={codec=\"quantised\",bits=4}";
    let summary = place.json(&format!("train run.toml --out run {set} --set train.epochs=30"));
    place.json("report run --out page.html");
    let page = read(&place, "page.html");
    let (words, best) = (prose(&page), summary["metrics"]["best_round"].as_u64().expect("a round"));
    let said = [
        "trained on graph, 3 parts by random",
        "The schedule was lazy",
        "features never cross",
        "90 rounds were done in 3 stages, the later ones from round 31 and 61 on",
        "Rows went out quantised, bits 4",
        &format!("The best round by validation accuracy was {best}"),
        "exactly what was predicted",
    ];
    for said in said {
        assert!(words.contains(said), "{said} in {words}");
    }
    // What worker 1 sent, added up from its ledger: scores to each of the others, and no features.
    let ledger = read(&place, "run/ledger.csv");
    let bytes = |kind: &str, to: &str| {
        let rows = ledger.lines().map(|line| line.split(',').collect::<Vec<&str>>());
        let rows = rows.filter(|row| row[1] == "1" && row[3] == kind && row[2] == to);
        rows.map(|row| row[8].parse::<f64>().expect("bytes")).sum::<f64>()
    };
    let human =
        |bytes: f64| if bytes < 1e6 { format!("{:.2} kB", bytes / 1e3) } else { format!("{:.2} MB", bytes / 1e6) };
    let (to_0, to_2) = (bytes("activations", "0"), bytes("activations", "2"));
    let row = format!(
        "<td>1</td><td class=\"words\">class scores</td><td>{}</td><td>{}</td><td></td><td>{}</td>",
        human(to_0 + to_2),
        human(to_0),
        human(to_2)
    );
    assert!(page.contains(&row), "{row}");
    assert!(!page.contains(">features</td>"));
    // Training beside validation, stages, widths because they are not the usual ones.
    for word in [">training<", ">validation<", ">stage 2<", "Values of rows by their width", "One round"] {
        assert!(page.contains(word), "{word}");
    }
    assert_uncut(&page);
    assert_themed(&page);
    place.json("train run.toml --out exact");
    place.json("report exact");
    assert!(!read(&place, "exact/report.html").contains("by their width"));
}

#[test]
fn a_runs_page_calls_classes_by_their_names() {
    let place = Place::new();
    let people: String = (0..60).map(|n| format!("p{n},{},{}\n", n % 7, ["loyal", "<gone>", "new"][n % 3])).collect();
    let calls: String = (0..120).map(|n| format!("p{},p{}\n", n % 60, (n * 7 + 3) % 60)).collect();
    place.write("people.csv", &format!("id,age,class\n{people}"));
    place.write("calls.csv", &format!("src,dst\n{calls}"));
    place.write("run.toml", &RUN.replace("graph.npz", "calls.csv"));
    let keys = "--set data.nodes_path=people.csv --set data.symmetrise=true --set data.split={train=0.5,val=0.25}";
    place.json(&format!("train run.toml --out run {keys}"));
    place.json("report run --out page.html");
    let words = prose(&read(&place, "page.html"));
    assert!(words.contains("The classes are &lt;gone&gt;, loyal, new."), "{words}");
}

#[test]
fn large_numbers_have_their_thousands_apart() {
    let place = place();
    place.json("train run.toml --out a");
    place.json("train run.toml --out b --set schedule.kind=lazy");
    for line in ["report a --out page.html", "report a b --out page.html"] {
        place.json(line);
        let words = prose(&read(&place, "page.html"));
        let numbers = words.split(|c: char| !c.is_ascii_digit() && !",.".contains(c));
        let wholes = numbers.filter_map(|number| number.split(['.', ',']).next());
        assert_eq!(wholes.filter(|digits| digits.len() > 4).collect::<Vec<&str>>(), Vec::<&str>::new(), "{words}");
        assert!(words.contains(','));
    }
}

#[test]
fn a_page_stands_alone_and_shows_every_figure_even_of_hostile_names() {
    let place = place();
    let hostile = "</svg></title><script>alert('1')</script>";
    place.write("methods.toml", &format!("[[method]]\nname = \"{hostile}\"\n[[method]]\nname = \"plain\"\n"));
    place.json(COMPARE);
    let folder = place.path("both/runs/svg-title-script-alert-1-script/seed-0");
    let timeline =
        "worker,round,phase,layer,direction,start_s,end_s\n0,2,compute,1,forward,0.1,0.25\n1,2,wait,,,0.2,0.3\n";
    std::fs::write(folder.join("timeline.csv"), timeline).expect("writable");
    let mut summary = json(&folder.join("summary.json"));
    summary["bits"] = serde_json::json!({ "8": 0.25, hostile: 0.75 });
    summary["bytes"]["predicted_by_kind"] = summary["bytes"]["by_kind"].clone();
    summary["parameters"]["digest"] = hostile.into();
    summary["notes"] = serde_json::json!([hostile]);
    summary["config"]["model"]["arch"] = hostile.into();
    std::fs::write(folder.join("summary.json"), summary.to_string()).expect("writable");
    place.json("report both --out page.html");
    std::fs::rename(&folder, place.path("alone")).expect("moved");
    place.json("report alone --out alone.html");
    let files = ["page.html", "alone.html", "both/compare.svg", "both/compare_time.svg", "both/compare_curves.svg"];
    let texts = files.map(|file| read(&place, file));
    for text in &texts {
        let foreign = text.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for forbidden in ["http://", "https://", "<script", "javascript:", "@import", "url("] {
            assert!(!foreign.contains(forbidden), "{forbidden}");
        }
        assert!(text.contains("&lt;script&gt;"));
        assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    }
    let [page, alone, ..] = texts;
    let sections = ["against bytes", "against time", "on the way", "Training loss", "by their width", "Every run"];
    for section in sections.into_iter().chain([": round 2", "<details>", "epochs = 5", "What each method sets"]) {
        assert!(page.contains(section), "{section}");
    }
    let sections =
        ["What left which worker", "Learning", "Predicted and sent", "Bytes by link", "by layer and direction"];
    for section in sections.into_iter().chain([": round 2", "epochs = 5"]) {
        assert!(alone.to_lowercase().contains(&section.to_lowercase()), "{section}");
    }
    place.json("report both/runs/plain/seed-0");
    assert!(place.path("both/runs/plain/seed-0/report.html").is_file());
    place.refused("demo --nodes 300 --epochs 3 --report nosuch/demo.html", 5, &["nosuch/demo.html"]);
    place.refused("demo --nodes 300 --epochs 3 --figure nosuch/demo.svg", 5, &["nosuch/demo.svg"]);
    let said = place.run("demo --nodes 300 --epochs 3 --report demo.html --figure demo.svg");
    assert!(said.code == 0 && said.err.contains("demo.html") && place.path("demo.html").is_file(), "{}", said.err);
    assert_uncut(&read(&place, "demo.html"));
    let figure = read(&place, "demo.svg");
    assert!(figure.starts_with("<svg") && figure.contains("lazy, scores"), "{figure}");
}

#[test]
fn broken_and_missing_files_are_named_and_nothing_panics() {
    let place = place();
    place.json("train run.toml --out run");
    std::fs::write(
        place.path("run/timeline.csv"),
        "worker,round,phase,layer,direction,start_s,end_s\n0,1,wait,0,forward,0,1\n",
    )
    .expect("writable");
    for name in ["summary.json", "metrics.jsonl", "ledger.csv", "timeline.csv", "config.toml"] {
        let path = place.path("run").join(name);
        let good = std::fs::read(&path).expect("a file");
        std::fs::write(&path, b"\xff\xfe{broken").expect("writable");
        place.refused("report run", 5, &[name]);
        let mut state = good.len() as u64;
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (at, byte) = ((state >> 33) as usize % good.len(), (state >> 24) as u8);
            let mut bad = good.clone();
            bad[at] = byte;
            std::fs::write(&path, &bad).expect("writable");
            let ran = place.run("report run");
            assert!([0, 5].contains(&ran.code), "{name} with {byte} at {at}: {}", ran.err);
        }
        std::fs::remove_file(&path).expect("it is there");
        if name != "timeline.csv" {
            place.refused("report run", 5, &[name]);
        }
        std::fs::write(&path, good).expect("writable");
    }
    place.refused("report nosuch", 5, &["nosuch"]);
    std::fs::write(place.path("run/compare.json"), "{}").expect("writable");
    place.refused("report run", 5, &["compare.json"]);
}
