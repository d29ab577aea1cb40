//! A wrapper that makes any transport as slow as a given link, in modelled or in real time.
//!
//! The model: a worker has one uplink. Its frames leave one after another, each for `framed bytes · 8 / bandwidth`, and
//! arrive a latency later. The sender works out the time of arrival and stamps it on the frame, behind the payload,
//! where nothing counts it; the receiver takes the stamp off and waits until then.

use super::link::LinkShape;
use super::{End, Transport};
use crate::clock::{Clock, nanoseconds};
use crate::{Frame, Rank, Result, Tag, WireError};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

/// How a modelled wait is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Nobody waits: every worker has a virtual clock, to which modelled waits are added. Starts at zero.
    Virtual,
    /// The receiver sleeps. The clocks of all workers must agree, as [`WallClock`](crate::clock::WallClock)s of one
    /// machine do.
    Real,
}

/// A worker's clock on a modelled network: the time of its own work, plus the waits that the model says, minus the time
/// spent inside the real transport. A handle: clones show the same time, also when the transport is boxed away.
#[derive(Clone)]
pub struct VirtualClock {
    base: Arc<dyn Clock>,
    /// What to add to the base clock, in nanoseconds.
    shift: Arc<AtomicI64>,
}

impl VirtualClock {
    fn shift(&self, nanoseconds: i64) {
        let shifted = self.shift.load(Ordering::Relaxed).saturating_add(nanoseconds);
        self.shift.store(shifted, Ordering::Relaxed);
    }

    /// Runs something that takes no time on this clock.
    fn stopped<R>(&self, run: impl FnOnce() -> R) -> R {
        let before = self.base.now();
        let result = run();
        self.shift(-signed_nanoseconds(self.base.now().saturating_sub(before)));
        result
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        let now = signed_nanoseconds(self.base.now()).saturating_add(self.shift.load(Ordering::Relaxed));
        Duration::from_nanos(now.max(0) as u64)
    }
}

fn signed_nanoseconds(duration: Duration) -> i64 {
    i64::try_from(nanoseconds(duration)).unwrap_or(i64::MAX)
}

/// A transport behind a modelled link. All workers of a group must be shaped, or none.
///
/// In [`Mode::Virtual`], [`waited`](Transport::waited) is the modelled waiting, whatever the threads really did, and
/// the deadline concerns real waits only. In [`Mode::Real`] both are real.
pub struct Shaped {
    inner: Box<dyn Transport>,
    shape: LinkShape,
    mode: Mode,
    clock: VirtualClock,
    /// When the last frame queued so far will have left.
    uplink_free: Duration,
    /// By sender a frame that was looked for before it had arrived.
    early: Vec<Option<(Duration, Frame)>>,
}

impl Shaped {
    /// Wraps a transport. The clock measures this worker's own work.
    pub fn new(mut inner: Box<dyn Transport>, shape: LinkShape, mode: Mode, clock: Arc<dyn Clock>) -> Shaped {
        let origin = match mode {
            Mode::Virtual => {
                inner.end_mut().set_waited(Duration::ZERO);
                -signed_nanoseconds(clock.now())
            }
            Mode::Real => 0,
        };
        let clock = VirtualClock { base: clock, shift: Arc::new(AtomicI64::new(origin)) };
        let early = (0..inner.size()).map(|_| None).collect();
        Shaped { inner, shape, mode, clock, uplink_free: Duration::ZERO, early }
    }

    /// The time on this worker's virtual clock.
    pub fn virtual_now(&self) -> Duration {
        self.clock.now()
    }

    /// A handle on the virtual clock.
    pub fn clock(&self) -> VirtualClock {
        self.clock.clone()
    }

    /// When a frame arrives.
    fn arrival(&self, frame: &mut Frame, from: Rank) -> Result<Duration> {
        let tag = frame.tag();
        frame.pop_stamp().map(Duration::from_nanos).ok_or_else(|| {
            let missing = WireError::Header { what: "the length of the time stamp", expected: 8, found: 0 };
            missing.from_peer(self.rank(), from, tag)
        })
    }

