//! A site's own log, being written.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::chain::{self, Chain, LINE_MAX, Next};
use super::checkpoint::Checkpoint;
use super::line::{Closing, Entry, Event, Line, Opening, Totals};
use crate::contract::Contract;
use crate::digest::Digest;
use crate::error::{FederationError, Result};
use crate::file;
use crate::key::SiteKey;
use crate::policy::{Policy, Way};
use crate::time::Time;

/// A site's log of one run: lines of JSON that are only ever added. Each has the digest of the line before, and from
/// time to time a line has a signed note of how far the log has come, which peers write into theirs: so a line can be
/// changed, dropped or moved, and the log cut back, only where it will be found ([`audit()`](crate::audit())).
///
/// A line is in the operating system's hands when a call returns, so it outlives this process; after
/// [`AuditLog::checkpoint`] and [`AuditLog::close`] it is on disk. At the end of a run sites make a last checkpoint,
/// exchange notes, write those of the others ([`AuditLog::witness`]) and close.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    file: File,
    key: SiteKey,
    contract: Contract,
    rank: usize,
    chain: Chain,
    out: Totals,
    taken_in: Totals,
    /// The last note of each peer.
    witnessed: BTreeMap<usize, Checkpoint>,
    /// Set where the end of the file is no longer known.
    broken: bool,
}

/// A log that goes on after its process has ended.
#[derive(Debug)]
pub struct Reopened {
    /// The log, with one more opening.
    pub log: AuditLog,
    /// How many bytes of a torn last line were cut off; 0 for none.
    pub torn_bytes: u64,
}

impl AuditLog {
    /// Begins a log.
    ///
    /// # Errors
    /// If there is such a file already, it cannot be written, or the key is no site's of the contract.
    pub fn create(path: impl AsRef<Path>, key: &SiteKey, contract: &Contract, policy: &Policy) -> Result<AuditLog> {
        let path = path.as_ref();
        let rank = rank_of(path, key, contract)?;
        let file = file::create(path, "an audit log", false)?;
        let mut log = AuditLog::over(path, file, key, contract, rank)?;
        log.append(Time::now(), &Event::Open(opening(contract, rank, policy)))?;
        log.sync()?;
        Ok(log)
    }

    /// Goes on with a log that was not closed. A torn last line is cut off, the chain is checked, `seen` is told of
    /// each entry in turn (to let a [`Gate`](crate::Gate) count what has crossed), and one more opening is written.
    ///
    /// # Errors
    /// If another process writes it, it was changed, it is closed, or it is of another contract, key or policy.
    pub fn reopen(
        path: impl AsRef<Path>,
        key: &SiteKey,
        contract: &Contract,
        policy: &Policy,
        mut seen: impl FnMut(&Entry),
    ) -> Result<Reopened> {
        let path = path.as_ref();
        let rank = rank_of(path, key, contract)?;
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(FederationError::io(path, "open"))?;
        let mut log = AuditLog::over(path, file, key, contract, rank)?;
        let opening = opening(contract, rank, policy);
        let input = log.file.try_clone().map_err(FederationError::io(path, "read"))?;
        let mut input = BufReader::with_capacity(LINE_MAX, input);
        let (mut buffer, mut torn_bytes) = (Vec::new(), 0);
        loop {
            match chain::next(&mut input, &mut buffer).map_err(FederationError::io(path, "read"))? {
                Next::Line => log.replay(&buffer, &opening, &mut seen)?,
                Next::Torn(bytes) => torn_bytes = bytes,
                Next::TooLong => {
                    let what = format!("line {} has more than {LINE_MAX} bytes: no log", log.chain.lines + 1);
                    return Err(FederationError::log(path, what));
                }
                Next::End => break,
            }
        }
        log.cut().map_err(FederationError::io(path, "write"))?;
        log.append(Time::now(), &Event::Open(opening))?;
        log.sync()?;
        Ok(Reopened { log, torn_bytes })
    }

    /// How many lines it has.
    pub fn lines(&self) -> u64 {
        self.chain.lines
    }

    /// Adds a line. Of what crosses, before it is handed on.
    ///
    /// # Errors
    /// If the peer is no other site of the contract, the line would be longer than [`LINE_MAX`](crate::LINE_MAX), or it
    /// cannot be written: then the log is as before.
    pub fn write(&mut self, entry: &Entry) -> Result<()> {
        let peer = match *entry {
            Entry::Link { peer, .. } | Entry::Refused { peer, .. } => peer,
            Entry::Crossing(passed) => passed.crossing.peer,
        };
        if self.contract.rank_of_name(peer).is_none_or(|rank| rank == self.rank) {
            return Err(FederationError::log(&self.path, format!("{peer:?} is no other site of the contract")));
        }
        self.append(Time::now(), &Event::Said(*entry))?;
        self.count(entry);
        Ok(())
    }

