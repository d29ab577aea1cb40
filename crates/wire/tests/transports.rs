//! The laws of transports on threads, plain and behind wrappers, and what happens when a peer is late, wrong or gone.

use laconic_wire::transport::Patience;
use laconic_wire::*;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

const TAG: Tag = Tag { layer: 1, round: 17, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs every end in its own thread.
fn spawn<T: Transport, R: Send>(ends: Vec<T>, run: impl Fn(&mut T) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let run = &run;
        let workers: Vec<_> = ends.into_iter().map(|mut end| scope.spawn(move || run(&mut end))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    })
}

/// The laws in groups of several sizes, behind this wrapper.
fn hold(wrap: impl Fn(Box<dyn Transport>) -> Box<dyn Transport>) {
    laws::transports::check(|size| threads(size, DEADLINE).into_iter().map(|end| wrap(Box::new(end))).collect());
}

#[test]
fn threads_keep_the_laws() {
    hold(|end| end);
}

/// The ends of a group that meets in this folder, all in this process.
fn meet(folder: &Path, size: u32) -> Vec<SocketsTransport> {
    let join = |rank| {
        let address = Address { folder: folder.to_owned(), secret: 7, rank, size };
        move || SocketsTransport::join(&address, &Patience::new(DEADLINE), DEADLINE).expect("everybody comes")
    };
    let threads: Vec<_> = (0..size).map(|rank| thread::spawn(join(rank))).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn sockets_keep_the_laws() {
    laws::transports::check(|size| {
        let folder = tempfile::tempdir().unwrap();
        let ends = meet(folder.path(), size as u32);
        ends.into_iter().map(|end| Box::new(end) as Box<dyn Transport>).collect()
    });
}

#[test]
fn who_is_none_of_the_group_is_turned_away_and_who_does_not_come_is_named() {
    use interprocess::local_socket::{GenericFilePath, Stream, prelude::*};
    let folder = tempfile::tempdir().unwrap();
    let address = |rank, secret| Address { folder: folder.path().to_owned(), secret, rank, size: 2 };
    let patience = |seconds| Patience::new(Duration::from_secs(seconds));
    let waiting = thread::spawn({
        let address = address(0, 7);
        move || SocketsTransport::join(&address, &patience(30), DEADLINE)
    });
    let path = folder.path().join("worker-0");
    while !path.exists() {
        thread::sleep(Duration::from_millis(5));
    }
    for said in [&b"GET / HTTP/1.1\r\n\r\n and some more"[..], &[0; 28], b"laconic1"] {
        let mut stream = Stream::connect(path.as_path().to_fs_name::<GenericFilePath>().unwrap()).unwrap();
        std::io::Write::write_all(&mut stream, said).unwrap();
    }
    // One who knows another secret, and one who says that it is who waits.
    let mut stranger = SocketsTransport::join(&address(1, 8), &patience(30), DEADLINE).expect("it hears nothing of it");
    assert!(matches!(stranger.recv(Rank(0), TAG), Err(WireError::Gone { peer: Rank(0), .. })));
    let mut second = SocketsTransport::join(&address(1, 7), &patience(30), DEADLINE).expect("it is known");
    let mut first = waiting.join().unwrap().expect("the right one came");
    first.send(Rank(1), Frame::new(TAG, Vec::new())).unwrap();
    assert_eq!(second.recv(Rank(0), TAG).unwrap().tag(), TAG);
    drop((first, second));
    for (rank, missing) in [(0, "rank 1"), (1, "rank 0")] {
        let alone = tempfile::tempdir().unwrap();
        let address = Address { folder: alone.path().to_owned(), ..address(rank, 7) };
        let error = SocketsTransport::join(&address, &Patience::new(Duration::from_secs(1)), DEADLINE).unwrap_err();
        assert!(error.to_string().contains(&format!("{missing} has not come after")), "{error}");
    }
}

#[test]
fn what_was_sent_before_a_process_ended_still_arrives_and_then_it_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let [mut first, mut second] = meet(folder.path(), 2).try_into().expect("two ends");
    let mut frame = Frame::new(TAG, Vec::new());
    frame.payload_mut().extend(vec![1; 3_000_000]);
    second.send(Rank(0), frame).unwrap();
    second.finish().unwrap();
    drop(second);
    assert_eq!(first.recv(Rank(1), TAG).unwrap().payload().len(), 3_000_000);
    let later = Tag { round: 18, ..TAG };
    assert_eq!(
        first.recv(Rank(1), later),
        Err(WireError::Gone { rank: Rank(0), peer: Rank(1), tag: later, sending: false })
    );
}

