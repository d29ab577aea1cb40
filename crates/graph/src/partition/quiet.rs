//! Keeps what a C library prints away from standard output, where results go.
#![allow(unsafe_code)]

/// Runs this while whatever is printed to standard output is thrown away: METIS prints there where it cannot balance
/// parts, returns none the less, and knows no option that keeps it from that. One caller at a time.
#[cfg(unix)]
pub(super) fn without_prints<T>(run: impl FnOnce() -> T) -> T {
    let kept = rustix::io::dup(rustix::stdio::stdout());
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null");
    let (Ok(kept), Ok(nowhere)) = (kept, nowhere) else { return run() };
    let flush = || {
        // SAFETY: null stands for all streams of C, which are flushed under their own locks.
        unsafe { libc::fflush(std::ptr::null_mut()) };
    };
    flush();
    let is_away = rustix::stdio::dup2_stdout(&nowhere).is_ok();
    let result = run();
    // What C has not written yet would come out behind the results.
    flush();
    if is_away {
        // Nothing but a broken system refuses this, and then there is nowhere to say so.
        let _ = rustix::stdio::dup2_stdout(&kept);
    }
    result
}

/// Runs this as it is.
#[cfg(not(unix))]
pub(super) fn without_prints<T>(run: impl FnOnce() -> T) -> T {
    run()
}
