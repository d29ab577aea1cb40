//! Sites build their parts from their own tables, and nobody holds the whole; trained together they come to what one
//! worker comes to that does. The whole is made here from the same rows, by nothing that builds parts.

use std::path::{Path, PathBuf};

use laconic_graph::build::{BuildOptions, Duplicates, build_graph};
use laconic_graph::dataset::{Dataset, Features, Ids, Labels, Split};
use laconic_graph::limits::Limits;
use laconic_graph::part::{Part, open_part, write_part};
use laconic_graph::site::{Built, Schema, build, id_on_the_wire};
use laconic_key::{Key, Purpose};
use laconic_train::forecast::costs::forecast;
use laconic_train::plan::Members;
use laconic_train::run::source::Source;
use laconic_train::run::verify::relative_difference;
use laconic_train::run::{Options, Outcome, run_threads, run_worker};
use laconic_train::{Config, Data, plan};
use laconic_wire::transport::threads::threads;
use laconic_wire::{Kind, Ledger, Rank};

use crate::fixture::{config, draw, folder};
use crate::ledger_is_prediction::assert_exact;
use crate::one_is_many::SCHEDULES;
use crate::same_bits::bits;

const SITES: [&str; 3] = ["north", "south", "west"];
const EACH: usize = 40;
const TOLERANCE: f64 = 1e-4;

/// A patient: of which site, and what the table says.
struct Row {
    site: usize,
    age: Option<f64>,
    ward: Option<usize>,
    smokes: bool,
    outcome: Option<usize>,
}

const WARDS: [&str; 3] = ["a", "b", "c"];
const CLASSES: [&str; 2] = ["home", "ward"];

/// Patients of three sites, and edges between any of them with weights.
struct World {
    rows: Vec<Row>,
    edges: Vec<(usize, usize, f32)>,
}

impl World {
    fn new() -> World {
        let row = |node: usize| {
            let of = |what: u64| draw(90 + what).with(node as u64);
            let outcome = (of(0).below(12) > 0).then(|| usize::from(of(1).unit() < 0.5));
            let age = 40.0 + 10.0 * outcome.unwrap_or(0) as f64 + (of(2).unit() * 200.0).round() / 10.0;
            Row {
                site: node / EACH,
                age: (of(3).below(9) > 0).then_some(age),
                ward: (of(4).below(9) > 0).then(|| of(5).below(3) as usize),
                smokes: of(6).unit() < 0.3,
                outcome,
            }
        };
        let rows: Vec<Row> = (0..3 * EACH).map(row).collect();
        let edge = |number: u64| {
            let of = |what: u64| draw(97 + what).with(number).below(rows.len() as u64) as usize;
            (of(0), of(1), 0.5 + draw(99).with(number).below(8) as f32 / 4.0)
        };
        let mut edges: Vec<_> = (0..500).map(edge).collect();
        // Nobody of the west is known in the north: there is nothing between these two.
        let between = |&(a, b, _): &(usize, usize, f32)| rows[a].site + rows[b].site != 2 || rows[a].site == 1;
        edges.retain(between);
        World { rows, edges }
    }

    fn id(node: usize) -> String {
        format!("p{:03}", node * 7 % 120)
    }

    /// The tables of a site: its own rows, and edges with one end at least of its own.
    fn tables(&self, place: &Path, site: usize) -> (PathBuf, PathBuf) {
        let mut nodes = "age,patient,ward,smokes,note,outcome\n".to_owned();
        for (node, row) in self.rows.iter().enumerate().filter(|(_, row)| row.site == site) {
            let age = row.age.map_or(String::new(), |age| age.to_string());
            let (ward, outcome) = (row.ward.map_or("", |ward| WARDS[ward]), row.outcome.map_or("", |of| CLASSES[of]));
            // Some own ids have the prefix.
            let id = if node % 3 == 0 { format!("{}/{}", SITES[site], World::id(node)) } else { World::id(node) };
            nodes += &format!("{age},{id},{ward},{},free text {node},{outcome}\n", u8::from(row.smokes));
        }
        let mut edges = "weight,from,to\n".to_owned();
        for &(a, b, weight) in &self.edges {
            let end = |node: usize| match self.rows[node].site {
                of if of == site => World::id(node),
                of => format!("{}/{}", SITES[of], World::id(node)),
            };
            if [a, b].iter().any(|&node| self.rows[node].site == site) {
                edges += &format!("{weight},{},{}\n", end(a), end(b));
            }
        }
        let (nodes_path, edges_path) = (place.join(format!("n{site}.csv")), place.join(format!("e{site}.csv")));
        std::fs::write(&nodes_path, nodes).expect("written");
        std::fs::write(&edges_path, edges).expect("written");
        (nodes_path, edges_path)
    }