    /// Signs how far the log has come, writes that down, and waits until all of it is on disk. The note is for all
    /// peers.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn checkpoint(&mut self) -> Result<String> {
        let time = self.not_before(Time::now());
        let (lines, last) = (self.chain.lines, self.chain.last.clone());
        let note = Checkpoint { rank: self.rank, lines, last, time }.note(&self.contract, &self.key);
        self.append(time, &Event::Checkpoint(&note))?;
        self.sync()?;
        Ok(note)
    }

    /// Writes down how far a peer's log has come, by the note that the peer has sent.
    ///
    /// # Errors
    /// If it is no note of this run, by another site, signed by its key; or if the peer's log has gone back since.
    pub fn witness(&mut self, note: &str) -> Result<()> {
        let wrong = |what: String| FederationError::log(&self.path, format!("a peer's note: {what}"));
        let checkpoint = Checkpoint::parse(note, &self.contract).map_err(wrong)?;
        if checkpoint.rank == self.rank {
            return Err(wrong("it is this site's own: a note is for the others".to_owned()));
        }
        if let Some(before) = self.witnessed.get(&checkpoint.rank) {
            if *before == checkpoint {
                return Ok(());
            }
            if checkpoint.lines <= before.lines {
                let name = &self.contract.terms().sites[checkpoint.rank].name;
                let (now, then) = (checkpoint.lines, before.lines);
                return Err(wrong(format!("{name}'s log has {now} lines, and had {then} before: it was cut back")));
            }
        }
        self.append(Time::now(), &Event::Witness(note))?;
        self.witnessed.insert(checkpoint.rank, checkpoint);
        Ok(())
    }

    /// Ends the log: what has crossed in all, how the program ended, the digest of the parameters if there are any, and
    /// a last checkpoint, whose note is returned.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn close(mut self, exit_code: u8, parameters: Option<Digest>) -> Result<String> {
        let closing = Closing { exit_code, incoming: self.taken_in, outgoing: self.out, parameters };
        self.append(Time::now(), &Event::Close(closing))?;
        self.checkpoint()
    }

    fn over(path: &Path, file: File, key: &SiteKey, contract: &Contract, rank: usize) -> Result<AuditLog> {
        // Where files cannot be locked, nobody is kept from writing twice; the chain shows it.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let what = "another process writes this log: one key runs one process";
            return Err(FederationError::log(path, what));
        }
        Ok(AuditLog {
            path: path.to_owned(),
            file,
            key: key.clone(),
            contract: contract.clone(),
            rank,
            chain: Chain::default(),
            out: Totals::default(),
            taken_in: Totals::default(),
            witnessed: BTreeMap::new(),
            broken: false,
        })
    }

    /// Takes a line that was written before.
    fn replay(&mut self, bytes: &[u8], opening: &Opening, seen: &mut impl FnMut(&Entry)) -> Result<()> {
        let mut fault = None;
        let line = self.chain.take(bytes, |what| fault = fault.take().or(Some(what)));
        let at = self.chain.lines;
        let wrong = |what: &str| FederationError::log(&self.path, format!("line {at}: {what}"));
        if let Some(what) = fault {
            return Err(wrong(&format!("{what}: the log was changed, and is not gone on with")));
        }
        match line.as_ref().and_then(Line::event) {
            Some(Event::Open(of)) if of != *opening => {
                Err(wrong("the log is of another contract, key or policy: a new run, or a new policy, has a new log"))
            }
            Some(Event::Open(_) | Event::Checkpoint(_)) => Ok(()),
            _ if at == 1 => Err(wrong("expected an opening: no log begins like this")),
            Some(Event::Close(_)) => Err(wrong("the log is closed: its run has ended")),
            Some(Event::Witness(note)) => {
                let checkpoint = Checkpoint::parse(note, &self.contract).map_err(|what| wrong(&what))?;
                self.witnessed.insert(checkpoint.rank, checkpoint);
                Ok(())
            }
            Some(Event::Said(entry)) => {
                self.count(&entry);
                seen(&entry);
                Ok(())
            }
            None => Err(wrong("no line of a log")),
        }
    }

    fn count(&mut self, entry: &Entry) {
        if let Entry::Crossing(passed) = entry {
            match passed.crossing.way {
                Way::Out => self.out.add(passed),
                Way::In => self.taken_in.add(passed),
            }
        }
    }

    /// A time that is not before that of the last line, whatever the clock says.
    fn not_before(&self, time: Time) -> Time {
        self.chain.time.map_or(time, |last| last.max(time))
    }

    fn append(&mut self, time: Time, event: &Event) -> Result<()> {
        if self.broken {
            return Err(FederationError::log(
                &self.path,
                "a line was written in part and could not be taken off again",
            ));
        }
        let time = self.not_before(time);
        let line = Line::of(event).placed(self.chain.lines + 1, &self.chain.last, time);
        let mut bytes = line.json().map_err(|e| FederationError::log(&self.path, e.to_string()))?;
        bytes.push(b'\n');
        if bytes.len() > LINE_MAX {
            let what = format!("a line of {} bytes; at most {LINE_MAX} are expected: shorten its texts", bytes.len());
            return Err(FederationError::log(&self.path, what));
        }
        if let Err(e) = self.file.write_all(&bytes) {
            self.broken = self.cut().is_err();
            return Err(FederationError::io(&self.path, "write")(e));
        }
        bytes.pop();
        self.chain.append(&bytes, time);
        Ok(())
    }

    /// Ends the file behind the last whole line.
    fn cut(&mut self) -> std::io::Result<()> {
        self.file.set_len(self.chain.bytes)?;
        self.file.seek(SeekFrom::Start(self.chain.bytes)).map(drop)
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(FederationError::io(&self.path, "write"))
    }
}

fn rank_of(path: &Path, key: &SiteKey, contract: &Contract) -> Result<usize> {
    let key = key.public();
    let what = || format!("the key {key} is no site's of the contract");
    contract.rank_of(&key).ok_or_else(|| FederationError::log(path, what()))
}

fn opening<'a>(contract: &'a Contract, rank: usize, policy: &'a Policy) -> Opening<'a> {
    let terms = contract.terms();
    Opening {
        contract: contract.digest(),
        key: terms.sites[rank].key,
        policy: policy.digest(),
        policy_text: policy.text(),
        program: &terms.program,
        run: contract.id(),
        site: &terms.sites[rank].name,
    }
}
