//! Double entry: what each site says it sent, and what its peer says it got.

use std::collections::{BTreeMap, HashMap};

use super::line::{Passed, Totals};
use crate::policy::{Direction, Way};

/// What a crossing counts under. Sites, from and to, by rank; names by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Account {
    from: u8,
    to: u8,
    layer: u16,
    direction: Direction,
    round: u32,
    step: u32,
    content: u32,
    purpose: u32,
}

/// What one end says of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Side {
    totals: Totals,
    lines: u64,
    /// Its first line in the log.
    first: u64,
    /// How many of its lines have a digest, and a digest of these.
    macs: u64,
    mac: [u8; 32],
}

/// All accounts of all logs.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    names: HashMap<String, u32>,
    sides: HashMap<Account, [Side; 2]>,
}

/// What a comparison has found: faults by log and line, and remarks.
pub(super) struct Compared {
    pub(super) faults: Vec<(usize, u64, String)>,
    pub(super) remarks: Vec<String>,
}

impl Accounts {
    /// Counts what a log says, as sender or receiver; `sites` are sender and receiver.
    pub(super) fn add(&mut self, sites: (usize, usize), passed: &Passed, line: u64) {
        let crossing = &passed.crossing;
        // There are at most 64 sites.
        let [from, to] = [sites.0, sites.1].map(|rank| u8::try_from(rank).unwrap_or(u8::MAX));
        let account = Account {
            from,
            to,
            layer: crossing.layer,
            direction: crossing.direction,
            round: passed.round,
            step: passed.step,
            content: self.number(crossing.content),
            purpose: self.number(crossing.purpose),
        };
        let end = usize::from(crossing.way == Way::In);
        let side = &mut self.sides.entry(account).or_default()[end];
        if side.lines == 0 {
            side.first = line;
        }
        side.lines += 1;
        side.totals.add(passed);
        if let Some(mac) = passed.mac {
            side.macs += 1;
            let mut hasher = blake3::Hasher::new();
            side.mac = *hasher.update(&side.mac).update(mac.as_bytes()).finalize().as_bytes();
        }
    }

    fn number(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        match self.names.get(name) {
            Some(number) => *number,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        }
    }

    /// Compares both ends of each account that both have a log for. `sites` are the names by rank, `logs` the places of
    /// their logs, and `well` says of each log whether its run ended well.
    pub(super) fn compare(self, sites: &[&str], logs: &[Option<usize>], well: &[bool]) -> Compared {
        let mut names = vec![""; self.names.len()];
        self.names.iter().for_each(|(name, &number)| names[number as usize] = name);
        let mut accounts: Vec<(&Account, &[Side; 2])> = self.sides.iter().collect();
        accounts.sort_by_key(|(account, _)| **account);
        let mut compared = Compared { faults: Vec::new(), remarks: Vec::new() };
        let mut under_way: BTreeMap<(usize, usize), Totals> = BTreeMap::new();
        for (account, [out, taken_in]) in accounts {
            let (from, to) = (usize::from(account.from), usize::from(account.to));
            let (Some(sender), Some(receiver)) = (logs[from], logs[to]) else { continue };
            let what = || {
                let Account { layer, direction, round, step, .. } = account;
                let (content, purpose) = (names[account.content as usize], names[account.purpose as usize]);
                let direction = direction.name();
                format!(
                    "round {round}, step {step}, {content}:{purpose} of layer {layer}, {direction}, \
                    from {} to {}",
                    sites[from], sites[to]
                )
            };
            let strict = well[sender] && well[receiver];
            match verdict(out, taken_in, strict) {
                Verdict::Equal => {}
                Verdict::UnderWay(totals) => {
                    let sum = under_way.entry((from, to)).or_default();
                    sum.frames = sum.frames.saturating_add(totals.frames);
                    sum.framed = sum.framed.saturating_add(totals.framed);
                }
                Verdict::Differs(how) => {
                    let (log, line) = if taken_in.lines > 0 { (receiver, taken_in.first) } else { (sender, out.first) };
                    compared.faults.push((log, line, format!("{}: {how}", what())));
                }
            }
        }
        compared.remarks.extend(under_way.into_iter().map(|((from, to), Totals { frames, framed, .. })| {
            let (from, to) = (sites[from], sites[to]);
            format!(
                "{frames} frames of {framed} bytes that {from} sent are not in the log of {to}: a run did not end well"
            )
        }));
        compared
    }
}

enum Verdict {
    Equal,
    /// Sent, and not known to have come.
    UnderWay(Totals),
    Differs(String),
}

fn verdict(out: &Side, taken_in: &Side, strict: bool) -> Verdict {
    let (sent, got) = (&out.totals, &taken_in.totals);
    if sent == got {
        let both = out.macs == out.lines && taken_in.macs == taken_in.lines && out.lines == taken_in.lines;
        return match both && out.mac != taken_in.mac {
            true => Verdict::Differs("the same bytes in number, but not in content: their digests differ".to_owned()),
            false => Verdict::Equal,
        };
    }
    let less = got.frames < sent.frames && got.payload <= sent.payload && got.framed <= sent.framed;
    if less && !strict {
        let totals = Totals {
            frames: sent.frames - got.frames,
            payload: sent.payload - got.payload,
            framed: sent.framed - got.framed,
        };
        return Verdict::UnderWay(totals);
    }
    let words = |totals: &Totals| format!("{} frames, {} and {} bytes", totals.frames, totals.payload, totals.framed);
    Verdict::Differs(format!("sent {} without and with headers, got {}", words(sent), words(got)))
}
