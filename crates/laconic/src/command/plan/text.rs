//! A plan for people.

use std::fmt::Write;

use laconic_train::config::MeansEvaluator;
use laconic_train::record::account::{Account, RoundTrips, Subject};

use super::{Averaging, Costs};
use crate::bytes::{human_bytes, plural};

/// What the account says who sees, in its order.
const SUBJECTS: [&str; 4] = ["labels", "features", "scores and hidden rows", "models"];

/// What leaves each worker is said unasked where there are no more.
const WORKERS_SAID: usize = 4;

/// Whose parts a plan has looked at.
pub(super) fn whom(ranks: &[u32], size: usize) -> String {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    format!("expected one of {} (of {size} workers)", ranks.join(", "))
}

/// What cannot be known from the parts that are here; `by_parts` says that the plan is a bound for their sake.
pub(super) fn unknown(ranks: &[u32], size: usize, by_parts: bool) -> Option<String> {
    let parts = ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    if ranks.len() < size {
        return Some(format!(
            "of {size} parts {parts} alone is here, and meta.json does not count the others: which of its nodes each \
             of them needs, and has, is asked when the run starts; the plan is a bound, as if each needed and had all"
        ));
    }
    by_parts.then(|| {
        "meta.json counts the parts, but not what training nodes alone need of each other (data.inductive): the plan \
         is a bound, as if they needed all"
            .to_owned()
    })
}

/// The plan as text.
pub(super) fn describe(costs: &Costs, worker: Option<u32>) -> String {
    let most = if costs.is_bound { "at most " } else { "" };
    let bytes = human_bytes(costs.least.framed);
    let who = match costs.ranks.len() {
        _ if costs.averaging.is_some() => {
            format!("{} and their aggregator", plural(costs.workers as u64 - 1, "trainer"))
        }
        some if some < costs.workers => format!("{some} of {} workers", costs.workers),
        all => plural(all as u64, "worker"),
    };
    let mut text = match &costs.averaging {
        Some(Averaging { means: None, .. }) => format!("{who} will send {bytes}, and what means take\n"),
        _ => format!("{who} will send {most}{bytes} in {} frames\n", costs.least.frames),
    };
    if let Some(budget) = costs.budget {
        let share = 100.0 * costs.least.framed as f64 / budget as f64;
        let _ = writeln!(text, "  {share:.0} % of the budget of {}", human_bytes(budget));
    }
    if let Some(chosen) = costs.messages.as_ref().and_then(|messages| toml::to_string(messages).ok()) {
        let _ = writeln!(text, "  with these messages:");
        chosen.lines().filter(|line| !line.is_empty()).for_each(|line| {
            let _ = writeln!(text, "    {line}");
        });
    }
    for (kind, words) in &costs.kinds {
        let _ = writeln!(text, "  {kind:<22} {:>12}  {words}", human_bytes(costs.by_kind[kind]));
    }
    means(&mut text, costs);
    let column = costs.part_names.iter().map(|name| name.chars().count()).max().unwrap_or(0).max(10);
    let _ = writeln!(text, "{:<column$} {:>8} {:>10} {:>12} {:>12}", "worker", "rows", "halo", "memory", "sends");
    for (at, rank) in costs.ranks.iter().enumerate() {
        let sends = costs.by_link.iter().filter(|l| l.from == *rank).map(|l| l.bytes).sum();
        let (memory, sends) = (human_bytes(costs.memory[at]), human_bytes(sends));
        let (name, rows, halo) = (name(costs, *rank), costs.rows[at], costs.halo_rows[at]);
        let _ = writeln!(text, "{name:<column$} {rows:>8} {halo:>10} {memory:>12} {sends:>12}");
    }
    if let Some(skew) = costs.label_skew {
        let _ = writeln!(text, "labels differ between parts by {skew:.2} (0: not at all)");
    }
    what_leaves(&mut text, costs, worker);
    who_saw(&mut text, &costs.account);
    on_links(&mut text, costs);
    if let Some(explained) = &costs.explained {
        let _ = writeln!(text, "{}", explained.text(costs.least.framed));
    }
    if let Some(path) = &costs.ledger {
        let _ = writeln!(text, "accounts in {}", path.display());
    }
    if let Some(path) = &costs.out {
        let _ = writeln!(text, "page in {}", path.display());
    }
    text.trim_end().to_owned()
}

/// How long all of it takes on links, if nothing overlaps.
fn on_links(text: &mut String, costs: &Costs) {
    let mpi = costs.seconds_on_links.iter().any(|link| link.start_seconds > 0.0);
    let how = if mpi { " under MPI over TCP, without computing; of it the start" } else { "" };
    if !costs.seconds_on_links.is_empty() {
        let _ = writeln!(text, "time on the wire if nothing overlaps{how}:");
    }
    for link in &costs.seconds_on_links {
        let configured = if link.configured { "  (transport.shape)" } else { "" };
        let start = if mpi { format!(" {:>8.1} s", link.start_seconds) } else { String::new() };
        let _ = writeln!(text, "  {:<22} {:>12.1} s{start}{configured}", link.link, link.seconds);
    }
}

