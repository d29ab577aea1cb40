//! Workers as processes of one machine, each pair of which has a local socket: a Unix socket, or a named pipe on
//! Windows.
//!
//! Behind each end stand two threads a peer: one writes what is queued for it, one reads what comes, so that sending
//! never waits and a frame is here before anybody asks for it, as between threads. A process that ends, however, takes
//! its sockets with it, and the others learn that it is gone from what they read.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use interprocess::local_socket::traits::{Listener as _, Stream as _};
use interprocess::local_socket::{
    GenericFilePath, Listener, ListenerNonblockingMode, ListenerOptions, Name, Stream, ToFsName,
};
use serde::{Deserialize, Serialize};

use super::{Buffers, End, Patience, Transport};
use crate::transport::threads::ThreadsTransport;
use crate::{Frame, HEADER_BYTES, Header, Rank, Result, Tag, WireError};

/// No frame is larger: one that says so is refused before anything is allocated for it.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 30;

/// What a connection begins with, before the group's secret and the number of who connects.
const HELLO: &[u8; 8] = b"laconic1";

/// What stands in the place of a header where no more will come.
const FAREWELL: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// The room that a frame is given before it has come.
const ROOM: usize = 1 << 20;

/// How long somebody who connects may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// How often a process that waits for others looks again.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// Where the processes of a group meet, and which of them this one is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// A folder that only they can look into; its path is short, because a socket's is (some hundred bytes).
    pub folder: PathBuf,
    /// What only they know: who connects without it is turned away.
    pub secret: u64,
    /// The number of this one.
    pub rank: u32,
    /// How many they are.
    pub size: u32,
}

impl Address {
    fn socket(&self, rank: u32) -> PathBuf {
        self.folder.join(format!("worker-{rank}"))
    }

    fn introduction(&self, rank: u32) -> Vec<u8> {
        [&HELLO[..], &self.secret.to_le_bytes(), &rank.to_le_bytes()].concat()
    }

    pub(super) fn failed(&self, call: &'static str, error: &io::Error) -> WireError {
        WireError::Library { rank: Rank(self.rank), call, message: error.to_string() }
    }
}

/// Waits until all that was sent is written.
///
/// # Errors
///
/// [`WireError::Unfinished`] if a peer takes nothing more for as long as this end is patient.
pub(super) fn written(of: &ThreadsTransport, writers: &mut Vec<(Rank, JoinHandle<()>)>) -> Result<()> {
    let began = Instant::now();
    for (peer, writer) in writers.drain(..) {
        while !writer.is_finished() {
            if of.patience().is_over(began) {
                let (rank, waited) = (of.rank(), began.elapsed());
                return Err(WireError::Unfinished { rank, peer, waited, unsent: None });
            }
            thread::sleep(LOOK);
        }
    }
    Ok(())
}

fn name(path: &Path) -> io::Result<Name<'_>> {
    path.to_fs_name::<GenericFilePath>()
}

/// This process's end of its sockets. [`finish`](Transport::finish) waits until all that was sent is written; dropped
/// without it, the transport lets its threads write what they still can.
#[derive(Debug)]
pub struct SocketsTransport {
    inner: ThreadsTransport,
    /// Who writes to each peer; none for itself.
    writers: Vec<(Rank, JoinHandle<()>)>,
}

impl SocketsTransport {
    /// Meets the others. Waits for them as `start` says; later waits last up to `deadline`.
    ///
    /// # Errors
    ///
    /// [`WireError::Library`] if a socket cannot be made, or not everybody comes in time.
    ///
    /// # Panics
    ///
    /// If the rank is not below the size of the group.
    pub fn join(address: &Address, start: &Patience, deadline: Duration) -> Result<SocketsTransport> {
        let (rank, size) = (Rank(address.rank), address.size as usize);
        let end = End::new(rank, size, deadline);
        let listener = listen(address).map_err(|error| address.failed("making a socket", &error))?;
        let mut streams: Vec<Option<Stream>> = (0..size).map(|_| None).collect();
        let began = Instant::now();
        for peer in 0..address.rank {
            streams[peer as usize] = Some(connect(address, peer, (start, began))?);
        }
        while let Some(missing) = (0..size).find(|&peer| peer != rank.index() && streams[peer].is_none()) {
            if let Some((peer, stream)) = accept(address, &listener)? {
                streams[peer as usize].get_or_insert(stream);
            } else if start.is_over(began) {
                let message = format!("rank {missing} has not come after {:.1} s", began.elapsed().as_secs_f64());
                return Err(WireError::Library { rank, call: "meeting the others", message });
            } else {
                thread::sleep(LOOK);
            }
        }
        Ok(SocketsTransport::over(end, streams))
    }

