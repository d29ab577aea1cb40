//! Connections between sites: all asynchronous code is here and in what this asks for. One thread runs it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use iroh::endpoint::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, VarInt};
use iroh::{EndpointAddr, EndpointId, RelayUrl};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::FLUSH;
use super::Meeting;
use super::caller::{Known, Reached, Said, hear};
use super::endpoint::{ALPN, DONE, GONE, REFUSED, address, beat, bind};
use super::hello::{HEAD_BYTES, Hello};
use super::link::{Event, Link};
use super::session::{Mark, Next};
use crate::transport::sockets::PAYLOAD_BYTES_MAX;
use crate::{Frame, HEADER_BYTES, Header, Rank};

/// How long an end may take to say who it is, and a connection to be made.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// How long it waits before it dials again: at first, and at most.
const PAUSES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(5)];

/// How much longer than between two beats nothing has to come from a process before another one takes its place.
const SILENCE: Duration = Duration::from_secs(2);

/// Of a peer no further frame is read while so many bytes of its frames wait for the worker.
const WAITING_MOST: usize = 1 << 30;

/// The room that a frame is given before it has come.
const ROOM: usize = 1 << 20;

/// All links of a site.
pub struct Net {
    pub meeting: Meeting,
    pub links: Vec<Option<Arc<Link>>>,
    pub inboxes: Vec<Sender<Frame>>,
    pub told: Sender<Event>,
}

impl Net {
    /// Runs until every link has ended.
    pub fn run(self) {
        let told = self.told.clone();
        // Who no longer listens has given up.
        let failed = |what: String| drop(told.send(Event::Failed(what)));
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                if let Err(what) = runtime.block_on(self.keep_all()) {
                    failed(what);
                }
            }
            Err(error) => failed(format!("the network cannot start: {error}")),
        }
    }

    async fn keep_all(self) -> Result<(), String> {
        let Net { meeting, links, inboxes, told } = self;
        let relays =
            meeting.relays.iter().map(|url| url.parse::<RelayUrl>().map_err(|error| format!("{url}: {error}")));
        let relays: Vec<RelayUrl> = relays.collect::<Result<_, _>>()?;
        let endpoint = bind(&meeting, &relays).await?;
        let incarnation = drawn()?;
        let (mut tasks, mut callers) = (JoinSet::new(), Vec::new());
        for ((peer, link), inbox) in Rank::all(meeting.sites.len()).zip(links).zip(inboxes) {
            let Some(link) = link else { continue };
            let address = address(&meeting, peer, &relays)?;
            let (call, calls) = unbounded_channel();
            callers.push((address.id, call));
            // Who has the greater number dials, again and again.
            let address = (peer < meeting.rank).then_some(address);
            let hello = Hello { agreement: meeting.agreement, incarnation, received: 0, word: meeting.word.clone() };
            let (endpoint, told) = (endpoint.clone(), told.clone());
            let (reconnect, silence) = (meeting.reconnect, beat(&meeting) + SILENCE);
            let (inbox, theirs) = (Some(inbox), None);
            let keeper =
                Keeper { endpoint, peer, address, calls, link, inbox, told, hello, reconnect, silence, theirs };
            tasks.spawn(keeper.keep());
        }
        drop(told);
        let answering = endpoint.clone();
        let answers = tokio::spawn(async move { answer(&answering, callers).await });
        while tasks.join_next().await.is_some() {}
        answers.abort();
        // Whoever still asks is told that the connection is closed.
        let _ = timeout(FLUSH, endpoint.close()).await;
        Ok(())
    }
}

