//! One link as a state machine: what is still to be written, what has come, what the other end has acknowledged. It
//! knows no network, clock or thread, so that frames arrive exactly once and in order over any number of connections.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::transport::Buffers;

/// What stands before a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    /// A whole frame follows.
    Frame = 1,
    /// How many records have come, in eight bytes, little-endian.
    Acknowledged = 2,
    /// Nothing more will come; counts as a record.
    Farewell = 3,
}

impl Mark {
    /// The mark that a byte stands for.
    pub fn of(byte: u8) -> Option<Mark> {
        [Mark::Frame, Mark::Acknowledged, Mark::Farewell].into_iter().find(|mark| *mark as u8 == byte)
    }
}

/// What is written next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// That so many records have come.
    Acknowledge(u64),
    /// The bytes of a frame.
    Frame(Arc<Vec<u8>>),
    /// That nothing more will come.
    Farewell,
}

/// A record that the other end may still not have.
#[derive(Debug)]
enum Kept {
    Frame(Arc<Vec<u8>>),
    Farewell,
}

/// One end of a link to one peer.
#[derive(Debug, Default)]
pub struct Session {
    /// What the peer has not acknowledged, the oldest first.
    kept: VecDeque<Kept>,
    /// How many records the peer has acknowledged.
    acknowledged: u64,
    /// How many records have been written, or need not be, on this connection or before.
    written: u64,
    /// How many records have come.
    received: u64,
    /// The count that was last said to the peer on this connection.
    told: u64,
    /// Whether the own farewell is queued.
    is_parting: bool,
    /// Whether the peer's farewell has come.
    is_left: bool,
}

impl Session {
    /// Queues the bytes of a frame.
    ///
    /// # Panics
    ///
    /// After [`Session::part`].
    pub fn send(&mut self, frame: Vec<u8>) {
        assert!(!self.is_parting, "nothing is sent after a farewell");
        self.kept.push_back(Kept::Frame(Arc::new(frame)));
    }

    /// Queues the farewell, once.
    pub fn part(&mut self) {
        if !std::mem::replace(&mut self.is_parting, true) {
            self.kept.push_back(Kept::Farewell);
        }
    }

    /// How many records have come, which the peer is told when a connection begins.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Begins another connection, at whose other end so many records have come; the rest is written again.
    ///
    /// # Errors
    ///
    /// If so many cannot have come.
    pub fn connected(&mut self, has: u64, buffers: &Buffers) -> Result<(), String> {
        // All that the last connection has taken may have been lost with it, or have arrived.
        self.acknowledge(has, buffers)?;
        (self.written, self.told) = (has, self.received);
        Ok(())
    }

    /// The peer has so many records.
    ///
    /// # Errors
    ///
    /// If so many cannot have come, or it had more before.
    pub fn acknowledge(&mut self, has: u64, buffers: &Buffers) -> Result<(), String> {
        let all = self.acknowledged + self.kept.len() as u64;
        if has < self.acknowledged || has > all.min(self.written.max(self.acknowledged)) {
            let (known, written) = (self.acknowledged, self.written);
            return Err(format!("it says that {has} records have come; {written} were written and {known} confirmed"));
        }
        for _ in self.acknowledged..has {
            if let Some(Kept::Frame(bytes)) = self.kept.pop_front()
                && let Ok(bytes) = Arc::try_unwrap(bytes)
            {
                buffers.put(bytes);
            }
        }
        self.acknowledged = has;
        Ok(())
    }

    /// A record has come, and is in the hands of the worker.
    ///
    /// # Errors
    ///
    /// If the peer had said farewell.
    pub fn arrived(&mut self, mark: Mark) -> Result<(), String> {
        if self.is_left {
            return Err("it goes on after its farewell".to_owned());
        }
        self.received += 1;
        self.is_left = mark == Mark::Farewell;
        Ok(())
    }

    /// What is to be written next on this connection; `None` where nothing is.
    pub fn next(&mut self) -> Option<Next> {
        if self.told < self.received {
            self.told = self.received;
            return Some(Next::Acknowledge(self.received));
        }
        let next = match self.kept.get((self.written - self.acknowledged) as usize)? {
            Kept::Frame(bytes) => Next::Frame(bytes.clone()),
            Kept::Farewell => Next::Farewell,
        };
        self.written += 1;
        Some(next)
    }

    /// Whether the peer has everything, the farewell included.
    pub fn is_delivered(&self) -> bool {
        self.is_parting && self.kept.is_empty()
    }

