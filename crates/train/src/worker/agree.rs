//! How workers see at the start that they run the same thing, and if not, in what they differ.
//!
//! Each sends every other a digest of all that decides numbers and one of its own part. Only if the first differs do
//! they send the values themselves. Steps: 1 all-gather.

use laconic_graph::part::Part;
use laconic_wire::{Ledger, Rank, Transport, WireError, collectives};

use crate::error::{Result, TrainError};
use crate::exchange::steps::Step;
use crate::plan::identity::{Difference, Identity};

const DIGEST: usize = 32;

/// The digests of a worker's run and of its part.
const DIGESTS: usize = 2 * DIGEST;

/// A worker's values are larger only by mistake: configuration files are smaller.
const VALUES_MAX: usize = 4 << 20;

/// Compares what this worker runs with what the others do; returns it with a digest of what all parts hold.
///
/// # Errors
/// If another worker runs something else, with the first key that differs; or if one does not answer.
pub fn agree(transport: &mut dyn Transport, identity: Identity, part: &Part) -> Result<Identity> {
    let mine = [identity.digest(), part.digest()].concat();
    let rank = transport.rank();
    let all = collectives::all_gather(transport, Step::Digests.tag(0), &mine)?;
    let (mut runs, mut parts) = (Vec::with_capacity(all.len()), Vec::with_capacity(all.len()));
    for (peer, digests) in Rank::all(all.len()).zip(&all) {
        let ([run, part], []) = digests.as_chunks::<DIGEST>() else {
            let error = WireError::malformed("digests of another size");
            return Err(error.from_peer(rank, peer, Step::Digests.tag(0)).into());
        };
        runs.push(*run);
        parts.push(*part);
    }
    match runs.iter().position(|run| *run != runs[0]) {
        Some(other) => Err(disagreement(transport, &identity, Rank(other as u32))?),
        None => Ok(identity.with_parts(parts)),
    }
}

/// In what worker 0 and `other`, the first that differs from it, differ. All workers say the same.
fn disagreement(transport: &mut dyn Transport, identity: &Identity, other: Rank) -> Result<TrainError> {
    let tag = Step::Identities.tag(0);
    let mine = serde_json::to_vec(identity).map_err(|error| TrainError::config(error.to_string()))?;
    let all = collectives::all_gather(transport, tag, &mine)?;
    let rank = transport.rank();
    let of = |peer: Rank| {
        let values = &all[peer.index()];
        let read = (values.len() <= VALUES_MAX).then(|| serde_json::from_slice::<Identity>(values).ok()).flatten();
        read.ok_or_else(|| WireError::malformed("values of another form").from_peer(rank, peer, tag))
    };
    let (first, second) = (of(Rank(0))?, of(other)?);
    let Some(Difference { name, values }) = first.differences(&second).next() else {
        return Err(WireError::malformed("a digest of other values").from_peer(rank, other, tag).into());
    };
    let [a, b] = values.map(|value| value.unwrap_or("not set"));
    let what = format!("workers 0 and {other} do not run the same: {name} is {a} on worker 0, {b} on worker {other}");
    Ok(TrainError::config(what))
}

/// Enters what [`agree`] sends.
pub fn forecast_agree(rank: Rank, size: usize, ledger: &mut Ledger) {
    collectives::forecast_all_gather(ledger, Step::Digests.tag(0), size, rank, DIGESTS);
}