    fn over(end: End, streams: Vec<Option<Stream>>) -> SocketsTransport {
        let (mut to, mut from, mut writers) = (Vec::new(), Vec::new(), Vec::new());
        for (peer, stream) in Rank::all(end.size()).zip(streams) {
            let ((sending, queue), (inbox, receiving)) = (channel(), channel());
            to.push(sending);
            from.push(receiving);
            let Some(stream) = stream.map(Arc::new) else { continue };
            let [reading, writing] = std::array::from_fn(|_| stream.clone());
            let [written, read] = [end.buffers().clone(), end.buffers().clone()];
            thread::spawn(move || read_all(&reading, &inbox, &read));
            writers.push((peer, thread::spawn(move || write_all(&writing, &queue, &written))));
        }
        SocketsTransport { inner: ThreadsTransport::over(end, to, from), writers }
    }
}

pub(super) fn listen(address: &Address) -> io::Result<Listener> {
    let path = address.socket(address.rank);
    let options = ListenerOptions::new().name(name(&path)?).nonblocking(ListenerNonblockingMode::Accept);
    options.create_sync()
}

/// Connects to a worker that may not be there yet, and says who this is.
pub(super) fn connect(address: &Address, peer: u32, (start, began): (&Patience, Instant)) -> Result<Stream> {
    let path = address.socket(peer);
    loop {
        let stream = name(&path).and_then(Stream::connect);
        match stream.and_then(|mut stream| stream.write_all(&address.introduction(address.rank)).map(|()| stream)) {
            Ok(stream) => return Ok(stream),
            Err(error) if start.is_over(began) => {
                let message = format!("rank {peer} has not come after {:.1} s: {error}", began.elapsed().as_secs_f64());
                return Err(WireError::Library { rank: Rank(address.rank), call: "meeting the others", message });
            }
            Err(_) => thread::sleep(LOOK),
        }
    }
}

/// The next worker that has connected, with its number; `None` where nobody has, or who did is none of the group.
pub(super) fn accept(address: &Address, listener: &Listener) -> Result<Option<(u32, Stream)>> {
    let mut stream = match listener.accept() {
        Ok(stream) => stream,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(address.failed("accepting a connection", &error)),
    };
    let mut said = address.introduction(0);
    let heard = stream.set_recv_timeout(Some(INTRODUCTION)).and_then(|()| stream.read_exact(&mut said));
    if heard.and_then(|()| stream.set_recv_timeout(None)).is_err() {
        return Ok(None);
    }
    Ok((address.rank + 1..address.size).find(|&peer| said == address.introduction(peer)).map(|peer| (peer, stream)))
}

/// Writes what is queued until the queue is closed, or nobody reads.
pub(super) fn write_all(mut to: &Stream, queue: &Receiver<Frame>, buffers: &Buffers) {
    for frame in queue {
        let bytes = frame.into_bytes();
        if to.write_all(&bytes).is_err() {
            return;
        }
        buffers.put(bytes);
    }
    // Who no longer reads needs no farewell.
    let _ = to.write_all(&FAREWELL);
}

/// Reads frames until there are no more, or what comes is none; whoever waits for one then learns that this peer is
/// gone.
pub(super) fn read_all(from: &Stream, inbox: &Sender<Frame>, buffers: &Buffers) {
    while let Some(frame) = read(from, buffers) {
        if inbox.send(frame).is_err() {
            return;
        }
    }
}

fn read(mut from: &Stream, buffers: &Buffers) -> Option<Frame> {
    let mut header = FAREWELL;
    from.read_exact(&mut header).ok()?;
    let bytes = Header::parse(&header, PAYLOAD_BYTES_MAX).ok()?.travelling_bytes();
    // Grows with what comes, not with what is announced.
    let mut frame = buffers.take((bytes - HEADER_BYTES).min(ROOM));
    frame.clear();
    frame.extend(header);
    from.take((bytes - HEADER_BYTES) as u64).read_to_end(&mut frame).ok()?;
    Frame::parse(frame, PAYLOAD_BYTES_MAX).ok()
}

impl Transport for SocketsTransport {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        self.inner.send(to, frame)
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        self.inner.recv(from, tag)
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        self.inner.poll(from)
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.hang_up();
        written(&self.inner, &mut self.writers)
    }
}
