//! Processes of one machine of which one has a local socket to each other one, and these have none among themselves.
//!
//! Who loses its socket may come back: a process with the number of one that was here before takes its place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use interprocess::local_socket::Stream;

use super::sockets::{Address, LOOK, accept, connect, listen, read_all, write_all, written};
use super::{End, Patience, Transport};
use crate::transport::threads::ThreadsTransport;
use crate::{Frame, Rank, Result, Tag};

/// The one in the middle.
const HUB: Rank = Rank(0);

/// One process's end of a star, whose middle is rank 0.
#[derive(Debug)]
pub struct StarTransport {
    inner: ThreadsTransport,
    /// Who writes to each peer that is or was here.
    writers: Vec<(Rank, JoinHandle<()>)>,
    /// In the middle: who comes, and comes back.
    door: Option<Door>,
}

/// A thread that lets others in as long as the middle is there.
#[derive(Debug)]
struct Door {
    coming: Receiver<(Rank, Stream)>,
    closes: Arc<AtomicBool>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.closes.store(true, Ordering::Relaxed);
    }
}

impl StarTransport {
    /// The middle, which waits for nobody: others come when they do, and a look for a frame of one who has not come
    /// finds nothing.
    ///
    /// # Errors
    ///
    /// [`WireError::Library`](crate::WireError::Library) if a socket cannot be made.
    ///
    /// # Panics
    ///
    /// If this is not rank 0.
    pub fn middle(address: &Address, deadline: std::time::Duration) -> Result<StarTransport> {
        assert_eq!(address.rank, HUB.0, "the middle has rank 0");
        let failed = |error: std::io::Error| address.failed("making a socket", &error);
        let listener = listen(address).map_err(failed)?;
        let (enter, coming) = channel();
        let closes = Arc::new(AtomicBool::new(false));
        let (own, closed) = (address.clone(), closes.clone());
        let guard = move || {
            while !closed.load(Ordering::Relaxed) {
                // A connection that failed is nobody's; the next may do better.
                let Ok(Some((rank, stream))) = accept(&own, &listener) else {
                    thread::sleep(LOOK);
                    continue;
                };
                if enter.send((Rank(rank), stream)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("door".to_owned()).spawn(guard).map_err(failed)?;
        let end = End::new(HUB, address.size as usize, deadline);
        let inner = ThreadsTransport::unlinked(end);
        Ok(StarTransport { inner, writers: Vec::new(), door: Some(Door { coming, closes }) })
    }

    /// The end of another than rank 0. Waits for that one as `start` says; later waits last up to `deadline`.
    ///
    /// # Errors
    ///
    /// [`WireError::Library`](crate::WireError::Library) if rank 0 does not come in time.
    pub fn arm(address: &Address, start: &Patience, deadline: std::time::Duration) -> Result<StarTransport> {
        let stream = connect(address, HUB.0, (start, Instant::now()))?;
        let inner = ThreadsTransport::unlinked(End::new(Rank(address.rank), address.size as usize, deadline));
        let mut star = StarTransport { inner, writers: Vec::new(), door: None };
        star.link(HUB, stream);
        Ok(star)
    }

    /// Links this end with a peer, in the place of an older link.
    fn link(&mut self, peer: Rank, stream: Stream) {
        let ((sending, queue), (inbox, receiving)) = (channel(), channel());
        self.inner.link(peer, sending, receiving);
        let stream = Arc::new(stream);
        let [reading, writing] = std::array::from_fn(|_| stream.clone());
        let [written, read] = [self.inner.end().buffers().clone(), self.inner.end().buffers().clone()];
        thread::spawn(move || read_all(&reading, &inbox, &read));
        self.writers.retain(|(_, writer)| !writer.is_finished());
        self.writers.push((peer, thread::spawn(move || write_all(&writing, &queue, &written))));
    }

    /// Lets in who has come since the last time.
    fn welcome(&mut self) {
        while let Some((peer, stream)) = self.door.as_ref().and_then(|door| door.coming.try_recv().ok()) {
            self.link(peer, stream);
        }
    }
}

impl Transport for StarTransport {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        self.welcome();
        self.inner.send(to, frame)
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        self.welcome();
        self.inner.recv(from, tag)
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        self.welcome();
        self.inner.poll(from)
    }

    fn finish(&mut self) -> Result<()> {
        self.door = None;
        self.inner.hang_up();
        written(&self.inner, &mut self.writers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, FramePurpose, WireError};
    use std::time::Duration;

    const TAG: Tag = Tag::new(Content::Agreement, FramePurpose::StartUp);
    const LONG: Duration = Duration::from_secs(30);

    fn frame(round: u32, bytes: &[u8]) -> Frame {
        let mut frame = Frame::new(Tag { round, ..TAG }, Vec::new());
        frame.payload_mut().extend_from_slice(bytes);
        frame
    }

    /// The next frame, or that the other is gone.
    fn next(end: &mut StarTransport, from: Rank) -> Result<Frame> {
        let began = Instant::now();
        loop {
            if let Some(frame) = end.poll(from)? {
                return Ok(frame);
            }
            assert!(began.elapsed() < LONG, "nothing came from {from}");
            thread::sleep(LOOK);
        }
    }

    #[test]
    fn who_is_gone_is_missed_and_may_come_back_while_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let address = |rank| Address { folder: folder.path().to_owned(), secret: 7, rank, size: 3 };
        let start = Patience::new(LONG);
        let mut middle = StarTransport::middle(&address(0), LONG).unwrap();
        assert!(middle.poll(Rank(1)).unwrap().is_none(), "who has not come says nothing and is not gone");
        let mut first = StarTransport::arm(&address(1), &start, LONG).unwrap();
        let mut second = StarTransport::arm(&address(2), &start, LONG).unwrap();
        for (end, rank) in [(&mut first, 1), (&mut second, 2)] {
            end.send(Rank(0), frame(rank, &[rank as u8])).unwrap();
            assert_eq!(next(&mut middle, Rank(rank)).unwrap().payload(), [rank as u8]);
            middle.send(Rank(rank), frame(9, b"hello")).unwrap();
            assert_eq!(next(end, Rank(0)).unwrap().payload(), b"hello");
        }
        assert!(second.send(Rank(1), frame(1, &[])).is_err(), "there is no link between them");
        // Gone without a word, with frames that nobody reads under way.
        drop(first);
        assert!(matches!(next(&mut middle, Rank(1)), Err(WireError::Gone { peer: Rank(1), .. })));
        let _ = middle.send(Rank(1), frame(10, b"lost"));
        let mut back = StarTransport::arm(&address(1), &start, LONG).unwrap();
        back.send(Rank(0), frame(2, b"back")).unwrap();
        let heard = loop {
            match middle.poll(Rank(1)) {
                Ok(Some(frame)) => break frame,
                Ok(None) | Err(WireError::Gone { .. }) => thread::sleep(LOOK),
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!((heard.tag().round, heard.payload()), (2, &b"back"[..]));
        middle.send(Rank(1), frame(11, b"again")).unwrap();
        assert_eq!(next(&mut back, Rank(0)).unwrap().payload(), b"again");
        second.send(Rank(0), frame(3, b"still here")).unwrap();
        assert_eq!(next(&mut middle, Rank(2)).unwrap().payload(), b"still here");
        for end in [&mut back, &mut second, &mut middle] {
            end.finish().unwrap();
        }
    }
}
