//! What the worker's thread and the network's share of a link, and what the first hears of the second.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::LinkStatus;
use super::session::Session;
use crate::Rank;
use crate::transport::Buffers;

/// What the worker's thread hears of links.
pub enum Event {
    /// A site has come, and said this for itself.
    Met { peer: Rank, word: Vec<u8> },
    /// Why it was not reached, so far.
    Tried { peer: Rank, what: String },
    /// It cannot take part.
    Refused { peer: Rank, what: String },
    /// Nothing can be done at all.
    Failed(String),
}

/// What the worker's thread and the network's share of a link.
pub struct Link {
    session: Mutex<Session>,
    status: Mutex<LinkStatus>,
    pub buffers: Buffers,
    /// There is something to be written.
    pub wake: Notify,
    /// Bytes of frames that wait for the worker, and that there may be room again.
    pub waiting: AtomicUsize,
    pub room: Notify,
    pub has_ended: AtomicBool,
    /// The worker gives up.
    pub left: Notify,
}

impl Link {
    /// A link over which nothing has passed.
    pub fn new(buffers: Buffers) -> Link {
        Link {
            session: Mutex::default(),
            status: Mutex::default(),
            buffers,
            wake: Notify::new(),
            waiting: AtomicUsize::new(0),
            room: Notify::new(),
            has_ended: AtomicBool::new(false),
            left: Notify::new(),
        }
    }

    /// What is still to be written, and what has come.
    pub fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of it.
    pub fn status(&self) -> LinkStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is known of it.
    pub fn note(&self, change: impl FnOnce(&mut LinkStatus)) {
        change(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Queues a frame; whether the peer is still there.
    pub fn send(&self, frame: Vec<u8>) -> bool {
        let is_there = !self.has_ended();
        if is_there {
            self.session().send(frame);
            self.wake.notify_one();
        }
        is_there
    }

    /// Nothing more will be sent.
    pub fn part(&self) {
        self.session().part();
        self.wake.notify_one();
    }

    /// The worker gives up: what is queued is still tried.
    pub fn leave(&self) {
        self.part();
        self.left.notify_one();
    }

    /// The worker has taken a frame of so many bytes.
    pub fn taken(&self, bytes: usize) {
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        self.room.notify_one();
    }

    /// Whether nothing passes any more.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Whether the peer has confirmed everything.
    pub fn is_delivered(&self) -> bool {
        self.session().is_delivered()
    }
}
