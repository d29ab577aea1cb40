//! What a transport owes to everybody who calls it, and what the collectives owe on any of them.

use crate::codec::{Bits, CodecKind, CodecRegistry, Level, Options};
use crate::collectives::*;
use crate::{
    Content, Count, Direction, Entry, Frame, FramePurpose, Ledger, Metered, Rank, Result, Tag, Transport, VectorCoder,
};
use laconic_key::{Key, Purpose};

/// The tag of the frames in these laws, in this round and later ones.
const TAG: Tag = Tag { layer: 1, round: 17, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };

/// Holds a transport to its laws in groups of several sizes, each end in its own thread. `make` gives the ends of a
/// group of so many, in rank order.
///
/// - Frames of every size arrive whole, in their order where they share a tag, by their tags where not.
/// - A look for any frame finds those that nobody has asked for, in the order of sending, and never waits.
/// - Sums are bitwise identical to the serial sum in rank order, and are the same everywhere with every codec.
/// - Gathers, exchanges and broadcasts deliver every item.
/// - What one end sent is what the other received, and what a collective sends is its forecast.
///
/// # Panics
///
/// Where a law is broken, with the numbers in the message.
pub fn check(make: impl Fn(usize) -> Vec<Box<dyn Transport>>) {
    for size in [1, 2, 3, 5, 7] {
        let ends = make(size);
        assert_eq!(ends.len(), size, "one end for each worker");
        std::thread::scope(|scope| {
            let workers: Vec<_> = ends.into_iter().map(|end| scope.spawn(move || check_end(end))).collect();
            workers.into_iter().for_each(|worker| worker.join().expect("the laws hold at every end"));
        });
    }
}

/// Holds one end to the laws, and finishes it: for transports between processes, of which each calls this.
///
/// # Panics
///
/// Where a law is broken, with the numbers in the message.
pub fn check_end(end: Box<dyn Transport>) {
    let mut transport = Metered::new(end);
    run(&mut transport).unwrap_or_else(|error| panic!("rank {}: {error}", transport.rank()));
}

