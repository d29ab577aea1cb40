//! Workers at different sites, each behind its own firewall, over iroh: QUIC with both ends' keys checked, directly or
//! through a relay that sees sizes and times alone.
//!
//! `session` makes frames arrive exactly once and in order over any number of connections, `hello` is what two ends
//! say first, and `net` dials, accepts and moves bytes on a thread of its own: with `endpoint` and `caller` the only
//! files with asynchronous code. Nothing is asked of anybody who is not named: no public relay, no lookup service, no
//! port mapping.

mod caller;
mod endpoint;
mod hello;
mod link;
mod net;
mod session;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use link::{Event, Link};
use net::Net;

use super::sockets::LOOK;
use super::threads::ThreadsTransport;
use super::{End, Patience, Transport};
use crate::{Frame, Rank, Result, Tag, WireError};

pub use hello::WORD_BYTES_MAX;

/// Where the sites of a run meet, and which of them this one is.
#[derive(Clone)]
pub struct Meeting {
    /// The number of this site.
    pub rank: Rank,
    /// The seed of its Ed25519 key, which nobody else may know.
    pub seed: [u8; 32],
    /// All sites in rank order, this one included.
    pub sites: Vec<Site>,
    /// Relays to be used, and no others, such as `https://relay.example.org`.
    pub relays: Vec<String>,
    /// Which ways frames may take.
    pub paths: Paths,
    /// The address to listen on (any free port of all addresses).
    pub bind: Option<SocketAddr>,
    /// The digest of what all sites have agreed on: who comes with another one is turned away.
    pub agreement: [u8; 32],
    /// What this site says for itself to each other, at most [`WORD_BYTES_MAX`] bytes.
    pub word: Vec<u8>,
    /// How long nothing may come over a connection before it counts as lost ([`IDLE`]).
    pub idle: Duration,
    /// How long a peer may be out of reach before it counts as gone.
    pub reconnect: Duration,
}

/// How long nothing may come over a connection, usually: a few times as long as sites are silent where they have
/// nothing to say.
pub const IDLE: Duration = Duration::from_secs(30);

/// A site, as the others know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// What it is called.
    pub name: String,
    /// Its public key.
    pub key: [u8; 32],
    /// Where it listens; empty for one that is reached through a relay.
    pub addresses: Vec<SocketAddr>,
}

/// Which ways frames may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paths {
    /// Through a relay alone: connections go out, to one host and port.
    Relay,
    /// Between the sites alone.
    Direct,
    /// Through a relay, and directly where addresses can be reached.
    Any,
}

/// What is known of a link when asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkStatus {
    /// The way that frames take now, or took last, such as `relay:https://relay.example.org/` or `ip:192.0.2.7:7443`.
    pub path: String,
    /// Bytes of UDP datagrams that were sent and received, over all connections.
    pub udp: [u64; 2],
    /// How many connections there have been.
    pub connections: u32,
    /// Bytes of frames that were written again, since the connection that had taken them was lost.
    pub resent: u64,
}

/// This site's end of its links. [`finish`](Transport::finish) waits until every peer has confirmed all that was sent
/// to it; dropped without it, the transport tries for [`FLUSH`], and peers learn that this site is gone.
pub struct SitesTransport {
    inner: ThreadsTransport,
    /// By rank; none for itself.
    links: Vec<Option<Arc<Link>>>,
    words: Vec<Vec<u8>>,
    net: Option<JoinHandle<()>>,
    events: Receiver<Event>,
    sites: Vec<String>,
}

/// How long a transport that is dropped tries to get rid of what it has.
pub const FLUSH: Duration = Duration::from_secs(3);

