//! The laws of transports under MPI, and what happens there when a peer is late or gone.
//!
//! `mpirun -n 3 target/release/examples/mpi_suite [suite | cut | shaped | huge | late | gone | stopped | interrupted]`.
//! Exits with 0 if every law held, in `suite` plain, in `cut` with frames cut into small messages, in `shaped` behind a
//! link model; `huge` sends a frame that needs two messages and takes 5 GiB of memory. In the other scenarios rank 0
//! misbehaves, and the others must end with an error that names it: they exit with 3 and print it.

use laconic_wire::transport::mpi::{MpiTransport, abort};
use laconic_wire::{
    Content, Frame, FramePurpose, LinkShape, Mode, Rank, Shaped, Tag, Transport, WallClock, WireError, collectives,
    laws,
};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What the ranks wait for where one misbehaves.
const TAG: Tag = Tag { layer: 1, round: 17, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };

fn main() {
    let scenario = std::env::args().nth(1).unwrap_or_else(|| "suite".to_owned());
    // Rank 0 comes back after four deadlines, long after the others have given up.
    let deadline = match &*scenario {
        "suite" | "cut" | "shaped" | "huge" => Duration::from_secs(60),
        _ => Duration::from_secs(1),
    };
    let transport = MpiTransport::init(deadline).unwrap_or_else(|error| {
        eprintln!("{error}");
        exit(2)
    });
    match &*scenario {
        "suite" | "cut" | "shaped" => hold(&scenario, transport),
        "huge" => send_huge(transport),
        "late" | "gone" | "stopped" | "interrupted" => misbehave(&scenario, transport, deadline),
        other => {
            eprintln!("no scenario is named {other:?}");
            abort(2)
        }
    }
}

/// Holds this rank's end to the laws.
fn hold(scenario: &str, mut transport: MpiTransport) {
    let (rank, size) = (transport.rank(), transport.size());
    let start = Instant::now();
    let end: Box<dyn Transport> = match scenario {
        "cut" => {
            // Into small messages, which is what happens to frames above a gibibyte.
            transport.set_chunk_bytes(1000);
            Box::new(transport)
        }
        "shaped" => {
            let link: LinkShape = "wan-100mbit-40ms".parse().expect("a name of the ladder");
            Box::new(Shaped::new(Box::new(transport), link, Mode::Virtual, Arc::new(WallClock::new())))
        }
        _ => Box::new(transport),
    };
    laws::transports::check_end(end);
    if rank == Rank(0) {
        println!("{scenario} on {size} ranks: every law held, {:.1} s", start.elapsed().as_secs_f64());
    }
}

/// Rank 0 sends rank 1 a frame of more than a gibibyte.
fn send_huge(mut transport: MpiTransport) {
    let len = (1 << 30) + 12_345;
    let start = Instant::now();
    if transport.rank() == Rank(0) {
        let mut frame = Frame::new(TAG, transport.buffer_of(len));
        frame.payload_mut().extend((0..len).map(|i| (i >> 12) as u8));
        transport.send(Rank(1), frame).unwrap();
    } else if transport.rank() == Rank(1) {
        let frame = transport.recv(Rank(0), TAG).unwrap();
        assert!(frame.payload().iter().copied().eq((0..len).map(|i| (i >> 12) as u8)));
        println!("{len} bytes arrived whole, {:.1} s", start.elapsed().as_secs_f64());
    }
    transport.finish().unwrap();
}

/// Rank 0 is late, gone or stopped; the others wait for it in a barrier.
fn misbehave(how: &str, mut transport: MpiTransport, deadline: Duration) {
    collectives::barrier(&mut transport, TAG).unwrap();
    if transport.rank() == Rank(0) {
        match how {
            "gone" => {
                drop(transport); // as an error or a panic would
                thread::sleep(deadline * 4); // but mpirun does not notice yet
            }
            "late" => {
                thread::sleep(deadline * 4);
                let error = collectives::barrier(&mut transport, TAG.later(1)).err();
                eprintln!("rank 0 came late and found: {error:?}");
            }
            _ => loop {
                thread::sleep(deadline); // until mpirun ends it
            },
        }
        exit(4)
    }
    if how == "interrupted" {
        // As a handler of SIGTERM would.
        let flag = Arc::new(AtomicBool::new(false));
        transport.add_interrupt(flag.clone());
        thread::spawn(move || {
            thread::sleep(deadline / 4);
            flag.store(true, Ordering::Relaxed);
        });
    }
    let start = Instant::now();
    let error = collectives::barrier(&mut transport, TAG.later(1)).unwrap_err();
    println!("{error}");
    let as_expected = match how {
        "gone" => matches!(error, WireError::Gone { peer: Rank(0), .. }) && start.elapsed() < deadline,
        "interrupted" => matches!(error, WireError::Interrupted { peer: Rank(0), .. }) && start.elapsed() < deadline,
        _ => matches!(error, WireError::Deadline { peer: Rank(0), .. }) && start.elapsed() < deadline * 2,
    };
    // The first to abort takes everybody along, so leave the others time to speak.
    thread::sleep(deadline / 2);
    abort(if as_expected { 3 } else { 1 })
}