fn run(transport: &mut Metered) -> Result<()> {
    frames_of_every_size_arrive_whole(transport)?;
    tags_are_kept_apart_whatever_the_order(transport)?;
    frames_with_one_tag_keep_their_order(transport)?;
    looks_find_frames_in_the_order_of_sending(transport)?;
    sums_have_the_bits_of_the_serial_sum_in_rank_order(transport)?;
    compressed_sums_are_near_and_the_same_everywhere(transport)?;
    gathers_and_exchanges_deliver_every_item(transport)?;
    broadcasts_reach_everyone_from_every_root(transport)?;
    both_sides_of_the_ledger_agree(transport)?;
    forecasts_equal_the_meter(transport)?;
    barrier(transport, in_round(1000))?;
    transport.finish()
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
        Tag { content: Content::Features, ..in_round(100) },
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
fn looks_find_frames_in_the_order_of_sending(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    // Rounds jump, and streams take turns, as those of workers do that are not in step.
    let tags = [in_round(350), in_round(300).later(2), in_round(310), in_round(300).later(1), in_round(360)];
    for peer in rank.others(size) {
        for (i, tag) in tags.into_iter().enumerate() {
            let mut frame = Frame::new(tag, transport.buffer());
            frame.payload_mut().extend(pattern(rank, peer, 1 + 3000 * i));
            transport.send(peer, frame)?;
        }
    }
    for peer in rank.others(size) {
        // One that somebody asked for is not among those that are found.
        let asked = transport.recv(peer, tags[3])?;
        assert_eq!(asked.payload().len(), 1 + 3000 * 3);
        for (i, tag) in tags.into_iter().enumerate().filter(|(i, _)| *i != 3) {
            let frame = loop {
                match transport.poll(peer)? {
                    Some(frame) => break frame,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(frame.tag(), tag, "frame {i} from {peer}");
            assert!(frame.payload().iter().copied().eq(pattern(peer, rank, 1 + 3000 * i)), "frame {i} from {peer}");
            transport.recycle(frame);
        }
    }
    Ok(())
}

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

/// A reducer for each codec whose messages have a size and stand alone, and some widths; and whether it loses nothing.
fn reducers() -> Vec<(bool, Reducer)> {
    let registry = CodecRegistry::default();
    let make = |kind: &CodecKind, bits: u8| {
        let codec = registry.build(kind.name, &Options::default()).expect("a registered codec needs no options");
        let coder = VectorCoder::new(codec, kind, Level { bits: Bits::Uniform(bits), ..Level::WHOLE }, 7);
        Reducer::new(if bits.is_multiple_of(2) { coder.with_feedback() } else { coder })
    };
    let stand_alone = registry.iter().filter(|kind| !kind.remembers && !kind.varies && !kind.leaves_out);
    stand_alone.flat_map(|kind| [32, 8, 1].map(|bits| (kind.lossless, make(kind, bits)))).collect()
}

fn compressed_sums_are_near_and_the_same_everywhere(transport: &mut dyn Transport) -> Result<()> {
    let (rank, size) = (transport.rank(), transport.size());
    for (at, (lossless, mut reducer)) in reducers().into_iter().enumerate() {
        for (round, len) in [0, 1, 2, 10, 1000, 5001].into_iter().enumerate() {
            let tag = in_round(320 + (10 * at + round) as u32);
            // Far from 0 by its own spread, so that nothing that loses the values is near.
            let value = |rank: Rank, i: usize| ((i * 7 + rank.index()) % 5) as f32 + 98.0;
            let mut values: Vec<f32> = (0..len).map(|i| value(rank, i)).collect();
            let mut extras = [1.0, f64::from(rank.0)];
            all_reduce(transport, tag, &mut values, &mut extras, &mut reducer)?;
            assert_eq!(extras, [size as f64, (size * (size - 1) / 2) as f64]);
            for (i, &sum) in values.iter().enumerate() {
                // A whole number below 2²⁴: what loses nothing has it to the last bit.
                let exact: f32 = Rank::all(size).map(|rank| value(rank, i)).sum();
                // At the worst, one bit: a step of the spread for each rank, and one of as much for each of the sum's
                // terms, on grids that are widened by what a bfloat16 drops of 100 and of its multiples.
                let most = if lossless { 0.0 } else { exact / 8.0 };
                assert!((sum - exact).abs() <= most, "{}: {sum} instead of {exact}", reducer.name());
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

/// Runs one collective and compares what it sent with its forecast.
fn compare(
    transport: &mut Metered,
    forecast: impl FnOnce(&mut Ledger),
    run: impl FnOnce(&mut dyn Transport) -> Result<()>,
) -> Result<()> {
    let mut expected = transport.sent().clone();
    forecast(&mut expected);
    run(transport)?;
    assert_eq!(expected.difference(transport.sent()), [], "of {} workers", transport.size());
    Ok(())
}

fn forecasts_equal_the_meter(transport: &mut Metered) -> Result<()> {
    let (rank, size, tag) = (transport.rank(), transport.size(), in_round(600));
    for len in [0, 1, 2, 3, 100, 4097] {
        for (_, mut reducer) in reducers() {
            for extras in [0, 3] {
                let mut forecast = Ledger::new();
                forecast_all_reduce(&mut forecast, tag, size, rank, len, extras, &reducer);
                compare(
                    transport,
                    |ledger| ledger.add_times(&forecast, 1),
                    |t| all_reduce(t, tag, &mut vec![1.0; len], &mut vec![1.0; extras], &mut reducer),
                )?;
            }
        }
        let mut forecast = Ledger::new();
        forecast_all_reduce_f64(&mut forecast, tag, size, rank, len);
        assert_eq!(all_reduce_f64_bytes(size, len), forecast.total(), "{len} values");
        compare(transport, |ledger| ledger.add_times(&forecast, 1), |t| all_reduce_f64(t, tag, &mut vec![1.0; len]))?;
        let mine = len + rank.index();
        compare(
            transport,
            |ledger| forecast_all_gather(ledger, tag, size, rank, mine),
            |t| all_gather(t, tag, &vec![0; mine]).map(drop),
        )?;
        let lens: Vec<usize> = Rank::all(size).map(|peer| len * peer.index()).collect();
        compare(
            transport,
            |ledger| forecast_all_to_all(ledger, tag, rank, &lens),
            |t| all_to_all(t, tag, lens.iter().map(|&len| vec![0; len]).collect()).map(drop),
        )?;
        for root in Rank::all(size) {
            compare(
                transport,
                |ledger| forecast_broadcast(ledger, tag, size, (root, rank), len),
                |t| broadcast(t, tag, root, &mut vec![0; len]),
            )?;
        }
    }
    compare(transport, |ledger| forecast_barrier(ledger, tag, size, rank), |t| barrier(t, tag))
}

/// Everyone tells every peer what it sent there, and compares with what arrived.
fn both_sides_of_the_ledger_agree(transport: &mut Metered) -> Result<()> {
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
