//! Logs of several sites, checked line by line and against each other.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::accounts::Accounts;
use super::chain::{self, Chain, LINE_MAX, Next};
use super::checkpoint::Checkpoint;
use super::line::{Closing, Entry, Event, Line, Opening, Passed, Totals};
use super::report::{Fault, Log, Report, Row};
use crate::contract::Contract;
use crate::digest::Digest;
use crate::error::{FederationError, Result};
use crate::policy::{Decision, Gate, Policy, Vocabulary, Way};
use crate::time::Time;

/// The most faults that a report has one by one.
const FAULTS_MAX: usize = 1000;

/// Checks the logs of sites of one contract, each by itself and against the others:
///
/// - the chain of each, its times, its signed notes, its totals, and that it ends with a note if it was closed;
/// - that each has the lines that its peers have notes of, so that a log that was cut back or written again is found;
/// - that what a site says it sent is what the peer says it got, account by account (round, step, content, purpose,
///   layer, direction), in frames, bytes, and digests where both have some;
/// - that each site's policy, as its log has it, allows all that has crossed.
///
/// Where a run did not end well at both ends, what was sent and is not known to have come is a remark; what has come
/// and nobody has sent is always a fault. Logs are read as streams; memory grows with the number of accounts.
///
/// # Errors
/// If a log cannot be read. What is wrong with one that can is in the report.
pub fn audit<P: AsRef<Path>>(paths: &[P], contract: &Contract, vocabulary: &Vocabulary) -> Result<Report> {
    let mut auditor = Auditor {
        contract,
        vocabulary,
        logs: Vec::new(),
        claims: Vec::new(),
        accounts: Accounts::default(),
        faults: Vec::new(),
        more_faults: 0,
    };
    for path in paths {
        auditor.read(path.as_ref())?;
    }
    Ok(auditor.report())
}

/// One log, as far as it was read.
struct State {
    path: PathBuf,
    chain: Chain,
    rank: Option<usize>,
    /// Its openings, which have to be equal: the digest of one.
    opening: Option<Digest>,
    opened: u32,
    gate: Option<Gate>,
    totals: [Totals; 2],
    /// Digests of its notes, by the number of lines that they cover.
    notes: HashMap<u64, Digest>,
    signed_lines: u64,
    closed: Option<Closing>,
    /// Whether the note that follows a closing was there.
    sealed: bool,
    torn_bytes: u64,
    table: BTreeMap<(usize, Way), BTreeMap<String, Totals>>,
}

/// That a site's log has had so many lines, as a peer's log says.
struct Claim {
    of: usize,
    lines: u64,
    note: Digest,
    by: usize,
    line: u64,
}

struct Auditor<'a> {
    contract: &'a Contract,
    vocabulary: &'a Vocabulary<'a>,
    logs: Vec<State>,
    claims: Vec<Claim>,
    accounts: Accounts,
    /// By the place of the log, then by line.
    faults: Vec<(usize, Fault)>,
    more_faults: u64,
}

impl<'a> Auditor<'a> {
    fn read(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(FederationError::io(path, "read"))?;
        let mut input = BufReader::with_capacity(LINE_MAX, file);
        self.logs.push(State::new(path));
        let at = self.logs.len() - 1;
        let mut buffer = Vec::new();
        loop {
            match chain::next(&mut input, &mut buffer).map_err(FederationError::io(path, "read"))? {
                Next::Line => self.line(at, &buffer),
                Next::Torn(bytes) => self.logs[at].torn_bytes = bytes,
                Next::TooLong => {
                    let line = self.logs[at].chain.lines + 1;
                    self.fault(at, line, format!("more than {LINE_MAX} bytes; nothing behind it was read"));
                    break;
                }
                Next::End => break,
            }
        }
        self.ends(at);
        Ok(())
    }

