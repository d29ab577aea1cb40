//! What workers put on their links, as far as the time of a run depends on it.

use laconic_wire::{EAGER, Ledger, Load};

/// The load of a run, by what each worker sends.
pub fn load<'a>(workers: impl Iterator<Item = &'a Ledger>) -> Load {
    let mut load = Load::default();
    for ledger in workers {
        load.bytes = load.bytes.max(ledger.total().framed);
        let peers = ledger.totals_by_peer();
        // Frames of one exchange to different peers travel at the same time, those to one peer one after the other.
        load.exchanges = peers.values().map(|count| count.frames).fold(load.exchanges, u64::max);
        let mut long = 0;
        for (_, count) in ledger.totals_by_kind().iter().filter(|(_, count)| count.frames > 0) {
            let each = count.framed / count.frames;
            load.largest = load.largest.max(each);
            long += if each > EAGER { count.frames / peers.len().max(1) as u64 } else { 0 };
        }
        load.long = load.long.max(long);
    }
    load
}