/// Who has to hold the whole graph, who sees what of others, and how often somebody waits.
fn who_saw(text: &mut String, account: &Account) {
    let _ = writeln!(text, "who holds the whole graph: {}", account.holds_graph.name());
    for ((what, of), party) in SUBJECTS.into_iter().zip(Subject::ALL).zip(account.saw()) {
        let seen = account.seen.iter().filter(|sight| sight.of == of);
        let names: Vec<String> = seen.map(|sight| sight.what.replace('_', " ")).collect();
        let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let _ = writeln!(text, "who sees others' {what}: {}{names}", party.name());
    }
    if let (Some(rounds), Some(trips)) = (account.rounds, account.round_trips) {
        let RoundTrips { training, evaluation, start_up } = trips;
        let besides = format!("{evaluation} more in evaluations, {start_up} at start and end");
        let _ = writeln!(text, "{rounds} rounds; waits one after the other: {training} in training, {besides}");
    }
}

/// How many means there will be, and what one takes.
fn means(text: &mut String, costs: &Costs) {
    let Some(averaging) = &costs.averaging else { return };
    let each = human_bytes(averaging.bytes_of_mean);
    let most = if costs.is_bound { "at most " } else { "" };
    let number = match averaging.means {
        Some(number) => format!("{most}{number} means"),
        None => "how many means is not known".to_owned(),
    };
    let _ = writeln!(text, "{number}; each takes {each}, whatever the graph");
    if averaging.evaluator == MeansEvaluator::Aggregator {
        let _ = writeln!(
            text,
            "the aggregator holds the whole graph and evaluates means on it; no bytes are sent for that"
        );
    }
    if let Some(part) = averaging.hosted_part {
        let _ = writeln!(
            text,
            "the trainer of part {part} lives in the aggregator's process: they send each other nothing"
        );
    }
}

/// What a worker is called: its part's name, its number, or what it is among independent trainers.
pub(super) fn name(costs: &Costs, rank: u32) -> String {
    match (&costs.averaging, rank.checked_sub(1)) {
        (None, _) => costs.part_names.get(rank as usize).cloned().unwrap_or_else(|| rank.to_string()),
        (Some(_), None) => "aggregator".to_owned(),
        (Some(averaging), Some(place)) => {
            let part = averaging.parts.get(place as usize).copied().unwrap_or_default();
            costs.part_names.get(part as usize).cloned().unwrap_or_else(|| format!("part {part}"))
        }
    }
}

/// Whose, what, of how many nodes, to whom, how often, in how many bytes.
fn what_leaves(text: &mut String, costs: &Costs, worker: Option<u32>) {
    if let Some(epsilon) = costs.label_epsilon {
        let what = "each is told at random once, and codewords are made of what was told; models learn from true ones";
        let _ = writeln!(text, "labels cost epsilon {epsilon}: {what}");
    }
    let said: Vec<u32> = match worker {
        Some(worker) => vec![worker],
        None if costs.ranks.len() <= WORKERS_SAID => costs.ranks.clone(),
        None => {
            let _ = writeln!(text, "what leaves worker K, in words: --worker K");
            Vec::new()
        }
    };
    let most = if costs.is_bound { "at most " } else { "" };
    let is_known = costs.averaging.as_ref().is_none_or(|averaging| averaging.means.is_some());
    for rank in said {
        let whom = match (&costs.averaging, rank) {
            (None, _) if costs.part_names.is_empty() => format!("worker {rank}"),
            (None, _) => name(costs, rank),
            (Some(_), 0) => "the aggregator".to_owned(),
            (Some(_), _) => format!("the trainer of {}", name(costs, rank)),
        };
        let all = by_words(costs, rank);
        if all.is_empty() && is_known {
            let _ = writeln!(text, "nothing leaves {whom}");
            continue;
        }
        if !is_known {
            let _ = writeln!(text, "what leaves {whom} in the whole run is not known, but for what crosses once");
        } else {
            let _ = writeln!(text, "what leaves {whom}, {most}in the whole run:");
        }
        let width = if costs.averaging.is_some() { "to aggregator".len() } else { 8 };
        for (words, [peers, bytes]) in all {
            let _ = writeln!(text, "  {peers:<width$} {bytes:>11}  {words}");
        }
    }
}

/// What leaves a worker, in words, with whom it goes to and in how many bytes: what is said alike of several peers is
/// said once.
pub(super) fn by_words(costs: &Costs, rank: u32) -> Vec<(String, [String; 2])> {
    let mut said: Vec<(String, Vec<u32>, u64)> = Vec::new();
    for leaves in costs.leaves.iter().filter(|leaves| leaves.worker == rank) {
        let often = match (leaves.row.is_some(), leaves.frames) {
            (false, _) => String::new(),
            (true, 1) => ", once".to_owned(),
            (true, frames) => format!(", {frames} times"),
        };
        let kept = if leaves.denied { " (policy.deny: never sent)" } else { "" };
        let words = format!("{}{often}{kept}", leaves.words);
        match said.iter_mut().find(|(known, ..)| *known == words) {
            Some((_, peers, bytes)) => {
                peers.push(leaves.to);
                *bytes += leaves.bytes;
            }
            None => said.push((words, vec![leaves.to], leaves.bytes)),
        }
    }
    let everybody = costs.workers - 1;
    let peers = |peers: &[u32]| match peers {
        all if all.len() == everybody && everybody > 1 => "to all".to_owned(),
        some => format!("to {}", some.iter().map(|&peer| name(costs, peer)).collect::<Vec<_>>().join(", ")),
    };
    said.into_iter().map(|(words, to, bytes)| (words, [peers(&to), human_bytes(bytes)])).collect()
}