    fn fault(&mut self, log: usize, line: u64, what: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push((log, Fault { file: self.logs[log].path.clone(), line, what }));
        } else {
            self.more_faults += 1;
        }
    }

    /// Takes a line of a log.
    fn line(&mut self, at: usize, bytes: &[u8]) {
        let log = &mut self.logs[at];
        let (before, last) = (log.chain.lines, log.chain.last.clone());
        let mut faults = Vec::new();
        let line = log.chain.take(bytes, |what| faults.push(what));
        let number = before + 1;
        if let Some(event) = line.as_ref().and_then(Line::event) {
            let note = matches!(event, Event::Checkpoint(_));
            if log.sealed || (log.closed.is_some() && !note) {
                faults.push("something behind the log's end".to_owned());
            }
            if before == 0 && !matches!(event, Event::Open(_)) {
                faults.push("expected an opening: no log begins like this".to_owned());
            }
            let time = log.chain.time.unwrap_or(Time::from_millis(0));
            let said = match event {
                Event::Open(opening) => self.open(at, &opening, time),
                Event::Said(entry) => self.entry(at, &entry, number),
                Event::Witness(note) => self.witness(at, note, number),
                Event::Checkpoint(note) => self.checkpoint(at, note, (before, last), time),
                Event::Close(closing) => self.close(at, closing),
            };
            faults.extend(said.err());
        }
        faults.into_iter().for_each(|what| self.fault(at, number, what));
    }

    fn open(&mut self, at: usize, opening: &Opening, time: Time) -> std::result::Result<(), String> {
        self.logs[at].opened += 1;
        let same = Digest::of(format!("{opening:?}").as_bytes());
        if let Some(first) = self.logs[at].opening {
            return match first == same {
                true => self.in_time(at, time),
                false => Err("this opening is not the first one again: a new policy has a new log".to_owned()),
            };
        }
        self.logs[at].opening = Some(same);
        let terms = self.contract.terms();
        if (opening.contract, opening.run) != (self.contract.digest(), self.contract.id()) {
            return Err(format!("a log of the contract {}, not of {}", opening.contract, self.contract.digest()));
        }
        let rank = self.contract.rank_of(&opening.key).filter(|rank| terms.sites[*rank].name == opening.site);
        let rank = rank.ok_or_else(|| format!("the contract has no site {:?} of this key", opening.site))?;
        if self.logs.iter().any(|log| log.rank == Some(rank)) {
            return Err(format!("another log of {}: a site has one log of a run", opening.site));
        }
        self.logs[at].rank = Some(rank);
        if opening.policy != Digest::of(opening.policy_text.as_bytes()) {
            return Err("the policy's digest is not that of its text".to_owned());
        }
        let policy = Policy::parse(opening.policy_text, self.vocabulary).map_err(|e| e.to_string())?;
        self.logs[at].gate = Some(Gate::new(policy));
        if opening.program != terms.program {
            return Err(format!("run by {:?}, and the contract is for {:?}", opening.program, terms.program));
        }
        self.in_time(at, time)
    }

    /// That contract and policy are for a run at this time.
    fn in_time(&self, at: usize, time: Time) -> std::result::Result<(), String> {
        let (today, terms) = (time.date(), self.contract.terms());
        if today > terms.expires {
            return Err(format!("opened on {today}, and the contract expired on {}", terms.expires));
        }
        let admits = self.logs[at].gate.as_ref().map(|gate| gate.policy().admits(&terms.run, today));
        admits.unwrap_or(Ok(())).map_err(|e| e.to_string())
    }

    fn entry(&mut self, at: usize, entry: &Entry, line: u64) -> std::result::Result<(), String> {
        let peer = match *entry {
            Entry::Link { peer, .. } | Entry::Refused { peer, .. } => peer,
            Entry::Crossing(passed) => passed.crossing.peer,
        };
        let log = &mut self.logs[at];
        let Some(rank) = log.rank else { return Ok(()) };
        let other = self.contract.rank_of_name(peer).filter(|peer| *peer != rank);
        let other = other.ok_or_else(|| format!("{peer:?} is no other site of the contract"))?;
        let Entry::Crossing(passed) = entry else { return Ok(()) };
        let crossing = &passed.crossing;
        log.totals[side(crossing.way)].add(passed);
        let row = log.table.entry((other, crossing.way)).or_default();
        match row.get_mut(crossing.content) {
            Some(totals) => totals.add(passed),
            None => row.entry(crossing.content.to_owned()).or_default().add(passed),
        }
        let sites = match crossing.way {
            Way::Out => (rank, other),
            Way::In => (other, rank),
        };
        self.accounts.add(sites, passed, line);
        match log.gate.as_mut().map(|gate| gate.pass(crossing)) {
            Some(Decision::Denied { why }) => Err(format!("the site's own policy forbids it: {why}")),
            _ => plausible(passed),
        }
    }

    fn witness(&mut self, at: usize, note: &str, line: u64) -> std::result::Result<(), String> {
        let checkpoint = Checkpoint::parse(note, self.contract)?;
        if self.logs[at].rank == Some(checkpoint.rank) {
            return Err("the site's own note as a peer's".to_owned());
        }
        let (of, lines) = (checkpoint.rank, checkpoint.lines);
        self.claims.push(Claim { of, lines, note: Digest::of(note.as_bytes()), by: at, line });
        Ok(())
    }

    fn checkpoint(
        &mut self,
        at: usize,
        note: &str,
        before: (u64, String),
        time: Time,
    ) -> std::result::Result<(), String> {
        let log = &mut self.logs[at];
        log.sealed = log.closed.is_some();
        let checkpoint = Checkpoint::parse(note, self.contract)?;
        if log.rank != Some(checkpoint.rank) {
            return Err("another site's note as the site's own".to_owned());
        }
        if (checkpoint.lines, checkpoint.last, checkpoint.time) != (before.0, before.1, time) {
            return Err("the note is not of the lines before it".to_owned());
        }
        log.notes.insert(before.0, Digest::of(note.as_bytes()));
        log.signed_lines = before.0 + 1;
        Ok(())
    }

    fn close(&mut self, at: usize, closing: Closing) -> std::result::Result<(), String> {
        let log = &mut self.logs[at];
        log.closed = Some(closing);
        match log.totals == [closing.outgoing, closing.incoming] {
            true => Ok(()),
            false => Err("the totals are not those of the lines before".to_owned()),
        }
    }

    /// What can be said of a log when it has been read.
    fn ends(&mut self, at: usize) {
        let log = &self.logs[at];
        let behind = log.chain.lines + 1;
        if log.chain.lines == 0 {
            self.fault(at, behind, "no line: no log".to_owned());
        } else if log.closed.is_some() && !log.sealed {
            self.fault(at, behind, "closed, and the note that signs the end is missing".to_owned());
        } else if log.sealed && log.torn_bytes > 0 {
            self.fault(at, behind, "something behind the log's end".to_owned());
        }
    }

    /// Holds the logs against each other.
    fn report(mut self) -> Report {
        self.weigh_claims();
        let by_rank = |rank: usize| self.logs.iter().position(|log| log.rank == Some(rank));
        let logs: Vec<Option<usize>> = (0..self.contract.terms().sites.len()).map(by_rank).collect();
        let ended = |at: usize| self.logs[at].opened == 1 && self.logs[at].closed.is_some_and(|end| end.exit_code == 0);
        let well: Vec<bool> = (0..self.logs.len()).map(ended).collect();
        let names: Vec<&str> = self.contract.terms().sites.iter().map(|site| site.name.as_str()).collect();
        let compared = std::mem::take(&mut self.accounts).compare(&names, &logs, &well);
        compared.faults.into_iter().for_each(|(log, line, what)| self.fault(log, line, what));
        let mut remarks: Vec<String> = self.logs.iter().filter_map(State::remark).collect();
        remarks.extend(compared.remarks);
        let absent = names.iter().zip(&logs).filter(|(_, log)| log.is_none());
        remarks.extend(absent.map(|(name, _)| format!("no log of {name}: what crossed with it has one side only")));
        self.faults.sort_by_key(|fault| (fault.0, fault.1.line));
        let table = logs.iter().flatten().flat_map(|log| self.logs[*log].rows(&names)).collect();
        Report {
            logs: self.logs.iter().map(|log| log.summary(&names)).collect(),
            faults: self.faults.into_iter().map(|(_, fault)| fault).collect(),
            more_faults: self.more_faults,
            remarks,
            table,
        }
    }

    /// Looks for the lines that peers have notes of.
    fn weigh_claims(&mut self) {
        for claim in std::mem::take(&mut self.claims) {
            let Some(of) = self.logs.iter().position(|log| log.rank == Some(claim.of)) else { continue };
            let log = &self.logs[of];
            if log.notes.get(&claim.lines) != Some(&claim.note) {
                let by = self.logs[claim.by].path.display();
                let what = format!(
                    "{by}:{} has a note of this log at {} lines, which it does not have: it was cut back, \
                    or written again",
                    claim.line, claim.lines
                );
                let line = log.chain.lines.min(claim.lines) + 1;
                self.fault(of, line, what);
            }
        }
    }
}