/// A number of this process alone.
fn drawn() -> Result<u64, String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| format!("random bytes: {error}"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// Takes connections of sites that are expected, and closes all others without a word.
async fn answer(endpoint: &Endpoint, callers: Vec<(EndpointId, UnboundedSender<Reached>)>) {
    let callers = Arc::new(callers);
    while let Some(incoming) = endpoint.accept().await {
        let callers = callers.clone();
        tokio::spawn(async move {
            let Ok(accepting) = incoming.accept() else { return };
            let Ok(Ok(connection)) = timeout(INTRODUCTION, accepting).await else { return };
            match callers.iter().find(|(id, _)| *id == connection.remote_id()) {
                // Where nobody takes it, its keeper has ended.
                Some((_, call)) => {
                    if let Ok(Some(said)) = timeout(INTRODUCTION, hear(&connection)).await {
                        drop(call.send(Reached { connection, said: Some(said) }));
                    }
                }
                None => connection.close(VarInt::from_u32(REFUSED), b""),
            }
        });
    }
}

/// What came of a connection.
enum Ended {
    /// Both ends have said all.
    Done,
    /// The connection is lost.
    Lost(String),
    /// The peer is gone for good, or talks nonsense.
    Gone,
    /// The peer has another connection.
    Replaced(Reached),
}

/// Who keeps the link to one peer.
struct Keeper {
    endpoint: Endpoint,
    peer: Rank,
    /// Where to dial; nothing where the peer dials.
    address: Option<EndpointAddr>,
    calls: UnboundedReceiver<Reached>,
    link: Arc<Link>,
    /// Where frames go; nothing once the peer has said that no more will come.
    inbox: Option<Sender<Frame>>,
    told: Sender<Event>,
    hello: Hello,
    reconnect: Duration,
    /// How long nothing comes from a process that is no more.
    silence: Duration,
    /// The incarnation of the peer, once it has come.
    theirs: Option<u64>,
}

impl Keeper {
    /// Keeps the link until it ends, and says so.
    async fn keep(mut self) {
        let link = self.link.clone();
        let leave = async {
            link.left.notified().await;
            // A notice of what went wrong is still to be heard, where anybody hears.
            if link.status().connections > 0 {
                sleep(FLUSH).await;
            }
        };
        tokio::select! {
            () = self.again_and_again() => {}
            () = leave => {}
        }
        // Dropping the inbox tells the worker.
        self.link.has_ended.store(true, Ordering::Release);
    }

    async fn again_and_again(&mut self) {
        let (mut lost, mut waiting) = (Instant::now(), None);
        loop {
            let Reached { connection, said } = match waiting.take() {
                Some(reached) => reached,
                None => match self.reach(lost).await {
                    Some(reached) => reached,
                    None => return,
                },
            };
            let ended = self.talk(&connection, said).await;
            let stats = connection.stats();
            self.link.note(|status| {
                status.udp[0] += stats.udp_tx.bytes;
                status.udp[1] += stats.udp_rx.bytes;
            });
            match ended {
                Ended::Done => {
                    connection.close(VarInt::from_u32(DONE), b"done");
                    return;
                }
                Ended::Gone => {
                    connection.close(VarInt::from_u32(GONE), b"gone");
                    return;
                }
                Ended::Replaced(newer) => waiting = Some(newer),
                Ended::Lost(what) => {
                    self.tell(Event::Tried { peer: self.peer, what });
                    sleep(PAUSES[0]).await;
                }
            }
            lost = Instant::now();
        }
    }

    fn tell(&self, event: Event) {
        // Who no longer listens has met all, or given up.
        let _ = self.told.send(event);
    }

    /// The next connection; none where the peer has been out of reach for too long, or this site gives up.
    async fn reach(&mut self, lost: Instant) -> Option<Reached> {
        let mut pause = PAUSES[0];
        loop {
            if self.theirs.is_some() && lost.elapsed() > self.reconnect {
                return None;
            }
            let Some(address) = self.address.clone() else {
                match timeout(PAUSES[1], self.calls.recv()).await {
                    Ok(reached) => return reached,
                    Err(_) => continue,
                }
            };
            match timeout(INTRODUCTION, self.endpoint.connect(address, ALPN)).await {
                Ok(Ok(connection)) => return Some(Reached { connection, said: None }),
                Ok(Err(error)) => self.tell(Event::Tried { peer: self.peer, what: format!("{error:#}") }),
                Err(_) => self.tell(Event::Tried { peer: self.peer, what: "it does not answer".to_owned() }),
            }
            sleep(pause).await;
            pause = (2 * pause).min(PAUSES[1]);
        }
    }

    /// Says hello and moves records until the connection ends.
    async fn talk(&mut self, connection: &Connection, said: Option<Said>) -> Ended {
        let streams = match timeout(INTRODUCTION, self.greet(connection, said)).await {
            Ok(Ok(streams)) => streams,
            Ok(Err(Ended::Lost(what))) => {
                return match closed_by(connection) {
                    Some(what) => {
                        self.tell(Event::Refused { peer: self.peer, what });
                        Ended::Gone
                    }
                    None => Ended::Lost(what),
                };
            }
            Ok(Err(ended)) => return ended,
            Err(_) => return Ended::Lost("it says nothing".to_owned()),
        };
        let (mut to, mut from) = streams;
        let (link, inbox) = (&self.link, &mut self.inbox);
        let both = async {
            tokio::select! {
                ended = write(link, &mut to) => ended,
                ended = read(link, inbox, &mut from) => ended,
            }
        };
        let known = Known { hello: &self.hello, theirs: self.theirs, silence: self.silence };
        let ended = tokio::select! {
            ended = both => ended,
            newer = known.replaced(connection, &mut self.calls) => return Ended::Replaced(newer),
        };
        match ended {
            Ok(()) => {
                // The peer's last words are read, and what confirms them is to arrive.
                let _ = to.finish();
                let _ = timeout(FLUSH, to.stopped()).await;
                Ended::Done
            }
            Err(Broken::Nonsense(what)) => {
                self.tell(Event::Refused { peer: self.peer, what });
                Ended::Gone
            }
            Err(Broken::Lost(what)) => match self.closed_with(connection).await {
                // It has heard everything, and has said everything.
                _ if self.link.session().is_over() => Ended::Done,
                Some(DONE) if self.link.session().has_heard_farewell() => {
                    self.link.session().all_is_delivered();
                    Ended::Done
                }
                Some(DONE | GONE | REFUSED) => Ended::Gone,
                _ => Ended::Lost(what),
            },
        }
    }

    /// The code with which the peer has closed a connection over which nothing comes any more; the word may be on its
    /// way.
    async fn closed_with(&self, connection: &Connection) -> Option<u32> {
        match timeout(FLUSH, connection.closed()).await {
            Ok(ConnectionError::ApplicationClosed(closed)) => u32::try_from(closed.error_code.into_inner()).ok(),
            _ => None,
        }
    }

    /// Both hellos; the streams that records travel on.
    async fn greet(&mut self, connection: &Connection, said: Option<Said>) -> Result<(SendStream, RecvStream), Ended> {
        fn lost(error: impl std::fmt::Display) -> Ended {
            Ended::Lost(error.to_string())
        }
        self.hello.received = self.link.session().received();
        let own = self.hello.to_bytes();
        let (to, mut from, head) = match said {
            Some((mut to, from, head)) => {
                to.write_all(&own).await.map_err(lost)?;
                (to, from, head)
            }
            None => {
                let (mut to, mut from) = connection.open_bi().await.map_err(lost)?;
                to.write_all(&own).await.map_err(lost)?;
                let mut head = [0; HEAD_BYTES];
                from.read_exact(&mut head).await.map_err(lost)?;
                (to, from, head)
            }
        };
        let known = Known { hello: &self.hello, theirs: self.theirs, silence: self.silence };
        let heard = Hello::parse(&head).and_then(|(hello, length)| match known.accepts(&hello)? {
            true => Ok((hello, length)),
            false => Err("it has been started anew, and knows nothing".to_owned()),
        });
        let (mut theirs, length) = heard.map_err(|what| {
            connection.close(VarInt::from_u32(REFUSED), what.as_bytes());
            self.tell(Event::Refused { peer: self.peer, what });
            Ended::Gone
        })?;
        theirs.word = vec![0; length];
        from.read_exact(&mut theirs.word).await.map_err(lost)?;
        let resent = {
            let mut session = self.link.session();
            let connected = session.connected(theirs.received, &self.link.buffers);
            connected.map_err(|what| {
                self.tell(Event::Refused { peer: self.peer, what });
                Ended::Gone
            })?;
            session.unconfirmed()
        };
        let path = connection.paths().iter().find(|path| path.is_selected()).map(|path| path.remote_addr().to_string());
        let again = self.theirs.is_some();
        self.link.note(|status| {
            status.path = path.unwrap_or_default();
            status.connections += 1;
            status.resent += if again { resent as u64 } else { 0 };
        });
        self.theirs = Some(theirs.incarnation);
        self.tell(Event::Met { peer: self.peer, word: theirs.word });
        Ok((to, from))
    }
}

/// What breaks a connection.
enum Broken {
    Lost(String),
    Nonsense(String),
}

fn lost(error: impl std::fmt::Display) -> Broken {
    Broken::Lost(error.to_string())
}

/// What the peer has said as it turned this site away.
fn closed_by(connection: &Connection) -> Option<String> {
    match connection.close_reason()? {
        ConnectionError::ApplicationClosed(closed) if closed.error_code == VarInt::from_u32(REFUSED) => {
            let said = String::from_utf8_lossy(&closed.reason).into_owned();
            Some(if said.is_empty() { "it does not know this site".to_owned() } else { format!("it says: {said}") })
        }
        _ => None,
    }
}

/// Writes what there is until all is over.
async fn write(link: &Link, to: &mut SendStream) -> Result<(), Broken> {
    loop {
        let (next, is_over) = {
            let mut session = link.session();
            let next = session.next();
            let is_over = next.is_none() && session.is_over();
            (next, is_over)
        };
        match next {
            Some(Next::Acknowledge(has)) => {
                let bytes: Vec<u8> = [&[Mark::Acknowledged as u8][..], &has.to_le_bytes()].concat();
                to.write_all(&bytes).await.map_err(lost)?;
            }
            Some(Next::Frame(bytes)) => {
                to.write_all(&[Mark::Frame as u8]).await.map_err(lost)?;
                to.write_all(&bytes).await.map_err(lost)?;
            }
            Some(Next::Farewell) => to.write_all(&[Mark::Farewell as u8]).await.map_err(lost)?,
            None if is_over => return Ok(()),
            None => link.wake.notified().await,
        }
    }
}

/// Reads what comes. Never returns but with an error: that all is over is seen where the last confirmation is written.
async fn read(link: &Link, inbox: &mut Option<Sender<Frame>>, from: &mut RecvStream) -> Result<(), Broken> {
    loop {
        while link.waiting.load(Ordering::Relaxed) > WAITING_MOST {
            link.room.notified().await;
        }
        let mut mark = [0];
        from.read_exact(&mut mark).await.map_err(lost)?;
        match Mark::of(mark[0]) {
            Some(Mark::Frame) => {
                let frame = read_frame(link, from).await?;
                link.waiting.fetch_add(frame.framed_bytes(), Ordering::Relaxed);
                // A worker that is gone reads nothing; its peer is told when the link ends.
                let _ = inbox.as_ref().map(|inbox| inbox.send(frame));
                link.session().arrived(Mark::Frame).map_err(Broken::Nonsense)?;
            }
            Some(Mark::Farewell) => {
                link.session().arrived(Mark::Farewell).map_err(Broken::Nonsense)?;
                // Whoever waits for more learns that this peer is gone.
                *inbox = None;
            }
            Some(Mark::Acknowledged) => {
                let mut has = [0; 8];
                from.read_exact(&mut has).await.map_err(lost)?;
                let has = u64::from_le_bytes(has);
                link.session().acknowledge(has, &link.buffers).map_err(Broken::Nonsense)?;
            }
            None => return Err(Broken::Nonsense(format!("it sends a record of a kind that is none: {}", mark[0]))),
        }
        link.wake.notify_one();
    }
}

async fn read_frame(link: &Link, from: &mut RecvStream) -> Result<Frame, Broken> {
    let nonsense = |error: crate::WireError| Broken::Nonsense(error.to_string());
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header).await.map_err(lost)?;
    let bytes = Header::parse(&header, PAYLOAD_BYTES_MAX).map_err(nonsense)?.travelling_bytes();
    // Grows with what comes, not with what is announced.
    let mut frame = link.buffers.take((bytes - HEADER_BYTES).min(ROOM));
    frame.clear();
    frame.extend(header);
    while frame.len() < bytes {
        let had = frame.len();
        frame.resize(bytes.min(had + ROOM), 0);
        from.read_exact(&mut frame[had..]).await.map_err(lost)?;
    }
    Frame::parse(frame, PAYLOAD_BYTES_MAX).map_err(nonsense)
}
