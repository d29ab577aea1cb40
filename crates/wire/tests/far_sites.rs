//! The laws of transports over iroh, directly on this machine, and what happens to who is not expected.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use laconic_wire::transport::Patience;
use laconic_wire::transport::sites::{IDLE, Meeting, Paths, Site, SitesTransport};
use laconic_wire::{Content, Frame, FramePurpose, Rank, Result, Tag, Transport, WireError, laws};

const TAG: Tag = Tag { layer: 1, round: 17, ..Tag::new(Content::HiddenRows, FramePurpose::Training) };
const DEADLINE: Duration = Duration::from_secs(30);

/// A port of this machine that nobody uses now.
fn free() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.local_addr().expect("its address")
}

/// The key of a site with this seed.
fn key(seed: [u8; 32]) -> [u8; 32] {
    *iroh::SecretKey::from_bytes(&seed).public().as_bytes()
}

/// Meetings of so many sites of one run, directly, each with a seed of its own.
fn meetings(size: usize) -> Vec<Meeting> {
    let seeds: Vec<[u8; 32]> = (0..size).map(|rank| [rank as u8 + 1; 32]).collect();
    let addresses: Vec<SocketAddr> = (0..size).map(|_| free()).collect();
    let site =
        |rank: usize| Site { name: format!("site-{rank}"), key: key(seeds[rank]), addresses: vec![addresses[rank]] };
    let sites: Vec<Site> = (0..size).map(site).collect();
    let meeting = |rank: usize| Meeting {
        rank: Rank(rank as u32),
        seed: seeds[rank],
        sites: sites.clone(),
        relays: Vec::new(),
        paths: Paths::Direct,
        bind: Some(addresses[rank]),
        agreement: [9; 32],
        word: format!("word of {rank}").into_bytes(),
        idle: IDLE,
        reconnect: Duration::from_secs(60),
    };
    (0..size).map(meeting).collect()
}

