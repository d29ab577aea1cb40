//! The assigner of bit-widths at work: what it knows of rows and links decides what they get, and a run reports it.

use std::collections::BTreeMap;
use std::time::Duration;

use laconic_graph::plan::{HaloPlan, Link};
use laconic_nn::Matrix;
use laconic_train::config::ramp::Reading;
use laconic_train::exchange::halo::Halo;
use laconic_train::exchange::widths;
use laconic_train::messages::Messages;
use laconic_train::messages::assign::{Channel, LinkCost, Menu, assign, evaluate};
use laconic_train::messages::coders::{Coders, End};
use laconic_train::run::Outcome;
use laconic_wire::codec::{Bits, RowSet, RowsRef};
use laconic_wire::{Content, Direction, FramePurpose, Kind, Rank, Tag, ThreadsTransport, threads};

use crate::fixture::{config, draw, graph, run};

const ROWS: usize = 64;
const COLUMNS: usize = 16;

/// The range of a row here: over four orders of magnitude, in no order.
fn range(row: usize) -> f32 {
    10f32.powf(4.0 * draw(60).with(row as u64).unit() as f32 - 2.0)
}

/// Widths that rank 0 gives its rows on their way to rank 1; a row's score is what it counts for there.
fn widths(shape: &str, lambda: f64, score: impl Fn(usize) -> f32 + Sync) -> Vec<u8> {
    let options = format!("lambda={lambda}");
    assigned(Direction::Forward, (shape, &options), &[&EVERY], score)
}

/// Every position of a link.
const EVERY: [u32; ROWS] = {
    let mut every = [0; ROWS];
    let mut at = 0;
    while at < ROWS {
        every[at] = at as u32;
        at += 1;
    }
    every
};

/// The same in a direction, with options of the codec, where only `drawn` rows have travelled before each of several
/// assignments.
fn assigned(
    direction: Direction,
    (shape, options): (&str, &str),
    drawn: &[&[u32]],
    score: impl Fn(usize) -> f32 + Sync,
) -> Vec<u8> {
    assigned_to(direction, (shape, options), drawn, score, |_| 0.0)
}