impl State {
    fn new(path: &Path) -> Self {
        State {
            path: path.to_owned(),
            chain: Chain::default(),
            rank: None,
            opening: None,
            opened: 0,
            gate: None,
            totals: [Totals::default(); 2],
            notes: HashMap::new(),
            signed_lines: 0,
            closed: None,
            sealed: false,
            torn_bytes: 0,
            table: BTreeMap::new(),
        }
    }

    fn summary(&self, names: &[&str]) -> Log {
        Log {
            file: self.path.clone(),
            site: self.rank.map(|rank| names[rank].to_owned()),
            lines: self.chain.lines,
            signed_lines: self.signed_lines,
            opened: self.opened,
            exit_code: self.closed.map(|end| end.exit_code),
            torn_bytes: self.torn_bytes,
        }
    }

    /// What should be known of it.
    fn remark(&self) -> Option<String> {
        let unsigned = self.chain.lines.saturating_sub(self.signed_lines);
        let file = self.path.display();
        match self.closed {
            Some(_) => None,
            None => Some(format!(
                "{file}: not closed; its last {unsigned} lines are not signed, so nobody can say that \
                they are what was written"
            )),
        }
    }

    /// What has crossed, by peer, way and content.
    fn rows(&self, names: &[&str]) -> Vec<Row> {
        let Some(rank) = self.rank else { return Vec::new() };
        let mut rows = Vec::new();
        for ((peer, way), contents) in &self.table {
            rows.extend(contents.iter().map(|(content, totals)| Row {
                site: names[rank].to_owned(),
                way: *way,
                peer: names[*peer].to_owned(),
                content: content.clone(),
                frames: totals.frames,
                payload: totals.payload,
                framed: totals.framed,
            }));
        }
        rows
    }
}

/// Where the totals of what leaves and of what comes in are.
fn side(way: Way) -> usize {
    match way {
        Way::Out => 0,
        Way::In => 1,
    }
}

fn plausible(passed: &Passed) -> std::result::Result<(), String> {
    let (payload, framed) = (passed.payload, passed.crossing.bytes);
    if payload > framed { Err(format!("{payload} bytes within frames of {framed}")) } else { Ok(()) }
}
