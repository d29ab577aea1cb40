//! What both ends of a link draw, derived anew from the description of the streams and from nothing that training runs:
//! the columns of random masks, the rows of samples. Numbers instead of names, because the names are what is tested.

use std::time::Duration;

use laconic_graph::plan::{HaloPlan, Link};
use laconic_nn::{Compute, Matrix};
use laconic_train::exchange::drawn::Drawn;
use laconic_train::exchange::halo::{Halo, Request};
use laconic_train::messages::Messages;
use laconic_train::messages::coders::Coders;
use laconic_train::plan::{Members, Plan};
use laconic_train::selection::Scope;
use laconic_wire::{Content, Direction, FramePurpose, Rank, Tag, threads};

use crate::fixture::{config, graph, parts};

/// Mix13, the finaliser of SplitMix64.
fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// The stream of a seed, a purpose's number and coordinates.
fn stream(seed: u64, path: &[u64]) -> u64 {
    let fold =
        |state: u64, coordinate: &u64| mix(state.rotate_left(23) ^ mix(coordinate.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    path.iter().fold(mix(seed ^ 0x1ac0_71c5_0000_0000), fold)
}

/// An integer below `bound` at one place of a stream.
fn below(stream_of: u64, place: u64, bound: u64) -> u64 {
    let at = mix(stream_of.rotate_left(23) ^ mix(place.wrapping_add(0x9e37_79b9_7f4a_7c15)));
    ((u128::from(mix(at ^ 0x94d0_49bb_1331_11eb)) * u128::from(bound)) >> 64) as u64
}

const MASK: u64 = 10;
const SELECTION: u64 = 11;

/// The columns of a training message's random mask: the first `kept` of a Fisher–Yates permutation of `width`, drawn
/// for round and layer.
pub fn columns(seed: u64, round: u32, layer: u16, width: usize, kept: usize) -> Vec<usize> {
    let drawn = stream(seed, &[MASK, round.into(), u64::from(layer) * 2]);
    let mut order: Vec<usize> = (0..width).collect();
    for last in (1..width).rev() {
        order.swap(last, below(drawn, last as u64, last as u64 + 1) as usize);
    }
    order.truncate(kept);
    order.sort_unstable();
    order
}

/// The positions among `rows` that travel from an owner to a holder in a round, `count` of them: Knuth's algorithm S.
pub fn positions(seed: u64, round: u32, [owner, holder]: [u32; 2], rows: usize, count: usize) -> Vec<usize> {
    let drawn = stream(seed, &[SELECTION, round.into(), owner.into(), holder.into()]);
    let mut taken = Vec::new();
    for position in 0..rows {
        let (left, wanted) = (rows - position, count - taken.len());
        if below(drawn, position as u64, left as u64) < wanted as u64 {
            taken.push(position);
        }
    }
    taken
}

const WORKERS: usize = 3;
const WIDTH: usize = 11;

/// Every worker has a link with every other, of two rows each.
fn plan(rank: u32) -> HaloPlan {
    let mut next = 0..;
    let mut link = |peer: usize| {
        if peer == rank as usize {
            return Link::default();
        }
        let at: u32 = 2 * next.next().unwrap_or(0u32);
        Link { send: vec![0, 1], receive: at..at + 2 }
    };
    HaloPlan { rank, links: (0..WORKERS).map(&mut link).collect() }
}

/// The columns of each row that arrives at each worker when all have sent rows of ones.
fn arrived(direction: Direction, round: u32) -> Vec<Vec<Vec<usize>>> {
    let mask = r#"messages.forward={codec="masked",ratio=3,whole_last=false}"#;
    let config = config(&[mask, &mask.replace("forward", "backward")]);
    let one = |rank: usize, mut end| {
        let coders = Coders::new(&Messages::of(&config.messages, &Default::default(), &[]).expect("messages"), 9);
        let mut halo = Halo::new(plan(rank as u32), 2, coders, 9, None);
        let tag = Tag { direction, layer: 1, round, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
        let (sent, arrives) = if direction == Direction::Forward { (2, 4) } else { (4, 2) };
        let ones = Matrix::from_vec(sent, WIDTH, vec![1.0; sent * WIDTH]);
        let compute = Compute::new(1);
        let pending = halo.start(&compute, &mut end, Request::now(tag, Scope::Whole), &ones).expect("sent");
        let mut into = Matrix::zeros(arrives, WIDTH);
        pending.finish(&mut halo, &compute, &mut end, &mut into).expect("received");
        let columns = |row: usize| (0..WIDTH).filter(|&column| into.row(row)[column] != 0.0).collect();
        (0..arrives).map(columns).collect::<Vec<Vec<usize>>>()
    };
    std::thread::scope(|scope| {
        let ends = threads(WORKERS, Duration::from_secs(30)).into_iter().enumerate();
        let handles: Vec<_> = ends.map(|(rank, end)| scope.spawn(move || one(rank, end))).collect();
        handles.into_iter().map(|handle| handle.join().expect("a worker")).collect()
    })
}

#[test]
fn masks_of_all_links_and_both_directions_are_those_of_the_stream() {
    for round in [1, 2, 77] {
        let expected = columns(9, round, 1, WIDTH, WIDTH / 3);
        for direction in [Direction::Forward, Direction::Reverse] {
            for (rank, rows) in arrived(direction, round).into_iter().enumerate() {
                for row in rows {
                    assert_eq!(row, expected, "round {round}, {direction:?}, worker {rank}");
                }
            }
        }
    }
    assert_ne!(columns(9, 1, 1, WIDTH, 3), columns(9, 2, 1, WIDTH, 3), "rounds differ");
}

#[test]
fn samples_of_both_ends_of_every_link_are_those_of_the_stream() {
    let config = config(&[r#"messages.selection={kind="boundary_sample",rate=0.4}"#, "train.seed=3"]);
    let selection = Plan::for_model(&Members::default(), &config, [1, 2]).expect("a plan").selection;
    let selection = selection.expect("not every row travels");
    let parts = parts(&config, &graph(90, 4), WORKERS as u32);
    let plans = laconic_graph::plan::plan_all(&parts, false).expect("plans");
    let mut links = 0;
    for round in [1, 2, 40] {
        let drawn = (0..)
            .zip(&plans)
            .map(|(rank, (plan, _))| Drawn::new(selection.as_ref(), 3, round, Rank(rank), &plan.links).rows());
        let drawn: Vec<_> = drawn.collect();
        for owner in 0..WORKERS {
            for holder in (0..WORKERS).filter(|&holder| holder != owner) {
                let link = &plans[owner].0.links[holder];
                let count = (0.4 * link.send.len() as f64).ceil() as usize;
                let expected = positions(3, round, [owner as u32, holder as u32], link.send.len(), count);
                let sent: Vec<u64> =
                    drawn[owner].0[holder].iter().map(|&row| parts[owner].nodes[row as usize]).collect();
                let received: Vec<u64> =
                    drawn[holder].1[owner].iter().map(|&row| plans[holder].1.halo_ids[row as usize]).collect();
                let expected: Vec<u64> =
                    expected.iter().map(|&at| parts[owner].nodes[link.send[at] as usize]).collect();
                assert_eq!((&sent, &received), (&expected, &expected), "round {round}, {owner} to {holder}");
                links += usize::from(!expected.is_empty());
            }
        }
    }
    assert_eq!(links, 3 * WORKERS * (WORKERS - 1), "every link sends something");
}