    /// Serves the wait for a frame that arrives at this time.
    fn wait_until(&mut self, arrival: Duration, from: Rank, tag: Tag) -> Result<()> {
        let late = arrival.saturating_sub(self.clock.now());
        if self.mode == Mode::Virtual {
            self.clock.shift(signed_nanoseconds(late));
            let waited = self.waited().saturating_add(late);
            self.end_mut().set_waited(waited);
            return Ok(());
        }
        let wait = self.inner.patience().wait(self.inner.rank(), from, tag);
        let outcome = loop {
            let left = arrival.saturating_sub(self.clock.now());
            if left.is_zero() {
                break Ok(());
            }
            match wait.nap(|| None) {
                Ok(nap) => thread::sleep(nap.min(left)),
                Err(error) => break Err(error),
            }
        };
        let waited = self.inner.waited() + wait.waited();
        self.inner.end_mut().set_waited(waited);
        outcome
    }
}

impl Transport for Shaped {
    fn end(&self) -> &End {
        self.inner.end()
    }

    fn end_mut(&mut self) -> &mut End {
        self.inner.end_mut()
    }

    fn send(&mut self, to: Rank, mut frame: Frame) -> Result<()> {
        let leaves = self.clock.now().max(self.uplink_free).saturating_add(self.shape.transfer(frame.framed_bytes()));
        self.uplink_free = leaves;
        frame.push_stamp(nanoseconds(leaves.saturating_add(self.shape.latency)));
        match self.mode {
            Mode::Virtual => self.clock.stopped(|| self.inner.send(to, frame)),
            Mode::Real => self.inner.send(to, frame),
        }
    }

    fn recv(&mut self, from: Rank, tag: Tag) -> Result<Frame> {
        // It may have been looked for before it had arrived.
        if let Some((arrival, frame)) = self.early[from.index()].take_if(|(_, frame)| frame.tag() == tag) {
            return self.wait_until(arrival, from, tag).map(|()| frame);
        }
        let mut frame = match self.mode {
            Mode::Virtual => {
                // What the threads really wait is not the model's.
                let before = self.waited();
                let received = self.clock.stopped(|| self.inner.recv(from, tag));
                self.end_mut().set_waited(before);
                received?
            }
            Mode::Real => self.inner.recv(from, tag)?,
        };
        let arrival = self.arrival(&mut frame, from)?;
        self.wait_until(arrival, from, tag).map(|()| frame)
    }

    /// A frame is here when it has arrived by the model; by the virtual clock, one that is under way arrives at once.
    fn poll(&mut self, from: Rank) -> Result<Option<Frame>> {
        let early = match self.early[from.index()].take() {
            Some(early) => Some(early),
            None => match self.inner.poll(from)? {
                Some(mut frame) => Some((self.arrival(&mut frame, from)?, frame)),
                None => None,
            },
        };
        let Some((arrival, frame)) = early else { return Ok(None) };
        if self.mode == Mode::Real && arrival > self.clock.now() {
            self.early[from.index()] = Some((arrival, frame));
            return Ok(None);
        }
        let tag = frame.tag();
        self.wait_until(arrival, from, tag).map(|()| Some(frame))
    }

