//! A line every so often while something long is under way that reports nothing itself, such as reading a file.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

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

#[cfg(test)]
mod tests {
    use super::*;

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
