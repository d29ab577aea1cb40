//! A line every so often while something long is under way that reports nothing itself, such as reading a file.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use laconic_train::config::DataConfig;
use laconic_train::run::source::is_part_folder;

/// The part of this time after which a line that is due may still be on its way from whoever else says lines.
const GRACE: f64 = 0.1;

/// Says what is under way where nobody has said anything for so long, until it is dropped.
pub struct Ticker {
    state: Arc<Mutex<(Instant, String)>>,
    _alive: Sender<()>,
}

impl Ticker {
    /// Says `still WHAT, so many s` from `start` on, whenever nothing was said for this time.
    pub fn new(start: Instant, every: Duration, say: impl Fn(String) + Send + 'static) -> Ticker {
        let state = Arc::new(Mutex::new((Instant::now(), String::new())));
        let (alive, ended) = channel();
        let (shared, patience) = (state.clone(), every.mul_f64(1.0 + GRACE));
        let speak = move || {
            let mut wait = patience;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let mut state: MutexGuard<'_, (Instant, String)> = lock(&shared);
                let silent = state.0.elapsed();
                wait = patience.saturating_sub(silent);
                if wait.is_zero() {
                    say(format!("still {}, {:.0} s", state.1, start.elapsed().as_secs_f64()));
                    state.0 = Instant::now();
                    wait = patience;
                }
            }
        };
        // Where there is no thread to be had nobody is told, and the work goes on.
        let _ = std::thread::Builder::new().name("waiting".to_owned()).spawn(speak);
        Ticker { state, _alive: alive }
    }

    /// What is under way from now on.
    pub fn at(&self, what: String) {
        lock(&self.state).1 = what;
    }

    /// Somebody has just said something.
    pub fn said(&self) {
        lock(&self.state).0 = Instant::now();
    }
}

/// What a thread that panicked has left is as good as any: it is only said.
fn lock(state: &Mutex<(Instant, String)>) -> MutexGuard<'_, (Instant, String)> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says every so often that something is still under way, until it is dropped.
#[must_use]
pub struct Waiting(Option<Sender<()>>);

impl Waiting {
    /// Says `still WHAT, so many s` every so often.
    pub fn new(what: &str, every: Duration, say: impl Fn(String) + Send + 'static) -> Waiting {
        let (alive, ended) = channel();
        let (what, start) = (what.to_owned(), Instant::now());
        let speak = move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                say(format!("still {what}, {:.0} s", start.elapsed().as_secs_f64()));
            }
        };
        // Where there is no thread to be had nobody is told, and the work goes on.
        let thread = std::thread::Builder::new().name("waiting".to_owned()).spawn(speak);
        Waiting(thread.ok().map(|_| alive))
    }

    /// Says nothing, ever.
    pub fn nothing() -> Waiting {
        Waiting(None)
    }

    /// Ends what was under way.
    pub fn end(self) {
        drop(self.0);
    }
}

/// What is done with the data before a run starts.
pub fn reading(data: &DataConfig) -> String {
    let what = match data.part {
        Some(part) => format!("opening part {part} of"),
        None if is_part_folder(&data.path) => "opening the parts in".to_owned(),
        None => "reading and cutting".to_owned(),
    };
    format!("{what} {}", data.path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_just_said_something_is_not_interrupted_and_silence_is_broken() {
        let (send, lines) = channel();
        let ticker = Ticker::new(Instant::now(), Duration::from_millis(40), move |line| drop(send.send(line)));
        ticker.at("in round 1".to_owned());
        let line = lines.recv_timeout(Duration::from_secs(60)).expect("a line");
        assert!(line.starts_with("still in round 1, "), "{line}");
        ticker.at("in round 2".to_owned());
        ticker.said();
        let said = Instant::now();
        let line = lines.recv_timeout(Duration::from_secs(60)).expect("a line");
        assert!(line.starts_with("still in round 2, ") && said.elapsed() >= Duration::from_millis(35), "{line}");
        drop(ticker);
        while lines.recv_timeout(Duration::from_secs(60)).is_ok() {}
    }

    #[test]
    fn what_takes_long_is_said_again_until_it_ends() {
        let (send, lines) = channel();
        let waiting = Waiting::new("reading x", Duration::from_millis(1), move |line| drop(send.send(line)));
        for _ in 0..3 {
            let line = lines.recv_timeout(Duration::from_secs(60)).expect("a line");
            assert!(line.starts_with("still reading x, "), "{line}");
        }
        waiting.end();
        // Whoever spoke is gone with its end of the channel, however many lines were still under way.
        while lines.recv_timeout(Duration::from_secs(60)).is_ok() {}
        assert!(lines.recv().is_err());
        Waiting::nothing().end();
    }
}