#[test]
fn metered_threads_keep_the_laws() {
    hold(|end| Box::new(Metered::new(end)));
}

#[test]
fn virtually_shaped_threads_keep_the_laws() {
    let satellite: LinkShape = "satellite-20mbit-300ms".parse().unwrap();
    hold(|end| Box::new(Shaped::new(end, satellite, Mode::Virtual, Arc::new(ManualClock::new()))));
}

#[test]
fn really_shaped_threads_keep_the_laws() {
    let fast: LinkShape = "20gbit,20us".parse().unwrap();
    let clock = Arc::new(WallClock::new());
    hold(|end| Box::new(Shaped::new(end, fast, Mode::Real, clock.clone())));
}

#[test]
fn virtual_times_do_not_depend_on_the_threads() {
    let wan: LinkShape = "wan-100mbit-40ms".parse().unwrap();
    let times = || {
        let shape = |end| Shaped::new(Box::new(end), wan, Mode::Virtual, Arc::new(ManualClock::new()));
        spawn(threads(5, DEADLINE).into_iter().map(shape).collect(), |end| {
            let mut exact = collectives::Reducer::exact();
            collectives::all_reduce(end, TAG, &mut vec![1.0; 100_000], &mut [], &mut exact).unwrap();
            end.virtual_now()
        })
    };
    // Four frames of 80 kB each, twice: the last of a step arrives four transfers and a latency after the step began.
    let step = wan.transfer(80_000 + HEADER_BYTES) * 4 + wan.latency;
    assert_eq!(times(), [step * 2; 5]);
}

#[test]
fn steady_traffic_goes_round_in_the_same_buffers() {
    let ends = spawn(threads(3, DEADLINE), |end| {
        let mut places = std::collections::BTreeSet::new();
        for round in 0..50 {
            let tag = Tag { round, ..TAG };
            for peer in Rank(end.rank().0).others(3) {
                let mut frame = Frame::new(tag, end.buffer_of(1000));
                frame.payload_mut().resize(1000, 0);
                places.insert(frame.payload().as_ptr() as usize);
                end.send(peer, frame).unwrap();
            }
            for peer in Rank(end.rank().0).others(3) {
                let frame = end.recv(peer, tag).unwrap();
                end.recycle(frame);
            }
        }
        places
    });
    let places: std::collections::BTreeSet<usize> = ends.into_iter().flatten().collect();
    // Six frames make a round, and nobody is more than a round ahead.
    assert!(places.len() <= 12, "{} buffers", places.len());
}

#[test]
fn a_late_peer_is_named_when_the_deadline_passes() {
    let deadline = Duration::from_secs(1);
    let mut ends = threads(3, deadline);
    let error = ends[2].recv(Rank(0), TAG).unwrap_err();
    let words = error.to_string();
    // However much longer a busy machine made it.
    let WireError::Deadline { waited, .. } = error else { panic!("{words}") };
    assert!(waited >= deadline && ends[2].waited() >= deadline, "{words}");
    let waits = ["rank 2 waited ", " s for rank 0: activations of layer 1, forward, round 17"];
    assert!(words.starts_with(waits[0]) && words.contains(waits[1]), "{words}");

    ends[0].send(Rank(2), Frame::new(TAG.later(1), Vec::new())).unwrap();
    let words = ends[2].recv(Rank(0), TAG).unwrap_err().to_string();
    assert!(words.ends_with("instead came activations of layer 1, forward, round 17, step 1"), "{words}");
}

#[test]
fn a_deadline_may_change_between_waits() {
    let mut ends = threads(2, Duration::from_secs(3600));
    ends[0].end_mut().set_deadline(Duration::from_secs(1));
    assert!(matches!(ends[0].recv(Rank(1), TAG), Err(WireError::Deadline { .. })));
}

