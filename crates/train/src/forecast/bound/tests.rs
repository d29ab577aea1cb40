//! Small networks whose work is counted by hand.

use laconic_graph::part::{GlobalCounts, cut};
use laconic_graph::synth::{SbmSpec, sbm};

use super::*;
use crate::config::Config;

/// 100 nodes of which 60 are for training, 300 edges, 10 features, 3 classes.
fn counts() -> GlobalCounts {
    GlobalCounts { nodes: 100, edges: 300, train: 60, val: 20, test: 20, columns: 10, classes: 3, ..Default::default() }
}

/// Two layers of hidden width 8 without dropout and norm, and what is set besides.
fn items(set: &[&str]) -> Result<Vec<Item>> {
    items_within(set, Vec::new())
}

/// The same where training nodes read so much.
fn items_within(set: &[&str], within: Vec<Count>) -> Result<Vec<Item>> {
    let small = ["model.layers=2", "model.hidden=8", "model.dropout=0", "model.norm=none"];
    let set: Vec<String> = small.iter().chain(set).map(|text| text.to_string()).collect();
    let config = Config::parse("", &set)?;
    let plan = Plan::of(&config, &counts())?;
    let edges = if plan.self_loops { 400 } else { 300 };
    of(&plan, &Seen { all: Count { nodes: 100, edges }, train: 60, within })
}

/// The work of a unit of the first stage at a moment: flops, bytes of messages that are gathered with their width,
/// bytes streamed.
fn at(items: &[Item], unit: usize, moment: Moment) -> (f64, Option<(usize, f64)>, f64) {
    let (mut flops, mut gathered, mut streamed) = (0.0, None, 0.0);
    for item in items.iter().filter(|item| (item.stage, item.unit, item.moment) == (0, unit, moment)) {
        match item.work {
            Work::Products => flops += item.amount,
            // Scores come behind messages.
            Work::Gathered(width) => gathered = gathered.or(Some((width, item.amount))),
            Work::Streamed => streamed += item.amount,
        }
    }
    (flops, gathered, streamed)
}

/// 10 → 8 and 8 → 3, the first on a kept fold; 100 self-loops; the second layer folds products, which are narrower.
#[test]
fn gcn_by_hand() {
    let items = items(&["model.arch=gcn"]).expect("a plan");
    assert_eq!(at(&items, 0, Moment::Forward), (2.0 * 100.0 * 80.0, None, 4.0 * 100.0 * 16.0));
    assert_eq!(at(&items, 0, Moment::Backward), (2.0 * 100.0 * 80.0, None, 4.0 * 100.0 * 24.0));
    let fold = Some((3, 4.0 * (400.0 * 3.0 + 100.0 * 3.0 + 400.0)));
    assert_eq!(at(&items, 1, Moment::Forward), (2.0 * 100.0 * 24.0, fold, 0.0));
    assert_eq!(at(&items, 1, Moment::Backward), (2.0 * 2.0 * 100.0 * 24.0, fold, 0.0));
    // The loss over 3 scores a row, and a step of 88 + 27 parameters.
    assert_eq!(at(&items, 1, Moment::Step), (0.0, None, 4.0 * (100.0 * 6.0 + 3.0 * 115.0)));
}

/// The same without self-loops, with two matrices a layer and a norm. Dropout of inputs is no pass of its own.
#[test]
fn sage_by_hand() {
    let items = items(&["model.arch=sage", "model.dropout=0.5", "model.norm=layer"]).expect("a plan");
    assert_eq!(at(&items, 0, Moment::Forward), (2.0 * 100.0 * 160.0, None, 4.0 * 100.0 * 16.0));
    assert_eq!(at(&items, 0, Moment::Backward), (2.0 * 100.0 * 160.0, None, 4.0 * 100.0 * 24.0));
    let fold = Some((3, 4.0 * (300.0 * 3.0 + 100.0 * 3.0 + 300.0)));
    assert_eq!(at(&items, 1, Moment::Forward), (2.0 * 100.0 * 48.0, fold, 0.0));
    assert_eq!(at(&items, 1, Moment::Backward), (2.0 * 2.0 * 100.0 * 48.0, fold, 0.0));
}

