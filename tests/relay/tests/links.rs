//! Sites behind firewalls, which meet at a relay: the laws of transports, and a relay that is gone for a while.

use std::thread;
use std::time::{Duration, Instant};

use iroh_base::SecretKey;
use laconic_relay_tests::Relay;
use laconic_wire::transport::Patience;
use laconic_wire::transport::sites::{IDLE, Meeting, Paths, Site, SitesTransport};
use laconic_wire::{Content, Frame, FramePurpose, Rank, Tag, Transport, laws};

const DEADLINE: Duration = Duration::from_secs(150);

/// All sites of a run, which have met at this relay.
fn meet(size: usize, relay: &Relay) -> Vec<SitesTransport> {
    let seeds: Vec<[u8; 32]> = (0..size).map(|rank| [rank as u8 + 101; 32]).collect();
    let key = |seed: &[u8; 32]| *SecretKey::from_bytes(seed).public().as_bytes();
    let site = |(rank, seed)| Site { name: format!("site-{rank}"), key: key(seed), addresses: Vec::new() };
    let sites: Vec<Site> = seeds.iter().enumerate().map(site).collect();
    let join = |(rank, seed): (usize, [u8; 32])| {
        let meeting = Meeting {
            rank: Rank(rank as u32),
            seed,
            sites: sites.clone(),
            relays: vec![relay.url.clone()],
            paths: Paths::Relay,
            bind: None,
            agreement: [9; 32],
            word: Vec::new(),
            idle: IDLE,
            reconnect: Duration::from_secs(120),
        };
        thread::spawn(move || SitesTransport::join(meeting, &Patience::new(DEADLINE), DEADLINE).expect("all come"))
    };
    let threads: Vec<_> = seeds.into_iter().enumerate().map(join).collect();
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

fn relay() -> Relay {
    Relay::start("127.0.0.1:0".parse().expect("an address"))
}

#[test]
fn sites_keep_the_laws_of_transports_through_a_relay() {
    let relay = relay();
    laws::transports::check(|size| {
        meet(size, &relay).into_iter().map(|end| Box::new(end) as Box<dyn Transport>).collect()
    });
}

fn tag(round: u32) -> Tag {
    Tag { round, ..Tag::new(Content::Models, FramePurpose::Training) }
}

fn frame(round: u32, bytes: usize) -> Frame {
    let mut frame = Frame::new(tag(round), Vec::new());
    frame.payload_mut().extend(vec![round as u8; bytes]);
    frame
}

/// Two sites send each other frames while the relay is gone for so long; all come, once and in order.
fn survives(outage: Duration) {
    let mut relay = relay();
    let address = relay.address;
    let [mut one, mut two]: [SitesTransport; 2] = meet(2, &relay).try_into().ok().expect("two");
    let began = Instant::now();
    let live = move |end: &mut SitesTransport, peer: Rank| {
        // Some while the relay is there, some while it is not, some when it is back.
        for round in 1..=60 {
            end.send(peer, frame(round, 20_000)).expect("the peer is there, out of reach or not");
            if round % 20 == 0 {
                thread::sleep(outage / 2);
            }
        }
        for round in 1..=60 {
            let frame = end.recv(peer, tag(round)).expect("it comes");
            assert!(frame.payload().len() == 20_000 && frame.payload().iter().all(|&byte| byte == round as u8));
        }
        end.finish().expect("all is confirmed");
        end.links()[peer.index()].clone()
    };
    let first = thread::spawn(move || live(&mut one, Rank(1)));
    let second = thread::spawn(move || live(&mut two, Rank(0)));
    thread::sleep(outage / 4);
    relay.stop();
    thread::sleep(outage);
    let _again = Relay::start(address);
    let links = [first, second].map(|site| site.join().expect("no panic"));
    println!("{outage:?} without a relay: {:.1} s in all, {links:?}", began.elapsed().as_secs_f64());
}

#[test]
fn what_was_on_its_way_comes_when_a_relay_is_back_after_some_seconds() {
    survives(Duration::from_secs(4));
}

#[test]
fn what_was_on_its_way_comes_when_a_relay_is_back_after_the_connection_was_given_up() {
    survives(Duration::from_secs(45));
}
