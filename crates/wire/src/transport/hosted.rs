//! One peer of a group in this process, the others wherever they are.
//!
//! Of processes that meet in a star, the middle may do another's work on a thread beside its own. The two speak over a
//! channel, as threads do, under the numbers that they have among all.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use super::threads::ThreadsTransport;
use super::{End, Transport};
use crate::{Frame, Rank, Result, Tag};

/// An end with links to others elsewhere, and one within this process to the peer that lives here.
pub struct Hosted {
    network: Box<dyn Transport>,
    hosted: Rank,
    home: ThreadsTransport,
}

impl Hosted {
    /// Takes in the peer of this number; returns that one's end as well, which has a link to its host and to nobody
    /// else, waits as long as the host does and shares its buffers. Both ends know that the other is in their process.
    ///
    /// # Panics
    ///
    /// If `hosted` is no other worker of the group.
    pub fn new(network: Box<dyn Transport>, hosted: Rank) -> (Hosted, ThreadsTransport) {
        let mut network = network;
        network.end().assert_peer(hosted);
        network.end_mut().set_same_process(hosted);
        let (host, size) = (network.rank(), network.size());
        let [mut home, mut of_hosted] = [(host, hosted), (hosted, host)].map(|(own, other)| {
            let mut end = End::new(own, size, network.patience().deadline()).sharing(network.end().buffers());
            end.set_same_process(other);
            ThreadsTransport::unlinked(end)
        });
        let ((to_hosted, from_host), (to_host, from_hosted)) = (channel(), channel());
        home.link(hosted, to_hosted, from_hosted);
        of_hosted.link(host, to_host, from_host);
        (Hosted { network, hosted, home }, of_hosted)
    }
}

impl Transport for Hosted {
    fn end(&self) -> &End {
        self.network.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.network.end_mut()
    }

    fn send(&mut self, to: Rank, frame: Frame) -> Result<()> {
        if to == self.hosted { self.home.send(to, frame) } else { self.network.send(to, frame) }
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        if from != self.hosted {
            return self.network.recv(from, tag);
        }
        let before = self.home.waited();
        let outcome = self.home.recv(from, tag);
        let waited = self.network.waited() + (self.home.waited() - before);
        self.network.end_mut().set_waited(waited);
        outcome
    }

    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        if from == self.hosted { self.home.poll(from) } else { self.network.poll(from) }
    }

    fn finish(&mut self) -> Result<()> {
        self.network.finish()
    }

    fn add_interrupt(&mut self, flag: Arc<AtomicBool>) {
        self.network.add_interrupt(flag.clone());
        self.home.add_interrupt(flag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Count, FramePurpose, Metered, WireError, threads};
    use std::time::Duration;

    const TAG: Tag = Tag { round: 3, ..Tag::new(Content::Models, FramePurpose::Training) };
    const LONG: Duration = Duration::from_secs(30);

    fn frame(bytes: &[u8]) -> Frame {
        let mut frame = Frame::new(TAG, Vec::new());
        frame.payload_mut().extend_from_slice(bytes);
        frame
    }

    #[test]
    fn who_lives_here_is_heard_as_others_are_and_stands_in_no_ledger() {
        let mut ends = threads(3, LONG).into_iter();
        let (middle, _nobody, far) = (ends.next().unwrap(), ends.next().unwrap(), ends.next().unwrap());
        let (host, hosted) = Hosted::new(Box::new(middle), Rank(1));
        let [mut host, mut hosted, mut far] =
            [Box::new(host) as Box<dyn Transport>, Box::new(hosted), Box::new(far)].map(Metered::new);
        assert_eq!([hosted.rank(), host.rank()], [Rank(1), Rank(0)]);
        assert_eq!([hosted.size(), host.size()], [3, 3]);
        assert!(host.poll(Rank(1)).unwrap().is_none() && hosted.poll(Rank(0)).unwrap().is_none());
        hosted.send(Rank(0), frame(b"from here")).unwrap();
        far.send(Rank(0), frame(b"from far away")).unwrap();
        assert_eq!(host.poll(Rank(1)).unwrap().unwrap().payload(), b"from here");
        assert_eq!(host.recv(Rank(2), TAG).unwrap().payload(), b"from far away");
        for (to, end) in [(Rank(1), &mut hosted), (Rank(2), &mut far)] {
            host.send(to, frame(b"back")).unwrap();
            assert_eq!(end.recv(Rank(0), TAG).unwrap().payload(), b"back");
        }
        assert_eq!((host.sent().total(), host.received().total()), (Count::of(1, 4), Count::of(1, 13)));
        assert_eq!((hosted.sent().total(), hosted.received().total()), Default::default());
        assert_eq!((far.sent().total(), far.received().total()), (Count::of(1, 13), Count::of(1, 4)));
        assert!(hosted.send(Rank(2), frame(b"nobody")).is_err(), "a hosted peer knows its host alone");
        // What it said before it went still arrives.
        hosted.send(Rank(0), frame(b"bye")).unwrap();
        drop(hosted);
        assert_eq!(host.poll(Rank(1)).unwrap().unwrap().payload(), b"bye");
        assert!(matches!(host.poll(Rank(1)), Err(WireError::Gone { peer: Rank(1), .. })));
        assert!(host.poll(Rank(2)).unwrap().is_none(), "others stay");
    }

    #[test]
    fn a_wait_for_who_lives_here_ends_with_the_deadline_and_with_an_interrupt() {
        let waits = Duration::from_secs(1);
        let (mut host, _guest) = Hosted::new(Box::new(threads(2, waits).remove(0)), Rank(1));
        assert!(matches!(host.recv(Rank(1), TAG), Err(WireError::Deadline { peer: Rank(1), .. })));
        assert!(host.waited() >= waits, "{:?}", host.waited());
        let (mut host, _guest) = Hosted::new(Box::new(threads(2, LONG).remove(0)), Rank(1));
        host.add_interrupt(Arc::new(AtomicBool::new(true)));
        assert!(matches!(host.recv(Rank(1), TAG), Err(WireError::Interrupted { peer: Rank(1), .. })));
    }
}
