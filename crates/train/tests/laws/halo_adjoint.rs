//! The reverse exchange is the adjoint of the forward one: over all ranks ⟨exchange x, y⟩ = ⟨x, exchangeᵀ y⟩, for any
//! plan, links without rows included.

use std::time::Duration;

use laconic_graph::plan::{HaloPlan, Link};
use laconic_key::Key;
use laconic_nn::{Compute, Matrix};
use laconic_train::config::{CodecChoice, MessagesConfig};
use laconic_train::exchange::halo::{Halo, Request};
use laconic_train::messages::Messages;
use laconic_train::messages::coders::Coders;
use laconic_train::selection::Scope;
use laconic_wire::{Content, Direction, FramePurpose, Tag, threads};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::fixture::draw;

/// What one rank holds: its plan, own rows, and the gradients of its halo rows.
struct Side {
    plan: HaloPlan,
    own: Matrix,
    halo_gradient: Matrix,
}

/// Any plan between this many ranks: each link carries none, some or all of the sender's rows.
fn sides(ranks: usize, columns: usize, key: Key, value: impl Fn(Key) -> f32) -> Vec<Side> {
    let rows: Vec<usize> = (0..ranks).map(|rank| key.with(0).with(rank as u64).below(12) as usize).collect();
    let mut plans: Vec<HaloPlan> =
        (0..ranks).map(|rank| HaloPlan { rank: rank as u32, links: vec![Link::default(); ranks] }).collect();
    for receiver in 0..ranks {
        let mut start = 0;
        for (sender, &sender_rows) in rows.iter().enumerate() {
            let link = key.with(1).with(sender as u64).with(receiver as u64);
            let share = if sender == receiver { 0.0 } else { [0.0, 0.3, 1.0][link.below(3) as usize] };
            let travels = |row: &u32| link.with(2).with((*row).into()).unit() < share;
            let send: Vec<u32> = (0..sender_rows as u32).filter(travels).collect();
            let end = start + send.len() as u32;
            plans[receiver].links[sender].receive = start..end;
            plans[sender].links[receiver].send = send;
            start = end;
        }
    }
    let matrix = |rows: usize, key: Key| {
        Matrix::from_vec(rows, columns, (0..rows * columns).map(|i| value(key.with(i as u64))).collect())
    };
    let side = |(rank, plan): (usize, HaloPlan)| {
        let (key, halo_rows) = (key.with(3).with(rank as u64), plan.halo_rows());
        Side { plan, own: matrix(rows[rank], key.with(0)), halo_gradient: matrix(halo_rows, key.with(1)) }
    };
    plans.into_iter().enumerate().map(side).collect()
}

fn dot(a: &Matrix, b: &Matrix) -> (f64, f64) {
    let products = a.data().iter().zip(b.data()).map(|(a, b)| f64::from(*a) * f64::from(*b));
    products.fold((0.0, 0.0), |(sum, size), product| (sum + product, size + product.abs()))
}

/// Both inner products over all ranks, and Σ|x·y| to measure rounding by.
fn inner_products(sides: Vec<Side>, codec: &str) -> (f64, f64, f64) {
    let ends = threads(sides.len(), Duration::from_secs(30));
    let choice = CodecChoice::named(codec);
    let messages = MessagesConfig { forward: choice.clone(), backward: choice, ..MessagesConfig::default() };
    let one = |(Side { plan, own, halo_gradient }, mut channel): (Side, laconic_wire::ThreadsTransport)| {
        let mut halo = Halo::new(
            plan,
            own.rows(),
            Coders::new(&Messages::of(&messages, &Default::default(), &[]).expect("messages"), 1),
            1,
            None,
        );
        let tag =
            |direction| Tag { direction, layer: 1, round: 1, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
        let compute = Compute::new(1);
        let mut copies = Matrix::zeros(halo.rows(), own.columns());
        let request = |direction| Request::now(tag(direction), Scope::Whole);
        let pending = halo.start(&compute, &mut channel, request(Direction::Forward), &own).expect("sent");
        pending.finish(&mut halo, &compute, &mut channel, &mut copies).expect("received");
        let mut gradient = Matrix::zeros(own.rows(), own.columns());
        let pending = halo.start(&compute, &mut channel, request(Direction::Reverse), &halo_gradient).expect("sent");
        pending.finish(&mut halo, &compute, &mut channel, &mut gradient).expect("received");
        let ((forward, size), (reverse, _)) = (dot(&copies, &halo_gradient), dot(&own, &gradient));
        (forward, reverse, size)
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = sides.into_iter().zip(ends).map(|pair| scope.spawn(move || one(pair))).collect();
        let each = handles.into_iter().map(|handle| handle.join().expect("a rank"));
        each.fold((0.0, 0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2))
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default()
    })]

    /// On small integers, which no codec rounds and whose sums are exact, the two sides are equal.
    #[test]
    fn the_exchange_and_its_adjoint_agree_exactly_on_integers(ranks in 1usize..7, columns in 1usize..6, seed: u64) {
        for codec in ["exact", "half"] {
            let integer = |key: Key| key.below(17) as f32 - 8.0;
            let (forward, reverse, _) = inner_products(sides(ranks, columns, draw(30).with(seed), integer), codec);
            prop_assert_eq!(forward, reverse, "{}", codec);
        }
    }

    /// On any numbers up to rounding: 2⁻⁸ of each value in each direction where two bytes travel, and of the sums in
    /// f32.
    #[test]
    fn the_exchange_and_its_adjoint_agree_up_to_rounding(ranks in 2usize..7, columns in 1usize..6, seed: u64) {
        for (codec, rounding) in [("exact", 1e-6), ("half", 2.0 / 256.0 + 1e-6)] {
            let real = |key: Key| key.normal() as f32;
            let (forward, reverse, size) = inner_products(sides(ranks, columns, draw(31).with(seed), real), codec);
            prop_assert!((forward - reverse).abs() <= rounding * size * 1.01, "{}: {} and {}", codec, forward, reverse);
        }
    }
}