/// All meet, each on a thread of its own, with so much patience.
fn join(meetings: Vec<Meeting>, patience: Duration) -> Vec<Result<SitesTransport>> {
    let join = |meeting| thread::spawn(move || SitesTransport::join(meeting, &Patience::new(patience), DEADLINE));
    let threads: Vec<_> = meetings.into_iter().map(join).collect();
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

#[test]
fn sites_keep_the_laws_of_transports() {
    laws::transports::check(|size| {
        let ends = join(meetings(size), DEADLINE);
        ends.into_iter().map(|end| Box::new(end.expect("everybody comes")) as Box<dyn Transport>).collect()
    });
}

#[test]
fn each_hears_the_others_words_and_all_that_was_sent_comes_before_the_end() {
    let ends = join(meetings(3), DEADLINE);
    let live = |mut end: SitesTransport| {
        let rank = end.rank();
        let said: Vec<String> = end.words().iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        for peer in rank.others(3) {
            assert_eq!(said[peer.index()], format!("word of {peer}"));
            let mut frame = Frame::new(TAG, end.buffer());
            frame.payload_mut().extend(vec![rank.0 as u8; 3 << 20]);
            end.send(peer, frame).expect("a peer");
        }
        for peer in rank.others(3) {
            let frame = end.recv(peer, TAG).expect("a frame");
            assert!(frame.payload().len() == 3 << 20 && frame.payload().iter().all(|&byte| byte == peer.0 as u8));
        }
        end.finish().expect("all take their frames");
        let links = end.links();
        for peer in rank.others(3) {
            let link = &links[peer.index()];
            assert!(link.udp[0] > 3 << 20 && link.connections == 1 && link.path.starts_with("ip:"), "{link:?}");
        }
    };
    let threads: Vec<_> = ends.into_iter().map(|end| thread::spawn(move || live(end.expect("it comes")))).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn who_has_agreed_on_something_else_is_turned_away_with_both_digests() {
    let mut two = meetings(2);
    two[1].agreement = [8; 32];
    let began = Instant::now();
    let said: Vec<String> = join(two, DEADLINE).into_iter().map(|end| end.err().expect("no run").to_string()).collect();
    assert!(began.elapsed() < DEADLINE / 2);
    assert!(said.iter().any(|said| said.contains("09090909") && said.contains("08080808")), "{said:?}");
    assert!(said[0].contains("site-1") && said[1].contains("site-0"), "{said:?}");
}

#[test]
fn who_does_not_come_is_named_and_a_stranger_is_nobody() {
    let mut two = meetings(2);
    // Another key than the one that is expected.
    two[1].seed = [77; 32];
    let began = Instant::now();
    let ends = join(two, Duration::from_secs(4));
    let said = ends.into_iter().next().and_then(Result::err).expect("nobody came").to_string();
    assert!(said.contains("site-1") && began.elapsed() < DEADLINE, "{said}");
}

#[test]
fn who_leaves_without_a_word_is_gone_for_the_others_at_once() {
    let ends = join(meetings(2), DEADLINE);
    let [mut first, second] =
        ends.into_iter().map(|end| end.expect("it comes")).collect::<Vec<_>>().try_into().ok().expect("two");
    let leaving = thread::spawn(move || drop(second));
    let began = Instant::now();
    assert!(matches!(first.recv(Rank(1), TAG), Err(WireError::Gone { peer: Rank(1), .. })));
    assert!(began.elapsed() < DEADLINE / 3);
    drop(first);
    leaving.join().expect("no panic");
}

/// Carries datagrams between one address and whoever speaks to the other, unless it is cut.
fn wire(to: SocketAddr, is_cut: Arc<AtomicBool>) -> SocketAddr {
    let [near, far] = [(); 2].map(|()| Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a free port")));
    let address = near.local_addr().expect("its address");
    let caller = Arc::new(std::sync::Mutex::new(None));
    let carry = |from: Arc<UdpSocket>, out: Arc<UdpSocket>, goes_far: bool| {
        let (caller, is_cut) = (caller.clone(), is_cut.clone());
        thread::spawn(move || {
            let mut datagram = vec![0; 1 << 16];
            while let Ok((bytes, who)) = from.recv_from(&mut datagram) {
                let mut caller = caller.lock().expect("no panic");
                let to = if goes_far { Some(to) } else { *caller };
                if goes_far {
                    *caller = Some(who);
                }
                // What cannot be sent is lost, as on any network.
                let _ = to.filter(|_| !is_cut.load(Ordering::Relaxed)).map(|to| out.send_to(&datagram[..bytes], to));
            }
        });
    };
    carry(near.clone(), far.clone(), true);
    carry(far, near, false);
    address
}

#[test]
fn what_was_on_its_way_when_a_link_was_cut_comes_once_and_in_order_when_it_is_whole_again() {
    let is_cut = Arc::new(AtomicBool::new(false));
    let mut two = meetings(2);
    two.iter_mut().for_each(|meeting| meeting.idle = Duration::from_secs(2));
    // The second dials the first.
    two[1].sites[0].addresses = vec![wire(two[0].sites[0].addresses[0], is_cut.clone())];
    let ends: Vec<SitesTransport> = join(two, DEADLINE).into_iter().map(|end| end.expect("it comes")).collect();
    let live = |mut end: SitesTransport| {
        let peer = Rank(1 - end.rank().0);
        let frame = |round: u32| {
            let mut frame = Frame::new(Tag { round, ..TAG }, Vec::new());
            frame.payload_mut().extend(vec![round as u8; 30_000]);
            frame
        };
        for round in 1..=60 {
            end.send(peer, frame(round)).expect("the peer is there, out of reach or not");
            thread::sleep(Duration::from_millis(if round % 10 == 0 { 1000 } else { 0 }));
        }
        for round in 1..=60 {
            assert_eq!(end.recv(peer, Tag { round, ..TAG }).expect("it comes").payload(), frame(round).payload());
        }
        end.finish().expect("all is confirmed");
        end.links()[peer.index()].clone()
    };
    let live: Vec<_> = ends.into_iter().map(|end| thread::spawn(move || live(end))).collect();
    thread::sleep(Duration::from_millis(1500));
    is_cut.store(true, Ordering::Relaxed);
    thread::sleep(Duration::from_secs(4));
    is_cut.store(false, Ordering::Relaxed);
    for link in live.into_iter().map(|site| site.join().expect("no panic")) {
        assert!(link.connections >= 2 && link.resent > 0, "{link:?}: the connection was lost, and made anew");
    }
}

#[test]
fn another_process_with_a_sites_key_is_turned_away_and_the_run_goes_on() {
    let two = meetings(2);
    // The site with the greater number dials, from wherever it is.
    let again = Meeting { bind: None, ..two[1].clone() };
    let ends = join(two, DEADLINE);
    let [mut first, mut second] =
        ends.into_iter().map(|end| end.expect("it comes")).collect::<Vec<_>>().try_into().ok().expect("two");
    let said = join(vec![again], DEADLINE).remove(0).err().expect("no run").to_string();
    assert!(said.contains("site-0: it says: another process with this site's key is in the run already"), "{said}");
    second.send(Rank(0), Frame::new(TAG, vec![])).expect("still there");
    first.recv(Rank(1), TAG).expect("a frame");
    first.send(Rank(1), Frame::new(TAG, vec![])).expect("still there");
    second.recv(Rank(0), TAG).expect("a frame");
    let finishing = thread::spawn(move || second.finish());
    first.finish().expect("all is delivered");
    finishing.join().expect("no panic").expect("all is delivered");
    assert_eq!(first.links()[1].connections, 1);
}
