//! `speed`: how long two sites of this machine take to meet, and how fast frames cross, directly and through a relay.

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use iroh_base::SecretKey;
use laconic_relay_tests::Relay;
use laconic_wire::transport::Patience;
use laconic_wire::transport::sites::{IDLE, Meeting, Paths, Site, SitesTransport};
use laconic_wire::{Content, Frame, FramePurpose, Rank, Tag, Transport};

const DEADLINE: Duration = Duration::from_secs(120);
const FRAMES: u32 = 64;
const BYTES: usize = 4 << 20;

fn meetings(relay: Option<&Relay>) -> [Meeting; 2] {
    let seeds = [[11; 32], [12; 32]];
    let address = || UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port");
    let addresses = [address(), address()];
    let sites = [0, 1].map(|rank| Site {
        name: format!("site-{rank}"),
        key: *SecretKey::from_bytes(&seeds[rank]).public().as_bytes(),
        addresses: if relay.is_some() { Vec::new() } else { vec![addresses[rank]] },
    });
    [0, 1].map(|rank| Meeting {
        rank: Rank(rank as u32),
        seed: seeds[rank],
        sites: sites.to_vec(),
        relays: relay.map(|relay| relay.url.clone()).into_iter().collect(),
        paths: if relay.is_some() { Paths::Relay } else { Paths::Direct },
        bind: relay.is_none().then_some(addresses[rank]),
        agreement: [9; 32],
        word: Vec::new(),
        idle: IDLE,
        reconnect: DEADLINE,
    })
}

fn tag(round: u32) -> Tag {
    Tag { round, ..Tag::new(Content::Models, FramePurpose::Training) }
}

fn measure(what: &str, relay: Option<&Relay>) {
    let [one, two] = meetings(relay);
    let began = Instant::now();
    let join = |meeting| SitesTransport::join(meeting, &Patience::new(DEADLINE), DEADLINE).expect("both come");
    let second = thread::spawn(move || {
        let mut end = join(two);
        for round in 1..=FRAMES {
            let frame = end.recv(Rank(0), tag(round)).expect("a frame");
            end.recycle(frame);
        }
        end.finish().expect("an end");
    });
    let mut end = join(one);
    let met = began.elapsed();
    let began = Instant::now();
    for round in 1..=FRAMES {
        let mut frame = Frame::new(tag(round), end.buffer());
        let head = frame.framed_bytes();
        frame.payload_mut().resize(head + BYTES, round as u8);
        end.send(Rank(1), frame).expect("a peer");
    }
    end.finish().expect("an end");
    let (seconds, udp) = (began.elapsed().as_secs_f64(), end.links()[1].udp[0] as f64);
    second.join().expect("no panic");
    let framed = f64::from(FRAMES) * BYTES as f64;
    let (gbit, over, met) = (framed * 8e-9 / seconds, udp / framed, met.as_secs_f64() * 1e3);
    println!("{what}: met in {met:.0} ms, {gbit:.2} Gbit/s, {over:.3} bytes of UDP payload a byte of frames");
}

fn main() {
    measure("directly", None);
    let relay = Relay::start("127.0.0.1:0".parse().expect("an address"));
    measure("through a relay", Some(&relay));
}
