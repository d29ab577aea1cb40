//! What is said of data before links of theirs are learned, at every command that meets them.

mod program;

use laconic_graph::dataset::{Dataset, Features, Labels};
use laconic_graph::given::GivenPairs;
use laconic_graph::graph::Graph;
use laconic_graph::write::write_interchange;
use program::Place;

const RUN: &str = "data = { path = \"graph.npz\" }\npartition = { parts = 3 }\nmodel = { hidden = 8 }\n\
    task = { kind = \"link_prediction\", split = \"given\", eval_negatives = 10 }\ntrain = { epochs = 2 }\n";

/// Edges and what they are held out for, as a file; nodes are of two classes.
fn save(place: &Place, nodes: usize, edges: &[(u32, u32)], role: impl Fn(u32, u32) -> u8) {
    save_with(place, nodes, edges, role, None);
}

fn save_with(
    place: &Place,
    nodes: usize,
    edges: &[(u32, u32)],
    role: impl Fn(u32, u32) -> u8,
    negatives: Option<[GivenPairs<u32>; 2]>,
) {
    let mut graph = Graph::from_edges(nodes, edges).expect("edges");
    let into = |target: usize| graph.in_neighbours(target).iter().map(move |&source| (source, target as u32));
    let held: Vec<u8> = (0..nodes).flat_map(into).map(|(source, target)| role(source, target)).collect();
    graph.data.held = held.iter().any(|&role| role > 0).then_some(held);
    let labels = Labels::Single { classes: 2, values: (0..nodes).map(|node| (node % 2) as i32).collect() };
    let features = Features::Dense { columns: 2, values: (0..2 * nodes).map(|at| (at % 7) as f32).collect() };
    let dataset = Dataset::new("graph", graph, features, labels, vec![]).expect("a dataset");
    let dataset = Dataset { negatives, ..dataset };
    write_interchange(&place.path("graph.npz"), &dataset).expect("a file");
}

/// What every command that meets the data says of them before anything runs.
fn said(place: &Place) -> Vec<(String, String)> {
    let commands = [
        "data check graph.npz",
        "plan run.toml",
        "train run.toml --out run --force",
        "train run.toml --out run --force --set partition.parts=1",
        "train run.toml --out run --force --set transport.kind=processes",
    ];
    let run = |command: &str| {
        let ran = place.run(command);
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        (command.to_owned(), if command.starts_with("data") { ran.out } else { ran.err })
    };
    commands.map(run).into()
}

/// Of a ring in both directions with chords one way, a test edge in three keeps its other direction.
#[test]
fn held_out_edges_whose_other_direction_stays_are_counted_by_every_command() {
    let place = Place::new();
    place.write("run.toml", RUN);
    let edges: Vec<(u32, u32)> =
        (0..60).flat_map(|v| [(v, (v + 1) % 60), ((v + 1) % 60, v), (v, (v + 7) % 60)]).collect();
    let role = |source: u32, target: u32| match (source % 4, (target + 60 - source) % 60) {
        (1, 1) => 1,
        (2, 1) => 2,
        (2, 59) if source % 8 == 2 => 2,
        (0, 7) => 2,
        _ => 0,
    };
    save(&place, 60, &edges, role);
    // By the definition: of each held-out edge its other direction is looked for.
    let of = |split: u8| {
        let held = || edges.iter().filter(move |&&(source, target)| role(source, target) == split);
        let leaks = held().filter(|&&(s, t)| edges.contains(&(t, s)) && role(t, s) == 0).count();
        (leaks, held().count())
    };
    let ((val, vals), (test, tests)) = (of(1), of(2));
    assert!(val > 0 && test > 0 && test < tests);
    let words = format!("{val} of {vals} validation edges and {test} of {tests} test edges have their other direction");
    for (command, said) in said(&place) {
        assert_eq!(said.matches(&words).count(), 1, "{command}: {said}");
    }
    let summary = place.json("train run.toml --out run --force");
    assert!(summary["notes"].to_string().contains(&words), "{}", summary["notes"]);
    place.json("partition graph.npz --parts 3 --method random --out parts");
    place.write("parts.toml", &RUN.replace("graph.npz", "parts").replace("partition = { parts = 3 }\n", ""));
    for command in ["plan parts.toml", "train parts.toml --out run --force --set transport.kind=processes"] {
        assert!(place.run(command).err.contains(&words), "{command}");
    }
    // A drawn split holds out both directions, and what has both held out is nothing to speak of.
    let drawn = "task.split={val=0.2,test=0.2}";
    let ran = place.run(&format!("train run.toml --out run --force --set {drawn}"));
    assert!(ran.code == 0 && !ran.err.contains("other direction"), "{}", ran.err);
    save(&place, 60, &edges, |source, target| u8::from(source.min(target) % 5 == 1) * 2);
    for (command, said) in self::said(&place) {
        assert!(!said.contains("other direction"), "{command}: {said}");
    }
}

