//! What a resumed run had sent before: from its summary and ledger where it ended in order, else from the checkpoint
//! alone.
//!
//! A run that was killed leaves no summary. Then the totals are those of the checkpoint, and the traffic of the rounds
//! after it and which link carried what are lost with it.

use std::path::Path;

use laconic_wire::{Count, Kind};

use super::aside::read_within;
use super::summary::Summary;
use super::traffic::Earlier;
use crate::fit::progress::Snapshot;

/// Files larger than this are not read back.
const BYTES_MAX: u64 = 1 << 30;

/// Reads back what the run in this folder had sent when the snapshot was taken.
pub fn read_earlier(out: Option<&Path>, snapshot: &Snapshot) -> Earlier {
    let mut earlier = Earlier { kinds: snapshot.bytes, ..Earlier::default() };
    let read = |name: &str| String::from_utf8(read_within(&out?.join(name), BYTES_MAX).ok()?).ok();
    let summary = read("summary.json").and_then(|text| serde_json::from_str::<Summary>(&text).ok());
    let Some(summary) = summary.filter(|summary| summary.rounds == snapshot.rounds()) else {
        return earlier;
    };
    // The closing reports, all of them control, came after the checkpoint.
    let known: Count = earlier.kinds.iter().map(|(_, count)| *count).sum();
    let bytes = &summary.bytes;
    let control = &mut earlier.kinds[Kind::Control];
    control.frames += bytes.frames.saturating_sub(known.frames);
    control.payload += bytes.payload.saturating_sub(known.payload);
    control.framed += bytes.total.saturating_sub(known.framed);
    earlier.links = summary.bytes.by_link;
    let ledger = read("ledger.csv").unwrap_or_default();
    earlier.rows = ledger.split_once('\n').map(|(_, rows)| rows.to_owned()).unwrap_or_default();
    earlier
}