impl SitesTransport {
    /// Meets the others. Waits for them as `start` says, whose flag also ends waits; later waits last up to `deadline`.
    ///
    /// # Errors
    ///
    /// [`WireError::Library`] if nothing can be bound, a site has agreed on something else, or not everybody comes in
    /// time; the message names the sites.
    ///
    /// # Panics
    ///
    /// If the rank is not below the number of sites.
    pub fn join(meeting: Meeting, start: &Patience, deadline: Duration) -> Result<SitesTransport> {
        let (rank, size) = (meeting.rank, meeting.sites.len());
        let end = End::new(rank, size, deadline);
        let sites: Vec<String> = meeting.sites.iter().map(|site| site.name.clone()).collect();
        let (mut to, mut from, mut links, mut inboxes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for peer in Rank::all(size) {
            let (inbox, receiving) = channel();
            from.push(receiving);
            // Frames leave through the link; the channel is for the peer's place in the end.
            to.push(channel().0);
            links.push((peer != rank).then(|| Arc::new(Link::new(end.buffers().clone()))));
            inboxes.push(inbox);
        }
        let (told, events) = channel();
        let net = Net { meeting, links: links.clone(), inboxes, told };
        let failed = |message: String| WireError::Library { rank, call: "meeting the others", message };
        let net = thread::Builder::new().name("sites".to_owned()).spawn(|| net.run());
        let net = net.map_err(|error| failed(format!("a thread: {error}")))?;
        let inner = ThreadsTransport::over(end, to, from);
        let words = vec![Vec::new(); size];
        let mut transport = SitesTransport { inner, links, words, net: Some(net), events, sites };
        transport.meet(start).map_err(failed)?;
        Ok(transport)
    }

    /// Waits until all have come; what is said in their words is kept.
    fn meet(&mut self, start: &Patience) -> std::result::Result<(), String> {
        let (rank, began) = (self.rank(), Instant::now());
        let mut missing: Vec<Option<String>> =
            Rank::all(self.size()).map(|peer| (peer != rank).then(|| "no sign of it".to_owned())).collect();
        while missing.iter().any(Option::is_some) {
            match self.events.recv_timeout(LOOK) {
                Ok(Event::Met { peer, word }) => {
                    missing[peer.index()] = None;
                    self.words[peer.index()] = word;
                }
                Ok(Event::Tried { peer, what }) => {
                    if let Some(last) = &mut missing[peer.index()] {
                        *last = what;
                    }
                }
                Ok(Event::Refused { peer, what }) => return Err(format!("{}: {what}", self.sites[peer.index()])),
                Ok(Event::Failed(what)) => return Err(what),
                Err(RecvTimeoutError::Disconnected) => return Err("the network has ended".to_owned()),
                Err(RecvTimeoutError::Timeout) if start.is_over(began) => {
                    let missing = self.sites.iter().zip(&missing);
                    let missing = missing.filter_map(|(site, last)| Some(format!("{site} ({})", last.as_ref()?)));
                    let (missing, waited) = (missing.collect::<Vec<String>>().join(", "), began.elapsed());
                    return Err(format!("after {:.1} s these have not come: {missing}", waited.as_secs_f64()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        Ok(())
    }

    /// What each site has said for itself, in rank order; empty of this one.
    pub fn words(&self) -> &[Vec<u8>] {
        &self.words
    }

    /// What is known of the link to each site, in rank order; nothing of this one.
    pub fn links(&self) -> Vec<LinkStatus> {
        self.links.iter().map(|link| link.as_ref().map(|link| link.status()).unwrap_or_default()).collect()
    }

    /// The same from elsewhere, also when the transport is in other hands.
    pub fn watch(&self) -> impl Fn() -> Vec<LinkStatus> + Send + use<> {
        let links = self.links.clone();
        move || links.iter().map(|link| link.as_ref().map(|link| link.status()).unwrap_or_default()).collect()
    }

    fn link(&self, peer: Rank) -> &Link {
        self.inner.end().assert_peer(peer);
        self.links[peer.index()].as_ref().expect("every other site has a link")
    }

    /// A frame has left the link for the worker.
    fn taken(&self, from: Rank, frame: &Frame) {
        self.link(from).taken(frame.framed_bytes());
    }
}

impl Transport for SitesTransport {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        let tag = frame.tag();
        match self.link(to).send(frame.into_bytes()) {
            true => Ok(()),
            false => Err(WireError::Gone { rank: self.rank(), peer: to, tag, sending: true }),
        }
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        let frame = self.inner.recv(from, tag)?;
        self.taken(from, &frame);
        Ok(frame)
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        let frame = self.inner.poll(from)?;
        frame.iter().for_each(|frame| self.taken(from, frame));
        Ok(frame)
    }

    fn finish(&mut self) -> Result<()> {
        let began = Instant::now();
        self.links.iter().flatten().for_each(|link| link.part());
        for peer in self.rank().others(self.size()) {
            while !self.link(peer).has_ended() {
                if self.patience().is_over(began) {
                    let (rank, waited) = (self.rank(), began.elapsed());
                    return Err(WireError::Unfinished { rank, peer, waited, unsent: None });
                }
                thread::sleep(LOOK);
            }
            if !self.link(peer).is_delivered() {
                let (rank, waited) = (self.rank(), began.elapsed());
                return Err(WireError::Unfinished { rank, peer, waited, unsent: None });
            }
        }
        Ok(())
    }
}

impl Drop for SitesTransport {
    fn drop(&mut self) {
        self.links.iter().flatten().for_each(|link| link.leave());
        let began = Instant::now();
        if let Some(net) = self.net.take() {
            while !net.is_finished() && began.elapsed() < 2 * FLUSH {
                thread::sleep(LOOK);
            }
        }
    }
}