/// The same, with rows that lie around an offset each.
fn assigned_to(
    direction: Direction,
    (shape, options): (&str, &str),
    drawn: &[&[u32]],
    score: impl Fn(usize) -> f32 + Sync,
    offset: impl Fn(usize) -> f32 + Sync,
) -> Vec<u8> {
    let codec = format!("{{codec=\"quantised\",bits=\"adaptive\",period=1,{options}}}");
    let config = config(&[&format!("messages.forward={codec}"), &format!("messages.backward={codec}")]);
    let every: Vec<u32> = (0..ROWS as u32).collect();
    let one = |rank: usize, mut channel: ThreadsTransport| {
        let mut links = vec![Link::default(); 2];
        links[1 - rank] = Link { send: every.clone(), receive: 0..ROWS as u32 };
        let codecs = Coders::new(&Messages::of(&config.messages, &Default::default(), &[]).expect("messages"), 7);
        let mut halo = Halo::new(HaloPlan { rank: rank as u32, links }, ROWS, codecs, 7, None);
        let value = |i: usize| offset(i / COLUMNS) + range(i / COLUMNS) * draw(61).with(i as u64).unit() as f32;
        let rows = Matrix::from_vec(ROWS, COLUMNS, (0..ROWS * COLUMNS).map(value).collect());
        let tag = Tag { direction, layer: 1, round: 1, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
        let (scores, ones): (Vec<f32>, Vec<f32>) = ((0..ROWS).map(&score).collect(), vec![1.0; ROWS]);
        let forward = direction == Direction::Forward;
        let (of_halo, of_own) = if forward { (&scores, None) } else { (&ones, Some(&scores[..])) };
        widths::exchange_scores(&mut halo, &mut channel, of_halo, of_own).expect("scores");
        widths::costs_of_shape(&mut halo, 2, shape).expect("costs");
        let (rank, peer) = (Rank(rank as u32), Rank(1 - rank as u32));
        for (drawn, round) in drawn.iter().zip(1..) {
            let end = End { rank, peer, outgoing: true, rows: ROWS, drawn: Some(drawn) };
            let travelling = RowsRef { data: rows.data(), columns: COLUMNS, rows: RowSet::Indices(drawn) };
            halo.coders.coder(tag).expect("a codec").0.trace(end, &travelling);
            widths::assign_widths(&mut halo, &mut channel, &[(tag, COLUMNS)], round).expect("widths");
        }
        let setting = |halo: &mut Halo, outgoing: bool| {
            let end = End { rank, peer, outgoing, rows: ROWS, drawn: None };
            let (coder, _) = halo.coders.coder(tag).expect("a codec");
            match coder.setting(&Reading::default(), end).level().bits {
                Bits::Rows(widths) => widths.to_vec(),
                Bits::Uniform(_) => panic!("an assigned message has a width for each row"),
            }
        };
        (setting(&mut halo, true), setting(&mut halo, false))
    };
    let ends = threads(2, Duration::from_secs(30));
    let mut both = std::thread::scope(|scope| {
        let one = &one;
        let handles: Vec<_> =
            ends.into_iter().enumerate().map(|(rank, end)| scope.spawn(move || one(rank, end))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a rank")).collect::<Vec<_>>()
    });
    assert!(both[0].0 == both[1].1 && both[1].0 == both[0].1, "both ends of a link know the same widths");
    both.swap_remove(0).0
}

/// In the published code variances were summed at the wrong index after sorting, so that widths had little to do with
/// rows.
#[test]
fn rows_with_the_larger_ranges_get_the_wider_codes() {
    let widths = widths("", 0.5, |_| 1.0);
    let mut rows: Vec<usize> = (0..ROWS).collect();
    rows.sort_by(|a, b| range(*a).total_cmp(&range(*b)));
    let sorted: Vec<u8> = rows.iter().map(|&row| widths[row]).collect();
    // Ranges of uniform values differ from the factor by less than a tenth; two rows that close may change places.
    let inversions = sorted.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(inversions <= 2, "{sorted:?}");
    assert!(sorted[0] < sorted[ROWS - 1], "{sorted:?}");
}

/// A row counts for what it is folded into: the same ranges under another model's scores get other widths.
#[test]
fn rows_that_count_for_more_get_the_wider_codes() {
    let narrow = widths("", 0.5, |_| 1.0);
    let row = narrow.iter().position(|&width| width == 2).expect("a narrow row");
    let wide = widths("", 0.5, |at| if at == row { 1e6 } else { 1.0 });
    assert_eq!(wide[row], 8, "{wide:?}");
}

/// A gradient counts for what its owner multiplies it by.
#[test]
fn gradients_that_count_for_more_get_the_wider_codes() {
    let of = |score: &(dyn Fn(usize) -> f32 + Sync)| assigned(Direction::Reverse, ("", "lambda=0.5"), &[&EVERY], score);
    let narrow = of(&|_| 1.0);
    let row = narrow.iter().position(|&width| width == 2).expect("a narrow row");
    assert_eq!(of(&|at| if at == row { 1e6 } else { 1.0 })[row], 8);
    let wide = narrow.iter().position(|&width| width > 2).expect("a wide row");
    assert_eq!(of(&|at| if at == wide { 1e-6 } else { 1.0 })[wide], 2);
}

/// A grid's ends are bfloat16 numbers, so a row far from zero has a much wider one than its spread.
#[test]
fn rows_far_from_zero_have_the_variance_of_their_own_grid() {
    let of = |offset: &(dyn Fn(usize) -> f32 + Sync)| {
        assigned_to(Direction::Forward, ("", "lambda=0.5"), &[&EVERY], |_| 1.0, offset)
    };
    let near = of(&|_| 0.0);
    let narrow = (0..ROWS).filter(|&row| near[row] == 2);
    let row = narrow.max_by(|a, b| range(*a).total_cmp(&range(*b))).expect("a narrow row");
    let far = of(&|at| if at == row { 1000.0 * range(row) } else { 0.0 });
    assert!(far[row] > 2, "{} and {}", near[row], far[row]);
}

/// Of rows that were never drawn nothing is known, so they keep the width that all begin with; what was seen before an
/// earlier assignment is not forgotten.
#[test]
fn rows_that_have_not_travelled_are_not_taken_for_rows_without_variance() {
    let (some, others): (Vec<u32>, Vec<u32>) = EVERY.iter().partition(|row| **row % 3 == 0);
    for lambda in ["lambda=0", "lambda=1"] {
        let widths = assigned(Direction::Forward, ("", lambda), &[&some], |_| 1.0);
        let known = if lambda == "lambda=0" { 2 } else { 8 };
        let least = others.iter().all(|&row| widths[row as usize] == 8);
        assert!(least && some.iter().all(|&row| widths[row as usize] == known), "{lambda}: {widths:?}");
    }
    let later = assigned(Direction::Forward, ("", "lambda=0.5"), &[&some, &others], |_| 1.0);
    assert_eq!(later, assigned(Direction::Forward, ("", "lambda=0.5"), &[&EVERY], |_| 1.0));
}

/// Where a tenth of the boundary travels in a round, most rows are unknown in a short period; with λ = 1 only rows that
/// are constant have a reason for 2 bits.
#[test]
fn sampled_rows_get_no_narrow_codes_where_variance_alone_matters() {
    let adaptive = [
        r#"messages.forward={codec="quantised",bits="adaptive",period=2,lambda=1}"#,
        r#"messages.backward={codec="quantised",bits="adaptive",period=2,lambda=1}"#,
    ];
    let keys = ["messages.evaluation=none", "train.epochs=10", "model.dropout=0.0", "model.arch=gin"];
    let sample = r#"messages.selection={kind="boundary_sample",rate=0.1}"#;
    let found = shares(&run(&config(&[&adaptive[..], &keys, &[sample]].concat()), &graph(150, 4), 3));
    assert!(found.get("2").is_none_or(|share| *share < 0.1), "{found:?}");
}

/// A menu may hold any of the quantiser's widths, and the assigner uses all of them.
#[test]
fn wider_menus_are_chosen_from() {
    let of = |options: &str| assigned(Direction::Forward, ("", options), &[&EVERY], |_| 1.0);
    assert_eq!(of("lambda=1,menu=[2,4,8,16]"), [16; ROWS]);
    // What 32 bits gain over 16 for the quietest rows is less than a sum can hold.
    assert!(of("lambda=1,menu=[1,2,4,8,16,32]").iter().all(|width| *width >= 16));
    assert_eq!(of("lambda=0,menu=[1,2,4,8,16,32]"), [1; ROWS]);
    let mixed = of("lambda=0.999,menu=[2,4,8,16]");
    assert!([4, 8, 16].iter().all(|width| mixed.contains(width)), "{mixed:?}");
    assert_eq!(of("lambda=0.5,menu=[2,4,8]"), of("lambda=0.5"));
}

/// λ = 1 asks for the least variance, λ = 0 for the least time.
#[test]
fn lambda_weighs_variance_against_time() {
    let bits = |lambda: f64| widths("", lambda, |_| 1.0).iter().map(|&width| u32::from(width)).sum::<u32>();
    assert_eq!((bits(0.0), bits(1.0)), (2 * ROWS as u32, 8 * ROWS as u32));
    let between: Vec<u32> = [0.0, 0.2, 0.5, 0.8, 1.0].map(bits).to_vec();
    assert!(between.is_sorted() && between[2] > between[0] && between[2] < between[4], "{between:?}");
}

/// Payload bytes of the messages of training that went this way out of layer 1, by round and link.
fn payloads(outcomes: &[Outcome], direction: Direction) -> Vec<BTreeMap<(u32, u32), u64>> {
    let mut rounds = vec![BTreeMap::new(); outcomes[0].trained.rounds as usize];
    for outcome in outcomes {
        for (entry, count) in outcome.sent.iter() {
            let rows = matches!(entry.kind, Kind::Activations | Kind::ActivationGradients);
            if rows && entry.layer == 1 && entry.direction == direction {
                rounds[entry.round as usize - 1].insert((outcome.rank, entry.peer.0), count.payload);
            }
        }
    }
    rounds
}

/// Each direction is assigned by its own λ, as if it were alone. Steps of next to nothing keep forward rows the same
/// whatever the gradients' bits are.
#[test]
fn every_exchange_is_assigned_by_its_own_lambda() {
    let dataset = graph(150, 4);
    let run_with = |forward: f64, backward: f64| {
        let way = |way: &str, lambda: f64| {
            format!("messages.{way}={{codec=\"quantised\",bits=\"adaptive\",period=1,lambda={lambda}}}")
        };
        let (forward, backward) = (way("forward", forward), way("backward", backward));
        let keys = ["train.lr=1e-30", "model.dropout=0.0", "messages.evaluation=none"];
        let keys = [&keys[..], &[forward.as_str(), backward.as_str()]].concat();
        run(&config(&keys), &dataset, 3)
    };
    let (both, apart) = (run_with(1.0, 1.0), run_with(1.0, 0.0));
    assert_eq!(payloads(&apart, Direction::Forward), payloads(&both, Direction::Forward));
    // The time is least where the slowest link of each shift has 2 bits throughout: a byte for four columns, where 8
    // bits take four, and 4 bytes of parameters. Others may fill the time that it takes.
    let gradients = payloads(&apart, Direction::Reverse);
    for round in &gradients[1..] {
        for shift in 1..3 {
            let slowest = |bytes: &BTreeMap<(u32, u32), u64>| {
                let of_shift = bytes.iter().filter(|((from, to), _)| (from + shift) % 3 == *to);
                of_shift.map(|(_, bytes)| *bytes).max().expect("a link")
            };
            assert_eq!(slowest(round), slowest(&gradients[0]) / 8 * 5, "{gradients:?}");
        }
    }
}

/// A mask's ratio may follow a clock of the run while the assigner chooses the bits of what is left.
#[test]
fn a_ramp_over_bytes_or_seconds_moves_beside_adaptive_bits() {
    let dataset = graph(150, 4);
    let run = |clock: &str, limit: f64| {
        // One step at the limit, and a period that no assignment ends.
        let ramp = format!("{{clock=\"{clock}\",law=\"staircase\",steps=1,from=8,limit={limit:?}}}");
        let inner = "inner=\"quantised\",bits=\"adaptive\",period=100,whole_last=false";
        let both = ["forward", "backward"]
            .map(|direction| format!("messages.{direction}={{codec=\"masked\",ratio={ramp},{inner}}}"));
        run(&config(&["model.arch=gin", "model.layers=2", &both[0], &both[1]]), &dataset, 3)
    };
    let before = run("bytes", 1e12)[0].plan.bytes_before(0)[0];
    // Limits that the first round passes.
    for (clock, limit) in [("bytes", before + 1.0), ("elapsed", 1e-9)] {
        let outcomes = run(clock, limit);
        for direction in [Direction::Forward, Direction::Reverse] {
            // Of 16 columns 2 at first, all of them later, a byte each behind 4 bytes of parameters.
            let bytes: Vec<u64> = payloads(&outcomes, direction).iter().map(|round| round.values().sum()).collect();
            assert!(bytes[1..].iter().all(|later| *later * (4 + 2) == bytes[0] * (4 + 16)), "{clock}: {bytes:?}");
        }
    }
}

/// Both terms are shares of their range, so that what all links have in common cancels out: only differences between
/// links matter.
#[test]
fn a_network_that_is_slower_throughout_changes_no_width() {
    let expected = widths("", 0.5, |_| 1.0);
    for shape in ["10gbit,1us", "1mbit,1ms", "wan-20mbit-80ms"] {
        assert_eq!(widths(shape, 0.5, |_| 1.0), expected, "{shape}");
    }
}

/// Of two links in a round the slow one holds up both, so its rows get narrower codes.
#[test]
fn rows_on_the_slower_link_get_the_narrower_codes() {
    let beta: Vec<f32> = (0..ROWS).map(|row| range(row).powi(2)).collect();
    let channel = |from: u32, seconds_per_byte: f64| Channel {
        from,
        to: 1 - from,
        beta: &beta,
        bytes_per_bit: COLUMNS as f64 / 8.0,
        overhead: 4.0,
        cost: LinkCost { seconds_per_byte, latency: 1e-3 },
    };
    let sum = |bits: &[u8]| bits.iter().map(|&width| u32::from(width)).sum::<u32>();
    let channels = [channel(0, 1e-6), channel(1, 4e-6)];
    let found = assign(&channels, 2, 0.5, &Menu::default());
    assert!(sum(&found.bits[0]) > sum(&found.bits[1]), "{:?}", found.bits);
    for uniform in [2, 4, 8] {
        let (.., objective) =
            evaluate(&channels, 2, 0.5, &Menu::default(), &[vec![uniform; ROWS], vec![uniform; ROWS]]);
        assert!(found.objective <= objective + 1e-12, "{} against {objective} with {uniform} bits", found.objective);
    }
}

fn shares(outcomes: &[Outcome]) -> std::collections::BTreeMap<String, f64> {
    outcomes[0].summary.as_ref().expect("worker 0 sums up").bits.clone()
}

/// A run says which share of the values of rows went out in each width.
#[test]
fn the_summary_tells_the_shares_of_widths() {
    let adaptive = [
        r#"messages.forward={codec="quantised",bits="adaptive",period=1}"#,
        r#"messages.backward={codec="quantised",bits="adaptive",period=1}"#,
        "train.epochs=8",
        "train.eval_every=0",
        "model.arch=gcn",
        r#"messages.evaluation={codec="quantised",bits=16}"#,
    ];
    let found = shares(&run(&config(&adaptive), &graph(150, 4), 3));
    println!("{found:?}");
    assert!((found.values().sum::<f64>() - 1.0).abs() < 1e-9, "{found:?}");
    for width in ["2", "4", "8", "16"] {
        assert!(found.get(width).is_some_and(|share| *share > 0.01), "{width} of {found:?}");
    }
    assert_eq!(shares(&run(&config(&[]), &graph(150, 4), 3)).into_iter().collect::<Vec<_>>(), [("32".to_owned(), 1.0)]);
}