#[test]
fn a_late_peer_fails_a_collective_for_everyone_by_name() {
    let both_have_failed = Barrier::new(3);
    let errors = spawn(threads(3, Duration::from_secs(1)), |end| {
        let error = (end.rank() != Rank(1)).then(|| collectives::barrier(end, TAG).unwrap_err());
        both_have_failed.wait();
        error
    });
    for error in errors.into_iter().flatten() {
        assert_eq!(error.peer(), Some(Rank(1)), "{error}");
        assert!(matches!(error, WireError::Deadline { .. }), "{error}");
    }
}

#[test]
fn a_peer_that_panics_is_named_at_once_and_what_it_sent_before_arrives() {
    let mut ends = threads(3, DEADLINE).into_iter();
    let (mut dying, mut waiting) = (ends.next().unwrap(), ends.nth(1).unwrap());
    let start = Instant::now();
    let worker = thread::spawn(move || {
        dying.send(Rank(2), Frame::new(TAG, Vec::new())).unwrap();
        panic!("as the test wants it");
    });
    assert!(waiting.recv(Rank(0), TAG).is_ok());
    let error = waiting.recv(Rank(0), TAG).unwrap_err();
    assert_eq!(error, WireError::Gone { rank: Rank(2), peer: Rank(0), tag: TAG, sending: false });
    assert!(worker.join().is_err());
    let error = waiting.send(Rank(0), Frame::new(TAG, Vec::new())).unwrap_err();
    assert_eq!(error, WireError::Gone { rank: Rank(2), peer: Rank(0), tag: TAG, sending: true });
    assert!(start.elapsed() < DEADLINE / 3);
}

#[test]
fn an_interrupt_ends_a_wait_and_names_the_peer() {
    let mut ends = threads(2, DEADLINE);
    let flag = Arc::new(AtomicBool::new(false));
    ends[0].add_interrupt(flag.clone());
    let start = Instant::now();
    let setter = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        flag.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let error = ends[0].recv(Rank(1), TAG).unwrap_err();
    assert_eq!(error, WireError::Interrupted { rank: Rank(0), peer: Rank(1), tag: TAG });
    assert!(start.elapsed() < DEADLINE / 3);
    setter.join().unwrap();
}

#[test]
fn a_frame_of_a_later_round_is_an_error_that_names_both() {
    for already_kept in [false, true] {
        let mut ends = threads(2, DEADLINE);
        ends[1].send(Rank(0), Frame::new(Tag { round: 18, ..TAG }, Vec::new())).unwrap();
        if already_kept {
            ends[1].send(Rank(0), Frame::new(TAG.later(1), Vec::new())).unwrap();
            ends[0].recv(Rank(1), TAG.later(1)).unwrap();
        }
        let error = ends[0].recv(Rank(1), TAG).unwrap_err();
        assert_eq!(error, WireError::Round { rank: Rank(0), peer: Rank(1), expected: TAG, found: 18 });
    }
}

#[test]
fn an_earlier_round_waits_until_it_is_asked_for() {
    let mut ends = threads(2, DEADLINE);
    for round in [17, 18] {
        ends[1].send(Rank(0), Frame::new(Tag { round, ..TAG }, Vec::new())).unwrap();
    }
    for round in [18, 17] {
        ends[0].recv(Rank(1), Tag { round, ..TAG }).unwrap();
    }
}

#[test]
fn frames_that_nobody_asks_for_do_not_fill_the_memory() {
    let mut ends = threads(2, DEADLINE);
    for round in 0..5000 {
        ends[1].send(Rank(0), Frame::new(Tag { round, ..TAG }, Vec::new())).unwrap();
    }
    let wanted = Tag { layer: 7, ..TAG };
    assert!(matches!(ends[0].recv(Rank(1), wanted), Err(WireError::Unclaimed { peer: Rank(1), kept: 4096, .. })));
}

#[test]
fn a_wrong_size_in_a_collective_names_sender_and_both_sizes() {
    let errors = spawn(threads(2, DEADLINE), |end| {
        let len = 10 + end.rank().index() * 2;
        let mut exact = collectives::Reducer::exact();
        collectives::all_reduce(end, TAG, &mut vec![0.0; len], &mut [], &mut exact).unwrap_err().to_string()
    });
    assert_eq!(
        errors[0],
        "rank 0, from rank 1: activations of layer 1, forward, round 17: all-reduce: 24 payload bytes came, expected 20"
    );
}