    fn built(&self, place: &Path, schema: &Schema) -> Vec<Built> {
        let of_site = |site: usize| {
            let (nodes, edges) = self.tables(place, site);
            build(schema, SITES[site], &nodes, &[edges], &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
        };
        (0..SITES.len()).map(of_site).collect()
    }

    /// Who trains, validates and tests, from the words of the schema.
    fn roles(&self) -> Vec<u8> {
        let role = |(node, row): (usize, &Row)| {
            let drawn = Key::new(5, Purpose::Split).with(id_on_the_wire(SITES[row.site], &World::id(node))).unit();
            match (row.outcome, drawn) {
                (None, _) => 0,
                (_, ..0.6) => Split::TRAIN,
                (_, ..0.8) => Split::VAL,
                _ => Split::TEST,
            }
        };
        self.rows.iter().enumerate().map(role).collect()
    }

    /// The whole graph, as nobody has it.
    fn whole(&self, symmetrise: bool, weighted: bool) -> Dataset {
        let features = self.rows.iter().flat_map(|row| {
            let age = (f64::from(row.age.unwrap_or(50.0) as f32) - 52.5) / 8.0;
            let ward = |of: usize| f32::from(u8::from(row.ward == Some(of)));
            [age as f32, ward(0), ward(1), ward(2), f32::from(u8::from(row.smokes))]
        });
        let (sources, targets) = self.edges.iter().map(|&(a, b, _)| (a as u32, b as u32)).unzip();
        let weights = weighted.then(|| self.edges.iter().map(|edge| edge.2).collect::<Vec<f32>>());
        let options = BuildOptions { symmetrise, keep_self_loops: false, duplicates: Duplicates::Max };
        let (graph, _) = build_graph(self.rows.len(), sources, targets, weights, options).expect("sound edges");
        let labels = self.rows.iter().map(|row| row.outcome.map_or(-1, |class| class as i32)).collect();
        Dataset {
            name: "whole".to_owned(),
            graph,
            features: Features::Dense { columns: 5, values: features.collect::<Vec<f32>>().into() },
            exact: Default::default(),
            labels: Labels::Single { classes: 2, values: labels },
            splits: vec![Split { roles: self.roles() }],
            ids: Ids::Row,
            about: Default::default(),
            negatives: None,
        }
    }
}

fn schema(symmetrise: bool, weighted: bool) -> Schema {
    let text = format!(
        "version = 1\nname = 'stroke'\nsites = ['north', 'south', 'west']\n[nodes]\nid = 'patient'\n\
         label = {{ column = 'outcome', classes = ['home', 'ward'] }}\n\
         split = {{ train = 0.6, val = 0.2, seed = 5 }}\n\
         features = [{{ column = 'age', number = {{ mean = 52.5, sd = 8.0, missing = 50.0 }} }},\n\
         {{ column = 'ward', one_hot = ['a', 'b', 'c'] }}, {{ column = 'smokes', flag = true }}]\n\
         [edges]\nsource = 'from'\ntarget = 'to'\nsymmetrise = {symmetrise}\n{}",
        if weighted { "weight = 'weight'" } else { "" }
    );
    Schema::parse(&text).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The parts of all sites put together in one folder, and each in a folder of its own.
fn folders(place: &Path, built: &[Built]) -> (PathBuf, Vec<PathBuf>) {
    let all = place.join("all");
    let own: Vec<PathBuf> = SITES.iter().map(|site| place.join(site)).collect();
    for (built, own) in built.iter().zip(&own) {
        write_part(&all, &built.part, &built.provenance).expect("a folder of all parts");
        write_part(own, &built.part, &built.provenance).expect("a folder of one part");
    }
    (all, own)
}

fn on(keys: &[&str], path: &Path) -> Config {
    config(&[keys, &["model.dropout=0.0", &format!("data.path={:?}", path.display().to_string())]].concat())
}

fn source(config: &Config) -> Source {
    Source::open(&Members::default(), config, None).expect("parts")
}

fn close(found: &Outcome, expected: &Outcome, what: &str) {
    let difference = relative_difference(&found.trained.last, &expected.trained.last);
    assert!(difference <= TOLERANCE, "{what}: {difference:.1e}");
    let figures = |outcome: &Outcome| {
        let scores = outcome.trained.scores.clone();
        [scores.train, scores.val, scores.test].map(|figures| figures.into_iter().collect::<Vec<_>>())
    };
    for (found, expected) in figures(found).iter().flatten().zip(figures(expected).iter().flatten()) {
        assert_eq!(found.0, expected.0, "{what}");
        let [a, b] = [found.1, expected.1].map(|figure| figure.unwrap_or(f64::NAN));
        assert!((a - b).abs() <= TOLERANCE * b.abs().max(1.0), "{what}: {} is {a}, and {b} on the whole", found.0);
    }
}

#[test]
fn parts_that_sites_built_train_to_the_parameters_and_figures_of_one_worker_on_the_whole() {
    let world = World::new();
    for (symmetrise, weighted) in [(true, false), (false, false), (true, true), (false, true)] {
        let place = folder();
        let (all, _) = folders(place.path(), &world.built(place.path(), &schema(symmetrise, weighted)));
        let whole = world.whole(symmetrise, weighted);
        for arch in ["model.arch=gcn", "model.arch=sage"] {
            for schedule in SCHEDULES {
                let keys = [schedule, &[arch, "train.epochs=10", "train.eval_every=0"]].concat();
                let what = format!("{keys:?}, both ways: {symmetrise}, weights: {weighted}");
                let config = on(&keys, &all);
                let parts = source(&config).all().expect("parts");
                let forecasts = forecast(&Members::default(), &config, &parts, Ledger::new).expect("a forecast");
                let outcomes = run_threads(&config, source(&config), Options::default()).expect("a run");
                assert_exact(&outcomes, &what);
                for (outcome, (_, predicted, _)) in outcomes.iter().zip(&forecasts.workers) {
                    assert!(outcome.sent == *predicted, "{what}: rank {}", outcome.rank);
                }
                close(&outcomes[0], &crate::fixture::run(&config, &whole, 1)[0], &what);
            }
        }
    }
}

/// One process a site, each with its own folder, where counts of the whole are known to nobody.
#[test]
fn sites_with_a_folder_each_train_to_the_bits_of_all_parts_together_and_send_no_more_than_each_foresaw() {
    let world = World::new();
    for symmetrise in [true, false] {
        let place = folder();
        let (all, own) = folders(place.path(), &world.built(place.path(), &schema(symmetrise, false)));
        for schedule in SCHEDULES {
            let together = run_threads(&on(schedule, &all), source(&on(schedule, &all)), Options::default());
            let apart: Vec<Outcome> = std::thread::scope(|scope| {
                let one = |(rank, end): (usize, _)| {
                    let config = on(schedule, &own[rank]);
                    let work = move || run_worker(&config, Box::new(end), source(&config), Options::default());
                    scope.spawn(move || work().unwrap_or_else(|error| panic!("{error}")))
                };
                let all: Vec<_> = threads(3, on(schedule, &all).deadline()).into_iter().enumerate().map(one).collect();
                all.into_iter().map(|process| process.join().expect("no process panics")).collect()
            });
            assert_eq!(bits(&apart), bits(&together.expect("a run")), "{schedule:?}");
            for outcome in &apart {
                assert!(outcome.sent == outcome.predicted, "{schedule:?}");
                let costs = plan(&Members::default(), &on(schedule, &own[outcome.rank as usize]), Data::Configured);
                let (shapes, bound, _) = &costs.expect("a bound").workers[0];
                assert_eq!(shapes.rank, outcome.rank);
                let [sent, most] = [&outcome.sent, bound].map(Ledger::totals_by_kind);
                for kind in Kind::ALL {
                    assert!(sent[kind].framed <= most[kind].framed, "{schedule:?}: {}", kind.name());
                }
            }
        }
    }
}

/// Where edges lead one way an owner is told which of its nodes are needed; nobody else hears of them.
#[test]
fn an_id_is_told_to_its_owner_alone() {
    let world = World::new();
    for symmetrise in [true, false] {
        let place = folder();
        let built = world.built(place.path(), &schema(symmetrise, false));
        let (all, _) = folders(place.path(), &built);
        let config = on(&["model.arch=gcn", "train.epochs=0", "train.eval_every=0"], &all);
        let outcomes = run_threads(&config, source(&config), Options::default()).expect("a run");
        let to = |from: usize, peer: u32| {
            let ledger = outcomes[from].sent.iter();
            let control = ledger.filter(|(entry, _)| entry.peer == Rank(peer) && entry.kind == Kind::Control);
            control.map(|(_, count)| count.payload).sum::<u64>()
        };
        // North and west need nothing of each other.
        assert!(built[0].from.iter().all(|from| from.site != "west"), "{symmetrise}");
        // Digests tell whether both sites know the same edges; only where they do not, ids follow.
        assert_eq!(to(0, 1) > to(0, 2), !symmetrise, "where both directions are there, owners know");
    }
}

#[test]
fn a_split_is_the_same_whoever_draws_it_and_follows_from_ids_alone() {
    let world = World::new();
    let place = folder();
    let (built, roles) = (world.built(place.path(), &schema(true, false)), world.roles());
    let mut seen = 0;
    for built in &built {
        let Ids::Strings(ids) = &built.part.ids else { panic!("ids are texts") };
        for (id, role) in ids.iter().zip(&built.part.roles) {
            let is_it = |node: &usize| format!("{}/{}", SITES[world.rows[*node].site], World::id(*node)) == *id;
            let node = (0..world.rows.len()).find(is_it).expect("a node");
            assert_eq!(*role, roles[node], "{id}");
            seen += 1;
        }
    }
    assert_eq!(seen, world.rows.len());
    for wanted in [Split::TRAIN, Split::VAL, Split::TEST] {
        assert!(roles.iter().filter(|&&role| role == wanted).count() > 10);
    }
}

#[test]
fn what_follows_from_counts_of_all_is_refused_where_one_part_is_there_and_runs_where_all_are() {
    let world = World::new();
    let place = folder();
    let (all, own) = folders(place.path(), &world.built(place.path(), &schema(true, false)));
    for (keys, said) in [(&["batch.size=16"][..], "batch.size = 16"), (&["task.kind=link_prediction"], "task.kind")] {
        let refused = plan(&Members::default(), &on(keys, &own[1]), Data::Configured).map(|_| ());
        let error = refused.expect_err("nobody has counted").to_string();
        assert!(error.contains(said) && error.contains("how many nodes all sites have"), "{error}");
    }
    let outcomes =
        run_threads(&on(&["batch.size=16"], &all), source(&on(&["batch.size=16"], &all)), Options::default());
    outcomes.expect("all parts are there");
}

#[test]
fn an_edge_from_a_node_that_its_site_has_not_is_an_error_that_names_both_sites() {
    let world = World::new();
    let place = folder();
    let schema = schema(false, false);
    let mut built = world.built(place.path(), &schema);
    let (nodes, edges) = world.tables(place.path(), 0);
    let mut text = std::fs::read_to_string(&edges).expect("edges");
    text += "1,south/p999,p000\n";
    std::fs::write(&edges, text).expect("written");
    built[0] = build(&schema, "north", &nodes, &[edges], &Limits::default()).expect("a part");
    let parts: Vec<Part> = built.into_iter().map(|built| built.part).collect();
    let error = run_threads(&config(&[]), Source::of(parts), Options::default()).map(|_| ()).expect_err("no such node");
    let error = error.to_string();
    assert!(error.contains("north") && error.contains("south") && error.contains("1 of"), "{error}");
}

#[test]
fn a_part_is_read_as_it_was_written() {
    let world = World::new();
    let place = folder();
    let built = world.built(place.path(), &schema(true, true));
    let (_, own) = folders(place.path(), &built);
    for (built, own) in built.iter().zip(&own) {
        assert_eq!(open_part(own, built.part.index).expect("a part"), built.part);
    }
}
