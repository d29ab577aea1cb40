//! A map reads zeros where its file has become too short.
//!
//! The system stops a process that looks at a page of a map behind the end of its file (SIGBUS). In place of that the
//! page is given to the process, empty, and it goes on until somebody asks whether the file has changed.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

/// Maps that may be watched at a time.
const MOST: usize = 256;

/// Where a map begins, and behind its last byte. Both 0 where there is none.
struct Place {
    start: AtomicUsize,
    end: AtomicUsize,
}

/// The maps that are watched. A handler of a signal can ask neither a lock nor whoever holds a map.
static PLACES: [Place; MOST] = [const { Place { start: AtomicUsize::new(0), end: AtomicUsize::new(0) } }; MOST];

/// Bytes of a page.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// What was to be done before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// A map whose faults are answered with empty pages as long as this lives.
#[derive(Debug)]
pub(crate) struct Watch(usize);

impl Watch {
    /// Watches a map from now on; `None` where too many are watched already.
    pub(crate) fn over(map: &[u8]) -> Option<Watch> {
        answer_faults();
        let start = map.as_ptr().expose_provenance();
        let take = |place: &Place| place.start.compare_exchange(0, start, Ordering::AcqRel, Ordering::Acquire).is_ok();
        let index = PLACES.iter().position(take)?;
        PLACES[index].end.store(start + map.len(), Ordering::Release);
        Some(Watch(index))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        PLACES[self.0].end.store(0, Ordering::Release);
        PLACES[self.0].start.store(0, Ordering::Release);
    }
}

/// Has faults in maps that are watched answered, from now on; others end the process as before.
fn answer_faults() {
    static ONCE: Once = Once::new();
    // SAFETY: all pointers are to values that live as long as the calls, and the handler keeps to what handlers may do:
    // loads of atomics, and two calls of the system.
    ONCE.call_once(|| unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE);
        let mut before: libc::sigaction = std::mem::zeroed();
        if page <= 0 || libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) != 0 {
            return;
        }
        PAGE.store(page as usize, Ordering::Release);
        let _ = BEFORE.set(before);
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = answer as extern "C" fn(_, _, _) as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &ours, std::ptr::null_mut());
    });
}

extern "C" fn answer(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the system hands over what it knows of the fault; the page that is replaced is within a map of this
    // program's, which nobody takes apart while it is looked at.
    unsafe {
        let (at, page) = ((*info).si_addr().addr(), PAGE.load(Ordering::Acquire));
        let holds = |place: &Place| {
            let (start, end) = (place.start.load(Ordering::Acquire), place.end.load(Ordering::Acquire));
            // The place may have been another map's in between.
            (start..end).contains(&at) && place.start.load(Ordering::Acquire) == start
        };
        if PLACES.iter().any(holds) {
            let start = std::ptr::with_exposed_provenance_mut(at & !(page - 1));
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            if libc::mmap(start, page, libc::PROT_READ, kind, -1, 0) != libc::MAP_FAILED {
                return;
            }
        }
        // It is looked at again, and what was to be done before is done.
        if let Some(before) = BEFORE.get() {
            libc::sigaction(signal, before, std::ptr::null_mut());
        }
    }
}
