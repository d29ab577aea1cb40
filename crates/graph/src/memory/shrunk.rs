//! A map reads zeros where its file has become too short.
//!
//! The system stops a process that looks at a page of a map behind the end of its file (SIGBUS). In place of that the
//! page is given to the process, empty, and it goes on until somebody asks whether the file has changed.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

use super::places::is_in_map;

/// Bytes of a page.
static PAGE: AtomicUsize = AtomicUsize::new(0);

/// What was to be done before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Has faults in maps of this program's answered with empty pages, from now on; others end the process as before.
pub(super) fn answer_faults() {
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
        if is_in_map(at) {
            let start = std::ptr::with_exposed_provenance_mut(at & !(page - 1));
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            if libc::mmap(start, page, rights, kind, -1, 0) != libc::MAP_FAILED {
                return;
            }
        }
        // It is looked at again, and what was to be done before is done.
        if let Some(before) = BEFORE.get() {
            libc::sigaction(signal, before, std::ptr::null_mut());
        }
    }
}