/// What 30 people know of 90 things, one way and both ways, beside ten nodes that nobody knows; then with one edge
/// among people.
#[test]
fn a_graph_of_two_sides_is_said_to_be_one_where_links_are_learned_and_nodes_have_no_types() {
    let place = Place::new();
    place.write("run.toml", &RUN.replace("split = \"given\"", "split = { val = 0.1, test = 0.2 }"));
    let one_way: Vec<(u32, u32)> =
        (0..30).flat_map(|person| (0..9).map(move |at| (person, 30 + (person * 3 + at) % 90))).collect();
    let back: Vec<(u32, u32)> = one_way.iter().map(|&(a, b)| (b, a)).collect();
    let both = [&one_way[..], &back].concat();
    // Of 130 targets that are drawn in place of a thing 90 are things: half of such pairs are right by chance, all
    // others by the side alone, 1 - 90 / 130 / 2. In both directions it is the mean of that and of 1 - 30 / 130 / 2.
    for (edges, area) in [(&one_way, "0.65"), (&both, "0.77")] {
        save(&place, 130, edges, |_, _| 0);
        for (command, said) in said(&place) {
            let words = ["edges join nodes of two sides, of 30 and 90", "node_type", &format!("a roc_auc of {area}")];
            assert!(words.iter().all(|words| said.matches(words).count() == 1), "{command}: {said}");
        }
        let parts = format!("parts-{}", edges.len());
        place.json(&format!("partition graph.npz --parts 3 --method random --out {parts}"));
        let run = std::fs::read_to_string(place.path("run.toml")).expect("a file");
        place.write("parts.toml", &run.replace("graph.npz\" }\npartition = { parts = 3 }", &format!("{parts}\" }}")));
        let trainers = "schedule = { kind = \"averaging\", interval = \"2 steps\", limit = \"4 steps\" }\n";
        let own = run.replace("eval_negatives", "negatives = \"local\", eval_negatives");
        place.write("trainers.toml", &format!("{own}{trainers}"));
        for command in ["train parts.toml --out run --force", "train trainers.toml --out run --force"] {
            let ran = place.run(command);
            assert!(ran.code == 0 && ran.err.contains("of two sides"), "{command}: {}", ran.err);
        }
    }
    // Classes of nodes have no pairs.
    place.write(
        "nodes.toml",
        "data = { path = \"graph.npz\", split = { train = 0.5, val = 0.2 } }\ntrain = { epochs = 2 }\n",
    );
    assert!(!place.run("plan nodes.toml").err.contains("two sides"));
    save(&place, 130, &[&both[..], &[(3, 4)]].concat(), |_, _| 0);
    for (command, said) in said(&place) {
        assert!(!said.contains("two sides"), "{command}: {said}");
    }
}

/// Pools of 3 and 4 pairs beside a ring: with drawn pairs nobody reads them, and that is said; nothing is of who does.
#[test]
fn pairs_that_data_give_and_nobody_reads_are_counted_by_every_command() {
    let place = Place::new();
    let edges: Vec<(u32, u32)> = (0..60).map(|v| (v, (v + 1) % 60)).collect();
    let role = |source: u32, _: u32| [0, 0, 1, 2][source as usize % 4];
    let pool = |size: u32| GivenPairs {
        sources: vec![0; size as usize],
        targets: (2..2 + size).collect(),
        ..GivenPairs::default()
    };
    save_with(&place, 60, &edges, role, Some([pool(3), pool(4)]));
    for (drawn, count) in [("10", 1), ("\"given\"", 0)] {
        place.write("run.toml", &RUN.replace("eval_negatives = 10", &format!("eval_negatives = {drawn}")));
        for (command, said) in said(&place).into_iter().skip(1) {
            let words = "the 7 pairs that these data give as no edges";
            assert_eq!(said.matches(words).count(), count, "{command}, {drawn}: {said}");
        }
    }
    let ran = place.run("predict run --data graph.npz --out scores.csv");
    assert!(ran.code == 0 && !ran.err.contains("7 pairs"), "{}", ran.err);
}