    fn finish(&mut self) -> Result<()> {
        self.inner.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;
    use crate::{Content, FramePurpose, HEADER_BYTES, threads};

    const TAG: Tag = Tag::new(Content::HiddenRows, FramePurpose::Training);
    /// 1 byte takes 1 µs to leave; the latency is 10 ms.
    const SHAPE: LinkShape = LinkShape { latency: Duration::from_millis(10), bits_per_second: 8e6 };

    /// The ends of a group on one thread, each with its own stopped clock.
    fn group(size: usize) -> Vec<(Shaped, Arc<ManualClock>)> {
        let shape = |end| {
            let clock = Arc::new(ManualClock::new());
            clock.advance(Duration::from_secs(5)); // the virtual clock must start at zero all the same
            (Shaped::new(Box::new(end), SHAPE, Mode::Virtual, clock.clone()), clock)
        };
        threads(size, Duration::from_secs(10)).into_iter().map(shape).collect()
    }

    /// A frame that takes this long to leave.
    fn frame(us: usize) -> Frame {
        let mut frame = Frame::new(TAG, Vec::new());
        frame.payload_mut().resize(us.max(HEADER_BYTES), 0); // the header is counted too
        frame
    }

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn ping_pong_takes_two_transfers_and_two_latencies() {
        let [(mut a, clock_a), (mut b, clock_b)] = group(2).try_into().ok().unwrap();
        clock_a.advance(us(300)); // a works before it sends
        a.send(Rank(1), frame(1000)).unwrap();
        assert_eq!(a.virtual_now(), us(300));
        b.recv(Rank(0), TAG).unwrap();
        assert_eq!((b.virtual_now(), b.waited()), (us(11_300), us(11_300)));
        clock_b.advance(us(500)); // b works before it answers
        b.send(Rank(0), frame(2000)).unwrap();
        a.recv(Rank(1), TAG).unwrap();
        assert_eq!((a.virtual_now(), a.waited()), (us(23_800), us(23_500)));
        assert_eq!(a.clock().now(), a.virtual_now());
    }

    #[test]
    fn queued_frames_share_the_uplink_and_a_late_receiver_does_not_wait() {
        let [(mut a, clock_a), (mut b, clock_b)] = group(2).try_into().ok().unwrap();
        a.send(Rank(1), frame(1000)).unwrap();
        clock_a.advance(us(400)); // the second is queued while the first still leaves
        a.send(Rank(1), frame(1000)).unwrap();
        b.recv(Rank(0), TAG).unwrap();
        assert_eq!(b.virtual_now(), us(11_000));
        b.recv(Rank(0), TAG).unwrap();
        assert_eq!(b.virtual_now(), us(12_000));
        clock_a.advance(us(2600)); // now the uplink has been free for a while
        a.send(Rank(1), frame(1000)).unwrap();
        clock_b.advance(us(20_000));
        b.recv(Rank(0), TAG).unwrap();
        assert_eq!((b.virtual_now(), b.waited()), (us(32_000), us(12_000)));
    }

    #[test]
    fn a_frame_that_was_looked_for_too_early_is_received_in_its_turn() {
        let clock = || Arc::new(crate::clock::WallClock::new());
        let shape = LinkShape { latency: Duration::from_millis(300), ..SHAPE };
        let shared = clock();
        let end = |end| Shaped::new(Box::new(end), shape, Mode::Real, shared.clone());
        let mut ends: Vec<Shaped> = threads(2, Duration::from_secs(10)).into_iter().map(end).collect();
        ends[0].send(Rank(1), frame(100)).unwrap();
        ends[0].send(Rank(1), frame(200)).unwrap();
        assert!(ends[1].poll(Rank(0)).unwrap().is_none(), "it is under way");
        let lengths = [(); 2].map(|()| ends[1].recv(Rank(0), TAG).unwrap().framed_bytes());
        assert_eq!(lengths, [100, 200], "no frame is lost, and none overtakes another");
    }

    #[test]
    fn a_fan_out_arrives_one_transfer_after_another() {
        let mut ends = group(4);
        for peer in 1..4u32 {
            ends[0].0.send(Rank(peer), frame(700)).unwrap();
        }
        for peer in 1..4u32 {
            let end = &mut ends[peer as usize].0;
            end.recv(Rank(0), TAG).unwrap();
            assert_eq!(end.virtual_now(), us(10_000 + 700 * u64::from(peer)));
        }
    }

    #[test]
    fn real_mode_sleeps_as_long_as_the_model_says_and_keeps_the_deadline() {
        let clock = Arc::new(crate::clock::WallClock::new());
        let ends = threads(2, Duration::from_secs(3)).into_iter();
        let shaped = |shape: LinkShape| {
            move |end| Shaped::new(Box::new(end), shape, Mode::Real, clock.clone() as Arc<dyn Clock>)
        };
        let [mut a, mut b] = ends.map(shaped(SHAPE)).collect::<Vec<_>>().try_into().ok().unwrap();
        let start = std::time::Instant::now();
        a.send(Rank(1), frame(500)).unwrap();
        b.recv(Rank(0), TAG).unwrap();
        assert!(start.elapsed() >= Duration::from_micros(10_500 - 100), "{:?}", start.elapsed());
        assert!(b.waited() >= Duration::from_millis(5), "{:?}", b.waited());
        // Twenty seconds on this link.
        a.send(Rank(1), frame(20_000_000)).unwrap();
        assert!(matches!(b.recv(Rank(0), TAG), Err(WireError::Deadline { peer: Rank(0), .. })));
    }

    #[test]
    fn a_peer_without_a_link_model_is_an_error() {
        let [plain, end] = threads(2, Duration::from_secs(10)).try_into().ok().unwrap();
        let (mut plain, mut shaped) =
            (plain, Shaped::new(Box::new(end), SHAPE, Mode::Virtual, Arc::new(ManualClock::new())));
        plain.send(Rank(1), Frame::new(TAG, Vec::new())).unwrap();
        assert!(matches!(shaped.recv(Rank(0), TAG), Err(WireError::WithPeer { peer: Rank(0), .. })));
    }
}
