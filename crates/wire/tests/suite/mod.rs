//! What every transport must do, as functions that each rank of a group runs. `tests/transports.rs` runs them on
//! threads,
//! `examples/mpi_suite.rs` under MPI.

use laconic_key::{Key, Purpose};
use laconic_wire::codec::{CodecRegistry, Options};
use laconic_wire::collectives::*;
use laconic_wire::{Count, Direction, Entry, Frame, Kind, Ledger, Metered, Rank, Result, Tag, Transport};

/// A tag for tests.
pub const TAG: Tag = Tag { kind: Kind::Activations, direction: Direction::Forward, layer: 1, round: 17, step: 0 };

/// Runs everything; panics where a law is broken.
pub fn run<T: Transport>(transport: &mut Metered<T>) {
    frames_of_every_size_arrive_whole(transport).unwrap();
    tags_are_kept_apart_whatever_the_order(transport).unwrap();
    frames_with_one_tag_keep_their_order(transport).unwrap();
    sums_have_the_bits_of_the_serial_sum_in_rank_order(transport).unwrap();
    compressed_sums_are_near_and_the_same_everywhere(transport).unwrap();
    gathers_and_exchanges_deliver_every_item(transport).unwrap();
    broadcasts_reach_everyone_from_every_root(transport).unwrap();
    both_sides_of_the_ledger_agree(transport).unwrap();
    predictions_equal_the_meter(transport).unwrap();
    barrier(transport, in_round(1000)).unwrap();
}

fn in_round(round: u32) -> Tag {
    Tag { round, ..TAG }
}

/// A payload that says who sent it to whom.
fn pattern(from: Rank, to: Rank, len: usize) -> impl Iterator<Item = u8> {
    (0..len).map(move |i| (i as u32).wrapping_mul(31).wrapping_add(from.0 * 7 + to.0) as u8)
}

fn frames_of_every_size_arrive_whole(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for (round, len) in [0, 1, 7, 1000, 65_536, 1_000_003].into_iter().enumerate() {
        let tag = in_round(round as u32);
        for peer in rank.others(size) {
            let mut frame = Frame::new(tag, transport.buffer_of(len));
            frame.set_codec(9);
            frame.payload_mut().extend(pattern(rank, peer, len));
            transport.send(peer, frame)?;
        }
        for peer in rank.others(size) {
            let frame = transport.recv(peer, tag)?;
            assert_eq!((frame.tag(), frame.codec(), frame.payload().len()), (tag, 9, len));
            assert!(frame.payload().iter().copied().eq(pattern(peer, rank, len)), "{len} bytes from {peer}");
            transport.recycle(frame);
        }
    }
    Ok(())
}

fn tags_are_kept_apart_whatever_the_order(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let tags = [
        in_round(100),
        in_round(100).later(1),
        Tag { kind: Kind::Features, ..in_round(100) },
        Tag { direction: Direction::Reverse, ..in_round(100) },
        Tag { layer: 2, ..in_round(100) },
        in_round(101),
    ];
    for peer in rank.others(size) {
        for (i, tag) in tags.into_iter().enumerate() {
            let mut frame = Frame::new(tag, transport.buffer());
            frame.payload_mut().push(i as u8);
            transport.send(peer, frame)?;
        }
    }
    for peer in rank.others(size) {
        // Within a stream the rounds come in order; the streams may be read in any.
        for i in [4, 2, 0, 3, 1, 5] {
            assert_eq!(transport.recv(peer, tags[i])?.payload(), [i as u8]);
        }
    }
    Ok(())
}

fn frames_with_one_tag_keep_their_order(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for i in 0..20u8 {
        for peer in rank.others(size) {
            let mut frame = Frame::new(in_round(200), transport.buffer());
            frame.payload_mut().resize(100 + usize::from(i) * 1000, i);
            transport.send(peer, frame)?;
        }
    }
    for peer in rank.others(size) {
        for i in 0..20u8 {
            assert_eq!(transport.recv(peer, in_round(200))?.payload().last(), Some(&i));
        }
    }
    Ok(())
}