    /// The peer has closed the connection and had said that all has come.
    pub fn all_is_delivered(&mut self) {
        self.acknowledged += self.kept.len() as u64;
        self.kept.clear();
    }

    /// Whether the peer has said that it sends nothing more.
    pub fn has_heard_farewell(&self) -> bool {
        self.is_left
    }

    /// Whether neither end has anything to say any more, and the peer has been told so.
    pub fn is_over(&self) -> bool {
        self.is_delivered() && self.is_left && self.told == self.received
    }

    /// Bytes that the peer has not confirmed.
    pub fn unconfirmed(&self) -> usize {
        let bytes = |kept: &Kept| if let Kept::Frame(bytes) = kept { bytes.len() } else { 0 };
        self.kept.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One end with what it has been handed.
    #[derive(Default)]
    struct Site {
        session: Session,
        sent: u8,
        has: Vec<u8>,
        is_left: bool,
    }

    /// Hands on the next record of one end, as a connection would; whether there was one.
    fn carry(from: &mut Site, to: &mut Site, buffers: &Buffers) -> bool {
        match from.session.next() {
            None => return false,
            Some(Next::Acknowledge(has)) => to.session.acknowledge(has, buffers).expect("a count that can be"),
            Some(Next::Frame(bytes)) => {
                to.has.push(bytes[0]);
                to.session.arrived(Mark::Frame).expect("no farewell before it");
            }
            Some(Next::Farewell) => {
                to.is_left = true;
                to.session.arrived(Mark::Farewell).expect("one farewell");
            }
        }
        true
    }

    proptest! {
        /// Whatever is cut and when: all frames come once, in order, and both ends know when all is over.
        #[test]
        fn frames_come_once_and_in_order_over_any_connections(steps in prop::collection::vec(0u8..7, 0..300)) {
            let buffers = Buffers::default();
            let [mut one, mut two] = [Site::default(), Site::default()];
            let connect = |one: &mut Site, two: &mut Site| {
                let [has_one, has_two] = [one.session.received(), two.session.received()];
                one.session.connected(has_two, &buffers).expect("what has come was sent");
                two.session.connected(has_one, &buffers).expect("what has come was sent");
            };
            connect(&mut one, &mut two);
            for step in steps {
                match step {
                    0 | 1 => {
                        let site = if step == 0 { &mut one } else { &mut two };
                        site.session.send(vec![site.sent]);
                        site.sent = site.sent.wrapping_add(1);
                    }
                    2 | 3 => drop(carry(&mut one, &mut two, &buffers)),
                    4 | 5 => drop(carry(&mut two, &mut one, &buffers)),
                    // What was written and has not come is lost: here, one record of each end at most.
                    _ => {
                        drop(one.session.next());
                        drop(two.session.next());
                        connect(&mut one, &mut two);
                    }
                }
            }
            one.session.part();
            two.session.part();
            while carry(&mut one, &mut two, &buffers) | carry(&mut two, &mut one, &buffers) {}
            prop_assert_eq!(&one.has, &(0..two.sent).collect::<Vec<u8>>());
            prop_assert_eq!(&two.has, &(0..one.sent).collect::<Vec<u8>>());
            prop_assert!(one.session.is_over() && two.session.is_over() && one.is_left && two.is_left);
            prop_assert_eq!(one.session.unconfirmed(), 0);
        }

        #[test]
        fn no_count_of_a_peer_breaks_a_session(counts in prop::collection::vec(0u64..6, 0..20), wild: u64) {
            let (buffers, mut session) = (Buffers::default(), Session::default());
            for count in counts {
                session.send(vec![0]);
                let _ = session.next();
                let _ = session.acknowledge(count, &buffers);
                let _ = session.connected(count, &buffers);
            }
            prop_assert!(session.acknowledge(wild.saturating_add(30), &buffers).is_err());
        }
    }

    #[test]
    fn what_comes_after_a_farewell_is_refused() {
        let mut session = Session::default();
        session.arrived(Mark::Farewell).expect("the first");
        assert!(session.arrived(Mark::Frame).is_err() && session.arrived(Mark::Farewell).is_err());
        assert_eq!([1, 2, 3].map(|byte| Mark::of(byte).map(|mark| mark as u8)), [Some(1), Some(2), Some(3)]);
        assert!(Mark::of(0).is_none() && Mark::of(4).is_none());
    }
}