/// Perceptrons 10 → 8 → 8 and 8 → 8 → 3: of the first one's inner matrix the gradient goes on, of its outer one it does
/// not. Folds are as wide as what comes in.
#[test]
fn gin_by_hand() {
    let items = items(&["model.arch=gin"]).expect("a plan");
    assert_eq!(at(&items, 0, Moment::Forward).0, 2.0 * 100.0 * (80.0 + 64.0));
    assert_eq!(at(&items, 0, Moment::Backward).0, 2.0 * 100.0 * (80.0 + 2.0 * 64.0));
    assert_eq!(at(&items, 0, Moment::Forward).1, None);
    let last = items.iter().filter(|item| item.unit == 1 && item.work == Work::Products);
    let last: Vec<f64> = last.map(|item| item.amount).collect();
    assert_eq!(last, [2.0 * 100.0 * (64.0 + 24.0), 4.0 * 100.0 * (64.0 + 24.0)]);
    let fold = Some((8, 4.0 * (300.0 * 8.0 + 100.0 * 8.0 + 300.0)));
    assert_eq!((at(&items, 1, Moment::Forward).1, at(&items, 1, Moment::Backward).1), (fold, fold));
}

/// Two heads of 4 columns, then one of 3: a matrix and two vectors a layer, folds in both directions everywhere, since
/// messages have parameters. Two scores an edge, then one: halves forward, three values each backward, and each
/// gradient written and read.
#[test]
fn gat_by_hand() {
    let items = items(&["model.arch=gat", "model.heads=2"]).expect("a plan");
    let of_first = Some((8, 4.0 * (400.0 * 8.0 + 100.0 * 8.0 + 400.0)));
    assert_eq!(at(&items, 0, Moment::Forward), (2.0 * 100.0 * (80.0 + 16.0), of_first, 4.0 * 100.0 * 16.0));
    assert_eq!(
        at(&items, 0, Moment::Backward),
        (2.0 * 100.0 * (80.0 + 32.0), of_first, 4.0 * (100.0 * 24.0 + 400.0 * 2.0 * 2.0))
    );
    let of_second = Some((3, 4.0 * (400.0 * 3.0 + 100.0 * 3.0 + 400.0)));
    assert_eq!(at(&items, 1, Moment::Forward), (2.0 * 100.0 * (24.0 + 6.0), of_second, 0.0));
    assert_eq!(at(&items, 1, Moment::Backward), (4.0 * 100.0 * (24.0 + 6.0), of_second, 4.0 * 400.0 * 2.0));
    let scores = |unit, moment, width| {
        let is = |item: &&Item| (item.unit, item.moment, item.work) == (unit, moment, Work::Gathered(width));
        items.iter().find(is).map(|item| item.amount)
    };
    for (unit, heads) in [(0, 2), (1, 1)] {
        let bytes = 4.0 * 400.0 * heads as f64;
        assert_eq!(scores(unit, Moment::Forward, heads), Some(bytes));
        assert_eq!(scores(unit, Moment::Backward, heads), Some(3.0 * bytes));
    }
}

/// A lazy stage's round reads kept folds of the 60 training rows alone: a layer 10 → 8 and a classifier 8 → 3.
#[test]
fn lazy_stages_run_over_training_rows() {
    let items = items(&["model.arch=gcn", "schedule.kind=lazy"]).expect("a plan");
    assert_eq!(items.iter().map(|item| item.stage).max(), Some(1));
    assert!(items.iter().all(|item| !matches!(item.work, Work::Gathered(_))), "{items:?}");
    assert_eq!(at(&items, 0, Moment::Forward), (2.0 * 60.0 * 80.0, None, 4.0 * 60.0 * 16.0));
    assert_eq!(at(&items, 1, Moment::Backward).0, 4.0 * 60.0 * 24.0);
}

#[test]
fn a_fold_that_is_not_kept_is_gathered_forward_alone() {
    let items = items(&["model.arch=gin", "schedule.cache_inputs=false"]).expect("a plan");
    let fold = Some((10, 4.0 * (300.0 * 10.0 + 100.0 * 10.0 + 300.0)));
    assert_eq!((at(&items, 0, Moment::Forward).1, at(&items, 0, Moment::Backward).1), (fold, None));
}