/// The numbers that a rank brings to a sum.
fn numbers(rank: Rank, len: usize) -> Vec<f32> {
    let key = Key::new(1, Purpose::Test).with(rank.0.into());
    (0..len).map(|i| (key.with(i as u64).normal() * 10f64.powi(i as i32 % 7)) as f32).collect()
}

fn sums_have_the_bits_of_the_serial_sum_in_rank_order(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for (round, len) in [0, 1, 2, 3, 10, 1000, 40_001].into_iter().enumerate() {
        let mut serial = numbers(Rank(0), len);
        for peer in Rank::all(size).skip(1) {
            serial.iter_mut().zip(numbers(peer, len)).for_each(|(sum, term)| *sum += term);
        }
        let mut values = numbers(rank, len);
        let mut extras = [f64::from(rank.0) + 0.1, -0.0];
        all_reduce(transport, in_round(300 + round as u32), &mut values, &mut extras, &mut Reducer::exact())?;
        assert!(values.iter().map(|v| v.to_bits()).eq(serial.iter().map(|v| v.to_bits())), "{len} values");
        let serial = (1..size).fold(0.1, |sum, rank| sum + (rank as f64 + 0.1));
        assert_eq!(extras.map(f64::to_bits), [serial, -0.0].map(f64::to_bits));
    }
    let mut values = [f64::from(rank.0) + 0.1, -0.0];
    all_reduce_f64(transport, in_round(310), &mut values)?;
    let serial = (1..size).fold(0.1, |sum, rank| sum + (rank as f64 + 0.1));
    assert_eq!(values.map(f64::to_bits), [serial, -0.0].map(f64::to_bits));
    Ok(())
}

/// A reducer for each codec and some widths.
fn reducers() -> Vec<Reducer> {
    let reducer = |(name, bits)| {
        Reducer::new(
            CodecRegistry::default().build(name, &Options::default()).expect("a registered codec"),
            bits,
            7,
            bits % 2 == 0,
        )
    };
    [("exact", 32), ("half", 32), ("quantised", 1), ("quantised", 8), ("quantised", 32), ("masked", 32)]
        .map(reducer)
        .into()
}

fn compressed_sums_are_near_and_the_same_everywhere(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for (at, mut reducer) in reducers().into_iter().enumerate() {
        for (round, len) in [0, 1, 2, 10, 1000, 5001].into_iter().enumerate() {
            let tag = in_round(320 + (10 * at + round) as u32);
            let value = |rank: Rank, i: usize| ((i * 7 + rank.index()) % 5) as f32 - 2.0;
            let mut values: Vec<f32> = (0..len).map(|i| value(rank, i)).collect();
            let mut extras = [1.0, f64::from(rank.0)];
            all_reduce(transport, tag, &mut values, &mut extras, &mut reducer)?;
            assert_eq!(extras, [size as f64, (size * (size - 1) / 2) as f64]);
            for (i, &sum) in values.iter().enumerate() {
                let exact: f32 = Rank::all(size).map(|rank| value(rank, i)).sum();
                // At the worst, one bit: a step of 4 for each rank, and one of as much for each of the sum's terms.
                assert!((sum - exact).abs() <= 10.0 * size as f32, "{}: {sum} instead of {exact}", reducer.name());
            }
            let bits: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            let all = all_gather(transport, tag.later(2), &bits)?;
            assert!(all.iter().all(|theirs| *theirs == bits), "{} of {len} values", reducer.name());
        }
    }
    Ok(())
}

fn gathers_and_exchanges_deliver_every_item(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let mine = vec![rank.0 as u8; rank.index() * 100];
    let all = all_gather(transport, in_round(400), &mine)?;
    assert!(all.into_iter().eq(Rank::all(size).map(|peer| vec![peer.0 as u8; peer.index() * 100])));

    let item = |from: Rank, to: Rank| pattern(from, to, (from.index() * to.index() * 50) % 170).collect::<Vec<u8>>();
    let outgoing = Rank::all(size).map(|peer| item(rank, peer)).collect();
    let incoming = all_to_all(transport, in_round(401), outgoing)?;
    assert!(incoming.into_iter().eq(Rank::all(size).map(|peer| item(peer, rank))));
    Ok(())
}

fn broadcasts_reach_everyone_from_every_root(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for root in Rank::all(size) {
        for len in [0, 5, 10_000] {
            let said: Vec<u8> = pattern(root, root, len).collect();
            let mut bytes = if rank == root { said.clone() } else { b"something else".to_vec() };
            broadcast(transport, in_round(500 + root.0), root, &mut bytes)?;
            assert_eq!(bytes, said);
        }
    }
    Ok(())
}

/// Runs one collective on an empty ledger and compares what it sent with both forms of the prediction.
fn compare<T: Transport>(
    transport: &mut Metered<T>,
    run: impl FnOnce(&mut dyn Transport) -> Result<()>,
    predict: impl FnOnce(&mut Ledger),
    closed_form: Count,
) -> Result<()> {
    transport.take_ledgers();
    run(transport)?;
    let mut predicted = Ledger::new();
    predict(&mut predicted);
    assert_eq!(predicted.difference(transport.sent()), [], "of {} workers", transport.size());
    assert_eq!(closed_form, transport.sent().total(), "of {} workers", transport.size());
    Ok(())
}

fn predictions_equal_the_meter<T: Transport>(transport: &mut Metered<T>) -> Result<()> {
    let (rank, size, tag) = (transport.rank(), transport.size(), in_round(600));
    for len in [0, 1, 2, 3, 100, 4097] {
        for mut reducer in reducers() {
            for extras in [0, 3] {
                let mut predicted = Ledger::new();
                predict_all_reduce(&mut predicted, tag, size, rank, len, extras, &reducer);
                let closed_form = all_reduce_bytes(size, rank, len, extras, &reducer);
                compare(
                    transport,
                    |t| all_reduce(t, tag, &mut vec![1.0; len], &mut vec![1.0; extras], &mut reducer),
                    |ledger| *ledger = predicted,
                    closed_form,
                )?;
            }
        }
        compare(
            transport,
            |t| all_reduce_f64(t, tag, &mut vec![1.0; len]),
            |ledger| predict_all_reduce_f64(ledger, tag, size, rank, len),
            all_reduce_f64_bytes(size, len),
        )?;
        let mine = len + rank.index();
        compare(
            transport,
            |t| all_gather(t, tag, &vec![0; mine]).map(drop),
            |ledger| predict_all_gather(ledger, tag, size, rank, mine),
            all_gather_bytes(size, mine),
        )?;
        let lens: Vec<usize> = Rank::all(size).map(|peer| len * peer.index()).collect();
        compare(
            transport,
            |t| all_to_all(t, tag, lens.iter().map(|&len| vec![0; len]).collect()).map(drop),
            |ledger| predict_all_to_all(ledger, tag, rank, &lens),
            all_to_all_bytes(rank, &lens),
        )?;
        for root in Rank::all(size) {
            compare(
                transport,
                |t| broadcast(t, tag, root, &mut vec![0; len]),
                |ledger| predict_broadcast(ledger, tag, size, (root, rank), len),
                broadcast_bytes(size, root, rank, len),
            )?;
        }
    }
    compare(transport, |t| barrier(t, tag), |l| predict_barrier(l, tag, size, rank), barrier_bytes(size))
}

/// Everyone tells every peer what it sent there, and compares with what arrived.
fn both_sides_of_the_ledger_agree<T: Transport>(transport: &mut Metered<T>) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    let (sent, received) = (transport.sent().clone(), transport.received().clone());
    let account = |ledger: &Ledger, of: Rank, other_end: Rank| {
        let entries = ledger.iter().filter(|(entry, _)| entry.peer == of);
        let seen_from: Vec<(Entry, Count)> =
            entries.map(|(entry, count)| (Entry { peer: other_end, ..entry }, count)).collect();
        format!("{seen_from:?}").into_bytes()
    };
    let told = Rank::all(size).map(|peer| account(&sent, peer, rank)).collect();
    for (peer, theirs) in Rank::all(size).zip(all_to_all(transport, in_round(550), told)?) {
        if peer != rank {
            let mine = account(&received, peer, peer);
            assert_eq!(String::from_utf8(mine), String::from_utf8(theirs), "{rank} received from {peer}");
        }
    }
    Ok(())
}