#[test]
fn rounds_of_another_kind_are_refused() {
    for (set, words) in [
        ("batch.size=10", "batch.size"),
        ("task.kind=link_prediction", "task.kind"),
        ("schedule.kind=averaging", "schedule.kind"),
    ] {
        let refused = items(&[set, "partition.parts=1"]).expect_err(set).to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

/// A maximum over messages of width 8 in the second layer: forward each edge's is read, backward the gradient of folds
/// and whose their values were are read and the gradient of messages is written, for 100 rows.
#[test]
fn the_adjoint_of_a_maximum_goes_to_what_was_taken() {
    let items = items(&["model.arch=sage", "model.aggregator=max"]).expect("a plan");
    let fold = Some((8, 4.0 * (300.0 * 8.0 + 100.0 * 8.0 + 300.0)));
    assert_eq!(at(&items, 1, Moment::Forward).1, fold);
    assert_eq!((at(&items, 1, Moment::Backward).1, at(&items, 1, Moment::Backward).2), (None, 4.0 * 100.0 * 24.0));
}

/// The last layer outputs the 60 training rows, into which 250 of the edges go; the first all, since these read all.
#[test]
fn rows_that_nobody_reads_are_no_work() {
    let within = vec![Count { nodes: 60, edges: 250 }];
    let items = items_within(&["model.arch=gcn"], within).expect("a plan");
    assert_eq!(at(&items, 0, Moment::Forward), (2.0 * 100.0 * 80.0, None, 4.0 * 100.0 * 16.0));
    let fold = |rows: f64| Some((3, 4.0 * (250.0 * 3.0 + rows * 3.0 + 250.0)));
    assert_eq!(at(&items, 1, Moment::Forward), (2.0 * 60.0 * 24.0, fold(60.0), 0.0));
    assert_eq!(at(&items, 1, Moment::Backward), (2.0 * 2.0 * 60.0 * 24.0, fold(100.0), 0.0));
    assert_eq!(at(&items, 1, Moment::Step), (0.0, None, 4.0 * (60.0 * 6.0 + 3.0 * 115.0)));
}

/// Edges that training does not see are counted by none: those of other nodes than training nodes, those between parts.
#[test]
fn what_training_does_not_see_is_no_work() {
    let dataset = sbm(&SbmSpec { nodes: 60, classes: 3, features: 4, seed: 3, ..SbmSpec::default() }).expect("a graph");
    let owner = |node: usize| (node % 2) as u32;
    let owners: Vec<u32> = (0..60).map(owner).collect();
    let parts = cut(&dataset, Some(0), &owners, 2).expect("parts");
    let mut trains = [false; 60];
    for (part, row) in parts.iter().flat_map(|part| (0..part.rows()).map(move |row| (part, row))) {
        trains[part.nodes[row] as usize] = part.roles[row] & Split::TRAIN != 0;
    }
    let edges: Vec<[usize; 2]> =
        (0..60).flat_map(|to| dataset.graph.in_neighbours(to).iter().map(move |&from| [from as usize, to])).collect();
    let count = |keep: &dyn Fn([usize; 2]) -> bool| edges.iter().filter(|edge| keep(**edge)).count() as u64;
    let train = trains.iter().filter(|trains| **trains).count() as u64;
    let is_own = |[from, to]: [usize; 2]| owner(from) == owner(to);
    let is_among = |[from, to]: [usize; 2]| trains[from] && trains[to];
    assert!((1..60).contains(&train) && count(&is_own) > 0 && count(&is_among) < count(&|_| true));
    let both = |edge| is_own(edge) && is_among(edge);
    type IsSeen<'a> = &'a dyn Fn([usize; 2]) -> bool;
    let cases: [(&[&str], u64, IsSeen<'_>); 5] = [
        (&[], 60, &|_| true),
        (&["data.inductive=true"], train, &is_among),
        (&["messages.selection=none"], 60, &is_own),
        (&["messages.selection=boundary_sample"], 60, &is_own),
        (&["data.inductive=true", "messages.selection=none"], train, &both),
    ];
    for (set, nodes, is_seen) in cases {
        for (arch, loops) in [("sage", 0), ("gcn", 1)] {
            let arch = format!("model.arch={arch}");
            let set: Vec<String> =
                set.iter().map(|text| (*text).to_owned()).chain([arch, "partition.parts=2".into()]).collect();
            let plan = Plan::of(&Config::parse("", &set).expect("keys"), &parts[0].global).expect("a plan");
            let seen = Seen::of(&plan, &parts);
            let all = Count { nodes, edges: count(is_seen) + loops * nodes };
            assert_eq!((seen.all, seen.train), (all, train), "{set:?}");
            // Whoever is read by one that is there already is there, too.
            let edges_seen: Vec<[usize; 2]> = edges.iter().copied().filter(|edge| is_seen(*edge)).collect();
            let mut is_there = trains;
            for within in &seen.within {
                let nodes = is_there.iter().filter(|is| **is).count() as u64;
                let edges = count(&|edge| is_seen(edge) && is_there[edge[1]]) + loops * nodes;
                assert_eq!(*within, Count { nodes, edges }, "{set:?}");
                let before = is_there;
                let read = edges_seen.iter().filter(|[_, to]| before[*to]);
                read.for_each(|[from, _]| is_there[*from] = true);
            }
            assert!(!seen.within.is_empty());
        }
    }
}
